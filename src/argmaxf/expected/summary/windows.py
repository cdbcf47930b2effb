"""Windows of floating-point keys: how probabilities are put into groups, at any resolution.

Let t = p for p < 1/2 and t = 1 - p for p ≥ 1/2 (exact in floating point). The key of an item at
`shift` is the bit pattern of t without its last `shift` bits. Keys grow with t, an item's key at a
smaller shift refines the one at a larger shift, and at shift 0 a key is a single number. A group
with b mantissa bits left is never wider than 2^-b times its t.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from argmaxf.expected.summary.groups import Groups

MAX_ROWS = 1 << 10  # rows of one table of groups
SORTED = 1 << 9  # so few items are sorted instead of grouped again


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
        for part in _parts(side):
            first = int(part.first.min())
            keys = int((part.first + part.keys).max()) - first
            yield Window(upper, int(part.shift[0]), first, keys), int(part.count.sum())


def _parts(side: Groups) -> Iterator[Groups]:
    """Part the groups of one side where many keys between them are empty, unless items are few.

    A window has a row for every key: clusters of nearly equal items, far apart, would take
    gigabytes in one.
    """
    if not len(side):
        return
    if side.count.sum() <= SORTED:
        yield side
        return
    low, high = side.first, side.first + side.keys
    gap = np.maximum(low[1:] - high[:-1], low[:-1] - high[1:])
    far = (gap > MAX_ROWS) | (np.diff(side.shift) != 0)
    edges = [0, *(np.flatnonzero(far) + 1).tolist(), len(side)]
    for start, stop in itertools.pairwise(edges):
        yield side[start:stop]
