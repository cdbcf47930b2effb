"""Work shared out among threads: kernels release the interpreter lock."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from argmaxf._base.arrays import Ints

S = TypeVar("S")
T = TypeVar("T")
CHUNK = 1 << 18  # items read at a time: their sums are added apart, so rounding cannot build up


def threads_for(n: int, share: int = 2 * CHUNK) -> int:
    """Return how many threads to use on n items, each at least a share of them."""
    wanted = n // share
    return min(processors(), wanted) if wanted > 1 else 1


def processors() -> int:
    """Return how many processors the process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every platform
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def in_turn(work: Callable[[S], T], items: Iterable[S], threads: int) -> Iterator[T]:
    """Yield what some work on each item gives, in order; at most threads + 1 are held."""
    if threads == 1:
        yield from map(work, items)
        return
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def in_threads(work: Callable[[slice], None], rows: int, threads: int, first: int = 0) -> None:
    """Share rows out among threads, `rows` of them from the first on."""
    threads = max(1, min(threads, rows))
    if threads == 1:
        work(slice(first, first + rows))
        return
    _in_parts(work, np.linspace(first, first + rows, threads + 1).astype(int).tolist())


def sets_in_threads(work: Callable[[slice], None], offsets: Ints, threads: int) -> None:
    """Share sets that lie one after another out among threads, each about as many items."""
    if threads == 1 or offsets.size == 2:
        work(slice(0, offsets.size - 1))
        return
    shares = np.linspace(offsets[0], offsets[-1], threads + 1)
    _in_parts(work, np.searchsorted(offsets, shares).tolist())


def _in_parts(work: Callable[[slice], None], cuts: list[int]) -> None:
    """Do the work between each two neighbouring cuts: the first part here, others in threads."""
    first, *others = [slice(a, b) for a, b in itertools.pairwise(cuts) if a < b]
    with ThreadPoolExecutor(max(1, len(others))) as pool:
        done = pool.map(work, others)
        work(first)
        list(done)
