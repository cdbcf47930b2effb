r"""The macro-averaged assignment problem and its solution: ascent, prices on rows, branching.

Choose cells of a matrix, b of each row, so that the sum over columns of the expected F of each
column's cells is highest. An ascent finds a choice that no single row can improve. Prices λ on the
rows (not negative where a row may take fewer than b cells) bound what any choice can be worth:

    optimum ≤ b Σ_i λ_i + Σ_c max_S [ f_c(S) - λ(S) ],

since a choice that keeps the rule pays for its own cells what the first sum gives back (Lagrangian
relaxation). The right side is convex in λ, and b minus the number of columns that want a row is a
subgradient. Small problems in which a gap stays are branched: a cell is decided one way and the
other, and each part has its own prices and its own bound. docs/background/labels-per-row.md has the
details.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.expected.quadrature import reciprocal_nodes
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.measures import Coefficients

SWEEPS = 100  # of an ascent, at most; each is a strict improvement, and a handful is usual
SMALL_GAIN = 0.3  # an ascent ends with a sweep that gains less than this part of the tolerance
PRICE_STEPS = 200  # at most
PROGRESS = 0.01  # a step that lowers the bound by less than this part of the gap has failed
PATIENCE = 4  # steps may fail in a row before the next ones are half as long
HALVINGS = 6  # of the step before the prices are taken as they are
PROVEN = 1e-12  # a bound this close to a value, as part of it, has reached it
SMALL_PROBLEM = 4096  # cells; only so small problems are branched
MOST_PARTS = 2000  # of a problem that are looked at
MOST_CELLS = 20_000  # in all of them: two or three seconds
PART_STEPS = 20  # price steps for each part
SCATTER = np.uint64(0x9E3779B97F4A7C15)  # times this, numbers that are near are so no longer
FORCE = 8.0  # a price no set can pay; values are at most 1

Places = NDArray[np.int32]  # numbers of rows or columns
Marks = NDArray[np.int8]  # of each cell, row by row: 1 in, -1 out, 0 open
Watch = Callable[[float, float], None]  # is told the value and the bound so far


@dataclass(frozen=True)
class Rule:
    """How many cells of each row are chosen, and what the value of a choice is."""

    b: int
    exactly: bool  # b cells in every row, or at most b
    coefficients: Coefficients  # of the measure; b_in = b_out, no smoothing
    zero_division: float
    present_only: bool  # average over the columns that have a positive, or over all
    empty: int = 0  # columns without a cell, which nothing can be chosen in


class Cells(NamedTuple):
    """The cells that may be chosen, row by row."""

    first: Ints  # where each row begins among the cells; (n + 1,)
    column: Places  # of each cell
    p: Floats  # of each cell


class Columns(NamedTuple):
    """The same cells column by column, with the value of each column.

    A set of s cells of a column is worth Σ_m e^{log_a_m - u_m s} Σ_{i in set} π_im.
    """

    first: Ints  # where each column begins among the cells; (L + 1,)
    row: Places  # of each cell
    p: Floats  # of each cell
    first_node: Ints  # where the nodes of each column begin; (L + 1,)
    u: Floats
    w: Floats
    x: Floats
    log_a: Floats  # log of weight · (1+β²) ω G
    terms: Ints  # of a series in p that gives the same; 0 where it would be long
    nothing: Floats  # what the empty set is worth
    shift: Floats  # β² times the most positives a column plausibly has


class Assignment(NamedTuple):
    """Which cells are chosen, and the state of each column under that choice."""

    chosen: Bools  # for each cell, row by row
    size: Ints  # of each column's set
    value: Floats  # of each column's set
    pi: Floats  # Σ π over each column's set, for each node
    joining: Floats  # what a cell that joins adds, at each node or in each term
    leaving: Floats  # what a cell adds that may leave
    base: Floats  # (L, 2): what joining and staying change for the other cells
    chord: (
        Floats  # (L, 2): above what a cell that joins adds, as part of p: at p = 0, its rise to 1
    )

    @classmethod
    def of(cls, chosen: Bools, columns: Columns) -> Assignment:
        """Return a choice, with room for the state of the columns."""
        size, nodes = columns.nothing.size, columns.u.size
        sizes, value = np.zeros(size, np.int64), columns.nothing.copy()
        (pi, joining, leaving), (base, chord) = np.zeros((3, nodes)), np.zeros((2, size, 2))
        return cls(chosen, sizes, value, pi, joining, leaving, base, chord)


@dataclass(frozen=True, eq=False)
class Instance:
    """The cells of a matrix that may be chosen, by rows and by columns.

    Rows are put in an order that depends on their content alone, so that the answer does not depend
    on the order in which they were given; rows of equal content stay in the order given.
    """

    rule: Rule
    rows: Cells  # in the instance's own order of rows
    given: Ints  # where each of these cells stands among the cells as they were given
    columns: Columns
    cell: Ints  # where the columns' cells stand among the rows' cells
    constant: float  # part of the value that no choice changes
    weight: Floats  # of each column in the average

    @classmethod
    def of(cls, cells: Cells, n_columns: int, rule: Rule) -> Instance:
        """Take the cells that may be chosen as they are given, row by row."""
        from scipy.sparse import csr_array

        first, column, p = cells.first, cells.column.astype(np.int32, copy=False), cells.p
        size, factors = np.diff(first), np.random.default_rng(0).random(n_columns)
        keys = np.bincount(np.repeat(np.arange(size.size), size), p * factors[column], size.size)
        order = np.argsort(keys.view(np.uint64) * SCATTER, kind="stable")
        row_first = np.append(0, np.cumsum(size[order]))
        given = np.arange(p.size) + np.repeat(first[order] - row_first[:-1], size[order])
        rows = Cells(row_first, column[given], p[given])
        shape = size.size, n_columns
        by_column = csr_array((np.arange(p.size), rows.column, row_first), shape=shape).tocsc()
        cell, row = by_column.data, by_column.indices.astype(np.int32, copy=False)
        column_first = by_column.indptr.astype(np.int64, copy=False)
        with np.errstate(divide="ignore"):  # log P(nothing is positive) of each column
            log_none: Any = np.bincount(rows.column, np.log1p(-rows.p), n_columns)
        weight, constant = column_weights(log_none, rule)
        nothing = 0.0 if rule.present_only else rule.zero_division
        nothing = nothing * weight * np.exp(log_none)
        columns = _columns(column_first, row, rows.p[cell], rule, weight, nothing)
        return cls(rule, rows, given, columns, cell, constant, weight)

    def as_given(self, chosen: Bools) -> Bools:
        """Return a choice of cells in the order in which the cells were given."""
        choice = np.empty_like(chosen)
        choice[self.given] = chosen
        return choice

    def by_rows(self, wanted: Bools) -> Bools:
        """Return marks on cells, given column by column, row by row."""
        marks = np.empty_like(wanted)
        marks[self.cell] = wanted
        return marks

    def value(self, state: Assignment) -> float:
        """Return the expected average of F under a choice."""
        return math.fsum(state.value) + self.constant


def _columns(
    first: Ints, row: Places, p: Floats, rule: Rule, weight: Floats, nothing: Floats
) -> Columns:
    """Return the columns with their nodes."""
    from argmaxf.expected import macro_kernels

    size = np.empty(first.size - 1, np.int64)
    macro_kernels.count_nodes(first, p, rule.coefficients.b_in, size)
    first_node = np.append(0, np.cumsum(size))
    u, w, x, log_a = (np.empty(first_node[-1]) for _ in range(4))
    terms, shift = np.zeros(size.size, np.int64), np.zeros(size.size)
    columns = Columns(first, row, p, first_node, u, w, x, log_a, terms, nothing, shift)
    ascending = p.copy()
    for start, stop in itertools.pairwise(first.tolist()):
        ascending[start:stop].sort()
    macro_kernels.fill_columns(columns, ascending, rule.coefficients, np.log(weight))
    return columns


def column_weights(log_none: Floats, rule: Rule) -> tuple[Floats, float]:
    """Return what each column's F counts in the average, and what does not depend on the choice.

    Over all columns each counts 1/L. Over those with a positive, a column counts 1 / (1 + N), N
    others being present; columns are independent, so its expected F is multiplied by E[1/(1+N)].
    With no positive anywhere the average is 0/0.
    """
    size = log_none.size + rule.empty
    if not rule.present_only:
        return np.full(log_none.size, 1.0 / size), rule.zero_division * rule.empty / size
    u, omega = reciprocal_nodes(1.0, float(size))
    absent = -np.expm1(-u)  # 1 - e^{-u}
    total = np.zeros(u.size)
    present = -np.expm1(log_none)
    for each in present:
        total += _log_absent(each, absent, u)
    weight = [omega @ np.exp(total - u - _log_absent(each, absent, u)) for each in present]
    return np.array(weight), rule.zero_division * float(np.exp(log_none.sum()))


def _log_absent(present: float, absent: Floats, u: Floats) -> Floats:
    """log(1 - ρ (1 - e^{-u})) for a column that has a positive with probability ρ."""
    return -u if present == 1.0 else np.log1p(-present * absent)


class PriceBound(NamedTuple):
    """What prices prove, and what the columns would choose at these prices."""

    value: float
    wanted: Bools  # of each cell, column by column
    excess: Floats  # b minus the number of columns that want each row; 0 where that is allowed


@dataclass
class Solution:
    """The best choice and the lowest bound so far, with the prices that prove it."""

    state: Assignment
    value: float
    bound: float
    price: Floats

    @property
    def gap(self) -> float:
        """(bound - value) / bound, 0 where they agree to rounding."""
        return 0.0 if self.bound <= self.value * (1.0 + PROVEN) else 1.0 - self.value / self.bound

    def offer(self, instance: Instance, state: Assignment) -> None:
        """Take a choice if it is better than the one held."""
        value = instance.value(state)
        if value > self.value * (1.0 + PROVEN):
            self.state, self.value = state, value


def solve(instance: Instance, tol: float | None, watch: Watch | None = None) -> Solution:
    """Return a choice and prices whose gap is at most `tol`, or as small as can be in short time.

    By default small problems are solved to the end, others to a gap of 1e-5.
    """
    is_small = instance.rows.p.size <= SMALL_PROBLEM
    if tol is None:
        tol = 0.0 if is_small else 1e-5
    from argmaxf.expected import macro_kernels

    price = np.empty(instance.rows.first.size - 1)
    start, rule = np.zeros(instance.rows.p.size, np.bool_), instance.rule
    given = instance.weight, rule.b, rule.exactly, rule.coefficients
    macro_kernels.plug_in(instance.rows, *given, start)
    state = ascend(instance, start, price, tol)
    solution = Solution(state, instance.value(state), math.inf, price)
    improve_prices(instance, solution, tol, np.zeros(0), PRICE_STEPS, watch)
    if is_small and solution.gap > tol:
        branch(instance, solution, tol, watch)
    return solution


def ascend(instance: Instance, start: Bools, price: Floats, tol: float) -> Assignment:
    """Return a choice that no single row can better, from a start that need not be allowed.

    Rows take their best cells in turn until that gains no more than a part of the value. `price` is
    filled with prices at which each row would choose so.
    """
    from argmaxf.expected import macro_kernels

    rows, columns, rule = instance.rows, instance.columns, instance.rule
    state = Assignment.of(start, columns)
    value = -math.inf
    for _ in range(SWEEPS):
        # Sums that many moves have changed are summed anew: rounding cannot build up.
        macro_kernels.collect(rows, columns, state)
        before, value = value, state.value.sum()
        if value <= before * (1.0 + max(PROVEN, SMALL_GAIN * tol)):
            break
        macro_kernels.sweep(rows, columns, state, rule.b, rule.exactly, price)
    return state


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
    refund = float(-forced[forced < 0.0].sum())  # what forced cells add by their price
    slack = tol / 2.0 * solution.value / max(guess.size, 1)
    for _ in range(steps):
        found = bound_of(instance, price, forced, guess, slack)
        value = found.value - refund
        failed = 0 if solution.bound - value > PROGRESS * (value - solution.value) else failed + 1
        if value < solution.bound:
            solution.bound, solution.price = value, price
        if solution.gap > tol:
            wanted, unused = instance.by_rows(found.wanted), np.empty_like(price)
            solution.offer(instance, ascend(instance, wanted, unused, tol))
        if watch is not None:
            watch(solution.value, solution.bound)
        if solution.gap <= tol or not found.excess.any() or halved == HALVINGS:
            return
        if failed == PATIENCE:
            length, failed, halved, price = length / 2.0, 0, halved + 1, solution.price
        drop = max(length * (value - solution.value), 0.0)  # of the bound, were it linear
        price = price - drop / float(found.excess @ found.excess) * found.excess
        if not instance.rule.exactly:
            price = np.maximum(price, 0.0)


def bound_of(
    instance: Instance, price: Floats, forced: Floats, guess: Ints, slack: float
) -> PriceBound:
    """Return what prices prove; `guess` holds each column's likely size and gets its best one."""
    from argmaxf.expected import macro_kernels

    columns = instance.columns
    bound = np.empty(guess.size)
    wanted = np.empty(columns.p.size, np.bool_)

    def work(part: slice) -> None:
        options = columns, price, forced, slack, guess, bound, wanted
        macro_kernels.best_sets(part.start, part.stop, *options)

    in_threads(work, columns.first, threads_for(64 * columns.p.size))
    b = instance.rule.b
    excess = (b - np.bincount(columns.row[wanted], minlength=price.size)).astype(np.float64)
    if not instance.rule.exactly:  # a row that costs nothing may be left with room
        excess[(price == 0.0) & (excess > 0.0)] = 0.0
    return PriceBound(instance.constant + b * math.fsum(price) + math.fsum(bound), wanted, excess)


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
    for _ in range(min(MOST_PARTS, MOST_CELLS // instance.rows.p.size)):
        if not open_parts or solution.gap <= tol:
            return
        part = heapq.heappop(open_parts)
        for marks in _halves(instance, part):
            half = Solution(solution.state, solution.value, math.inf, part.price)
            improve_prices(instance, half, tol, _forced(instance, marks), PART_STEPS, None)
            solution.offer(instance, half.state)
            bound = min(half.bound, -part.order)
            if bound > solution.value * (1.0 + max(tol, PROVEN)):
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
    is_open = part.marks == 0
    if not is_open.any():
        return -1
    guess = np.ones(instance.columns.nothing.size, np.int64)
    found = bound_of(instance, part.price, _forced(instance, part.marks), guess, 0.0)
    excess = np.repeat(found.excess, np.diff(instance.rows.first))
    useful = instance.by_rows(found.wanted) == (excess < 0.0)  # too many want it: one that does
    rank = np.abs(excess) * 4.0 + 2.0 * useful + instance.rows.p
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
