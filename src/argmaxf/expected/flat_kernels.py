"""Compiled loops for sets with many positives: the cut, the proof, the decision (see `flat.py`)."""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel
from argmaxf.expected.large_gain_kernels import climb
from argmaxf.expected.large_kernels import nodes_for
from argmaxf.expected.large_summary_kernels import STEEPEST
from argmaxf.expected.power_kernels import (
    FEW,
    SUMS,
    add_each,
    least_above,
    log_series,
    pi_series,
    summed,
    tally,
)
from argmaxf.expected.quadrature import plausible_positives
from argmaxf.expected.spread_kernels import squared_deviation
from argmaxf.measures import Coefficients

FLAT = 2.0**-5  # w at most: at the nodes that have weight, it is a few times smaller
POSITIVES = 200.0  # so many are too few
GUESSES, NEARLY = 40, 1e-3  # steps on a sample, at most, and when they are good enough
STEPS = 8  # on all items
WIDEST = 0.25  # a band, as a part of the cut
NARROWEST, ITEMS = 2.0**-10, 1 << 22  # the least width, and for how many items
ROOM = 1 << 15  # items of a band, at most
SLACK = 1e-9  # proofs must hold by more than this
# A difference below this part of the terms that differ is no difference; rounding adds up in a band
DOUBT, DRIFT = 1e-12, 1e-16

READY, GO_ON, NOT_FLAT, BAD = 0.0, 1.0, 2.0, -1.0
NO_BAND = 0.0, 0.0, 0.0
UNKNOWN = 0.0, 0.0, 0.0, 0.0  # instead of k, the threshold, the value and its spread


@kernel
def ratio_of(ratio):
    """Return c, b_in, b_out, s0 and s1 as coefficients: a record takes long to hand over."""
    return Coefficients(ratio[0], ratio[1], ratio[2], ratio[3], ratio[4])


@kernel
def cut_of(v, c):
    """The cut of a set worth c v: an item above it is worth taking, since p (1 + d v) > v."""
    return v / (1.0 + (c.b_out - c.b_in) * v)


@kernel
def worth(k, mass, mean, c):
    """The mean numerator of a set beside its mean denominator, k + b_in T + b_out R, over c."""
    return (mass + c.s0 / c.c) / (k + c.b_in * mass + c.b_out * (mean - mass) + c.s1)


@kernel
def guess(sample, n, ratio):
    """Guess the highest worth of a set of n items from a sample; 0 if too few are positive."""
    c, v, mean = ratio_of(ratio), 0.0, 0.0
    for _ in range(GUESSES):
        _, mean, k, mass = tally(sample, cut_of(v, c))
        better = worth(k, mass, mean, c) if mass > 0.0 else v
        if not better > v * (1.0 + NEARLY):
            break
        v = better
    return v if mean * n >= POSITIVES * sample.size else 0.0


@kernel
def denominator(k, fewest, c):
    """What the denominator of a set of k items or more is at least, but for odds below e^{-40}."""
    return c.s1 + max(k + min(c.b_in, c.b_out) * fewest, min(1.0 + c.b_in, c.b_out) * fewest)


@kernel
def doubts(k, mean, variance, fewest, c):
    """By how much means of ratios and products may differ from those of means (see `flat.py`).

    As a part of the highest value; for sets inside the top k, and beyond them, of F; and what is
    left of a term given one positive more.
    """
    least, x = denominator(0.0, fewest, c), denominator(k, fewest, c)
    most = max(c.b_in, c.b_out)
    change = max(1.0, c.b_out / (1.0 + c.b_in)) * most * variance
    mean_x = x - min(c.b_in, c.b_out) * fewest + most * mean  # at most
    kept = (1.0 - c.b_in / x) * (1.0 - c.b_out / least)
    value = most * most * variance / least**2
    return value, change * mean_x / (least * x * x), change * mean_x / x**3, kept


@kernel
def improved(v, n, tallied, ratio):
    """Return the worth of the set that is cut at that of v, a band around its cut, and a state.

    The band is as wide as the proof needs, and READY where the cut is known well enough.
    """
    c = ratio_of(ratio)
    bad, mean, count, mass = tallied
    k = float(count)
    if bad:
        return v, NO_BAND, BAD
    fewest, _ = plausible_positives(mean, n)
    x = denominator(k, fewest, c)
    if not mass > 0.0 or fewest == 0.0 or max(c.b_in, c.b_out) * STEEPEST > FLAT * x:
        return v, NO_BAND, NOT_FLAT
    if c.s0 * (1.0 + c.b_in) > c.c * c.s1:  # F could be more than 1 / (1 + b_in)
        return v, NO_BAND, NOT_FLAT
    better = worth(k, mass, mean, c)
    cut, step = cut_of(better, c), abs(better - v) / better
    value, inside, _, kept = doubts(k, mean, mean, fewest, c)
    width = 4.0 * (value + inside / better + 1.0 - kept)
    width = max(width, NARROWEST * min(1.0, ITEMS / n))
    if width > WIDEST or (c.b_out - c.b_in) * cut * (1.0 + width) >= 1.0:
        return v, NO_BAND, NOT_FLAT
    band = cut * (1.0 - width), cut * (1.0 + 0.5 * width), cut * (1.0 + width)
    return better, band, READY if 16.0 * step * step < width else GO_ON


