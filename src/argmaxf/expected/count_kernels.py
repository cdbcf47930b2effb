"""How many of some items are positive: tails of the Poisson-binomial distribution, compiled.

The characteristic function of a count T of independent labels is φ(θ) = Π (1 - p + p e^{iθ}). A
square wave of period 2W, +1 on [m, m + W) and -1 on [m - W, m), has odd harmonics only, so

    P(T ≥ m) = 1/2 + (1/W) Σ_{l odd, 0 < l < W} Im(φ(θ_l) e^{-iθ_l (m - 1/2)}) / sin(θ_l / 2)

with θ_l = πl/W, exactly, as long as |T - m| < W. T leaves its mean by more than `reach` with a
probability below e^{-37}, and |φ(θ)| ≤ e^{-v (1 - cos θ)}, v the variance: at most 60 harmonics
are left, whatever n. See kernels.py for the conventions.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.tilt_kernels import dot

NATS = 37.0  # probabilities below e^{-NATS} are taken for 0
LESS = 1e-12  # limit · k may be rounded up by this part of it
RUN, SMALL = 16, 1.0 / 16.0  # so many equal probabilities below this are one power
FIRST_VARIANCE = 4.0  # the harmonics serve variances from v to 2v + this


@kernel
def reach(variance):
    """Bound a count's distance to its mean, except with probability e^{-NATS} (Bernstein)."""
    third = NATS / 3.0
    return third + math.sqrt(third * third + 2.0 * NATS * variance)


@kernel
def least_true(limit, k):
    """The least number of positives among k that is a precision of at least `limit`."""
    return math.ceil(limit * k * (1.0 - LESS))


@kernel
def harmonics(low, high, extra):
    """Return W and the θ_l for counts of a variance in [low, high] asked at most `extra` away."""
    half = math.ceil((reach(high) + extra) / 2.0) + 1
    period = 2 * half  # even, so that no harmonic is its own mirror image
    needed = half
    if low > 0.5 * (NATS + 4.0):
        most = math.acos(1.0 - (NATS + 4.0) / low)
        needed = min(half, math.ceil(most * period / (2.0 * math.pi)) + 1)
    return period, math.pi * (2.0 * np.arange(needed) + 1.0) / period


@reordering_kernel
def turn(real, imaginary, cosine, sine, p, q):
    """Multiply each by q + p e^{iθ}."""
    for m in range(real.size):
        a = q + p * cosine[m]
        b = p * sine[m]
        x = real[m]
        real[m] = x * a - imaginary[m] * b
        imaginary[m] = x * b + imaginary[m] * a


@kernel
def restart(descending, k, m, low, high):
    """Prepare the harmonics for the top k, where m positives are asked for."""
    width, theta = harmonics(low, high, reach(high))
    cosine, sine = np.cos(theta), np.sin(theta)
    real, imaginary = np.cos(theta * (m - 0.5)), -np.sin(theta * (m - 0.5))
    for i in range(k):
        turn(real, imaginary, cosine, sine, descending[i], 1.0 - descending[i])
    return real, imaginary, cosine, sine, 1.0 / (width * np.sin(0.5 * theta))


@kernel
def precision_probabilities(descending, limit, last, probability):
    """Fill probability[k] = P(T_k ≥ limit · k) of the top k, for k = 1 … last."""
    mean, variance, high = 0.0, 0.0, -1.0
    real, imaginary, cosine, sine, weight = restart(descending, 0, 0, 0.0, 0.0)
    chance = 0
    for k in range(1, last + 1):
        p = descending[k - 1]
        mean += p
        variance += p * (1.0 - p)
        before, chance = chance, least_true(limit, k)
        if variance > high:
            high = 2.0 * variance + FIRST_VARIANCE
            real, imaginary, cosine, sine, weight = restart(descending, k, chance, variance, high)
        elif chance == before:
            turn(real, imaginary, cosine, sine, p, 1.0 - p)
        else:  # times e^{-iθ}: the positive case stays, the negative one turns back
            turn(real, imaginary, cosine, -sine, 1.0 - p, p)
        if abs(mean - chance) > reach(variance):
            probability[k] = 1.0 if mean > chance else 0.0
        else:
            probability[k] = min(1.0, max(0.0, 0.5 + dot(imaginary, weight)))


@kernel
def turn_often(real, imaginary, theta, p, times):
    """Multiply each by a power of 1 - p + p e^{iθ}, of squared length 1 - 4 p (1 - p) sin²(θ/2)."""
    for m in range(real.size):
        short = math.sin(0.5 * theta[m])
        length = math.exp(0.5 * times * math.log1p(-4.0 * p * (1.0 - p) * short * short))
        angle = times * math.atan2(p * math.sin(theta[m]), 1.0 - 2.0 * p * short * short)
        a, b, x = length * math.cos(angle), length * math.sin(angle), real[m]
        real[m] = x * a - imaginary[m] * b
        imaginary[m] = x * b + imaginary[m] * a


@kernel
def characteristic(p, theta, real, imaginary):
    """Fill Π (1 - p + p e^{iθ}); long runs of small p at once: equal factors round equally."""
    cosine, sine = np.cos(theta), np.sin(theta)
    real[:] = 1.0
    imaginary[:] = 0.0
    i = 0
    while i < p.size:
        end = i + 1
        while end < p.size and p[end] == p[i]:
            end += 1
        if end - i >= RUN and p[i] < SMALL:
            turn_often(real, imaginary, theta, p[i], end - i)
        else:
            for _ in range(i, end):
                turn(real, imaginary, cosine, sine, p[i], 1.0 - p[i])
        i = end


@kernel
def add_item(mass, size, p):
    """Turn the probabilities of a count of at most size - 1 into those with one item more."""
    for i in range(size, 0, -1):
        mass[i] = mass[i] * (1.0 - p) + mass[i - 1] * p
    mass[0] *= 1.0 - p


@kernel
def missed_at_most(outside, items):
    """Return P(R < i) in row j; R counts `outside`, from 0, and all items from the j-th on."""
    width = outside.size + items.size
    below = np.zeros((items.size + 1, width + 1))
    mass = np.zeros(width)
    mass[: outside.size] = outside
    for j in range(items.size, -1, -1):
        if j < items.size:
            add_item(mass, outside.size + items.size - j - 1, items[j])
        for i in range(width):
            below[j, i + 1] = below[j, i] + mass[i]
    return below


@kernel
def joint_probabilities(
    above, first, inside, items, first_out, outside, precision, recall, probability
):
    """Fill probability[j] = P(T ≥ precision · k, T ≥ recall · (T + R)) for k = above + j.

    T counts `inside`, the probabilities of first, first + 1, … positives among the items above,
    and the first j items; R counts `outside` and the other items.
    """
    below = missed_at_most(outside, items)
    width = inside.size + items.size
    mass = np.zeros(width)
    mass[: inside.size] = inside
    allowed = np.full(width, below.shape[1] - 1)  # the place in `below` of the R that T allows
    if recall > 0.0:
        for i in range(width):
            t = first + i
            most = math.floor(t / (recall * (1.0 - LESS)) - t) - first_out + 1
            allowed[i] = min(max(most, 0), below.shape[1] - 1)
    for j in range(items.size + 1):
        if j > 0:
            add_item(mass, inside.size + j - 1, items[j - 1])
        least = max(0, least_true(precision, above + j) - first)
        total = 0.0
        for i in range(least, inside.size + j):
            total += mass[i] * below[j, allowed[i]]
        probability[j] = min(1.0, total)
