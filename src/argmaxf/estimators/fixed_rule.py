"""What a classifier with fixed thresholds computes, as data: what every export is made from.

The probability of a label is the mean over models of a curve of each model's score; a label is
predicted where it reaches the threshold, and of competing classes the one with the largest margin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from argmaxf._base.arrays import Bools, Floats
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.scores import Score

LARGEST = 1e300  # what stands for the infinite scores of labels with one value in training


@dataclass(frozen=True)
class Column:
    """The probability of a label, or its score: the mean of the curves of scores.

    Without curves it is the mean of the scores; `logistic` makes it a probability.
    """

    scores: list[Score]
    curves: list[Any]
    logistic: bool = False

    @property
    def pairs(self) -> list[tuple[Score, Any]]:
        """Each score with its curve, None where there are none."""
        return [*zip(self.scores, self.curves or [None] * len(self.scores), strict=True)]


@dataclass(frozen=True)
class FixedRule:
    """Probabilities or scores of each label, and the thresholds on them.

    The probabilities of several members, each one column for each label, are averaged, and those of
    a multiclass target brought to a sum of 1 before and after that where they are calibrated.
    """

    labels: Labels
    members: list[list[Column]]
    threshold: Floats
    gain: Floats  # what a margin is worth to each class of a multiclass target
    odds: Floats | None = None  # by which the rate in deployment multiplies those of each label
    on_scores: bool = False  # and not on probabilities
    rows: int | None = None  # of training
    positives: list[int] | None = None  # of each label in them

    @classmethod
    def of(cls, labels: Labels, members: Any, threshold: Any, gain: Any, **rest: Any) -> FixedRule:
        """Return the rule with one threshold and gain for each label."""
        seen = dict(zip(("rows", "positives"), rest.pop("seen", ()), strict=False))
        rule = cls(labels, members, np.empty(0), np.empty(0), **seen, **rest)
        return replace(rule, threshold=rule.spread(threshold), gain=rule.spread(gain))

    def spread(self, values: Any) -> Floats:
        """Return one value for each label."""
        return np.broadcast_to(np.asarray(values, dtype=np.float64), len(self.labels.names))

    def behind(self, pipeline: Pipeline) -> FixedRule:
        """Return the rule behind the transformers of a pipeline whose last step it is of."""
        before = pipeline[:-1].steps

        def behind(model: Any) -> Any:
            return Pipeline([*before, ("classifier", model)])

        members = [
            [replace(c, scores=[replace(s, model=behind(s.model)) for s in c.scores]) for c in each]
            for each in self.members
        ]
        return replace(self, members=members)


def counted(columns: Bools, weight: Floats | None) -> tuple[int, list[int]]:
    """Return how many rows count, and the positives of each label in them."""
    seen = columns if weight is None else columns[weight > 0]
    return len(seen), seen.sum(axis=0).tolist()


def columns_of(scorer: Any, method: str) -> list[Column]:
    """Return the columns of a `LabelScorer`."""
    every = range(len(scorer.labels.names))
    return [Column([Score.of(scorer, label, method)], []) for label in every]


def linear_model(coef: Any, intercept: Any, classes: Any, kind: Any = LogisticRegression) -> Any:
    """Return a fitted linear model of scikit-learn with this decision function."""
    model = kind()
    model.coef_ = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    model.intercept_ = np.atleast_1d(np.asarray(intercept, dtype=np.float64))
    model.classes_, model.n_features_in_ = np.asarray(classes), model.coef_.shape[1]
    model.n_iter_ = np.zeros(1, dtype=np.int32)
    return model


def without_argmaxf(model: Any) -> Any:
    """Return a fitted model with scikit-learn's classes in place of those of this package."""
    if isinstance(model, FrozenEstimator):
        return FrozenEstimator(without_argmaxf(model.estimator))
    if isinstance(model, Pipeline):
        *steps, (name, last) = model.steps
        return Pipeline([*steps, (name, without_argmaxf(last))])
    if not hasattr(model, "fixed_rule"):
        return model
    rule = model.fixed_rule()
    scores = [column.scores[0] for column in rule.members[0]]  # of linear models, read by others
    lines = [(s.model.coef_[0], s.model.intercept_[0], s.sign) for s in scores]
    shifted = [b - sign * t for (_, b, sign), t in zip(lines, rule.threshold, strict=True)]
    shifted = np.clip(shifted, -LARGEST, LARGEST)
    if rule.labels.is_binary:
        return linear_model(lines[0][0], shifted[0], rule.labels.classes)
    return linear_model([coef for coef, _, _ in lines], shifted, rule.labels.classes, LinearSVC)
