"""Where the items of a search are: what a source has to offer, and the source for arrays.

A source gives a coarse look at all items, closer looks at some, and marks those chosen. It may hold
the items of many decisions at once, each under its own key (the segments of a frame, the rows of a
matrix), so that all of them share its passes; a source of one decision has the one key `()`. To add
a source, write a class with the three methods of `Source`; `refine.decide` does the rest. A source
holds what it likes in memory; the search keeps the groups it was given.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools, Floats, contiguous
from argmaxf._base.validation import NotAProbability
from argmaxf.expected.decision import top_items
from argmaxf.expected.grouped import group_kernels as kernels
from argmaxf.expected.grouped.groups import (
    SORTED,
    Groups,
    Window,
    empty_table,
    groups_of_table,
    table_groups,
    windows,
)
from argmaxf.expected.threads import CHUNK, threads_for

HELD_PART = 16  # items are copied out once they are fewer than 1/HELD_PART of all

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)


class Cut(NamedTuple):
    """A decision as a source needs it to mark items: the top k, the lowest one at `threshold`."""

    threshold: float
    k: int


class Source(Protocol[Key]):
    """Where the items are: an array, a file, a frame."""

    def table(self) -> Mapping[Key, Groups]:
        """Return all items in groups by falling probability, those with p = 0 in the last.

        The groups are those of the summary (`groups.py`). This is the first pass; it raises
        NotAProbability, or an error of its own, at a value that is no probability.
        """
        ...

    def refine(self, wanted: Mapping[Key, Sequence[Groups]]) -> Mapping[Key, Sequence[Groups]]:
        """Return the items of each part in finer groups, in the same order.

        Bounds of finer groups are tight: `low` and `high` occur. Asked again and again, a source
        ends with one group for each distinct value.
        """
        ...


class Items(Protocol):
    """Numbers that are read in slices: an array, or a file that is sliced like one."""

    size: int

    def __getitem__(self, where: slice, /) -> NDArray[Any]: ...


def add_items(table: Floats, items: Floats) -> Floats:
    """Add items, as kernels take them, to the table of a summary; raise NotAProbability.

    Their sums are added apart, so that rounding cannot build up over many calls.
    """
    part = empty_table()
    if not kernels.summarize(items, part):
        raise NotAProbability
    table += part
    return table


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
        self._held: list[tuple[Window, Floats]] = []

    def sums(self) -> Floats:
        """Return the table of the summary; raise NotAProbability if a value is none."""
        total: Floats = np.sum(list(self._fold(add_items, empty_table)), axis=0)
        return total

    def table(self) -> dict[tuple[()], Groups]:
        """Return all items in the groups of the summary."""
        return {(): groups_of_table(self.sums(), zeros=True)}

    def refine(self, wanted: Mapping[tuple[()], Sequence[Groups]]) -> dict[tuple[()], list[Groups]]:
        """Return the same items in finer groups, in the end one for each distinct value."""
        return {(): [self.subdivide(groups) for groups in wanted[()]]}

    def select(self, cuts: Mapping[tuple[()], Cut]) -> Bools:
        """Mark the top k: what is above the threshold, and the first ones equal to it."""
        return top_items(self.p[:], *cuts[()])

    def subdivide(self, groups: Groups) -> Groups:
        """Return neighbouring groups in finer ones."""
        return Groups.joined([self._subdivide(*each) for each in windows(groups)])

    def _subdivide(self, window: Window, count: int) -> Groups:
        if count <= SORTED:
            values, counts = np.unique(self._gather(window), return_counts=True)
            return Groups.of_values(values[::-1], counts[::-1].astype(np.float64))
        if count <= self.most_held:
            self._held.append((window, self._gather(window)))
        return self._summarize(window.refined())

    def _summarize(self, window: Window) -> Groups:
        """Return the groups of one window, in one pass."""
        low, high = window.bounds
        rows = window.keys

        def start() -> tuple[Floats, Floats, Floats]:
            return np.zeros((rows, kernels.COLUMNS)), np.full(rows, np.inf), np.full(rows, -np.inf)

        def add(total: tuple[Floats, ...], chunk: Floats) -> tuple[Floats, ...]:
            upper, shift, first, _ = window
            kernels.summarize_window(chunk, low, high, upper, shift, first, *total)
            return total

        parts = list(self._fold(add, start, self._holding(window)))
        table = np.sum([table for table, _, _ in parts], axis=0)
        lowest = np.minimum.reduce([lowest for _, lowest, _ in parts])
        highest = np.maximum.reduce([highest for _, _, highest in parts])
        kept = np.flatnonzero(table[:, 0])
        upper = np.full(kept.size, window.upper)
        extremes = (lowest[kept], highest[kept])
        return table_groups(upper, window.shift, window.first + kept, table[kept], extremes)

    def _gather(self, window: Window) -> Floats:
        """Copy out the items of one window."""
        low, high = window.bounds

        def add(found: list[Floats], chunk: Floats) -> list[Floats]:
            out = np.empty(chunk.size)
            size = kernels.gather_window(chunk, low, high, *window, out)
            found.append(out[:size].copy())
            return found

        parts = self._fold(add, list, self._holding(window))
        return np.concatenate([values for part in parts for values in part])

    def _holding(self, window: Window) -> NDArray[Any] | Items:
        """Return the smallest array that has every item of the window."""
        low, high = window.bounds
        for held, values in reversed(self._held):
            if held.bounds[0] <= low and high <= held.bounds[1]:
                return values
        return self.p

    def _fold(
        self,
        add: Callable[[T, Floats], T],
        start: Callable[[], T],
        p: NDArray[Any] | Items | None = None,
    ) -> Iterator[T]:
        """Add up all chunks, in as many parts as there are threads; yield the parts in order."""
        items = self.p if p is None else p
        chunks = range(0, items.size, self.chunk)

        def work(starts: range) -> T:
            total = start()
            for i in starts:
                total = add(total, contiguous(items[i : i + self.chunk]))
            return total

        if self.threads == 1 or len(chunks) < 2 * self.threads:
            yield work(chunks)
            return
        cuts = np.linspace(0, len(chunks), self.threads + 1).astype(int)
        with ThreadPoolExecutor(self.threads) as pool:
            parts = [chunks[a:b] for a, b in itertools.pairwise(cuts.tolist())]
            yield from pool.map(work, parts)
