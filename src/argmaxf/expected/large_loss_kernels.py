"""One set of many items by one compiled loop that climbs the loss 1 - f (see `large_kernels.py`).

For f near 1 and c = 1 + b_in. B = false + b_out · missed, the tilted number of negatives inside and
of positives outside; the latter is summed from below, so that little is not lost in much.
"""

from __future__ import annotations

import numpy as np

from argmaxf._base.compiled import kernel
from argmaxf.expected.large_kernels import (
    NO_ANSWER,
    SLACK,
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
    variances_of,
    widen,
)
from argmaxf.expected.large_summary_kernels import resolves
from argmaxf.expected.tilt_kernels import factor


@kernel
def errors_of(negative, pi_out, last):
    """Σ (1 - π) above and Σ π below each border, up to the last one."""
    size, nodes = pi_out.shape
    false, missed = np.zeros((last + 1, nodes)), np.zeros((size + 1, nodes))
    for g in range(last):
        for m in range(nodes):
            false[g + 1, m] = false[g, m] + negative[g, m]
    for g in range(size - 1, -1, -1):
        for m in range(nodes):
            missed[g, m] = missed[g + 1, m] + pi_out[g, m]
    return false, missed


@kernel
def losses_of(false, missed, scale, decay, two, b_out):
    """The loss at the borders: Σ_m e^{-uk} ω Q B."""
    loss = np.zeros(len(decay))
    for g in range(len(decay)):
        for m in range(decay.shape[1]):
            loss[g] += decay[g, m] * scale[two * g, m] * (false[g, m] + b_out * missed[g, m])
    return loss


@kernel
def slopes(low, high, false, missed, scale, before, after, kept, lost, tilts, c):
    """Whether the loss only falls or only rises in a group (`form.Loss.steps`)."""
    w_in, _, w_out, x_out = tilts
    a0, a1, a2 = factor(low, 1.0 - low)
    b0, b1, b2 = factor(high, 1.0 - high)
    up_most = down_least = up_least = down_most = 0.0
    for m in range(kept.size):
        factor_low = 1.0 / (a0 + a1 * x_out[m] + a2 * w_out[m])
        factor_high = 1.0 / (b0 + b1 * x_out[m] + b2 * w_out[m])
        pull = w_out[m] - w_in[m]
        fewest = false[0, m] + c.b_out * missed[1, m]
        largest = false[1, m] + c.b_out * missed[0, m]
        small, large = scale[0, m], scale[-1, m]  # Q never falls: b_out ≥ b_in
        bottom = factor_high * (1.0 - high - high * c.b_out * x_out[m])
        bottom += pull * low * factor_low * fewest
        top = factor_low * (1.0 - low - low * c.b_out * x_out[m])
        top += pull * high * factor_high * largest
        start, one = before[m], before[m] * kept[m]
        up_most += one * large * max(top, 0.0)
        down_least += after[m] * (lost[m] / kept[m] * small * fewest - small * min(top, 0.0))
        up_least += after[m] * small * max(bottom, 0.0)
        down_most += start * lost[m] * large * largest - one * large * min(bottom, 0.0)
    return up_most < (1.0 - SLACK) * down_least, up_least > (1.0 + SLACK) * down_most


@kernel
def band_of(groups, k, loss, false, missed, scale, decay, two, u, tilts, c, least, reach):
    """Return the groups from the first to before the last that may hold the optimum."""
    kept, lost = np.exp(-u), -np.expm1(-u)
    last = loss.size - 1
    best = np.inf
    for g in range(1, last + 1):
        if least <= k[g] <= reach:
            best = min(best, loss[g])
    band, risen = (last, 0), -1
    for g in range(last):
        if k[g + 1] < least:
            continue
        floor = 0.0
        for m in range(u.size):
            errors = false[g, m] + c.b_out * missed[g + 1, m]
            floor += decay[g + 1, m] * scale[two * g, m] * errors
        is_open, rises = floor <= (1.0 + SLACK) * best, False
        if is_open:
            errors = false[g : g + 2], missed[g : g + 2]
            before = decay[g] if k[g] >= least - 1.0 else np.exp(-u * (least - 1.0))
            here = scale[two * g : two * (g + 1) + 1], before, decay[g + 1]
            ends = groups[4, g], groups[5, g]
            rises, falls = slopes(*ends, *errors, *here, kept, lost, tilts, c)
            is_open = not falls  # f falls where the loss rises
        band, risen = widen(band, g, is_open, rises, risen)
    return widen(band, last, False, False, risen)[0]


