"""The labels with the highest expected F: one line, exact, for any β and any size."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import tensors_for
from argmaxf._base.validation import (
    NotAProbability,
    as_probabilities,
    as_real_array,
    check_choice,
    first_bad_probability,
    second_column,
)
from argmaxf.constraints import ChanceConstraint
from argmaxf.expected.decision import Decision
from argmaxf.expected.dense import (
    decide_all_cells,
    decide_by_segment,
    decide_columns,
    decide_each_row,
    decide_one,
)
from argmaxf.expected.sparse import as_csr, decide_sparse, is_sparse
from argmaxf.measures import MeasureLike
from argmaxf.prior import check_fits, factor_of, is_estimated, likely_rates, move_odds
from argmaxf.problem import Problem


def maximize_expected_f(
    proba: Any,
    *,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    average: str | None = None,
    zero_division: float = 0.0,
    ties: str = "split",
    prior: tuple[ArrayLike, ArrayLike | str] | None = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    confidence_level: float | None = None,
    by: ArrayLike | None = None,
    min_selected: int | None = None,
    max_selected: int | None = None,
) -> Decision:
    """Return the labels with the highest expected F, for independent labels.

    The best set is the top k for some k (Theorem 9 of the paper): argmax_k f_k with::

        f_k = E[(1 + β²) T_k / (k + β² S)]

    The optimum is exact and certified: bounds show that no other k can be better.

    Parameters
    ----------
    proba : array-like of shape (n,) or (rows, columns)
        Probabilities of being positive: a list, NumPy array, or column of pandas, polars or Arrow.
        A tensor of torch gets tensors on its device for an answer; on a GPU it is decided there.
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
        Value of F when nothing is positive and nothing is predicted. Above 0, predicting nothing
        competes with the other sets.
    ties : {"split", "together"}, default="split"
        ``"split"`` may select only some of several equal probabilities, the first ones;
        ``"together"`` keeps equal probabilities on one side.
    prior : tuple of two array-like, optional
        ``(train_rate, deploy_rate)``: the rate of positives where the probabilities were learned
        and where they are used, each a number or one for each column. They are moved there first
        (`shift_prior`), and the threshold is one of the moved probabilities. A `deploy_rate` of
        ``"estimate"`` is the most likely one (`estimate_rate`) of all items, or of each column.
    min_precision : float, optional
        Only sets whose precision is at least this, with probability `confidence_level` under the
        model. Selecting nothing meets any precision, so one out of reach selects nothing (for a
        threshold on new rows that is an error: `maximize_empirical_f`).
    min_recall : float, optional
        Only sets whose recall is at least this, with that probability; with both, both at once.
        Where there is nothing to find any recall is kept.
    confidence_level : float, optional
        The probability with which the limits must hold; with `by` in every segment at once, and so
        for all items together, for which each of s segments has confidence_level^(1/s).
    by : array-like of shape (n,), optional
        The segment of each item of a vector: each segment is decided on its own. Limits, of number
        too, are for each.
    min_selected : int, default=None
        Select at least so many items: of the one set, of each row (``"samples"``), each column
        (``"macro"``) or all cells (``"micro"``). Items with probability 0 are never selected.
    max_selected : int, default=None
        Select at most so many. The optimum under both limits is as exact as without.

    Returns
    -------
    Decision
        If two k have exactly the same expected F, the smaller one is taken. A
        `BoundedDecision` for G-mean without chance constraints or segments, with a bound that no
        set exceeds: `expected` itself for up to 5,000 items.

    Notes
    -----
    O(n) time without sorting above 16,384 items, and above 2,048 where some hundreds of them are
    positive; it holds at most n/16 items besides the input and the mask (up to a million items, a
    copy in double precision where the input is of another type). Other sets are sorted. With
    chance constraints the items are sorted and every k is looked at: O(n log n) time, and some 10
    numbers an item in memory.

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
    min_precision=0.75 with probability 0.9873, at 0.06915 of expected F

    Each segment on its own:

    >>> decision = maximize_expected_f([0.9, 0.2, 0.3, 0.4], by=["a", "a", "b", "b"])
    >>> decision.selected, decision.k
    (array([ True, False,  True,  True]), array([1, 2]))
    """
    chance = ChanceConstraint.of(min_precision, min_recall, confidence_level)
    problem = Problem.of(beta, measure, zero_division, ties, min_selected, max_selected, chance)
    tensors = tensors_for(proba)
    if tensors is not None and tensors.is_elsewhere(proba):
        _check_plain(proba, prior, by, problem)
        _way(proba, average)
        on_device: Decision = tensors.maximize(proba, average, problem)
        return on_device
    p = _read(proba) if prior is None else _moved(_read(proba), prior)
    decide = _way(p, average)
    if by is not None:
        if p.ndim != 1:
            raise ValueError(f"by is for one-dimensional proba, got {p.ndim} dimensions")
        decide = partial(decide_by_segment, by=by)
    if chance is not None and is_sparse(p):
        raise ValueError("min_precision and min_recall are for dense proba")
    try:
        decision = decide(p, problem)
    except NotAProbability:
        raise first_bad_probability("proba", p) from None
    if tensors is not None:
        decision = tensors.in_kind(decision, proba)
    return decision


def _check_plain(proba: Any, prior: Any, by: Any, problem: Problem) -> None:
    """Refuse what only the CPU can do."""
    if prior is None and by is None and problem.is_free and problem.chance is None:
        return
    raise ValueError(
        "prior, by, confidence_level and limits on the selected are for tensors on the CPU, "
        f"got one on {proba.device}: give proba.cpu()"
    )


def _read(proba: Any) -> Any:
    """Return an array of real numbers, or the sparse matrix that was given."""
    if not is_sparse(proba):
        return as_real_array("proba", proba)
    if proba.ndim != 2:
        raise ValueError(f"a sparse proba must have two dimensions, got {proba.ndim}")
    return proba


def _moved(p: Any, prior: Any) -> Any:
    """Return the probabilities under the second of two rates of positives."""
    if is_sparse(p):
        return _moved_cells(p, prior)
    given = as_probabilities("proba", p).astype(np.float64)
    if is_estimated(prior):
        prior = prior[0], likely_rates(given, prior[0])
    factor = factor_of(prior)
    check_fits(factor, "proba", given.shape)
    return move_odds(given, factor)


def _moved_cells(p: Any, prior: Any) -> Any:
    """Return the stored cells of a sparse matrix moved; those that are not stored stay 0."""
    csr = as_csr("proba", p).copy()
    csr.data = as_probabilities("proba", csr.data).astype(np.float64)
    if is_estimated(prior):
        prior = prior[0], likely_rates(csr, prior[0])
    factor = factor_of(prior)
    check_fits(factor, "proba", p.shape)
    csr.data = move_odds(csr.data, np.broadcast_to(factor, csr.shape[1])[csr.indices])
    return type(p)(csr)


def _way(p: Any, average: str | None) -> Callable[[Any, Problem], Decision]:
    """Return the function that decides input of this shape."""
    if p.ndim == 1:
        if average is not None:
            raise ValueError(f"average is for two-dimensional proba, got average={average!r}")
        return decide_one
    if p.ndim != 2:
        raise ValueError(f"proba must have one or two dimensions, got {p.ndim}")
    if average is None:
        raise ValueError(
            "two-dimensional proba needs average='samples', 'macro' or 'micro'"
            + second_column("proba", p)
        )
    ways = {"samples": decide_each_row, "macro": decide_columns, "micro": decide_all_cells}
    check_choice("average", average, ways)
    return partial(decide_sparse, average=average) if is_sparse(p) else ways[average]
