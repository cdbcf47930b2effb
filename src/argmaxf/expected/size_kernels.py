"""Compiled parts of a search for the best size, where what an item adds depends on the size alone.

Δ_i(t) is what item i adds to a set of t items, V(k, t) the sum of the k largest of them: the best
set of k items is worth V(k, k). Labels that depend on each other (dependent/) and columns whose
rows have a price (shared_rows/) both have this form, and chords of V bound the sizes between two.
"""

from __future__ import annotations

import numpy as np

from argmaxf._base.compiled import kernel
from argmaxf.expected.tilt_kernels import largest


@kernel
def sums_of_largest(values, low, high):
    """The sums of the k largest values, for k = low … high."""
    top = np.sort(values if high == values.size else largest(values, high))
    sums = np.empty(high - low + 1)
    total = 0.0
    lost = 0.0  # what rounding drops is carried along (Kahan)
    for k in range(1, high + 1):
        y = top[high - k] - lost
        longer = total + y
        lost = (longer - total) - y
        total = longer
        if k >= low:
            sums[k - low] = total
    return sums


@kernel
def highest_chord(left, left_sums, left_low, right, right_sums, right_low, shift):
    """The highest bound on V(k, k) strictly between two sizes whose V is known, and where it is.

    V(k, t) is convex in 1 / (t + shift), or in t where the shift is infinite: its chord from one
    size to the other lies above it.
    """
    highest, where = -np.inf, left
    for k in range(left + 1, right):
        bend = 1.0 if shift == np.inf else (right + shift) / (k + shift)
        share = (k - left) / (right - left) * bend
        bound = (1.0 - share) * left_sums[k - left_low] + share * right_sums[k - right_low]
        if bound > highest:
            highest, where = bound, k
    return highest, where


@kernel
def mark_largest(values, k, part, out):
    """Mark the k largest, of those that agree to a part of them the first; return the smallest."""
    out[:] = False
    if k == 0:
        return np.inf
    cut = largest(values, k)[0]
    high, low = cut + part * abs(cut), cut - part * abs(cut)
    ties = k - np.sum(values > high)
    smallest = np.inf
    for i in range(values.size):
        tied = low <= values[i] <= high
        if values[i] > high or (tied and ties > 0):
            out[i] = True
            ties -= tied
            smallest = min(smallest, values[i])
    return smallest
