"""Arrays decided: one set of items, each row, each column, or all cells at once."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf._base.arrays import Bools, contiguous
from argmaxf.expected.counts import MOST_ITEMS
from argmaxf.expected.decision import Decision
from argmaxf.expected.linear_search import BoundedDecision
from argmaxf.expected.route import decide_by_band, decide_large, decide_large_rows
from argmaxf.expected.small_sets import SMALL, decide_rows
from argmaxf.measures import GMean
from argmaxf.problem import Problem


def decide_one(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide one set of items."""
    if p.size == 0:
        raise ValueError("proba must hold at least one probability, got none")
    if problem.chance:
        return _decide_constrained(p, problem)
    if p.size > _most_items(problem):
        return decide_large(p, problem)
    if (decision := decide_by_band(p, problem)) is not None:
        return decision
    rows = _decide_rows(p[None, :], problem)
    decision = Decision(
        selected=rows.selected[0],
        k=int(rows.k[0]),
        threshold=float(rows.threshold[0]),
        expected=float(rows.expected[0]),
        std=float(rows.std[0]),
        beta=problem.beta,
        n=p.size,
    )
    return _with_bound(decision, problem)


def _with_bound(decision: Decision, problem: Problem) -> Decision:
    """Return an exact decision with G-mean's bound, which may be higher only for more items."""
    if isinstance(problem.measure, GMean):
        return BoundedDecision(**vars(decision), bound=decision.expected)
    return decision


def decide_by_segment(p: NDArray[Any], problem: Problem, by: ArrayLike) -> Decision:
    """Decide each segment of a set of items."""
    from argmaxf.expected.segments import decide_by  # which knows chance constraints

    if p.size == 0:
        raise ValueError("proba must hold at least one probability, got none")
    return decide_by(p, problem, by)


def decide_all_cells(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide all cells of a table as one set."""
    if p.size == 0:
        return _of_nothing(p.shape, (), problem)
    decision = decide_one(p.reshape(-1), problem)
    return replace(decision, selected=decision.selected.reshape(p.shape))


def decide_each_row(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide each row of a table."""
    _check_each("row", p, problem)
    return _decide_rows(p, problem)


def _check_each(kind: str, p: NDArray[Any], problem: Problem) -> None:
    """Refuse to select more of a row or column than can be positive; the scarcest is named."""
    if problem.least and p.size:
        positive = np.count_nonzero(p > 0.0, axis=1)
        scarcest = int(np.argmin(positive))
        problem.check_reachable(int(positive[scarcest]), f" in {kind} {scarcest}")


def decide_columns(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide each column."""
    _check_each("column", p.T, problem)
    decision = _decide_rows(p.T, problem)
    return replace(decision, selected=decision.selected.T)


def _decide_constrained(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide one set of items under a chance constraint; only that loads what it needs."""
    from argmaxf.expected.chance import decide_constrained

    return decide_constrained(p, problem)


def _decide_rows(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide each row."""
    rows, n = p.shape
    if rows == 0 or n == 0:
        return _of_nothing(p.shape, (rows,), problem)
    if problem.chance:
        each_row = [_decide_constrained(row, problem) for row in p]
        selected = np.stack([each.selected for each in each_row])
        guarantees = [each.guarantee for each in each_row]
        return replace(_stacked(each_row, selected), guarantee=guarantees)
    if n > _most_items(problem):
        return _stacked(*decide_large_rows(p, problem))
    return _with_bound(decide_rows(contiguous(p), problem), problem)


def _most_items(problem: Problem) -> int:
    """Return up to how many items are looked at one by one."""
    return MOST_ITEMS if isinstance(problem.measure, GMean) else SMALL


def _stacked(decisions: list[Decision], selected: Bools) -> Decision:
    """Put together the decisions about many sets, with their bounds where they have them."""
    stacked = Decision(
        selected=selected,
        k=np.array([d.k for d in decisions]),
        threshold=np.array([d.threshold for d in decisions]),
        expected=np.array([d.expected for d in decisions]),
        std=np.array([d.std for d in decisions]),
        beta=decisions[0].beta,
        n=decisions[0].n,
    )
    bounds: Any = [d.bound for d in decisions if isinstance(d, BoundedDecision)]
    return BoundedDecision(**vars(stacked), bound=np.array(bounds)) if bounds else stacked


def _of_nothing(shape: tuple[int, ...], rows: tuple[int, ...], problem: Problem) -> Decision:
    """The decision about sets without items: nothing is selected, and F is 0/0."""
    return Decision(
        selected=np.zeros(shape, np.bool_),
        k=np.zeros(rows, np.int64),
        threshold=np.full(rows, math.inf),
        expected=np.full(rows, problem.zero_division),
        std=np.zeros(rows),
        beta=problem.beta,
        n=0,
    )
