"""Which cuts have the precision asked for in the population: exact tests, walked from a ladder.

Cuts are tested one after another, from high scores to low. A cut with T positives in k rows passes
at a level A where the exact binomial tail P(Bin(k, c) ≥ T) ≤ A. The walk may begin at the ladder's
starts, ranks fixed before any label is seen, each with a level of its own; while every cut passes,
levels add up; at the first cut that fails they are lost. Where many rows share a score the ladder
may miss the cut that ends with them: so a small part of the level goes to walks from such cuts.
docs/promises.md proves that no cut of a precision below c passes, with a probability of at least
1 - the sum of the levels, and says what ties leave open.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, xlogy

Ints = NDArray[np.int64]

KEPT = 0.3  # of the level not yet spent, what each start leaves for the later ones
RATIO = 3  # each start is so many times as far down as the one before
TIED = 0.06  # of the level, what is kept for walks from large ties
TESTED = 0.8  # of that, the level of their tests; the rest pays for choosing cuts by the scores
BLOCK = 1 << 13  # cuts looked at before asking whether one has failed


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
        )

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.true[-1] if self.true.size else 0) + self.negative.size


class Start(NamedTuple):
    """A place where the walk may begin: the largest cut of at most so many rows."""

    after: int  # the last step it holds
    false: int  # its negatives
    level: float  # what it adds to the level


class Passed(NamedTuple):
    """A cut that passed: the step that ends it, or the negatives it holds beyond that step."""

    step: int
    false: int
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


def starts(steps: Steps, limit: float, alpha: float) -> list[Start]:
    """Place the rungs on the cuts: equal scores are never split."""
    size = steps.true + steps.false
    found: dict[tuple[int, int], float] = {}  # rungs that fall on one cut add up their levels
    for rank, level in rungs(limit, alpha, steps.n):
        step = int(np.searchsorted(size, rank, side="right")) - 1
        if step >= 0:
            wanted = int(steps.false[step]) + rank - int(size[step])
            cut = step, _whole_run(steps, step, wanted)
            found[cut] = found.get(cut, 0.0) + level
    return [Start(*cut, level) for cut, level in found.items()]


def _whole_run(steps: Steps, step: int, wanted: int) -> int:
    """Return at most `wanted` negatives, before the next step and without splitting equal ones."""
    negative, last = steps.negative, step + 1 == steps.edge.size
    wanted = min(wanted, negative.size if last else int(steps.above[step + 1]))
    held = negative[negative.size - wanted :]
    if wanted == steps.false[step] or wanted == negative.size or negative[-wanted - 1] < held[0]:
        return wanted
    return int(negative.size - np.searchsorted(negative, held[0], side="right"))


def walk(steps: Steps, limit: float, alpha: float) -> list[tuple[Passed, int]]:
    """Return the stretches of cuts that passed: the cut each begins with, and where it ends.

    A stretch holds its first cut and every later step before its end. Those of large ties come last
    and may overlap with others.
    """
    ladder = starts(steps, limit, alpha * (1 - TIED))
    return _from_ladder(steps, ladder, limit) + _from_ties(steps, limit, alpha * TIED)


def _from_ties(steps: Steps, limit: float, alpha: float) -> list[tuple[Passed, int]]:
    """Return the stretches that begin with a large tie that has few rows above it."""
    size = steps.true + steps.false
    before = np.append(0, steps.true[:-1]) + steps.above  # rows above each step's tie
    stretches = []
    for few, level in few_above(alpha, steps.n):
        i = int(np.searchsorted(size, few, side="right"))
        if i == size.size or before[i] > few or not is_large(size[i], few, limit, level):
            continue
        begin = Passed(i, int(steps.false[i]), level * TESTED)
        if tail(steps.true[i], begin.false, limit) <= begin.level:
            end = _first_failure(steps, i + 1, size.size, limit, begin.level)
            stretches.append((begin, end))
    return stretches


def few_above(alpha: float, n: int) -> Iterator[tuple[int, float]]:
    """Yield how many rows may lie above a large tie, with levels: 0, 3, 9, 27, …"""
    few, level = 0, alpha * (1 - KEPT)
    while few < n and level > 0:
        yield few, level
        few, level = max(3, few * RATIO), level * KEPT


def is_large(size: Any, few: int, limit: float, level: float) -> Any:
    """Return whether so many rows hardly ever have at most `few` negatives: a chance of the rest.

    So the choice of a cut, which is made by the scores, adds no more than that rest to the risk.
    """
    return tail(size - few, few, limit) <= level * (1 - TESTED)


def _from_ladder(steps: Steps, ladder: list[Start], limit: float) -> list[tuple[Passed, int]]:
    """Return the stretches that begin at the starts of the ladder."""
    stretches: list[tuple[Passed, int]] = []
    carried, reached = 0.0, -1  # the level that is left, and the step where it ended
    for start, following in zip_longest(ladder, ladder[1:]):
        begin = _begin(steps, start, limit, carried if reached == start.after else 0.0)
        if begin.level == 0.0:
            carried = 0.0
            continue
        goal = steps.edge.size if following is None else _goal(steps, following)
        end = _first_failure(steps, start.after + 1, goal, limit, begin.level)
        stretches.append((begin, end))
        carried, reached = _carry(steps, end, goal, following, limit, begin.level)
    return stretches


def _begin(steps: Steps, start: Start, limit: float, carried: float) -> Passed:
    """Return the start as a cut that passed, or at level 0 where it fails."""
    true = steps.true[start.after]
    level = carried + start.level
    passed = tail(true, start.false, limit) <= level
    return Passed(start.after, start.false, level if passed else 0.0)


def _goal(steps: Steps, following: Start) -> int:
    """Return the first step that is not tested before the following start."""
    on_step = following.false == steps.false[following.after]
    return following.after if on_step else following.after + 1


def _carry(
    steps: Steps, end: int, goal: int, following: Start | None, limit: float, level: float
) -> tuple[float, int]:
    """Return the level taken along to the following start, where every cut before it passed.

    The last cut before it is tested as if it held one negative less than the start does, or, where
    the start ends at a positive, as the cut just before that one.
    """
    if following is None or end < goal:
        return 0.0, -1
    step = following.after
    if goal == step:
        true, false = steps.true[step - 1] if step else 0, steps.above[step]
    else:
        true, false = steps.true[step], following.false - 1
    return (level, step) if tail(true, false, limit) <= level else (0.0, -1)


def _first_failure(steps: Steps, begin: int, goal: int, limit: float, level: float) -> int:
    """Return the first step in [begin, goal) that fails, or `goal`.

    A step fails where the cut that ends with it does, or the one just before it.
    """
    size = BLOCK
    while begin < goal:
        stop = min(goal, begin + size)
        here = slice(begin, stop)
        before = steps.true[begin - 1 : stop - 1]
        failed = _fails(before, steps.above[here], limit, level)
        failed |= _fails(steps.true[here], steps.false[here], limit, level)
        if failed.any():
            return begin + int(np.argmax(failed))
        begin, size = stop, 2 * size
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
