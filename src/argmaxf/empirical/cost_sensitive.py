"""F_β as a weighted error: the costs under which an ordinary classifier maximizes it.

F_β is pseudo-linear in its errors. With S positives, FN of them missed and FP negatives taken,

    F_β ≥ t   ⟺   (1 + β² - t) FN + t FP ≤ (1 + β²)(1 - t) S,

so a classifier that minimizes the weighted error on the left for t = max F_β maximizes F_β
(Parambath, Usunier and Grandvalet 2014). That t is not known, but it is one number: some are tried.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Floats
from argmaxf._base.validation import check_beta, check_count, ones_unless
from argmaxf.measures import FBeta


def target_grid(positive_rate: float, n_costs: int, *, beta: float = 1.0) -> Floats:
    """Return the values of t to try, from 1 down to the F of predicting everything positive.

    The highest F lies between the two. For β = 1 the first value, t = 1, is the unweighted error.

    >>> target_grid(0.2, 3)
    array([1.        , 0.66666667, 0.33333333])
    """
    floor = FBeta(beta).value(positive_rate, 1.0, positive_rate)
    return np.linspace(1.0, floor, check_count("n_costs", n_costs))


def cost_weights(
    y: NDArray[np.bool_], target_f: float, *, beta: float = 1.0, weight: Floats | None = None
) -> Floats:
    """Return the weight of each row under the costs of t, scaled to keep the sum of the weights.

    Keeping the sum keeps the meaning of a classifier's own regularization.

    >>> cost_weights(np.array([True, False, False, False]), 0.5)
    array([2.        , 0.66666667, 0.66666667, 0.66666667])
    """
    weight = ones_unless(weight, len(y))
    costs = weight * np.where(y, 1.0 + check_beta(beta) ** 2 - target_f, target_f)
    return np.asarray(costs * (weight.sum() / costs.sum()))
