"""The door: options checked, cells taken from a matrix, the answer put together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.validation import (
    NotAProbability,
    check_choice,
    check_count,
    check_not_negative,
)
from argmaxf.expected.decision import Decision
from argmaxf.expected.shared_rows.branch import CELLS, branch
from argmaxf.expected.shared_rows.instance import Instance, Rule
from argmaxf.expected.shared_rows.prices import Solution, Watch, solve
from argmaxf.expected.shared_rows.records import Cells
from argmaxf.expected.sources.sparse import as_csr, is_sparse, selected_cells
from argmaxf.measures import Measure, Ratio
from argmaxf.problem import Problem

ENOUGH = 1e-6  # the gap to stop at if the caller names none and the problem is not small


@dataclass(frozen=True, eq=False, repr=False)
class SharedDecision(Decision):
    """The labels with the highest expected macro F when each row may have so many, with a proof.

    As `Decision` for columns, with `k` and `threshold` for each column, and:

    Attributes
    ----------
    threshold : ndarray
        The smallest selected probability of each column, infinite if nothing is selected. No cut:
        rows compete, and a higher probability may have gone to another column.
    expected : float
        E[macro F] of the selected labels: one number.
    std : float
        Standard deviation of macro F under the model; NaN if averaged over present columns only,
        where it has no such form.
    bound : float
        No labels that keep to so many in each row have a higher expected macro F.
    gap : float
        The part of `bound` that `expected` falls short of. 0 means proven optimal (to rounding,
        a part of 1e-12).
    expected_of_columns : ndarray
        E[F] of each column.
    """

    bound: float = math.nan
    gap: float = math.nan
    expected_of_columns: Any = None


@dataclass(frozen=True)
class Sharing:
    """What is asked of decisions that share rows."""

    b: int
    exactly: bool
    present_only: bool
    tol: float | None
    progress: Callable[[int, float, float], None] | None

    @classmethod
    def of(
        cls,
        labels_per_row: int | None,
        max_labels_per_row: int | None,
        averaged_over: str,
        tol: float | None,
        progress: Callable[[int, float, float], None] | None,
    ) -> Sharing | None:
        """Check the options; None if rows are not shared."""
        present = check_choice("averaged_over", averaged_over, ("all", "present")) == "present"
        if labels_per_row is None and max_labels_per_row is None:
            if present or tol is not None or progress is not None:
                raise ValueError(
                    "averaged_over, tol and progress are for labels_per_row and max_labels_per_row"
                )
            return None
        if labels_per_row is not None and max_labels_per_row is not None:
            raise ValueError(
                "give labels_per_row or max_labels_per_row, not both: got "
                f"{labels_per_row!r} and {max_labels_per_row!r}"
            )
        exactly = labels_per_row is not None
        name = "labels_per_row" if exactly else "max_labels_per_row"
        b = check_count(name, labels_per_row if exactly else max_labels_per_row)
        tol = None if tol is None else check_not_negative("tol", tol)
        if progress is not None and not callable(progress):
            raise ValueError(f"progress must be a function, got {progress!r}")
        return cls(b, exactly, present, tol, progress)

    def watch(self) -> Watch | None:
        """Return what tells the caller of each step, counted from 1."""
        progress, step = self.progress, itertools.count(1)
        if progress is None:
            return None
        return lambda value, bound: progress(next(step), value, bound)


def decide_shared(proba: Any, problem: Problem, sharing: Sharing) -> SharedDecision:
    """Decide a matrix, dense or sparse; of a sparse one only stored cells can be selected.

    Holds about 40 bytes for each cell, and 7 numbers for each node (24 or more) of the columns
    that have cells.
    """
    if is_sparse(proba):
        csr = as_csr("proba", proba)
        chosen, decision = _decide_cells(_cells_of_csr(csr), csr.shape, problem, sharing)
        return replace(decision, selected=selected_cells(csr, chosen, proba))
    chosen, decision = _decide_cells(_all_cells(proba), proba.shape, problem, sharing)
    return replace(decision, selected=chosen.reshape(proba.shape))


def _cells_of_csr(csr: Any) -> Cells:
    return Cells(csr.indptr.astype(np.int64), csr.indices, csr.data)


def _all_cells(proba: NDArray[Any]) -> Cells:
    n, size = proba.shape
    if proba.size and not (proba.min() >= 0.0 and proba.max() <= 1.0):
        raise NotAProbability
    column = np.tile(np.arange(size, dtype=np.int32), n)
    p = np.ascontiguousarray(proba, dtype=np.float64).reshape(-1)
    return Cells(np.arange(n + 1, dtype=np.int64) * size, column, p)


def _decide_cells(
    cells: Cells, shape: tuple[int, int], problem: Problem, sharing: Sharing
) -> tuple[Bools, SharedDecision]:
    """Return which cells are chosen, in the order given, and the decision without its labels."""
    _check_additive(problem)
    used, cells = _used_columns(cells, shape[1])
    rule = _rule(cells, shape[1], shape[1] - used.size, problem, sharing)
    if cells.p.size == 0:
        return np.zeros(0, np.bool_), _of_nothing(shape, problem)
    instance = Instance.of(cells, used.size, rule)
    small = cells.p.size <= CELLS
    tol = sharing.tol if sharing.tol is not None else 0.0 if small else ENOUGH
    watch = sharing.watch()
    solution = solve(instance, tol, watch)
    if small and solution.gap > tol:
        branch(instance, solution, tol, watch)
    chosen = instance.as_given(solution.state.chosen)
    decision = _decision(instance, solution, problem, shape[0])
    return chosen, _of_all_columns(decision, used, problem.zero_division, shape[1])


def _used_columns(cells: Cells, columns: int) -> tuple[Ints, Cells]:
    """Return the columns that have cells, and the cells with these columns numbered anew."""
    has_cells = np.bincount(cells.column, minlength=columns) > 0
    number = (np.cumsum(has_cells) - 1).astype(np.int32)
    return np.flatnonzero(has_cells), cells._replace(column=number[cells.column])


def _of_all_columns(
    decision: SharedDecision, used: Ints, zero: float, columns: int
) -> SharedDecision:
    """Return the decision with the columns that have no cells: nothing is selected in them."""
    if used.size == columns:
        return decision

    def spread(values: Any, elsewhere: float) -> Any:
        whole = np.full(columns, elsewhere, dtype=values.dtype)
        whole[used] = values
        return whole

    return replace(
        decision,
        k=spread(decision.k, 0),
        threshold=spread(decision.threshold, math.inf),
        expected_of_columns=spread(decision.expected_of_columns, zero),
    )


def _rule(cells: Cells, columns: int, empty: int, problem: Problem, sharing: Sharing) -> Rule:
    """Return the rule for these cells; every row must be able to keep it."""
    available = np.diff(cells.first)
    if sharing.exactly and available.size and available.min() < sharing.b:
        row = int(np.argmax(available < sharing.b))
        raise ValueError(
            f"labels_per_row={sharing.b} is more than row {row} can give: it has {available[row]} "
            "cells (of a sparse matrix, above zero); max_labels_per_row allows fewer"
        )
    return Rule(
        b=min(sharing.b, columns),
        exactly=sharing.exactly,
        coefficients=problem.coefficients,
        zero_division=problem.zero_division,
        present_only=sharing.present_only,
        empty=empty,
    )


def _of_nothing(shape: tuple[int, int], problem: Problem) -> SharedDecision:
    """The decision about a matrix without cells: F is 0/0."""
    zero, size = problem.zero_division, shape[1]
    return SharedDecision(
        selected=None,
        k=np.zeros(size, np.int64),
        threshold=np.full(size, math.inf),
        expected=zero,
        std=0.0,
        beta=problem.beta,
        n=shape[0],
        bound=zero,
        gap=0.0,
        expected_of_columns=np.full(size, zero),
    )


def is_additive(measure: Measure) -> bool:
    """Whether what an item adds to a set depends on the set's size alone, as for F_β."""
    if not isinstance(measure, Ratio):
        return False
    _, b_in, b_out, s0, s1 = measure.coefficients()
    return bool(b_in == b_out and s0 == 0.0 and s1 == 0.0)


