"""Which cuts have the precision asked for in the population: an exact fixed-sequence test.

A cut with T positives in k rows passes at a level A where the exact binomial tail
P(Bin(k, c) ≥ T) ≤ A. Starts are ranks fixed before any label is seen, each with a level of its own;
a start that passes at its level adds it to A. Cuts are tested at A one after another, from high
scores to low; at the first that fails A is lost. A start may fall among rows of one score, which
are then taken in an order that does not look at their labels; a cut never splits them. A second
sequence begins with all rows of the highest score, however many they are.

*Theorem.* Some threshold of a precision below c passes with a probability of at most the sum of the
levels, whatever the population.

*Sketch of the proof* (docs/promises.md has it in full). Give each row a place u in [0, 1] by its
score, so that there are no ties, and let g(x) = P(y = 1, u ≤ x) - c x. Bad thresholds lie in
intervals (d, b) where g < 0. If one of the first such interval passes, either a start inside the
interval passed, or the first cut of the interval passed at the sum of the levels of the starts
between the interval before and d, since A was lost in between. Given how many rows lie above, the
rows are independent draws that are positive with at most c, as g(d) = 0 and g ≤ 0 after it: each of
the two has a probability of at most the levels of its starts, and every start is counted once. The
second sequence has a level and a shorter proof of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, xlogy

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.constraints import Constraints
from argmaxf.empirical.cuts import positive_cuts

LEVEL_LEFT = 0.3  # of the level not yet spent, what each start leaves for the later ones
RANK_RATIO = 3  # each start is so many times as far down as the one before
TOP_SHARE = 0.05  # of the level, what the sequence from the rows of the highest score has
SHUFFLE_SEED = 0  # of the order of equal scores: fixed, since a seed chosen afterwards voids it
MOST_GROWTH = 1e3  # sample sizes beyond this many times the present one are not spelled out


def tail(true: Any, false: Any, limit: Any) -> Any:
    """Return P(Bin(true + false, limit) ≥ true), the exact p-value of a precision below `limit`."""
    return np.where(np.asarray(true) > 0, betainc(np.maximum(true, 1), false + 1.0, limit), 1.0)


@dataclass(frozen=True)
class Steps:
    """Labelled scores as steps: the cuts that end at a positive, and how negatives lie between."""

    edge: NDArray[Any]  # the positives' distinct scores, falling
    true: Ints  # positives of at least `edge`
    false: Ints  # negatives of at least `edge`
    above: Ints  # negatives above `edge`
    negative: NDArray[Any]  # all negatives' scores, rising
    labels: Bools  # of the rows as they came
    score: NDArray[Any]  # of these rows

    @classmethod
    def of(cls, y: Bools, score: NDArray[Any]) -> Steps:
        """Sort the scores. Cost: one sort of the numbers and two searches."""
        edge, true, false, negative = positive_cuts(y, score)
        above = negative.size - np.searchsorted(negative, edge, side="right")
        return cls(edge, true, false, above, negative, labels=y, score=score)

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self.positives + self.negative.size

    @property
    def positives(self) -> int:
        """How many rows are positive."""
        return int(self.true[-1]) if self.true.size else 0

    @cached_property
    def size(self) -> Ints:
        """Rows of at least each `edge`."""
        return self.true + self.false

    def first_of(self, rank: int) -> int:
        """Return the first step of at least so many rows, or the number of steps."""
        return int(np.searchsorted(self.size, rank))

    def before(self, step: int) -> tuple[int, int]:
        """Return the positives and negatives above a step, or of all rows after the last."""
        true = int(self.true[step - 1]) if step else 0
        return true, int(self.above[step]) if step < self.edge.size else self.negative.size

    def top(self, ranks: Ints) -> Ints:
        """Return the positives among so many first rows, equal scores shuffled, for each rank."""
        found = np.empty_like(ranks)
        steps = np.searchsorted(self.size, ranks)
        for step in np.unique(steps).tolist():
            true, false = self.before(step)
            inside = np.maximum(ranks[steps == step] - true - false, 0)
            found[steps == step] = true + self._among_equal(step, inside)
        return found

    def _among_equal(self, step: int, rows: Ints) -> Ints:
        """Return the positives among so many first rows of a step's score.

        Any order will do that does not look at labels; the rows may have come sorted by them.
        """
        if not rows.any() or self.above[step] == self.false[step]:
            return rows
        equal = self.labels[self.score == self.edge[step]]
        shuffled = np.random.default_rng(SHUFFLE_SEED).permutation(equal)
        return np.append(0, np.cumsum(shuffled))[rows]


class Start(NamedTuple):
    """A place where a sequence may begin: so many rows from the top."""

    rank: int
    true: int  # the positives among them
    level: float  # what it adds to the level, if it passes

    @property
    def cut(self) -> tuple[int, int]:
        """The positives and negatives it holds."""
        return self.true, self.rank - self.true


class Passed(NamedTuple):
    """Cuts that passed: all of at least `rank` rows that end above the step `end`."""

    rank: int  # the start
    first: int  # the first step of at least so many rows
    end: int  # the step at which the sequence ended
    level: float


def start_ranks(limit: float, alpha: float, n: int) -> Iterator[tuple[int, float]]:
    """Yield the ranks of the starts, with their levels; those beyond n rows stand for all rows.

    The first is the least number of rows that could pass, all of them positive.
    """
    level = alpha * (1 - LEVEL_LEFT)
    rank = least_rows(limit, level)
    while rank < n and level > 0:
        yield int(rank), level
        rank, level = rank * RANK_RATIO, level * LEVEL_LEFT
    yield n, level / (1 - LEVEL_LEFT)


def least_rows(limit: float, level: float) -> float:
    """Return how many rows, all positive, a test at this level needs: limit^rows ≤ level."""
    if limit == 0:
        return 1
    return math.inf if limit == 1 else max(1, math.ceil(math.log(level) / math.log(limit)))


def passed_cuts(steps: Steps, limit: float, alpha: float) -> list[Passed]:
    """Return the runs of cuts that passed, from high scores to low.

    That of the rows of the highest score comes last, and may overlap with others.
    """
    ranks, levels = zip(*start_ranks(limit, alpha * (1 - TOP_SHARE), steps.n), strict=True)
    starts = list(map(Start, ranks, steps.top(np.array(ranks)).tolist(), levels))
    top = []
    if steps.edge.size and not steps.above[0]:  # without a positive at the top it would not pass
        top = [Start(int(steps.size[0]), int(steps.true[0]), alpha * TOP_SHARE)]
    return _tested(steps, starts, limit) + _tested(steps, top, limit)


def _tested(steps: Steps, starts: list[Start], limit: float) -> list[Passed]:
    """Return the runs of cuts that passed in one sequence."""
    runs: list[Passed] = []
    carried = 0.0  # the level that is left where a start is reached
    passed = [start for start in starts if tail(*start.cut, limit) <= start.level]
    for start, following in zip_longest(passed, passed[1:]):
        first, level = steps.first_of(start.rank), carried + start.level
        goal = steps.edge.size if following is None else steps.first_of(following.rank)
        end = _first_failure(steps, start, goal, limit, level)
        runs.append(Passed(start.rank, first, end, level))
        kept = end == goal and _reaches(steps, start, following, limit, level)
        carried = level if kept else 0.0
    return runs


def _last_before(steps: Steps, start: Start, step: int) -> tuple[int, int]:
    """Return the cut just above a step, or the start where that lies among the step's rows."""
    true, false = steps.before(step)
    return (true, false) if true + false >= start.rank else start.cut


