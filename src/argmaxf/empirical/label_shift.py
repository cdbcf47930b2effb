"""The rate of positives where there are no labels, from a classifier's probabilities."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from argmaxf._base.arrays import Floats
from argmaxf._base.validation import as_probabilities, check_choice, check_unit_interval
from argmaxf.empirical.interval import Interval
from argmaxf.prior import check_rate

EDGE = 1e-12  # how close to 0 and 1 a rate is looked for


def estimate_rate(
    p: ArrayLike,
    *,
    train_rate: float,
    reference: ArrayLike | None = None,
    method: str = "likelihood",
    confidence_level: float = 0.95,
) -> Interval:
    """Return the rate of positives among unlabelled rows, where only that rate has moved.

    `"likelihood"` is the rate under which the probabilities are most likely: where the EM algorithm
    of Saerens et al. ends, found here as the root of the slope, with the interval of the likelihood
    ratio. `"moments"` is the rate that explains the mean probability, given the mean of positives
    and of negatives in training (black-box shift estimation with soft predictions); it needs
    `reference`, and minds wrong extreme probabilities less.

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
        Confidence of the interval: what it says is about chance in the rows alone, and holds if
        rows of each class look as in training and the probabilities were calibrated there.

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
    >>> bool(rate.low < 0.05 < rate.high), round(rate.value, 2)
    (True, 0.05)
    """
    proba = as_probabilities("p", p, ndim=1).astype(np.float64)
    if not proba.size:
        raise ValueError("p must hold at least one probability, got none")
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
        raise ValueError("reference must tell rows apart, got probabilities that are all equal")
    rate = (p.mean() - low) / (high - low)
    noise = _variance(reference, positives, high) * rate**2
    noise += _variance(reference, negatives, low) * (1.0 - rate) ** 2
    error = _reach(confidence_level) * np.sqrt(p.var() / p.size + noise) / (high - low)
    low, value, high = np.clip([rate - error, rate, rate + error], EDGE, 1.0 - EDGE).tolist()
    return Interval(low, value, high)


def _reach(confidence_level: float) -> float:
    """Return how many standard errors to each side hold the truth that often."""
    return NormalDist().inv_cdf(min((1.0 + confidence_level) / 2.0, 1.0 - 1e-16))


def _variance(values: Floats, weights: Floats, mean: float) -> float:
    """Return the variance of a weighted mean."""
    return float(np.sum((weights * (values - mean)) ** 2) / weights.sum() ** 2)
