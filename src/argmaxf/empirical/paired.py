"""The difference in F between two predictions of the same rows, with a confidence interval."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.validation import as_labels
from argmaxf.empirical.interval import Interval, f_and_pulls, standard_errors
from argmaxf.measures import MeasureLike, as_measure


def f_difference(
    y_true: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    confidence_level: float = 0.95,
) -> Interval:
    """Return F_β of predictions `a` less that of `b` on the same rows, with its interval.

    Tables are compared by macro F. Paired: what both get right or wrong cancels, so the interval is
    narrower than those of the two F themselves. Normal approximation with each row's pull on the
    difference; cost O(n labels). `measure` may be any measure of counts.

    >>> y, a, b = [1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 1], [1, 0, 0, 0, 0, 1]
    >>> round(f_difference(y, a, b).value, 4)
    0.4571
    """
    truth, first, second = (_table(name, x) for name, x in [("y_true", y_true), ("a", a), ("b", b)])
    if not truth.shape == first.shape == second.shape:
        raise ValueError(
            f"y_true, a and b must have one shape, got {truth.shape}, {first.shape}, {second.shape}"
        )
    ratio = as_measure(measure, beta)
    f1, pull1 = f_and_pulls(truth, first, ratio)
    f2, pull2 = f_and_pulls(truth, second, ratio)
    value = float(np.mean(f1 - f2))
    error = float(np.sqrt(np.sum((pull1 - pull2).mean(axis=1) ** 2)))
    reach = error * standard_errors(confidence_level)
    return Interval(value - reach, value, value + reach)


def _table(name: str, values: Any) -> Any:
    array = as_labels(name, values)
    return array.reshape(len(array), -1)