def _reaches(
    steps: Steps, start: Start, following: Start | None, limit: float, level: float
) -> bool:
    """Return whether the last cut before the following start passes.

    A following start among negatives has more of them than that cut, and passed at a lower level.
    """
    if following is None:
        return False
    step = steps.first_of(following.rank)
    if sum(steps.before(step)) >= following.rank:
        return True
    return bool(tail(*_last_before(steps, start, step), limit) <= level)


def _first_failure(steps: Steps, start: Start, goal: int, limit: float, level: float) -> int:
    """Return the first step from the start on, and before `goal`, that fails, or `goal`.

    A step fails where the cut that ends with it does, or the one just before it.
    """
    begin, size = steps.first_of(start.rank), 1 << 13
    held, missed = _last_before(steps, start, begin)
    while begin < goal:
        stop = min(goal, begin + size)
        before = np.append(held, steps.true[begin : stop - 1])
        above = np.append(missed, steps.above[begin + 1 : stop])
        failed = _fails(before, above, limit, level)
        failed |= _fails(steps.true[begin:stop], steps.false[begin:stop], limit, level)
        if failed.any():
            return begin + int(np.argmax(failed))
        begin, size = stop, 2 * size
        held, missed = steps.before(begin)
    return goal


def _fails(true: Ints, false: Ints, limit: float, level: float) -> Bools:
    """Return which cuts fail; the exact tail is only needed where Chernoff's bound does not tell.

    P(Bin(k, c) ≥ T) ≤ e^{-k KL(T/k, c)} for T > ck.
    """
    size = true + false
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = xlogy(true, true / (size * limit)) + xlogy(
            false, false / (size - size * limit)
        )
    open_ = np.flatnonzero((true <= size * limit) | ~(divergence >= -math.log(level)))
    failed = np.zeros(true.size, np.bool_)
    failed[open_] = tail(true[open_], false[open_], limit) > level
    return failed


def rows_needed(steps: Steps, constraints: Constraints, share: float) -> float:
    """Return about how many rows like these would let a cut qualify, or infinity.

    Every count is multiplied until the test would find a cut, there and at any larger multiple, and
    some cut would pass its tests. One row of the precision asked for is added to each cut, so that
    a few lucky rows at the top do not look better than they are.
    """
    if not steps.true.size:
        return math.inf
    some = np.unique(np.linspace(0, steps.true.size - 1, 500).astype(np.int64))
    true, false = steps.true[some], steps.false[some]
    scaled = _Scaled.of(steps, constraints.min_precision, share)

    def enough(growth: float) -> bool:
        passed = _some_pass(steps, true * growth, false * growth, growth, constraints, share)
        return passed and scaled.finds(growth)

    return _least_growth(enough) * steps.n


