"""One set of many items, compiled from end to end: its summary, bounds, and the items of one band.

The search of `search.py` in one pass, for what is asked most: F_β or Dice, every k allowed, nothing
promised. Bounds on groups of the summary leave a band of neighbouring ones, whose items are sorted
and looked at one by one. Where the band is wide, the whole search is done instead.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf.compiled import kernel
from argmaxf.expected.kernels import factor, tilt
from argmaxf.expected.row_kernels import nodes_of, plausible
from argmaxf.expected.spread_kernels import squared_deviation, tilted_sums
from argmaxf.expected.summary import layout
from argmaxf.expected.summary.kernels import (
    group_terms,
    group_variances,
    lower_row,
    summarize,
    upper_row,
)
from argmaxf.expected.summary.layout import HALF_KEY, HIGH_BASE, HIGH_ROWS, LOW_BASE, SHIFT, TINY
from argmaxf.expected.value_kernels import BLOCK

ROWS, COLUMNS, TINY_ROW = layout.ROWS, layout.COLUMNS, layout.TINY_ROW
SLACK = 1e-12  # as in search.py
DOUBT, ROUNDING = 1e-12, 4e-15
WIDEST = 1 << 15  # items of a band at most: less work than a search of a million
BAD, WIDE = -1, -2  # instead of k: a value that is no probability; the band is too wide


@kernel
def number(key):
    """The number whose bit pattern is a key with zeros behind it."""
    bits = np.empty(1, np.int64)
    bits[0] = key << SHIFT
    return bits.view(np.float64)[0]


@kernel
def groups_of(table, rows, groups, moments):
    """Fill count, centre, 1 - centre, half width, low and high end of the groups, by falling p."""
    for g in range(rows.size):
        row = rows[g]
        groups[0, g] = table[row, 0]
        moments[g, 0] = table[row, 1] + table[row, 2]
        for j in range(5):
            moments[g, j + 1] = table[row, j + 3]
        if row == 0:
            groups[1:, g] = 1.0
            groups[2, g] = groups[3, g] = 0.0
        elif row == TINY_ROW:
            groups[1:, g] = 0.0
            groups[2, g], groups[3, g], groups[5, g] = 1.0, TINY, TINY
        elif row <= HIGH_ROWS:
            key = row - 1 + HIGH_BASE
            low, high = number(key), number(key + 1)
            middle = 0.5 * (low + high)
            groups[1, g], groups[2, g], groups[3, g] = 1.0 - middle, middle, low - middle
            groups[4, g], groups[5, g] = max(1.0 - high, 0.5), 1.0 - low
        else:
            key = HIGH_ROWS + HALF_KEY - row
            low, high = number(key), number(key + 1)
            middle = 0.5 * (low + high)
            groups[1, g], groups[2, g], groups[3, g] = middle, 1.0 - middle, middle - low
            groups[4, g], groups[5, g] = low, high


@kernel
def useful(groups, moments, c):
    """Σ p, what f reaches at least, and an upper bound on the best k (`largest_useful_k`)."""
    size = groups.shape[1]
    mean = 0.0
    for g in range(size):
        mean += groups[1, g] * groups[0, g] + groups[3, g] * moments[g, 0]
    k = mass = best = 0.0
    for g in range(size):
        k += groups[0, g]
        mass += groups[1, g] * groups[0, g] + groups[3, g] * moments[g, 0]
        middle = k + c.b_in * (1.0 + mass) + c.b_out * max(0.0, mean - mass)
        best = max(best, c.c * mass / middle)
    reach = c.c * mean / best - min(c.b_in, c.b_out) * mean + 1.0 if best > 0.0 else k
    return mean, best, min(k, reach)


@kernel
def slopes(low, high, state, decay, kept, lost, w, x, c):
    """Whether f only falls or only rises in a group, between the states at its ends."""
    a0, a1, a2 = factor(low, 1.0 - low)
    b0, b1, b2 = factor(high, 1.0 - high)
    most = down = least = down_most = 0.0
    for m in range(w.size):
        most += decay[0, m] * kept[m] * high * x[m] / (b0 + b1 * x[m] + b2 * w[m])
        least += decay[1, m] * low * x[m] / (a0 + a1 * x[m] + a2 * w[m])
        down += decay[1, m] / kept[m] * lost[m] * state[0, m]
        down_most += decay[0, m] * lost[m] * state[1, m]
    return c.c * most < (1.0 - SLACK) * down, c.c * least > (1.0 + SLACK) * down_most


@kernel
def band_of(groups, k, f, state, decay, u, w, x, c, reach):
    """Return the groups from the first to before the last that may hold the optimum."""
    size, nodes = groups.shape[1], u.size
    kept, lost = np.exp(-u), -np.expm1(-u)
    best = 0.0
    for g in range(1, size + 1):
        if k[g] <= reach:
            best = max(best, f[g])
    is_open, rises = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    for g in range(size):
        if k[g] >= reach:
            break
        ceiling = 0.0
        for m in range(nodes):
            ceiling += decay[g, m] * kept[m] * state[g + 1, m]
        if ceiling >= (1.0 - SLACK) * best:
            ends = state[g : g + 2], decay[g : g + 2]
            falls, rises[g] = slopes(groups[4, g], groups[5, g], *ends, kept, lost, w, x, c)
            is_open[g] = not falls
    return stretch(is_open, rises)


@kernel
def stretch(is_open, rises):
    """Return the groups from the first open one to after the last.

    One in which f only rises is left behind where f goes on rising in the next group.
    """
    first, stop = is_open.size, 0
    risen = -1  # a group in which f only rises, with nothing but such behind it so far
    for g in range(is_open.size):
        if risen >= 0 and not rises[g]:  # f may be best at the last item of that group
            first, stop = min(first, risen), max(stop, risen + 1)
        risen = g if rises[g] and is_open[g] else -1
        if is_open[g] and not rises[g]:
            first, stop = min(first, g), max(stop, g + 1)
    if risen >= 0:
        first, stop = min(first, risen), max(stop, risen + 1)
    return first, stop


@kernel
def gathered(p, first_row, last_row, low, high, out):
    """Copy the items whose rows of the summary are between two to `out`; return how many."""
    t = np.empty(1)
    bits = t.view(np.int64)
    filled = 0
    for i in range(p.size):
        v = p[i]
        if low <= v <= high and v > 0.0:
            t[0] = 1.0 - v if v >= 0.5 else v
            key = bits[0] >> SHIFT
            if v >= 0.5:
                row = upper_row(key) if key >= HIGH_BASE else 0
            else:
                row = lower_row(key) if key >= LOW_BASE else TINY_ROW
            if first_row <= row <= last_row:
                out[filled] = v
                filled += 1
    return filled


@kernel
def alone(f, top, k0):
    """Return `top`, the best item of a band; 0 where another is nearer than its error."""
    for i in range(1, f.size):
        if i != top and f[i] >= f[top] * (1.0 - DOUBT * abs(top - i) / (k0 + top) - ROUNDING):
            return 0
    return top


@kernel
def best_item(ascending, k0, f0, a, scale, u, w, x, c, reach, f):
    """Fill f after each item of the band, by exact differences; return the best number, or 0.

    f_{k+1} - f_k = Σ ω G e^{-uk} [e^{-u} c π - (1 - e^{-u}) A_k]; 0 for near ties.
    """
    n, nodes = ascending.size, u.size
    decay, kept, lost = np.empty(nodes), np.exp(-u), -np.expm1(-u)
    total = a.copy()
    value, top = f0, 0
    f[0] = -1.0
    for i in range(1, n + 1):
        if (i - 1) % BLOCK == 0:
            for m in range(nodes):
                decay[m] = scale[m] * math.exp(-u[m] * (k0 + i - 1))
        p = ascending[n - i]
        a0, a1, a2 = factor(p, 1.0 - p)
        step = 0.0
        for m in range(nodes):
            gain = c.c * p * x[m] / (a0 + a1 * x[m] + a2 * w[m])
            step += decay[m] * (kept[m] * gain - lost[m] * total[m])
            total[m] += gain
            decay[m] *= kept[m]
        value += step
        f[i] = value if k0 + i <= reach else -1.0
        if f[i] > f[top]:
            top = i
    return alone(f, top, k0)


@kernel
def spread(groups, moments, pi, ascending, first, stop, best, k, f, c, u, weight, w, x, log_g):
    """Standard deviation of the measure for the groups above a band and the best of its items."""
    nodes = u.size
    size = groups.shape[1]
    variance, negative = np.empty((size, nodes)), np.empty((size, nodes))
    group_variances(groups[0], groups[1], groups[2], groups[3], moments, w, x, variance, negative)
    pi_in, var_in, pi_out, var_out = np.empty((4, nodes))
    items = ascending.size
    tilted_sums(ascending[items - best :], w, x, pi_in, var_in)
    tilted_sums(ascending[: items - best], w, x, pi_out, var_out)
    for g in range(size):
        if g < first:
            pi_in += pi[g]
            var_in += variance[g]
        elif g >= stop:
            pi_out += pi[g]
            var_out += variance[g]
    outer = weight * np.exp(log_g - u * k)
    inside, outside = c.c - c.b_in * f, -f * c.b_out
    return math.sqrt(
        squared_deviation(u, outer, -f * k, inside, outside, pi_in, var_in, pi_out, var_out)
    )


@kernel
def decide_large(p, c):
    """Return k, the threshold, the expected value and its standard deviation.

    For b_in = b_out and no smoothing. k is BAD or WIDE where there is no answer.
    """
    table = np.zeros((ROWS, COLUMNS))
    if not summarize(p, table):
        return BAD, 0.0, 0.0, 0.0
    rows = np.flatnonzero(table[: TINY_ROW + 1, 0])
    if rows.size == 0:
        return WIDE, 0.0, 0.0, 0.0
    groups, moments = np.empty((6, rows.size)), np.empty((rows.size, 6))
    groups_of(table, rows, groups, moments)
    mean, _, reach = useful(groups, moments, c)
    fewest, most = plausible(mean, p.size)
    u, weight = nodes_of(1.0 + c.b_in * fewest, reach + c.b_in * most)
    w, x = tilt(u, c.b_in)
    size, nodes = rows.size, u.size
    logs, pi = np.empty((size, nodes)), np.empty((size, nodes))
    group_terms(groups[0], groups[1], groups[2], groups[3], moments, w, x, logs, pi)
    log_g = np.zeros(nodes)
    state, decay = np.zeros((size + 1, nodes)), np.empty((size + 1, nodes))
    k, f = np.zeros(size + 1), np.zeros(size + 1)
    for g in range(size):
        k[g + 1] = k[g] + groups[0, g]
        for m in range(nodes):
            log_g[m] += logs[g, m]
            state[g + 1, m] = state[g, m] + c.c * pi[g, m]
    scale = weight * np.exp(log_g)
    for g in range(size + 1):
        for m in range(nodes):
            decay[g, m] = scale[m] * math.exp(-u[m] * k[g])
            f[g] += decay[g, m] * state[g, m]
        if k[g] >= reach:
            break
    first, stop = band_of(groups, k, f, state, decay, u, w, x, c, reach)
    if stop <= first or k[stop] - k[first] > WIDEST:
        return WIDE, 0.0, 0.0, 0.0
    items = np.empty(int(k[stop] - k[first]))
    gathered(p, rows[first], rows[stop - 1], groups[4, stop - 1], groups[5, first], items)
    items.sort()
    values = np.empty(items.size + 1)
    best = best_item(items, k[first], f[first], state[first], scale, u, w, x, c, reach, values)
    if best == 0:
        return WIDE, 0.0, 0.0, 0.0
    chosen, value = int(k[first]) + best, values[best]
    std = spread(
        groups, moments, pi, items, first, stop, best, chosen, value, c, u, weight, w, x, log_g
    )
    return chosen, items[items.size - best], value, std
