"""Compiled loops of the ascent: each row takes its best cells, all else as it is.

See expected/tilt_kernels.py for the conventions and docs/shared-rows.md for the mathematics.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel
from argmaxf.expected.macro.column_kernels import add_tilted, tilted_sum
from argmaxf.expected.tilt_kernels import longest

EVEN = 1e-14  # a gain of this part of a column's value is rounding, and no reason to move


@kernel
def settle(c, columns, state):
    """Prepare a column whose set has changed: its value, and what joining and staying gain.

    Joining gains base[0] + Σ joining π, staying base[1] + Σ leaving π: the value of the set with
    the cell less the value without it.
    """
    size, nothing = state.size[c], columns.nothing[c]
    value, join, stay = 0.0, 0.0, 0.0
    for m in range(columns.first_node[c], columns.first_node[c + 1]):
        u, log_a = columns.u[m], columns.log_a[m]
        now = math.exp(log_a - u * size)
        state.joining[m] = math.exp(log_a - u * (size + 1.0))
        state.leaving[m] = math.exp(log_a - u * (size - 1.0)) if size > 0 else 0.0
        value += now * state.pi[m]
        join += (state.joining[m] - now) * state.pi[m]
        stay += (now - state.leaving[m]) * state.pi[m]
    state.value[c] = nothing if size == 0 else value
    state.base[c, 0] = join - (nothing if size == 0 else 0.0)
    state.base[c, 1] = stay - (nothing if size == 1 else 0.0)


@kernel
def collect(rows, columns, state):
    """Work out the state of every column from the chosen cells."""
    state.size[:] = 0
    state.pi[:] = 0.0
    for j in range(rows.p.size):
        if state.chosen[j]:
            c = rows.column[j]
            here = slice(columns.first_node[c], columns.first_node[c + 1])
            state.size[c] += 1
            add_tilted(rows.p[j], 1.0, columns.w[here], columns.x[here], state.pi[here])
    for c in range(state.size.size):
        settle(c, columns, state)


@kernel
def move(j, rows, columns, state):
    """Choose a cell that is not chosen, or the other way round."""
    c = rows.column[j]
    here = slice(columns.first_node[c], columns.first_node[c + 1])
    sign = -1 if state.chosen[j] else 1
    state.chosen[j] = not state.chosen[j]
    state.size[c] += sign
    add_tilted(rows.p[j], float(sign), columns.w[here], columns.x[here], state.pi[here])
    if state.size[c] == 0:
        state.pi[here] = 0.0
    settle(c, columns, state)


@kernel
def row_gains(start, stop, rows, columns, state, gain):
    """Fill what each cell of a row adds to its column: the value with it less that without it."""
    for j in range(start, stop):
        c = rows.column[j]
        here = slice(columns.first_node[c], columns.first_node[c + 1])
        scale = state.leaving[here] if state.chosen[j] else state.joining[here]
        base = state.base[c, 1] if state.chosen[j] else state.base[c, 0]
        gain[j - start] = base + tilted_sum(rows.p[j], scale, columns.w[here], columns.x[here])


@kernel
def best_cells(gain, b, exactly, take):
    """Mark the b cells of a row with the highest gains, if not `exactly` only those that gain."""
    take[:] = False
    for _ in range(b):
        best = -1
        for j in range(gain.size):
            if not take[j] and (best < 0 or gain[j] > gain[best]):
                best = j
        if best < 0 or not (exactly or gain[best] > 0.0):
            return
        take[best] = True


@kernel
def sweep(rows, columns, state, b, exactly):
    """Give every row in turn its best cells; return how many rows moved."""
    gain = np.empty(longest(rows.first))
    take = np.empty(gain.size, np.bool_)
    moved = 0
    for i in range(rows.first.size - 1):
        start, stop = rows.first[i], rows.first[i + 1]
        row_gains(start, stop, rows, columns, state, gain)
        for j in range(start, stop):  # who holds a cell keeps it unless another is better
            if state.chosen[j]:
                gain[j - start] += EVEN * state.value[rows.column[j]]
        best_cells(gain[: stop - start], b, exactly, take[: stop - start])
        moves = 0
        for j in range(start, stop):
            if state.chosen[j] != take[j - start]:
                move(j, rows, columns, state)
                moves += 1
        moved += moves > 0
    return moved


@kernel
def first_prices(rows, columns, state, b, exactly, price):
    """Fill prices midway between the least gain that each row takes and the best it leaves.

    Where a row takes fewer than it may, its price is zero: one more label is worth nothing.
    """
    gain = np.empty(longest(rows.first))
    for i in range(rows.first.size - 1):
        start, stop = rows.first[i], rows.first[i + 1]
        row_gains(start, stop, rows, columns, state, gain)
        taken, left = np.inf, -np.inf if exactly else 0.0
        count = 0
        for j in range(start, stop):
            if state.chosen[j]:
                taken = min(taken, gain[j - start])
                count += 1
            else:
                left = max(left, gain[j - start])
        if count < b or start == stop:
            price[i] = 0.0
        else:
            price[i] = (taken + left) / 2.0 if left > -np.inf else taken - abs(taken)
