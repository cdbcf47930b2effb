"""Compiled loops of the macro-averaged assignment: columns at their nodes, ascent, prices.

See expected/tilt_kernels.py for the conventions and docs/background/labels-per-row.md for the
mathematics.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.dependent_kernels import highest_chord, mark_largest, sums_of_largest
from argmaxf.expected.quadrature import plausible_positives, reciprocal_nodes
from argmaxf.expected.small_set_kernels import top_spread
from argmaxf.expected.tilt_kernels import (
    INSIDE,
    NODE_SUMS,
    PITCH,
    RULE,
    SIZE,
    WEIGHT,
    G,
    U,
    factor,
    log_products,
    longest,
    set_rule,
)

EVEN = 1e-14  # a gain of this part of a column's value is rounding, and no reason to move
NARROWEST = 8  # a range of sizes is cut at least this part of its length from its ends


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
def fill_columns(columns, c):
    """Fill the nodes of each column, and log a = log(c ω G)."""
    rule, work = np.empty(RULE), np.empty(NODE_SUMS)
    for column in range(columns.shift.size):
        p = np.sort(columns.p[columns.first[column] : columns.first[column + 1]])
        low, high, columns.shift[column] = column_range(p, c.b_in)
        set_rule(rule, low, high, c)
        log_products(p, rule[INSIDE:], int(rule[SIZE]), work)
        start = columns.first_node[column]
        for m in range(int(rule[SIZE])):
            columns.u[start + m] = rule[U + m]
            columns.w[start + m], columns.x[start + m] = rule[INSIDE + m], rule[INSIDE + PITCH + m]
            columns.log_a[start + m] = math.log(c.c * rule[WEIGHT + m]) + work[PITCH + m]


@kernel
def spreads(columns, chosen, value, c, out):
    """Fill the standard deviation of each column's measure; `value` is its expectation."""
    rule, work = np.empty(RULE), np.empty(NODE_SUMS)
    for column in range(value.size):
        cells = slice(columns.first[column], columns.first[column + 1])
        p, marks = columns.p[cells], chosen[cells]
        size = np.sum(marks)
        if size > 0:
            low, high, _ = column_range(p, c.b_in)
            set_rule(rule, low, high, c)
            log_products(np.sort(p), rule[INSIDE:], int(rule[SIZE]), work[G:])
            ordered = np.concatenate((p[~marks], p[marks]))
            out[column] = top_spread(ordered, size, value[column], c, rule, work)


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


class Priced(NamedTuple):
    """One column, the prices of its cells, and room to work."""

    p: Any
    price: Any
    u: Any
    w: Any
    x: Any
    log_a: Any
    shift: float
    scale: Any
    out: Any


@kernel
def priced_column(c, columns, price, forced):
    """Return one column with the prices of its cells; `forced` is added to them, cell by cell."""
    cells = slice(columns.first[c], columns.first[c + 1])
    here = slice(columns.first_node[c], columns.first_node[c + 1])
    p = columns.p[cells]
    paid = price[columns.row[cells]]
    if forced.size > 0:
        paid += forced[cells]
    nodes = columns.u[here]
    return Priced(
        p, paid, nodes, columns.w[here], columns.x[here], columns.log_a[here], columns.shift[c],
        np.empty(nodes.size), np.empty(p.size),
    )  # fmt: skip


@reordering_kernel
def reduced(t, priced):
    """Fill Δ_i(t) - λ_i: what each cell adds to a set of t cells, less its price."""
    u, w, x, scale = priced.u, priced.w, priced.x, priced.scale
    for m in range(u.size):
        scale[m] = math.exp(priced.log_a[m] - u[m] * t) * x[m]
    for i in range(priced.p.size):
        v = priced.p[i]
        a, b, c = factor(v, 1.0 - v)
        total = 0.0
        for m in range(u.size):
            total += scale[m] / (a + b * x[m] + c * w[m])
        priced.out[i] = v * total - priced.price[i]


@kernel
def top_sums(t, low, high, priced):
    """V(k, t), the sum of the k largest Δ_i(t) - λ_i, for k = low … high."""
    reduced(float(t), priced)
    return sums_of_largest(priced.out, low, high)


@kernel
def far_side(guess, best, priced):
    """A size beyond which no set is better than `best`, and the bound on sets beyond it.

    Δ falls with the size, so a set of t cells or more has at most Σ max(0, Δ_i(t) - λ_i).
    """
    n = priced.p.size
    reach = guess
    while 2 * reach < n:
        reach *= 2
        reduced(float(reach), priced)
        most = 0.0
        for value in priced.out:
            most += max(value, 0.0)
        if most <= best:
            return reach, most
    return n, -np.inf


@kernel
def best_size(guess, nothing, slack, priced):
    """The best value of a set, its size, and a bound on all sets, at most `slack` above it.

    Ranges of sizes are cut until the chords over what remains are low enough. `guess` is where to
    look first.
    """
    n = priced.p.size
    if n == 0:
        return nothing, 0, nothing
    guess = min(max(guess, 1), n)
    best, size = max(nothing, top_sums(guess, guess, guess, priced)[0]), guess
    reach, bound = far_side(guess, best, priced)
    left, left_low, left_sums = 1, 1, top_sums(1, 1, reach, priced)
    rights, right_lows = [reach], [1]
    right_sums = [top_sums(reach, 1, reach, priced)]
    for k, value in ((1, left_sums[0]), (reach, right_sums[0][reach - 1])):
        if value > best:
            best, size = value, k
    while len(rights) > 0:
        right, right_low, sums = rights[-1], right_lows[-1], right_sums[-1]
        high, k = highest_chord(left, left_sums, left_low, right, sums, right_low, priced.shift)
        if right - left < 2 or high <= best + slack:
            bound = max(bound, high)
            left, left_low, left_sums = rights.pop(), right_lows.pop(), right_sums.pop()
            continue
        margin = max(1, (right - left) // NARROWEST)
        k = guess if left < guess < right else min(max(k, left + margin), right - margin)
        sums = top_sums(k, left, right, priced)
        rights.append(k)
        right_lows.append(left)
        right_sums.append(sums)
        if sums[k - left] > best:
            best, size = sums[k - left], k
    return best, size if best > nothing else 0, max(bound, best)


@kernel
def mark_best(size, priced, out):
    """Mark the best set of a size; of equal cells the first are taken."""
    if size > 0:
        reduced(float(size), priced)
    mark_largest(priced.out, size, 0.0, out)


@kernel
def best_sets(start, stop, columns, price, forced, slack, size, bound, chosen):
    """Find the best set of some columns under prices, and bound what any set can be worth.

    `size` holds guesses and is overwritten; `chosen` is marked cell by cell, column by column.
    """
    for c in range(start, stop):
        priced = priced_column(c, columns, price, forced)
        _, size[c], bound[c] = best_size(size[c], columns.nothing[c], slack, priced)
        mark_best(size[c], priced, chosen[columns.first[c] : columns.first[c + 1]])
