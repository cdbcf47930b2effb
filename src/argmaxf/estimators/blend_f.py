"""Two models blended: the classifier, and a linear one trained for F."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from argmaxf._base.arrays import Floats
from argmaxf.estimators.calibration import warn_about_weights, weights_silenced
from argmaxf.estimators.expected_f import ExpectedFClassifier
from argmaxf.estimators.folds import too_rare
from argmaxf.estimators.joint_decision import JointDecisionMixin
from argmaxf.estimators.labels import Labels, constants_silenced
from argmaxf.estimators.linear_f import SoftFClassifier
from argmaxf.estimators.meta import TrainingData
from argmaxf.estimators.scores import HeldOutScores, is_precomputed, requesting_weights
from argmaxf.estimators.shift import TargetPrior


@dataclass(eq=False, repr=False)
class BlendFClassifier(JointDecisionMixin):
    """A classifier with the highest expected F_β by the mean of two models; experimental.

    The probability of a row is the mean of the classifier's and of those of a linear model trained
    for F (`SoftFClassifier`), each calibrated on held-out rows. The two make different errors: on
    real imbalanced sets their mean beat each of them (docs/background/method-study.md). As with
    `ExpectedFClassifier`, `predict(X)` decides all rows of X jointly; use `freeze` for single rows.

    Both models are fitted once for each fold. Parameters of `fit` are passed on to the classifier;
    the linear model gets the weights only.

    Parameters
    ----------
    estimator : estimator
        The classifier. If it is a pipeline, the linear model shares its preprocessing.
    other : estimator, default=None
        The model to blend with it; by default the linear one.
    measure : str, Measure or callable, default="f1"
        What to maximize: F_β such as ``"f2"``, ``"jaccard"``, or a ratio of `argmaxf.measures`.
    cv : int, float, splitter object or list of splits, default=5
        How rows are held out, as in `ThresholdFClassifier`.
    deploy_rate : float, array-like of float, "estimate" or None, default=None
        The rate of positives where it predicts, as in `ExpectedFClassifier`.
    pos_label : scalar, default=None
        The class F counts in a binary target; by default the last in sorted order.

    Attributes
    ----------
    members_ : list of ExpectedFClassifier
        The classifier and the linear model, calibrated.
    """

    estimator: Any
    _: KW_ONLY
    other: Any = None
    measure: Any = "f1"
    cv: Any = 5
    deploy_rate: Any = None
    pos_label: Any = None

    def _fit(self, rows: TrainingData) -> None:
        models: list[tuple[Any, dict[str, Any]]] = [(self.estimator, rows.params)]
        if not too_rare(rows.columns).all():  # calibration needs rows of both classes
            other = self.other
            if other is None:
                linear = SoftFClassifier(measure=self.measure, pos_label=self.pos_label)
                other = in_place_of_last(self.estimator, linear)
            models.append((other, {}))
        if not is_precomputed(self.estimator):  # a comparison warns once
            warn_about_weights(rows.columns, rows.weight, self.deploy_rate)
        self._prior = TargetPrior.of(self.deploy_rate, self._labels, rows.columns, rows.weight)
        self._warned = False
        how = {"measure": self.measure, "cv": self.cv, "pos_label": self.pos_label}
        with constants_silenced(), weights_silenced():
            self._blend(
                [
                    ExpectedFClassifier(model, **how).fit(
                        rows.X, rows.target, rows.weight, groups=rows.groups, **params
                    )
                    for model, params in models
                ]
            )

    def _blend(self, members: list[ExpectedFClassifier]) -> None:
        self.members_, self.calibration_ = members, members[0].calibration_
        self._use(MeanProbability(members, self._labels))
        known = [m.held_out_proba_ for m in members if m.held_out_proba_ is not None]
        self.held_out_proba_ = np.mean(known, axis=0) if len(known) == len(members) else None
        issues = [m.calibration_issue_ for m in members if m.calibration_issue_ is not None]
        self.calibration_issue_ = issues[0] if issues else None

    def _replace_models(self, *held_out: HeldOutScores) -> None:
        pairs = zip(self.members_, held_out, strict=False)
        self._blend([member.use_models(scores) for member, scores in pairs])


@dataclass(frozen=True)
class MeanProbability:
    """The mean of the probabilities of several classifiers."""

    members: list[ExpectedFClassifier]
    labels: Labels

    @property
    def models_(self) -> list[Any]:
        """The fitted models of all members."""
        return [model for member in self.members for model in member.estimators_]

    def predict(self, X: Any) -> Floats:
        """Return the mean probability of each label, (n, n_columns)."""
        each = [self.labels.one(member.predict_proba(X)) for member in self.members]
        return np.asarray(np.mean(each, axis=0))


def in_place_of_last(estimator: Any, classifier: Any) -> Any:
    """Return `classifier`, behind the preprocessing of `estimator` if that is a pipeline."""
    classifier = requesting_weights(classifier)
    if not isinstance(estimator, Pipeline):
        return classifier
    *steps, (name, _) = clone(estimator).steps
    return Pipeline([*steps, (name, classifier)])
