"""Small sets of items, each sorted and every k looked at: rows, columns, segments, sparse rows.

One compiled kernel decides sorted sets that lie one after another (small_set_kernels.py). The rows
of a matrix are sorted by NumPy; sets of any sizes are put into matrices of like width first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from argmaxf._base.arrays import Floats, Ints, readonly
from argmaxf._base.validation import NotAProbability
from argmaxf.expected.counts import decide_by_counts
from argmaxf.expected.decision import Decision
from argmaxf.expected.route import decide_large
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.expected.ties import settle
from argmaxf.problem import Problem

SMALL = 1 << 14  # sets of up to so many items are decided here


def decide_rows(p: Floats, problem: Problem) -> Decision:
    """Decide each row of a matrix, rows shared out among threads; of equal items the first.

    Raises NotAProbability if a value is none.
    """
    from argmaxf.expected import small_set_kernels

    rows, n = p.shape
    if problem.least:
        problem.check_reachable(int(np.count_nonzero(p > 0.0, axis=1).min()))
    k, ties = np.empty(rows, np.int64), np.empty(rows, np.int64)
    selected = np.empty(p.shape, np.bool_)
    threshold, expected, std = np.empty(rows), np.empty(rows), np.empty(rows)
    cached = 1 << 17  # items sorted and decided together, while they are in the cache
    step = max(1, cached // n)

    def work(part: slice) -> None:
        for start in range(part.start, part.stop, step):
            here = slice(start, min(start + step, part.stop))
            ascending = np.sort(p[here], axis=1)
            if not (ascending[:, 0].min() >= 0.0 and ascending[:, -1].max() <= 1.0):
                raise NotAProbability
            flat, offsets = readonly(ascending.reshape(-1)), np.arange(len(ascending) + 1) * n
            k[here], expected[here], std[here] = _best_sizes(flat, readonly(offsets), problem)
            small_set_kernels.thresholds(flat, offsets, k[here], threshold[here], ties[here])
            np.greater_equal(p[here], threshold[here, None], out=selected[here])
            if (ties[here] < n).any():
                items, marks = readonly(p[here].reshape(-1)), selected[here].reshape(-1)
                small_set_kernels.select_sets(items, offsets, threshold[here], ties[here], marks)

    costs = 32  # an item is about as much work as so many in a pass over an array
    in_threads(work, rows, threads_for(costs * p.size))
    return Decision(selected, k, threshold, expected, std, problem.beta, n)


def decide_sets(values: Floats, offsets: Ints, problem: Problem) -> Decision:
    """Decide sets of any sizes, set r from offsets[r] on; of equal items the first are chosen.

    The labels lie as the values do. For a ratio of counts an item with p = 0 changes nothing: sets
    of like size are filled up with them. Sets of more than SMALL items are decided one by one.
    """
    sizes = np.diff(offsets)
    selected, names = np.empty(values.size, np.bool_), ("k", "threshold", "expected", "std")
    found: dict[str, Any] = {name: np.empty(sizes.size) for name in names}
    found["k"] = np.empty(sizes.size, np.int64)
    if problem.least and sizes.size:
        positive = np.add.reduceat(np.append(values > 0.0, False).astype(np.int64), offsets[:-1])
        problem.check_reachable(int(np.where(sizes > 0, positive, 0).min()))
    for which, width in _batches(sizes, problem):
        if width > SMALL:
            here = slice(offsets[which[0]], offsets[which[0] + 1])
            decided = decide_large(values[here], problem)
            selected[here] = decided.selected
        else:
            place, p = offsets[which, None] + np.arange(width), np.zeros((which.size, width))
            there = np.arange(width) < sizes[which, None]
            p[there] = values[place[there]]
            decided = decide_rows(p, problem)
            selected[place[there]] = decided.selected[there]
        for name in names:
            found[name][which] = getattr(decided, name)
    return Decision(selected, beta=problem.beta, n=sizes, **found)


def _batches(sizes: Ints, problem: Problem) -> Iterator[tuple[Ints, int]]:
    """Yield sets that fit in matrices of some width, about a million items at a time.

    Each width is at most a quarter more than the one before, or one more; where items with p = 0
    count, each size has its own.
    """
    steps = np.unique(np.append(np.ceil(1.25 ** np.arange(44)), SMALL)).astype(np.int64)
    width = np.maximum(steps[np.minimum(np.searchsorted(steps, sizes), steps.size - 1)], sizes)
    if problem.ratio is None:
        width = np.maximum(sizes, 1)
    order = np.argsort(width, kind="stable")
    edges = np.flatnonzero(np.diff(width[order], prepend=0, append=0))
    for start, stop in pairwise(edges.tolist()):
        each = int(width[order[start]])
        step = 1 if each > SMALL else max(1, (1 << 20) // each)
        for first in range(start, stop, step):
            yield order[first : min(first + step, stop)], each


def _best_sizes(ascending: Floats, offsets: Ints, problem: Problem) -> tuple[Ints, Floats, Floats]:
    """Return k, the expected value and its spread of each sorted set, near ties settled."""
    from argmaxf.expected import small_set_kernels

    if problem.ratio is None:
        return decide_by_counts(ascending, offsets, problem)
    size = offsets.size - 1
    k, rivals = np.empty(size, np.int64), np.empty(size, np.int64)
    expected, std = np.empty(size), np.empty(size)
    results = k, expected, std, rivals
    small_set_kernels.decide_sets(ascending, offsets, *_options(problem), *results)
    if size and expected.min() < 0.0:
        raise problem.no_set()
    for r in np.flatnonzero(rivals > 1).tolist():
        k[r], expected[r], std[r] = _settled(ascending[offsets[r] : offsets[r + 1]], problem)
    return k, expected, std


def _settled(ascending: Floats, problem: Problem) -> tuple[int, float, float]:
    """Decide a set in which several k are nearer than their error."""
    from argmaxf.expected import small_set_kernels as kernels
    from argmaxf.expected import tilt_kernels as tilts

    f, rule, work = np.empty(ascending.size + 1), np.zeros(tilts.RULE), np.empty(kernels.WORKSPACE)
    kernels.decide_set(ascending, *_options(problem), rule, work, f)
    rivals = np.flatnonzero(f > -1.0).tolist()
    c, zero = problem.coefficients, problem.zero_division
    k = settle(ascending[::-1], rivals, problem) if len(rivals) > 1 else rivals[0]
    if k == 0:
        return 0, *kernels.nothing_selected(ascending, math.fsum(ascending), c, zero, work)
    deviation = np.empty(1)
    kernels.spreads(ascending, c, zero, np.array([k]), f, deviation)
    return k, float(f[k]), float(deviation[0])


def _options(problem: Problem) -> tuple[object, ...]:
    """Return a problem as the kernels take it."""
    limits = problem.least, problem.most
    return problem.coefficients, problem.zero_division, problem.split_ties, limits
