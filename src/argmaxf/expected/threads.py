"""Work shared out among threads: kernels release the interpreter lock."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
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


def deal_out(work: Callable[[S, T], None], hands: Sequence[S], items: Iterable[T]) -> None:
    """Do some work on items with each of the hands in turn, all hands at once, each in order."""
    if len(hands) == 1:
        for item in items:
            work(hands[0], item)
        return
    busy: deque[Future[None]] = deque()
    with ThreadPoolExecutor(len(hands)) as pool:
        for hand, item in zip(itertools.cycle(hands), items, strict=False):
            if len(busy) == len(hands):
                busy.popleft().result()
            busy.append(pool.submit(work, hand, item))
        for each in busy:
            each.result()


def in_threads(work: Callable[[slice], None], offsets: Ints, threads: int, first: int = 0) -> None:
    """Share sets that lie one after another out among threads, each about as many items.

    Set r, counted from the first one on, has the items from offsets[r] to offsets[r + 1].
    """
    sets = offsets.size - 1
    shares = np.linspace(offsets[0], offsets[-1], max(1, min(threads, sets)) + 1)[1:-1]
    cuts = first + np.array([0, *np.searchsorted(offsets, shares), sets])
    here, *others = [slice(a, b) for a, b in itertools.pairwise(cuts.tolist()) if a < b or not sets]
    with ThreadPoolExecutor(max(1, len(others))) as pool:  # has no thread until it has work
        done = pool.map(work, others)
        work(here)
        list(done)
