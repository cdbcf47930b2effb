"""What is known without data: Lemma 2, Theorem 3, and a mixture of Gaussians with its best F.

Numbers of lemmas, theorems and equations are those of Ye, Chai, Lee and Chieu, "Optimizing
F-Measures: A Tale of Two Approaches", ICML 2012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, ndtr, rel_entr

from argmaxf._base.arrays import Floats, Ints
from argmaxf._base.shared_docs import with_entries_of
from argmaxf._base.shown import Shown
from argmaxf._base.validation import (
    as_probabilities,
    check_beta,
    check_count,
    check_not_negative,
    check_unit_interval,
)

__all__ = [
    "Bound",
    "GaussianMixture",
    "Optimum",
    "deviation_bound",
    "mean_kl",
    "regret_bound",
    "sample_size",
]

MOST_EXAMPLES = 10**300  # more are beyond doubles


@dataclass(frozen=True, repr=False)
class Bound(Shown):
    """A bound on F, and why it is infinite where it is.

    Attributes
    ----------
    value : float
        The bound, which holds with the probability asked for.
    radius : float
        r(n, η) of the paper.
    limit : float
        The number that the radius must stay below for the bound to say anything.
    reason : str
        Why the bound is infinite, in a sentence; empty where it is not.

    Examples
    --------
    >>> bound = deviation_bound(1000, positive_rate=0.05)
    >>> bound.value, bound.reason
    (inf, 'n = 1000 is too small: r(n, eta) = 0.0489 must be below 0.0125')
    """

    value: float
    radius: float
    limit: float
    reason: str = ""


def deviation_bound(n: int, positive_rate: float, beta: float = 1.0, eta: float = 0.05) -> Bound:
    """Return how far F_β on n examples can be from its limit, but for a chance of η (Lemma 2).

    One fixed classifier, n i.i.d. examples. The bound says something only where
    r = √(ln(6/η)/2n) is below β²π₁/(2(1+β²)); elsewhere it is infinite and `reason` says so.

    Parameters
    ----------
    n : int
        Number of examples.
    positive_rate : float
        Share of positives π₁, above 0 and at most 1.
    beta : float, default=1.0
        Weight of recall against precision.
    eta : float, default=0.05
        Probability with which the bound may fail, between 0 and 1.

    Returns
    -------
    Bound
        The largest difference, and the reason where there is none.

    Examples
    --------
    >>> round(deviation_bound(100_000, positive_rate=0.5).value, 4)
    0.0611
    >>> deviation_bound(1000, positive_rate=0.05).reason
    'n = 1000 is too small: r(n, eta) = 0.0489 must be below 0.0125'
    """
    return _bound(n, None, positive_rate, beta, eta)


@with_entries_of(deviation_bound)
def regret_bound(
    n: int, vc_dimension: int, positive_rate: float, beta: float = 1.0, eta: float = 0.05
) -> Bound:
    """Return how much F_β training for F on n examples can lose, but for a chance of η (Theorem 3).

    Against the best classifier of the same family, of VC dimension d. The bound says something
    only where r̄ = √((ln(12/η) + d ln(2en/d))/n) is below β²π₁/(2(1+β²)); elsewhere it is infinite
    and `reason` says so.

    Parameters
    ----------
    n : int
        Number of training examples.
    vc_dimension : int
        VC dimension d of the family of classifiers; 1 for a threshold on a score.
    positive_rate, beta, eta : as in `deviation_bound`

    Returns
    -------
    Bound
        The largest loss, and the reason where there is none.

    Examples
    --------
    >>> round(regret_bound(1_000_000, 11, positive_rate=0.5).value, 3)
    0.326
    >>> regret_bound(1000, 11, positive_rate=0.5).value
    inf
    """
    return _bound(n, check_count("vc_dimension", vc_dimension), positive_rate, beta, eta)


@with_entries_of(deviation_bound)
def sample_size(
    accuracy: float,
    positive_rate: float,
    beta: float = 1.0,
    eta: float = 0.05,
    *,
    vc_dimension: int | None = None,
) -> int:
    """Return the smallest n whose bound is at most `accuracy`.

    Parameters
    ----------
    accuracy : float
        Difference in F to reach; `math.inf` asks where the bound begins to say anything.
    positive_rate, beta, eta : as in `deviation_bound`
    vc_dimension : int, optional
        VC dimension of the family of classifiers: Theorem 3's bound. By default it is Lemma 2's.

    Returns
    -------
    int
        The number of examples.

    Examples
    --------
    >>> sample_size(math.inf, positive_rate=0.05)
    15320
    >>> sample_size(0.05, positive_rate=0.5, vc_dimension=11)
    45659935
    """
    if not (accuracy := float(accuracy)) > 0:
        raise ValueError(f"accuracy must be positive, got {accuracy!r}")
    if vc_dimension is not None:
        check_count("vc_dimension", vc_dimension)

    def enough(n: int) -> bool:  # once it is, it stays so
        bound = _bound(n, vc_dimension, positive_rate, beta, eta)
        return not bound.reason and bound.value <= accuracy

    high = 1
    while not enough(high):
        high *= 2
        if high > MOST_EXAMPLES:
            raise ValueError("fewer than 1e300 examples must be enough for a bound, got more")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def mean_kl(true: ArrayLike, assumed: ArrayLike) -> float:
    """Return the mean Kullback–Leibler divergence from true to assumed probabilities of a label.

    The conditional KL of section 4.1.1, in nats: infinite where the assumed model rules out what
    the true one allows.

    Parameters
    ----------
    true : array-like
        True probabilities of being positive.
    assumed : array-like
        Those of the model, in the same shape.

    Returns
    -------
    float
        The mean over all entries.

    Examples
    --------
    >>> round(mean_kl([0.5, 0.5], [0.5, 0.9]), 4)
    0.2554
    """
    p, q = as_probabilities("true", true), as_probabilities("assumed", assumed)
    if p.shape != q.shape:
        raise ValueError(f"true and assumed must have one shape, got {p.shape} and {q.shape}")
    return float(mean_kl_of_rows(p.reshape(-1).astype(float), q.reshape(1, -1).astype(float))[0])


def mean_kl_of_rows(true: Floats, rows: Floats) -> Floats:
    """Return the mean divergence from true to each row of assumed probabilities."""
    return np.asarray((rel_entr(true, rows) + rel_entr(1.0 - true, 1.0 - rows)).mean(axis=1))


@dataclass(frozen=True, repr=False)
class Optimum(Shown):
    """The best classifier of a known distribution: its F_β and where it cuts P(1|x).

    Attributes
    ----------
    fbeta : float
        The highest F_β that any classifier can have.
    threshold : float
        An item is predicted positive where P(1|x) is above it.

    Examples
    --------
    >>> best = GaussianMixture(D=10, S=4.0).optimum()
    >>> round(best.fbeta, 4), round(best.threshold, 4)
    (0.9773, 0.4886)
    """

    fbeta: float
    threshold: float


@with_entries_of(deviation_bound)
@dataclass(frozen=True)
class GaussianMixture:
    """Two spherical Gaussians in D dimensions (section 4.1), with everything about F known.

    P(Y=1) = `positive_rate`, X given Y is N(μ_Y, I), μ₁ = (S+O)·1/√(4D), μ₀ = -(S-O)·1/√(4D): the
    centres lie S apart, O/2 from the origin.

    Attributes
    ----------
    D : int
        Number of dimensions.
    S : float
        Distance between the centres.
    O : float
        Offset: twice the distance of the point between the centres from the origin.
    positive_rate : float
        Share of positives, between 0 and 1.

    Examples
    --------
    >>> mixture = GaussianMixture(D=10, S=4.0)
    >>> best = mixture.optimum()
    >>> round(100 * best.fbeta, 4), round(best.threshold, 4)
    (97.7257, 0.4886)
    >>> X, y = mixture.sample(5, seed=0)
    >>> X.shape, mixture.posterior(X).shape
    ((5, 10), (5,))
    """

    D: int = 10
    S: float = 4.0
    O: float = 0.0  # noqa: E741 - the paper's name
    positive_rate: float = 0.5

    def __post_init__(self) -> None:
        check_count("D", self.D)
        check_not_negative("S", self.S)
        check_not_negative("O", self.O)
        _check_open_rate("positive_rate", self.positive_rate)

    def sample(self, n: int, seed: int | np.random.Generator | None = None) -> tuple[Floats, Ints]:
        """Return n i.i.d. examples: X (n × D) and labels in {0, 1}.

        The same seed gives the same labels and noise for every S and O.

        Parameters
        ----------
        n : int
            Number of examples.
        seed : int or Generator, optional
            Seed of everything random.

        Returns
        -------
        X : ndarray of shape (n, D)
            The examples.
        y : ndarray of shape (n,)
            Their labels.
        """
        rng = np.random.default_rng(seed)
        y = (rng.random(n) < self.positive_rate).astype(np.int64)
        centre = np.where(y == 1, self.S + self.O, self.O - self.S) / math.sqrt(4.0 * self.D)
        return rng.standard_normal((n, self.D)) + centre[:, None], y

    def log_odds(self, X: ArrayLike) -> Floats:
        """Return log P(1|x)/P(0|x) = logit π₁ + S·t, t the place of x between the centres.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Examples.

        Returns
        -------
        ndarray of shape (n,)
            The log-odds of each.
        """
        t = np.asarray(X, dtype=np.float64).sum(axis=1) / math.sqrt(self.D) - self.O / 2.0
        return np.asarray(logit(self.positive_rate) + self.S * t)

    def posterior(self, X: ArrayLike) -> Floats:
        """Return the true P(1|x) of each row.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Examples.

        Returns
        -------
        ndarray of shape (n,)
            The probability of each.
        """
        return np.asarray(expit(self.log_odds(X)))

    def confusion(self, threshold: float) -> tuple[float, float, float, float]:
        """Return p₁₁, p₁₀, p₀₁, p₀₀ of P(1|x) > threshold: shares of (true class, predicted).

        Parameters
        ----------
        threshold : float
            Where P(1|x) is cut.

        Returns
        -------
        tuple of float
            The four shares.
        """
        odds = float(logit(threshold) - logit(self.positive_rate))
        t = odds / self.S if self.S > 0 else math.copysign(math.inf, odds)
        pi, a, b = self.positive_rate, t - self.S / 2.0, t + self.S / 2.0
        shares = pi * ndtr(-a), pi * ndtr(a), (1.0 - pi) * ndtr(-b), (1.0 - pi) * ndtr(b)
        return tuple(map(float, shares))  # type: ignore[return-value]

    def fbeta(self, threshold: float, beta: float = 1.0) -> float:
        """Return F_β of the classifier P(1|x) > threshold on unlimited data (eq. 2).

        Parameters
        ----------
        threshold : float
            Where P(1|x) is cut, in [0, 1].
        beta : as in `deviation_bound`

        Returns
        -------
        float
            F_β.
        """
        b2 = check_beta(beta) ** 2
        delta = check_unit_interval("threshold", threshold)
        p11, _, p01, _ = self.confusion(delta)
        return (1.0 + b2) * p11 / (b2 * self.positive_rate + p11 + p01)

    def optimum(self, beta: float = 1.0) -> Optimum:
        """Return the best F_β any classifier can have, and its threshold δ* = F*/(1+β²).

        By Theorem 4 a threshold on P(1|x) is best. F* is the root of the largest value of
        (1+β²)p₁₁ - F·(β²π₁ + p₁₁ + p₀₁), which falls in F and is reached by the cut F/(1+β²).

        Parameters
        ----------
        beta : as in `deviation_bound`

        Returns
        -------
        Optimum
            The F_β and the threshold.
        """
        from scipy.optimize import brentq  # takes .3 s to load

        b2 = check_beta(beta) ** 2

        def excess(f: float) -> float:
            p11, _, p01, _ = self.confusion(f / (1.0 + b2))
            return (1.0 + b2) * p11 - f * (b2 * self.positive_rate + p11 + p01)

        best = float(brentq(excess, 0.0, 1.0, xtol=1e-300, rtol=4.0 * np.finfo(float).eps))
        return Optimum(fbeta=best, threshold=best / (1.0 + b2))


def _bound(n: int, d: int | None, positive_rate: float, beta: float, eta: float) -> Bound:
    """Lemma 2, and with a VC dimension Theorem 3: c (1+β²) r / (β²π₁ - 2 (1+β²) r), if positive."""
    if check_count("n", n) > MOST_EXAMPLES:
        raise ValueError("n must be below 1e300, got more")
    pi = _check_open_rate("positive_rate", positive_rate, closed_above=True)
    b2, eta = check_beta(beta) ** 2, _check_open_rate("eta", eta)
    if d is None:
        factor, square = 3.0, math.log(6.0 / eta) / (2.0 * n)
    else:
        # The count of labellings, (2en/d)^d, holds from 2n = d on; r is above √2 there already.
        growth = d * math.log(2.0 * math.e * max(n, d / 2.0) / d)
        factor, square = 6.0, (math.log(12.0 / eta) + growth) / n
    radius, limit = math.sqrt(square), b2 * pi / (2.0 * (1.0 + b2))
    if radius < limit:
        value = factor * (1.0 + b2) * radius / (b2 * pi - 2.0 * (1.0 + b2) * radius)
        return Bound(value, radius, limit)
    reason = f"n = {n} is too small: r(n, eta) = {radius:.3g} must be below {limit:.3g}"
    return Bound(math.inf, radius, limit, reason)


def _check_open_rate(name: str, number: float, *, closed_above: bool = False) -> float:
    """Return a rate above 0 and below 1; with `closed_above` 1 is one, too."""
    value = check_unit_interval(name, number)
    if value == 0.0 or (value == 1.0 and not closed_above):
        raise ValueError(f"{name} must lie in (0, 1{']' if closed_above else ')'}, got {number!r}")
    return value
