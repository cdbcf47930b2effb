"""The problem: which cells may be chosen, how many in a row, and what a column's set is worth.

Rows are put in an order that depends on their content alone, so that the answer does not depend
on the order in which they were given; rows of equal content stay in the order given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.expected.macro.records import Cells, Columns, Places
from argmaxf.expected.quadrature import reciprocal_nodes
from argmaxf.measures import Coefficients


@dataclass(frozen=True)
class Rule:
    """How many cells of each row are chosen, and what the value of a choice is."""

    b: int
    exactly: bool  # b cells in every row, or at most b
    coefficients: Coefficients  # of the measure; b_in = b_out, no smoothing
    zero_division: float
    present_only: bool  # average over the columns that have a positive, or over all
    empty: int = 0  # columns without a cell, which nothing can be chosen in


@dataclass(frozen=True, eq=False)
class Instance:
    """The cells of a matrix that may be chosen, by rows and by columns, in the rows' own order."""

    rule: Rule
    order: Ints  # which given row stands at each place
    rows: Cells
    columns: Columns
    cell: Ints  # where the columns' cells stand among the rows' cells
    constant: float  # part of the value that no choice changes
    weight: Floats  # of each column in the average

    @classmethod
    def of(cls, given: Cells, n_columns: int, rule: Rule) -> Instance:
        """Take the cells that may be chosen as they are given, row by row."""
        order, rows = _in_own_order(given)
        first, row, cell, p = _by_columns(rows, n_columns)
        columns, log_none = _columns(first, row, p, rule.coefficients)
        weight, constant = column_weights(log_none, rule)
        nodes = np.repeat(np.log(weight), np.diff(columns.first_node))
        nothing = 0.0 if rule.present_only else rule.zero_division * weight * np.exp(log_none)
        columns = columns._replace(
            log_a=columns.log_a + nodes, nothing=np.broadcast_to(nothing, weight.shape).copy()
        )
        return cls(rule, order, rows, columns, cell, constant, weight)

    def as_given(self, chosen: Bools) -> Bools:
        """Return a choice of cells in the order in which the cells were given."""
        sizes = np.diff(self.rows.first)
        first = np.empty(self.order.size + 1, np.int64)
        first[0] = 0
        first[1:][self.order] = sizes
        np.cumsum(first, out=first)
        where = np.repeat(first[self.order] - self.rows.first[:-1], sizes)
        where += np.arange(where.size)
        given = np.empty_like(chosen)
        given[where] = chosen
        return given


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


def _in_own_order(given: Cells) -> tuple[Ints, Cells]:
    """Put rows in the order of their content."""
    from argmaxf.expected.macro import column_kernels

    keys = np.empty(given.first.size - 1, np.uint64)
    column_kernels.row_keys(*given, keys)
    order = np.argsort(keys, kind="stable")
    rows = Cells(np.empty_like(given.first), np.empty_like(given.column), np.empty_like(given.p))
    column_kernels.reorder_rows(*given, order, *rows)
    return order, rows


def _by_columns(rows: Cells, n_columns: int) -> tuple[Ints, Places, Ints, Floats]:
    """List the cells column by column: first cell of each, row, place among the rows' cells, p."""
    from argmaxf.expected.macro import column_kernels

    first = np.empty(n_columns + 1, np.int64)
    row, cell = np.empty(rows.p.size, np.int32), np.empty(rows.p.size, np.int64)
    p = np.empty(rows.p.size)
    column_kernels.by_columns(*rows, first, row, cell, p)
    return first, row, cell, p


def _columns(first: Ints, row: Places, p: Floats, c: Coefficients) -> tuple[Columns, Floats]:
    """Return the columns with their nodes, and log P(nothing is positive) of each."""
    from argmaxf.expected.macro import column_kernels

    size = np.empty(first.size - 1, np.int64)
    column_kernels.count_nodes(first, p, c.b_in, size)
    first_node = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
    u, w, x, log_a = (np.empty(first_node[-1]) for _ in range(4))
    shift, log_none = np.empty(size.size), np.empty(size.size)
    column_kernels.fill_columns(first, p, c, first_node, u, w, x, log_a, shift, log_none)
    columns = Columns(first, row, p, first_node, u, w, x, log_a, np.zeros(size.size), shift)
    return columns, log_none
