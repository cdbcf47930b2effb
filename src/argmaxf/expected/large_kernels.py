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

from argmaxf._base.compiled import kernel
from argmaxf.expected.grouped.group_kernels import group_terms, group_variances
from argmaxf.expected.large_summary_kernels import (
    frames_of,
    gathered,
    groups_of,
    table_of,
)
from argmaxf.expected.product_kernels import log_product
from argmaxf.expected.quadrature import plausible_positives, reciprocal_nodes
from argmaxf.expected.spread_kernels import squared_deviation, tilted_sums
from argmaxf.expected.tilt_kernels import BLOCK, tilt

SLACK = 1e-12  # as in search.py
DOUBT, ROUNDING = 1e-12, 4e-15
WIDEST = 1 << 15  # items of a band at most: less work than a search of a million
FEW, CROWDED = 1 << 14, 8  # so few items are sooner looked at one by one where groups have fewer
NEAR_ONE = 0.98  # beyond, the loss must be climbed: differences of f are lost
# Instead of k: a value that is no probability; the band too wide or its best in doubt; f near 1
BAD, WIDE, ONE = -1, -2, -3
NO_ANSWER = WIDE, 0.0, 0.0, 0.0


@kernel
def summary_of(p, layout):
    """Return whether all are probabilities, and the rows of the summary with items as groups."""
    frames = frames_of(layout)
    good, table = table_of(p, layout, frames)
    return good, *groups_of(table, frames, layout)


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
    least, most = np.inf, 1.0
    fewest, _ = plausible_positives(mean, total)
    floor = best * (1.0 - SLACK)
    k = mass = 0.0
    for g in range(size):
        above = mass
        mass += groups[1, g] * groups[0, g] + groups[3, g] * moments[g, 0]
        x = max(k + 1.0 + c.b_in * mass, min(1.0 + c.b_in, c.b_out) * fewest)
        rest = min(c.b_in, c.b_out) * fewest
        if c.c * mass >= floor * max(x, k + 1.0 + rest):
            if least == np.inf:
                least = first_useful(k, above, groups[5, g], c.c, floor, rest)
            most = k + groups[0, g]
        k += groups[0, g]
    if best > 0.0:
        most = min(most, c.c * mean / best - min(c.b_in, c.b_out) * mean + 1.0)
    return mean, min(least, total), most, best


@kernel
def first_useful(k, mass, high, c, floor, rest):
    """The first size in a group, after k items, that may reach a value: items add `high` at most.

    c (M + (i - k) high) ≥ floor (i + rest).
    """
    if c * high <= floor:
        return k + 1.0
    return max(k + 1.0, math.floor((floor * rest - c * (mass - k * high)) / (c * high - floor)))


@kernel
def nodes_for(mean, n, least, reach, c):
    """Nodes for sets of `least` to `reach` items, and the tilts inside and outside of them."""
    fewest, most = plausible_positives(mean, n)
    low = max(least + min(c.b_in, c.b_out) * fewest, min(1.0 + c.b_in, c.b_out) * fewest)
    u, weight = reciprocal_nodes(low, reach + max(c.b_in, c.b_out) * most)
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
def items_of(p, layout, rows, groups, k, first, stop):
    """The items of the groups from the first to before the last, sorted; none if too many."""
    if stop <= first or k[stop] - k[first] > WIDEST:
        return np.empty(0)
    items = np.empty(int(k[stop] - k[first]))
    ends = groups[4, stop - 1], groups[5, first]
    gathered(p, rows[first], rows[stop - 1], *ends, layout, items)
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
