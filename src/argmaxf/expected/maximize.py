"""The labels with the highest expected F: one line, exact, for any β and any size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf._base.arrays import as_csr, is_sparse, selected_cells, tensors_for
from argmaxf._base.segments import Segments
from argmaxf._base.validation import (
    NotAProbability,
    as_real_array,
    check_choice,
    first_bad_probability,
    second_column,
)
from argmaxf.constraints import ChanceConstraint
from argmaxf.expected.decision import Decision
from argmaxf.expected.sets import decide_by, decide_set, decide_sets
from argmaxf.measures import MeasureLike, Ratio
from argmaxf.problem import Problem


def maximize_expected_f(
    p: Any,
    *,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    average: str | None = None,
    zero_division: float = 0.0,
    ties: str = "split",
    by: ArrayLike | None = None,
    min_selected: int | None = None,
    max_selected: int | None = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    confidence_level: float | None = None,
) -> Decision:
    """Return the labels with the highest expected F, for independent labels.

    The best set consists of the k most probable items for some k (Theorem 9 of the paper). Their
    expected F is::

        f_k = E[(1 + β²) T_k / (k + β² S)]

    with T_k positives among these k items and S positives in all. The k with the highest f_k is
    found exactly: bounds prove that no other k is better.

    Parameters
    ----------
    p : array-like of shape (n,) or (rows, columns)
        Probabilities of being positive: a list, NumPy array, or column of pandas, polars or Arrow.
        For a torch tensor, the computation runs on its device and the result holds tensors there.
        Two-dimensional input needs `average`. A SciPy sparse matrix or array is never made dense;
        cells it does not store have probability 0, and `selected` is a CSR of booleans.
    beta : float, default=1.0
        Weight of recall against precision; any real number between 1e-9 and 1e9.
    measure : str, Measure or callable, default="fbeta"
        A name, an object of `argmaxf.measures`, or a function of the counts tp, k, s, n, which
        must rise with tp (docs/measures.md has the table).
    average : {"samples", "macro", "micro"}, optional
        For two-dimensional input: ``"samples"`` decides each row, ``"macro"`` each column,
        ``"micro"`` all cells at once.
    zero_division : float, default=0.0
        Value of F when nothing is positive and nothing is predicted. If it is above 0, selecting
        nothing can be the best decision.
    ties : {"split", "together"}, default="split"
        With ``"split"``, the decision may select only the first of several equal probabilities;
        ``"together"`` gives equal probabilities equal labels.
    by : array-like of shape (n,), optional
        The segment of each item of a vector. Each segment is decided separately, and all limits
        apply to each segment.
    min_selected : int, default=None
        Select at least this many items: of a vector, of each row (``"samples"``), of each column
        (``"macro"``) or of all cells (``"micro"``). Items with probability 0 are never selected.
    max_selected : int, default=None
        Select at most this many items. The optimum within both limits is exact.
    min_precision : float, optional
        Consider only sets whose precision is at least this with probability `confidence_level`
        under the model. The empty set meets any precision, so nothing is selected if no other set
        does (`maximize_empirical_f` raises an error instead).
    min_recall : float, optional
        Consider only sets whose recall is at least this with the same probability. With
        `min_precision`, both hold at once. Any recall is met if there are no positives.
    confidence_level : float, optional
        The probability with which these constraints must hold. With `by` they hold in all s
        segments at once, and so for all items together: each segment is decided at
        confidence_level^(1/s).

    Returns
    -------
    Decision
        If two k have exactly the same expected F, the smaller one is used. For G-mean without
        chance constraints, a `BoundedDecision`: no set exceeds its `bound`, which is
        `expected` itself for up to 5,000 items.

    Notes
    -----
    Sets of more than 16,384 items are decided in O(n) time, without sorting. The same holds for
    sets of more than 2,048 items if some hundreds of them are positive. Besides the input and the
    mask, memory then holds n/16 items or fewer; it holds all items near the threshold if these are
    more. Up to a million items are also copied to double precision if they have another type.
    Smaller sets are sorted, and so are all sets for G-mean. With chance constraints, the items are
    sorted and every k is evaluated, in O(n log n) time with about 10 numbers per item in memory.

    References
    ----------
    Ye, Chai, Lee & Chieu, "Optimizing F-Measures: A Tale of Two Approaches", ICML 2012.

    Examples
    --------
    A threshold of 0.5 would select nothing here.

    >>> decision = maximize_expected_f([0.05, 0.45, 0.1, 0.3, 0.4])
    >>> decision.selected
    array([False,  True, False,  True,  True])
    >>> round(decision.expected, 4), round(decision.std, 4)
    (0.4803, 0.3044)

    At least 3 of 4 selected items are positive with probability 0.95:

    >>> p = [0.99, 0.98, 0.97, 0.96, 0.9, 0.7, 0.6, 0.5]
    >>> decision = maximize_expected_f(p, min_precision=0.75, confidence_level=0.95)
    >>> decision.k, maximize_expected_f(p).k
    (5, 8)
    >>> print(decision.guarantee)
    min_precision=0.75 with probability 0.9873; costs 0.06915 expected F

    Each segment separately:

    >>> decision = maximize_expected_f([0.9, 0.2, 0.3, 0.4], by=["a", "a", "b", "b"])
    >>> decision.selected, decision.k
    (array([ True, False,  True,  True]), array([1, 2]))
    """
    chance = ChanceConstraint.of(min_precision, min_recall, confidence_level)
    problem = Problem.of(beta, measure, zero_division, ties, min_selected, max_selected, chance)
    tensors = tensors_for(p)
    if tensors is not None and tensors.is_elsewhere(p):
        _check_plain(p, by, problem)
        _way(p, average)
        on_device: Decision = tensors.maximize(p, average, problem)
        return on_device
    items = _read(p)
    decide = _way(items, average)
    if by is not None:
        if items.ndim != 1:
            raise ValueError(f"by is for one-dimensional p, got {items.ndim} dimensions")
        decide = partial(_decide_segments, by=by)
    if chance is not None and is_sparse(items):
        raise ValueError("min_precision and min_recall with confidence_level are for dense p")
    try:
        decision = decide(items, problem)
    except NotAProbability:
        raise first_bad_probability("p", items) from None
    if tensors is not None:
        decision = tensors.in_kind(decision, p)
    return decision


def _check_plain(p: Any, by: Any, problem: Problem) -> None:
    """Refuse what only the CPU can do."""
    if by is None and problem.is_free and problem.chance is None:
        return
    raise ValueError(
        "by, confidence_level and limits on the selected are for tensors on the CPU, "
        f"got one on {p.device}: give p.cpu()"
    )


def _read(p: Any) -> Any:
    """Return an array of real numbers, or the sparse matrix that was given."""
    if not is_sparse(p):
        return as_real_array("p", p)
    if p.ndim != 2:
        raise ValueError(f"a sparse p must have two dimensions, got {p.ndim}")
    return p


def _way(p: Any, average: str | None) -> Callable[[Any, Problem], Decision]:
    """Return the function that decides input of this shape."""
    if p.ndim == 1:
        if average is not None:
            raise ValueError(f"average is for two-dimensional p, got average={average!r}")
        return decide_set
    if p.ndim != 2:
        raise ValueError(f"p must have one or two dimensions, got {p.ndim}")
    if average is None:
        raise ValueError(
            "two-dimensional p needs average='samples', 'macro' or 'micro'" + second_column("p", p)
        )
    ways = {"samples": decide_each_row, "macro": _decide_columns, "micro": _decide_all_cells}
    check_choice("average", average, ways)
    if is_sparse(p):
        return partial(_decide_sparse, average=average)
    return ways[average]


def _decide_segments(p: NDArray[Any], problem: Problem, by: ArrayLike) -> Decision:
    """Decide each segment of a set of items."""
    if p.size == 0:
        raise ValueError("p must hold at least one probability, got none")
    if not (p.min() >= 0.0 and p.max() <= 1.0):
        raise NotAProbability
    segments = Segments.of(by, p.size)
    return decide_by(p, problem, segments, lambda i: segments.names[i : i + 1].tolist()[0])


def _decide_all_cells(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide all cells of a table as one set."""
    if p.size == 0:
        return _of_nothing(p.shape, (), problem)
    decision = decide_set(p.reshape(-1), problem)
    return replace(decision, selected=decision.selected.reshape(p.shape))


