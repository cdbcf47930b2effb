"""Compiled loops of the proof: the best set of a column when each row has a price.

See expected/tilt_kernels.py for the conventions and docs/shared-rows.md for the mathematics.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.size_kernels import highest_chord, mark_largest, sums_of_largest
from argmaxf.expected.tilt_kernels import factor

CUT = 8  # a range of sizes is cut at least this part of its length from its ends


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
        margin = max(1, (right - left) // CUT)
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
