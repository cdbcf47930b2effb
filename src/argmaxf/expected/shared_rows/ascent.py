"""A good choice of cells: rows take their best cells in turn until no row wants to move."""

from __future__ import annotations

import math

from argmaxf.arrays import Bools
from argmaxf.expected.shared_rows.problem import Problem
from argmaxf.expected.shared_rows.records import Assignment

SWEEPS = 100  # at most; each is a strict improvement, and a handful is usual


def ascend(problem: Problem, start: Bools | None = None) -> Assignment:
    """Return a choice that no single row can better, from a start that need not be allowed."""
    from argmaxf.expected.shared_rows import ascent_kernels

    state = Assignment.empty(problem.rows.p.size, problem.columns)
    if start is not None:
        state.chosen[:] = start
    moved = -1
    for _ in range(SWEEPS):
        # Sums that many moves have changed are summed anew: rounding cannot build up.
        ascent_kernels.collect(problem.rows, problem.columns, state)
        if moved == 0:
            break
        moved = ascent_kernels.sweep(
            problem.rows, problem.columns, state, problem.rule.b, problem.rule.exactly
        )
    return state


def value_of(problem: Problem, state: Assignment) -> float:
    """Return the expected average of F under a choice."""
    return math.fsum(state.value) + problem.constant
