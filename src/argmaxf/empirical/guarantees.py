"""Guarantees: constraints on precision, recall and rate that hold in the population.

Rows are independent draws of one population. At the confidence level asked for, over draws of the
labelled rows, the constraint holds for new rows with the threshold that is chosen. Recall and rate
only grow as the threshold falls, so that one exact test covers every cut. Precision is tested in a
fixed sequence: a cut with T positives in k rows passes at a level A where P(Bin(k, c) ≥ T) ≤ A.
Starts are ranks fixed before any label is seen, each with a level of its own; a start that passes
adds its level to A. Cuts are tested at A from high scores to low; at the first that fails A is
lost. A second sequence begins with all rows of the highest score, however many they are. Some
threshold of a precision below c passes with a probability of at most the sum of the levels,
whatever the population (proof in docs/background/guarantee-proofs.md).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.lazy import cached_property
from argmaxf._base.shown import Shown
from argmaxf._base.validation import check_strictly_between, how_many
from argmaxf.constraints import ChanceConstraint, Constraints, format_cost, format_level
from argmaxf.empirical.bins import Bins
from argmaxf.empirical.cuts import CutProblem, Cuts, bins_of_scores

LEVEL_LEFT = 0.3  # of the level not yet spent, what each start leaves for the later ones
RANK_RATIO = 3  # each start is so many times as far down as the one before
TOP_SHARE = 0.05  # of the level, what the sequence from the rows of the highest score has
SHUFFLE_SEED = 0  # of the order of equal scores: fixed, since a seed chosen afterwards voids it
MOST_GROWTH = 1e3  # sample sizes beyond this many times the present one are not spelled out


class GuaranteeError(ValueError):
    """No threshold qualifies. `rows` is about how many labelled rows it would take, or infinity.

    Examples
    --------
    >>> from argmaxf import maximize_empirical_f
    >>> try:
    ...     maximize_empirical_f([0, 1], [0.2, 0.8], min_precision=0.9, confidence_level=0.95)
    ... except GuaranteeError as error:
    ...     print(round(error.rows))
    607
    """

    def __init__(self, message: str, rows: float) -> None:
        super().__init__(message)
        self.rows = rows


@dataclass(frozen=True, repr=False)
class Guarantee(Shown):
    """What is guaranteed of a threshold for new rows of the same population.

    Attributes
    ----------
    constraints : Constraints
        The precision and recall it has at least, and the rate of rows it selects at most.
    confidence_level : float
        Probability, over draws of the labelled rows, that all of them hold.
    precision_low, recall_low, rate_high : float or None
        The limits by which they were tested; each is at least as good as its constraint.
    cost : float
        F on the labelled rows given up for the guarantee.
    joint_confidence_level : float or None
        For a segment: the confidence level of all segments at once, from which `confidence_level`
        of this segment follows.

    Examples
    --------
    >>> from argmaxf import maximize_empirical_f
    >>> y, score = [0] * 100 + [1] * 100, range(200)
    >>> best = maximize_empirical_f(y, score, min_precision=0.9, confidence_level=0.95)
    >>> print(best.guarantee)
    min_precision=0.9 at confidence level 0.95; costs no F
    """

    constraints: Constraints
    confidence_level: float
    precision_low: float | None
    recall_low: float | None
    rate_high: float | None
    cost: float
    joint_confidence_level: float | None = None

    def __str__(self) -> str:
        level = format_level("confidence level", self.confidence_level, self.joint_confidence_level)
        return f"{self.constraints} at {level}; {format_cost(self.cost, 'F')}"


def chance_of_each(
    problem: CutProblem, segments: int = 1, weight: Any = None, average: str | None = None
) -> ChanceConstraint | None:
    """Return what each of several segments, which share the risk, must guarantee.

    Rows that no guarantee can be given for are refused.
    """
    constraints, confidence_level = problem.constraints, problem.confidence_level
    if confidence_level is None:
        return None
    why = "no finite number of rows makes it certain"
    check_strictly_between("confidence_level", confidence_level, why)
    if not constraints.given():
        raise ValueError(
            f"confidence_level={confidence_level} needs min_precision, min_recall or "
            "max_selected_rate"
        )
    if average in ("micro", "samples"):
        raise ValueError(
            "confidence_level needs independent items, and the cells of a row are not: average "
            f"must be 'macro', got {average!r}"
        )
    weight = None if weight is None else weight[weight > 0.0]
    if weight is not None and weight.min() < weight.max():
        raise ValueError(
            "confidence_level needs equal weights, because its tests count rows; got weights "
            f"from {weight.min():g} to {weight.max():g}"
        )
    if segments <= 1:
        return ChanceConstraint(constraints, confidence_level)
    each = 1 - (1 - confidence_level) / segments
    return ChanceConstraint(constraints, each, confidence_level)


def refuse_groups() -> NoReturn:
    """Refuse a guarantee from rows that depend on each other."""
    raise ValueError(
        "confidence_level needs independent rows, and rows of one group are not: fit on one row of "
        "each group, without groups, or leave out confidence_level"
    )


def risk(chance: ChanceConstraint) -> float:
    """Return the risk of each constraint: all have the same."""
    return (1.0 - chance.confidence_level) / max(1, len(chance.constraints.given()))


@dataclass(frozen=True)
class Sample:
    """Labelled rows."""

    y: Bools
    score: NDArray[Any]

    @cached_property
    def cuts(self) -> Bins:
        """All cuts, from short to long; the last holds all rows."""
        return bins_of_scores(self.y, self.score)

    def top(self, ranks: Any) -> Ints:
        """Return the positives among so many first rows, for each of the ranks.

        Rows of one score are shuffled: they may have come sorted by their labels.
        """
        size, true = (np.append(0, each) for each in (self.cuts.size, self.cuts.true))
        found = []
        for rank in ranks:
            last = int(np.searchsorted(size, rank))
            inside, more = rank - size[last - 1], true[last] - true[last - 1]
            if more and rank < size[last]:
                equal = self.y[self.score == self.cuts.low[last - 1]]
                more = np.random.default_rng(SHUFFLE_SEED).permutation(equal)[:inside].sum()
            found.append(true[last - 1] + more)
        return np.array(found)

    def levels(self, chance: ChanceConstraint) -> Floats:
        """Return the level at which the precision of each cut passed, 0 where it did not."""
        return passed_levels(self.cuts, chance, self.top)


def best_guaranteed(
    y: Any, score: Any, chance: ChanceConstraint, problem: CutProblem
) -> tuple[Cuts, int, Guarantee, Any]:
    """Return all cuts, the best that qualifies and its guarantee, and counts without one."""
    sample = Sample(y, score)
    level, cuts = guaranteed_levels(sample, chance), problem.rated(sample.cuts)
    value = cuts.value[1:]
    i = int(np.argmax(np.where(level > 0, value, -np.inf)))
    cost = max(0.0, float(value.max(initial=0.0) - value[i]))
    guarantee = guarantee_of(sample.cuts.where(i), level[i], sample, chance, cost)
    return cuts, i + 1, guarantee, cuts.held(int(np.argmax(cuts.value)))


def guaranteed_levels(sample: Sample, chance: ChanceConstraint) -> Floats:
    """Return the level at which the precision of each cut passed, 0 where it does not qualify."""
    level = np.zeros(sample.cuts.low.size)
    chosen = _enough_and_few(sample.cuts, chance)
    level[chosen] = sample.levels(chance)[chosen]
    if level.any():
        return level
    rows = rows_needed(sample, chance)
    advice = (
        f"even {MOST_GROWTH:,.0f} times as many rows like these would not be enough, because no "
        "threshold meets it clearly"
    )
    if math.isfinite(rows):
        unit = 10.0 ** (math.floor(math.log10(rows)) - 1)  # an estimate: two digits, rounded up
        enough = f"{math.ceil(rows / unit) * unit:,.0f} rows"
        advice = f"about {enough} would be enough, if they are like these"
    constraints, confidence_level, joint = chance
    asked = format_level("confidence level", confidence_level, joint)
    raise GuaranteeError(
        f"{constraints} cannot be guaranteed at {asked} from "
        f"{how_many(sample.y.size, 'labelled row')}; {advice}",
        rows,
    )


def _enough_and_few(cuts: Bins, chance: ChanceConstraint) -> slice:
    """Return the cuts that pass the tests of recall and rate, which grow with the cut."""
    true, size, asked = cuts.true, cuts.size, chance.constraints
    least, most = asked.min_recall or 0.0, asked.max_selected_rate
    rest = 0.0 if most is None else 1.0 - most  # the least part that is not selected

    def has_recall(i: int) -> bool:
        return not least or tail(true[i], true[-1] - true[i], least) <= risk(chance)

    def has_rate_too_high(i: int) -> bool:
        return rest > 0.0 and tail(size[-1] - size[i], size[i], rest) > risk(chance)

    every = range(size.size)
    first, end = (bisect_left(every, True, key=each) for each in (has_recall, has_rate_too_high))
    return slice(first, end)


def tail(true: Any, false: Any, limit: Any) -> Any:
    """Return P(Bin(true + false, limit) ≥ true), the exact p-value of a rate below `limit`."""
    from scipy.special import betainc  # takes .2 s to load

    return np.where(np.asarray(true) > 0, betainc(np.maximum(true, 1), false + 1.0, limit), 1.0)


def low_limit(true: Any, size: Any, level: Any) -> Any:
    """Return Clopper and Pearson's lower limit of a proportion of `true` in `size`."""
    from scipy.special import betaincinv

    true, size = np.asarray(true, np.float64), np.asarray(size, np.float64)
    limit = betaincinv(np.maximum(true, 1.0), size - true + 1.0, level)
    limit = np.where(true > 0, limit, 0.0)
    return limit if limit.ndim else float(limit)


