"""Two Gaussians about which everything is known: the posterior, F of every cut, the best F."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr, rel_entr

from argmaxf._base.validation import (
    as_probabilities,
    check_beta,
    check_choice,
    check_count,
    check_unit_interval,
)
from argmaxf.theory.bounds import check_open_rate

Representation = Literal["R0", "R1", "R2"]


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
    p, q = _check_probabilities("true", true), _check_probabilities("assumed", assumed)
    if p.shape != q.shape:
        raise ValueError(f"true and assumed must have one shape, got {p.shape} and {q.shape}")
    return float(mean_kl_of_rows(p.reshape(-1), q.reshape(1, -1))[0])


def mean_kl_of_rows(true: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean divergence from true to each row of assumed probabilities."""
    return np.asarray((rel_entr(true, rows) + rel_entr(1.0 - true, 1.0 - rows)).mean(axis=1))


@dataclass(frozen=True)
class Optimum:
    """The best classifier of a known distribution: its F_β and where it cuts P(1|x).

    Attributes
    ----------
    fbeta : float
        The highest F_β that any classifier can have.
    threshold : float
        An item is predicted positive where P(1|x) is above it.
    """

    fbeta: float
    threshold: float


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
        """Refuse what is no mixture of two classes."""
        check_count("D", self.D)
        for name, number in (("S", self.S), ("O", self.O)):
            if not (math.isfinite(number) and number >= 0):
                raise ValueError(f"{name} must be finite and at least 0, got {number!r}")
        check_open_rate("positive_rate", self.positive_rate)

    def sample(
        self, n: int, seed: int | np.random.Generator | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
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

    @staticmethod
    def represent(X: ArrayLike, representation: Representation) -> NDArray[np.float64]:
        """Return section 4.1's attributes: R0 coordinates, R1 with a constant 1, R2 with products.

        R2 adds every monomial of degree two to R1: D(D+1)/2 further columns.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Examples.
        representation : {"R0", "R1", "R2"}
            Which attributes.

        Returns
        -------
        ndarray
            The attributes, one row for each example.

        Examples
        --------
        >>> GaussianMixture.represent([[2.0, 3.0]], "R2")
        array([[2., 3., 1., 4., 6., 9.]])
        """
        check_choice("representation", representation, ("R0", "R1", "R2"))
        X = np.asarray(X, dtype=np.float64)
        if representation == "R0":
            return X
        parts = [X, np.ones((len(X), 1))]
        if representation == "R2":
            i, j = np.triu_indices(X.shape[1])
            parts.append(X[:, i] * X[:, j])
        return np.hstack(parts)

    def log_odds(self, X: ArrayLike) -> NDArray[np.float64]:
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

    def posterior(self, X: ArrayLike) -> NDArray[np.float64]:
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
        beta : float, default=1.0
            Weight of recall against precision.

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
        beta : float, default=1.0
            Weight of recall against precision.

        Returns
        -------
        Optimum
            The F_β and the threshold.
        """
        b2 = check_beta(beta) ** 2

        def excess(f: float) -> float:
            p11, _, p01, _ = self.confusion(f / (1.0 + b2))
            return (1.0 + b2) * p11 - f * (b2 * self.positive_rate + p11 + p01)

        best = float(brentq(excess, 0.0, 1.0, xtol=1e-300, rtol=4.0 * np.finfo(float).eps))
        return Optimum(fbeta=best, threshold=best / (1.0 + b2))


def _check_probabilities(name: str, values: ArrayLike) -> NDArray[np.float64]:
    return as_probabilities(name, values).astype(np.float64)
