"""Two models blended: the classifier, and a linear one trained for F."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from argmaxf.estimators.calibration import Calibrated
from argmaxf.estimators.expected_f import ExpectedFClassifier
from argmaxf.estimators.folds import too_rare
from argmaxf.estimators.linear_f import SoftFClassifier
from argmaxf.estimators.meta import route_fit_params
from argmaxf.estimators.scores import HeldOut, TrainingData


class BlendFClassifier(ExpectedFClassifier):
    """A classifier with the highest expected F_β by the mean of two models; experimental.

    The probability of a row is the mean of two: that of the classifier, and that of a linear model
    trained for F (`SoftFClassifier`). Both are calibrated on held-out rows. They make different
    errors: on real imbalanced sets their mean beat each of them
    (docs/background/method-study.md). As with `ExpectedFClassifier`, `predict(X)` decides all rows
    of X jointly; use `freeze` for single rows.

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
    pos_label : as in `FClassifier`

    Attributes
    ----------
    members_ : list of ExpectedFClassifier
        The classifier and the linear model, calibrated.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(600, weights=[0.9], random_state=0)
    >>> BlendFClassifier(GaussianNB()).fit(X, y).decide(X).k
    63
    """

    def __init__(
        self,
        estimator: Any,
        *,
        other: Any = None,
        measure: Any = "f1",
        cv: Any = 5,
        deploy_rate: Any = None,
        pos_label: Any = None,
    ) -> None:
        super().__init__(
            estimator, measure=measure, cv=cv, deploy_rate=deploy_rate, pos_label=pos_label
        )
        self.other = other

    def hold_out(self, rows: TrainingData) -> HeldOut:
        """Fit both models once for each fold; without folds, the classifier alone."""
        held_out = self._member(self.estimator).hold_out(rows)
        if too_rare(rows.columns).all():  # calibration needs rows of both classes
            return held_out
        other = self.other
        if other is None:
            linear = SoftFClassifier(measure=self.measure, pos_label=self.pos_label)
            other = in_place_of_last(self.estimator, linear)
        member = self._member(other)
        params = route_fit_params(member, rows.weight, {})
        return replace(held_out, other=member.hold_out(replace(rows, params=params)))

    def _member(self, model: Any) -> ExpectedFClassifier:
        return ExpectedFClassifier(
            model, measure=self.measure, cv=self.cv, pos_label=self.pos_label
        )

    def _learn_probabilities(self, held_out: HeldOut) -> list[Calibrated]:
        both = [held_out] if held_out.other is None else [held_out, held_out.other]
        members = [self._member(each.model.estimator).learn(each) for each in both]
        self.members_, self.calibration_ = members, members[0].calibration_
        known = [m.held_out_proba_ for m in members if m.held_out_proba_ is not None]
        self.held_out_proba_ = np.mean(known, axis=0) if len(known) == len(members) else None
        issues = [m.calibration_issue_ for m in members if m.calibration_issue_ is not None]
        self.calibration_issue_ = issues[0] if issues else None
        return [each for member in members for each in member.probability_rule().members]


def in_place_of_last(estimator: Any, classifier: Any) -> Any:
    """Return `classifier`, behind the preprocessing of `estimator` if that is a pipeline."""
    if get_config()["enable_metadata_routing"]:
        classifier = classifier.set_fit_request(sample_weight=True)
    if not isinstance(estimator, Pipeline):
        return classifier
    *steps, (name, _) = clone(estimator).steps
    return Pipeline([*steps, (name, classifier)])
