"""Calibration: probabilities from scores of held-out rows, and checks of the result.

The classifier is fitted once for each fold. Its scores of the rows held out show how often such a
score is positive; that curve turns scores into probabilities, and the probabilities of all folds'
models are averaged. This is the form of `CalibratedClassifierCV`, for all labels at once, and rows
of equal probability keep the order of their scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.validation import how_many, ones_unless
from argmaxf.estimators.scores import HeldOut, LabelScorer, Score, last_step

FAR, LESS_FAR = np.log(2.0), np.log(1.2)  # log-odds from mean probability to rate of positives
CLEAR, LESS_CLEAR = 5.0, 3.0  # standard errors; the lesser ones are for reweighted models
LARGEST = 1e300  # stands for the infinite scores of labels with one value in training
TIE = 1e-9  # the part by which probabilities are lowered to order equal ones
NEUTRAL_WEIGHTS = {  # options that weight classes, and their values that do not
    "class_weight": (None,),
    "scale_pos_weight": (None, 1, 1.0),
    "is_unbalance": (None, False),
    "unbalance": (None, False),
    "auto_class_weights": (None, "None"),
    "class_weights": (None,),
}


class Sigmoid:
    """Platt's curve 1 / (1 + exp(-(a·score + b))), with his targets that avoid 0 and 1."""

    def fit(self, score: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Fit a and b by maximum likelihood; each row counts as positive and as negative."""
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        positives, negatives = weight @ y, weight @ (1 - y)
        target = np.where(y > 0, (positives + 1) / (positives + 2), 1 / (negatives + 2))
        self.centre, scale = score.mean(), score.std() or 1.0
        both = np.tile((score - self.centre) / scale, 2)[:, None]
        sides = np.r_[np.ones(len(y)), np.zeros(len(y))]
        weights = np.r_[weight * target, weight * (1 - target)]
        line = LogisticRegression(C=np.inf, tol=1e-8).fit(both, sides, sample_weight=weights)
        self.slope, self.shift = float(line.coef_[0, 0] / scale), float(line.intercept_[0])
        return self

    def predict(self, score: Floats) -> Floats:
        """Return the probability of each score."""
        return np.asarray(expit(self.slope * (score - self.centre) + self.shift))


class VennAbers:
    """Vovk and Petej's curve: two isotonic fits, with the new row as negative and as positive.

    Their probabilities p0 and p1 agree where there are many rows; p1 / (1 - p0 + p1) lies between
    them, and avoids 0 and 1.
    """

    def fit(self, score: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Fit both curves; the package venn-abers takes no weights."""
        if sample_weight is not None:
            raise ValueError("calibration='venn-abers' takes no sample_weight; use 'isotonic'")
        try:
            from venn_abers import VennAbers as Fits
        except ImportError:
            message = "calibration='venn-abers' needs a package: pip install venn-abers"
            raise ImportError(message) from None
        self.fits = Fits()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # its 0/0 at the ends is intended
            self.fits.fit(np.column_stack([-score, score]), y)
        return self

    def predict(self, score: Floats) -> Floats:
        """Return the probability of each score."""
        both = np.asarray(self.fits.predict_proba(np.column_stack([-score, score]))[1])
        return np.asarray(both[:, 1] / (1.0 - both[:, 0] + both[:, 1]))


@dataclass(frozen=True)
class Column:
    """The probability of a label, or its score: the mean of the curves of scores.

    Without curves it is the mean of the scores; `logistic` makes it a probability.
    """

    scores: list[Score]
    curves: list[Any]
    logistic: bool = False


@dataclass(frozen=True)
class Calibrated:
    """Models, and for each the curves of its labels from scores to probabilities.

    A curve is None where the rows held out have one class only; such a label is averaged over the
    other models, and where no model has a curve its probability is the model's own. Without curves
    there is one model, whose scores are taken as they are.
    """

    models: list[LabelScorer]
    kind: str  # of the scores
    curves: list[list[Any]] = field(default_factory=list)

    @classmethod
    def fit(cls, held_out: HeldOut, form: Any) -> Calibrated:
        """Learn the curves of each fold's model on the rows of the fold."""
        scores, columns = _finite(held_out.tables[held_out.kind]), held_out.columns
        models, curves = [], []
        for model, part in held_out.parts():
            weight = None if held_out.weight is None else held_out.weight[part]
            pairs = zip(scores[part].T, columns[part].T, strict=True)
            models.append(model)
            curves.append([_curve(form, score, y, weight) for score, y in pairs])
        return cls(models, held_out.kind, curves)

    def columns(self) -> list[Column]:
        """Return how the probability, or score, of each label is made."""
        made = []
        for label in range(len(self.models[0].labels.names)):
            scores = [Score.of(model, label, self.kind) for model in self.models]
            pairs = zip(scores, [curves[label] for curves in self.curves], strict=False)
            kept = [(score, curve) for score, curve in pairs if curve is not None]
            logistic = bool(self.curves) and not kept and self.kind != "predict_proba"
            scores, curves = map(list, zip(*kept, strict=True)) if kept else (scores, [])
            made.append(Column(scores, curves, logistic))
        return made

    def predict(self, X: Any) -> Floats:
        """Return the probability of each label, (n, n_columns)."""
        return self.of([model.scores(X, self.kind) for model in self.models])

    def of(self, scores: Sequence[Floats]) -> Floats:
        """Return the probabilities of rows, given the scores of each model for them."""
        if not self.curves:
            return scores[0]
        columns = [
            average_curves([curves[label] for curves in self.curves], column, self.kind)
            for label, column in enumerate(np.moveaxis(_finite(scores), 2, 0))
        ]
        proba = np.stack(columns, axis=1)
        if self.models[0].labels.kind != "multiclass":
            return proba
        total = proba.sum(axis=1, keepdims=True)  # classes of a row sum to one
        return np.where(total > 0, proba / np.where(total > 0, total, 1.0), 1.0 / proba.shape[1])

    def held_out(self, held_out: HeldOut) -> Floats:
        """Return the probabilities of rows that neither a model nor its curves were fitted on.

        The scores of a fold go through the curves of all other folds; a single fold has only its
        own.
        """
        scores = held_out.tables[self.kind]
        proba = np.empty_like(scores)
        for fold, (_, part) in enumerate(held_out.parts()):
            others = [i for i in range(len(self.curves)) if i != fold] or [fold]
            curves = [self.curves[i] for i in others]
            proba[part] = replace(self, curves=curves).of([scores[part]] * len(curves))
        return np.asarray(proba[held_out.fold >= 0])


def average_curves(curves: list[Any], scores: Any, kind: str) -> Floats:
    """Return the mean over folds of one label's probabilities, ties in the order of the scores."""
    pairs = [(c, s) for c, s in zip(curves, scores, strict=True) if c is not None]
    if not pairs:
        mean = np.mean(scores, axis=0)
        return np.asarray(mean if kind == "predict_proba" else expit(mean))
    proba = np.clip(np.mean([_read(curve, s) for curve, s in pairs], axis=0), 0.0, 1.0)
    return break_ties(proba, np.mean([s for _, s in pairs], axis=0))


def _read(curve: Any, score: Floats) -> Floats:
    """Return the values of a curve; of an isotonic one without the checks that a row waits for."""
    if type(curve) is IsotonicRegression and curve.out_of_bounds == "clip":
        return np.asarray(np.interp(score, curve.X_thresholds_, curve.y_thresholds_))
    return np.asarray(curve.predict(score))


def break_ties(proba: Floats, score: Floats) -> Floats:
    """Return probabilities lowered by at most a billionth, so that equal ones order by score."""
    place = 0.5 + 0.5 * score / (1.0 + np.abs(score))  # between 0 and 1, rising with the score
    return np.asarray(proba * (1.0 - TIE * (1.0 - place)))


def _curve(form: Any, score: Floats, y: Bools, weight: Floats | None) -> Any:
    seen = y if weight is None else y[weight > 0]
    if seen.all() or not seen.any():
        return None
    named = {"sigmoid": Sigmoid, "venn-abers": VennAbers}
    if form == "isotonic":
        curve: Any = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    else:
        curve = named[form]() if isinstance(form, str) else clone(form, safe=False)
    curve.fit(score, y.astype(np.float64), **({} if weight is None else {"sample_weight": weight}))
    return curve


def curve_data(curve: Any) -> dict[str, Any]:
    """Return a curve as numbers, by the name of its form; refuse what no export can hold."""
    if curve is None:
        return {"none": {}}
    if isinstance(curve, Sigmoid):
        shift = curve.shift - curve.slope * curve.centre
        return {"sigmoid": {"slope": curve.slope, "intercept": float(shift)}}
    if hasattr(curve, "a_"):  # of scikit-learn
        return {"sigmoid": {"slope": -float(curve.a_), "intercept": -float(curve.b_)}}
    if type(curve) is IsotonicRegression:
        return {"isotonic": {"x": curve.X_thresholds_.tolist(), "y": curve.y_thresholds_.tolist()}}
    raise ValueError(
        f"a calibration by {type(curve).__name__} cannot be exported; use "
        "calibration='isotonic' or 'sigmoid'"
    )


def _finite(scores: Any) -> Floats:
    """Replace the infinite scores of constant labels."""
    return np.asarray(np.clip(scores, -LARGEST, LARGEST))


def check_calibration(calibration: Any) -> None:
    """Check for a form of calibration: None, a name, or an object that fits and predicts."""
    if calibration is None or (hasattr(calibration, "fit") and hasattr(calibration, "predict")):
        return
    forms = ("auto", "isotonic", "sigmoid", "venn-abers")
    if calibration not in forms:
        known = ", ".join(map(repr, forms))
        raise ValueError(
            f"calibration must be one of {known}, a regressor or None, got {calibration!r}"
        )


def is_calibrated(estimator: Any) -> bool:
    """Whether the probabilities are the user's own choice: a frozen or a calibrated classifier."""
    return isinstance(last_step(estimator), FrozenEstimator | CalibratedClassifierCV)


def calibration_form(calibration: Any, estimator: Any) -> Any:
    """Return the form that is used for a classifier; None leaves its probabilities as they are."""
    if not isinstance(calibration, str) or calibration != "auto":
        return calibration
    return None if is_calibrated(estimator) else "isotonic"


class CalibrationWarning(UserWarning):
    """The expected F of a decision does not hold, or not for the rows one may think of.

    The probabilities are known to be wrong, are those of weighted rows, or rest on few positives.

    Examples
    --------
    >>> import warnings
    >>> from argmaxf.estimators import CalibrationWarning
    >>> warnings.simplefilter("error", CalibrationWarning)
    """


def calibration_issue(rows: HeldOut) -> str | None:
    """Return why the probabilities are known to be wrong, or None if nothing indicates it.

    If the models were trained on these very rows (`seen`), an overfitted one looks calibrated.
    """
    proba, columns, seen = rows.tables["predict_proba"], rows.columns, rows.seen
    found = (cause for model in rows.model.models_ for cause in reweighting(model))
    causes = " and ".join(dict.fromkeys(found))
    remedy = "calibrate them (calibration='isotonic'"
    remedy += ")" if seen else ", on rows the model was not trained on)"
    if causes:
        remedy += ", or train without reweighting: the decision needs none"
    weight = ones_unless(rows.weight, len(columns))
    expected, there = weight @ proba, weight @ columns
    limits = (LESS_FAR, LESS_CLEAR) if causes else (FAR, CLEAR)
    variance = (weight**2) @ (proba * (1 - proba))
    worst = _worst(expected, there, weight.sum(), variance, *limits)
    if worst is not None:
        said = f"{how_many(round(expected[worst]), 'positive')} where there are {there[worst]:,.0f}"
        because = f" ({causes})" if causes else ""
        return f"the probabilities expect {said}{because}: {remedy}"
    sharp = _too_sharp(proba, columns, weight)
    if sharp is not None:
        return f"the probabilities are too close to 0 or 1: {sharp}: {remedy}"
    shares, labels = np.average(columns, axis=0, weights=weight), columns[weight > 0]
    exclusive = len(shares) > 1 and bool((columns.sum(axis=1) == 1).all())
    varied = labels.any(axis=0) & ~labels.all(axis=0)
    even = logit(1.0 / len(shares) if exclusive else 0.5)  # of balanced classes
    if causes and seen and (np.abs(logit(shares[varied]) - even) > LESS_FAR).any():
        return (
            f"the probabilities are those of a reweighted model ({causes}), and the rows it was "
            f"trained on cannot show by how much they are wrong: {remedy}"
        )
    certain = (proba[weight > 0] == labels).all(axis=0)
    if seen is not False and (certain & varied).any():
        return (
            "all probabilities are 0 or 1 and equal to the labels: the model may have memorized "
            f"its training rows, so they cannot show whether it is calibrated: {remedy}"
        )
    return None


def _worst(
    expected: Any, found: Any, total: Any, variance: Any, far: float = FAR, clear: float = CLEAR
) -> int | None:
    """Return the label whose mean probability is farthest from its rate, if beyond chance."""
    inside = np.clip([expected, found], 0.5, total - 0.5) / total  # half a row from 0 and from 1
    distance, error = np.abs(np.subtract(*logit(inside))), np.abs(expected - found)
    off = (distance > far) & (error > clear * np.sqrt(np.maximum(variance, 1.0)))
    return int(np.argmax(np.where(off, error, -1.0))) if off.any() else None


def warn_about_weights(columns: Bools, weight: Any, deploy_rate: Any) -> None:
    """Warn the caller of `fit`, which calls `_fit`, of weights that move the rate of positives."""
    if weight is None or deploy_rate is not None:
        return
    total, found = float(np.sum(weight > 0)), columns[weight > 0].sum(axis=0)
    weighted = total * np.average(columns, axis=0, weights=weight)
    worst = _worst(weighted, found, total, found * (1 - found / total))
    if worst is not None:
        warnings.warn(
            f"sample_weight changes the rate of positives from {found[worst] / total:.3g} to "
            f"{weighted[worst] / total:.3g}: the predicted F is that of the weighted population; "
            "for unweighted rows, leave the weights out or pass their rate as deploy_rate=",
            CalibrationWarning,
            stacklevel=4,
        )


def _too_sharp(proba: Floats, columns: Bools, weight: Any) -> str | None:
    """Say where the probabilities of some label promise too much, on either side of one half.

    A model that has learned its training rows by heart errs to the other side there.
    """
    for farther, words in ((np.maximum, "of at least"), (np.minimum, "below")):
        counted = weight[:, None] * ((proba >= 0.5) == (farther is np.maximum))
        rows, found = counted.sum(axis=0), (counted * columns).sum(axis=0)
        expected = farther((counted * proba).sum(axis=0), found)  # errors to this side only
        variance = (counted**2 * proba * (1 - proba)).sum(axis=0)
        worst = _worst(expected, found, rows + 1.0, variance)
        if worst is not None:
            return (
                f"of {how_many(rows[worst], 'row')} with a probability {words} 0.5 they expect "
                f"{expected[worst]:,.0f} to be positive, and {found[worst]:,.0f} are"
            )
    return None


def reweighting(model: Any) -> Iterator[str]:
    """Name each option or step of a classifier that changes the balance of the classes."""
    for name, value in _parts(model):
        weights = list(value.values()) if isinstance(value, dict) else value  # by class, in order
        equal = isinstance(weights, list | tuple) and len(set(weights)) == 1
        scalar = value is None or np.isscalar(value)
        neutral = NEUTRAL_WEIGHTS.get(name)
        if neutral is not None and not (equal or (scalar and value in neutral)):
            yield f"{name}={value!r}" if isinstance(value, str | int | float) else name
        if not name and hasattr(value, "fit_resample"):
            yield f"{type(value).__name__} in the pipeline"
        elif not name and "sampling_strategy" in value.get_params(deep=False):
            yield f"{type(value).__name__}, which resamples"


def _parts(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield a classifier (without a name), its parameters, and those of classifiers inside it.

    Left out is what only makes features, or is inside a calibration.
    """
    while isinstance(model, FrozenEstimator):
        model = model.estimator
    model = getattr(model, "best_estimator_", model)
    if not isinstance(model, BaseEstimator) or isinstance(model, CalibratedClassifierCV):
        return
    if hasattr(model, "transform") and not is_classifier(model):
        return
    yield "", model
    own = model.get_params(deep=False)
    if "final_estimator" in own:  # of a stack: the others make its features
        own = {"final_estimator": own["final_estimator"]}
    for name, value in own.items():
        yield name, value
        for inside in value if isinstance(value, list | tuple) else [value]:
            yield from _parts(inside[1] if isinstance(inside, tuple) else inside)
