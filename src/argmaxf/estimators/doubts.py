"""Whether a promise can be kept: totals that are wrong, models and rows that were reweighted."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV

FAR = np.log(2.0)  # log-odds between the mean probability and the rate of positives
SURE = 5.0  # standard errors between them
FEW = 10  # positives in training below which a promise is not worth much
LESS_FAR, LESS_SURE = np.log(1.2), 3.0  # the same where the model is known to be reweighted
NEUTRAL_WEIGHTS = {  # options that weigh classes, and their values that leave them alone
    "class_weight": (None,),
    "scale_pos_weight": (None, 1, 1.0),
    "is_unbalance": (None, False),
    "unbalance": (None, False),
    "auto_class_weights": (None, "None"),
    "class_weights": (None,),
}
REMEDY = (
    "calibrate them (calibrate='isotonic', on rows the model has not seen), or train without "
    "weights: the decision needs none"
)


class CalibrationWarning(UserWarning):
    """What is expected of a decision does not hold, or not for the rows one may think of.

    The probabilities are known to be off, are those of weighted rows, or rest on few positives.
    """


def doubt(
    estimator: Any, proba: NDArray[np.float64], columns: NDArray[np.bool_], weight: Any = None
) -> str | None:
    """Return why the probabilities cannot be taken at their word, or None if nothing speaks so."""
    causes = " and ".join(reweighting(estimator))
    weight = np.ones(len(columns)) if weight is None else weight
    expected, found = weight @ proba, weight @ columns
    limits = (LESS_FAR, LESS_SURE) if causes else (FAR, SURE)
    off = _far(expected, found, weight.sum(), (weight**2) @ (proba * (1 - proba)), *limits)
    if off.any():
        worst = int(np.argmax(np.where(off, np.abs(expected - found), -1.0)))
        said = f"expect {expected[worst]:.0f} positives where there are {found[worst]:.0f}"
        return f"the probabilities {said}{f' ({causes})' if causes else ''}: {REMEDY}"
    return None


def warn_of_weights(columns: NDArray[np.bool_], weight: Any, deploy_rate: Any) -> None:
    """Warn the caller's caller's caller of weights that move the rate of positives far."""
    if weight is None or deploy_rate is not None:
        return
    total, found = float(np.sum(weight > 0)), columns[weight > 0].sum(axis=0)
    weighted = total * np.average(columns, axis=0, weights=weight)
    off = _far(weighted, found, total, found * (1 - found / total)) & (found > 0) & (found < total)
    if off.any():
        worst = int(np.argmax(np.where(off, np.abs(weighted - found), -1.0)))
        warnings.warn(
            f"sample_weight moves the rate of positives from {found[worst] / total:.3g} to "
            f"{weighted[worst] / total:.3g}: the F promised is that of the weighted population; "
            "for rows as they come leave the weights out, or pass their rate as deploy_rate=",
            CalibrationWarning,
            stacklevel=4,
        )


def warn_of_few(positives: int | None, n_labels: int) -> None:
    """Warn the caller's caller that a promise rests on few positives."""
    if positives is None or positives >= FEW:
        return
    of = " of the rarest label" if n_labels > 1 else ""
    warnings.warn(
        f"the F promised rests on {positives} positive{'s' * (positives != 1)}{of} in training: "
        "it would be another with other rows",
        CalibrationWarning,
        stacklevel=3,
    )


def _far(
    expected: Any, found: Any, total: float, variance: Any, far: float = FAR, sure: float = SURE
) -> NDArray[np.bool_]:
    """Whether each label's mean probability is far from its rate, beyond chance."""
    inside = np.clip([expected, found], 0.5, total - 0.5) / total  # half a row from 0 and from 1
    distance = np.abs(logit(inside[0]) - logit(inside[1]))
    chance = np.sqrt(np.maximum(variance, 1.0))
    return np.asarray((distance > far) & (np.abs(expected - found) > sure * chance))


def reweighting(estimator: Any) -> Iterator[str]:
    """Name each option or step of a classifier that makes it see other classes than the data."""
    for name, value in _parts(estimator):
        option = name.rpartition("__")[2]
        neutral = NEUTRAL_WEIGHTS.get(option)
        if neutral is not None and not (_among(value, neutral) or _all_alike(value)):
            yield f"{option}={value!r}" if isinstance(value, str | int | float) else option
        if hasattr(value, "fit_resample"):
            yield f"{type(value).__name__} in the pipeline"


def _parts(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Give all parameters, those of nested estimators too, but not of those that are calibrated."""
    if not isinstance(estimator, BaseEstimator) or isinstance(estimator, CalibratedClassifierCV):
        return
    parts = estimator.get_params(deep=True)
    calibrated = [f"{k}__" for k, v in parts.items() if isinstance(v, CalibratedClassifierCV)]
    yield from ((k, v) for k, v in parts.items() if not k.startswith(tuple(calibrated)))


def _among(value: Any, neutral: tuple[Any, ...]) -> bool:
    return any(value is one or (np.isscalar(value) and value == one) for one in neutral)


def _all_alike(value: Any) -> bool:
    """Whether weights, by class or in the order of classes, are all the same."""
    weights = list(value.values()) if isinstance(value, dict) else value
    return isinstance(weights, list | tuple) and len(set(weights)) == 1
