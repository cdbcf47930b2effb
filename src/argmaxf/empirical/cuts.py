"""Every cut of a set of scores with its value, precision and recall: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.validation import ones_unless
from argmaxf.measures import FBeta, Measure
from argmaxf.measures.base import divided


@dataclass(frozen=True)
class Cuts:
    """Cuts from the empty one downwards; each selects the scores of at least its `edge`."""

    edge: Floats  # +inf stands for the empty cut, where that comes first
    value: Floats  # of the measure
    rates: Callable[[Any], tuple[Any, Any]]  # precision and recall of the cuts asked for
    empty_first: bool = True

    def selects_none(self, i: int) -> bool:
        """Whether the i-th cut is the empty one."""
        return bool(self.empty_first and i == 0 and np.isposinf(self.edge[i]))

    def threshold(self, i: int, score: Any) -> float:
        """Return a threshold on the scores that is the i-th cut."""
        if self.selects_none(i):
            return float(above(score.max()))
        return float(below(self.edge[i], score))


def best_threshold(y: Any, score: Any, weight: Any, measure: Measure) -> float:
    """Return the threshold on the scores with the highest value."""
    y, score, weight = counted(y, score, weight)
    cuts = useful_cuts(y, score, weight, measure, 0.0)
    return cuts.threshold(int(np.argmax(cuts.value)), score)


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
    converges at the rate n^(-1/3) (Kim and Pollard 1990), so the spread between parts shrinks by
    m^(-1/3) for all of the data. This is subsampling (Politis and Romano 1994), which is consistent
    at that rate, where the bootstrap is not (Abrevaya and Huang 2005). Cost: one more sort.
    """
    positives = int(y.sum())
    fewest = min(positives, y.size - positives) // 5  # five of each class in every part
    parts = min(10, fewest)
    if parts < 2:
        return float("nan")
    found = [
        best_threshold(y[rows], score[rows], None if weight is None else weight[rows], measure)
        for rows in _parts(y, parts, rng)
        if weight is None or weight[rows].any()
    ]
    return float(np.std(found, ddof=1) * parts ** (-1 / 3)) if len(found) > 1 else float("nan")


def _parts(y: Bools, parts: int, rng: np.random.Generator) -> list[Ints]:
    """Return rows in disjoint parts, each with its share of positives and of negatives."""
    classes = [rng.permutation(np.flatnonzero(of_class)) for of_class in (y, ~y)]
    return [np.concatenate([rows[i::parts] for rows in classes]) for i in range(parts)]


def counted(y: Any, score: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Leave out items of no weight: one that is not there must not place a threshold."""
    if weight is None or weight.all():
        return y, score, weight
    return y[weight > 0], score[weight > 0], weight[weight > 0]


def useful_cuts(y: Any, score: Any, weight: Any, measure: Measure, zero_division: float) -> Cuts:
    """Return the cuts that can be the best: those that end at a positive item, and the empty one.

    Any other cut has more false positives than the next shorter one that ends at a positive, and
    nothing else: it is no better in precision, recall, F, or any measure that falls with k. For a
    measure that may rise with false positives every cut is returned. Cost: one sort of the numbers,
    an argsort with weights or for such a measure.
    """
    if weight is not None or not measure.falls_with_k:
        return every_cut(y, score, weight, measure, zero_division)
    return _with_empty(*positive_cuts(y, score)[:3], len(y), measure, zero_division)


def every_cut(y: Any, score: Any, weight: Any, measure: Measure, zero_division: float) -> Cuts:
    """Return the cut at each distinct score, and the empty cut. Cost: one argsort."""
    weight = ones_unless(weight, len(y))
    return _with_empty(*_weigh(y, score, weight), weight.sum(), measure, zero_division)


def mean_cuts(y: Any, score: Any, weight: Any, measure: Measure, zero_division: float) -> Cuts:
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
        return np.concatenate([[start], start + np.cumsum(change)[last]])

    return Cuts(
        edge=np.concatenate([[np.inf], falling[order][last]], dtype=score.dtype),
        value=running(measure.quotient(t, k, s, t.shape[1] - 1, zero_division)),
        rates=lambda i: (
            running(divided(t, k, zero_division))[i],
            running(divided(t, s, zero_division))[i],
        ),
    )


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


def below(edge: Any, score: Any) -> Any:
    """Return a threshold that selects what scores at least `edge`, and nothing else."""
    lower = score < edge
    return between(np.max(score, where=lower, initial=-np.inf), edge) if lower.any() else edge


def above(highest: Any) -> Any:
    """Return a threshold that selects nothing; no number is above infinity, so NaN is there."""
    return np.nan if np.isposinf(highest) else np.nextafter(highest, np.inf)


def rated(
    edge: Any,
    true: Any,
    false: Any,
    positives: float,
    n: float,
    measure: Measure,
    zero_division: float,
    *,
    empty_first: bool = True,
) -> Cuts:
    """Rate cuts by the positives and negatives they hold."""
    predicted = true + false
    return Cuts(
        edge=edge,
        value=measure.quotient(true, predicted, positives, n, zero_division),
        rates=lambda i: (
            divided(true[i], predicted[i], zero_division),
            divided(true[i], positives, zero_division),
        ),
        empty_first=empty_first,
    )


def _with_empty(
    edge: Any, true: Any, false: Any, n: float, measure: Measure, zero_division: float
) -> Cuts:
    """Rate cuts and the empty one before them."""
    true, false = (np.concatenate([[0], column]) for column in (true, false))
    edge = np.concatenate([[np.inf], edge], dtype=edge.dtype)
    return rated(edge, true, false, true[-1], n, measure, zero_division)


def positive_cuts(y: Any, score: Any) -> tuple[Any, Any, Any, Any]:
    """Return each positive score, falling, with the positives and negatives at or above it.

    And the scores of all negatives, rising. Cost: one sort of the numbers.
    """
    positive, negative = np.sort(score[y]), np.sort(score[~y])
    first = np.flatnonzero(np.append(True, positive[1:] != positive[:-1])[: len(positive)])
    edge = positive[first]
    true = len(positive) - first
    false = len(negative) - np.searchsorted(negative, edge)
    return edge[::-1], true[::-1], false[::-1], negative


def _weigh(y: Any, score: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Return each distinct score, falling, with the weight of positives and negatives above it."""
    order = np.argsort(-score)
    falling, true = score[order], weight[order] * y[order]
    last = _last_of_each(falling)
    false = weight[order] - true
    return falling[last], np.cumsum(true)[last], np.cumsum(false)[last]


def _last_of_each(falling: Any) -> Any:
    """Return where each run of equal scores ends."""
    return np.flatnonzero(np.append(falling[1:] != falling[:-1], True))
