"""Large sets of items: a summary of all, closer looks at a few, no sorting."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools, contiguous
from argmaxf._base.validation import NotAProbability
from argmaxf.expected import drive
from argmaxf.expected.counts.gmean import decide_gmean
from argmaxf.expected.decision import Decision
from argmaxf.expected.flat import AT_ONCE, LEAST, Found, decide_flat
from argmaxf.expected.form import has_loss
from argmaxf.expected.sources.array import ArraySource
from argmaxf.expected.sources.base import Cut
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.measures import Coefficients, GMean
from argmaxf.problem import Problem

LEAST_VALUE = 1e-290  # errors of smaller ones underflow
SHARE = 1 << 16  # items of rows that are worth a thread
ONE_BY_ONE = 1 << 13  # so few items are sooner sorted, unless `flat` can have them


def decide_large(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide many items from their summary and closer looks at a few, without sorting."""
    if isinstance(problem.measure, GMean):
        return decide_gmean(p, problem)
    return decide_at_once(p, problem) or decide_by_search(p, problem)


def decide_by_search(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide any question by the search over groups."""
    source = ArraySource(p)
    search = drive.decide(source, problem)[()]
    return replace(search.decision(p.size), selected=source.select({(): search.cut}))


def decide_large_rows(p: NDArray[Any], problem: Problem) -> tuple[list[Decision], Bools]:
    """Decide each row of a matrix, rows shared out among threads; mark what is selected."""
    found: list[Any] = [None] * len(p)
    selected = np.empty(p.shape, np.bool_)

    def work(part: slice) -> None:
        for r in range(part.start, part.stop):
            decision = decide_large(p[r], problem)
            selected[r] = decision.selected
            found[r] = replace(decision, selected=None)

    in_threads(work, len(p), threads_for(p.size, SHARE) if p.shape[1] <= AT_ONCE else 1)
    return found, selected


def _is_plain(problem: Problem) -> bool:
    """Whether the compiled loops know a question: no smoothing, every k, equal items apart."""
    if problem.ratio is None or problem.chance or not (problem.is_free and problem.split_ties):
        return False
    _, b_in, b_out, s0, s1 = problem.ratio
    return bool(0.0 < b_out >= b_in and s0 == s1 == 0.0)


def decide_at_once(p: NDArray[Any], problem: Problem) -> Decision | None:
    """Decide by compiled loops; None where they have no answer, or the empty set may be better.

    None too where they would have to be compiled first: the search does without in half the time.
    """
    if p.size <= LEAST or not _is_plain(problem):
        return None
    found = decide_flat(p, problem.coefficients)
    if found is None and ONE_BY_ONE < p.size <= AT_ONCE:
        found = _by_loops(contiguous(p), problem.coefficients)
    if found is None:
        return None
    k, threshold, f, std = found
    zero = problem.zero_division
    if zero > 0.0 and zero * math.exp(-float(np.sum(p, dtype=np.float64))) >= 0.5 * f:
        return None
    selected = ArraySource(p).select({(): Cut(threshold, k)})
    return Decision(selected, k, threshold, f, std, problem.beta, p.size)


def _by_loops(p: NDArray[Any], c: Coefficients) -> Found | None:
    """Return k, threshold, mean and spread of the best set, by coarser rows or the finest ones."""
    from argmaxf.expected import large_gain_kernels
    from argmaxf.expected.large_summary_kernels import FINEST, layout_for

    if not large_gain_kernels.decide_large.is_ready(p, c, FINEST):
        return None
    layout = layout_for(p, c)
    found = _by_loop(p, c, layout)
    return _by_loop(p, c, FINEST) if found is None and layout != FINEST else found


def _by_loop(p: NDArray[Any], c: Coefficients, layout: Any) -> Found | None:
    """Decide by the loop for f, or for the loss where that is near 0."""
    from argmaxf.expected import large_gain_kernels, large_kernels

    if not large_gain_kernels.decide_large.is_ready(p, c, layout):
        return None  # what was done before has used up what may run as Python
    k, threshold, f, std = large_gain_kernels.decide_large(p, c, layout)
    if k == large_kernels.BAD:
        raise NotAProbability
    if k == large_kernels.ONE and has_loss(c):
        from argmaxf.expected import large_loss_kernels

        if large_loss_kernels.decide_large.is_ready(p, c, layout):
            k, threshold, f, std = large_loss_kernels.decide_large(p, c, layout)
    known = k > 0 and f > LEAST_VALUE
    return (int(k), float(threshold), float(f), float(std)) if known else None
