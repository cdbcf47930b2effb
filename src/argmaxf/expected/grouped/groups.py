"""Items in groups of nearly equal probability: all that the expected F needs to know of them.

Let t = p for p < 1/2 and t = 1 - p for p ≥ 1/2 (exact in floating point). The key of an item at
`shift` is the bit pattern of t without its last `shift` bits. Keys grow with t, an item's key at a
smaller shift refines the one at a larger shift, and at shift 0 a key is a single number. A group
with b mantissa bits left is never wider than 2^-b times its t.

The table of a sketch has one row for each key at SHIFT, items whose t share the exponent and the
first BITS bits of the mantissa. Rows by falling p: p = 1; p in [1/2, 1) by rising key; p in
[2^-64, 1/2) by falling key; 0 < p < 2^-64; p = 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.expected.grouped import group_kernels
from argmaxf.expected.grouped.group_kernels import (
    COLUMNS,
    HALF_KEY,
    HIGH_BASE,
    HIGH_ROWS,
    LEAST_KEYED,
    LOW_BASE,
    ONE_ROW,
    ROWS,
    SHIFT,
    TINY_ROW,
    ZERO_ROW,
)

MOMENTS = 6
MAX_ROWS = 1 << 10  # rows of one table of groups
SORTED = 1 << 9  # so few items are sorted instead of grouped again


def key_of(row: Ints) -> tuple[Bools, Ints]:
    """On which side of 1/2 rows between the first and TINY_ROW are, and their keys."""
    upper = row <= HIGH_ROWS
    return upper, np.where(upper, row - 1 + HIGH_BASE, HIGH_ROWS + HALF_KEY - row)


def empty_table() -> Floats:
    """Return the table of no items."""
    return np.zeros((ROWS, COLUMNS))


@dataclass(frozen=True)
class Groups:
    """Groups by falling probability, each a count and power sums about its centre.

    A probability in group g is c + h y with y in [-1, 1]; `moments[g, j-1]` is Σ y^j.
    """

    count: Floats
    centre: Floats  # c
    rest: Floats  # 1 - c, kept apart since it may be far below c's last digit
    half: Floats  # h; negative where y counts 1 - p
    moments: Floats
    low: Floats  # no probability in the group is below this
    high: Floats  # or above this
    upper: Bools  # the group is a window of keys of t = 1 - p, else of t = p (see `Window`)
    shift: Ints
    first: Ints
    keys: Ints

    def __len__(self) -> int:
        return self.count.size

    def __getitem__(self, where: slice | Bools | Ints) -> Groups:
        return Groups(*(getattr(self, f.name)[where] for f in fields(self)))

    @property
    def runs(self) -> Bools:
        """Where all items of a group are equal."""
        equal: Bools = self.low == self.high
        return equal

    @property
    def mass(self) -> Floats:
        """Σ p of each group."""
        return self.count * self.centre + self.half * self.moments[:, 0]

    @classmethod
    def of_values(cls, values: Floats, counts: Floats) -> Groups:
        """Return one group for each distinct value, given by falling value."""
        size = values.size
        return cls(
            count=counts.astype(np.float64),
            centre=values,
            rest=1.0 - values,
            half=np.zeros(size),
            moments=np.zeros((size, MOMENTS)),
            low=values,
            high=values,
            upper=values >= 0.5,
            shift=np.zeros(size, np.int64),
            first=np.zeros(size, np.int64),
            keys=np.zeros(size, np.int64),
        )

    @classmethod
    def joined(cls, parts: Sequence[Groups]) -> Groups:
        """Return the groups of all parts, in order."""
        return cls(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)))

    def split_runs(self, pieces: int) -> Groups:
        """Return the same items with every group of equal ones cut into at most `pieces`."""
        size = np.ceil(self.count / pieces)
        cuts = np.ceil(self.count / size).astype(np.int64)
        value = np.repeat(self.centre, cuts)
        full = np.repeat(size, cuts)
        last = np.cumsum(cuts) - 1
        full[last] = self.count - (cuts - 1) * size
        return Groups.of_values(value, full)


def group_sums(groups: Groups, w: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return Σ log(1 - p w) and Σ π of each group at each node."""
    shape = (len(groups), w.size)
    log_terms, pi = np.empty(shape), np.empty(shape)
    group_kernels.group_terms(*_arguments(groups), w, x, log_terms, pi)
    return log_terms, pi


def group_variances(groups: Groups, w: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return Σ π (1 - π) and Σ (1 - π) of each group at each node."""
    shape = (len(groups), w.size)
    variance, negative = np.empty(shape), np.empty(shape)
    group_kernels.group_variances(*_arguments(groups), w, x, variance, negative)
    return variance, negative


def _arguments(groups: Groups) -> tuple[Floats, ...]:
    parts = (groups.count, groups.centre, groups.rest, groups.half, groups.moments)
    return tuple(np.ascontiguousarray(part) for part in parts)


def groups_of_table(table: Floats, *, zeros: bool = False) -> Groups:
    """Turn the table of a summary into groups; with `zeros`, items with p = 0 are the last."""
    rows = np.arange(1, TINY_ROW)
    kept = rows[table[1:TINY_ROW, 0] > 0]
    upper, key = key_of(kept)
    groups = table_groups(upper, SHIFT, key, table[kept], None)
    ones, tiny = table[ONE_ROW, 0], table[TINY_ROW]
    if ones:
        groups = Groups.joined([Groups.of_values(np.ones(1), np.array([ones])), groups])
    if tiny[0]:
        groups = Groups.joined([groups, tiny_group(tiny, LEAST_KEYED)])
    none = table[ZERO_ROW, :1]
    if zeros and none[0]:
        groups = Groups.joined([groups, Groups.of_values(np.zeros(1), none)])
    return groups


def tiny_group(row: Floats, bound: float) -> Groups:
    """The items below a tiny bound, in one group: their sum is all that counts."""
    moments = np.zeros((1, MOMENTS))
    moments[0, 0] = row[1]
    one = np.ones(1)
    return Groups(
        count=row[:1],
        centre=0.0 * one,
        rest=one,
        half=bound * one,
        moments=moments,
        low=0.0 * one,
        high=bound * one,
        upper=np.zeros(1, np.bool_),
        shift=np.array([SHIFT]),
        first=np.zeros(1, np.int64),
        keys=np.array([LOW_BASE]),
    )


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
