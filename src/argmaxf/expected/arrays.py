"""Probabilities in an array: read in chunks, by several threads, never sorted as a whole."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from argmaxf.arrays import Floats
from argmaxf.expected.groups import Groups
from argmaxf.expected.windows import Window, table_groups, windows
from argmaxf.validation import NotAProbability

CHUNK = 1 << 18  # items read at a time: their sums are added apart, so rounding cannot build up
SORTED = 1 << 9  # so few items are sorted instead of grouped again
HELD = 16  # items are copied out once they are fewer than 1/HELD of all

T = TypeVar("T")


class Items(Protocol):
    """Numbers that are read in slices: an array, or a file that is sliced like one."""

    size: int

    def __getitem__(self, where: slice, /) -> NDArray[Any]: ...


def threads_for(n: int) -> int:
    """Return how many threads to use on n items."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every platform
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(cores, n // (2 * CHUNK)))


def in_threads(work: Callable[[slice], None], rows: int, threads: int, first: int = 0) -> None:
    """Share rows out among threads, `rows` of them from the first on."""
    threads = min(threads, rows)
    if threads == 1:
        work(slice(first, first + rows))
        return
    cuts = np.linspace(first, first + rows, threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, [slice(a, b) for a, b in itertools.pairwise(cuts)]))


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

    def table(self) -> Floats:
        """Return the table of the summary; raise NotAProbability if a value is none."""
        from argmaxf.expected import kernels

        def add(total: Floats, chunk: Floats) -> Floats:
            part = np.zeros((kernels.ROWS, kernels.COLUMNS))
            if not kernels.summarize(chunk, part):
                raise NotAProbability
            total += part
            return total

        parts = self._fold(add, lambda: np.zeros((kernels.ROWS, kernels.COLUMNS)))
        total: Floats = np.sum(list(parts), axis=0)
        return total

    def subdivide(self, groups: Groups) -> Groups:
        """Return the same items in finer groups, in the end one for each distinct value."""
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
        from argmaxf.expected import kernels

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
        from argmaxf.expected import kernels

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


def contiguous(chunk: NDArray[Any]) -> Floats:
    """Return a chunk as the kernels take it: float64, contiguous, read-only."""
    from argmaxf.expected import kernels

    return kernels.readonly(np.ascontiguousarray(chunk, dtype=np.float64))
