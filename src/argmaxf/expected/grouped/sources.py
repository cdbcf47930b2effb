"""The items of an array, or of what is sliced like one, as the search sees them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools, Floats, contiguous
from argmaxf._base.validation import NotAProbability
from argmaxf.expected.grouped import group_kernels
from argmaxf.expected.grouped.groups import Groups, Pieces, empty_table, groups_of_table
from argmaxf.expected.threads import CHUNK, threads_for

HELD_PART = 16  # items are copied out once they are fewer than 1/HELD_PART of all
PIECES = 1 << 10  # that neighbouring groups are cut into
SORTED = 1 << 9  # so few items are sorted instead of grouped again
FEW_ITEMS = 1 << 12  # of so few each distinct value is a group

T = TypeVar("T")


class Items(Protocol):
    """Numbers that are read in slices: an array, or a file that is sliced like one."""

    size: int

    def __getitem__(self, where: slice, /) -> NDArray[Any]: ...


class ArraySource:
    """An array as the search sees it: a summary of all items, then closer looks at a few.

    Holds no copy of the array; at most n / 16 items, or `most_held`, are copied out at a time.
    """

    def __init__(
        self,
        p: NDArray[Any] | Items,
        *,
        threads: int | None = None,
        chunk: int = CHUNK,
        most_held: int | None = None,
    ) -> None:
        self.p: NDArray[Any] | Items = p.reshape(-1) if isinstance(p, np.ndarray) else p
        self.chunk = chunk
        self.most_held = self.p.size // HELD_PART if most_held is None else most_held
        self.threads = threads_for(self.p.size) if threads is None else threads
        self._held: tuple[Groups, Floats] | None = None

    def sums(self) -> Floats:
        """Return the table of the summary; raise NotAProbability if a value is none."""

        def add(table: Floats, items: Floats) -> None:
            part = empty_table()  # sums are added apart, so that rounding cannot build up
            if not group_kernels.summarize(items, part):
                raise NotAProbability
            table += part

        total: Floats = np.sum(list(self._fold(self.p, empty_table, add)), axis=0)
        return total

    def table(self) -> Groups:
        """Return all items in the groups of the summary, those with p = 0 in the last."""
        return groups_of_table(self.sums(), zeros=True)

    def refine(self, wanted: Sequence[Groups]) -> list[Groups]:
        """Return the items of each part in finer groups, in the end one for each distinct value.

        Bounds of finer groups are tight: `low` and `high` occur.
        """
        groups = Groups.joined(wanted)
        items = self._holding(groups)
        if groups.count.sum() <= SORTED:
            values, counts = np.unique(contiguous(items[:]), return_counts=True)
            finer = Groups.of_values(values[::-1], counts[::-1])
        else:
            pieces = Pieces(groups, PIECES)
            finer = pieces.groups(list(self._fold(items, pieces.empty, pieces.add)))
        return [finer[_within(finer, part)] for part in wanted]

    def _holding(self, groups: Groups) -> NDArray[Any] | Items:
        """Return an array that has every item of some groups, and few others if any."""
        wanted, items = int(groups.count.sum()), self.p
        if self._held is not None and _lie_in(groups.low, self._held[0], groups.high).all():
            items = self._held[1]
        if wanted <= max(self.most_held, SORTED) and items.size > 4 * wanted:
            low, high = groups.low[-1], groups.high[0]

            def add(found: list[Floats], chunk: Floats) -> None:
                near = chunk[(chunk >= low) & (chunk <= high)]
                found.append(near if len(groups) == 1 else near[_lie_in(near, groups)])

            parts: list[list[Floats]] = list(self._fold(items, list, add))
            items = np.concatenate([values for part in parts for values in part])
            self._held = groups, items
        return items

    def _fold(
        self, items: NDArray[Any] | Items, start: Callable[[], T], add: Callable[[T, Floats], None]
    ) -> Iterator[T]:
        """Add up all chunks, in as many parts as there are threads; yield the parts in order."""
        chunks = range(0, items.size, self.chunk)

        def work(starts: range) -> T:
            total = start()
            for i in starts:
                add(total, contiguous(items[i : i + self.chunk]))
            return total

        if self.threads == 1 or len(chunks) < 2 * self.threads:
            yield work(chunks)
            return
        cuts = np.linspace(0, len(chunks), self.threads + 1).astype(int)
        with ThreadPoolExecutor(self.threads) as pool:
            parts = [chunks[a:b] for a, b in itertools.pairwise(cuts.tolist())]
            yield from pool.map(work, parts)


def _lie_in(low: Floats, groups: Groups, high: Floats | None = None) -> Bools:
    """Mark numbers, or intervals, that lie in one of some groups by falling probability."""
    place = np.searchsorted(groups.low[::-1], low, side="right") - 1
    inside: Bools = (low if high is None else high) <= groups.high[::-1][place]
    return inside & (place >= 0)


def _within(finer: Groups, part: Groups) -> Bools:
    """Mark the groups that are parts of others, which are neighbours."""
    inside: Bools = (finer.low >= part.low[-1]) & (finer.high <= part.high[0])
    return inside


def groups_of_items(p: NDArray[Any]) -> Groups:
    """Return items as groups: each distinct value one group, or the groups of a summary."""
    if p.size > FEW_ITEMS:
        return ArraySource(p).table()
    values, counts = np.unique(p.astype(np.float64), return_counts=True)
    return Groups.of_values(values[::-1], counts[::-1])
