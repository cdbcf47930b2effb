"""Small problems to the end: where prices leave a gap, cells are decided one way and the other.

Each part of the problem, given by cells that are in or out, has its own prices and its own bound;
a part whose bound is no better than the best choice known is closed.
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Floats
from argmaxf.expected.macro.instance import Instance
from argmaxf.expected.macro.prices import (
    ROUNDING,
    Solution,
    Watch,
    bound_of,
    by_rows,
    improve_prices,
)

CELLS = 4096  # only problems this small are branched
PARTS = 2000  # parts looked at, at most
WORK = 20_000  # and cells in all of them: two or three seconds
STEPS = 20  # price steps for each part
FORCE = 8.0  # a price no set can pay; values are at most 1

Marks = NDArray[np.int8]  # of each cell, row by row: 1 in, -1 out, 0 open


class Part(NamedTuple):
    """Some cells decided, the bound on the rest, and the prices that prove it; highest first."""

    order: float
    number: int
    marks: Marks
    price: Floats


def branch(instance: Instance, solution: Solution, tol: float, watch: Watch | None = None) -> None:
    """Close the gap of a small problem, as far as a few seconds go."""
    number = itertools.count()
    nothing_decided = np.zeros(instance.rows.p.size, np.int8)
    open_parts = [Part(-solution.bound, next(number), nothing_decided, solution.price)]
    for _ in range(min(PARTS, WORK // instance.rows.p.size)):
        if not open_parts or solution.gap <= tol:
            return
        part = heapq.heappop(open_parts)
        for marks in _halves(instance, part):
            half = Solution(solution.state, solution.value, math.inf, part.price)
            improve_prices(instance, half, tol, _forced(instance, marks), STEPS, None)
            solution.offer(instance, half.state)
            bound = min(half.bound, -part.order)
            if bound > solution.value * (1.0 + max(tol, ROUNDING)):
                heapq.heappush(open_parts, Part(-bound, next(number), marks, half.price))
        solution.bound = max([solution.value, *(-each.order for each in open_parts[:1])])
        if watch is not None:
            watch(solution.value, solution.bound)


def _halves(instance: Instance, part: Part) -> list[Marks]:
    """Decide one more cell, both ways, with what follows for its row; leave out what cannot be."""
    cell = _contested(instance, part)
    halves = []
    for side in (1, -1) if cell >= 0 else ():
        marks = part.marks.copy()
        marks[cell] = side
        if _complete(instance, marks, cell):
            halves.append(marks)
    return halves


def _contested(instance: Instance, part: Part) -> int:
    """Return an open cell of the row about which the columns disagree most, -1 if none is open."""
    guess = np.ones(instance.columns.nothing.size, np.int64)
    found = bound_of(instance, part.price, _forced(instance, part.marks), guess, 0.0)
    row = np.repeat(np.arange(instance.order.size), np.diff(instance.rows.first))
    is_open = part.marks == 0
    if not is_open.any():
        return -1
    wanted = by_rows(instance, found.wanted)
    useful = wanted == (found.excess[row] < 0.0)  # too many want it: one that does; else another
    rank = np.abs(found.excess[row]) * 4.0 + 2.0 * useful + instance.rows.p
    return int(np.argmax(np.where(is_open, rank, -1.0)))


def _complete(instance: Instance, marks: Marks, cell: int) -> bool:
    """Decide the cells of a row that are left no choice; return False if the rule is broken."""
    b, exactly = instance.rule.b, instance.rule.exactly
    i = int(np.searchsorted(instance.rows.first, cell, side="right")) - 1
    row = marks[instance.rows.first[i] : instance.rows.first[i + 1]]
    chosen, undecided = int((row == 1).sum()), int((row == 0).sum())
    if chosen == b:
        row[row == 0] = -1
    elif exactly and chosen + undecided == b:
        row[row == 0] = 1
    return chosen <= b and not (exactly and chosen + undecided < b)


def _forced(instance: Instance, marks: Marks) -> Floats:
    """Return prices that keep cells in or out of every set, column by column."""
    forced: Floats = np.where(marks == 0, 0.0, -FORCE * marks)[instance.cell]
    return forced
