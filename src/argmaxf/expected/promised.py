"""The set with the highest expected F among those that keep a promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools, Floats, contiguous
from argmaxf._base.messages import how_many
from argmaxf._base.validation import NotAProbability
from argmaxf.constraints import ChanceConstraint, Constraints, sure
from argmaxf.expected.counts.sets import best_size, sizes_allowed, value_by_counts
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.expected.evaluate import groups_of_items, top_curve, value_of_sets
from argmaxf.expected.promises import ModelPromise, kept_sizes, odds_of
from argmaxf.expected.ties import settle
from argmaxf.problem import Problem

NEAR = 1e-13  # values of f nearer than this part of themselves are told apart in decimals


def decide_promised(p: NDArray[Any], problem: Problem) -> Decision:
    """Return the top k with the highest expected F among the k that keep what is asked."""
    chance = problem.chance
    assert chance is not None
    ascending = np.sort(p.astype(np.float64, copy=False))
    if not (ascending[0] >= 0.0 and ascending[-1] <= 1.0):
        raise NotAProbability
    problem.check_reachable(int(np.count_nonzero(ascending)))
    descending = np.ascontiguousarray(ascending[::-1])
    f = top_curve(contiguous(ascending), problem)
    whole = sizes_allowed(descending, problem)
    kept = kept_sizes(descending, chance) & whole
    if not kept.any():
        raise _not_kept(descending, chance, whole)
    k = _best(f, kept, descending, problem)
    threshold = float(descending[k - 1]) if k else math.inf
    selected = _top(p, threshold, k)
    value = _value(p[selected], p[~selected], problem)
    cost = max(0.0, float(f[whole].max() - f[k]))
    odds = odds_of(descending, k, chance.constraints)
    of = problem.word, chance.together
    promise = ModelPromise(chance.constraints, chance.odds, odds, cost, *of)
    return Decision(
        selected, k, threshold, float(f[k]), value.std, problem.beta, p.size, promise=promise
    )


def _value(chosen: NDArray[Any], left: NDArray[Any], problem: Problem) -> ExpectedF:
    """Return mean and standard deviation of the measure for a chosen set."""
    if problem.ratio is None:
        return value_by_counts(chosen.astype(float), left.astype(float), problem)
    return value_of_sets(groups_of_items(chosen), groups_of_items(left), problem)


def _best(f: Floats, kept: Bools, descending: Floats, problem: Problem) -> int:
    """Return the best size that is kept; the smallest of equals."""
    if problem.ratio is None:
        return best_size(f, kept, descending, problem)
    value = np.where(kept, f, -1.0)
    best = int(np.argmax(value))
    rivals = np.flatnonzero(value >= value[best] * (1.0 - NEAR)).tolist()
    return best if len(rivals) == 1 else settle(descending, rivals, problem)


def _not_kept(descending: Floats, chance: ChanceConstraint, whole: Bools) -> ValueError:
    """Say that no set keeps the promise, and how near the smallest that may be taken comes."""
    recall = chance._replace(constraints=Constraints(None, chance.constraints.min_recall))
    able = kept_sizes(descending, recall) & whole
    if not able.any():
        return ValueError(f"{recall.constraints} cannot be kept with so few items selected")
    k = int(np.argmax(able))
    odds = odds_of(descending, k, chance.constraints)
    keeps = " and keeps the recall" if chance.constraints.min_recall else ""
    return ValueError(
        f"{chance.constraints} cannot be kept with "
        f"{sure('odds', chance.odds, chance.together)}: the "
        f"smallest set that may be taken{keeps} has {how_many(k, 'item')} and odds "
        f"of {odds:.4g}"
    )


def _top(p: NDArray[Any], threshold: float, k: int) -> Bools:
    """Mark the top k: what is above the threshold, and the first ones equal to it."""
    selected: Bools = np.greater(p, threshold)
    equal = np.flatnonzero(p == threshold)
    selected[equal[: k - np.count_nonzero(selected)]] = True
    return selected
