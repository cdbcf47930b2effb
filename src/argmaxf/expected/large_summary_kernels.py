"""The summary of one set that is read twice: how fine it is depends on the set.

Rows are those of `grouped/groups.py` with a number of bits that suits, and one row at either end
for all that is nearer to 1 or to 0 than some power of two. A row's six power sums give its sums at
the nodes to the last digit if ζ = h w / (1 - c w) is at most 2^-7 (`summary.kernels.group_terms`):
with 6 bits at every node, with fewer where w is small, as it is where many items are positive.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.grouped.group_kernels import ROOM, add_powers, near
from argmaxf.expected.grouped.groups import BITS, COLUMNS, HIGH_BASE, LOW_BASE, MANTISSA, TINY
from argmaxf.expected.quadrature import plausible_positives

HALF = 1022  # the exponent of 1/2, as it is stored
SHALLOW = 12  # octaves below 1/2, at most, that are worth a layout of its own
LEAST_BITS = 4
STEEP = 2.0**-7  # ζ at most
STEEPEST = 17.0  # u times the least denominator, at the last node of the short rule
MARGIN = 4.0  # thresholds may be so much nearer to 0 or 1 than they are guessed to be
SAMPLE = 4096  # items that the layout is chosen by
WHOLE = 2.0**26


class Layout(NamedTuple):
    """How many bits of the mantissa of t a row has, and the keys of its first rows by rising t.

    t is 1 - p from 1/2 on, with rows from key `high` on, and p below, with rows from `low` on.
    """

    bits: int
    high: int
    low: int


FINEST = Layout(BITS, HIGH_BASE, LOW_BASE)


@kernel
def sampled(p):
    """Guess Σ p, how many are 1/2 or more, their Σ p, and how many are far from both ends."""
    step = max(1, p.size // SAMPLE)
    mean = many = mass = middle = 0.0
    for i in range(0, p.size, step):
        high = p[i] >= 0.5
        mean += step * p[i]
        many += step * high
        mass += step * p[i] * high
        middle += step * (0.125 <= p[i] < 0.875)
    return mean, many, mass, middle


@kernel
def layout_for(p, c):
    """Return the layout that suits p, to judge by a few thousand of its items.

    Where that is misjudged, the band is too wide or nodes are not resolved: no answer, but no wrong
    one. The best set has what is above f / (c - f (b_in - b_out)), more or less; f is at least
    about what all items of 1/2 or more have, and at most c / (1 + b_in).
    """
    finest = Layout(BITS, HIGH_BASE, LOW_BASE)
    mean, many, mass, middle = sampled(p)
    if not many > 0.0 or not 0.0 <= mean <= p.size:
        return finest
    f = c.c * mass / (many + c.b_in * mass + c.b_out * (mean - mass))
    low = f / (c.c - f * (c.b_in - c.b_out))
    w = steepest_tilt(mean, p.size, c)
    upper, lower = depth_for(c.b_out / (1.0 + c.b_out), w), depth_for(low, w)
    if max(upper, lower) > SHALLOW:
        return finest
    # So many bits that the groups take about as long as the items of a band.
    bits = BITS if middle == 0.0 else round(0.5 * math.log2(middle / 18.0))
    bits = min(max(bits, LEAST_BITS), BITS)
    layout = Layout(bits, (HALF - upper) << bits, (HALF - lower) << bits)
    return layout if resolves(layout, w) else finest


@kernel
def steepest_tilt(mean, n, c):
    """Guess the w of the last node, for sets of any size."""
    fewest, _ = plausible_positives(mean, n)
    x = max(1.0 + min(c.b_in, c.b_out), min(1.0 + c.b_in, c.b_out) * fewest)
    return -math.expm1(-max(c.b_in, c.b_out) * STEEPEST / x)


@kernel
def depth_for(far, w):
    """How many octaves below 1/2 need rows of their own; the best cut is so far from the end."""
    width = min(far / MARGIN, STEEP * (1.0 - w) / w)
    return math.ceil(-math.log2(2.0 * max(width, TINY)))


@kernel
def resolves(layout, w):
    """Whether ζ is at most 2^-7 in every row of a layout, at nodes of at most w."""
    if layout.bits == BITS and layout.high == HIGH_BASE:
        return True
    width = 0.5 ** (HALF - (max(layout.high, layout.low) >> layout.bits) + 1)
    return width * w <= STEEP * (1.0 - w) and w <= 2.0 ** (layout.bits - BITS) * (2.0 - w)


@kernel
def upper_rows(layout):
    """The number of rows for p of 1/2 or more, but for the one next to 1."""
    return (HALF << layout.bits) - layout.high + 1


@kernel
def last_row(layout):
    """The row next to 0; p = 0 is in none."""
    return upper_rows(layout) + (HALF << layout.bits) - layout.low + 1


@kernel
def row_of(v, key, layout):
    """The row of a probability above 0, from the key of its t."""
    if v >= 0.5:
        return max(1 + key - layout.high, 0)
    return min(upper_rows(layout) + (HALF << layout.bits) - key, last_row(layout))


@kernel
def frames_of(layout):
    """Centre and half width of t in each row; 0 and the whole width in those at the ends."""
    top, last = upper_rows(layout), last_row(layout)
    frames = np.zeros((last + 1, 2))
    edge = np.empty(2)
    bits = edge.view(np.int64)
    shift = MANTISSA - layout.bits
    for row in range(last + 1):
        upper = row <= top
        key = row - 1 + layout.high if upper else top + (HALF << layout.bits) - row
        bits[0], bits[1] = key << shift, (key + 1) << shift
        if row == 0 or row == last:
            frames[row, 1] = edge[1]
        else:
            frames[row, 0], frames[row, 1] = 0.5 * (edge[0] + edge[1]), 0.5 * (edge[1] - edge[0])
    return frames


@reordering_kernel
def add_end(p, t, above, below, scale, row):
    """Add the items between two probabilities to the row next to 0 or 1, y = scale t in [0, 1].

    As `add_powers` does, but all at once.
    """
    count = 0
    lead = rest = y2 = y3 = y4 = y5 = y6 = 0.0
    for i in range(p.size):
        inside = above < p[i] < below
        y = scale * t[i] if inside else 0.0
        whole = np.floor(y * WHOLE)
        square = y * y
        fourth = square * square
        count += inside
        lead += whole
        rest += y * WHOLE - whole
        y2 += square
        y3 += square * y
        y4 += fourth
        y5 += fourth * y
        y6 += fourth * square
    row[0] += count
    row[1] += lead / WHOLE
    row[2] += rest / WHOLE
    row[3] += y2
    row[4] += y3
    row[5] += y4
    row[6] += y5
    row[7] += y6


@kernel
def table_of(p, layout, frames):
    """Return whether all are probabilities, and the sums of each row.

    They are the count, Σ y in two parts, Σ y² … Σ y⁶. Most items are often in the rows at the
    ends, whose sums need no places in a table.
    """
    last = len(frames) - 1
    table = np.zeros((last + 1, COLUMNS))
    low, high = frames[last, 1], 1.0 - frames[0, 1]
    t, places = np.empty(ROOM), np.empty(ROOM, np.int64)
    bits = t.view(np.int64)
    shift = MANTISSA - layout.bits
    half, mask = 1 << (shift - 1), (1 << shift) - 1
    for start in range(0, p.size, ROOM):
        part = p[start : start + ROOM]
        valid = True
        for i in range(part.size):
            v = part[i]
            valid &= (v >= 0.0) & (v <= 1.0)
            t[i] = 1.0 - v if v >= 0.5 else v
        if not valid:
            return False, table
        add_end(part, t, high, 2.0, 1.0 / frames[0, 1], table[0])
        add_end(part, t, 0.0, low, 1.0 / low, table[last])
        inner = 0
        for i in range(part.size):
            places[inner] = i
            inner += low <= part[i] <= high
        for i in places[:inner]:
            row = row_of(part[i], bits[i] >> shift, layout)
            add_powers(table[row], (bits[i] & mask) - half, half)
    return True, table


@kernel
def groups_of(table, frames, layout):
    """Return the rows that have items, by falling p, and what the climb needs to know of them.

    Count, centre, 1 - centre, half width, low and high end of each; and its power sums.
    """
    rows = np.flatnonzero(table[:, 0])
    groups, moments = np.empty((6, rows.size)), np.empty((rows.size, 6))
    for g in range(rows.size):
        row = rows[g]
        moments[g, 0] = table[row, 1] + table[row, 2]
        for j in range(5):
            moments[g, j + 1] = table[row, j + 3]
        centre, half = frames[row, 0], frames[row, 1]
        if row == 0 and moments[g, 0] == 0.0:  # all are 1
            half = 0.0
        low, high = max(centre - half, 0.0), centre + half
        groups[0, g] = table[row, 0]
        if row <= upper_rows(layout):
            groups[1, g], groups[2, g], groups[3, g] = 1.0 - centre, centre, -half
            groups[4, g], groups[5, g] = max(1.0 - high, 0.5), 1.0 - low
        else:
            groups[1, g], groups[2, g], groups[3, g] = centre, 1.0 - centre, half
            groups[4, g], groups[5, g] = low, high
    return rows, groups, moments


@kernel
def gathered(p, first_row, last_row, low, high, layout, out):
    """Copy the items whose rows of the summary are between two to `out`; return how many."""
    some, t = np.empty(ROOM), np.empty(1)
    bits = t.view(np.int64)
    filled = 0
    for start in range(0, p.size, ROOM):
        found = near(p[start : start + ROOM], low, high, some)
        for v in some[:found]:
            t[0] = 1.0 - v if v >= 0.5 else v
            row = row_of(v, bits[0] >> (MANTISSA - layout.bits), layout)
            if v > 0.0 and first_row <= row <= last_row:
                out[filled] = v
                filled += 1
    return filled
