"""Compiled loops that bring items known within bands into order."""

from __future__ import annotations

import numpy as np

from argmaxf._base.compiled import kernel


@kernel
def order_by(keys, order):
    """Put `order` in the order of its keys, equal ones as they were; `keys` are moved along.

    Keys are the bit patterns of doubles that are not negative, which grow with them. Each pass
    counts the values of 11 bits, so few that their places stay in the cache, and moves every item
    to its own: six passes, O(n).
    """
    n = keys.size
    other_keys, other_order = np.empty_like(keys), np.empty_like(order)
    for digit in range(6):
        shift = np.uint64(11 * digit)
        place = np.zeros(2049, np.int64)
        for i in range(n):
            place[((keys[i] >> shift) & np.uint64(2047)) + np.uint64(1)] += 1
        if place.max() == n:  # all are equal here
            continue
        for value in range(2048):
            place[value + 1] += place[value]
        for i in range(n):
            value = (keys[i] >> shift) & np.uint64(2047)
            other_keys[place[value]] = keys[i]
            other_order[place[value]] = order[i]
            place[value] += 1
        keys[:] = other_keys
        order[:] = other_order


@kernel
def first_out_of_order(low):
    """Return the first place where sorted bands break the order of their lower ends, or -1."""
    for i in range(1, low.size):
        if low[i] < low[i - 1]:
            return i
    return -1
