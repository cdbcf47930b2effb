"""Probabilities under another rate of positives: Bayes' rule with P(x|y) kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import as_csr, is_sparse
from argmaxf._base.validation import as_probabilities

ESTIMATE = "estimate"  # stands for a rate that the probabilities themselves shall show
SMALLEST, LARGEST = np.finfo(np.float64).tiny, np.finfo(np.float64).max  # odds factors


def shift_prior(p: Any, *, train_rate: ArrayLike, deploy_rate: ArrayLike) -> Any:
    """Return what probabilities become where the rate of positives is another one.

    The odds of each are multiplied by odds(deploy_rate) / odds(train_rate). That is right when only
    the share of positives has moved and rows of each class look as before (prior shift); it is
    wrong when other rows come whose chances were learned well (covariate shift), where
    probabilities hold as they are. It keeps their order, and 0 and 1.

    Parameters
    ----------
    p : array-like of float, or SciPy sparse
        Probabilities of being positive, learned where the rate was `train_rate`. Cells that a
        sparse matrix does not store stay 0.
    train_rate : float or array-like of float
        The rate of positives in training, between 0 and 1; one for all, or one for each column of a
        table, or for each probability of a single row.
    deploy_rate : float or array-like of float
        The rate where the probabilities are used, likewise.

    Returns
    -------
    ndarray of float, or sparse as given
        The probabilities there, in the shape of `p`. O(n); holds the result only.

    References
    ----------
    Saerens, Latinne & Decaestecker, "Adjusting the outputs of a classifier to new a priori
    probabilities: a simple procedure", Neural Computation 14 (2002).

    Examples
    --------
    >>> shift_prior([0.5, 0.9], train_rate=0.5, deploy_rate=0.1)
    array([0.1, 0.5])
    """
    factor = odds_factor(train_rate, deploy_rate)
    if is_sparse(p):
        stored = as_csr("p", p).copy()
        check_fits(factor, "p", stored.shape)
        each = np.broadcast_to(factor, stored.shape[-1])[stored.indices]
        stored.data = move_odds(stored.data, each)
        return type(p)(stored)
    proba = as_probabilities("p", p).astype(np.float64)
    check_fits(factor, "p", proba.shape)
    return np.asarray(move_odds(proba, factor))


def odds_factor(train_rate: ArrayLike, deploy_rate: ArrayLike) -> Any:
    """Return what odds are multiplied by when the rate of positives moves.

    It is a number above 0, however extreme the rates: probabilities of 0 and 1 stay what they are.
    """
    train, deploy = (
        check_rate(*rate) for rate in (("train_rate", train_rate), ("deploy_rate", deploy_rate))
    )
    if train.ndim and deploy.ndim and train.shape != deploy.shape:
        raise ValueError(
            "train_rate and deploy_rate must be one rate, or as many each, got "
            f"{train.size} and {deploy.size}"
        )
    with np.errstate(over="ignore", divide="ignore"):
        factor = deploy * (1.0 - train) / (train * (1.0 - deploy))
    return np.clip(factor, SMALLEST, LARGEST)


def check_fits(factor: Any, name: str, shape: tuple[int, ...]) -> None:
    """Refuse rates that are neither one for all nor one for each column."""
    rates = np.shape(factor)
    if rates and rates not in (shape, shape[-1:]):
        raise ValueError(
            "train_rate and deploy_rate must be one rate, or one for each column, got "
            f"{np.size(factor)} for {name} of shape {shape}"
        )


def factor_of(prior: Any) -> Any:
    """Return what odds are multiplied by, given the rate in training and the one in use."""
    if not is_pair(prior):
        raise ValueError(
            f"prior must be two rates, in training and where it is decided, got {prior!r}"
        )
    return odds_factor(*prior)


def is_pair(prior: Any) -> bool:
    """Whether it holds two things: a tuple, a list or an array."""
    if isinstance(prior, np.ndarray):
        return bool(prior.shape[:1] == (2,))
    return isinstance(prior, tuple | list) and len(prior) == 2


def is_estimated(prior: Any) -> bool:
    """Whether the rate in use is to be estimated from the probabilities."""
    if not is_pair(prior) or not isinstance(prior[1], str):
        return False
    if prior[1] != ESTIMATE:
        raise ValueError(f"deploy_rate must be a rate or {ESTIMATE!r}, got {prior[1]!r}")
    return True


def move_odds(p: Any, factor: Any) -> Any:
    """Return probabilities whose odds are `factor` times those of p: an array, or an expression.

    What is no probability stays none.
    """
    positive = p * factor
    return positive / (positive + (1.0 - p))


def check_rate(name: str, rate: ArrayLike) -> Any:
    """Return a rate, or one for each column, that lies strictly between 0 and 1."""
    try:
        values = np.asarray(rate, dtype=np.float64)
        if any(isinstance(each, str | bytes) for each in np.asarray(rate, dtype=object).flat):
            raise TypeError("text")
    except (TypeError, ValueError):
        known = "; estimate_rate gives the most likely one" if str(rate) == ESTIMATE else ""
        raise ValueError(f"{name} must be above 0 and below 1, got {rate!r}{known}") from None
    wrong = ~((values > 0.0) & (values < 1.0))
    if wrong.any():
        raise ValueError(
            f"{name} must be above 0 and below 1, got {float(values[wrong].flat[0])!r}"
        )
    return values[()]
