"""The set with the highest expected F among those that keep a promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf.arrays import Bools, Floats, contiguous
from argmaxf.constraints import Asked, Constraints
from argmaxf.expected.decision import Decision
from argmaxf.expected.evaluate import groups_of_items, top_curve, value_of_sets
from argmaxf.expected.promises import ModelPromise, kept_sizes, odds_of
from argmaxf.expected.ties import settle
from argmaxf.question import Question
from argmaxf.validation import NotAProbability

NEAR = 1e-13  # values of f nearer than this part of themselves are told apart in decimals


def decide_promised(p: NDArray[Any], question: Question) -> Decision:
    """Return the top k with the highest expected F among the k that keep what is asked."""
    asked = question.asked
    assert asked is not None
    ascending = np.sort(p.astype(np.float64, copy=False))
    if not (ascending[0] >= 0.0 and ascending[-1] <= 1.0):
        raise NotAProbability
    descending = np.ascontiguousarray(ascending[::-1])
    f = top_curve(contiguous(ascending), question)
    whole = _whole(descending, question)
    kept = kept_sizes(descending, asked) & whole
    if not kept.any():
        raise _not_kept(descending, asked, whole)
    k = _best(f, kept, descending, question)
    threshold = float(descending[k - 1]) if k else math.inf
    selected = _top(p, threshold, k)
    value = value_of_sets(groups_of_items(p[selected]), groups_of_items(p[~selected]), question)
    cost = max(0.0, float(f[whole].max() - f[k]))
    promise = ModelPromise(
        asked.constraints, asked.odds, odds_of(descending, k, asked.constraints), cost
    )
    return Decision(
        selected, k, threshold, float(f[k]), value.std, question.beta, p.size, promise=promise
    )


def _whole(descending: Floats, question: Question) -> Bools:
    """Return which k may be taken at all: within the budget, no ties split that stay together."""
    whole = np.ones(descending.size + 1, np.bool_)
    if not question.split_ties:
        whole[1:-1] = descending[1:] < descending[:-1]
    whole[: question.least] = False
    whole[min(question.most, descending.size) + 1 :] = False
    return whole


def _best(f: Floats, kept: Bools, descending: Floats, question: Question) -> int:
    """Return the best size that is kept; the smallest of equals."""
    value = np.where(kept, f, -1.0)
    best = int(np.argmax(value))
    rivals = np.flatnonzero(value >= value[best] * (1.0 - NEAR)).tolist()
    return best if len(rivals) == 1 else settle(descending, rivals, question)


def _not_kept(descending: Floats, asked: Asked, whole: Bools) -> ValueError:
    """Say that no set keeps the promise, and how near the smallest that may be taken comes."""
    recall = asked._replace(constraints=Constraints(None, asked.constraints.min_recall))
    able = kept_sizes(descending, recall) & whole
    if not able.any():
        return ValueError(f"{recall.constraints} cannot be kept with so few items selected")
    k = int(np.argmax(able))
    odds = odds_of(descending, k, asked.constraints)
    return ValueError(
        f"{asked.constraints} cannot be kept with odds {asked.odds:g}: the smallest set that may "
        f"be taken and keeps the recall has {k} items and odds of {odds:.4g}"
    )


def _top(p: NDArray[Any], threshold: float, k: int) -> Bools:
    """Mark the top k: what is above the threshold, and the first ones equal to it."""
    selected: Bools = np.greater(p, threshold)
    equal = np.flatnonzero(p == threshold)
    selected[equal[: k - np.count_nonzero(selected)]] = True
    return selected
