"""Sets of items of any sizes: rows, columns, segments, sparse rows; the small ones are sorted.

One compiled kernel decides sorted sets that lie one after another, every k looked at
(small_set_kernels.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Floats, Ints, contiguous, readonly
from argmaxf._base.validation import NotAProbability
from argmaxf.expected.counts import MOST_ITEMS, decide_by_counts
from argmaxf.expected.decision import BoundedDecision, Decision
from argmaxf.expected.route import decide_large
from argmaxf.expected.threads import sets_in_threads, threads_for
from argmaxf.expected.ties import settle
from argmaxf.measures import GMean
from argmaxf.problem import Problem

SORTED = 1 << 14  # sets of up to so many items are sorted
SORTED_AT_ONCE = 1 << 17  # items sorted and decided together, while they are in the cache


def most_sorted(problem: Problem) -> int:
    """Return up to how many items are looked at one by one."""
    return MOST_ITEMS if isinstance(problem.measure, GMean) else SORTED


def decide_sets(
    values: NDArray[Any],
    offsets: Ints,
    problem: Problem,
    decide: Callable[[NDArray[Any], Problem], Decision] | None = None,
) -> Decision:
    """Decide sets of any sizes, set r from offsets[r] on; of equal items the first are chosen.

    The labels lie as the values do. Large sets are decided one by one, and so are all of them by
    `decide` if it is given. Raises NotAProbability if a value is none.
    """
    sizes, long_set, costs = np.diff(offsets), 1 << 20, 32  # an item costs so many of a plain pass
    if problem.least and sizes.size:
        positive = np.add.reduceat(np.append(values > 0.0, False).astype(np.int64), offsets[:-1])
        problem.check_reachable(int(np.where(sizes > 0, positive, 0).min()))
    k, ties = np.empty(sizes.size, np.int64), np.empty(sizes.size, np.int64)
    threshold, expected, std, bound = np.empty((4, sizes.size))
    selected, guarantees = np.empty(values.size, np.bool_), [None] * sizes.size
    alone = (sizes > most_sorted(problem)) | (decide is not None)

    def decide_alone(r: int) -> None:
        items = slice(offsets[r], offsets[r + 1])
        found = (decide or decide_large)(values[items], problem)
        selected[items], guarantees[r] = found.selected, found.guarantee
        k[r], threshold[r], expected[r], std[r] = (
            found.k,
            found.threshold,
            found.expected,
            found.std,
        )
        bound[r] = getattr(found, "bound", found.expected)

    def work(part: slice) -> None:
        for here in _blocks(offsets, alone, part):
            if alone[here.start]:
                decide_alone(here.start)
                continue
            own = offsets[here.start : here.stop + 1]
            items, starts = contiguous(values[own[0] : own[-1]]), readonly(own - own[0])
            ascending = readonly(_sorted(items, sizes[here], starts))
            k[here], expected[here], std[here] = _best_sizes(ascending, starts, problem)
            small_set_kernels.thresholds(ascending, starts, k[here], threshold[here], ties[here])
            marks = selected[own[0] : own[-1]]
            small_set_kernels.select_sets(items, starts, threshold[here], ties[here], marks)
            bound[here] = expected[here]

    from argmaxf.expected import small_set_kernels

    longest = int(sizes.max(initial=0))  # beyond some size sets have threads of their own
    sets_in_threads(work, offsets, threads_for(costs * values.size) if longest <= long_set else 1)
    decision = Decision(selected, k, threshold, expected, std, problem.beta, sizes)
    if problem.chance:
        return Decision(**vars(decision) | {"guarantee": guarantees})
    if isinstance(problem.measure, GMean):
        return BoundedDecision(**vars(decision), bound=bound)
    return decision


def _blocks(offsets: Ints, alone: NDArray[np.bool_], part: slice) -> Iterator[slice]:
    """Yield neighbouring sets that are decided together, or one that is decided alone."""
    start = part.start
    while start < part.stop:
        stop = start + 1
        if not alone[start]:
            limit = offsets[start] + SORTED_AT_ONCE
            stop = max(stop, min(int(np.searchsorted(offsets, limit, "right")) - 1, part.stop))
            stop = start + int(np.argmax(np.append(alone[start:stop], True)))
        yield slice(start, stop)
        start = stop


def _sorted(items: Floats, sizes: Ints, starts: Ints) -> Floats:
    """Return each set in ascending order."""
    ascending = items.copy()
    if sizes.size and sizes.min() == sizes.max() > 0:
        ascending.reshape(-1, sizes[0]).sort(axis=1)
    else:
        for first, end in pairwise(starts.tolist()):
            ascending[first:end].sort()
    if ascending.size and not (ascending.min() >= 0.0 and ascending.max() <= 1.0):
        raise NotAProbability
    return ascending


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
    return k, float(f[k]), float(kernels.top_spread(ascending, k, f[k], c, rule, work))


def _options(problem: Problem) -> tuple[object, ...]:
    """Return a problem as the kernels take it."""
    limits = problem.least, problem.most
    return problem.coefficients, problem.zero_division, problem.split_ties, limits
