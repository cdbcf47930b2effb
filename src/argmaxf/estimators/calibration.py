"""Probabilities that can be taken at their word: scores calibrated on rows held out from training.

The classifier is fitted once for each fold. Its scores of the rows it did not see show how often
such a score is positive; that curve turns scores into probabilities, and the probabilities of all
folds' models are averaged. It is the form of `CalibratedClassifierCV`, for all labels of a target
at once and with ties told apart.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from argmaxf.estimators.scores import LabelScorer, is_given, last_step

Floats = NDArray[np.float64]

FORMS = ("auto", "isotonic", "sigmoid", "venn-abers")
APART = 1e-9  # share of a probability by which equal ones differ in the order of their scores
HUGE = 1e300  # stands for the infinite score of a label that is always or never positive


class ProbabilityCurve(Protocol):
    """What turns scores into probabilities: any regressor of one feature."""

    def fit(self, score: Floats, y: Floats, sample_weight: Floats | None = None) -> Any:
        """Learn how often each score is positive."""

    def predict(self, score: Floats) -> Floats:
        """Return the probability of each score."""


class Sigmoid:
    """Platt's curve 1 / (1 + exp(-(a·score + b))), with his targets that keep it off 0 and 1."""

    def fit(self, score: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Fit a and b by maximum likelihood; each row counts as positive and as negative."""
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        positives, negatives = weight @ y, weight @ (1 - y)
        target = np.where(y > 0, (positives + 1) / (positives + 2), 1 / (negatives + 2))
        self.centre, self.scale = score.mean(), score.std() or 1.0
        both = np.r_[self._scaled(score), self._scaled(score)]
        sides = np.r_[np.ones(len(y)), np.zeros(len(y))]
        weights = np.r_[weight * target, weight * (1 - target)]
        self.model = LogisticRegression(C=np.inf, tol=1e-8).fit(both, sides, sample_weight=weights)
        return self

    def predict(self, score: Floats) -> Floats:
        """Return the probability of each score."""
        proba: Floats = self.model.predict_proba(self._scaled(score))[:, 1]
        return proba

    def _scaled(self, score: Floats) -> Floats:
        return np.asarray((score - self.centre) / self.scale)[:, None]


class VennAbers:
    """Vovk and Petej's curve: isotonic fits with the new row among them, as negative and positive.

    The two agree where there are many rows; p1 / (1 - p0 + p1) lies between them, and off 0 and 1.
    """

    def fit(self, score: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Fit both curves; the package that does it knows no weights."""
        if sample_weight is not None:
            raise ValueError("calibrate='venn-abers' takes no sample_weight; use 'isotonic'")
        try:
            from venn_abers import VennAbers as Fits
        except ImportError:
            message = "calibrate='venn-abers' needs a package: pip install venn-abers"
            raise ImportError(message) from None
        self.fits = Fits()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # its 0/0 at the ends is meant
            self.fits.fit(np.column_stack([-score, score]), y)
        return self

    def predict(self, score: Floats) -> Floats:
        """Return the probability of each score."""
        both = np.asarray(self.fits.predict_proba(np.column_stack([-score, score]))[1])
        return np.asarray(both[:, 1] / (1.0 - both[:, 0] + both[:, 1]))


NAMED = {"sigmoid": Sigmoid, "venn-abers": VennAbers}


@dataclass(frozen=True)
class Calibrated:
    """Models, the curves of their labels, and calibrated probabilities of rows they did not see.

    `curves[fold][label]` is None where the rows held out have one class only; such a label is
    averaged over the other folds, and where no fold has a curve its probability is the model's own.
    """

    models: list[LabelScorer]
    curves: list[list[ProbabilityCurve | None]]
    held_out: Floats

    def predict(self, X: Any) -> Floats:
        """Return the probability of each label, (n, n_columns)."""
        return self.of([model.predict(X) for model in self.models])

    def of(self, scores: list[Floats]) -> Floats:
        """Return the probabilities of rows, given the scores that each model has for them."""
        return _normal(
            [
                average_curves([curves[label] for curves in self.curves], columns, self._method)
                for label, columns in enumerate(np.moveaxis(_finite(scores), 2, 0))
            ],
            self._kind,
        )

    @property
    def fitted(self) -> list[Any]:
        """The fitted classifiers, those of each fold in turn."""
        return [fitted for model in self.models for fitted in model.models_]

    @property
    def _method(self) -> str:
        return str(self.models[0].method)

    @property
    def _kind(self) -> str:
        return str(self.models[0].labels.kind)


def cross_fit(
    scorer: LabelScorer,
    X: Any,
    target: NDArray[Any],
    splits: list[Any],
    form: Any,
    weight: Floats | None,
    **options: Any,
) -> Calibrated:
    """Fit the classifier on the rest of each fold and a curve for each label on the fold."""
    parts = [test for _, test in splits]
    if isinstance(scorer.estimator, FrozenEstimator):  # one model, which saw none of the rows
        if not is_given(scorer.estimator):
            parts = [np.arange(len(target))]
        scores, models = scorer.fit(X, target).predict(X), [scorer] * len(parts)
    else:
        scores, models = scorer.out_of_fold(X, target, splits, **options)
    return from_folds(models, parts, scores, scorer.labels.columns(target), form, weight)


def from_folds(
    models: list[LabelScorer],
    parts: list[Any],
    scores: Floats,
    columns: NDArray[np.bool_],
    form: Any,
    weight: Floats | None,
) -> Calibrated:
    """Return the models of folds with a curve for each label, learned on the rows of each fold."""
    scores = _finite(scores)
    curves = [
        [_curve(form, s, y, w) for s, y in zip(scores[part].T, columns[part].T, strict=True)]
        for part in parts
        for w in [None if weight is None else weight[part]]
    ]
    for model in models:
        model.kept_scores_ = None
    return Calibrated(models, curves, _held_out(models[0], scores, parts, curves))


def _held_out(scorer: LabelScorer, scores: Floats, parts: list[Any], curves: list[Any]) -> Floats:
    """Return the probabilities of rows that neither the model nor its curves were fitted on.

    The scores of a fold go through the curves of all other folds; a single fold has only its own.
    """
    proba = np.empty_like(scores)
    for fold, part in enumerate(parts):
        others = [c for i, c in enumerate(curves) if i != fold] or curves
        columns = [
            average_curves([c[label] for c in others], [column] * len(others), scorer.method)
            for label, column in enumerate(scores[part].T)
        ]
        proba[part] = _normal(columns, scorer.labels.kind)
    return np.asarray(proba[np.sort(np.concatenate(parts))])


def average_curves(curves: list[ProbabilityCurve | None], scores: Any, method: str) -> Floats:
    """Return the mean over folds of one label's probabilities, ties in the order of the scores."""
    pairs = [(c, s) for c, s in zip(curves, scores, strict=True) if c is not None]
    if not pairs:
        mean = np.mean(scores, axis=0)
        return np.asarray(mean if method == "predict_proba" else expit(mean))
    proba = np.clip(np.mean([curve.predict(s) for curve, s in pairs], axis=0), 0.0, 1.0)
    return apart(proba, np.mean([s for _, s in pairs], axis=0))


def apart(proba: Floats, score: Floats) -> Floats:
    """Return probabilities lowered by at most a billionth, so that equal ones order by score."""
    place = 0.5 + 0.5 * score / (1.0 + np.abs(score))  # between 0 and 1, rising with the score
    return np.asarray(proba * (1.0 - APART * (1.0 - place)))


def _curve(
    form: Any, score: Floats, y: NDArray[np.bool_], weight: Floats | None
) -> ProbabilityCurve | None:
    seen = y if weight is None else y[weight > 0]
    if seen.all() or not seen.any():
        return None
    curve: ProbabilityCurve = _fresh(form)
    weighted = {} if weight is None else {"sample_weight": weight}
    curve.fit(score, y.astype(np.float64), **weighted)
    return curve


def _fresh(form: Any) -> Any:
    if form in ("auto", "isotonic"):
        return IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    return NAMED[form]() if isinstance(form, str) else clone(form, safe=False)


def _finite(scores: Any) -> Floats:
    return np.asarray(np.clip(scores, -HUGE, HUGE))


def _normal(columns: list[Floats], kind: str) -> Floats:
    """Return the columns side by side; the classes of a multiclass row share a total of one."""
    proba = np.stack(columns, axis=1)
    if kind != "multiclass":
        return proba
    total = proba.sum(axis=1, keepdims=True)
    return np.where(total > 0, proba / np.where(total > 0, total, 1.0), 1.0 / proba.shape[1])


def check_form(calibrate: Any) -> Any:
    """Return the form if it is None, a name, or an object that fits and predicts."""
    if calibrate is None or (hasattr(calibrate, "fit") and hasattr(calibrate, "predict")):
        return calibrate
    if calibrate not in FORMS:
        known = ", ".join(map(repr, FORMS))
        raise ValueError(
            f"calibrate must be one of {known}, a regressor or None, got {calibrate!r}"
        )
    return calibrate


def settled(estimator: Any) -> bool:
    """Whether the probabilities are the user's own choice: a frozen or a calibrated classifier."""
    last = last_step(estimator)
    frozen = isinstance(last, FrozenEstimator) and getattr(last.estimator, "settled", True)
    return bool(frozen or isinstance(last, CalibratedClassifierCV))


def taken_as_they_are(calibrate: Any, estimator: Any) -> bool:
    """Whether probabilities are not to be calibrated: none is asked for, or they are settled."""
    return calibrate is None or (calibrate == "auto" and settled(estimator))