# ------------------------------------------------------------------ the test of precision


def start_ranks(limit: float, alpha: float, n: float) -> Iterator[tuple[float, float]]:
    """Yield the ranks of the starts, from the fewest rows that could pass to all, with levels."""
    level = alpha * (1 - LEVEL_LEFT)
    rank = least_rows(limit, level)
    while rank < n and level > 0:
        yield rank, level
        rank, level = rank * RANK_RATIO, level * LEVEL_LEFT
    yield n, level / (1 - LEVEL_LEFT)


def least_rows(limit: float, level: float) -> float:
    """Return how many rows, all positive, a test at this level needs: limit^rows ≤ level."""
    return math.inf if limit == 1 else max(1, math.ceil(math.log(level) / math.log(limit)))


def passed_levels(
    cuts: Bins, chance: ChanceConstraint, top: Callable[[Any], Any], *, from_top: bool = True
) -> Floats:
    """Return the level at which each cut's precision passed, 0 where it did not.

    `top` says how many positives are among so many first rows; `from_top` asks for the second
    sequence, too.
    """
    limit = chance.constraints.min_precision
    if not limit:
        return np.ones(cuts.true.size)
    starts = start_ranks(limit, risk(chance) * (1 - TOP_SHARE), cuts.size[-1])
    ranks, levels = zip(*starts, strict=True)
    passed = _sequence(cuts, zip(ranks, top(ranks), levels, strict=True), limit)
    if not from_top:
        return passed
    first = cuts.size[0], cuts.true[0], risk(chance) * TOP_SHARE
    return np.maximum(passed, _sequence(cuts, [first], limit))


