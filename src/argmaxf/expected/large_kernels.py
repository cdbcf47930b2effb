"""One set of many items, compiled from end to end: its summary, bounds, and the items of one band.

The search of `search.py` in one pass, for what is asked most: a ratio of counts without smoothing
(F_β, Jaccard), every k allowed, nothing promised. Bounds on groups of the summary leave a band of
neighbouring ones, whose items are sorted and looked at one by one. Where the band is wide, or sets
are too near for doubles, the whole search is done instead.

`large_gain_kernels.py` climbs f, `large_loss_kernels.py` the loss, where f is near 1 (`form.py` has
the formulas). What both share is here. Φ has a scale ω Q, one for all borders of groups where Q
does not change (`two` = 0: b_in = b_out), or one for each (`two` = 1).
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf.compiled import kernel
from argmaxf.expected.kernels import tilt
from argmaxf.expected.product_kernels import log_product
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
FEW, CROWDED = 1 << 14, 8  # so few items are sooner looked at one by one where groups have fewer
NEAR_ONE = 0.98  # beyond, the loss must be climbed: differences of f are lost
# Instead of k: a value that is no probability; the band too wide or its best in doubt; f near 1
BAD, WIDE, ONE = -1, -2, -3
NO_ANSWER = WIDE, 0.0, 0.0, 0.0


@kernel
def summary_of(p):
    """Return whether all are probabilities, and the rows of the summary with items as groups."""
    table = np.zeros((ROWS, COLUMNS))
    good = summarize(p, table)
    rows = np.flatnonzero(table[: TINY_ROW + 1, 0])
    groups, moments = np.empty((6, rows.size)), np.empty((rows.size, 6))
    groups_of(table, rows, groups, moments)
    return good, rows, groups, moments


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
    """Σ p, the range of the best k, and what its value is at least (`form.useful_sizes`)."""
    size = groups.shape[1]
    mean = total = 0.0
    for g in range(size):
        mean += groups[1, g] * groups[0, g] + groups[3, g] * moments[g, 0]
        total += groups[0, g]
    k = mass = best = 0.0
    for g in range(size):
        k += groups[0, g]
        mass += groups[1, g] * groups[0, g] + groups[3, g] * moments[g, 0]
        middle = k + c.b_in * (1.0 + mass) + c.b_out * max(0.0, mean - mass)
        best = max(best, c.c * mass / middle)
    least, most = total, 1.0
    fewest, _ = plausible(mean, total)
    k = mass = 0.0
    for g in range(size):
        mass += groups[1, g] * groups[0, g] + groups[3, g] * moments[g, 0]
        x = max(k + 1.0 + c.b_in * mass, min(1.0 + c.b_in, c.b_out) * fewest)
        if c.c * mass >= best * (1.0 - SLACK) * x:
            least = min(least, k + 1.0)
            most = k + groups[0, g]
        k += groups[0, g]
    if best > 0.0:
        most = min(most, c.c * mean / best - min(c.b_in, c.b_out) * mean + 1.0)
    return mean, least, most, best


@kernel
def nodes_for(mean, n, least, reach, c):
    """Nodes for sets of `least` to `reach` items, and the tilts inside and outside of them."""
    fewest, most = plausible(mean, n)
    low = max(least + min(c.b_in, c.b_out) * fewest, min(1.0 + c.b_in, c.b_out) * fewest)
    u, weight = nodes_of(low, reach + max(c.b_in, c.b_out) * most)
    w_in, x_in = tilt(u, c.b_in)
    w_out, x_out = (w_in, x_in) if c.b_in == c.b_out else tilt(u, c.b_out)
    return u, weight, (w_in, x_in, w_out, x_out)


@kernel
def terms_of(groups, moments, w, x):
    """Σ log(1 - p w) and Σ π of each group, at each node."""
    shape = groups.shape[1], w.size
    logs, pi = np.empty(shape), np.empty(shape)
    group_terms(groups[0], groups[1], groups[2], groups[3], moments, w, x, logs, pi)
    return logs, pi


@kernel
def variances_of(groups, moments, w, x):
    """Σ π (1 - π) and Σ (1 - π) of each group, at each node."""
    shape = groups.shape[1], w.size
    variance, negative = np.empty(shape), np.empty(shape)
    group_variances(groups[0], groups[1], groups[2], groups[3], moments, w, x, variance, negative)
    return variance, negative


@kernel
def borders_of(groups, reach):
    """How many items there are above each border of groups, and the last border worth a look."""
    size = groups.shape[1]
    k = np.zeros(size + 1)
    last = size
    for g in range(size):
        k[g + 1] = k[g] + groups[0, g]
        if k[g + 1] >= reach and last == size:
            last = g + 1
    return k, last


@kernel
def scales_of(log_in, log_out, weight, two):
    """ω Q at the borders of groups: of one that stands for all where b_in = b_out.

    What is outside is summed from below, so that nothing cancels.
    """
    size, nodes = log_out.shape
    scale = np.empty((two * size + 1, nodes))
    log_q = np.zeros(nodes)
    for g in range(size, -1, -1):
        for m in range(nodes):
            scale[two * g, m] = log_q[m]
            if g > 0:
                log_q[m] += log_out[g - 1, m]
    log_q[:] = 0.0
    for g in range(two * size + 1):
        for m in range(nodes):
            scale[g, m] = weight[m] * math.exp(log_q[m] + scale[g, m])
            if g < two * size:
                log_q[m] += log_in[g, m]
    return scale


@kernel
def climbed_by(groups, moments, mean, n, least, reach, c):
    """What both climbs start from: nodes, tilts, π inside and outside, k, scale and decay.

    The groups go to the last border worth a look, `len(decay) - 1`.
    """
    u, weight, tilts = nodes_for(mean, n, least, reach, c)
    w_in, x_in, w_out, x_out = tilts
    two = int(c.b_in != c.b_out)
    log_in, pi_in = terms_of(groups, moments, w_in, x_in)
    log_out, pi_out = terms_of(groups, moments, w_out, x_out) if two else (log_in, pi_in)
    k, last = borders_of(groups, reach)
    scale, decay = scales_of(log_in, log_out, weight, two), decays_of(k, last, u)
    return u, tilts, two, pi_in, pi_out, k, scale, decay


@kernel
def renew(outer, u, k, i):
    """Compute e^{-uk} afresh for every item i that begins a block: rounding cannot build up."""
    if i % BLOCK == 0:
        for m in range(u.size):
            outer[m] = math.exp(-u[m] * k)


@kernel
def decays_of(k, last, u):
    """e^{-uk} at the borders up to the last one."""
    decay = np.empty((last + 1, u.size))
    for g in range(last + 1):
        for m in range(u.size):
            decay[g, m] = math.exp(-u[m] * k[g])
    return decay


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
def items_of(p, rows, groups, k, first, stop):
    """The items of the groups from the first to before the last, sorted; none if too many."""
    if stop <= first or k[stop] - k[first] > WIDEST:
        return np.empty(0)
    items = np.empty(int(k[stop] - k[first]))
    gathered(p, rows[first], rows[stop - 1], groups[4, stop - 1], groups[5, first], items)
    items.sort()
    return items


@kernel
def widen(band, g, is_open, rises, risen):
    """Take a group into the band, if f may be best in it; return whether f has risen up to here.

    In a group where f only rises it may be best at the last item, unless it rises in the next too.
    """
    first, stop = band
    if risen >= 0 and not rises:
        first, stop = min(first, risen), max(stop, risen + 1)
    if is_open and not rises:
        first, stop = min(first, g), max(stop, g + 1)
    return (first, stop), g if is_open and rises else -1


@kernel
def best_of(value, k0, least, reach, shared):
    """Return how many items of a band are best, given the value after each; 0 for near ties.

    Sets share the terms of common items (`shared`) or, where the loss is climbed, none.
    """
    top = 0
    for i in range(1, value.size):
        if least <= k0 + i <= reach and (top == 0 or value[i] > value[top]):
            top = i
    if top == 0:
        return 0
    for i in range(1, value.size):
        part = abs(top - i) / (k0 + max(top, i)) if shared else 1.0
        error = abs(value[top]) * (DOUBT * part + ROUNDING)
        if i != top and k0 + i <= reach and value[i] >= value[top] - error:
            return 0
    return top


@kernel
def scale_at(scale, items, best, tilts, two):
    """ω Q after the best of a band's items, afresh: products of thousands of factors drift."""
    if not two:
        return scale.copy()
    w_in, x_in, w_out, x_out = tilts
    chosen = items[items.size - best :]
    inside, outside = np.empty(w_in.size), np.empty(w_in.size)
    log_product(chosen, w_in, x_in, inside)
    log_product(chosen, w_out, x_out, outside)
    return scale * np.exp(inside - outside)


