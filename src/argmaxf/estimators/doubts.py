"""Whether a promise can be kept: totals that are wrong, models and rows that were reweighted."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import BaseEstimator, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from argmaxf._base.messages import how_many

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
RESAMPLES = "sampling_strategy"  # the option by which ensembles that resample are known
LAST = "final_estimator"  # the option of a stack that gives the probabilities
ITSELF = ""  # the name of a classifier among its parts
CALIBRATE = "calibrate them (calibrate='isotonic', on rows the model has not seen)"
REMEDY = f"{CALIBRATE}, or train without weights: the decision needs none"


class CalibrationWarning(UserWarning):
    """What is expected of a decision does not hold, or not for the rows one may think of.

    The probabilities are known to be off, are those of weighted rows, or rest on few positives.
    """


def doubt(
    models: list[Any],
    proba: NDArray[np.float64],
    columns: NDArray[np.bool_],
    weight: Any = None,
    *,
    learned_here: bool = False,
    held_out: bool = False,
) -> str | None:
    """Return why the probabilities cannot be taken at their word, or None if nothing speaks so.

    `learned_here` says that the fitted models were trained on these very rows, on which a model
    that learned them by heart is right whatever weights it was trained with; `held_out` that they
    were not. Of a model that came fitted neither is known.
    """
    causes = " and ".join(dict.fromkeys(cause for model in models for cause in reweighting(model)))
    weight = np.ones(len(columns)) if weight is None else weight
    expected, found = weight @ proba, weight @ columns
    limits = (LESS_FAR, LESS_SURE) if causes else (FAR, SURE)
    off = _far(expected, found, weight.sum(), (weight**2) @ (proba * (1 - proba)), *limits)
    if off.any():
        worst = int(np.argmax(np.where(off, np.abs(expected - found), -1.0)))
        said = f"{how_many(round(expected[worst]), 'positive')} where there are {found[worst]:,.0f}"
        because = f" ({causes})" if causes else ""
        return f"the probabilities expect {said}{because}: {REMEDY}"
    if causes and learned_here and _uneven(columns, weight):
        return (
            f"the probabilities are those of a reweighted model ({causes}), and the rows it was "
            f"trained on cannot show how far they are off: {REMEDY}"
        )
    if not held_out and _by_heart(proba, columns, weight):
        return (
            "the probabilities of all rows are 0 or 1, as they are labelled: of rows it was "
            "trained on a model may know that by heart, and how sure it is of others it does not "
            f"show: {CALIBRATE}"
        )
    return None


def _uneven(columns: NDArray[np.bool_], weight: Any) -> bool:
    """Whether classes that were made even would have other shares than they have."""
    shares = np.average(columns, axis=0, weights=weight)
    exclusive = len(shares) > 1 and bool((columns.sum(axis=1) == 1).all())
    even = 1.0 / len(shares) if exclusive else 0.5
    varied = shares[(shares > 0.0) & (shares < 1.0)]
    return bool((np.abs(logit(varied) - logit(even)) > LESS_FAR).any())


def _by_heart(proba: NDArray[np.float64], columns: NDArray[np.bool_], weight: Any) -> bool:
    """Whether of some label that varies every row is certain, and right."""
    counted = weight > 0
    seen, said = columns[counted], proba[counted]
    varies = seen.any(axis=0) & ~seen.all(axis=0)
    return bool((varies & (said == seen).all(axis=0)).any())


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


@contextmanager
def weights_said() -> Iterator[None]:
    """Keep quiet about weights that move the rate: the caller has said it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "sample_weight moves", CalibrationWarning)
        yield


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


def reweighting(model: Any) -> Iterator[str]:
    """Name each option or step of a classifier that makes it see other classes than the data."""
    for name, value in _parts(model):
        neutral = NEUTRAL_WEIGHTS.get(name)
        if neutral is not None and not (_among(value, neutral) or _all_alike(value)):
            yield f"{name}={value!r}" if isinstance(value, str | int | float) else name
        if name == ITSELF and hasattr(value, "fit_resample"):
            yield f"{type(value).__name__} in the pipeline"
        elif name == ITSELF and RESAMPLES in value.get_params(deep=False):
            yield f"{type(value).__name__}, which resamples"


def _parts(model: Any) -> Iterator[tuple[str, Any]]:
    """Give what bears on the probabilities: a classifier, its parameters, and those inside it.

    Left out is what only makes features, or stands inside a calibration.
    """
    model = _found(model)
    if not isinstance(model, BaseEstimator) or isinstance(model, CalibratedClassifierCV):
        return
    if hasattr(model, "transform") and not is_classifier(model):
        return
    yield ITSELF, model
    own = model.get_params(deep=False)
    if LAST in own:  # of a stack: the others make its features
        own = {LAST: own[LAST]}
    for name, value in own.items():
        yield name, value
        for inside in value if isinstance(value, list | tuple) else [value]:
            yield from _parts(inside[1] if isinstance(inside, tuple) else inside)


def _found(value: Any) -> Any:
    """Return the classifier inside a frozen one, or that a search has found, or itself."""
    if isinstance(value, FrozenEstimator):
        return _found(value.estimator)
    return getattr(value, "best_estimator_", value)


def _among(value: Any, neutral: tuple[Any, ...]) -> bool:
    return any(value is one or (np.isscalar(value) and value == one) for one in neutral)


def _all_alike(value: Any) -> bool:
    """Whether weights, by class or in the order of classes, are all the same."""
    weights = list(value.values()) if isinstance(value, dict) else value
    return isinstance(weights, list | tuple) and len(set(weights)) == 1
