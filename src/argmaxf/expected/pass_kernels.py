r"""Compiled passes over items: what is above a threshold, counts in bins, sums around a band.

Sums over some items are S = Σ p and V_j = Σ p^j (1 - p) for j = 0 … 7, from which S_j = Σ p^j
follow, S_{j+1} = S_j - V_j. Where p w is small they give every sum at the nodes:

    Σ log(1 - p w) = -Σ_j w^j S_j / j,    Σ p / (1 - p w) = Σ_j w^{j-1} S_j,
    Σ (1 - p) / (1 - p w) = Σ_j w^j V_j,    Σ p (1 - p) / (1 - p w)² = Σ_j j w^{j-1} V_j.

Sums may be reordered, so that loops vectorize; a block of items is summed apart from others, so
that rounding does not build up. Expressions of whole arrays would take long to compile.
"""

from __future__ import annotations

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel

POWERS = 8
SUMS = 1 + POWERS  # S, then V_0 … V_7
BINS = 1024  # 16 for each power of two, from the one of p = 1 alone down to 2^-64
ONE = 0x3FF0  # the first 16 bits of 1 as a double: sign, exponent, and four bits of the fraction


@reordering_kernel
def tally(p, cut):
    """How many are no probabilities, Σ p; how many are above a threshold, and their Σ p."""
    bad = above = 0
    total = mass = 0.0
    for i in range(p.size):
        bad += 0 if (p[i] >= 0.0) & (p[i] <= 1.0) else 1
        above += 1 if p[i] > cut else 0
        total += p[i]
        mass += p[i] if p[i] > cut else 0.0
    return bad, total, above, mass


@kernel
def add_counts(p, bits, counts):
    """Add to the counts in bins, 0 in the last one; return how many are no probabilities.

    `bits` are those of p: the first 16 of a double that is not negative grow with it.
    """
    bad = 0
    for i in range(p.size):
        bad += 0 if (p[i] >= 0.0) & (p[i] <= 1.0) else 1
    for i in range(p.size if bad == 0 else 0):
        place = ONE - (bits[i] >> 48)
        counts[min(place, BINS - 1)] += 1
    return bad


@reordering_kernel
def add_powers(p, above, below, sums):
    """Add the sums over the items between two numbers."""
    s = v0 = v1 = v2 = v3 = v4 = v5 = v6 = v7 = 0.0
    for i in range(p.size):
        x = p[i]
        there = (x > above) & (x < below)
        r0, square = 1.0 - x if there else 0.0, x * x
        r1, r2, fourth = r0 * x, r0 * square, square * square
        r3 = r1 * square
        s, v0, v1, v2, v3 = s + (x if there else 0.0), v0 + r0, v1 + r1, v2 + r2, v3 + r3
        v4, v5, v6, v7 = v4 + r0 * fourth, v5 + r1 * fourth, v6 + r2 * fourth, v7 + r3 * fourth
    found = s, v0, v1, v2, v3, v4, v5, v6, v7
    for j in range(SUMS):
        sums[j] += found[j]


@kernel
def has_any(p, low, high):
    """Whether an item is between two numbers, or one of them."""
    found = 0
    for i in range(p.size):
        found |= (p[i] >= low) & (p[i] <= high)
    return found != 0


@kernel
def add_around(p, low, high, sums, items):
    """Add the sums over the items below and above a band, whose own are copied.

    Return how many these are; there must be room for a few more, else -1.
    """
    block_size, few_size = 1024, 32  # summed together, and looked at again where one is in the band
    found = 0
    for start in range(0, p.size, block_size):
        block = p[start : start + block_size]
        add_powers(block, -1.0, low, sums[0])
        add_powers(block, high, 2.0, sums[1])
        for first in range(0, block.size, few_size):
            few = block[first : first + few_size]
            if has_any(few, low, high):
                if found + few_size > items.size:
                    return -1
                for x in few:
                    items[found] = x
                    found += (x >= low) & (x <= high)
    return found


@kernel
def least_above(p, cut):
    """The least item above a threshold."""
    least = np.inf
    for x in p:
        if cut < x < least:
            least = x
    return least