@kernel
def is_proven(sizes, mass, mean, variance, last, n, c, band):
    """Whether no set inside the items above the band is better, nor one that goes beyond it.

    `sizes` says how many items are above the band, above its middle, and above its end, `mass` is
    Σ p of the second ones; mean and variance are of all positives, and `last` is the value of all
    items down to the end of the band.
    """
    low, middle, high = band
    k, k_middle, k_end = sizes
    d, fewest = c.b_out - c.b_in, plausible_positives(mean, n)[0]
    value, inside, _, kept = doubts(k, mean, variance, fewest, c)
    _, _, beyond, _ = doubts(k_end, mean, variance, fewest, c)
    most = middle / (1.0 - d * middle) * (1.0 + value)
    rest = middle * (c.b_out * mean + c.s1) - c.s0 / c.c * (1.0 - d * middle)
    is_bound = mass - middle * k_middle <= rest - SLACK * middle * c.b_out * mean
    no_less = (most + inside) * (1.0 - high * kept * d) <= high * kept * (1.0 - SLACK)
    no_more = low <= (last / c.c - beyond) * (1.0 - low * d) * (1.0 - SLACK)
    return is_bound and no_less and no_more and d * high < 1.0


@kernel
def above_middle(items, k, mass, middle):
    """How many items are above the middle of a band, and their Σ p, given those above the band."""
    for i in range(items.size - 1, -1, -1):
        if items[i] <= middle:
            break
        k += 1.0
        mass += items[i]
    return k, mass


@kernel
def clear_best(values, loss):
    """Return after how many items of a band the value is best; -1 if others are too near."""
    top = 0
    for i in range(values.size):
        top = i if values[i] > values[top] else top
    doubt = (DOUBT + DRIFT * values.size) * loss
    for i in range(values.size):
        if i != top and values[i] >= values[top] - doubt * abs(top - i):
            return -1
    return top


@kernel
def scale_of(below, above, weight, tilts):
    """ω Q of the items above a cut at each node."""
    log_in, log_out = log_series(above, tilts[0]), log_series(below, tilts[2])
    scale = np.empty(weight.size)
    for m in range(weight.size):
        scale[m] = weight[m] * math.exp(log_in[m] + log_out[m])
    return scale


@kernel
def climbed(items, k, below, above, u, weight, tilts, c):
    """Return how many items of a band are best, or -1, and the value of all down to its end.

    Last the sums over all items below and in the band.
    """
    rest = below.copy()
    add_each(items, rest)
    scale = scale_of(rest, above, weight, tilts)
    a, _, _ = pi_series(above, tilts[0], tilts[1])
    f = loss = 0.0
    for m in range(u.size):
        a[m] *= c.c
        term = math.exp(-u[m] * k) * scale[m] * a[m]
        f += term
        loss -= math.expm1(-u[m]) * term
    values = climb(items, k, 0.0, a, scale, u, tilts, c)
    return clear_best(values, loss), f + values[-1], rest


@kernel
def value_and_spread(k, below, above, u, weight, tilts, c):
    """Mean and standard deviation of the measure for the k items above a cut."""
    outer = scale_of(below, above, weight, tilts)
    pi_in, missed, var_in = pi_series(above, tilts[0], tilts[1])
    pi_out, _, var_out = pi_series(below, tilts[2], tilts[3])
    f = loss = 0.0
    for m in range(u.size):
        outer[m] *= math.exp(-u[m] * k)
        f += outer[m] * c.c * pi_in[m]
        # 1 - f = E[(k - (c - b_in) T + b_out R) / x]: for F_β nothing cancels
        loss += outer[m] * (missed[m] + (1.0 - (c.c - c.b_in)) * pi_in[m] + c.b_out * pi_out[m])
    f = 1.0 - loss if f > 0.5 else f
    of = -k * f, (c.c - c.b_in) + c.b_in * loss, -c.b_out * f
    square = squared_deviation(u, outer, *of, pi_in, var_in, pi_out, var_out)
    return f, math.sqrt(square)


@kernel
def decide(items, k, below, above, n, ratio, band):
    """Return k, the threshold, the value and its spread, given the sums around a band of items.

    Where none of them is chosen, 0 instead of the threshold, which is above the band.
    """
    c, mean = ratio_of(ratio), below[0] + above[0]
    for p in items:
        mean += p
    u, weight, tilts = nodes_for(mean, n, max(k, 1.0), k + items.size, c)
    best, last, rest = climbed(items, k, below, above, u, weight, tilts, c)
    if best < 0 or k + best == 0 or max(tilts[0][-1], tilts[2][-1]) > FLAT:
        return UNKNOWN
    variance = rest[2] + above[2]
    k_middle, mass = above_middle(items, k, above[0], band[1])
    sizes = k, k_middle, k + items.size
    if not is_proven(sizes, mass, mean, variance, last, n, c, band):
        return UNKNOWN
    k += best
    cut = items.size - best
    add_each(items[cut:], above)
    add_each(items[:cut], below)
    f, std = value_and_spread(k, below, above, u, weight, tilts, c)
    return k, items[cut] if best else 0.0, f, std


@kernel
def decide_flat(p, sample, ratio):
    """Decide all items at once; BAD instead of k at a value that is no probability."""
    v, band, state = guess(sample, p.size, ratio), NO_BAND, NOT_FLAT
    for _ in range(STEPS if v > 0.0 else 0):
        tallied = tally(p, cut_of(v, ratio_of(ratio)))
        v, band, state = improved(v, p.size, tallied, ratio)
        if state != GO_ON:
            break
    if state != READY:
        return BAD if state == BAD else 0.0, 0.0, 0.0, 0.0
    below, above = np.zeros(SUMS), np.zeros(SUMS)
    items = np.empty(min(p.size, ROOM) + FEW)
    k, size = summed(p, band[0], band[2], below, above, items)
    if size < 0:
        return UNKNOWN
    near = items[:size]
    near.sort()
    k, threshold, f, std = decide(near, k, below, above, p.size, ratio, band)
    if k > 0 and threshold == 0.0:
        threshold = least_above(p, band[2])
    return k, threshold, f, std
