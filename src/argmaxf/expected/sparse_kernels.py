"""Compiled loops over sparse matrices: their values column by column, and marks on chosen cells.

See kernels.py for the conventions.
"""

from __future__ import annotations

from argmaxf._base.compiled import kernel


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
