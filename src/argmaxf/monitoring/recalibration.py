r"""What labelled rows say about the calibration of probabilities, with its uncertainty.

Beta calibration (Kull, Silva Filho & Flach, AISTATS 2017) takes the probability of a positive to be

    logit P(y = 1 | p) = c + a log p - b log(1 - p),    a, b > 0,

which is p itself for a = b = 1, c = 0, a shift of the log-odds for other c (prior shift), and a
temperature for a = b. A normal prior on (c, log a, log b) around "calibrated" makes few labels
enough: with none of them the answer is p, with its uncertainty. The posterior is approximated by
Student's t distribution around its mode (Laplace's method with heavier tails, since few labels
leave a skewed posterior).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from argmaxf._base.arrays import Bools, Floats

PRIOR_SCALE = (2.0, 1.0, 1.0)  # standard deviations of c, log a and log b before any label
TAIL_DEGREES = 30.0  # degrees of freedom of the t distribution
CLOSEST_TO_CERTAIN = 1e-12  # p = 0 and p = 1 are moved here: a label may contradict them
BINS = 400  # of log-odds; rows of a bin share their probability where they are summed up
STEPS, TOLERANCE = 100, 1e-9


class CalibrationPosterior(NamedTuple):
    """The posterior of the calibration parameters c, log a, log b.

    Attributes
    ----------
    mode : ndarray of shape (3,)
        The most probable parameters.
    covariance : ndarray of shape (3, 3)
        The inverse of the Fisher information there, prior included.
    """

    mode: Floats
    covariance: Floats

    @classmethod
    def fit(cls, p: Floats, positive: Bools) -> CalibrationPosterior:
        """Learn from labelled rows, by Fisher scoring; no rows give the prior back."""
        scale = np.array(PRIOR_SCALE)
        features, y = _features(p), positive.astype(np.float64)
        theta = np.zeros(3)
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
        return cls(theta, np.asarray(np.linalg.inv(information), np.float64))

    def transform(self, p: Floats) -> Floats:
        """Return the calibrated probabilities at the mode of the posterior."""
        return calibrated(self.mode, p)

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """Return `size` draws of the parameters, one a row."""
        normal = rng.multivariate_normal(np.zeros(3), self.covariance, size, method="cholesky")
        tail = np.sqrt(TAIL_DEGREES / rng.chisquare(TAIL_DEGREES, size))
        drawn: Floats = self.mode + normal * tail[:, None]
        return drawn


def calibrated(theta: Floats, p: Floats) -> Floats:
    """Return P(y = 1 | p) for parameters c, log a, log b along the last axis."""
    log_p, log_not = _features(p)
    c, a, b = theta[..., :1], np.exp(theta[..., 1:2]), np.exp(theta[..., 2:])
    found: Floats = expit(c + a * log_p - b * log_not)
    return found


def _features(p: Floats) -> tuple[Floats, Floats]:
    """Return log p and log(1 - p) of probabilities that are not certain."""
    inside = np.clip(p, CLOSEST_TO_CERTAIN, 1.0 - CLOSEST_TO_CERTAIN)
    return np.log(inside), np.log1p(-inside)


def _loss(theta: Floats, features: tuple[Floats, Floats], y: Floats, scale: Floats) -> float:
    """Return the negative log posterior."""
    eta = theta[0] + np.exp(theta[1]) * features[0] - np.exp(theta[2]) * features[1]
    prior = 0.5 * float(np.sum((theta / scale) ** 2))
    return float(np.sum(np.logaddexp(0.0, eta) - y * eta)) + prior


def _derivatives(
    theta: Floats, features: tuple[Floats, Floats], y: Floats, scale: Floats
) -> tuple[Floats, Floats]:
    """Return the gradient of the loss and the Fisher information, prior included."""
    a, b = np.exp(theta[1:])
    jacobian = np.stack([np.ones_like(y), a * features[0], -b * features[1]])
    p = expit(theta[0] + jacobian[1] + jacobian[2])
    gradient = jacobian @ (p - y) + theta / scale**2
    information = (jacobian * (p * (1.0 - p))) @ jacobian.T + np.diag(scale**-2.0)
    return gradient, information


def drawn_positives(p: Floats, count: Any, theta: Floats, rng: np.random.Generator) -> Any:
    """Draw how many of some rows are positive, one number for each draw of the calibration.

    `count` says how many rows have each probability; 1 stands for one of each.

    The number is a sum of independent labels; a binomial of the same mean and variance stands for
    it. Rows are put into bins of their log-odds.
    """
    if p.size == 0:
        return np.zeros(len(theta))
    place = log_odds(p)
    edges = np.linspace(place.min(), place.max(), BINS + 1)
    which = np.clip(np.searchsorted(edges, place, side="right") - 1, 0, BINS - 1)
    rows = np.bincount(which, np.broadcast_to(count, p.shape), BINS)
    centre = np.bincount(which, p * count, BINS)[rows > 0] / rows[rows > 0]
    size = rows[rows > 0]
    probability = calibrated(theta, centre)
    mean, square = probability @ size, probability**2 @ size
    # mean = N q and mean - variance = Σ p² = N q² say N and q of the binomial
    q = np.clip(square / np.maximum(mean, 1e-300), 0.0, 1.0)
    trials = np.maximum(np.rint(mean / np.maximum(q, 1e-300)), 1.0)
    trials = np.minimum(trials, size.sum())
    return rng.binomial(trials.astype(np.int64), np.clip(mean / trials, 0.0, 1.0))


def log_odds(p: Floats) -> Floats:
    """Return the log-odds of probabilities, those that are certain moved inside."""
    found: Floats = logit(np.clip(p, CLOSEST_TO_CERTAIN, 1.0 - CLOSEST_TO_CERTAIN))
    return found
