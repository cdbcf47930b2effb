"""F_β, Jaccard, precision and recall from counts, all with one 0/0 convention."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.validation import check_zero_division
from argmaxf.measures import FBeta, Jaccard
from argmaxf.measures.base import divided


def fbeta_from_counts(
    true_positives: ArrayLike,
    predicted: ArrayLike,
    positives: ArrayLike,
    *,
    beta: float = 1.0,
    zero_division: float = 0.0,
) -> Any:
    """Return F_β of a prediction from three counts, equation 1 of the paper.

    ::

        F_β = (1 + β²) T / (k + β² S)

    with T true positives, k predicted and S actual positives. Where nothing is predicted and
    nothing is there to find (k = S = 0), F is `zero_division`. Counts may be weighted, and arrays
    broadcast.

    Parameters
    ----------
    true_positives : array-like
        T, how many of the predicted are positive.
    predicted : array-like
        k, how many are predicted positive.
    positives : array-like
        S, how many are positive.
    beta : float, default=1.0
        Weight of recall against precision.
    zero_division : float, default=0.0
        The value where nothing is predicted and nothing is there to find.

    Returns
    -------
    float or ndarray
        A number for numbers, an array for arrays.

    Examples
    --------
    >>> fbeta_from_counts(true_positives=3, predicted=4, positives=6)
    0.6
    >>> fbeta_from_counts([0, 2], [0, 2], [0, 2], zero_division=1.0)
    array([1., 1.])
    """
    measure = FBeta(beta)
    return measure.value(true_positives, predicted, positives, zero_division=zero_division)


def jaccard_from_counts(
    true_positives: ArrayLike,
    predicted: ArrayLike,
    positives: ArrayLike,
    *,
    zero_division: float = 0.0,
) -> Any:
    """Return the Jaccard index (IoU) T / (k + S - T), with the same 0/0 convention.

    Parameters
    ----------
    true_positives : array-like
        T, how many of the predicted are positive.
    predicted : array-like
        k, how many are predicted positive.
    positives : array-like
        S, how many are positive.
    zero_division : float, default=0.0
        The value where nothing is predicted and nothing is there to find.

    Returns
    -------
    float or ndarray
        A number for numbers, an array for arrays.

    Examples
    --------
    >>> jaccard_from_counts(true_positives=3, predicted=4, positives=6)
    0.42857142857142855
    """
    measure = Jaccard()
    return measure.value(true_positives, predicted, positives, zero_division=zero_division)


def precision_from_counts(
    true_positives: ArrayLike, predicted: ArrayLike, *, zero_division: float = 0.0
) -> Any:
    """Return T / k, with the same 0/0 convention."""
    fill = check_zero_division(zero_division)
    return divided(np.asarray(true_positives), np.asarray(predicted), fill)


def recall_from_counts(
    true_positives: ArrayLike, positives: ArrayLike, *, zero_division: float = 0.0
) -> Any:
    """Return T / S, with the same 0/0 convention."""
    fill = check_zero_division(zero_division)
    return divided(np.asarray(true_positives), np.asarray(positives), fill)
