"""Compiled loops over sparse matrices: their values column by column, and marks on chosen cells.

See kernels.py for the conventions.
"""

from __future__ import annotations

from argmaxf.compiled import kernel


@kernel
def values_by_column(column, p, first, out):
    """Copy values column by column; `first` gets where each column begins."""
    first[:] = 0
    for j in range(column.size):
        first[column[j] + 1] += 1
    for c in range(first.size - 1):
        first[c + 1] += first[c]
    place = first[:-1].copy()
    for j in range(column.size):
        c = column[j]
        out[place[c]] = p[j]
        place[c] += 1


@kernel
def sort_sets(values, offsets):
    """Sort values that lie one after another, set by set, in place."""
    for r in range(offsets.size - 1):
        values[offsets[r] : offsets[r + 1]].sort()


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
def gather_sets(values, first, wanted, offsets, out):
    """Copy some of the sets, one after another."""
    for r in range(wanted.size):
        start = first[wanted[r]]
        for i in range(offsets[r + 1] - offsets[r]):
            out[offsets[r] + i] = values[start + i]
