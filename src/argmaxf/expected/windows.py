"""Windows of floating-point keys: how probabilities are put into groups, at any resolution.

Let t = p for p < 1/2 and t = 1 - p for p ≥ 1/2 (exact in floating point). The key of an item at
`shift` is the bit pattern of t without its last `shift` bits. Keys grow with t, an item's key at a
smaller shift refines the one at a larger shift, and at shift 0 a key is a single number. A group
with b mantissa bits left is never wider than 2^-b times its t.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from argmaxf.arrays import Bools, Floats, Ints
from argmaxf.expected.groups import Groups

MAX_ROWS = 1 << 10  # rows of one table of groups


class Window(NamedTuple):
    """Keys first, first + 1, … first + keys - 1 at a shift, on one side of 1/2."""

    upper: bool
    shift: int
    first: int
    keys: int

    @property
    def bounds(self) -> tuple[float, float]:
        """A closed range of p that holds every item of the window."""
        ends = np.array([self.first << self.shift, (self.first + self.keys) << self.shift])
        low, high = ends.view(np.float64).tolist()
        if not self.upper:
            return max(low, 5e-324), min(high, float(np.nextafter(0.5, 0.0)))  # zero is no item
        return max(0.5, float(np.nextafter(1.0 - high, 0.0))), 1.0 - low

    def refined(self) -> Window:
        """Return the same window at a smaller shift, with at most about MAX_ROWS keys."""
        bits = min(self.shift, max(1, (MAX_ROWS // self.keys).bit_length() - 1))
        return Window(self.upper, self.shift - bits, self.first << bits, self.keys << bits)


def windows(groups: Groups) -> Iterator[tuple[Window, int]]:
    """Yield the windows that neighbouring groups make up, by falling p, and their item counts."""
    for upper in (True, False):
        side = groups[groups.upper == upper]
        if len(side):
            first = int(side.first.min())
            keys = int((side.first + side.keys).max()) - first
            yield Window(upper, int(side.shift[0]), first, keys), int(side.count.sum())


def table_groups(
    upper: Bools, shift: int, key: Ints, table: Floats, extremes: tuple[Floats, Floats] | None
) -> Groups:
    """Turn rows of a table (count, Σy in two parts, Σy² …) into groups by falling p.

    With the `extremes` of each row, bounds are tight and rows of equal items become runs.
    """
    t_low, t_high, t = (
        _number(key << shift),
        _number((key + 1) << shift),
        _number((key << shift) + ((1 << shift) >> 1)),
    )
    centre, rest = np.where(upper, 1.0 - t, t), np.where(upper, t, 1.0 - t)
    half = np.where(upper, t_low - t, t - t_low)
    moments = np.column_stack([table[:, 1] + table[:, 2], table[:, 3:]])
    # On the upper side t is at most 1/2: the key of 1/2 holds that one number.
    low = np.where(upper, np.maximum(1.0 - t_high, 0.5), t_low)
    high = np.where(upper, 1.0 - t_low, t_high)
    if extremes is not None:
        low, high = extremes
    run = low == high
    centre, rest = np.where(run, low, centre), np.where(run, 1.0 - low, rest)
    half, moments = np.where(run, 0.0, half), np.where(run[:, None], 0.0, moments)
    size = len(key)
    groups = Groups(
        count=table[:, 0],
        centre=centre,
        rest=rest,
        half=half,
        moments=moments,
        low=low,
        high=high,
        upper=upper,
        shift=np.full(size, shift),
        first=key,
        keys=np.ones(size, np.int64),
    )
    return groups[np.lexsort([np.where(upper, key, -key), ~upper])]


def _number(bits: Ints) -> Floats:
    return np.ascontiguousarray(bits).view(np.float64)
