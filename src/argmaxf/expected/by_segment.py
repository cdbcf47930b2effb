"""Items parted into segments, each decided on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.segments import Segments
from argmaxf.expected.chance import guarantee_of
from argmaxf.expected.counts import refuse_many
from argmaxf.expected.decision import Decision
from argmaxf.expected.groups import groups_of_items
from argmaxf.expected.sets import decide_sets
from argmaxf.expected.values import value_of_sets
from argmaxf.problem import Problem


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
