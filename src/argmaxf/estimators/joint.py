"""The general F maximizer as a classifier: labels of one row decided together, as they depend."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from argmaxf.estimators.labels import Labels
from argmaxf.estimators.scores import LabelScorer, response_method
from argmaxf.estimators.sides import boundary, signed
from argmaxf.estimators.wrapping import MetaFClassifier, Training
from argmaxf.expected.dependent import JointDecision, decide
from argmaxf.expected.joint_models import JointParameters
from argmaxf.problem import Problem


class JointFClassifier(MetaFClassifier):
    """A multilabel classifier with the highest expected F_β of each row, labels being dependent.

    For every label one model is trained on "is it positive, and how many labels are in all": a
    multinomial problem with the classes no, 1, 2, …; and one model on "is there none". Their
    probabilities P(y_i = 1, S = s | x) are all that the expected F of a row depends on
    (Dembczyński et al. 2011, 2013).

    `ExpectedFClassifier(average="samples")` does the same for labels that are independent given the
    row, with fewer classes to learn. On the usual data sets it is at least as good
    (docs/dependent-labels.md); this classifier is for labels that depend on each other strongly.

    Parameters
    ----------
    estimator : estimator
        A multiclass classifier with `predict_proba`.
    beta : float, default=1.0
        Weight of recall against precision.
    zero_division : float, default=0.0
        F of a row without labels for which none is predicted.
    pos_label : object, default=None
        The class F counts in a binary target; by default the last in sorted order.
    n_jobs : int, default=None
        How many models are trained at a time.

    Attributes
    ----------
    estimators_ : list of estimator
        The model of each label, in order, then the one of "none".
    counts_ : ndarray of int
        The numbers of labels 1 … s that occur in a row.

    Notes
    -----
    Binary and multiclass targets have exactly one class in each row; the best answer is then the
    most probable class, as the wrapped classifier predicts it.

    References
    ----------
    Dembczyński, Waegeman, Cheng & Hüllermeier, "An exact algorithm for F-measure maximization",
    NIPS 2011; Dembczyński, Jachnik, Kotłowski, Waegeman & Hüllermeier, "Optimizing the F-measure in
    multi-label classification: plug-in rule approach versus structured loss minimization", ICML
    2013.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        beta: float = 1.0,
        zero_division: float = 0.0,
        pos_label: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.beta = beta
        self.zero_division = zero_division
        self.pos_label = pos_label
        self.n_jobs = n_jobs

    def _fit(self, rows: Training) -> None:
        self._problem()
        params = self._fit_params(rows.weight, rows.all_params())
        if self._labels.kind != "multilabel-indicator":
            self._fit_scorer(rows, params, ("predict_proba",))
        elif isinstance(self.estimator, FrozenEstimator):
            raise ValueError("JointFClassifier trains a model for each label: it cannot be frozen")
        else:
            self._fit_counts(rows.X, rows.target, params)

    def decide(self, X: Any) -> JointDecision:
        """Return the decision for each row of a multilabel problem, and what to expect of it.

        Expected values are what the models say; trained apart, they need not fit one distribution.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to decide.

        Returns
        -------
        JointDecision
            One decision for each row.
        """
        check_is_fitted(self)
        if self._labels.kind != "multilabel-indicator":
            raise ValueError(f"decide is for multilabel targets, got a {self._labels.kind} one")
        problem = self._problem()
        joint, none = self._parameters(X)
        source = JointParameters(joint, none, problem.beta, problem.zero_division)
        return decide(source, problem)

    def _proba(self, X: Any) -> NDArray[np.float64]:
        if self._labels.kind == "multilabel-indicator":
            return np.asarray(np.minimum(self._parameters(X)[0].sum(axis=2), 1.0))
        return super()._proba(X)

    def _margin(self, X: Any) -> NDArray[np.float64]:
        if self._labels.kind == "multilabel-indicator":
            decision = self.decide(X)
            worth, selected = decision.contribution, decision.selected
            return signed(worth - boundary(worth, selected, "samples"), selected)
        proba: NDArray[np.float64] = self._scorer.predict(X)
        return proba - 0.5 if self._labels.kind == "binary" else proba

    def _problem(self) -> Problem:
        return Problem.of(self.beta, "fbeta", self.zero_division)

    def _fit_counts(self, X: Any, target: NDArray[np.int64], params: dict[str, Any]) -> None:
        """Fit the models of "this label, and how many in all"."""
        method = response_method(self.estimator, ("predict_proba",))
        total = target.sum(axis=1)
        self.counts_ = np.arange(1, max(1, int(total.max())) + 1)
        counted = LabelScorer(self.estimator, Labels("multiclass", self.counts_), method)
        empty = LabelScorer(self.estimator, Labels("multiclass", np.ones(1, np.int64)), method)
        problems = [(counted, label * total) for label in target.T]
        problems.append((empty, (total == 0).astype(np.int64)))
        self._scorers: list[LabelScorer] = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_copy)(scorer, X, classes, params) for scorer, classes in problems
        )
        self._show([scorer.models_[0] for scorer in self._scorers])

    def _parameters(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return P(y_i = 1, S = s | x), rows × labels × counts, and P(S = 0 | x)."""
        *labels, empty = self._scorers
        joint = np.stack([scorer.predict(X) for scorer in labels], axis=1)
        return joint, empty.predict(X)[:, 0]


def _fit_copy(scorer: LabelScorer, X: Any, y: Any, params: dict[str, Any]) -> LabelScorer:
    return LabelScorer(scorer.estimator, scorer.labels, scorer.method).fit(X, y, **params)