def _sequence(cuts: Bins, starts: Iterable[tuple[Any, Any, float]], limit: float) -> Floats:
    """Return the level at which each cut passed; of starts the rank, true positives and level."""
    size, passed, level = cuts.size, np.zeros(cuts.true.size), 0.0
    begun = [(k, more) for k, true, more in starts if tail(true, k - true, limit) <= more]
    firsts = [int(np.searchsorted(size, k)) for k, _ in begun]
    for (_, more), (first, goal) in zip(begun, pairwise([*firsts, size.size]), strict=True):
        level += more
        end = first + _passing(cuts.where(slice(first, goal)), limit, level)
        passed[first:end] = level
        level = level if end == goal else 0.0
    return passed


def _passing(cuts: Bins, limit: float, level: float) -> int:
    """Return how many cuts pass before the first that fails, looking further ahead each time."""
    start, step = 0, 64
    while start < cuts.true.size:
        ahead = slice(start, start + step)
        failed = tail(cuts.true[ahead], cuts.false[ahead], limit) > level
        if failed.any():
            return start + int(np.argmax(failed))
        start, step = start + step, 2 * step
    return int(cuts.true.size)


# ------------------------------------------------------------------ how many rows would do

_CHANCE = 0.05  # what is seen more often than this by chance alone says nothing


