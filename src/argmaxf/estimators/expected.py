"""ML^E: probabilities from any classifier, and the set of labels with the highest expected F."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from argmaxf.estimators.base import MetaFClassifier, macro_gain
from argmaxf.expected.decision import Decision
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.validation import check_beta, check_choice

TINY = np.finfo(np.float64).tiny  # the margin of an item tied with one decided the other way


class ExpectedFClassifier(MetaFClassifier):
    """A classifier that predicts the labels with the highest expected F_β (ML^E in the paper).

    `predict(X)` decides all rows of X together: what is selected depends on the whole batch, and
    two halves of a batch predicted apart may get other labels. That is the method. Give it the set
    over which F will be measured.

    Parameters
    ----------
    estimator : a classifier with `predict_proba`; its probabilities are taken at their word, so
        calibrate one whose are not (`CalibratedClassifierCV`). Fitted ones go inside
        `FrozenEstimator`
    beta : weight of recall against precision
    average : what F means for a multilabel target: `"macro"` decides each label over the batch,
        `"samples"` each row over its labels, `"micro"` all cells together. Multiclass targets are
        decided one class against the rest, each row then going to one class
    zero_division : F of predicting nothing where there is nothing to find
    pos_label : the class F counts in a binary target; by default the last in sorted order

    Attributes
    ----------
    estimators_ : the classifier fitted; one per label where it cannot hold them all
    """

    def __init__(
        self,
        estimator: Any,
        *,
        beta: float = 1.0,
        average: str = "macro",
        zero_division: float = 0.0,
        pos_label: Any = None,
    ) -> None:
        self.estimator = estimator
        self.beta = beta
        self.average = average
        self.zero_division = zero_division
        self.pos_label = pos_label

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier; there is nothing else to learn."""
        check_beta(self.beta)
        check_choice("average", self.average, ("macro", "micro", "samples"))
        target, weight = self._read(X, y, sample_weight)
        self._fit_scorer(X, target, self._fit_params(weight), ("predict_proba",))
        return self

    def decide(self, X: Any) -> Decision:
        """Return the decision for the batch X: the labels, their expected F and its spread."""
        check_is_fitted(self)
        proba = self._scorer.predict(X)
        return self._decide(proba[:, 0] if self._labels.kind == "binary" else proba)

    def _decide(self, proba: NDArray[np.float64]) -> Decision:
        average = None if self._labels.kind == "binary" else self._average()
        return maximize_expected_f(
            proba, beta=self.beta, average=average, zero_division=self.zero_division
        )

    def _average(self) -> str:
        return "macro" if self._labels.kind == "multiclass" else self.average

    def _margin(self, X: Any) -> NDArray[np.float64]:
        proba = self._scorer.predict(X)
        decision = self._decide(proba[:, 0] if self._labels.kind == "binary" else proba)
        selected = np.asarray(decision.selected).reshape(proba.shape)
        margin = signed(proba - boundary(proba, selected, self._average()), selected)
        if self._labels.kind == "multiclass":
            margin = margin * macro_gain(selected.sum(axis=0), proba.sum(axis=0), self.beta)
        return margin

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the wrapped classifier's probabilities: of each class, or of each label."""
        check_is_fitted(self)
        return self._labels.both(self._scorer.predict(X))


def boundary(proba: Any, selected: Any, average: str) -> Any:
    """Return the probability midway between the selected and the others of each decision."""
    axis = {"macro": 0, "samples": 1, "micro": None}[average]
    lowest = np.min(np.where(selected, proba, 1.0), axis=axis, keepdims=True)
    highest = np.max(np.where(selected, 0.0, proba), axis=axis, keepdims=True)
    return (lowest + highest) / 2


def signed(margin: Any, selected: Any) -> NDArray[np.float64]:
    """Return margins whose sign is the decision, also for items tied across the boundary."""
    return np.asarray(np.where(selected, np.maximum(margin, TINY), np.minimum(margin, -TINY)))
