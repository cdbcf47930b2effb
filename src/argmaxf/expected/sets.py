"""How sets of any sizes are decided: arrays, rows, columns, segments, sparse rows.

Rows, columns and segments of up to 16,384 items are sorted, and every k is looked at: one compiled
kernel decides sorted sets that lie one after another (`small_set_kernels.py`). So are single sets
of up to 2,048 items, and larger ones of that size that the band leaves open. Measures that are no
ratio have curves of their own, and so have chance constraints, for sets of any size
(`every_size.py`). Larger sets are decided by the band or by the grouped search, without sorting.

The band (`band.py`) decides every measure that is a ratio of counts, with smoothing, any value of
0/0, and equal items split or together. The grouped search (`grouped`) is for:

- sketches and other summaries, also of frames and files that are not read in batches: there are no
  items to copy out of a band;
- measures that are linear in the positives (`LinearCurve`): their value is no ratio of means;
- limits on the number of items that exclude the best set: f need not fall steadily beyond it;
- several sets that agree to 12 digits of the terms they do not share: the search looks at the loss
  instead of f where f is near 1, and takes the smallest of equal ones;
- a narrow band that is not proven where a wide one has too many items: f is nearly flat over many
  sets, with few positives among many items that look alike;
- values below 1e-290, and Tversky's index so far from Dice that terms of the first sets underflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Floats, Ints, contiguous, readonly
from argmaxf._base.segments import Segments
from argmaxf._base.validation import NotAProbability
from argmaxf.expected import band, search
from argmaxf.expected.array_passes import ArrayPasses
from argmaxf.expected.chance import guarantee_of
from argmaxf.expected.counts import refuse_many
from argmaxf.expected.decision import BoundedDecision, Decision, top_items
from argmaxf.expected.every_size import BestSize, decide_sorted
from argmaxf.expected.groups import Source, groups_of_items
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.expected.ties import settle
from argmaxf.expected.values import value_of_sets
from argmaxf.measures import GMean
from argmaxf.problem import Problem

SORTED = 1 << 14  # sets of up to so many items are sorted
SORTED_AT_ONCE = 1 << 17  # items sorted and decided together, while they are in the cache


def needs_sorting(problem: Problem) -> bool:
    """Whether sets are sorted however large they are."""
    return problem.chance is not None or problem.needs_items


def decide_set(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide one set of items."""
    if p.size == 0:
        raise ValueError("p must hold at least one probability, got none")
    if p.size > SORTED and not needs_sorting(problem):
        return decide_large(p, problem)
    if (decision := decide_by_band(p, problem)) is not None:
        return decision
    decision = decide_sets(p, np.array([0, p.size]), problem)
    return replace(decision.only(), selected=decision.selected)


