"""A good choice of cells: rows take their best cells in turn until no row wants to move."""

from __future__ import annotations

import math

from argmaxf._base.arrays import Bools
from argmaxf.expected.macro.instance import Instance
from argmaxf.expected.macro.records import Assignment

SWEEPS = 100  # at most; each is a strict improvement, and a handful is usual


def ascend(instance: Instance, start: Bools | None = None) -> Assignment:
    """Return a choice that no single row can better, from a start that need not be allowed."""
    from argmaxf.expected.macro import ascent_kernels

    state = Assignment.empty(instance.rows.p.size, instance.columns)
    if start is not None:
        state.chosen[:] = start
    moved = -1
    for _ in range(SWEEPS):
        # Sums that many moves have changed are summed anew: rounding cannot build up.
        ascent_kernels.collect(instance.rows, instance.columns, state)
        if moved == 0:
            break
        moved = ascent_kernels.sweep(
            instance.rows, instance.columns, state, instance.rule.b, instance.rule.exactly
        )
    return state


def value_of(instance: Instance, state: Assignment) -> float:
    """Return the expected average of F under a choice."""
    return math.fsum(state.value) + instance.constant
