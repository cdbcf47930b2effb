"""Work shared out among threads: kernels release the interpreter lock."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from argmaxf._base.arrays import Ints

CHUNK = 1 << 18  # items read at a time: their sums are added apart, so rounding cannot build up


def threads_for(n: int, share: int = 2 * CHUNK) -> int:
    """Return how many threads to use on n items, each at least a share of them."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every platform
    wanted = n // share
    if wanted <= 1:
        return 1
    return min(len(affinity(0)) if affinity else os.cpu_count() or 1, wanted)


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
