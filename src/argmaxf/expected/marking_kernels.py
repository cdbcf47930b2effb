"""Compiled loops that mark the chosen items of sets, and put cells of sparse matrices into sets.

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


@kernel
def count_columns(column, size):
    """Count the cells of each column."""
    size[:] = 0
    for j in range(column.size):
        size[column[j]] += 1


@kernel
def put_values(column, p, place, out):
    """Put each value at the next place of its column; `place` is moved on."""
    for j in range(column.size):
        c = column[j]
        out[place[c]] = p[j]
        place[c] += 1


@kernel
def copy_sets(values, first, place, out):
    """Copy sets that lie one after another to the places given."""
    for r in range(place.size):
        for i in range(first[r + 1] - first[r]):
            out[place[r] + i] = values[first[r] + i]


@kernel
def mark_from(column, p, threshold, out):
    """Mark cells from their column's threshold on."""
    for j in range(column.size):
        out[j] = p[j] >= threshold[column[j]]


@kernel
def mark_columns(column, p, threshold, ties, out):
    """Mark cells above their column's threshold, and the first `ties` of those equal to it."""
    left = ties.copy()
    for j in range(column.size):
        c = column[j]
        out[j] = p[j] > threshold[c]
        if p[j] == threshold[c] and left[c] > 0:
            out[j] = True
            left[c] -= 1


@kernel
def keep_cells(first, column, chosen, new_first, new_column):
    """Copy the columns of chosen cells row by row; `new_column` has room for one more than all."""
    kept = 0
    new_first[0] = 0
    for i in range(first.size - 1):
        for j in range(first[i], first[i + 1]):
            new_column[kept] = column[j]
            kept += chosen[j]
        new_first[i + 1] = kept
