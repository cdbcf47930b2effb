"""Compiled loops over many sorted sets of items, and over many questions about one of them."""

from __future__ import annotations

import numpy as np

from argmaxf._base.compiled import kernel
from argmaxf.expected.kernels import longest, select
from argmaxf.expected.product_kernels import log_product
from argmaxf.expected.row_kernels import decide_row, nothing_selected, row_nodes
from argmaxf.expected.spread_kernels import top_spread
from argmaxf.expected.value_kernels import top_values
from argmaxf.measures.ratio import Coefficients


@kernel
def decide_sets(ascending, offsets, c, zero_division, split_ties, limits, k, expected, std, rivals):
    """Decide sets of items that lie one after another, each sorted, set r from offsets[r] on."""
    f = np.empty(longest(offsets) + 1)
    for r in range(k.size):
        items = ascending[offsets[r] : offsets[r + 1]]
        k[r], expected[r], std[r], rivals[r] = decide_row(
            items, c, zero_division, split_ties, limits, -1, f[: items.size + 1]
        )


@kernel
def decide_rows(
    p, ascending, c, zero_division, split_ties, limits, k, threshold, expected, std, rivals, out
):
    """Decide every row of a matrix, given as it is and in ascending order; mark the chosen."""
    f = np.empty(ascending.shape[1] + 1)
    for r in range(k.size):
        items = ascending[r]
        k[r], expected[r], std[r], rivals[r] = decide_row(
            items, c, zero_division, split_ties, limits, -1, f
        )
        threshold[r] = mark(p[r], items, k[r], out[r])


@kernel
def mark(p, ascending, k, out):
    """Mark the top k, of equal items the first ones; return the lowest chosen probability."""
    n = ascending.size
    threshold = ascending[n - k] if k > 0 else np.inf
    ties = 0
    while ties < k and ascending[n - k + ties] == threshold:
        ties += 1
    select(p, threshold, ties, out)
    return threshold


@kernel
def select_sets(p, offsets, threshold, ties, out):
    """Mark the chosen items of every set: those above its threshold, the first ties equal to it."""
    for r in range(threshold.size):
        part = slice(offsets[r], offsets[r + 1])
        select(p[part], threshold[r], ties[r], out[part])


@kernel
def count_ties(ascending, offsets, k, threshold, ties):
    """Count the chosen items of every set that equal its threshold."""
    for r in range(k.size):
        ties[r] = 0
        for i in range(offsets[r + 1] - k[r], offsets[r + 1]):
            if ascending[i] != threshold[r]:
                break
            ties[r] += 1


@kernel
def coefficients_of(row):
    """Return the coefficients of a measure from a row of a table of them."""
    return Coefficients(row[0], row[1], row[2], row[3], row[4])


@kernel
def decide_each(ascending, table, zero_division, split_ties, limits, k, expected, std, rivals):
    """Decide one sorted set for each of several measures, given by a table of coefficients."""
    f = np.empty(ascending.size + 1)
    for q in range(k.size):
        k[q], expected[q], std[q], rivals[q] = decide_row(
            ascending, coefficients_of(table[q]), zero_division, split_ties, limits, -1, f
        )


@kernel
def curve(ascending, c, zero_division, f):
    """Fill the expected value f[k] of the top k of one sorted set, for k = 0 … n."""
    n = ascending.size
    mean = 0.0
    for p in ascending:
        mean += p
    f[0] = nothing_selected(ascending, mean, c, zero_division)[0]
    u, weight, tilts = row_nodes(n, mean, c, 1, float(n))
    log_g = np.empty(u.size)
    log_product(ascending, tilts[2], tilts[3], log_g)
    top_values(ascending, 1, c, u, weight, log_g, tilts, mean, False, f)
    return u, weight, tilts, log_g


@kernel
def curves(ascending, table, zero_division, f):
    """Fill one row of f for each of several measures, given by a table of coefficients."""
    for q in range(len(table)):
        curve(ascending, coefficients_of(table[q]), zero_division, f[q])


@kernel
def spreads(ascending, c, zero_division, sizes, std):
    """Fill the standard deviation of the value of the top k, for each k ≥ 1 of `sizes`."""
    f = np.empty(ascending.size + 1)
    u, weight, tilts, log_g = curve(ascending, c, zero_division, f)
    for i in range(sizes.size):
        k = sizes[i]
        std[i] = top_spread(ascending, k, f[k], c, u, weight, tilts, log_g)
