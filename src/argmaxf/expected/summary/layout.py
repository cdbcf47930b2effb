"""The layout of the summary's table: which probabilities share a row, and what its columns are.

Let t = p for p < 1/2 and t = 1 - p for p ≥ 1/2 (exact in floating point). The key of an item is the
bit pattern of t without its last SHIFT bits: items whose t share the exponent and the first BITS
bits of the mantissa share a row. Rows by falling p: p = 1; p in [1/2, 1) by rising key; p in
[2^-64, 1/2) by falling key; 0 < p < 2^-64; p = 0. Nothing here needs numba; the functions are plain
arithmetic, so that kernels compile them and arrays go through them as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints

MANTISSA = 52
BITS = 6  # 64 groups for each power of two
SHIFT = MANTISSA - BITS
TINY = 2.0**-64
HALF_KEY = 1022 << BITS  # the key of t = 1/2
HIGH_BASE = 970 << BITS  # t = 1 - p is at least 2^-53 unless p = 1
LOW_BASE = 959 << BITS  # t = p is at least 2^-64 unless p is tiny
HIGH_ROWS = HALF_KEY - HIGH_BASE + 1
LOW_ROWS = HALF_KEY - LOW_BASE
ONE_ROW = 0
TINY_ROW = 1 + HIGH_ROWS + LOW_ROWS
ZERO_ROW = TINY_ROW + 1
ROWS = ZERO_ROW + 1
COLUMNS = 8  # count, Σy in two parts, Σy² … Σy⁶: one cache line


def upper_row(key: Any) -> Any:
    """The row of a key of t = 1 - p, for p in [1/2, 1)."""
    return 1 + key - HIGH_BASE


def lower_row(key: Any) -> Any:
    """The row of a key of t = p, for p in [2^-64, 1/2)."""
    return HIGH_ROWS + HALF_KEY - key


def key_of(row: Ints) -> tuple[Bools, Ints]:
    """On which side of 1/2 rows between the first and TINY_ROW are, and their keys."""
    upper = row <= HIGH_ROWS
    return upper, np.where(upper, row - 1 + HIGH_BASE, HIGH_ROWS + HALF_KEY - row)


def empty_table() -> Floats:
    """Return the table of no items."""
    return np.zeros((ROWS, COLUMNS))
