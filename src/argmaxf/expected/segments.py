"""Items parted into segments, each decided on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf._base.arrays import Bools, Floats, Ints, readonly
from argmaxf._base.segments import Segments
from argmaxf._base.validation import NotAProbability
from argmaxf.constraints import ChanceConstraint
from argmaxf.expected.chance import ChanceGuarantee, decide_constrained, probability_of_parts
from argmaxf.expected.counts import refuse_many
from argmaxf.expected.decision import Decision
from argmaxf.expected.route import decide_large
from argmaxf.expected.small_sets import SMALL, Sets, decide_sets
from argmaxf.expected.values import groups_of_items, value_of_sets
from argmaxf.problem import Problem


def decide_by(
    p: NDArray[Any], problem: Problem, by: ArrayLike, called: Callable[[int], Any] | None = None
) -> Decision:
    """Decide each segment; chance constraints hold in all of them at once, and so for all items.

    `called` gives the i-th segment's name for errors, where `by` holds numbers that stand for them.
    """
    if not (p.min() >= 0.0 and p.max() <= 1.0):
        raise NotAProbability
    segments = Segments.of(by, p.size)
    chance, called = problem.chance, called or (lambda i: segments.names[i : i + 1].tolist()[0])
    free = _decide_each(p, replace(problem, chance=None), segments, called)
    if chance is None:
        return replace(free, overall=_overall(p, free, problem))
    shared = replace(problem, chance=chance.of_each(segments.names.size))
    found = _decide_each(p, shared, segments, called)
    overall = _overall(p, found, problem)
    cost = max(0.0, _overall(p, free, problem).expected - overall.expected)
    guarantee = replace(_overall_guarantee(p, found.selected, chance, cost), measure=problem.word)
    return replace(found, overall=replace(overall, guarantee=guarantee))


def _overall(p: NDArray[Any], found: Decision, problem: Problem) -> Decision:
    """Return what to expect of all items together."""
    chosen = found.selected
    mean, std = value_of_sets(groups_of_items(p[chosen]), groups_of_items(p[~chosen]), problem)
    return Decision(None, int(found.k.sum()), None, mean, std, problem.beta, p.size)


def _overall_guarantee(
    p: NDArray[Any], chosen: Bools, chance: ChanceConstraint, cost: float
) -> ChanceGuarantee:
    """Return the probability that all chosen items together meet the constraints."""
    inside, outside = (part.astype(np.float64) for part in (p[chosen], p[~chosen]))
    probability = probability_of_parts(inside, outside, chance.constraints)
    return ChanceGuarantee(chance.constraints, chance.confidence_level, probability, cost)


def _decide_each(
    p: NDArray[Any], problem: Problem, segments: Segments, called: Callable[[int], Any]
) -> Decision:
    """Decide each segment: small ones together, large ones and constrained ones alone."""
    items, offsets = p[segments.order], segments.offsets
    if problem.needs_items:
        refuse_many(int(np.diff(offsets).max()), problem.measure)
    small = (np.diff(offsets) <= SMALL) & (problem.chance is None)
    found = {
        i: _decide_alone(items[offsets[i] : offsets[i + 1]], problem, partial(called, i))
        for i in _where(~small)
    }
    if small.any():
        found |= _decide_small(items, problem, offsets, small)
    each = [found[i] for i in range(small.size)]
    selected = np.empty(p.size, np.bool_)
    selected[segments.order] = np.concatenate([d.selected for d in each])
    columns: dict[str, Any] = {
        name: np.array([getattr(d, name) for d in each])
        for name in ("k", "threshold", "expected", "std", "n")
    }
    guarantees = None if problem.chance is None else [d.guarantee for d in each]
    return Decision(
        selected, beta=problem.beta, guarantee=guarantees, segment=segments.names, **columns
    )


def _decide_alone(items: NDArray[Any], problem: Problem, called: Callable[[], Any]) -> Decision:
    """Decide one segment; what cannot be done is said with its name."""
    decide = decide_large if problem.chance is None else decide_constrained
    try:
        return decide(items, problem)
    except ValueError as error:
        raise ValueError(f"segment {called()!r}: {error}") from None


def _decide_small(
    items: NDArray[Any], problem: Problem, offsets: Ints, small: Bools
) -> dict[int, Decision]:
    """Decide the small segments in one call; of equal items the first are chosen."""
    from argmaxf.expected import marking_kernels

    sizes = np.diff(offsets)
    flat = items[np.repeat(small, sizes)].astype(np.float64)
    ends = np.append(0, np.cumsum(sizes[small]))
    decided = decide_sets(_sorted_sets(flat, ends), problem)
    selected = np.empty(flat.size, np.bool_)
    marking_kernels.select_sets(
        readonly(flat), readonly(ends), decided.threshold, decided.ties, selected
    )
    chosen = np.split(selected, ends[1:-1])
    return {
        i: replace(decided.decision(r, int(sizes[i]), problem.beta), selected=chosen[r])
        for r, i in enumerate(_where(small))
    }


def _sorted_sets(flat: Floats, ends: Ints) -> Sets:
    """Sort each of several sets that lie one after another."""
    which = np.repeat(np.arange(ends.size - 1), np.diff(ends))
    return Sets(flat[np.lexsort([flat, which])], ends)


def _where(mask: Bools) -> Iterable[int]:
    return np.flatnonzero(mask).tolist()
