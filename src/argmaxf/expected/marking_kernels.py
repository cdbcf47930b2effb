"""Compiled loops that mark the chosen items of sets.

See tilt_kernels.py for the conventions.
"""

from __future__ import annotations

import numpy as np

from argmaxf._base.compiled import kernel


@kernel
def select(p, threshold, ties, out):
    """Mark items above the threshold, and the first `ties` of those equal to it."""
    for i in range(p.size):
        out[i] = p[i] > threshold
        if p[i] == threshold and ties > 0:
            out[i] = True
            ties -= 1


@kernel
def thresholds(ascending, offsets, k, threshold, ties):
    """Fill the lowest chosen item of every sorted set, and how many equal to it are chosen.

    Where none of those is left out, all items of the set count as equal: `select_sets` is quicker.
    """
    for r in range(k.size):
        start, stop = offsets[r], offsets[r + 1]
        cut = stop - k[r]
        threshold[r] = ascending[cut] if k[r] > 0 else np.inf
        ties[r] = stop - start
        if start < cut < stop and ascending[cut - 1] == threshold[r]:
            ties[r] = 1
            while ties[r] < k[r] and ascending[cut + ties[r]] == threshold[r]:
                ties[r] += 1


@kernel
def select_sets(p, offsets, threshold, ties, out):
    """Mark the chosen items of every set: those above its threshold, the first ties equal to it."""
    for r in range(threshold.size):
        start, stop, least = offsets[r], offsets[r + 1], threshold[r]
        for i in range(start, stop):
            out[i] = p[i] >= least
        if ties[r] < stop - start:
            select(p[start:stop], least, ties[r], out[start:stop])