@kernel
def missed_of(items, missed, w, x):
    """Σ π below each item of the band and all others, after 0, 1, … of its items."""
    n = items.size
    total = np.empty((n + 1, w.size))
    total[n] = missed
    for i in range(n, 0, -1):
        p = items[n - i]
        a0, a1, a2 = factor(p, 1.0 - p)
        for m in range(w.size):
            total[i - 1, m] = total[i, m] + p * x[m] / (a0 + a1 * x[m] + a2 * w[m])
    return total


@kernel
def negatives(items, w, x):
    """Σ (1 - π) over items, for each node."""
    total = np.zeros(w.size)
    for p in items:
        a0, a1, a2 = factor(p, 1.0 - p)
        for m in range(w.size):
            total[m] += (1.0 - p) / (a0 + a1 * x[m] + a2 * w[m])
    return total


@kernel
def climb(items, k0, loss0, false, missed, scale, u, tilts, c):
    """Return the loss after each item of the band, by exact differences; `false`, ω Q are used up.

    loss_k - loss_{k-1} = Σ ω Q e^{-u(k-1)} [e^{-u} (1 - p - b_out p x_out + p (w_out - w_in) B') /
    (1 - p w_out) - (1 - e^{-u}) B], where B' is B without the item.
    """
    w_in, x_in, w_out, x_out = tilts
    n, nodes = items.size, u.size
    outer, kept, lost = np.empty(nodes), np.exp(-u), -np.expm1(-u)
    loss = np.empty(n + 1)
    loss[0] = loss0
    for i in range(1, n + 1):
        renew(outer, u, k0 + i - 1, i - 1)
        p = items[n - i]
        a0, a1, a2 = factor(p, 1.0 - p)
        step = 0.0
        for m in range(nodes):
            errors = false[m] + c.b_out * missed[i - 1, m]
            others = false[m] + c.b_out * missed[i, m]
            inverse = 1.0 / (a0 + a1 * x_out[m] + a2 * w_out[m])
            pull = p * (w_out[m] - w_in[m])
            rise = (1.0 - p - c.b_out * p * x_out[m] + pull * others) * inverse
            step += outer[m] * scale[m] * (kept[m] * rise - lost[m] * errors)
            false[m] += (1.0 - p) / (a0 + a1 * x_in[m] + a2 * w_in[m])
            scale[m] *= 1.0 + pull * inverse
            outer[m] *= kept[m]
        loss[i] = loss[i - 1] + step
    return loss


@kernel
def best_set(p, layout, rows, groups, moments, mean, least, reach, c):
    """Return k, the threshold, the expected value and its standard deviation, or NO_ANSWER."""
    u, tilts, two, pi_in, pi_out, k, scale, decay = climbed_by(
        groups, moments, mean, p.size, least, reach, c
    )
    w_in, x_in, w_out, x_out = tilts
    if not resolves(layout, max(w_in.max(), w_out.max())):
        return NO_ANSWER
    _, negative = variances_of(groups, moments, w_in, x_in)
    false, missed = errors_of(negative, pi_out, len(decay) - 1)
    loss = losses_of(false, missed, scale, decay, two, c.b_out)
    first, stop = band_of(
        groups, k, loss, false, missed, scale, decay, two, u, tilts, c, least, reach
    )
    items = items_of(p, layout, rows, groups, k, first, stop)
    if items.size == 0 or is_lost(scale, first, stop, two):
        return NO_ANSWER
    below = missed_of(items, missed[stop], w_out, x_out)
    start = false[first].copy(), below, scale[two * first].copy()
    values = climb(items, k[first], loss[first], *start, u, tilts, c)
    best = best_of(-values, k[first], least, reach, False)
    if best == 0:
        return NO_ANSWER
    chosen = int(k[first]) + best
    false_chosen = false[first] + negatives(items[items.size - best :], w_in, x_in)
    end = scale_at(scale[two * first], items, best, tilts, two) * np.exp(-u * chosen)
    value = np.sum(end * (false_chosen + c.b_out * below[best]))
    f, inside = 1.0 - value, 1.0 + c.b_in * value
    cut = first, stop, best
    if f > (1.0 + c.b_in) * value:  # inside T - f k by what is missed, of which there is less
        of, of_chosen = (-inside, -c.b_out * f, (1.0 + c.b_in) * value * chosen), false_chosen
    else:
        of, of_chosen = (inside, -c.b_out * f, -f * chosen), chosen_pi(pi_in, items, cut, tilts)
    std = spread(groups, moments, pi_out, items, cut, of, of_chosen, end, u, tilts)
    return chosen, items[items.size - best], f, std


@kernel
def decide_large(p, c, layout):
    """Decide p by climbing the loss, c being 1 + b_in; WIDE instead of k where in doubt."""
    _, rows, groups, moments = summary_of(p, layout)
    mean, least, reach, _ = useful(groups, moments, c)
    return best_set(p, layout, rows, groups, moments, mean, least, reach, c)
