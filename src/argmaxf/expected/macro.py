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

from argmaxf._base.arrays import Bools, Ints, as_csr, is_sparse, selected_cells, tensors_for
from argmaxf._base.validation import (
    NotAProbability,
    as_real_array,
    check_choice,
    check_count,
    check_not_negative,
    first_bad_probability,
)
from argmaxf.expected.decision import Decision
from argmaxf.expected.macro_solver import Assignment, Cells, Instance, Rule, Watch, solve
from argmaxf.measures import Measure, MeasureLike, Ratio
from argmaxf.problem import Problem


@dataclass(frozen=True, eq=False, repr=False)
class MacroDecision(Decision):
    """The labels with the highest expected macro F under a rule for each row, with a proof.

    As `Decision` for columns, with `k` and `threshold` for each column, and:

    Attributes
    ----------
    threshold : ndarray
        The smallest selected probability of each column, infinite if nothing is selected. A row
        with a higher probability may have been given to another column.
    expected : float
        E[macro F] of the selected labels: one number.
    std : float
        Standard deviation of macro F under the model; NaN if averaged over present columns only,
        where it has no such form.
    bound : float
        No labels that keep the rule have a higher expected macro F.
    gap : float
        The part of `bound` that `expected` falls short of. 0 means proven optimal (to rounding,
        a part of 1e-12).
    expected_of_columns : ndarray
        E[F] of each column.

    Examples
    --------
    >>> from argmaxf import maximize_expected_macro_f
    >>> decision = maximize_expected_macro_f([[0.6, 0.4], [0.8, 0.2], [0.7, 0.3]], labels_per_row=1)
    >>> decision.selected.tolist(), decision.gap
    ([[False, True], [True, False], [True, False]], 0.0)
    """

    bound: float = math.nan
    gap: float = math.nan
    expected_of_columns: Any = None


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

    Macro F is the mean of F over the columns. Without a limit on the labels of a row, each column
    can be decided separately (`maximize_expected_f` with ``average="macro"``). With a limit, all
    columns are decided together. The result has an upper bound on the macro F of any other labels.

    Parameters
    ----------
    p : array-like or sparse matrix of shape (n_rows, n_columns)
        Probability that each label of each row is positive. Labels are treated as independent, so
        rows need not sum to 1. Of a sparse matrix, only stored cells can be selected.
    labels_per_row : int, optional
        The exact number of labels of each row: 1 for classes that exclude each other.
    max_labels_per_row : int, optional
        The maximum number of labels of each row. Pass either this or `labels_per_row`.
    beta : float, default=1.0
        The β of F_β.
    measure : str or Measure, default="fbeta"
        F_β or Dice without smoothing; other measures are refused.
    zero_division : float, default=0.0
        F of a column in which nothing is positive and nothing is selected.
    averaged_over : {"all", "present"}, default="all"
        Take the mean over all columns, or over those that have a positive.
    tol : float, optional
        Stop when the relative gap to the bound is at most this. By default 0 for matrices of at
        most 4,096 cells, and 1e-5 for larger ones. The search may stop at a larger gap if closing
        it would take too long.
    progress : bool or callable, default=False
        True writes each step to standard error; a function is called with the number of the step,
        the expected macro F and the bound so far.

    Returns
    -------
    MacroDecision
        The labels, the expected macro F, a `bound` that no allowed labels exceed, and the `gap`.

    Notes
    -----
    Memory: about 50 bytes for each cell, and 7 numbers for each of 24 or more quadrature nodes of
    each column. docs/background/labels-per-row.md has the algorithm.

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
    if not is_additive(problem.measure):
        raise ValueError(
            "maximize_expected_macro_f needs F_β without smoothing, whose denominator does not "
            f"depend on which items are selected; got measure={problem.measure!r}"
        )
    present = check_choice("averaged_over", averaged_over, ("all", "present")) == "present"
    b, exactly = _labels_per_row(labels_per_row, max_labels_per_row)
    rule = Rule(b, exactly, problem.coefficients, problem.zero_division, present)
    tol = None if tol is None else check_not_negative("tol", tol)
    watch = _watch(progress)
    tensors = tensors_for(p)
    if tensors is not None and tensors.is_elsewhere(p):
        raise ValueError(
            f"labels per row are for tensors on the CPU, got one on {p.device}: give p.cpu()"
        )
    given = p if is_sparse(p) else as_real_array("p", p)
    if given.ndim != 2:
        raise ValueError(f"p must have two dimensions, got {given.ndim}")
    try:
        decision = _decide(given, rule, tol, watch)
    except NotAProbability:
        raise first_bad_probability("p", given) from None
    decision = replace(decision, beta=problem.beta)
    return decision if tensors is None else tensors.in_kind(decision, p)