def _check_additive(problem: Problem) -> None:
    """Refuse measures for which what a cell adds depends on the set, budgets, and kept ties."""
    if not problem.is_free:
        raise ValueError(
            "min_selected and max_selected cannot be combined with labels_per_row or "
            "max_labels_per_row"
        )
    if not problem.split_ties:
        raise ValueError(
            "ties='together' cannot be combined with labels_per_row or max_labels_per_row: rows "
            "with equal probabilities may get different labels"
        )
    if not is_additive(problem.measure):
        raise ValueError(
            "decisions that share rows need F_β, whose denominator does not depend on which items "
            f"are selected; got measure={problem.measure!r}"
        )


def _decision(instance: Instance, solution: Solution, problem: Problem, n: int) -> SharedDecision:
    """Put together what is known of a solution."""
    state = solution.state
    bound = solution.value if solution.gap == 0.0 else solution.bound
    expected = state.value / instance.weight
    return SharedDecision(
        selected=None,
        k=state.size,
        threshold=_lowest(instance, state.chosen),
        expected=float(solution.value),
        std=_std(instance, state.chosen, expected),
        beta=problem.beta,
        n=n,
        bound=float(bound),
        gap=solution.gap,
        expected_of_columns=expected,
    )


def _lowest(instance: Instance, chosen: Bools) -> Floats:
    """Return the smallest chosen probability of each column, infinite without one."""
    lowest = np.full(instance.weight.size, math.inf)
    np.minimum.at(lowest, instance.rows.column[chosen], instance.rows.p[chosen])
    return lowest


def _std(instance: Instance, chosen: Bools, expected: Floats) -> float:
    """Return the standard deviation of the average: columns are independent."""
    from argmaxf.expected.shared_rows import column_kernels

    rule, columns = instance.rule, instance.columns
    if rule.present_only:
        return math.nan
    none = columns.nothing / instance.weight  # zero_division · P(nothing is positive)
    std = np.sqrt(none * (rule.zero_division - none))
    column_kernels.spreads(columns, chosen[instance.cell], expected, rule.coefficients, std)
    return float(np.linalg.norm(instance.weight * std))