def decide_each_row(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide each row of a table."""
    return _decide_rows(p, problem, "row")


def _decide_columns(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide each column."""
    decision = _decide_rows(p.T, problem, "column")
    return replace(decision, selected=decision.selected.T)


def _decide_rows(p: NDArray[Any], problem: Problem, kind: str) -> Decision:
    """Decide each row; errors name the row or column of the items."""
    rows, n = p.shape
    if rows == 0 or n == 0:
        return _of_nothing(p.shape, (rows,), problem)
    if problem.least:
        positive = np.count_nonzero(p > 0.0, axis=1)
        scarcest = int(np.argmin(positive))
        problem.check_reachable(int(positive[scarcest]), f" in {kind} {scarcest}")
    decision = decide_sets(p.reshape(-1), np.arange(rows + 1) * n, problem)
    return replace(decision, selected=decision.selected.reshape(p.shape), n=n)


def _decide_sparse(matrix: Any, problem: Problem, average: str) -> Decision:
    """Decide the columns, rows or all cells of a sparse matrix; the labels are a CSR too.

    Cells that are not stored have p = 0. They are never selected and change no expectation, so that
    a column is decided from its stored cells alone. Holds the stored values a second time, for
    columns with their rows, and one mark for each.
    """
    if problem.ratio is None:
        why = (
            "a ratio whose denominator falls with true positives, "
            "found from all counts of the items"
            if isinstance(problem.measure, Ratio)
            else "for which cells that are not stored count too"
        )
        raise ValueError(
            f"sparse p is for ratios (F, Jaccard, …), got {problem.measure}, {why}; give a dense p"
        )
    csr = as_csr("p", matrix)
    if average == "macro":
        columns = csr.tocsc()
        decision = decide_sets(columns.data, columns.indptr.astype(np.int64), problem)
        columns.data = decision.selected.astype(np.float64)
        chosen, n = columns.tocsr().data > 0.0, csr.shape[0]
    else:
        ends = csr.indptr if average == "samples" else np.array([0, csr.data.size])
        decision = decide_sets(csr.data, ends.astype(np.int64), problem)
        chosen, n = decision.selected, csr.shape[1]
    decision = replace(decision, selected=selected_cells(csr, chosen, matrix), n=n)
    return decision if average != "micro" else replace(decision.only(), n=math.prod(csr.shape))


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
