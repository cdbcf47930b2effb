r"""Compiled passes over the items of sets with many positives: counts, and power sums.

Sums over some items are S = Σ p and V_j = Σ p^j (1 - p) for j = 0 … 7, from which
S_j = Σ p^j follow, S_{j+1} = S_j - V_j. Where w is small they give every sum at the nodes:

    Σ log(1 - p w) = -Σ_j w^j S_j / j,    Σ p / (1 - p w) = Σ_j w^{j-1} S_j,
    Σ (1 - p) / (1 - p w) = Σ_j w^j V_j,    Σ p (1 - p) / (1 - p w)² = Σ_j j w^{j-1} V_j.

Loops go by places, and sums may be reordered: so they vectorize. Expressions of whole arrays would
take long to compile.
"""

from __future__ import annotations

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel

POWERS = 8
SUMS = 1 + POWERS  # S, then V_0 … V_7
BLOCK, FEW = 1024, 32  # items looked at together, and once more where one is in the band


@reordering_kernel
def tally(p, cut):
    """How many are no probabilities, Σ p; how many are above a cut, and their Σ p."""
    bad = above = 0
    total = mass = 0.0
    for i in range(p.size):
        bad += 0 if (p[i] >= 0.0) & (p[i] <= 1.0) else 1
        above += 1 if p[i] > cut else 0
        total += p[i]
        mass += p[i] if p[i] > cut else 0.0
    return bad, total, above, mass


@reordering_kernel
def add_powers(p, low, high, below, above):
    """Add the sums over the items below and above a band; return how many are above."""
    count = s = v0 = v1 = v2 = v3 = v4 = v5 = v6 = v7 = 0.0
    t = t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
    for i in range(p.size):
        x = p[i]
        r0, square = 1.0 - x, x * x
        r1, r2, fourth = r0 * x, r0 * square, square * square
        r3, r4, r5 = r1 * square, r0 * fourth, r1 * fourth
        r6, r7 = r2 * fourth, r3 * fourth
        out = 1.0 if x < low else 0.0
        s, v0, v1, v2 = s + out * x, v0 + out * r0, v1 + out * r1, v2 + out * r2
        v3, v4, v5 = v3 + out * r3, v4 + out * r4, v5 + out * r5
        v6, v7 = v6 + out * r6, v7 + out * r7
        one = 1.0 if x > high else 0.0
        count += one
        t, t0, t1, t2 = t + one * x, t0 + one * r0, t1 + one * r1, t2 + one * r2
        t3, t4, t5 = t3 + one * r3, t4 + one * r4, t5 + one * r5
        t6, t7 = t6 + one * r6, t7 + one * r7
    sums, sums_above = (s, v0, v1, v2, v3, v4, v5, v6, v7), (t, t0, t1, t2, t3, t4, t5, t6, t7)
    for j in range(SUMS):
        below[j] += sums[j]
        above[j] += sums_above[j]
    return count


@kernel
def add_each(items, sums):
    """Add the sums over a few items, one by one: a loop that is quickly compiled."""
    for x in items:
        sums[0] += x
        term = 1.0 - x
        for j in range(1, SUMS):
            sums[j] += term
            term *= x


@kernel
def has_any(p, low, high):
    """Whether an item is between two numbers."""
    found = 0
    for i in range(p.size):
        found |= (p[i] >= low) & (p[i] <= high)
    return found != 0


@kernel
def summed(p, low, high, below, above, items):
    """Add the sums over the items below and above a band, whose own are copied.

    Return how many are above and in the band; there must be room for a few more, else -1.
    """
    k, found = 0.0, 0
    for start in range(0, p.size, BLOCK):
        block = p[start : start + BLOCK]
        k += add_powers(block, low, high, below, above)
        for first in range(0, block.size, FEW):
            few = block[first : first + FEW]
            if has_any(few, low, high):
                if found + FEW > items.size:
                    return k, -1
                for x in few:
                    items[found] = x
                    found += (x >= low) & (x <= high)
    return k, found


@kernel
def least_above(p, cut):
    """The least item above a cut."""
    least = np.inf
    for x in p:
        if cut < x < least:
            least = x
    return least


@kernel
def log_series(sums, w):
    """Σ log(1 - p w) at each node."""
    out = np.empty(w.size)
    for m in range(w.size):
        power, s, total = w[m], sums[0], 0.0
        for j in range(1, POWERS + 1):
            total += power * s / j
            power *= w[m]
            s -= sums[1 + j] if j < POWERS else 0.0
        out[m] = -total
    return out


@kernel
def pi_series(sums, w, x):
    """Σ π, Σ (1 - π) and Σ π (1 - π) at each node."""
    pi, rest, variance = np.empty(w.size), np.empty(w.size), np.empty(w.size)
    for m in range(w.size):
        power, s = 1.0, sums[0]
        pi[m], rest[m], variance[m] = s, sums[1], 0.0
        for j in range(1, POWERS):
            v = sums[1 + j]
            variance[m] += j * power * v
            power *= w[m]
            s -= v
            pi[m] += power * s
            rest[m] += power * v
        pi[m] *= x[m]
        variance[m] *= x[m]
    return pi, rest, variance
