r"""What labelled rows say about the calibration of probabilities, with its uncertainty.

Beta calibration (Kull, Silva Filho & Flach, AISTATS 2017) takes the probability of a positive to be

    logit P(y = 1 | p) = c + a log p - b log(1 - p),    a, b > 0,

which is p itself for a = b = 1, c = 0, a shift of the log-odds for other c (prior shift), and a
temperature for a = b. A normal prior on (c, log a, log b) around "calibrated" makes few labels
enough: with none of them the answer is p, with its uncertainty. The posterior is approximated by
Student's t distribution around its mode (Laplace's method with heavier tails, since few labels
leave a skewed posterior).

Rows that another model selected may be positive more often than others of the same p. So the
log-odds of selected rows are moved by γ, normal around 0. Its standard deviation is the one that
makes the labels most probable (empirical Bayes): next to 0 where p says all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import binom
from scipy.stats import t as student

from argmaxf._base.arrays import Bools, Floats

PRIOR_SCALE = (2.0, 1.0, 1.0)  # standard deviations of c, log a and log b before any label
SELECTED_SCALES = (0.02, 0.5, 1.0, 2.0, 4.0)  # those of γ that are tried
TAIL_DEGREES = 30.0  # degrees of freedom of the t distribution
CLOSEST_TO_CERTAIN = 1e-12  # p = 0 and p = 1 are moved here: a label may contradict them
BINS = 400  # of log-odds; rows of a bin share their probability where they are summed up
STEPS, TOLERANCE = 100, 1e-9
DRAWS = 4_000  # from the posterior


class CalibrationPosterior(NamedTuple):
    """The posterior of the calibration parameters c, log a, log b, γ.

    Attributes
    ----------
    mode : ndarray of shape (4,)
        The most probable parameters.
    covariance : ndarray of shape (4, 4)
        The inverse of the Fisher information there, prior included.
    """

    mode: Floats
    covariance: Floats

    @classmethod
    def fit(cls, p: Floats, positive: Bools, selected: Any = False) -> CalibrationPosterior:
        """Learn from labelled rows; no rows give the prior back."""
        features, y = _features(p, selected), positive.astype(np.float64)
        scales = SELECTED_SCALES if np.any(selected) else SELECTED_SCALES[:1]
        fits = [_fit(features, y, scale) for scale in scales]
        return cls(*max(fits, key=lambda each: each[0])[1:])

    @classmethod
    def of_lists(cls, mode: Any, covariance: Any) -> CalibrationPosterior:
        """Return it from lists of numbers, which are checked."""
        found = cls(np.reshape(mode, 4) * 1.0, np.reshape(covariance, (4, 4)) * 1.0)
        np.linalg.cholesky(found.covariance)  # fails unless it is one
        if not np.isfinite([*found.mode, *found.covariance.ravel()]).all():
            raise ValueError("calibration must be finite")
        return found

    def moved(self, factor: float) -> CalibrationPosterior:
        """Return it for rows whose odds of being positive are `factor` times as high."""
        return self._replace(mode=self.mode + np.array([np.log(factor), 0.0, 0.0, 0.0]))

    def transform(self, p: Floats, selected: Any = False) -> Floats:
        """Return the calibrated probabilities at the mode of the posterior."""
        return _calibrated(self.mode, p, selected)

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """Return `size` draws of the parameters, one a row."""
        zeros = np.zeros(self.mode.size)
        normal = rng.multivariate_normal(zeros, self.covariance, size, method="cholesky")
        tail = np.sqrt(TAIL_DEGREES / rng.chisquare(TAIL_DEGREES, size))
        drawn: Floats = self.mode + normal * tail[:, None]
        return drawn

    def positives(
        self, theta: Floats, p: Floats, count: Any, rng: np.random.Generator, selected: Any = False
    ) -> Any:
        """Draw how many of some rows are positive, one number for each draw of the calibration.

        `count` says how many rows have each probability; 1 stands for one of each.
        """
        if p.size == 0:
            return np.zeros(len(theta))
        mean, trials = _binomial(theta, p, count, selected)
        return rng.binomial(trials.astype(np.int64), np.clip(mean / trials, 0.0, 1.0))

    def tails(self, p: Floats, found: int) -> tuple[float, float]:
        """Return the probabilities of at most and of at least so many positives among rows.

        The rate of positives has Student's t distribution on the scale of log-odds.
        """
        theta = np.vstack([self.mode, self.draw(DRAWS, np.random.default_rng(0))])
        mean, trials = _binomial(theta, p, 1, False)
        rate = log_odds(mean / p.size)
        place = np.linspace(-15.0, 15.0, 601)
        weight = student.pdf(place, TAIL_DEGREES)
        moved = expit(rate[0] + np.std(rate[1:]) * place) * p.size
        q = np.clip(moved / trials[0], 0.0, 1.0)
        both = binom.cdf(found, trials[0], q), binom.sf(found - 1, trials[0], q)
        below, above = (float(weight @ each / weight.sum()) for each in both)
        return below, above


def _binomial(theta: Floats, p: Floats, count: Any, selected: Any) -> tuple[Floats, Floats]:
    """Return mean and trials of the binomial that stands for a sum of independent labels.

    It has the same mean and variance. Rows are put into bins of their log-odds.
    """
    place = log_odds(p)
    edges = np.linspace(place.min(), place.max(), BINS + 1)
    which = np.clip(np.searchsorted(edges, place, side="right") - 1, 0, BINS - 1)
    rows = np.bincount(which, np.broadcast_to(count, p.shape), BINS)
    centre = np.bincount(which, p * count, BINS)[rows > 0] / rows[rows > 0]
    size = rows[rows > 0]
    probability = _calibrated(theta, centre, selected)
    mean, square = probability @ size, probability**2 @ size
    # mean = N q and mean - variance = Σ p² = N q² say N and q of the binomial
    q = np.clip(square / np.maximum(mean, 1e-300), 0.0, 1.0)
    trials = np.maximum(np.rint(mean / np.maximum(q, 1e-300)), 1.0)
    return mean, np.minimum(trials, size.sum())


def _fit(features: Floats, y: Floats, selected_scale: float) -> tuple[float, Floats, Floats]:
    """Return the logarithm of the evidence, the mode and the covariance, by Fisher scoring."""
    scale = np.array([*PRIOR_SCALE, selected_scale])
    theta = np.zeros(scale.size)
    gradient, information = _derivatives(theta, features, y, scale)
    loss = _loss(theta, features, y, scale)
    for _ in range(STEPS):
        step = np.linalg.solve(information, gradient)
        size = 1.0
        while size > TOLERANCE:
            lower = _loss(theta - size * step, features, y, scale)
            if lower <= loss:
                break
            size /= 2.0
        theta, loss = theta - size * step, lower
        gradient, information = _derivatives(theta, features, y, scale)
        if np.abs(size * step).max() < TOLERANCE:
            break
    evidence = -loss - 0.5 * np.linalg.slogdet(information)[1] - np.log(scale).sum()
    return float(evidence), theta, np.asarray(np.linalg.inv(information), np.float64)


def _features(p: Floats, selected: Any) -> Floats:
    """Return 1, log p and -log(1 - p) of rows that are not certain, and if they are selected."""
    inside = np.clip(p, CLOSEST_TO_CERTAIN, 1.0 - CLOSEST_TO_CERTAIN)
    side = np.broadcast_to(selected, p.shape)
    return np.stack([np.ones(p.size), np.log(inside), -np.log1p(-inside), side])


def _factors(theta: Floats) -> Floats:
    """Return what the features are multiplied by: c, a, b, γ."""
    found = theta.copy()
    found[..., 1:3] = np.exp(theta[..., 1:3])
    return found


def _calibrated(theta: Floats, p: Floats, selected: Any) -> Floats:
    """Return P(y = 1 | p) for parameters along the last axis."""
    found: Floats = expit(_factors(theta) @ _features(p, selected))
    return found


def _loss(theta: Floats, features: Floats, y: Floats, scale: Floats) -> float:
    """Return the negative log posterior."""
    eta = _factors(theta) @ features
    prior = 0.5 * float(np.sum((theta / scale) ** 2))
    return float(np.sum(np.logaddexp(0.0, eta) - y * eta)) + prior


def _derivatives(
    theta: Floats, features: Floats, y: Floats, scale: Floats
) -> tuple[Floats, Floats]:
    """Return the gradient of the loss and the Fisher information, prior included."""
    jacobian = features.copy()
    jacobian[1:3] *= np.exp(theta[1:3])[:, None]
    p = expit(_factors(theta) @ features)
    gradient = jacobian @ (p - y) + theta / scale**2
    information = (jacobian * (p * (1.0 - p))) @ jacobian.T + np.diag(scale**-2.0)
    return gradient, information


def log_odds(p: Floats) -> Floats:
    """Return the log-odds of probabilities, those that are certain moved inside."""
    found: Floats = logit(np.clip(p, CLOSEST_TO_CERTAIN, 1.0 - CLOSEST_TO_CERTAIN))
    return found
