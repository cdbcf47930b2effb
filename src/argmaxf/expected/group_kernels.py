"""Compiled loops of the summary: items into groups, and a group's sums at the nodes.

See expected/node_kernels.py for the conventions, and groups.py for rows and columns.
"""

from __future__ import annotations

import numpy as np

from argmaxf._base.compiled import kernel
from argmaxf.expected.node_kernels import factor, log_factor

MANTISSA = 52
BITS = 6  # 64 groups for each power of two
SHIFT = MANTISSA - BITS
LEAST_KEYED = 2.0**-64
HALF_KEY = 1022 << BITS  # the key of t = 1/2
HIGH_BASE = 970 << BITS  # t = 1 - p is at least 2^-53 unless p = 1
LOW_BASE = 959 << BITS  # t = p is at least 2^-64 unless p is tiny
HIGH_ROWS = HALF_KEY - HIGH_BASE + 1
LOW_ROWS = HALF_KEY - LOW_BASE
ONE_ROW = 0
TINY_ROW = 1 + HIGH_ROWS + LOW_ROWS
ZERO_ROW = TINY_ROW + 1
ROWS = ZERO_ROW + 1
TABLE_COLUMNS = 8  # count, Σy in two parts, Σy² … Σy⁶: one cache line
ITEMS_AT_ONCE = 1024  # items looked at together
FEW_TERMS = 2.0**-10  # p w below this: seven terms of log(1 - p w) are exact to the last digit


@kernel
def upper_row(key):
    """The row of a key of t = 1 - p, for p in [1/2, 1)."""
    return 1 + key - HIGH_BASE


@kernel
def lower_row(key):
    """The row of a key of t = p, for p in [2^-64, 1/2)."""
    return HIGH_ROWS + HALF_KEY - key


@kernel
def add_powers(row, remainder, half):
    """Add one item to a group: y in [-1, 1), its place there, by the mantissa's remaining bits."""
    y, lead = remainder / half, ((remainder >> 20) << 20) / half
    y2 = y * y
    y4 = y2 * y2
    row[0] += 1.0
    row[1] += lead  # apart: the sum of leading bits is exact, so equal values cannot drift
    row[2] += y - lead
    row[3] += y2
    row[4] += y2 * y
    row[5] += y4
    row[6] += y4 * y
    row[7] += y4 * y2


@kernel
def summarize(p, table):
    """Add items to the table of ROWS groups; return False at a value that is no probability."""
    t = np.empty(ITEMS_AT_ONCE)
    bits = t.view(np.int64)
    high = np.empty(ITEMS_AT_ONCE, np.bool_)
    half = 1 << (SHIFT - 1)
    mask = (1 << SHIFT) - 1
    for start in range(0, p.size, ITEMS_AT_ONCE):
        size = min(ITEMS_AT_ONCE, p.size - start)
        valid = True
        for i in range(size):
            v = p[start + i]
            valid &= (v >= 0.0) & (v <= 1.0)
            high[i] = v >= 0.5
            t[i] = 1.0 - v if v >= 0.5 else v
        if not valid:
            return False
        for i in range(size):
            key = bits[i] >> SHIFT
            if high[i]:
                if key < HIGH_BASE:
                    table[0, 0] += 1.0
                else:
                    add_powers(table[upper_row(key)], (bits[i] & mask) - half, half)
            elif key >= LOW_BASE:
                add_powers(table[lower_row(key)], (bits[i] & mask) - half, half)
            elif t[i] > 0.0:
                table[TINY_ROW, 0] += 1.0
                table[TINY_ROW, 1] += t[i] / LEAST_KEYED  # higher powers are below rounding
            else:
                table[ZERO_ROW, 0] += 1.0
    return True


@kernel
def group_terms(count, centre, rest, half, moments, w, x, log_terms, pi):
    """For each group and node: Σ log(1 - p w) and Σ π, from the group's power sums.

    With 1 - p w = B (1 - ζ y), B = 1 - c w and ζ = h w / B:
        Σ log(1 - p w) = N log B - Σ_j ζ^j s_j / j
        Σ p / (1 - p w) = (c Σ_j ζ^j s_j + h Σ_j ζ^j s_{j+1}) / B
    """
    steepest = w.max()
    for i in range(count.size):
        n, h = count[i], half[i]
        c, q = centre[i], rest[i]
        s1, s2, s3 = moments[i, 0], moments[i, 1], moments[i, 2]
        s4, s5, s6 = moments[i, 3], moments[i, 4], moments[i, 5]
        a0, a1, a2 = factor(c, q)
        for m in range(w.size):
            inverse = 1.0 / (a0 + a1 * x[m] + a2 * w[m])
            z = h * w[m] * inverse
            tail = s3 / 3 + z * (s4 / 4 + z * (s5 / 5 + z * (s6 / 6)))
            log_terms[i, m] = -z * (s1 + z * (s2 / 2 + z * tail))
            series = s1 + z * (s2 + z * (s3 + z * (s4 + z * (s5 + z * s6))))
            pi[i, m] = x[m] * inverse * (c * (n + z * series) + h * series)
        if c * steepest < FEW_TERMS:
            for m in range(w.size):
                y = c * w[m]
                rest_of = 1 / 4 + y * (1 / 5 + y * (1 / 6 + y / 7))
                log_terms[i, m] -= n * y * (1.0 + y * (1 / 2 + y * (1 / 3 + y * rest_of)))
        else:
            for m in range(w.size):
                log_terms[i, m] += n * log_factor(c, q, w[m], x[m])


@kernel
def group_variances(count, centre, rest, half, moments, w, x, variance, negative):
    """For each group and node: Σ π (1 - π) = x Σ p (1 - p) / (1 - p w)², and Σ (1 - π).

    1/(1 - ζy)² = Σ_j (j+1) ζ^j y^j and p (1 - p) = c q + h (q - c) y - h² y², to order five.
    """
    s = np.empty(8)
    d = np.empty(6)
    for i in range(count.size):
        c, q, h = centre[i], rest[i], half[i]
        s[0], s[7] = count[i], 0.0
        for j in range(6):  # an assignment of slices would take two seconds to compile
            s[j + 1] = moments[i, j]
        for j in range(6):
            d[j] = (j + 1) * (c * q * s[j] + h * (q - c) * s[j + 1] - h * h * s[j + 2])
        a0, a1, a2 = factor(c, q)
        for m in range(w.size):
            inverse = 1.0 / (a0 + a1 * x[m] + a2 * w[m])
            z = h * w[m] * inverse
            series = d[0] + z * (d[1] + z * (d[2] + z * (d[3] + z * (d[4] + z * d[5]))))
            variance[i, m] = x[m] * inverse * inverse * series
            powers = s[1] + z * (s[2] + z * (s[3] + z * (s[4] + z * (s[5] + z * s[6]))))
            negative[i, m] = inverse * (q * (s[0] + z * powers) - h * powers)
