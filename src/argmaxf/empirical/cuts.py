"""Every cut of a set of scores with its value, precision and recall: arrays in, arrays out.

A cut selects all items from some score on. `Bins` say what cuts hold, `Cuts` how good they are, and
`CutProblem` which of them is the best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.validation import check_zero_division, ones_unless
from argmaxf.constraints import Constraints
from argmaxf.empirical.bins import Bins
from argmaxf.measures import MEASURES, FBeta, Measure, MeasureLike, Ratio, as_measure
from argmaxf.measures.base import divided

ROUNDING_ERROR = 1e-12  # how far rounding can move what is compared
FOUR_ERRORS = 3.2e-5  # the probability that a normal number is four standard errors too low


class Cuts(NamedTuple):
    """Cuts from short to long, the empty one first, and how good each is."""

    low: Any  # of the scores that each cut adds to the one before: the lowest and the highest
    high: Any
    rows: Any  # that each cut selects
    value: Floats  # of the measure
    precision: Floats
    recall: Floats
    rate: Floats  # the part that is selected
    counts: Any = None  # true positives, selected, all positives, all rows; not of means over rows

    def held(self, i: int) -> Any:
        """Return the counts of the i-th cut."""
        true, size, *every = self.counts
        return np.array([true[i], size[i], *every])

    def threshold(self, i: int) -> float:
        """Return a threshold on the scores that is the i-th cut."""
        beside = (each[max(i - 1, 0) : i + 1] for each in (self.low, self.high))
        return float(thresholds(*beside)[min(i, 1)])


@dataclass(frozen=True)
class CutProblem:
    """What the best cut is."""

    measure: Measure
    zero_division: float = 0.0
    constraints: Constraints = Constraints()  # noqa: RUF009  frozen
    confidence_level: float | None = None  # with which they must hold in the population

    @classmethod
    def of(
        cls,
        beta: float,
        measure: MeasureLike,
        zero_division: float,
        min_precision: float | None = None,
        min_recall: float | None = None,
        max_selected_rate: float | None = None,
        confidence_level: float | None = None,
    ) -> CutProblem:
        """Check the options of a public function."""
        constraints = Constraints(min_precision, min_recall, max_selected_rate)
        zero, goal = check_zero_division(zero_division), as_measure(measure, beta)
        return cls(goal, zero, constraints, confidence_level)

    @property
    def is_bounded(self) -> bool:
        """Whether it is known that the measure rises with true and falls with false positives."""
        return isinstance(self.measure, Ratio) or type(self.measure) in MEASURES.values()

    def rates(self, true: Any, size: Any, positives: Any, n: Any) -> tuple[Any, Any, Any]:
        """Return the measure, precision and recall of such counts.

        Their products must be in the range of floats. But for smoothing constants only ratios
        matter, so that counts of very large and very small weights are scaled, by powers of two.
        """
        zero, power = self.zero_division, math.frexp(n)[1]
        is_named = type(self.measure) in MEASURES.values()
        if abs(power) > 200 and is_named and not getattr(self.measure, "smooth", 0.0):
            counts = true, size, positives, n
            true, size, positives, n = (np.ldexp(each, -power) for each in counts)
        value = self.measure.value(true, size, positives, n, zero_division=zero)
        return value, divided(true, size, zero), divided(true, positives, zero)

    def rated(self, bins: Bins) -> Cuts:
        """Rate the empty cut and those at the end of bins, each of which holds those before it."""
        true, false, rows = (np.append(0, each) for each in bins[2:])
        counts = true, true + false, true[-1], true[-1] + false[-1]
        rate = counts[1] / counts[3]
        return Cuts(bins.low, bins.high, rows, *self.rates(*counts), rate, counts)

    def limits(self, cuts: Cuts, summed: float) -> tuple[float, float, float, float]:
        """Return the least recall and precision, the highest rate, and how far each may be rounded.

        The cuts are sums of so many weights. Where there is nothing to find, 0/0 is any recall.
        """
        asked, slack = self.constraints, max(ROUNDING_ERROR, summed * float(np.finfo(float).eps))
        recall = asked.min_recall if cuts.recall[0] < cuts.recall[-1] else None
        most = np.inf if asked.max_selected_rate is None else asked.max_selected_rate
        return recall or 0.0, asked.min_precision or 0.0, most, slack

    def best(self, cuts: Cuts, summed: float) -> int:
        """Return which cut is the best that meets the constraints, or say what can be reached."""
        *least, most, slack = self.limits(cuts, summed)
        found = cuts.rate <= most + slack
        for kind, limit in zip(("recall", "precision"), least, strict=True):
            reached = getattr(cuts, kind)
            before, found = found, found & (reached >= limit - slack)
            if not found.any():
                raise ValueError(
                    f"min_{kind}={limit} cannot be reached: the highest {kind} of an allowed "
                    f"threshold is {reached[before].max():.6g}"
                )
        return int(np.argmax(np.where(found, cuts.value, -np.inf)))


def smoothed(y: Any, score: Any, weight: Any, below: float) -> Any:
    """Return labels between 0 and 1 if fewer than `below` are positive, else the labels.

    Each is a mean of the label and of its probability by a logistic regression, with Platt's
    targets, on the normal score of its rank; the probability has the weight 1 - positives / below.
    """
    positives = int(np.count_nonzero(y))
    if not 1 < positives < min(below, y.size) or score[y].min() > score[~y].max():
        return y
    from scipy.optimize import minimize
    from scipy.special import expit, ndtri

    weight = ones_unless(weight, y.size)
    weight = weight * (y.size / weight.sum())
    values, place = np.unique(score, return_inverse=True)
    size = np.bincount(place, weight)
    rank = ndtri((np.cumsum(size) - size / 2) / y.size)
    terms = np.stack([rank, np.ones(values.size)])
    target = np.where(y, (positives + 1) / (positives + 2), 1 / (y.size - positives + 2))
    goal = np.bincount(place, weight * target)

    def loss(slope: Floats) -> tuple[float, Floats]:
        odds = slope @ terms
        value = size @ np.logaddexp(0.0, odds) - goal @ odds
        return value / positives, terms @ (size * expit(odds) - goal) / positives

    start = np.array([1.0, np.log(positives / (y.size - positives))])
    proba = expit(minimize(loss, start, jac=True).x @ terms)[place]
    return proba + (y - proba) * (positives / below)


def is_reversed(y: Bools, score: Any, selected: Bools) -> bool:
    """Whether nearly all or nothing is selected because positives have the lower scores.

    They have where the rank-sum test says so by four standard errors.
    """
    if 0.0 < np.mean(selected) < 0.9 or y.all() or not y.any():
        return False
    from scipy.stats import mannwhitneyu  # takes longer to import than all of argmaxf

    with np.errstate(invalid="ignore"):  # where all scores are equal
        test = mannwhitneyu(score[y], score[~y], alternative="less", method="asymptotic")
    return bool(test.pvalue < FOUR_ERRORS)


def threshold_std(
    y: Bools,
    score: Floats,
    rng: np.random.Generator,
    *,
    measure: Measure = FBeta(),  # noqa: B008  frozen
    weight: Floats | None = None,
) -> float:
    """Return the standard deviation of the best threshold, or NaN where data are too few to say.

    The best threshold is found on each of m disjoint parts of the data. A maximizer over cuts
    converges at the rate n^(-1/3) (Kim and Pollard 1990), so that the spread shrinks by m^(-1/3)
    for all of the data: subsampling (Politis and Romano 1994), consistent where the bootstrap is
    not (Abrevaya and Huang 2005).
    """
    positives = int(y.sum())
    parts = min(10, min(positives, y.size - positives) // 5)  # five of each class in every part
    classes = [rng.permutation(np.flatnonzero(of_class)) for of_class in (y, ~y)]
    found = []
    for i in range(parts):
        rows = np.concatenate([each[i::parts] for each in classes])
        part = counted(y[rows], score[rows], None if weight is None else weight[rows])
        if part[0].size:
            cuts = useful_cuts(*part, CutProblem(measure))
            found.append(cuts.threshold(int(np.argmax(cuts.value))))
    return float(np.std(found, ddof=1) * parts ** (-1 / 3)) if len(found) > 1 else float("nan")


def counted(y: Any, score: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Leave out items of no weight: one that is not there must not place a threshold."""
    if weight is None or weight.all():
        return y, score, weight
    return y[weight > 0], score[weight > 0], weight[weight > 0]


