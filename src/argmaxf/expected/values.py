"""Expected values of chosen sets: F of any set and of every top-k set, precision and recall."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf._base.arrays import Bools, Floats, Ints, contiguous, tensors_for
from argmaxf._base.validation import as_probabilities, as_real_array
from argmaxf.expected.counts import (
    MOST_ITEMS,
    curve_by_counts,
    groups_for_counts,
    value_by_counts,
    value_of_groups,
)
from argmaxf.expected.decision import ExpectedF
from argmaxf.expected.groups import (
    Groups,
    Integrand,
    Tilt,
    group_sums,
    groups_of_items,
    value_of_nothing,
)
from argmaxf.expected.quadrature import Nodes, plausible_positives, reciprocal_nodes
from argmaxf.measures import MeasureLike
from argmaxf.problem import Problem


def expected_f(
    p: ArrayLike,
    selected: ArrayLike,
    *,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    zero_division: float = 0.0,
) -> ExpectedF:
    """Return mean and standard deviation of F for any chosen set, for independent labels.

    Parameters
    ----------
    p : array-like of shape (n,)
        Probabilities of being positive, one-dimensional. For a torch tensor, the result holds
        tensors on the same device.
    selected : array-like of bool of shape (n,)
        Booleans of the same length: the predicted labels.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        What F is: a name, an object of `argmaxf.measures`, or a function of counts.
    zero_division : float, default=0.0
        Value of F when nothing is positive and nothing is predicted.

    Returns
    -------
    ExpectedF
        The mean and the standard deviation.

    Notes
    -----
    O(n) time. For more than 4,096 items, the set and its complement are copied and summarized; the
    size of the summaries does not depend on n.

    Examples
    --------
    >>> mean, std = expected_f([0.9, 0.4, 0.35, 0.1], [True, False, True, False])
    >>> round(mean, 4), round(std, 4)
    (0.6477, 0.2424)
    """
    problem = Problem.of(beta, measure, zero_division)
    tensors = tensors_for(p)
    if tensors is not None and tensors.is_elsewhere(p):
        on_device: ExpectedF = tensors.evaluate(p, selected, problem)
        return on_device
    items = as_probabilities("p", p, ndim=1)
    value = value_of_selected(items, _mask(selected, items.size), problem)
    if tensors is not None:
        value = tensors.in_kind(value, p)
    return value


def value_of_selected(p: NDArray[Any], chosen: NDArray[np.bool_], problem: Problem) -> ExpectedF:
    """Return mean and standard deviation of the measure for any chosen set."""
    inside, outside = p[chosen], p[~chosen]
    if problem.ratio is not None:
        return value_of_sets(groups_of_items(inside), groups_of_items(outside), problem)
    inside, outside = inside.astype(np.float64), outside.astype(np.float64)
    if problem.is_linear and p.size > MOST_ITEMS:
        return value_of_groups(groups_for_counts(inside), groups_for_counts(outside), problem)
    return value_by_counts(inside, outside, problem)


def value_of_sets(chosen: Groups, rest: Groups, problem: Problem) -> ExpectedF:
    """Return mean and standard deviation of F for a chosen set, given it and the rest in groups.

    Items with p = 0 are in no group but count in `chosen` (see `groups_of_items`).
    """
    if problem.ratio is None:
        return value_of_groups(chosen, rest, problem)
    k = float(chosen.count.sum())
    everything = Groups.joined([chosen, rest])
    if k == 0:
        return value_of_nothing(rest, problem)
    if everything.mass.sum() == 0.0:
        return ExpectedF(float(problem.measure.value(0.0, k, 0.0)), 0.0)
    return Integrand.of(everything, problem.coefficients, k, start=k).value(chosen, rest)


def expected_f_curve(
    p: ArrayLike,
    *,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    zero_division: float = 0.0,
) -> Floats:
    """Return f_0 … f_n, the expected F of the empty set and of the top 1 … n items.

    Parameters
    ----------
    p : array-like of shape (n,)
        Probabilities of being positive, one-dimensional, in any order.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        What F is: a name, an object of `argmaxf.measures`, or a function of counts.
    zero_division : float, default=0.0
        Value of F when nothing is positive and nothing is predicted.

    Returns
    -------
    ndarray of shape (n + 1,)
        The expected F of the top k, for each k.

    Notes
    -----
    O(n log n) time for sorting, then O(n) with about 70 operations an item; it holds one sorted
    copy of the input besides the result.

    Examples
    --------
    >>> expected_f_curve([0.5, 0.9]).round(4)
    array([0.    , 0.75  , 0.7833])
    """
    problem = Problem.of(beta, measure, zero_division)
    ascending = np.sort(as_probabilities("p", p, ndim=1).astype(np.float64, copy=False))
    return top_curve(contiguous(ascending), problem)


def top_curve(ascending: Floats, problem: Problem) -> Floats:
    """Return the expected value of the top k of sorted items, for k = 0 … n."""
    from argmaxf.expected import node_kernels as tilts
    from argmaxf.expected import small_set_kernels as kernels

    if problem.ratio is None:
        return curve_by_counts(ascending[::-1].copy(), problem)
    f, rule = np.empty(ascending.size + 1), np.zeros(tilts.RULE)
    work = np.empty(kernels.WORKSPACE)
    kernels.curve(ascending, problem.coefficients, problem.zero_division, rule, work, f)
    return f


def _mask(selected: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Return booleans, or zeros and ones, as a mask."""
    mask = as_real_array("selected", selected)
    if mask.shape != (n,):
        raise ValueError(f"selected must have the shape of p, ({n},), got {mask.shape}")
    if mask.dtype != np.bool_ and not np.isin(mask, (0, 1)).all():
        bad = int(np.flatnonzero(~np.isin(mask, (0, 1)))[0])
        raise ValueError(f"selected must be booleans, got {mask[bad].item()!r} at position {bad}")
    return mask.astype(np.bool_)