def is_additive(measure: Measure) -> bool:
    """Whether what an item adds to a set depends on the set's size alone, as for F_β."""
    if not isinstance(measure, Ratio):
        return False
    _, b_in, b_out, s0, s1 = measure.coefficients()
    return bool(b_in == b_out and s0 == 0.0 and s1 == 0.0)


def _labels_per_row(exactly: int | None, at_most: int | None) -> tuple[int, bool]:
    """Return how many labels a row may have, and whether it must have as many."""
    if (exactly is None) == (at_most is None):
        raise ValueError(
            f"give either labels_per_row or max_labels_per_row, got {exactly!r} and {at_most!r}"
        )
    if exactly is None:
        return check_count("max_labels_per_row", at_most), False
    return check_count("labels_per_row", exactly), True


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


def _decide(p: Any, rule: Rule, tol: float | None, watch: Watch | None) -> MacroDecision:
    """Decide a matrix, dense or sparse."""
    if is_sparse(p):
        csr = as_csr("p", p)
        cells = Cells(csr.indptr.astype(np.int64), csr.indices, csr.data)
        chosen, decision = _decide_cells(cells, csr.shape, rule, tol, watch)
        return replace(decision, selected=selected_cells(csr, chosen, p))
    chosen, decision = _decide_cells(_all_cells(p), p.shape, rule, tol, watch)
    return replace(decision, selected=chosen.reshape(p.shape))


def _all_cells(p: NDArray[Any]) -> Cells:
    """Return all cells of a dense matrix."""
    n, size = p.shape
    if p.size and not (p.min() >= 0.0 and p.max() <= 1.0):
        raise NotAProbability
    column = np.tile(np.arange(size, dtype=np.int32), n)
    values = np.ascontiguousarray(p, dtype=np.float64).reshape(-1)
    return Cells(np.arange(n + 1, dtype=np.int64) * size, column, values)


def _decide_cells(
    cells: Cells, shape: tuple[int, int], rule: Rule, tol: float | None, watch: Watch | None
) -> tuple[Bools, MacroDecision]:
    """Return which cells are chosen, in the order given, and the decision without its labels.

    Columns without cells take no memory but their numbers: nothing is selected in them.
    """
    _check_rows(np.diff(cells.first), rule)
    n, columns = shape
    zero = rule.zero_division
    k, threshold = np.zeros(columns, np.int64), np.full(columns, math.inf)
    expected = np.full(columns, zero)
    decision = MacroDecision(
        None, k, threshold, zero, 0.0, 1.0, n, bound=zero, gap=0.0, expected_of_columns=expected
    )
    if cells.p.size == 0:
        return np.zeros(0, np.bool_), decision
    has_cells = np.bincount(cells.column, minlength=columns) > 0
    number = (np.cumsum(has_cells) - 1).astype(np.int32)
    used = np.flatnonzero(has_cells)
    rule = replace(rule, b=min(rule.b, columns), empty=columns - used.size)
    instance = Instance.of(cells._replace(column=number[cells.column]), used.size, rule)
    solution = solve(instance, tol, watch)
    state = solution.state
    k[used], expected[used] = state.size, state.value / instance.weight
    np.minimum.at(
        threshold, used[instance.rows.column[state.chosen]], instance.rows.p[state.chosen]
    )
    return instance.as_given(state.chosen), replace(
        decision,
        expected=float(solution.value),
        std=_std(instance, state),
        bound=float(solution.value if solution.gap == 0.0 else solution.bound),
        gap=solution.gap,
    )


def _check_rows(available: Ints, rule: Rule) -> None:
    """Refuse rows that have fewer cells than labels are asked for."""
    if rule.exactly and available.size and available.min() < rule.b:
        row = int(np.argmax(available < rule.b))
        raise ValueError(
            f"labels_per_row={rule.b} is more than row {row} can give: it has {available[row]} "
            "cells (of a sparse matrix, above zero); max_labels_per_row allows fewer"
        )


def _std(instance: Instance, state: Assignment) -> float:
    """Return the standard deviation of the average: columns are independent."""
    from argmaxf.expected import macro_kernels

    rule, columns, weight = instance.rule, instance.columns, instance.weight
    if rule.present_only:
        return math.nan
    none = columns.nothing / weight  # zero_division · P(nothing is positive)
    std = np.sqrt(none * (rule.zero_division - none))
    chosen = state.chosen[instance.cell]
    values = state.value / weight
    macro_kernels.spreads(columns, chosen, values, weight, rule.coefficients, std)
    return float(np.linalg.norm(weight * std))
