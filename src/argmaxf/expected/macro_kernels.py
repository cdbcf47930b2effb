"""Compiled loops of the macro-averaged assignment: columns at their nodes, ascent, prices.

See expected/node_kernels.py for the conventions and docs/background/labels-per-row.md for the
mathematics.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.dependent_kernels import (
    Items,
    contributions,
    far_side,
    make_series,
    search,
    take,
    terms_needed,
    top_sums,
)
from argmaxf.expected.node_kernels import (
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
from argmaxf.expected.quadrature import plausible_positives, reciprocal_nodes
from argmaxf.expected.small_set_kernels import top_spread

MEANS, SAMPLED = 10, 1 << 14  # steps of the plug-in choice; rows that the first ones look at
ROUNDED = 1e-14  # part by which a sum may exceed its chord
EVEN = 1e-14  # a gain of this part of a column's value is rounding, and no reason to move


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
def fill_columns(columns, ascending, c, log_weight):
    """Fill the nodes of each column, and log a = log(weight c ω G); its p are given sorted, too."""
    rule, work = np.empty(RULE), np.empty(NODE_SUMS)
    for column in range(columns.shift.size):
        p = ascending[columns.first[column] : columns.first[column + 1]]
        low, high, columns.shift[column] = column_range(p, c.b_in)
        set_rule(rule, low, high, c)
        log_products(p, rule[INSIDE:], int(rule[SIZE]), work)
        here = slice(columns.first_node[column], columns.first_node[column + 1])
        u, w, x, log_a = columns.u[here], columns.w[here], columns.x[here], columns.log_a[here]
        for m in range(u.size):
            u[m], w[m], x[m] = rule[U + m], rule[INSIDE + m], rule[INSIDE + PITCH + m]
            log_a[m] = math.log(c.c * rule[WEIGHT + m]) + work[PITCH + m] + log_weight[column]
        columns.terms[column] = terms_needed(x * np.exp(log_a - u), w, x)


@kernel
def spreads(columns, chosen, value, weight, c, out):
    """Fill the standard deviation of each column's measure; `value` is its expectation."""
    rule, work = np.empty(RULE), np.empty(NODE_SUMS)
    for column in range(value.size):
        start, stop = columns.first[column], columns.first[column + 1]
        p = columns.p[start:stop]
        size = np.sum(chosen[start:stop])
        if size > 0:
            low, high, _ = column_range(p, c.b_in)
            set_rule(rule, low, high, c)
            first = columns.first_node[column]
            for m in range(int(rule[SIZE])):
                scale = weight[column] * c.c * rule[WEIGHT + m]
                work[G + m] = math.exp(columns.log_a[first + m]) / scale
            ordered = np.empty(p.size)  # what is chosen comes last
            left, right = 0, p.size - size
            for i in range(p.size):
                if chosen[start + i]:
                    ordered[right] = p[i]
                    right += 1
                else:
                    ordered[left] = p[i]
                    left += 1
            out[column] = top_spread(ordered, size, value[column], c, rule, work)


