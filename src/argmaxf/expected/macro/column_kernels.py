"""Compiled loops that set up columns: their nodes, and the odds that nothing is positive.

See expected/tilt_kernels.py for the conventions and docs/shared-rows.md for the mathematics.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.quadrature import plausible_positives, reciprocal_nodes
from argmaxf.expected.small_set_kernels import top_spread
from argmaxf.expected.tilt_kernels import (
    RULE,
    SIZE,
    WORK,
    G,
    factor,
    log_factor,
    set_rule,
    tilt,
)

RARE = 1.0 / 64.0  # below this, log(1 - pw) is summed as a power series
POWERS = 7  # of it: what is left out is below 3e-14 of the sum
FLUSH = 16  # factors multiplied before a logarithm is taken; each is at least 1/2


@kernel
def row_keys(first, column, p, out):
    """Fill a number that depends on the content of each row alone, not on where it stands."""
    number = np.empty(1)
    bits = number.view(np.uint64)
    for i in range(out.size):
        key = np.uint64(1469598103934665603)
        for j in range(first[i], first[i + 1]):
            number[0] = p[j]
            key = scramble(key ^ np.uint64(column[j]))
            key = scramble(key ^ bits[0])
        out[i] = key


@kernel
def scramble(key):
    """Mix the bits of a number (the finish of splitmix64)."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@kernel
def reorder_rows(first, column, p, order, new_first, new_column, new_p):
    """Copy the rows of a matrix in another order."""
    new_first[0] = 0
    for i in range(order.size):
        size = first[order[i] + 1] - first[order[i]]
        new_first[i + 1] = new_first[i] + size
        for j in range(size):
            new_column[new_first[i] + j] = column[first[order[i]] + j]
            new_p[new_first[i] + j] = p[first[order[i]] + j]


@kernel
def by_columns(first_of_row, column, p, first, row, cell, column_p):
    """List cells column by column: their rows, where they stand among the rows, and p."""
    first[:] = 0
    for j in range(column.size):
        first[column[j] + 1] += 1
    for c in range(first.size - 1):
        first[c + 1] += first[c]
    place = first[:-1].copy()
    for i in range(first_of_row.size - 1):
        for j in range(first_of_row[i], first_of_row[i + 1]):
            here = place[column[j]]
            place[column[j]] += 1
            row[here] = i
            cell[here] = j
            column_p[here] = p[j]


@kernel
def column_range(p, b):
    """The least and largest denominator k + b S of a column's sets, and the most of b S."""
    mean = 0.0
    for v in p:
        mean += v
    fewest, most = plausible_positives(mean, p.size)
    return 1.0 + b * fewest, max(1.0, float(p.size)) + b * most, b * most


@kernel
def count_nodes(first, p, b, size):
    """Fill how many nodes each column needs."""
    for c in range(size.size):
        low, high, _ = column_range(p[first[c] : first[c + 1]], b)
        size[c] = reciprocal_nodes(low, high)[0].size


@kernel
def add_logs(product, out):
    """Add the logarithms of some products, and begin new ones."""
    for m in range(out.size):
        out[m] += math.log(product[m])
        product[m] = 1.0


@kernel
def log_none_positive(p, w, x, out):
    """Fill log Π (1 - p w) of a column, for each node."""
    sums = np.zeros(POWERS)
    product = np.ones(w.size)
    out[:] = 0.0
    held = 0
    for v in p:
        if v < RARE:
            power = v
            for j in range(POWERS):
                sums[j] += power
                power *= v
        elif v < 0.5:
            for m in range(w.size):
                product[m] *= 1.0 - v * w[m]
            held += 1
            if held % FLUSH == 0:
                add_logs(product, out)
        else:
            for m in range(w.size):
                out[m] += log_factor(v, 1.0 - v, w[m], x[m])
    add_logs(product, out)
    for m in range(w.size):
        series = 0.0
        for j in range(POWERS, 0, -1):
            series = w[m] * (sums[j - 1] / j + series)
        out[m] -= series


@kernel
def fill_columns(first, p, c, first_node, u, w, x, log_a, shift, log_none):
    """Fill the nodes of each column, log a = log(c ω G), and log P(nothing is positive)."""
    for column in range(shift.size):
        cells = p[first[column] : first[column + 1]]
        here = slice(first_node[column], first_node[column + 1])
        low, high, shift[column] = column_range(cells, c.b_in)
        u[here], weight = reciprocal_nodes(low, high)
        w[here], x[here] = tilt(u[here], c.b_in)
        log_none_positive(cells, w[here], x[here], log_a[here])
        log_a[here] += np.log(c.c * weight)
        log_none_positive(cells, np.ones(1), np.zeros(1), log_none[column : column + 1])


@kernel
def spreads(columns, chosen, value, c, out):
    """Fill the standard deviation of each column's measure; `value` is its expectation."""
    rule, work = np.empty(RULE), np.empty(WORK)
    for column in range(value.size):
        cells = slice(columns.first[column], columns.first[column + 1])
        here = slice(columns.first_node[column], columns.first_node[column + 1])
        p, marks = columns.p[cells], chosen[cells]
        low, high, _ = column_range(p, c.b_in)
        set_rule(rule, low, high, c)
        log_g = np.empty(int(rule[SIZE]))
        log_none_positive(p, columns.w[here], columns.x[here], log_g)
        for m in range(log_g.size):
            work[G + m] = math.exp(log_g[m])
        ordered = np.concatenate((p[~marks], p[marks]))
        size = np.sum(marks)
        if size > 0:
            f = value[column]
            out[column] = top_spread(ordered, size, f, c, rule, work)


@reordering_kernel
def tilted_sum(p, scale, w, x):
    """Σ_m scale_m π_m for one cell."""
    a, b, c = factor(p, 1.0 - p)
    total = 0.0
    for m in range(w.size):
        total += scale[m] * x[m] / (a + b * x[m] + c * w[m])
    return p * total


@kernel
def add_tilted(p, sign, w, x, pi):
    """Add the π of one cell to a set's, or take it away."""
    a, b, c = factor(p, 1.0 - p)
    for m in range(w.size):
        pi[m] += sign * p * x[m] / (a + b * x[m] + c * w[m])
