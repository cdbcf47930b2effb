"""Probabilities under another rate of positives, and that rate where there are no labels."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Floats, as_csr, is_sparse
from argmaxf._base.validation import as_probabilities, check_choice, check_unit_interval
from argmaxf.measures.base import Interval

ESTIMATE = "estimate"  # stands for a rate that the probabilities themselves shall show
SMALLEST, LARGEST = np.finfo(np.float64).tiny, np.finfo(np.float64).max  # odds factors
EDGE = 1e-12  # how close to 0 and 1 a rate is looked for


def shift_prior(p: Any, *, train_rate: ArrayLike, deploy_rate: ArrayLike) -> Any:
    """Return the probabilities corrected to another rate of positives.

    The odds of each probability are multiplied by odds(deploy_rate) / odds(train_rate). This is
    right if only the share of positives has changed and the rows of each class look as before
    (prior shift). It is wrong if the features have another distribution but similar rows are
    positive as often as before (covariate shift); the probabilities then need no correction. The
    order of the probabilities does not change, and 0 and 1 stay as they are.

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
        The corrected probabilities, in the shape of `p`. O(n) time; only the result is held in
        memory.

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
        stored = as_csr("p", p)
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
    train, deploy = check_rate("train_rate", train_rate), check_rate("deploy_rate", deploy_rate)
    if train.ndim and deploy.ndim and train.shape != deploy.shape:
        raise ValueError(
            "train_rate and deploy_rate must have one length or be single rates, got "
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
            f"prior must be two rates, in training and among the rows to decide, got {prior!r}"
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


def estimate_rate(
    p: ArrayLike,
    *,
    train_rate: float,
    reference: ArrayLike | None = None,
    method: str = "likelihood",
    confidence_level: float = 0.95,
) -> Interval:
    """Return the rate of positives among unlabelled rows, if only that rate has changed.

    `"likelihood"` is the rate under which the probabilities are most likely: where the EM algorithm
    of Saerens et al. ends, found here as the root of the slope, with the interval of the likelihood
    ratio. `"moments"` is the rate that explains the mean probability, given the mean of positives
    and of negatives in training (black-box shift estimation with soft predictions); it needs
    `reference`, and is less sensitive to wrong extreme probabilities.

    Parameters
    ----------
    p : array-like of float
        Probabilities of the rows, learned where the rate was `train_rate`.
    train_rate : float
        The rate of positives in training.
    reference : array-like of float, default=None
        Probabilities of training rows, got while they were held out.
    method : {"likelihood", "moments"}, default="likelihood"
        The estimator.
    confidence_level : float, default=0.95
        Confidence level of the interval. The interval covers the randomness of the rows only, and
        is valid if the rows of each class look as in training and the probabilities were calibrated
        there.

    Returns
    -------
    Interval
        `low`, `value` and `high`. O(n) for each of a few dozen looks; holds three copies of p.

    References
    ----------
    Saerens, Latinne & Decaestecker, Neural Computation 14 (2002); Lipton, Wang & Smola, "Detecting
    and correcting for label shift with black box predictors", ICML 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from argmaxf.theory import GaussianMixture
    >>> there = GaussianMixture(S=3.0, positive_rate=0.05)
    >>> X, _ = there.sample(5000, seed=0)
    >>> p = GaussianMixture(S=3.0, positive_rate=0.5).posterior(X)
    >>> rate = estimate_rate(p, train_rate=0.5)
    >>> print(f"{rate.value:.2f} [{rate.low:.2f}, {rate.high:.2f}]")
    0.05 [0.05, 0.06]
    """
    proba = as_probabilities("p", p, ndim=1).astype(np.float64)
    before = check_rate("train_rate", train_rate)
    if np.ndim(before):
        raise ValueError(f"train_rate must be one number, got {np.size(before)}")
    check_unit_interval("confidence_level", confidence_level)
    if check_choice("method", method, ("likelihood", "moments")) == "likelihood":
        return most_likely_rate(proba, 1.0, float(before), confidence_level)
    if reference is None:
        raise ValueError("method='moments' needs reference, held-out probabilities of training")
    known = as_probabilities("reference", reference, ndim=1).astype(np.float64)
    return _matching(proba, known, confidence_level)


def most_likely_rate(
    p: Floats, count: Any, before: float, confidence_level: float = 0.95
) -> Interval:
    """Return the rate π of the highest likelihood, and its interval by the likelihood ratio.

    The likelihood is Σ log(π p/π₀ + (1-π)(1-p)/(1-π₀)), with π₀ the rate in training, `before`;
    `count` says how many rows have each probability. It is concave in π, and its maximum, the root
    of its slope, is where the EM algorithm of Saerens et al. ends. Probabilities that are all that
    of training say nothing, and the rate stays what it was.
    """
    from scipy.optimize import brentq  # .3 s to load, which others need not wait for

    negative = (1.0 - p) / (1.0 - before)
    gain = p / before - negative
    first, last = EDGE, 1.0 - EDGE

    def slope(rate: float) -> float:
        return float(np.sum(count * gain / (negative + rate * gain)))

    def likelihood(rate: float) -> float:
        return float(np.sum(count * np.log(negative + rate * gain)))

    if np.all(np.abs(gain) <= 1e-7):
        best = before
    elif slope(first) <= 0:
        best = first
    else:
        best = last if slope(last) >= 0 else float(brentq(slope, first, last, xtol=1e-15))
    lowest = likelihood(best) - _reach(confidence_level) ** 2 / 2.0

    def above(rate: float) -> float:
        return likelihood(rate) - lowest

    low = first if above(first) > 0 else float(brentq(above, first, best))
    high = last if above(last) > 0 else float(brentq(above, best, last))
    return Interval(low, best, high)


def most_likely_shares(proba: Floats, before: Floats) -> Floats:
    """Return the share of each class among rows, by the steps of Saerens et al. (EM).

    `proba` has a column for each class, learned where the shares were `before`. The likelihood is
    concave in the shares, and each step, the mean of the probabilities at the last ones, climbs.
    """
    ratio, share = proba / before, before
    for _ in range(2000):
        joint = ratio * share
        last, share = share, np.mean(joint / joint.sum(axis=1, keepdims=True), axis=0)
        if np.abs(share - last).max() < 1e-9:
            break
    return share


def _matching(p: Floats, reference: Floats, confidence_level: float) -> Interval:
    """Return (mean p - μ₀) / (μ₁ - μ₀), μ the mean over training's negatives and positives.

    Training rows count as positive by their own probability, which is their chance to be one.
    """
    positives, negatives = reference, 1.0 - reference
    if not (positives.sum() > 0 and negatives.sum() > 0):
        raise ValueError("reference must have positives and negatives, all are 0 or all are 1")
    high, low = (np.average(reference, weights=w) for w in (positives, negatives))
    if not high > low:
        raise ValueError("reference must hold different probabilities, got all equal")
    rate = (p.mean() - low) / (high - low)
    noise = 0.0  # the variances of the two means
    for share, weights, mean in ((rate, positives, high), (1.0 - rate, negatives, low)):
        influence = share * weights * (reference - mean) / weights.sum()
        noise += float(influence @ influence)
    error = _reach(confidence_level) * np.sqrt(p.var() / p.size + noise) / (high - low)
    low, value, high = np.clip([rate - error, rate, rate + error], EDGE, 1.0 - EDGE).tolist()
    return Interval(low, value, high)


def _reach(confidence_level: float) -> float:
    """Return how many standard errors to each side hold the truth that often."""
    return NormalDist().inv_cdf(min((1.0 + confidence_level) / 2.0, 1.0 - 1e-16))