@reordering_kernel
def added(p, scale, first, size, terms, w, x):
    """Σ_m scale_m p / (1 - p w_m) of one cell, or a series in p whose factors are in `scale`.

    The nodes of its column are `size` ones from the first on.
    """
    total = 0.0
    if terms > 0:
        for j in range(terms - 1, -1, -1):
            total = total * p + scale[first + j]
    else:
        a, b, c = factor(p, 1.0 - p)
        for m in range(first, first + size):
            total += scale[m] / (a + b * x[m] + c * w[m])
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

    A cell that joins gains base[0] + `added` with the factors `joining`, one that stays base[1] +
    `added` with `leaving`: the value of the set with the cell less the value without it.
    """
    size, nothing = state.size[c], columns.nothing[c]
    here = slice(columns.first_node[c], columns.first_node[c + 1])
    u, x, log_a, pi = columns.u[here], columns.x[here], columns.log_a[here], state.pi[here]
    joining, leaving = state.joining[here], state.leaving[here]
    value, join, stay = 0.0, 0.0, 0.0
    for m in range(u.size):
        loss = math.expm1(-u[m])
        now = math.exp(log_a[m] - u[m] * size)
        before = math.exp(log_a[m] - u[m] * (size - 1.0)) if size > 0 else 0.0
        joining[m], leaving[m] = now * math.exp(-u[m]) * x[m], before * x[m]
        value += now * pi[m]
        join += now * loss * pi[m]
        stay += before * loss * pi[m]
    state.chord[c, 0] = np.sum(joining) * (1.0 + ROUNDED)
    state.chord[c, 1] = np.sum(joining / x) * (1.0 + ROUNDED) - state.chord[c, 0]
    if columns.terms[c] > 0:
        make_series(joining, columns.w[here], columns.terms[c])
        make_series(leaving, columns.w[here], columns.terms[c])
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
def best_cells(gain, b, exactly, taken):
    """Mark the b cells of a row with the highest gains, if not `exactly` only those that gain.

    Return a price midway between the least gain that is taken and the best that is left; 0 where
    fewer than b are taken, since one more is worth nothing. Then the best cell that is left, or -1.
    """
    taken[:] = False
    least, left = np.inf, -np.inf if exactly else 0.0
    for count in range(b + 1):
        best = -1
        for j in range(gain.size):
            if not taken[j] and (best < 0 or gain[j] > gain[best]):
                best = j
        if count < b and best >= 0 and (exactly or gain[best] > 0.0):
            taken[best] = True
            least = gain[best]
        elif count < b:
            return 0.0, best
    left = max(left, gain[best]) if best >= 0 else left
    return (least + left) / 2.0 if left > -np.inf else least - abs(least), best


@kernel
def plug_in(rows, weight, b, exactly, c, chosen):
    """Choose cells by means of numerators and denominators, whose ratio F nearly is.

    Where k cells of a column have Σ p = M, and μ is that of all its cells, one more adds nearly
    a p - a M / x, a = weight (1+β²) / x and x = k + β² μ. Rows take their best cells, and a and x
    follow, damped. The first steps look at some of the rows only, whose order is random.
    """
    n, columns = rows.first.size - 1, weight.size
    gain, taken = np.empty(longest(rows.first)), np.empty(longest(rows.first), np.bool_)
    mean, size, mass = np.zeros(columns), np.zeros(columns), np.zeros(columns)
    for j in range(rows.p.size):
        mean[rows.column[j]] += rows.p[j]
    slope, offset = np.ones(columns), np.zeros(columns)
    for step in range(MEANS):
        count = n if step >= MEANS - 2 else min(n, SAMPLED)
        new_size, new_mass = np.zeros(columns), np.zeros(columns)
        for i in range(count):
            start, stop = rows.first[i], rows.first[i + 1]
            for j in range(start, stop):
                gain[j - start] = slope[rows.column[j]] * rows.p[j] - offset[rows.column[j]]
            best_cells(gain[: stop - start], b, exactly, taken[: stop - start])
            for j in range(start, stop):
                chosen[j] = taken[j - start]
                if chosen[j]:
                    new_size[rows.column[j]] += 1.0
                    new_mass[rows.column[j]] += rows.p[j]
        share = 1.0 if step < 3 else 0.6
        for k in range(columns):
            size[k] += share * (new_size[k] * n / count - size[k])
            mass[k] += share * (new_mass[k] * n / count - mass[k])
            x = max(1.0, size[k] + c.b_in * mean[k])
            slope[k] = weight[k] * c.c / x
            offset[k] = slope[k] * mass[k] / x


@kernel
def sweep(rows, columns, state, b, exactly, price):
    """Give every row in turn its best cells.

    `price` is filled with prices at which each row's choice is the best one. What a cell adds is
    at most p times a chord, from p = 0 to 1; only cells that are among the best then are summed up.
    """
    gain = np.empty(longest(rows.first))
    taken, is_exact = np.empty((2, gain.size), np.bool_)
    first_node, terms, w, x = columns.first_node, columns.terms, columns.w, columns.x
    first, column, p, chosen = rows.first, rows.column, rows.p, state.chosen
    base, joining, leaving, value = state.base, state.joining, state.leaving, state.value
    for i in range(price.size):
        start, stop = first[i], first[i + 1]
        for j in range(start, stop):
            c = column[j]
            chord = base[c, 0] + p[j] * (state.chord[c, 0] + p[j] * state.chord[c, 1])
            gain[j - start] = np.inf if chosen[j] else chord
            is_exact[j - start] = False
        is_open = True
        while is_open:
            price[i], left = best_cells(gain[: stop - start], b, exactly, taken[: stop - start])
            is_open = False
            for j in range(start, stop):
                if is_exact[j - start] or not (taken[j - start] or j - start == left):
                    continue
                c = column[j]
                node, size = first_node[c], first_node[c + 1] - first_node[c]
                if chosen[j]:  # who holds a cell keeps it unless another is better
                    stays = added(p[j], leaving, node, size, terms[c], w, x)
                    gain[j - start] = base[c, 1] + EVEN * value[c] + stays
                else:
                    joins = added(p[j], joining, node, size, terms[c], w, x)
                    gain[j - start] = base[c, 0] + joins
                is_exact[j - start] = is_open = True
        for j in range(start, stop):
            if chosen[j] != taken[j - start]:
                move(j, rows, columns, state)


@kernel
def best_sets(start, stop, columns, price, forced, slack, size, bound, chosen):
    """Find the best set of some columns under prices, and bound what any set can be worth.

    `forced` are more prices, cell by cell. `size` holds guesses and is overwritten; `chosen` is
    marked cell by cell, column by column.

    What a cell adds, Δ, falls at least as 1 / (s + shift) with the size s of a set. A cell of the
    best set must therefore be worth Σ Δ / (s + shift) of the others, which they lose by it, and
    that is at least the value of the best set and its negative prices over the largest s + shift.
    """
    none, chosen[columns.first[start] : columns.first[stop]] = np.empty((0, 0)), False
    for c in range(start, stop):
        cells = slice(columns.first[c], columns.first[c + 1])
        here = slice(columns.first_node[c], columns.first_node[c + 1])
        w, x, u, log_a = columns.w[here], columns.x[here], columns.u[here], columns.log_a[here]
        p, paid, terms = columns.p[cells], price[columns.row[cells]], columns.terms[c]
        if forced.size > 0:
            paid += forced[cells]
        shift, nothing = columns.shift[c], columns.nothing[c]
        worth = np.empty(paid.size)
        contributions(1.0, Items(none, p, w, x, terms, u, log_a, paid, shift), worth)
        useful = np.flatnonzero(worth > 0.0)
        items = Items(none, p[useful], w, x, terms, u, log_a, paid[useful], shift)
        beyond = nothing
        if useful.size > 0:
            guess = min(max(size[c], 1), useful.size)
            best = max(nothing, top_sums(guess, guess, guess, items)[0])
            reach, beyond = far_side(guess, best + slack, items)
            least = (best + np.sum(np.minimum(items.price, 0.0))) / (reach + shift)
            useful = useful[worth[useful] + (worth + paid)[useful] / (1.0 + shift) >= least]
            items = Items(none, p[useful], w, x, terms, u, log_a, paid[useful], shift)
        f, taken = np.empty(useful.size + 1), np.empty(useful.size, np.bool_)
        bound[c] = max(beyond, search(items, size[c], nothing, 0.0, slack, f))
        size[c] = np.argmax(f)
        take(size[c], items, 0.0, f[1:], taken)
        chosen[cells.start + useful] = taken
