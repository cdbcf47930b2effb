"""One set of items for many β, or many sizes: what a slider or a curve needs, in few calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Floats, Ints, contiguous
from argmaxf._base.validation import as_probabilities
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.small_sets import SMALL, options_of, settled
from argmaxf.expected.values import expected_f, expected_f_curve
from argmaxf.measures import MeasureLike
from argmaxf.measures.ratio import coefficients_of_betas
from argmaxf.problem import Problem


class Sweep(NamedTuple):
    """The best set for each β: its size, threshold, expected F_β and standard deviation."""

    k: Ints
    threshold: Floats
    expected: Floats
    std: Floats


def decide_betas(proba: ArrayLike, betas: Sequence[float]) -> Sweep:
    """Return the best set of the same items for each β.

    Cost: one sort of up to 16,384 items, then as much for each β as a decision of sorted items.
    """
    p = as_probabilities("proba", proba, ndim=1)
    if p.size > SMALL:
        found = [maximize_expected_f(p, beta=beta) for beta in betas]
        return Sweep(*(np.array([getattr(d, name) for d in found]) for name in Sweep._fields))
    from argmaxf.expected import small_set_kernels

    ascending = contiguous(np.sort(p))
    k, rivals = np.empty(len(betas), np.int64), np.empty(len(betas), np.int64)
    expected, std = np.empty(len(betas)), np.empty(len(betas))
    options = options_of(Problem.of())[1:]
    small_set_kernels.decide_each(ascending, _table(betas), *options, k, expected, std, rivals)
    for i in np.flatnonzero(rivals > 1):
        k[i], expected[i], std[i] = settled(ascending, Problem.of(betas[int(i)]))
    threshold = np.where(k > 0, ascending[np.minimum(p.size - k, p.size - 1)], np.inf)
    return Sweep(k, threshold, expected, std)


def curves_of_betas(proba: ArrayLike, betas: Sequence[float]) -> Floats:
    """Return the expected F_β of the top 0 … n items, one row for each β."""
    p = as_probabilities("proba", proba, ndim=1)
    if p.size > SMALL:
        return np.array([expected_f_curve(p, beta=beta) for beta in betas])
    from argmaxf.expected import small_set_kernels

    f = np.zeros((len(betas), p.size + 1))
    small_set_kernels.curves(contiguous(np.sort(p)), _table(betas), 0.0, f)
    return f


def top_spreads(
    proba: ArrayLike, sizes: Ints, *, beta: float = 1.0, measure: MeasureLike = "fbeta"
) -> Floats:
    """Return the standard deviation of a measure for the top k items, for each k ≥ 1 asked for."""
    problem = Problem.of(beta, measure)
    ascending = contiguous(np.sort(as_probabilities("proba", proba, ndim=1)))
    n = ascending.size
    if n > SMALL or problem.ratio is None:
        rank = np.arange(n, 0, -1)
        sets = (rank <= k for k in sizes)
        return np.array([expected_f(ascending, s, measure=problem.measure).std for s in sets])
    from argmaxf.expected import small_set_kernels

    std = np.zeros(len(sizes))
    if ascending[-1] > 0.0:
        f = np.empty(n + 1)
        small_set_kernels.spreads(ascending, problem.ratio, problem.zero_division, sizes, f, std)
    return std


def _table(betas: Sequence[float]) -> Floats:
    """Return the coefficients of F_β, a row for each β."""
    return np.array(coefficients_of_betas(betas))
