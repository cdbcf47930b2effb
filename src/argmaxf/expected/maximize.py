"""The labels with the highest expected F: one line, exact, for any β and any size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf.arrays import Floats
from argmaxf.expected.arrays import ArraySource, contiguous, in_threads, threads_for
from argmaxf.expected.contest import settle
from argmaxf.expected.decision import Decision
from argmaxf.expected.optimum import find_optimum, groups_of_table, lowest_chosen
from argmaxf.measures import Measure
from argmaxf.question import Question
from argmaxf.validation import NotAProbability, as_real_array, check_choice, first_bad_probability

SMALL = 1 << 14  # up to so many items are sorted and looked at one by one


def maximize_expected_f(
    proba: ArrayLike,
    *,
    beta: float = 1.0,
    measure: str | Measure = "fbeta",
    average: str | None = None,
    zero_division: float = 0.0,
    ties: str = "split",
) -> Decision:
    r"""Return the labels with the highest expected F, for independent labels.

    The best set is the top k for some k (Theorem 9 of the paper), so the task is argmax_k f_k with

    .. math:: f_k = E\left[\frac{(1+β²)\,T_k}{k + β² S}\right].

    The optimum is exact and certified: bounds show that no other k can be better.

    Parameters
    ----------
    proba
        Probabilities of being positive: a list, NumPy array, or column of pandas, polars or Arrow.
        Two-dimensional input needs `average`.
    beta
        Weight of recall against precision; any real number between 1e-9 and 1e9.
    measure
        ``"fbeta"``, or ``"jaccard"`` for the expected intersection over union.
    average
        For two-dimensional input: ``"samples"`` decides each row, ``"macro"`` each column,
        ``"micro"`` all cells at once.
    zero_division
        Value of F when nothing is positive and nothing is predicted. Above 0, predicting nothing
        competes with the other sets.
    ties
        ``"split"`` may select only some of several equal probabilities, the first ones;
        ``"together"`` keeps equal probabilities on one side.

    Returns
    -------
    Decision
        If two k have exactly the same expected F, the smaller one is taken.

    Notes
    -----
    O(n) time without sorting above 16,384 items, where it holds at most n/16 items besides the
    input and the mask; below, the items are sorted.

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
    """
    question = Question.of(beta, measure, zero_division, ties)
    p = as_real_array("proba", proba)
    decide = _way(p, average)
    try:
        return decide(p, question)
    except NotAProbability:
        raise first_bad_probability("proba", p) from None


def _way(p: NDArray[Any], average: str | None) -> Callable[[NDArray[Any], Question], Decision]:
    """Return the function that decides input of this shape."""
    if p.ndim == 1:
        if average is not None:
            raise ValueError(f"average is for two-dimensional proba, got average={average!r}")
        return _decide
    if p.ndim != 2:
        raise ValueError(f"proba must have one or two dimensions, got {p.ndim}")
    if average is None:
        raise ValueError("two-dimensional proba needs average='samples', 'macro' or 'micro'")
    ways = {"samples": _decide_rows, "macro": _decide_columns, "micro": _decide_all_cells}
    return ways[check_choice("average", average, ways)]


def _decide(p: NDArray[Any], question: Question) -> Decision:
    """Decide one set of items."""
    if p.size == 0:
        raise ValueError("proba must hold at least one probability, got none")
    if p.size > SMALL:
        return _decide_large(p, question)
    rows = _decide_rows(p[None, :], question)
    return Decision(
        selected=rows.selected[0],
        k=int(rows.k[0]),
        threshold=float(rows.threshold[0]),
        expected=float(rows.expected[0]),
        std=float(rows.std[0]),
        beta=question.beta,
        n=p.size,
    )


def _decide_large(p: NDArray[Any], question: Question) -> Decision:
    """Decide many items from their summary and closer looks at a few, without sorting."""
    source = ArraySource(p)
    found = find_optimum(groups_of_table(source.table()), question, source)
    threshold = lowest_chosen(found, source)
    selected = _select(p, threshold, found.k)
    return Decision(selected, found.k, threshold, found.f, found.std, question.beta, p.size)


def _select(p: NDArray[Any], threshold: float, k: int) -> NDArray[np.bool_]:
    """Mark the top k: what is above the threshold, and the first ones equal to it."""
    from argmaxf.expected import kernels

    selected: NDArray[np.bool_] = np.greater_equal(p, threshold)
    if np.count_nonzero(selected) != k:
        ties = k - np.count_nonzero(p > threshold)
        kernels.select(contiguous(p), threshold, ties, selected)
    return selected


def _decide_all_cells(p: NDArray[Any], question: Question) -> Decision:
    if p.size == 0:
        return _of_nothing(p.shape, (), question)
    decision = _decide(p.reshape(-1), question)
    return replace(decision, selected=decision.selected.reshape(p.shape))


def _decide_columns(p: NDArray[Any], question: Question) -> Decision:
    """Decide each column."""
    decision = _decide_rows(p.T, question)
    return replace(decision, selected=decision.selected.T)


def _decide_rows(p: NDArray[Any], question: Question) -> Decision:
    """Decide each row."""
    rows, n = p.shape
    if rows == 0 or n == 0:
        return _of_nothing(p.shape, (rows,), question)
    if n > SMALL:
        return _stacked([_decide_large(row, question) for row in p])
    return _decide_small_rows(p, question)


def _decide_small_rows(p: NDArray[Any], question: Question) -> Decision:
    """Sort each row and look at its items one by one, rows shared out among threads."""
    from argmaxf.expected import kernels, row_kernels

    rows, n = p.shape
    proba = contiguous(p)
    ascending = np.sort(proba, axis=1)
    if not (ascending[:, 0].min() >= 0.0 and ascending[:, -1].max() <= 1.0):
        raise NotAProbability
    ascending = kernels.readonly(ascending)
    k, rivals = np.empty(rows, np.int64), np.empty(rows, np.int64)
    expected, std = np.empty(rows), np.empty(rows)
    selected = np.empty(p.shape, np.bool_)
    options = (question.coefficients, question.zero_division, question.split_ties)

    def work(part: slice) -> None:
        results = (k[part], expected[part], std[part], rivals[part])
        row_kernels.decide_rows(ascending[part], *options, *results)
        for r in np.flatnonzero(rivals[part] > 1) + part.start:
            k[r], expected[r], std[r] = _settled(ascending[r], question)
        row_kernels.select_rows(proba[part], ascending[part], k[part], selected[part])

    in_threads(work, rows, threads_for(64 * p.size))
    last = np.maximum(n - k, 0).clip(max=n - 1)
    threshold = np.where(k > 0, ascending[np.arange(rows), last], math.inf)
    return Decision(selected, k, threshold, expected, std, question.beta, n)


def _settled(ascending: Floats, question: Question) -> tuple[int, float, float]:
    """Decide a row in which several k agree to 13 digits."""
    from argmaxf.expected import row_kernels

    f = np.empty(ascending.size + 1)
    options = (question.coefficients, question.zero_division, question.split_ties)
    best = row_kernels.decide_row(ascending, *options, -1, f)[0]
    rivals = np.flatnonzero(f >= f[best] * (1.0 - row_kernels.CONTEST)).tolist()
    k = settle(ascending[::-1], rivals, question)
    _, expected, std, _ = row_kernels.decide_row(ascending, *options, k, f)
    return k, expected, std


def _stacked(decisions: list[Decision]) -> Decision:
    return Decision(
        selected=np.stack([np.asarray(d.selected) for d in decisions]),
        k=np.array([d.k for d in decisions]),
        threshold=np.array([d.threshold for d in decisions]),
        expected=np.array([d.expected for d in decisions]),
        std=np.array([d.std for d in decisions]),
        beta=decisions[0].beta,
        n=decisions[0].n,
    )


def _of_nothing(shape: tuple[int, ...], rows: tuple[int, ...], question: Question) -> Decision:
    """The decision about sets without items: nothing is selected, and F is 0/0."""
    return Decision(
        selected=np.zeros(shape, np.bool_),
        k=np.zeros(rows, np.int64),
        threshold=np.full(rows, math.inf),
        expected=np.full(rows, question.zero_division),
        std=np.zeros(rows),
        beta=question.beta,
        n=0,
    )