def decide_large(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide many items without sorting them."""
    return decide_by_band(p, problem) or decide_by_search(p, problem)


def decide_by_band(p: NDArray[Any], problem: Problem) -> Decision | None:
    """Decide by the band; None where it has no answer, or so few items are sooner sorted."""
    fewest, fewest_wide = 1 << 11, 1 << 13
    if p.size <= fewest or not band.knows(problem):
        return None
    found = band.decide(ArrayPasses(p), problem, wide=p.size > fewest_wide)
    if found is None:
        return None
    k, threshold, expected, std = found
    selected = top_items(p, threshold, k)
    return Decision(selected, k, threshold, expected, std, problem.beta, p.size)


def decide_by_search(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide any question by the grouped search."""
    decision = search.decide(Source(ArrayPasses(p)), problem).decision(p.size)
    return replace(decision, selected=top_items(p, decision.threshold, decision.k))


def decide_sets(values: NDArray[Any], offsets: Ints, problem: Problem) -> Decision:
    """Decide sets of any sizes, set r from offsets[r] on; of equal items the first are chosen.

    The labels lie as the values do. Raises NotAProbability if a value is none.
    """
    sizes, long_set, costs = np.diff(offsets), 1 << 20, 32  # an item costs so many of a plain pass
    if problem.least and sizes.size:
        positive = np.add.reduceat(np.append(values > 0.0, False).astype(np.int64), offsets[:-1])
        problem.check_reachable(int(np.where(sizes > 0, positive, 0).min()))
    k, guarantees = np.empty(sizes.size, np.int64), np.empty(sizes.size, object)
    threshold, expected, std, bound = np.empty((4, sizes.size))
    selected, large = np.empty(values.size, np.bool_), sizes > SORTED
    large &= not needs_sorting(problem)

    def work(part: slice) -> None:
        from argmaxf.expected import small_set_kernels

        for here in _blocks(offsets, large, part):
            own = offsets[here.start : here.stop + 1]
            items, marks = values[own[0] : own[-1]], selected[own[0] : own[-1]]
            if large[here.start]:
                found = decide_large(items, problem)
                k[here], threshold[here], marks[:] = found.k, found.threshold, found.selected
                expected[here], std[here], bound[here] = found.expected, found.std, found.expected
                continue
            items, starts = contiguous(items), readonly(own - own[0])
            ascending = readonly(_sorted(items, sizes[here], starts))
            best = _best_sizes(ascending, starts, problem)
            k[here], expected[here], std[here], bound[here], guarantees[here] = best
            small_set_kernels.select_sets(items, starts, ascending, k[here], threshold[here], marks)

    longest = int(sizes.max(initial=0))  # beyond some size sets have threads of their own
    in_threads(work, offsets, threads_for(costs * values.size) if longest <= long_set else 1)
    decision = Decision(selected, k, threshold, expected, std, problem.beta, sizes)
    if problem.chance:
        return replace(decision, guarantee=guarantees.tolist())
    if isinstance(problem.measure, GMean):
        return BoundedDecision(**vars(decision), bound=bound)
    return decision


def _blocks(offsets: Ints, large: NDArray[np.bool_], part: slice) -> Iterator[slice]:
    """Yield neighbouring sets that are decided together, or one that is decided alone."""
    start = part.start
    while start < part.stop:
        stop = start + 1
        if not large[start]:
            limit = offsets[start] + SORTED_AT_ONCE
            stop = max(stop, min(int(np.searchsorted(offsets, limit, "right")) - 1, part.stop))
            stop = start + int(np.argmax(np.append(large[start:stop], True)))
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


def _best_sizes(ascending: Floats, offsets: Ints, problem: Problem) -> tuple[Any, ...]:
    """Return what `BestSize` says of each sorted set, near ties settled."""
    from argmaxf.expected import small_set_kernels

    size, ends = offsets.size - 1, offsets.tolist()
    if problem.ratio is None or problem.chance:
        found = [decide_sorted(ascending[a:b], problem) for a, b in pairwise(ends)]
        return tuple(zip(*found, strict=True)) or ([],) * len(BestSize._fields)
    k, rivals = np.empty(size, np.int64), np.empty(size, np.int64)
    expected, std = np.empty(size), np.empty(size)
    results = k, expected, std, rivals
    small_set_kernels.decide_sets(ascending, offsets, *_options(problem), *results)
    if size and expected.min() < 0.0:
        raise problem.no_set()
    for r in np.flatnonzero(rivals > 1).tolist():
        k[r], expected[r], std[r] = _settled(ascending[ends[r] : ends[r + 1]], problem)
    return k, expected, std, expected, None


def _settled(ascending: Floats, problem: Problem) -> tuple[int, float, float]:
    """Decide a set in which several k are nearer than their error."""
    from argmaxf.expected import node_kernels as tilts
    from argmaxf.expected import small_set_kernels as kernels

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


def decide_by(
    p: NDArray[Any], problem: Problem, segments: Segments, called: Callable[[int], Any]
) -> Decision:
    """Decide each segment; chance constraints hold in all of them at once, and so for all items.

    `called` gives the i-th segment's name for errors.
    """
    chance = problem.chance
    free = decide_each(p, replace(problem, chance=None), segments, called)
    if chance is None:
        return replace(free, overall=_overall(p, free, problem))
    shared = replace(problem, chance=chance.of_each(segments.names.size))
    found = decide_each(p, shared, segments, called)
    overall = _overall(p, found, problem)
    cost = max(0.0, _overall(p, free, problem).expected - overall.expected)
    inside, outside = (p[marks].astype(np.float64) for marks in (found.selected, ~found.selected))
    guarantee = guarantee_of(inside, outside, problem, cost)
    return replace(found, overall=replace(overall, guarantee=guarantee))


def _overall(p: NDArray[Any], found: Decision, problem: Problem) -> Decision:
    """Return what to expect of all items together."""
    chosen = found.selected
    mean, std = value_of_sets(groups_of_items(p[chosen]), groups_of_items(p[~chosen]), problem)
    return Decision(None, int(found.k.sum()), None, mean, std, problem.beta, p.size)


def decide_each(
    p: NDArray[Any], problem: Problem, segments: Segments, called: Callable[[int], Any]
) -> Decision:
    """Decide each segment; an error names the segment in which something does not hold."""
    items, offsets = segments.sorted(p), segments.offsets
    if problem.needs_items:
        refuse_many(int(np.diff(offsets).max()), problem.measure)
    try:
        decided = decide_sets(items, offsets, problem)
    except ValueError:
        for i, (first, end) in enumerate(pairwise(offsets.tolist())):
            try:
                decide_sets(items[first:end], np.array([0, end - first]), problem)
            except ValueError as error:
                raise ValueError(f"segment {called(i)!r}: {error}") from None
        raise
    selected = segments.unsorted(decided.selected)
    return replace(decided, selected=selected, segment=segments.names)