def rows_needed(sample: Sample, chance: ChanceConstraint) -> float:
    """Return about how many rows like these the tests need, now and for any more, or infinity."""
    if not sample.y.any():
        return math.inf
    last = sample.cuts.true.size - 1
    some = np.append(np.linspace(0, last, 500), np.geomspace(1, last + 1, 100) - 1)
    cuts = sample.cuts.where(np.unique(some.astype(np.int64)))
    size, precision = cuts.size, _believed(cuts, chance)
    alike = bool(cuts.size[0] > 1)  # a row alone at the top is not taken to share its score

    def enough(growth: float) -> bool:
        grown = cuts._replace(true=cuts.true * growth, false=cuts.false * growth)
        hits = precision * grown.size
        tested = cuts._replace(true=hits, false=grown.size - hits)

        def top(ranks: Any) -> Any:
            return np.interp(ranks, np.append(0, grown.size), np.append(0, hits))

        level = passed_levels(tested, chance, top, from_top=alike)
        return bool((level[_enough_and_few(grown, chance)] > 0).any())

    least = math.inf
    for growth in np.geomspace(MOST_GROWTH, 1.0, 140).tolist():  # in steps of 5 %
        if not enough(growth):
            break
        least = growth
    return least * float(size[-1])


def _believed(cuts: Bins, chance: ChanceConstraint) -> Floats:
    """Return the precision that each cut is taken to have in the population.

    One row of the precision asked for is added. It is 0 where a precision just too low would reach
    it more often than not, or labels without regard to the scores more often than `_CHANCE`. A few
    rows at the top are taken to be like the best larger cut unless they speak against it.
    """
    true, false, limit = cuts.true, cuts.false, chance.constraints.min_precision
    if not limit:
        return np.asarray(true / cuts.size)
    precision = (true + limit) / (cuts.size + 1)
    if cuts.size[-1] >= least_rows(limit, risk(chance)):  # fewer rows could not tell
        rate = true[-1] / cuts.size[-1]
        lucky = tail(true, false, limit) > 0.6
        if rate < limit:
            lucky |= tail(true, false, rate) > _CHANCE
        precision[lucky] = 0.0
    best = np.maximum.accumulate(precision[::-1])[::-1]
    as_few = 1.0 - tail(true + 1, np.maximum(false - 1, 0), best)  # P(Bin(k, best) ≤ true)
    return np.where((false == 0) | (as_few > _CHANCE), best, precision)


# ------------------------------------------------------------------ limits, segments


def limits_of_cuts(
    y: Bools, score: NDArray[Any], chance: ChanceConstraint | None
) -> Guarantee | None:
    """Return what is guaranteed of every cut, from long to short, as arrays; None without chance.

    Of a precision it is NaN where the test does not come.
    """
    if chance is None:
        return None
    sample = Sample(y, score)
    return guarantee_of(
        sample.cuts.where(slice(None, None, -1)), sample.levels(chance)[::-1], sample, chance
    )


def guarantee_of(
    cuts: Bins, level: Any, sample: Sample, chance: ChanceConstraint, cost: float = 0.0
) -> Guarantee:
    """Return the exact limits of cuts whose precision passed at these levels."""
    asked, size, n = chance.constraints, cuts.size, sample.y.size
    level = np.where(level > 0, level, np.nan)
    rated = asked.max_selected_rate is not None
    return Guarantee(
        asked,
        chance.confidence_level,
        low_limit(cuts.true, size, level) if asked.min_precision else None,
        low_limit(cuts.true, sample.cuts.true[-1], risk(chance)) if asked.min_recall else None,
        1.0 - low_limit(n - size, n, risk(chance)) if rated else None,
        cost,
        chance.joint_confidence_level,
    )


def joint_guarantee(guarantees: list[Guarantee], confidence_level: float, cost: float) -> Guarantee:
    """Return what segments that all meet their guarantee have together: the worst of them."""
    first, worst = guarantees[0], {"precision_low": min, "recall_low": min, "rate_high": max}
    together: dict[str, Any] = {
        name: of(getattr(each, name) for each in guarantees)
        for name, of in worst.items()
        if getattr(first, name) is not None
    }
    together |= {"confidence_level": confidence_level, "joint_confidence_level": None}
    return replace(first, cost=cost, **together)