def _least_growth(enough: Callable[[float], bool]) -> float:
    """Return the least growth from which on every larger one is enough, or infinity.

    Growths are looked at downwards, first far apart and then close below the last that is enough.
    """
    wide, near = 0.3, 0.05  # the estimate is found to the second part of itself, by the first
    least, high, low = math.inf, MOST_GROWTH, 1.0
    for apart in (wide, near):
        for growth in np.geomspace(high, low, math.ceil(math.log(high / low) / apart) + 1).tolist():
            if not enough(growth):
                break
            least = growth
        if not math.isfinite(least):
            break
        high, low = least, max(1.0, least * math.exp(-wide))
    return least


class _Scaled(NamedTuple):
    """The starts of the test, on a sample of the same scores with every count multiplied."""

    limit: float
    alpha: float
    size: Ints  # rows of each distinct score's cut, from the highest score down
    precision: Floats  # of those cuts; 0 where it may be luck all the way down

    @classmethod
    def of(cls, steps: Steps, limit: float | None, alpha: float) -> _Scaled:
        """Count the cuts, and shrink their precision by one row of that asked for."""
        score = np.unique(np.concatenate([steps.edge, steps.negative]))[::-1]
        false = steps.negative.size - np.searchsorted(steps.negative, score)
        passed = steps.edge.size - np.searchsorted(steps.edge[::-1], score)
        true, chance = np.append(0, steps.true)[passed], limit or 0.0
        precision = (true + chance) / (true + false + 1)
        if chance and steps.n >= least_rows(chance, alpha):  # fewer rows could not tell
            precision[_lucky(true, false, chance)] = 0.0
        return cls(chance, alpha, true + false, _lifted(precision, true, false))

    def finds(self, growth: float) -> bool:
        """Return whether some start would pass, and the first cut that holds it: a cut is found.

        A start among rows of one score has its part of their positives. A row alone at the top is
        not taken to share its score.
        """
        if not self.limit:
            return True
        size, true = self.size * growth, self.precision * self.size * growth
        ranks = start_ranks(self.limit, self.alpha * (1 - TOP_SHARE), int(size[-1]))
        rank, level = np.array(list(ranks)).T
        held = np.interp(rank, np.append(0, size), np.append(0, true))
        cut = np.searchsorted(size, rank)
        passed = self._passes(held, rank, level) & self._passes(true[cut], size[cut], level)
        shared = self.size[0] > 1 and self._passes(true[0], size[0], self.alpha * TOP_SHARE)
        return bool(passed.any() or shared)

    def _passes(self, true: Any, size: Any, level: Any) -> Any:
        """Return whether so many positives among so many rows pass at a level."""
        return tail(true, size - true, self.limit) <= level


_CHANCE = 0.05  # what is seen more often than this by chance alone says nothing


def _lucky(true: Ints, false: Ints, chance: float) -> Bools:
    """Return which cuts may have their precision by luck: the last of them holds all rows.

    A precision just too low reaches them more often than not, or labels without regard to the
    scores do so more often than `_CHANCE`.
    """
    lucky = tail(true, false, chance) > 0.6
    rate = true[-1] / (true[-1] + false[-1])
    if rate < chance:
        lucky |= tail(true, false, rate) > _CHANCE
    return np.asarray(lucky)


def _lifted(precision: Floats, true: Ints, false: Ints) -> Floats:
    """Return for each cut the best precision of it and larger ones, unless its rows speak against.

    A few rows at the top say little by themselves; they are taken to be like the cut around them.
    """
    best = np.maximum.accumulate(precision[::-1])[::-1]
    as_few = 1.0 - tail(true + 1, np.maximum(false - 1, 0), best)  # P(Bin(k, best) ≤ true)
    plausible = (false == 0) | (as_few > _CHANCE)
    return np.where(plausible, best, precision)


def _some_pass(
    steps: Steps, true: Any, false: Any, growth: float, constraints: Constraints, share: float
) -> bool:
    """Return whether some cut would pass every test if all counts were `growth` times as large."""
    n, positives = steps.n * growth, steps.true[-1] * growth
    passed = np.ones(true.size, np.bool_)
    if limit := constraints.min_precision:
        precision = (true / growth + limit) / ((true + false) / growth + 1)
        size = true + false
        level = share * (1.0 - LEVEL_LEFT)
        passed &= tail(precision * size, size - precision * size, limit) <= level
    if limit := constraints.min_recall:
        passed &= tail(true, positives - true, limit) <= share
    if (limit := constraints.max_selected_rate) is not None:
        out = n - true - false
        passed &= tail(out, n - out, 1.0 - limit) <= share
    return bool(passed.any())
