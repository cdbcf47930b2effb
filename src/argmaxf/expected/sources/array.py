"""Probabilities in an array: read in chunks, by several threads, never sorted as a whole."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools, Floats, contiguous
from argmaxf._base.validation import NotAProbability
from argmaxf.expected.sources.base import Cut
from argmaxf.expected.summary.groups import Groups
from argmaxf.expected.summary.layout import COLUMNS, empty_table
from argmaxf.expected.summary.tables import groups_of_table, table_groups
from argmaxf.expected.summary.windows import SORTED, Window, windows
from argmaxf.expected.threads import CHUNK, threads_for

HELD = 16  # items are copied out once they are fewer than 1/HELD of all

T = TypeVar("T")


class Items(Protocol):
    """Numbers that are read in slices: an array, or a file that is sliced like one."""

    size: int

    def __getitem__(self, where: slice, /) -> NDArray[Any]: ...


def add_items(table: Floats, items: Floats) -> Floats:
    """Add items, as kernels take them, to the table of a summary; raise NotAProbability.

    Their sums are added apart, so that rounding cannot build up over many calls.
    """
    from argmaxf.expected.summary import kernels

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
        self.most_held = self.p.size // HELD if most_held is None else most_held
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
        from argmaxf.expected import tilt_kernels as kernels

        p, (threshold, k) = self.p[:], cuts[()]
        selected: Bools = np.greater_equal(p, threshold)
        if np.count_nonzero(selected) != k:
            ties = k - np.count_nonzero(p > threshold)
            kernels.select(contiguous(p), threshold, ties, selected)
        return selected

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
        from argmaxf.expected.summary import kernels

        low, high = window.bounds
        rows = window.keys

        def start() -> tuple[Floats, Floats, Floats]:
            return np.zeros((rows, COLUMNS)), np.full(rows, np.inf), np.full(rows, -np.inf)

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
        from argmaxf.expected.summary import kernels

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
