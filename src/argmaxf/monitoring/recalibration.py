r"""What labelled rows say about the calibration of probabilities, with its uncertainty.

Beta calibration (Kull, Silva Filho & Flach, AISTATS 2017) takes the probability of a positive to be

    logit P(y = 1 | p) = c + a log p - b log(1 - p),    a, b > 0,

which is p itself for a = b = 1, c = 0, a shift of the log-odds for other c (prior shift), and a
temperature for a = b. A normal prior on (c, log a, log b) around "calibrated" makes few labels
enough: with none of them the answer is p, with its uncertainty. The posterior is approximated by
Student's t distribution around its mode (Laplace's method with heavier tails, since few labels
leave a skewed posterior).

What this curve cannot show is a deviation from it: a piecewise linear function of the log-odds for
selected rows and another one for the others, and a step γ between both. All are normal around 0.
Rows that another model selected may be positive more often than others of the same p, and scores
may be saturated or carry no information.

How far the parameters may go is not known before, so several scales of their priors are tried. The
posterior is the mixture of those under each choice, weighted by its evidence, that is, by how
probable it makes the labels.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax
from scipy.stats import binom
from scipy.stats import t as student

from argmaxf._base.arrays import Bools, Floats
from argmaxf.monitoring.histogram import Sizes, binned, log_odds, moved_inside

C_SCALE = 2.0  # prior standard deviation of c
# Prior standard deviations that are tried, and the probability of each before any label: of log a
# and log b, of γ, and at the knots
SCALES = (
    ((1.0, 0.9), (3.0, 0.1)),
    ((0.02, 0.5), (0.5, 0.2), (1.0, 0.2), (2.0, 0.1)),
    ((0.02, 0.6), (0.5, 0.2), (1.0, 0.1), (3.0, 0.1)),
)
DEVIATIONS = (1.0, 0.5, 0.5)  # scales above these let the labels contradict p
CONTRADICTED = 2.0  # how much more probable than before the labels must make such scales
KNOTS = 4  # of each side
LEAST_WEIGHT = 1e-3  # of a component of the mixture
TAIL_DEGREES = 30.0  # degrees of freedom of the t distribution
COARSE = 16  # bins for each unit of log-odds, where draws are summed up
STEPS, TOLERANCE = 100, 1e-9
DRAWS = 4_000  # from the posterior


class CalibrationPosterior(NamedTuple):
    """The posterior of the calibration: a mixture over the scales of the prior.

    Attributes
    ----------
    weights : ndarray of shape (m,)
        The probability of each component.
    modes : ndarray of shape (m, d)
        The most probable parameters: c, log a, log b, γ, and the bends at the knots.
    covariances : ndarray of shape (m, d, d)
        The inverse of the Fisher information there, prior included.
    knots : list of two ndarray
        Log-odds at which the curve bends, for other rows and for selected ones.
    contradicts : bool
        Whether the labels make a large deviation from the curve more probable than before.
    """

    weights: Floats
    modes: Floats
    covariances: Floats
    knots: list[Floats]
    contradicts: bool

    @classmethod
    def fit(
        cls, p: Floats, positive: Bools, selected: Any = False, weight: Any = 1.0
    ) -> CalibrationPosterior:
        """Learn from labelled rows, `weight` of each kind; no rows give the prior back."""
        side, y = np.broadcast_to(selected, p.shape), positive.astype(np.float64)
        places = [log_odds(p[side == each]) for each in (False, True)]
        shares = np.linspace(0.0, 1.0, KNOTS)
        knots = [np.unique(np.quantile(at, shares)) if at.size else at for at in places]
        features, (slopes, steps, bends) = _features(p, side, knots), SCALES
        tried = np.array([*product(slopes, steps if side.any() else steps[:1], bends)])
        scales, prior = tried[:, :, 0], tried[:, :, 1].prod(axis=1)
        found, start = [], np.zeros(len(features))
        for slope, step, bend in scales:
            own = step, 0.5 * step, 0.5 * step  # of the curve of selected rows
            scale = np.r_[C_SCALE, slope, slope, own, np.full(len(features) - 6, bend)]
            found.append(_fit(features, y, weight, scale, start))
            start = found[-1][1]
        evidence, modes, covariances = (np.array(each) for each in zip(*found, strict=True))
        weights, large = softmax(evidence + np.log(prior)), scales > DEVIATIONS
        kept, before = weights >= LEAST_WEIGHT, prior @ large / prior.sum()
        weights = weights[kept] / weights[kept].sum()
        more = weights @ large[kept] > CONTRADICTED * before / (1.0 + before)
        return cls(weights, modes[kept], covariances[kept], knots, bool(more.any()))

    def moved(self, factor: float) -> CalibrationPosterior:
        """Return it for rows whose odds of being positive are `factor` times as high."""
        modes = self.modes.copy()
        modes[:, 0] += np.log(factor)
        return self._replace(modes=modes)

    def transform(self, p: Floats, selected: Any = False) -> Floats:
        """Return the calibrated probabilities: the mean over the modes of all components."""
        mean: Floats = self.weights @ self._calibrated(self.modes, p, selected)
        return mean

    def draw(self, rng: np.random.Generator) -> Floats:
        """Return draws of the parameters, one a row."""
        ends = np.rint(np.cumsum(self.weights) * DRAWS).astype(np.int64)
        sizes, zeros = np.diff(ends, prepend=0), np.zeros(self.modes.shape[1])
        parts = [
            mode
            + rng.multivariate_normal(zeros, covariance, size, method="cholesky")
            * np.sqrt(TAIL_DEGREES / rng.chisquare(TAIL_DEGREES, size))[:, None]
            for mode, covariance, size in zip(self.modes, self.covariances, sizes, strict=True)
        ]
        drawn: Floats = np.concatenate(parts)
        return drawn

    def positives(
        self, theta: Floats, sizes: Sizes, rng: np.random.Generator, selected: Any = False
    ) -> Any:
        """Draw how many of some rows are positive, one number for each draw of the calibration."""
        if sizes[0].size == 0:
            return np.zeros(len(theta))
        mean, trials = self._binomial(theta, sizes, selected)
        return rng.binomial(trials.astype(np.int64), np.clip(mean / trials, 0.0, 1.0))

    def tails(self, sizes: Sizes, found: float) -> tuple[float, float]:
        """Return the probabilities of at most and of at least so many positives among rows.

        The rate of positives has Student's t distribution on the scale of log-odds.
        """
        theta = np.vstack([self.weights @ self.modes, self.draw(np.random.default_rng(0))])
        mean, trials = self._binomial(theta, sizes, False)
        size, place = np.sum(sizes[1]), np.linspace(-15.0, 15.0, 601)
        rate, weight = log_odds(mean / size), student.pdf(place, TAIL_DEGREES)
        moved = expit(rate[0] + np.std(rate[1:]) * place) * size
        q = np.clip(moved / trials[0], 0.0, 1.0)
        both = binom.cdf(found, trials[0], q), binom.sf(found - 1, trials[0], q)
        below, above = (float(weight @ each / weight.sum()) for each in both)
        return below, above

    def _calibrated(self, theta: Floats, p: Floats, selected: Any) -> Floats:
        """Return P(y = 1 | p) for parameters along the last axis."""
        features = _features(p, np.broadcast_to(selected, p.shape), self.knots)
        found: Floats = expit(_factors(theta) @ features)
        return found

    def _binomial(self, theta: Floats, sizes: Sizes, selected: Any) -> tuple[Floats, Floats]:
        """Return mean and trials of the binomial that stands for a sum of independent labels.

        It has the same mean and variance. Rows of a wider bin share their probability.
        """
        p, size = binned(*sizes, COARSE)
        probability = self._calibrated(theta, p, selected)
        mean, square = probability @ size, probability**2 @ size
        # mean = N q and mean - variance = Σ p² = N q² say N and q of the binomial
        q = np.clip(square / np.maximum(mean, 1e-300), 0.0, 1.0)
        trials = np.maximum(np.rint(mean / np.maximum(q, 1e-300)), 1.0)
        return mean, np.minimum(trials, size.sum())


def _fit(
    features: Floats, y: Floats, weight: Any, scale: Floats, start: Floats
) -> tuple[float, Floats, Floats]:
    """Return the logarithm of the evidence, the mode and the covariance, by Fisher scoring."""

    def loss(theta: Floats) -> float:
        """Return the negative log posterior."""
        eta = _factors(theta) @ features
        likelihood = weight * (np.logaddexp(0.0, eta) - y * eta)
        return float(np.sum(likelihood) + 0.5 * np.sum((theta / scale) ** 2))

    theta, lowest = start, loss(start)
    for _ in range(STEPS):
        p, jacobian = expit(_factors(theta) @ features), features.copy()
        jacobian[1:3] *= np.exp(theta[1:3])[:, None]
        gradient = jacobian @ (weight * (p - y)) + theta / scale**2
        information = (jacobian * (weight * p * (1.0 - p))) @ jacobian.T + np.diag(scale**-2.0)
        step = np.linalg.solve(information, gradient)
        while (after := loss(theta - step)) > lowest and np.abs(step).max() > TOLERANCE:
            step = step / 2.0
        theta, lowest = theta - step, after
        if np.abs(step).max() <= TOLERANCE:
            break
    evidence = -lowest - 0.5 * np.linalg.slogdet(information)[1] - np.log(scale).sum()
    return float(evidence), theta, np.asarray(np.linalg.inv(information), np.float64)


def _features(p: Floats, side: Bools, knots: list[Floats]) -> Floats:
    """Return 1, log p and -log(1 - p), the same of selected rows, and the hats of knots."""
    inside, place = moved_inside(p), log_odds(p)
    curve = np.stack([np.ones(p.size), np.log(inside), -np.log1p(-inside)])
    hats = [
        np.where(side == each, np.interp(place, at, row), 0.0)
        for each, at in zip((False, True), knots, strict=True)
        for row in np.eye(at.size)
    ]
    return np.stack([*curve, *(curve * side), *hats])


def _factors(theta: Floats) -> Floats:
    """Return what the features are multiplied by: c, a, b, γ and the bends."""
    found = theta.copy()
    found[..., 1:3] = np.exp(theta[..., 1:3])
    return found
