"""Assignment of one class, or b labels, to each row with the highest expected macro F."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools, Floats, Ints, tensors_for
from argmaxf._base.validation import (
    NotAProbability,
    as_real_array,
    check_choice,
    check_count,
    check_not_negative,
    first_bad_probability,
)
from argmaxf.expected.decision import Decision
from argmaxf.expected.macro.branch import CELLS, branch
from argmaxf.expected.macro.instance import Instance, Rule
from argmaxf.expected.macro.prices import Solution, Watch, solve
from argmaxf.expected.macro.records import Cells
from argmaxf.expected.sources.sparse import as_csr, is_sparse, selected_cells
from argmaxf.measures import Measure, MeasureLike, Ratio
from argmaxf.problem import Problem

ENOUGH = 1e-6  # the gap to stop at if the caller names none and the problem is not small


@dataclass(frozen=True, eq=False, repr=False)
class MacroDecision(Decision):
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
class _Options:
    """What is asked besides the measure, checked."""

    b: int
    exactly: bool
    present_only: bool
    tol: float | None
    watch: Watch | None

    @classmethod
    def of(
        cls,
        labels_per_row: int | None,
        max_labels_per_row: int | None,
        averaged_over: str,
        tol: float | None,
        progress: bool | Callable[[int, float, float], None],
    ) -> _Options:
        """Check the options of the public function."""
        if (labels_per_row is None) == (max_labels_per_row is None):
            raise ValueError(
                "give either labels_per_row or max_labels_per_row, got "
                f"{labels_per_row!r} and {max_labels_per_row!r}"
            )
        exactly = labels_per_row is not None
        name = "labels_per_row" if exactly else "max_labels_per_row"
        return cls(
            b=check_count(name, labels_per_row if exactly else max_labels_per_row),
            exactly=exactly,
            present_only=check_choice("averaged_over", averaged_over, ("all", "present"))
            == "present",
            tol=None if tol is None else check_not_negative("tol", tol),
            watch=_watch(progress),
        )


def _watch(progress: bool | Callable[[int, float, float], None]) -> Watch | None:
    """Return what reports each step, counted from 1."""
    if progress is False:
        return None
    if progress is not True and not callable(progress):
        raise ValueError(f"progress must be False, True or a function, got {progress!r}")
    report, step = _print_step if progress is True else progress, itertools.count(1)
    return lambda value, bound: report(next(step), value, bound)


def _print_step(step: int, value: float, bound: float) -> None:
    """Write a step to standard error."""
    print(f"step {step}: expected macro F {value:.8f}, at most {bound:.8f}", file=sys.stderr)


def maximize_expected_macro_f(
    p: Any,
    *,
    labels_per_row: int | None = None,
    max_labels_per_row: int | None = None,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    zero_division: float = 0.0,
    averaged_over: str = "all",
    tol: float | None = None,
    progress: bool | Callable[[int, float, float], None] = False,
) -> MacroDecision:
    """Assign one class, or b labels, to each row, with the highest expected macro F.

    Macro F is the mean of F over the columns. Without a limit on the labels of a row the columns
    are decided on their own (`maximize_expected_f` with ``average="macro"``); with one they compete
    for the rows. The answer comes with an upper bound that proves how far from optimal it can be.

    Parameters
    ----------
    p : array-like or sparse matrix of shape (n_rows, n_columns)
        Probability that each label of each row is positive. Rows need not sum to 1: labels count
        as independent. Of a sparse matrix only stored cells can be selected.
    labels_per_row : int, optional
        Exactly so many labels in every row: 1 for classes that exclude each other.
    max_labels_per_row : int, optional
        At most so many labels in every row. One of the two must be given.
    beta : float, default=1.0
        The β of F_β.
    measure : str or Measure, default="fbeta"
        F_β or Dice without smoothing: what a cell adds to its column must depend on the number of
        selected cells alone.
    zero_division : float, default=0.0
        F of a column in which nothing is positive and nothing is selected.
    averaged_over : {"all", "present"}, default="all"
        Take the mean over all columns, or over those that have a positive.
    tol : float, optional
        Stop at a relative gap of this. By default 0 for matrices of at most 4,096 cells, 1e-6
        beyond. The gap may stay larger where proving more would take too long.
    progress : bool or callable, default=False
        True writes each step to standard error; a function is called with the number of the step,
        the expected macro F and the bound so far.

    Returns
    -------
    MacroDecision
        The labels, the expected macro F, a `bound` that no allowed labels exceed, and the `gap`.

    Notes
    -----
    Holds about 40 bytes for each cell, and 7 numbers for each node (24 or more) of the columns
    that have cells. docs/shared-rows.md has the algorithm.

    Examples
    --------
    Three rows, two classes, one class for each row:

    >>> decision = maximize_expected_macro_f(
    ...     [[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]], labels_per_row=1
    ... )
    >>> decision.selected.argmax(axis=1), decision.gap
    (array([0, 1, 0]), 0.0)
    """
    problem = Problem.of(beta, measure, zero_division)
    options = _Options.of(labels_per_row, max_labels_per_row, averaged_over, tol, progress)
    tensors = tensors_for(p)
    if tensors is not None and tensors.is_elsewhere(p):
        raise ValueError(
            f"labels per row are for tensors on the CPU, got one on {p.device}: give p.cpu()"
        )
    given = p if is_sparse(p) else as_real_array("p", p)
    if given.ndim != 2:
        raise ValueError(f"p must have two dimensions, got {given.ndim}")
    _check_additive(problem)
    try:
        decision = _decide(given, problem, options)
    except NotAProbability:
        raise first_bad_probability("p", given) from None
    return decision if tensors is None else tensors.in_kind(decision, p)


def _decide(p: Any, problem: Problem, options: _Options) -> MacroDecision:
    """Decide a matrix, dense or sparse."""
    if is_sparse(p):
        csr = as_csr("p", p)
        chosen, decision = _decide_cells(_cells_of_csr(csr), csr.shape, problem, options)
        return replace(decision, selected=selected_cells(csr, chosen, p))
    chosen, decision = _decide_cells(_all_cells(p), p.shape, problem, options)
    return replace(decision, selected=chosen.reshape(p.shape))


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
    cells: Cells, shape: tuple[int, int], problem: Problem, options: _Options
) -> tuple[Bools, MacroDecision]:
    """Return which cells are chosen, in the order given, and the decision without its labels."""
    used, cells = _used_columns(cells, shape[1])
    rule = _rule(cells, shape[1], shape[1] - used.size, problem, options)
    if cells.p.size == 0:
        return np.zeros(0, np.bool_), _of_nothing(shape, problem)
    instance = Instance.of(cells, used.size, rule)
    small = cells.p.size <= CELLS
    tol = options.tol if options.tol is not None else 0.0 if small else ENOUGH
    solution = solve(instance, tol, options.watch)
    if small and solution.gap > tol:
        branch(instance, solution, tol, options.watch)
    chosen = instance.as_given(solution.state.chosen)
    decision = _decision(instance, solution, problem, shape[0])
    return chosen, _of_all_columns(decision, used, problem.zero_division, shape[1])


def _used_columns(cells: Cells, columns: int) -> tuple[Ints, Cells]:
    """Return the columns that have cells, and the cells with these columns numbered anew."""
    has_cells = np.bincount(cells.column, minlength=columns) > 0
    number = (np.cumsum(has_cells) - 1).astype(np.int32)
    return np.flatnonzero(has_cells), cells._replace(column=number[cells.column])


def _of_all_columns(
    decision: MacroDecision, used: Ints, zero: float, columns: int
) -> MacroDecision:
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


def _rule(cells: Cells, columns: int, empty: int, problem: Problem, options: _Options) -> Rule:
    """Return the rule for these cells; every row must be able to keep it."""
    available = np.diff(cells.first)
    if options.exactly and available.size and available.min() < options.b:
        row = int(np.argmax(available < options.b))
        raise ValueError(
            f"labels_per_row={options.b} is more than row {row} can give: it has {available[row]} "
            "cells (of a sparse matrix, above zero); max_labels_per_row allows fewer"
        )
    return Rule(
        b=min(options.b, columns),
        exactly=options.exactly,
        coefficients=problem.coefficients,
        zero_division=problem.zero_division,
        present_only=options.present_only,
        empty=empty,
    )


def _of_nothing(shape: tuple[int, int], problem: Problem) -> MacroDecision:
    """The decision about a matrix without cells: F is 0/0."""
    zero, size = problem.zero_division, shape[1]
    return MacroDecision(
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
    """Refuse measures for which what a cell adds depends on the other cells of its column."""
    if not is_additive(problem.measure):
        raise ValueError(
            "maximize_expected_macro_f needs F_β without smoothing, whose denominator does not "
            f"depend on which items are selected; got measure={problem.measure!r}"
        )


def _decision(instance: Instance, solution: Solution, problem: Problem, n: int) -> MacroDecision:
    """Put together what is known of a solution."""
    state = solution.state
    bound = solution.value if solution.gap == 0.0 else solution.bound
    expected = state.value / instance.weight
    return MacroDecision(
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
    from argmaxf.expected.macro import column_kernels

    rule, columns = instance.rule, instance.columns
    if rule.present_only:
        return math.nan
    none = columns.nothing / instance.weight  # zero_division · P(nothing is positive)
    std = np.sqrt(none * (rule.zero_division - none))
    column_kernels.spreads(columns, chosen[instance.cell], expected, rule.coefficients, std)
    return float(np.linalg.norm(instance.weight * std))