def useful_cuts(y: Any, score: Any, weight: Any, problem: CutProblem) -> Cuts:
    """Return the cuts that can be the best: those that end at a positive item, and the empty one.

    Any other has more false positives than the next shorter one, and nothing else. For weights,
    smoothed labels and measures that may rise with false positives, every cut is returned.
    """
    if weight is not None or not problem.measure.falls_with_k or y.dtype != np.bool_:
        return problem.rated(bins_of_scores(y, score, weight))
    positive, negative = np.sort(score[y]), np.sort(score[~y])
    low = positive[_last_of_each(positive)]
    if negative.size and not (low.size and low[0] <= negative[0]):
        low = np.append(negative[0], low)  # the cut that holds all rows
    true, false = (each.size - np.searchsorted(each, low) for each in (positive, negative))
    below = np.append(score.dtype.type(-np.inf), negative)[negative.size - np.append(false[1:], 0)]
    bins = Bins(low, np.maximum(low, below), true, false, true + false)
    return problem.rated(bins.where(slice(None, None, -1)))


def mean_cuts(y: Any, score: Any, weight: Any, problem: CutProblem) -> Cuts:
    """Return the cuts of all cells of a table by one threshold, rated by the mean over its rows.

    Going down the scores, each cell changes the value of its own row only, so the mean is a running
    sum of those changes. Cost: two argsorts.
    """
    share = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    in_row = np.argsort(-score, axis=1, kind="stable")
    hit = np.take_along_axis(y, in_row, axis=1)
    t = np.pad(np.cumsum(hit, axis=1), ((0, 0), (1, 0)))  # T after each cell, from T = 0
    k = np.broadcast_to(np.arange(t.shape[1]), t.shape)
    s = np.broadcast_to(t[:, -1:], t.shape)
    falling = np.take_along_axis(score, in_row, axis=1).ravel()
    order = np.argsort(-falling, kind="stable")
    last = _last_of_each(falling[order])

    def running(per_row: Floats) -> Floats:
        start = share @ per_row[:, 0]
        change = (share[:, None] * np.diff(per_row, axis=1)).ravel()[order]
        return np.append(start, start + np.cumsum(change)[last])

    edge, labels = falling[order][last], t.shape[1] - 1
    means = map(running, (*problem.rates(t, k, s, labels), k / labels))
    return Cuts(edge, edge, np.append(0, last + 1), *means)


