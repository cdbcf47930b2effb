"""Linear scores, and soft F (Jansche 2005): F_β with each decision replaced by its probability.

F as a function of the weights of a linear classifier is a staircase. Replacing the decision s_i in
eq. 1 by p_i = σ(w·x_i + b) makes it smooth, though not concave; L-BFGS climbs it from zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from argmaxf._base.shown import Shown
from argmaxf._base.validation import (
    check_count,
    check_not_negative,
    check_positive,
    ones_unless,
)
from argmaxf.measures import FBeta, MeasureLike, Ratio, as_measure

Vector = NDArray[np.float64]
FLAT = 64 * np.finfo(np.float64).eps  # relative gain of a step below which there is none


@dataclass(frozen=True, repr=False)
class LinearModel(Shown):
    """A trained score `X @ coef + intercept`; without a threshold, that is left to be tuned."""

    coef: Vector
    intercept: float = 0.0
    threshold: float | None = None
    n_iter: int = 0
    converged: bool = True


@dataclass(frozen=True)
class Scores:
    """X w + b as a linear map of one vector, w and then b, for dense and sparse X."""

    X: Any
    fit_intercept: bool

    @property
    def size(self) -> int:
        """Return the number of parameters."""
        return int(self.X.shape[1]) + self.fit_intercept

    def split(self, parameters: Vector) -> tuple[Vector, float]:
        """Return w and b."""
        d = self.X.shape[1]
        return parameters[:d], float(parameters[d]) if self.fit_intercept else 0.0

    def __call__(self, parameters: Vector) -> Vector:
        """Return X w + b."""
        coef, intercept = self.split(parameters)
        return np.asarray(self.X @ coef + intercept)

    def pull(self, by_score: Vector) -> Vector:
        """Return the transposed product: a derivative in the scores as one in the parameters."""
        by_coef = np.asarray(self.X.T @ by_score)
        return np.append(by_coef, by_score.sum()) if self.fit_intercept else by_coef


@dataclass(frozen=True, repr=False)
class SoftF(LinearModel):
    """A linear score trained on soft F, and the soft F it reached on the training data.

    `threshold` is logit δ where `sharpness` made δ a parameter.
    """

    value: float = np.nan


def soft_f(
    y: NDArray[Any],
    decision: Vector,
    weight: NDArray[Any] | float = 1.0,
    *,
    measure: Ratio = FBeta(),  # noqa: B008  frozen
) -> tuple[float, Vector]:
    """Return a measure of decisions between 0 and 1, and its gradient in the decisions.

    For F_β it is ∂F/∂s_i = c_i ((1 + β²) y_i - F) / (Σ c_i s_i + β² Σ c_i y_i), and likewise for
    every ratio that is linear in the counts.

    >>> soft_f(np.array([1, 0]), np.array([0.5, 0.5]))
    (0.5, array([ 0.75, -0.25]))
    """
    c, b_in, b_out, s0, s1 = measure.coefficients()
    counted = weight * y
    true = np.sum(counted * decision)
    size = np.sum(weight * decision) + b_out * np.sum(counted) + (b_in - b_out) * true + s1
    value = float((c * true + s0) / size)
    by_size = weight + (b_in - b_out) * counted  # the denominator's slope in each decision
    return value, (c * counted - value * by_size) / size


def fit_soft_f(
    X: Any,
    y: NDArray[Any],
    *,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    alpha: float | None = None,
    sharpness: float | None = None,
    fit_intercept: bool = True,
    penalize_intercept: bool = False,
    sample_weight: NDArray[Any] | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> SoftF:
    """Return the linear classifier with the highest F_β(σ(Xw + b), y) - α/2 ‖w‖² found from zero.

    The options are those of `SoftFClassifier`; without `alpha` it is 1 over the sum of weights. The
    tolerance is relative to the F reached, because a label with one positive in 10,000 starts from
    F = .0002 and slopes as small. A step costs one product with X and one with its transpose.
    """
    chosen = as_measure(measure, beta)
    if not isinstance(chosen, Ratio):
        raise ValueError(
            "measure must be a ratio that is linear in the counts (argmaxf.measures.Ratio) to be "
            f"trained for, got {chosen!r}"
        )
    weight = np.asarray(ones_unless(sample_weight, len(y)), np.float64)
    strength = 1.0 / weight.sum() if alpha is None else check_not_negative("alpha", alpha)
    max_iter = check_count("max_iter", max_iter)
    objective = Objective(
        scores=Scores(X, fit_intercept),
        y=np.asarray(y, np.float64),
        weight=weight,
        measure=chosen,
        alpha=strength,
        intercept_alpha=strength if penalize_intercept else 0.0,
        sharpness=None if sharpness is None else check_positive("sharpness", sharpness),
        tol=check_not_negative("tol", tol),
    )
    found = minimize(
        objective,
        np.zeros(objective.size),
        jac=True,
        method="L-BFGS-B",
        callback=objective.stop_where_flat,
        options={"maxiter": max_iter, "maxfun": 20 * max_iter, "gtol": 0.0, "ftol": FLAT},
    )
    return SoftF(
        *objective.scores.split(found.x),
        threshold=None if sharpness is None else float(found.x[-1]),
        n_iter=int(found.nit),
        converged=bool(found.success) or objective.is_flat,
        value=objective.penalty(found.x) - float(found.fun),
    )


@dataclass
class Objective:
    """-F + penalty, and its gradient: in w, in b and in logit δ, where those are learned."""

    scores: Scores
    y: Vector
    weight: Vector
    measure: Ratio = FBeta()  # noqa: RUF009  frozen
    alpha: float = 0.0
    intercept_alpha: float = 0.0
    sharpness: float | None = None
    tol: float = 0.0
    is_flat: bool = False  # whether no slope exceeded `tol` times F, where last evaluated

    def __post_init__(self) -> None:
        self._alphas = np.full(self.scores.size, self.alpha)
        if self.scores.fit_intercept:
            self._alphas[-1] = self.intercept_alpha

    @property
    def size(self) -> int:
        """Return the number of parameters."""
        return self.scores.size + (self.sharpness is not None)

    def penalty(self, parameters: Vector) -> float:
        """Return α/2 ‖w‖², and the intercept's share."""
        linear = parameters[: self._alphas.size]
        return 0.5 * float(linear @ (self._alphas * linear))

    def __call__(self, parameters: Vector) -> tuple[float, Vector]:
        """Return the objective and its gradient."""
        linear, threshold = np.split(parameters, [self._alphas.size])
        decision, by_score = _sigmoid(self.scores(linear))
        if self.sharpness is not None:
            delta, delta_spread = _sigmoid(threshold)
            decision, steep = _sigmoid(self.sharpness * (decision - delta))
            steep *= self.sharpness
            by_score, by_threshold = steep * by_score, -steep * delta_spread
        value, by_decision = soft_f(self.y, decision, self.weight, measure=self.measure)
        gradient = self._alphas * linear - self.scores.pull(by_decision * by_score)
        if self.sharpness is not None:
            gradient = np.append(gradient, -(by_decision @ by_threshold))
        self.is_flat = bool(value > 0 and np.abs(gradient).max() <= self.tol * value)
        return self.penalty(linear) - value, gradient

    def stop_where_flat(self, _: Vector) -> None:
        """End the search of SciPy, whose own tolerance for slopes is not relative to F."""
        if self.is_flat:
            raise StopIteration


def _sigmoid(t: Any) -> tuple[Any, Any]:
    """Return σ(t) and σ'(t) = σ(t) σ(-t), exact in both tails."""
    p = expit(t)
    return p, p * expit(-t)
