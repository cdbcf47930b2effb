"""Passes over items that are read in chunks, by compiled loops: arrays, and streams of batches.

See `band.py` for what the passes are for, `pass_kernels.py` for the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Floats, Ints, contiguous
from argmaxf._base.validation import NotAProbability
from argmaxf.expected import pass_kernels
from argmaxf.expected.band import Around
from argmaxf.expected.threads import CHUNK, in_turn, threads_for

T = TypeVar("T")
AroundPart = tuple[Floats, Floats | None]  # sums, and the items of a band unless there are too many


class BatchPasses:
    """The passes over one set of items that is read in batches, from the start for each pass.

    `read` yields one-dimensional arrays, at least one, the same each time it is called; one of them
    is held at a time, and the items of a band. The number of items is known after the first pass.
    """

    def __init__(self, read: Callable[[], Iterable[NDArray[Any]]]) -> None:
        self.read, self.n = read, 0

    def results(self, work: Callable[[NDArray[Any]], T]) -> Iterator[T]:
        """Yield what some work on each batch gives."""
        yield from map(work, self.read())

    def each(self, work: Callable[[NDArray[Any]], T]) -> list[T]:
        """Do some work on every batch."""
        return list(self.results(work))

    def counts(self, sampled: bool = False) -> NDArray[Any]:
        """Count the items in bins, or a sample of each batch, which stands for all of it."""
        counts: Any = np.sum(self.each(estimated if sampled else counted), axis=0)
        self.n = round(float(counts.sum()))
        return np.asarray(counts)

    def above(self, cut: float) -> list[float]:
        """Return Σ p, how many items are above a threshold, and their Σ p."""
        tallied = self.each(lambda p: pass_kernels.tally.compiled(contiguous(p), cut))
        bad, *sums = np.sum(tallied, axis=0)
        if bad:
            raise NotAProbability
        return [float(each) for each in sums]

    def around(self, low: float, high: float, room: int) -> Around:
        """Return the sums around a band, and its items in ascending order."""
        return gathered(self.each(summing_around(low, high, room)), room)

    def least_above(self, cut: float) -> float:
        """Return the least item above a threshold."""
        return float(
            min(self.each(lambda p: pass_kernels.least_above.compiled(contiguous(p), cut)))
        )


class ArrayPasses(BatchPasses):
    """The passes over one array, in chunks shared out among threads.

    A copy in double precision is held of up to a million items of another type.
    """

    def __init__(self, p: NDArray[Any]) -> None:
        copied = 1 << 20
        items: NDArray[Any] = contiguous(p) if p.size <= copied else p
        # not a method: the array would wait for the collector of cycles
        super().__init__(lambda: (items[i : i + CHUNK] for i in range(0, items.size, CHUNK)))
        self.p, self.n = items, items.size

    def results(self, work: Callable[[NDArray[Any]], T]) -> Iterator[T]:
        """Yield what some work on each chunk gives, in order."""
        yield from in_turn(work, self.read(), threads_for(self.n))


class Near(NamedTuple):
    """What one pass brings of the items near a number: they themselves, and sums over all others.

    Passes for cuts and bands near it need no other items.
    """

    low: float
    high: float
    items: ArrayPasses
    sums: Floats  # over the items below and above, as in `Around`

    def has(self, low: float, high: float) -> bool:
        """Whether a band is near enough."""
        return self.low <= low <= high <= self.high

    def above(self, cut: float) -> list[float]:
        """Do as `Passes.above`."""
        (below, *_), (above, rest, *_) = self.sums
        total, k, mass = self.items.above(cut)
        return [total + below + above, k + round(above + rest), mass + above]

    def around(self, low: float, high: float, room: int) -> Around:
        """Do as `Passes.around`."""
        sums, items = self.items.around(low, high, room)
        return Around(sums + self.sums, items)


def summing_around(low: float, high: float, room: int) -> Callable[[NDArray[Any]], AroundPart]:
    """Return what sums up the items of a batch around a band, and copies those in it.

    Nothing more is copied when all batches together have more than `room` of them.
    """
    left, spare = room, 32  # of `add_around`

    def work(p: NDArray[Any]) -> AroundPart:
        nonlocal left
        sums, items = np.zeros((2, pass_kernels.SUMS)), np.empty(min(p.size, max(left, 0)) + spare)
        size = pass_kernels.add_around.compiled(contiguous(p), low, high, sums, items)
        left -= size if size >= 0 else left + 1
        return sums, items[:size].copy() if left >= 0 else None

    return work


def gathered(parts: Sequence[AroundPart], room: int) -> Around:
    """Put together what was found in batches."""
    found = [items for _, items in parts if items is not None]
    fits = len(found) == len(parts) and sum(items.size for items in found) <= room
    ordered = np.sort(np.concatenate(found)) if fits else None
    return Around(np.sum([sums for sums, _ in parts], axis=0), ordered)


def estimated(p: NDArray[Any]) -> Floats:
    """Estimate the counts in bins from a part of all items: runs of neighbours from everywhere."""
    run, runs, part = 16, 128, 128  # so many runs, or a part of all items
    stride = min(max(p.size // runs, run), part * run)
    whole = p.size // stride * stride
    sample = p[:whole].reshape(-1, stride)[:, :run].reshape(-1) if whole else p
    return np.multiply(counted(sample), p.size / max(sample.size, 1))


def counted(items: NDArray[Any]) -> Ints:
    """Count items in bins; raise NotAProbability if a value is none."""
    p = contiguous(items)
    counts = np.zeros(pass_kernels.BINS, np.int64)
    if pass_kernels.add_counts.compiled(p, p.view(np.int64), counts):
        raise NotAProbability
    return counts