@kernel
def chosen_pi(pi, items, cut, tilts):
    """Σ π over the groups above a band and the best of its items."""
    first, _, best = cut
    total, variance = np.empty((2, pi.shape[1]))
    tilted_sums(items[items.size - best :], tilts[0], tilts[1], total, variance)
    for g in range(first):
        total += pi[g]
    return total


@kernel
def spread(groups, moments, pi_out, items, cut, of, inside, scale, u, tilts):
    """Standard deviation of the measure for the groups above a band and the best of its items.

    `cut` are the band's groups and the best of its items, `of` are a, b and d where the numerator
    less f times the denominator is, up to its sign, a times a sum over the chosen items (`inside`
    is its tilted mean) and b R + d; `scale` is ω e^{-uk} Q.
    """
    w_in, x_in, w_out, x_out = tilts
    first, stop, best = cut
    ignored, chosen_var, rest_pi, rest_var = np.empty((4, u.size))
    tilted_sums(items[items.size - best :], w_in, x_in, ignored, chosen_var)
    tilted_sums(items[: items.size - best], w_out, x_out, rest_pi, rest_var)
    var_in, _ = variances_of(groups[:, :first], moments[:first], w_in, x_in)
    var_out, _ = variances_of(groups[:, stop:], moments[stop:], w_out, x_out)
    for g in range(first):
        chosen_var += var_in[g]
    for g in range(stop, groups.shape[1]):
        rest_pi += pi_out[g]
        rest_var += var_out[g - stop]
    a, b, d = of
    return math.sqrt(squared_deviation(u, scale, d, a, b, inside, chosen_var, rest_pi, rest_var))


@kernel
def is_lost(scale, first, stop, two):
    """Whether Q at the top of a band is too small to be told from 0, and at its end is not."""
    lost = (scale[two * first] < 1e-290) & (scale[two * stop] > 1e-290)
    return bool(two) and lost.any()
