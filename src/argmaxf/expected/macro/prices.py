"""The proof: prices on rows bound what any choice can be worth.

For any prices λ (not negative where a row may take fewer than b cells)

    optimum ≤ b Σ_i λ_i + Σ_c max_S [ f_c(S) - λ(S) ],

since a choice that keeps the rule pays for its own cells what the first sum gives back. The right
side is convex in λ, and b less the number of columns that want a row is a subgradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.expected.macro.ascent import ascend, value_of
from argmaxf.expected.macro.instance import Instance
from argmaxf.expected.macro.records import Assignment
from argmaxf.expected.threads import threads_for

STEPS = 200  # price steps at most
PROGRESS = 0.01  # a step that lowers the bound by less than this part of the gap has failed
PATIENCE = 4  # steps may fail in a row before the next ones are half as long
HALVINGS = 6  # of the step before the prices are taken as they are
PARTS = 16  # pieces of work for each thread, so that one long column holds up no other
ROUNDING = 1e-12  # a bound this close to a value, as part of it, has reached it

Watch = Callable[[float, float], None]  # is told the value and the bound so far


class PriceBound(NamedTuple):
    """What prices prove, and what the columns would choose at these prices."""

    value: float
    wanted: Bools  # of each cell, column by column
    excess: Floats  # b less the number of columns that want each row; 0 where that is no fault


@dataclass
class Solution:
    """The best choice and the lowest bound so far, with the prices that prove it."""

    state: Assignment
    value: float
    bound: float
    price: Floats

    @property
    def gap(self) -> float:
        """The part of the bound that the value falls short of."""
        return relative_gap(self.value, self.bound)

    def offer(self, instance: Instance, state: Assignment) -> None:
        """Take a choice if it is better than the one held."""
        value = value_of(instance, state)
        if value > self.value * (1.0 + ROUNDING):
            self.state, self.value = state, value


def relative_gap(value: float, bound: float) -> float:
    """Return (bound - value) / bound, 0 where they agree to rounding."""
    return 0.0 if bound <= value * (1.0 + ROUNDING) else 1.0 - value / bound


def solve(instance: Instance, tol: float, watch: Watch | None = None) -> Solution:
    """Return a choice and prices whose gap is at most `tol`, or as small as price steps make it."""
    state = ascend(instance)
    solution = Solution(state, value_of(instance, state), math.inf, first_prices(instance, state))
    improve_prices(instance, solution, tol, np.zeros(0), STEPS, watch)
    return solution


def first_prices(instance: Instance, state: Assignment) -> Floats:
    """Return prices midway between what each row takes and what it leaves."""
    from argmaxf.expected.macro import ascent_kernels

    price = np.empty(instance.order.size)
    rule = instance.rule
    ascent_kernels.first_prices(instance.rows, instance.columns, state, rule.b, rule.exactly, price)
    return price


def improve_prices(
    instance: Instance,
    solution: Solution,
    tol: float,
    forced: Floats,
    steps: int,
    watch: Watch | None,
) -> None:
    """Lower the bound by subgradient steps of Polyak's length, halved where they overshoot.

    What the columns want at some prices is also the start of another ascent.
    `forced` are prices of single cells, which keep them in or out of every set.
    """
    price, length, failed, halved = solution.price, 1.0, 0, 0
    guess = solution.state.size.copy()
    kept = _kept_in(forced)
    slack = tol / 2.0 * solution.value / max(guess.size, 1)
    for _ in range(steps):
        found = bound_of(instance, price, forced, guess, slack)
        value = found.value - kept
        failed = 0 if solution.bound - value > PROGRESS * (value - solution.value) else failed + 1
        if value < solution.bound:
            solution.bound, solution.price = value, price
        if solution.gap > tol:
            solution.offer(instance, ascend(instance, by_rows(instance, found.wanted)))
        if watch is not None:
            watch(solution.value, solution.bound)
        if solution.gap <= tol or not found.excess.any() or halved == HALVINGS:
            return
        if failed == PATIENCE:
            length, failed, halved, price = length / 2.0, 0, halved + 1, solution.price
        price = _step(instance, price, found.excess, length * (value - solution.value))


def _step(instance: Instance, price: Floats, excess: Floats, drop: float) -> Floats:
    """Return prices at which the bound would be lower by `drop`, were it linear."""
    moved = price - max(drop, 0.0) / float(excess @ excess) * excess
    return moved if instance.rule.exactly else np.maximum(moved, 0.0)


def bound_of(
    instance: Instance, price: Floats, forced: Floats, guess: Ints, slack: float
) -> PriceBound:
    """Return what prices prove; `guess` holds each column's likely size and gets its best one."""
    from argmaxf.expected.macro import price_kernels

    columns = instance.columns
    bound = np.empty(guess.size)
    wanted = np.empty(columns.p.size, np.bool_)

    def work(cut: tuple[int, int]) -> None:
        price_kernels.best_sets(*cut, columns, price, forced, slack, guess, bound, wanted)

    _share_out(work, columns.first)
    b = instance.rule.b
    excess = (b - np.bincount(columns.row[wanted], minlength=price.size)).astype(np.float64)
    if not instance.rule.exactly:  # a row that costs nothing may be left with room
        excess[(price == 0.0) & (excess > 0.0)] = 0.0
    return PriceBound(instance.constant + b * math.fsum(price) + math.fsum(bound), wanted, excess)


def _share_out(work: Callable[[tuple[int, int]], None], first: Ints) -> None:
    """Share columns out among threads in pieces of about as many cells."""
    threads = threads_for(64 * int(first[-1]))
    marks = np.linspace(0, first[-1], PARTS * threads + 1)[1:-1]
    cuts = np.unique([0, *np.searchsorted(first, marks).tolist(), first.size - 1])
    pieces = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    if threads == 1:
        for piece in pieces:
            work(piece)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, pieces))


def by_rows(instance: Instance, wanted: Bools) -> Bools:
    """Return marks on cells, given column by column, row by row."""
    marks = np.empty_like(wanted)
    marks[instance.cell] = wanted
    return marks


def _kept_in(forced: Floats) -> float:
    """Return what cells that are forced in add to the columns' values by their price."""
    return float(-forced[forced < 0.0].sum())