def recall_shares(p: ArrayLike) -> Floats:
    r"""Return E[y_i / S] of each item: the expected recall of a set is the sum over its items.

    With 1/S = Σ ω e^{-uS} it is Σ ω G(u) π_i(u), G(u) = Π (1 - p_j w), w = 1 - e^{-u}, and
    π_i = p_i e^{-u} / (1 - p_i w).

    >>> recall_shares([0.5, 0.5])
    array([0.375, 0.375])
    """
    from argmaxf.expected import dependent_kernels

    items = contiguous(as_probabilities("p", p))
    fewest, most = plausible_positives(float(items.sum()), float(items.size))
    nodes = Nodes(*reciprocal_nodes(max(1.0, fewest), max(1.0, most)))
    _, w, x = Tilt.of(nodes, 1.0)
    log_g = group_sums(groups_of_items(items), w, x)[0].sum(axis=0)
    share = np.empty(items.size)
    dependent_kernels.reciprocals(items, nodes.weight * x * np.exp(log_g), w, x, share)
    return share * items


class TopSets:
    """Expected and found counts of every top-k set of items in falling order."""

    def __init__(self, falling: Floats, truth: Bools | None = None) -> None:
        truth = np.zeros(falling.size, np.bool_) if truth is None else truth
        self.mass = np.concatenate([[0.0], np.cumsum(falling)])
        self.recall = np.concatenate([[0.0], np.cumsum(recall_shares(falling))])
        self.found = np.concatenate([[0], np.cumsum(truth)])

    def at(self, sizes: Ints) -> list[dict[str, Any]]:
        """Return k, expected precision and recall, expected and found true positives of each."""
        columns = {
            "k": sizes,
            "precision": self.mass[sizes] / np.maximum(sizes, 1),
            "recall": self.recall[sizes],
            "mass": self.mass[sizes],
            "tp": self.found[sizes],
        }
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]
