"""Compiled distributions of counts of independent labels, one label after another.

One more label with probability p makes P(s) into (1 - p) P(s) + p P(s - 1). No term is negative, so
every probability keeps its relative precision. Of more than FULL labels the counts are followed
within a window that they leave with odds below e^{-NATS}. See
expected/tilt_kernels.py for conventions.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel

FULL = 300  # of so many labels every count is kept
NATS = 50.0


@kernel
def window(mean, variance, n):
    """The counts of n labels that are followed, the first and the last (Bernstein's inequality)."""
    if n <= FULL:
        return 0, n
    third = NATS / 3.0
    far = third + math.sqrt(third * third + 2.0 * NATS * variance)
    return max(0, math.floor(mean - far)), min(n, math.ceil(mean + far))


@kernel
def one_more(mass, low, high, p):
    """Take one more label into P(low) … P(high), in place; what lies beyond is dropped."""
    for s in range(high, max(low, 1) - 1, -1):
        mass[s] = (1.0 - p) * mass[s] + p * mass[s - 1]
    if low == 0:
        mass[0] *= 1.0 - p
    for s in range(low - 1, -1, -1):
        if mass[s] == 0.0:
            break
        mass[s] = 0.0
    for s in range(high + 1, mass.size):
        if mass[s] == 0.0:
            break
        mass[s] = 0.0


@kernel
def masses(p):
    """Return the first count of the window of all labels, and the probabilities from it on."""
    mass = np.zeros(p.size + 1)
    mass[0] = 1.0
    mean, variance, low, high = 0.0, 0.0, 0, 0
    for i in range(p.size):
        mean += p[i]
        variance += p[i] * (1.0 - p[i])
        low, high = window(mean, variance, i + 1)
        one_more(mass, low, high, p[i])
    kept = mass[low : high + 1]
    return low, kept / kept.sum()  # equal labels round equally: the sum drifts, the shape does not


@kernel
def all_masses(p, first, size, mass):
    """Fill row k with the probabilities of the counts of the first k labels, for k = 0 … n."""
    state = np.zeros(p.size + 1)
    state[0] = 1.0
    first[0], size[0], mass[0, 0] = 0, 1, 1.0
    mean, variance = 0.0, 0.0
    for i in range(p.size):
        mean += p[i]
        variance += p[i] * (1.0 - p[i])
        low, high = window(mean, variance, i + 1)
        one_more(state, low, high, p[i])
        first[i + 1], size[i + 1] = low, high - low + 1
        mass[i + 1, : high - low + 1] = state[low : high + 1]


@kernel
def without(mass, p, rest):
    """Fill the probabilities of the other labels' counts from those of all, for any one label.

    Solves mass(s) = (1 - p) rest(s) + p rest(s - 1) upwards for p < 1/2 and downwards else: an
    error is never multiplied by more than 1 on its way.
    """
    q, last = 1.0 - p, mass.size - 1
    if p < 0.5:
        rest[0] = mass[0] / q
        for s in range(1, last + 1):
            rest[s] = (mass[s] - p * rest[s - 1]) / q
    else:
        rest[last] = 0.0
        for s in range(last, 0, -1):
            rest[s - 1] = (mass[s] - q * rest[s]) / p


@reordering_kernel
def weighed(a, b, true, mass):
    """Σ a(s) E[T; s] + b(s) P(s)."""
    total = 0.0
    for s in range(mass.size):
        total += a[s] * true[s] + b[s] * mass[s]
    return total


@kernel
def linear_values(items, by_false, a, b, mass, found, rest, f):
    """Fill f[j] = E[a T + b] after each of the items, given by falling probability.

    `found` is E[T; S = s] of the items taken before, and goes on; a[j] and b[j] are for one item
    more each time; an item adds P(y = 1, S = s) = p P(the others have s - 1). With `by_false` T is
    the number of false positives, and an item adds P(y = 0, S = s) = (1 - p) P(the others have s).
    """
    for j in range(items.size):
        p = items[j]
        if by_false:
            without(mass, p, rest)
            for s in range(mass.size):
                found[s] += (1.0 - p) * rest[s]
        elif p > 0.0:
            without(mass, p, rest)
            for s in range(1, mass.size):
                found[s] += p * rest[s - 1]
        f[j] = weighed(a[j], b[j], found, mass)


@kernel
def linear_spread(inside, outside, t0, r0, a, b, s0, mean):
    """Return the standard deviation of a T + b, T among the chosen labels and S of all.

    `inside` and `outside` are the probabilities of T from t0 on and of R from r0 on; a and b are
    those of s0, s0 + 1, …; counts beyond them have no odds to speak of.
    """
    total = 0.0
    for i in range(inside.size):
        t = t0 + i
        for j in range(outside.size):
            s = t + r0 + j - s0
            if 0 <= s < a.size:
                away = a[s] * t + b[s] - mean
                total += inside[i] * outside[j] * away * away
    return math.sqrt(total)
