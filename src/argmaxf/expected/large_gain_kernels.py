"""One set of many items by one compiled loop that climbs f itself (see `large_kernels.py`)."""

from __future__ import annotations

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.large_kernels import (
    BAD,
    CROWDED,
    FEW,
    NEAR_ONE,
    NO_ANSWER,
    ONE,
    SLACK,
    WIDE,
    best_of,
    chosen_pi,
    climbed_by,
    is_lost,
    items_of,
    renew,
    scale_at,
    spread,
    summary_of,
    useful,
    widen,
)
from argmaxf.expected.large_summary_kernels import resolves
from argmaxf.expected.tilt_kernels import factor


@kernel
def values_of(a, scale, decay, two):
    """f at the borders: Σ_m e^{-uk} ω Q A."""
    f = np.zeros(len(decay))
    for g in range(len(decay)):
        for m in range(decay.shape[1]):
            f[g] += decay[g, m] * scale[two * g, m] * a[g, m]
    return f


@kernel
def slopes(low, high, a, scale, before, after, kept, lost, tilts, c):
    """Whether f only falls or only rises in a group, between what holds at its two borders.

    `before` and `after` are e^{-uk} there, or `before` at a k inside from which on sets matter.
    """
    w_in, x_in, w_out, x_out = tilts
    a0, a1, a2 = factor(low, 1.0 - low)
    b0, b1, b2 = factor(high, 1.0 - high)
    most = down = least = down_most = 0.0
    for m in range(kept.size):
        pull = w_out[m] - w_in[m]
        share_low = low / (a0 + a1 * x_out[m] + a2 * w_out[m])
        share_high = high / (b0 + b1 * x_in[m] + b2 * w_in[m])
        most_scale = scale[-1, m] * before[m]
        least += after[m] * scale[0, m] * share_low * (c.c * x_in[m] + pull * a[0, m])
        most += most_scale * kept[m] * share_high * (c.c * x_in[m] + pull * a[1, m])
        down += after[m] / kept[m] * lost[m] * scale[0, m] * a[0, m]
        down_most += most_scale * lost[m] * a[1, m]
    return most < (1.0 - SLACK) * down, least > (1.0 + SLACK) * down_most


@kernel
def band_of(groups, k, f, a, scale, decay, two, u, tilts, c, least, reach):
    """Return the groups from the first to before the last that may hold the optimum."""
    kept, lost = np.exp(-u), -np.expm1(-u)
    last = f.size - 1
    best = 0.0
    for g in range(1, last + 1):
        if least <= k[g] <= reach:
            best = max(best, f[g])
    band, risen = (last, 0), -1
    for g in range(last):
        if k[g + 1] < least:
            continue
        before = decay[g] if k[g] >= least - 1.0 else np.exp(-u * (least - 1.0))
        ceiling = 0.0
        for m in range(u.size):
            ceiling += before[m] * kept[m] * scale[two * (g + 1), m] * a[g + 1, m]
        is_open, rises = ceiling >= (1.0 - SLACK) * best, False
        if is_open:
            here = a[g : g + 2], scale[two * g : two * (g + 1) + 1], before, decay[g + 1]
            falls, rises = slopes(groups[4, g], groups[5, g], *here, kept, lost, tilts, c)
            is_open = not falls
        band, risen = widen(band, g, is_open, rises, risen)
    return widen(band, last, False, False, risen)[0]


@reordering_kernel
def climb(items, k0, f0, a, scale, u, tilts, c):
    """Return f after each item of the band, by exact differences; A and ω Q are used up.

    f_k - f_{k-1} = Σ ω Q e^{-u(k-1)} [e^{-u} (g + (r - 1) (A + g)) - (1 - e^{-u}) A]; the item
    adds g to A and multiplies Q by r = (1 - p w_in) / (1 - p w_out).
    """
    w_in, x_in, w_out, x_out = tilts
    n, nodes = items.size, u.size
    outer, kept, lost = np.empty(nodes), np.exp(-u), -np.expm1(-u)
    f = np.empty(n + 1)
    f[0] = f0
    for i in range(1, n + 1):
        renew(outer, u, k0 + i - 1, i - 1)
        p = items[n - i]
        a0, a1, a2 = factor(p, 1.0 - p)
        step = 0.0
        for m in range(nodes):
            gain = c.c * p * x_in[m] / (a0 + a1 * x_in[m] + a2 * w_in[m])
            more = p * (w_out[m] - w_in[m]) / (a0 + a1 * x_out[m] + a2 * w_out[m])
            rise = gain + more * (a[m] + gain)
            step += outer[m] * scale[m] * (kept[m] * rise - lost[m] * a[m])
            a[m] += gain
            scale[m] *= 1.0 + more
            outer[m] *= kept[m]
        f[i] = f[i - 1] + step
    return f


@kernel
def best_set(p, layout, rows, groups, moments, mean, least, reach, c):
    """Return k, the threshold, the expected value and its standard deviation, or NO_ANSWER."""
    u, tilts, two, pi_in, pi_out, k, scale, decay = climbed_by(
        groups, moments, mean, p.size, least, reach, c
    )
    if not resolves(layout, max(tilts[0].max(), tilts[2].max())):
        return NO_ANSWER
    a = np.zeros_like(decay)
    for g in range(len(decay) - 1):
        for m in range(u.size):
            a[g + 1, m] = a[g, m] + c.c * pi_in[g, m]
    f = values_of(a, scale, decay, two)
    first, stop = band_of(groups, k, f, a, scale, decay, two, u, tilts, c, least, reach)
    items = items_of(p, layout, rows, groups, k, first, stop)
    if items.size == 0 or is_lost(scale, first, stop, two):
        return NO_ANSWER
    values = climb(
        items, k[first], f[first], a[first].copy(), scale[two * first].copy(), u, tilts, c
    )
    best = best_of(values, k[first], least, reach, True)
    if best == 0:
        return NO_ANSWER
    chosen = int(k[first]) + best
    cut = first, stop, best
    inside = chosen_pi(pi_in, items, cut, tilts)
    end = scale_at(scale[two * first], items, best, tilts, two) * np.exp(-u * chosen)
    value = c.c * np.sum(end * inside)
    of = c.c - c.b_in * value, -c.b_out * value, -chosen * value
    std = spread(groups, moments, pi_out, items, cut, of, inside, end, u, tilts)
    return chosen, items[items.size - best], value, std


@kernel
def decide_large(p, c, layout):
    """Decide p by climbing f; BAD, WIDE or ONE instead of k where that gives no answer."""
    good, rows, groups, moments = summary_of(p, layout)
    if not good:
        return BAD, 0.0, 0.0, 0.0
    if rows.size == 0 or (p.size <= FEW and rows.size * CROWDED > p.size):
        return NO_ANSWER
    mean, least, reach, floor = useful(groups, moments, c)
    if floor > NEAR_ONE:
        return ONE, 0.0, 0.0, 0.0
    k, threshold, f, std = best_set(p, layout, rows, groups, moments, mean, least, reach, c)
    if f > NEAR_ONE or (k == WIDE and floor > 0.5):
        return ONE, 0.0, 0.0, 0.0
    return k, threshold, f, std
