"""Which cuts have the precision asked for in the population: exact tests, walked from a ladder.

A cut with T positives in k rows passes at a level A where the exact binomial tail
P(Bin(k, c) ≥ T) ≤ A. The ladder's starts are ranks fixed before any label is seen, each with a
level of its own; a start that passes at its level adds it to A. Cuts are tested at A one after
another, from high scores to low; at the first that fails A is lost. A start may fall among rows of
one score, which are then taken in an order that does not look at their labels; a cut never splits
them. A second walk begins with all rows of the highest score, however many they are.
docs/promises.md proves that no cut of a precision below c passes, with a probability of at least
1 - the sum of the levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, xlogy

Ints = NDArray[np.int64]

KEPT = 0.3  # of the level not yet spent, what each start leaves for the later ones
RATIO = 3  # each start is so many times as far down as the one before
TOP = 0.05  # of the level, what is kept for the walk from the rows of the highest score
BLOCK = 1 << 13  # cuts looked at before asking whether one has failed
ORDER = 0  # the seed of the order of equal scores: fixed, so that nobody tries another


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
    labels: NDArray[np.bool_]  # of the rows as they came
    score: NDArray[Any]  # of these rows

    @classmethod
    def of(cls, y: NDArray[np.bool_], score: NDArray[Any]) -> Steps:
        """Sort the scores. Cost: one sort of the numbers and two searches."""
        positive, negative = np.sort(score[y]), np.sort(score[~y])
        new = np.append(True, positive[1:] != positive[:-1])[: positive.size]
        first = np.flatnonzero(new)[::-1]
        edge = positive[first]
        return cls(
            edge=edge,
            true=positive.size - first,
            false=negative.size - np.searchsorted(negative, edge),
            above=negative.size - np.searchsorted(negative, edge, side="right"),
            negative=negative,
            labels=y,
            score=score,
        )

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.true[-1] if self.true.size else 0) + self.negative.size

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
        shuffled = np.random.default_rng(ORDER).permutation(equal)
        return np.append(0, np.cumsum(shuffled))[rows]


class Start(NamedTuple):
    """A place where the walk may begin: so many rows from the top."""

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
    end: int  # the step at which the walk ended
    level: float


def rungs(limit: float, alpha: float, n: int) -> Iterator[tuple[int, float]]:
    """Yield the ranks of the ladder, with their levels; those beyond n rows stand for all rows.

    The first is the least number of rows that could pass, all of them positive.
    """
    level = alpha * (1 - KEPT)
    rank = least_rows(limit, level)
    while rank < n and level > 0:
        yield int(rank), level
        rank, level = rank * RATIO, level * KEPT
    yield n, level / (1 - KEPT)


def least_rows(limit: float, level: float) -> float:
    """Return how many rows, all positive, a test at this level needs: limit^rows ≤ level."""
    if limit == 0:
        return 1
    return math.inf if limit == 1 else max(1, math.ceil(math.log(level) / math.log(limit)))


def walk(steps: Steps, limit: float, alpha: float) -> list[Passed]:
    """Return the stretches of cuts that passed, from high scores to low.

    That of the rows of the highest score comes last, and may overlap with others.
    """
    ladder = _ladder(steps, limit, alpha * (1 - TOP))
    return _walked(steps, ladder, limit) + _walked(steps, _highest(steps, alpha * TOP), limit)


def _ladder(steps: Steps, limit: float, alpha: float) -> list[Start]:
    """Count the positives at each rung."""
    ranks, levels = zip(*rungs(limit, alpha, steps.n), strict=True)
    true = steps.top(np.array(ranks)).tolist()
    return list(map(Start, ranks, true, levels))


def _highest(steps: Steps, alpha: float) -> list[Start]:
    """Return the rows of the highest score, if some are positive: others would not pass."""
    if not steps.edge.size or steps.above[0]:
        return []
    return [Start(int(steps.size[0]), int(steps.true[0]), alpha)]


def _walked(steps: Steps, starts: list[Start], limit: float) -> list[Passed]:
    """Return the stretches of one walk."""
    stretches: list[Passed] = []
    carried = 0.0  # the level that is left where a start is reached
    passed = [start for start in starts if _passes(start, limit)]
    for start, following in zip_longest(passed, passed[1:]):
        first, level = steps.first_of(start.rank), carried + start.level
        goal = steps.edge.size if following is None else steps.first_of(following.rank)
        end = _first_failure(steps, start, goal, limit, level)
        stretches.append(Passed(start.rank, first, end, level))
        kept = end == goal and _reaches(steps, start, following, limit, level)
        carried = level if kept else 0.0
    return stretches


def _passes(start: Start, limit: float) -> bool:
    """Return whether a start passes at its own level."""
    return bool(tail(*start.cut, limit) <= start.level)


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
    begin, size = steps.first_of(start.rank), BLOCK
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


def _fails(true: Ints, false: Ints, limit: float, level: float) -> NDArray[np.bool_]:
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