def bins_of_scores(y: Any, score: Any, weight: Any = None) -> Bins:
    """Count what the cut at each distinct score holds. Cost: one argsort."""
    order = np.argsort(-score)
    falling, hit = score[order], y[order]
    weight = np.int64(1) if weight is None else weight[order]
    last, true = _last_of_each(falling), weight * hit
    edge, held, missed = falling[last], np.cumsum(true)[last], np.cumsum(weight - true)[last]
    return Bins(edge, edge, held, missed, last + 1)


def between(low: Any, high: Any) -> Any:
    """Return thresholds in (low, high]: the midpoint, finite wherever a finite one exists.

    They keep the precision of the scores, so that comparing scores with them stays exact.
    """
    with np.errstate(invalid="ignore"):
        middle = low / 2 + high / 2
    middle = np.where(np.isinf(low), high - 1, middle)
    middle = np.where(np.isinf(high), np.maximum(low + 1, np.nextafter(low, high)), middle)
    middle = np.where(np.isinf(low) & np.isinf(high), 0, middle).astype(low.dtype)
    return np.where((low < middle) & (middle <= high), middle, high)[()]


def above(highest: Any) -> Any:
    """Return a threshold that selects nothing; no number is above infinity, so NaN is there."""
    return np.nan if np.isposinf(highest) else np.nextafter(highest, np.inf)


def thresholds(low: Any, high: Any) -> Any:
    """Return thresholds that select none, one, two, … of the groups of scores from high to low."""
    return np.concatenate([[above(high[0])], between(high[1:], low[:-1]), low[-1:]])


def _last_of_each(ordered: Any) -> Ints:
    """Return where each run of equal numbers ends."""
    return np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)])
