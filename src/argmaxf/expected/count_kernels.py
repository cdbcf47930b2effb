"""Compiled distributions of counts of independent labels (Poisson binomial distributions).

Label by label: one more label with probability p makes P(s) into (1 - p) P(s) + p P(s - 1). No
term is negative, so every probability keeps its relative precision. Of more than FULL labels the
counts are followed within a window that they leave with a probability below e^{-WINDOW_NATS}.

See expected/node_kernels.py for the conventions.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel

FULL = 300  # of so many labels every count is kept
WINDOW_NATS = 50.0
LESS = 1e-12  # limit · k may be rounded up by this part of it


@kernel
def reach(variance, nats):
    """Bound a count's distance to its mean, except with probability e^{-nats} (Bernstein)."""
    third = nats / 3.0
    return third + math.sqrt(third * third + 2.0 * nats * variance)


@kernel
def window(mean, variance, n):
    """The counts of n labels that are followed, the first and the last."""
    if n <= FULL:
        return 0, n
    far = reach(variance, WINDOW_NATS)
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
def masses(p, first, size, prefixes):
    """Return the first count of the window of all labels, and the probabilities from it on.

    Row k of `prefixes`, if it has rows, gets those of the first k labels: `size` of them from the
    count `first` on.
    """
    mass = np.zeros(p.size + 1)
    mass[0] = 1.0
    mean, variance, low, high = 0.0, 0.0, 0, 0
    for k in range(p.size + 1):
        if k > 0:
            mean += p[k - 1]
            variance += p[k - 1] * (1.0 - p[k - 1])
            low, high = window(mean, variance, k)
            one_more(mass, low, high, p[k - 1])
        if prefixes.size > 0:
            first[k], size[k] = low, high - low + 1
            for s in range(low, high + 1):
                prefixes[k, s - low] = mass[s]
    kept = mass[low : high + 1]
    return low, kept / kept.sum()  # equal labels round equally: the sum drifts, the shape does not


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


@kernel
def tilt_counts(items, by_false, mass, found):
    """Fill P(y = 1, S = s) = p P(the others have s - 1) of each item, in one row each.

    With `by_false` P(y = 0, S = s) = (1 - p) P(the others have s).
    """
    rest = np.zeros(mass.size)
    for j in range(items.size):
        p = items[j]
        if by_false or p > 0.0:
            without(mass, p, rest)
        for s in range(mass.size):
            found[j, s] = (1.0 - p) * rest[s] if by_false else 0.0
            if not by_false and s > 0:
                found[j, s] = p * rest[s - 1]


@kernel
def missed_at_most(outside, items):
    """Return P(R < i) in row j; R counts `outside`, from 0, and all items from the j-th on."""
    width = outside.size + items.size
    below = np.zeros((items.size + 1, width + 1))
    mass = np.zeros(width)
    mass[: outside.size] = outside
    for j in range(items.size, -1, -1):
        if j < items.size:
            one_more(mass, 0, outside.size + items.size - j - 1, items[j])
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
            one_more(mass, 0, inside.size + j - 1, items[j - 1])
        least = max(0, math.ceil(precision * (above + j) * (1.0 - LESS)) - first)
        total = 0.0
        for i in range(least, inside.size + j):
            total += mass[i] * below[j, allowed[i]]
        probability[j] = min(1.0, total)
