"""Items as the search sees them: a summary of all of them, then closer looks at a few."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Floats, contiguous
from argmaxf._base.validation import NotAProbability
from argmaxf.expected.array_passes import ArrayPasses, BatchPasses
from argmaxf.expected.grouped import group_kernels
from argmaxf.expected.grouped.groups import MOMENTS, Groups, empty_table, groups_of_table

PIECES = 1 << 9  # that neighbouring groups are cut into, or twice as many
FEW_ITEMS = 1 << 12  # of so few each distinct value is a group


class Source:
    """Items that are read in batches; those of groups that were looked at are held, sorted."""

    def __init__(self, passes: BatchPasses) -> None:
        self.passes = passes
        self._held = np.empty(0)

    def table(self) -> Groups:
        """Return all items in the groups of the summary, those with p = 0 in the last."""
        return groups_of_table(summary(self.passes), zeros=True)

    def refine(self, wanted: Sequence[Groups]) -> list[Groups]:
        """Return the items of each part in finer groups, in the end one for each distinct value."""
        if any(self._items(part).size != part.count.sum() for part in wanted):
            inside = partial(_inside, Groups.joined(wanted))
            self._held = np.sort(np.concatenate(self.passes.each(inside)))
        return [_finer(self._items(part), part.low) for part in wanted]

    def _items(self, part: Groups) -> Floats:
        """Return the items held of neighbouring groups."""
        first, end = self._held.searchsorted([part.low[-1], np.nextafter(part.high[0], 2.0)])
        return self._held[first:end]


def summary(passes: BatchPasses) -> Floats:
    """Return the table of a summary of all items; raise NotAProbability if a value is none."""
    total = empty_table()
    for part in passes.results(_summarized):  # summed apart, so that rounding cannot build up
        total += part
    return total


def _summarized(p: NDArray[Any]) -> Floats:
    """Return the table of a batch."""
    table = empty_table()
    if not group_kernels.summarize(contiguous(p), table):
        raise NotAProbability
    return table


def _inside(groups: Groups, p: NDArray[Any]) -> Floats:
    """Return the items of a batch that lie in one of some groups."""
    near = contiguous(p[(p >= groups.low[-1]) & (p <= groups.high[0])])
    place = np.searchsorted(groups.low[::-1], near, side="right") - 1
    return near[near <= groups.high[::-1][place]]


def _finer(items: Floats, borders: Floats) -> Groups:
    """Return items in ascending order as groups: cut at borders, and into about equal numbers."""
    if items.size <= PIECES:
        return _groups_of_values(items)
    some = items[:: -(-items.size // PIECES)]
    ends = items.searchsorted(some, "right")  # of runs of equal items, which are not parted
    cuts = np.zeros(1, int), items.searchsorted(borders), items.searchsorted(some), ends
    starts = np.unique(np.concatenate(cuts))
    starts = starts[starts < items.size]
    count = np.diff(starts, append=items.size)
    low, high = items[starts], items[starts + count - 1]
    centre = low + 0.5 * (high - low)
    half = np.maximum(high - centre, centre - low)  # one may round to 0
    width = np.where(half > 0.0, half, 1.0)
    place = (items - np.repeat(centre, count)) / np.repeat(width, count)
    moments = [np.add.reduceat(place**j, starts) for j in range(1, MOMENTS + 1)]
    sums = np.column_stack(moments)
    return Groups(count.astype(np.float64), centre, 1.0 - centre, half, sums, low, high)[::-1]


def _groups_of_values(p: NDArray[Any]) -> Groups:
    """Return one group for each distinct value."""
    values, counts = np.unique(p.astype(np.float64), return_counts=True)
    return Groups.of_values(values[::-1], counts[::-1])


def groups_of_items(p: NDArray[Any]) -> Groups:
    """Return items as groups: each distinct value one group, or the groups of a summary."""
    return _groups_of_values(p) if p.size <= FEW_ITEMS else Source(ArrayPasses(p)).table()
