"""The general F maximizer as a classifier: dependent labels of a row, decided together."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from argmaxf._base.arrays import Floats
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.linear_f import check_fbeta
from argmaxf.estimators.meta import MetaFClassifier, signed
from argmaxf.estimators.scores import (
    LabelScorer,
    TrainingData,
    joined,
    response_method,
    share_features,
)
from argmaxf.expected.decision import Decision
from argmaxf.expected.dependent import JointDecision, decide
from argmaxf.expected.joint_models import JointParameters
from argmaxf.problem import Problem


@dataclass(eq=False, repr=False)
class JointFClassifier(MetaFClassifier):
    """A multilabel classifier with the highest expected F_β of each row, for dependent labels.

    One model is trained for each label. Its classes are 0, where the label is negative, and else
    the number of positive labels of the row: 1, 2, …. One more model predicts rows without labels.
    Their probabilities P(y_i = 1, S = s | x) are all that the expected F of a row depends on
    (Dembczyński et al. 2011, 2013).

    `ExpectedFClassifier(average="samples")` does the same for labels that are independent given the
    row, with fewer classes to learn. On the usual data sets it is at least as good
    (docs/dependent-labels.md); this classifier is for labels that depend on each other strongly.

    Parameters
    ----------
    estimator : estimator
        A multiclass classifier with `predict_proba`.
    measure : str or FBeta, default="f1"
        The F_β to maximize, such as ``"f2"``.
    zero_division : float, default=0.0
        F of a row without labels for which none is predicted.
    pos_label : as in `FClassifier`

    Attributes
    ----------
    estimators_ : list of estimator
        The model of each label, in order, then the one of "none".
    counts_ : ndarray of int
        The numbers of labels 1 … s that occur in a row.

    Notes
    -----
    Binary and multiclass targets have exactly one class in each row; the best answer is then the
    most probable class, as the wrapped classifier predicts it. Labels are fitted in parallel inside
    ``joblib.parallel_config(n_jobs=4)``.

    References
    ----------
    Dembczyński, Waegeman, Cheng & Hüllermeier, "An exact algorithm for F-measure maximization",
    NIPS 2011; Dembczyński, Jachnik, Kotłowski, Waegeman & Hüllermeier, "Optimizing the F-measure in
    multi-label classification: plug-in rule approach versus structured loss minimization", ICML
    2013.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, Y = make_multilabel_classification(200, n_classes=3, random_state=0)
    >>> JointFClassifier(LogisticRegression(max_iter=1000)).fit(X, Y).predict(X[:2])
    array([[0, 1, 0],
           [0, 1, 0]])
    """

    estimator: Any
    _: KW_ONLY
    measure: Any = "f1"
    zero_division: float = 0.0
    pos_label: Any = None
    _holds_out = False

    def _fit(self, rows: TrainingData) -> None:
        check_fbeta(self._measure())
        self._problem = Problem.of(measure=self._measure(), zero_division=self.zero_division)
        response_method(self.estimator, ("predict_proba",))
        labels, targets = [self._labels], [rows.target]
        if self._labels.is_multilabel:
            if isinstance(self.estimator, FrozenEstimator):
                raise ValueError(
                    "JointFClassifier trains a model for each label: it cannot be frozen"
                )
            total = rows.target.sum(axis=1)  # "this label, and how many in all"; then "none"
            self.counts_ = np.arange(1, max(1, int(total.max())) + 1)
            classes = [self.counts_] * rows.target.shape[1] + [np.ones(1, np.int64)]
            labels = [Labels("multiclass", each) for each in classes]
            targets = [*(label * total for label in rows.target.T), (total == 0).astype(np.int64)]
        self._shared, rest, X = None, self.estimator, rows.X
        if rows.params.keys() <= {"sample_weight"}:
            self._shared, rest, X = share_features(self.estimator, X)
        scorers = [LabelScorer(rest, each) for each in labels]
        self._scorers: list[LabelScorer] = Parallel()(
            delayed(scorer.fit)(X, y, **rows.params)
            for scorer, y in zip(scorers, targets, strict=True)
        )
        self._show_models([joined(self._shared, scorer.models_[0]) for scorer in self._scorers])

    def decide(self, X: Any) -> Decision | JointDecision:
        """Return a `JointDecision`: the labels of each row and their expected F.

        Expected values rest on the models' probabilities; as the models are trained separately,
        these need not fit one distribution. Of other targets than multilabel ones it is a
        `Decision` about all rows, without an expected F.
        """
        check_is_fitted(self)
        if not self._labels.is_multilabel:
            return super().decide(X)
        return decide(JointParameters(*self._parameters(X), self._problem))

    def _proba(self, X: Any) -> Floats:
        if not self._labels.is_multilabel:
            return self._scores(X)[0]
        return np.asarray(np.minimum(self._parameters(X)[0].sum(axis=2), 1.0))

    def _margin(self, X: Any) -> Floats:
        if not self._labels.is_multilabel:
            return self._proba(X) - (0.5 if self._labels.is_binary else 0.0)
        decision: Any = self.decide(X)
        return signed(decision.contribution, decision.selected, "samples")

    def _parameters(self, X: Any) -> tuple[Floats, Floats]:
        """Return P(y_i = 1, S = s | x), rows × labels × counts, and P(S = 0 | x)."""
        *joint, empty = self._scores(X)
        return np.stack(joint, axis=1), empty[:, 0]

    def _scores(self, X: Any) -> list[Floats]:
        X = X if self._shared is None else self._shared.transform(X)
        return [scorer.scores(X, "predict_proba") for scorer in self._scorers]
