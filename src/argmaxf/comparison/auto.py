"""The method for the data at hand: AutoFClassifier compares them, and uses the one that suits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from argmaxf.comparison.compare import names_of
from argmaxf.comparison.judge import judge
from argmaxf.comparison.methods import METHODS, Recipe, taking_part
from argmaxf.comparison.result import nothing_compared
from argmaxf.comparison.trial import Trial
from argmaxf.estimators.base import MetaFClassifier
from argmaxf.estimators.labels import constants_said
from argmaxf.estimators.shift import Familiar
from argmaxf.validation import check_beta


class AutoFClassifier(MetaFClassifier):
    """A classifier that finds out which method gives the highest F_β on the data at hand.

    The candidates are the classifier as it is (cut at 0.5), with a tuned threshold
    (`ThresholdFClassifier`), with the highest expected F (`ExpectedFClassifier`), a model trained
    for F (`SoftFClassifier`) and any others given. They are compared on held-out rows, paired; of
    those too close to tell apart the one is taken that lost least in our measurements
    (docs/choosing.md). `report_` has the scores and says why. `predict` warns (`ShiftWarning`) when
    a batch looks unlike the training data.

    Cost: the classifier is fitted once for each fold and once on all rows; a method that trains its
    own model once for each fold, and once more where it is chosen.

    Parameters
    ----------
    estimator : estimator
        What gives the scores; without `predict_proba` expected F is not tried, and inside
        `FrozenEstimator`, where the model is settled, no other model is.
    beta : float, default=1.0
        The weight of recall against precision.
    cv : int, splitter object or list of splits, default=5
        How rows are held out.
    set_size : int, default=None
        How many rows will be predicted at a time, where F will be measured on such sets. Methods
        are then compared on sets of that size drawn from each fold; by default on whole folds.
    candidates : dict of str to estimator, default=None
        Further classifiers to compare, by name.
    pos_label : scalar, default=None
        The class F counts in a binary target; by default the last in sorted order.
    n_jobs : int, default=None
        Processes for the fits.
    random_state : int, RandomState or None, default=0
        Seed of the folds and of the sets.

    Attributes
    ----------
    report_ : Comparison
        The comparison; print it.
    chosen_ : str
        The plain name of the method used.
    classifier_ : estimator
        That method, fitted on all rows.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        beta: float = 1.0,
        cv: Any = 5,
        set_size: int | None = None,
        candidates: Mapping[str, Any] | None = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.beta = beta
        self.cv = cv
        self.set_size = set_size
        self.candidates = candidates
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Compare the methods on held-out rows, and fit the chosen one on all of them.

        Parameters
        ----------
        X : array-like, frame or sparse matrix
            Rows to learn from, as the classifier takes them.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Their target.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts, in training and in F.

        Returns
        -------
        AutoFClassifier
            Itself.
        """
        check_beta(self.beta)
        target, weight = self._read(X, y, sample_weight)
        recipe = Recipe(self.beta, self.pos_label, self.cv, self.n_jobs, self.random_state)
        counted = self._labels.columns(target if weight is None else target[weight > 0])
        if np.all(counted == counted[0]):
            return self._fit_plain(X, target, weight, recipe)
        methods, params = taking_part(None, self.candidates), self._fit_params(weight)
        common = (X, target, self._labels, weight, self.estimator, recipe, methods, params)
        trial = Trial(*common, needs_model=True)
        trial.run()
        report = judge(trial, self.set_size, names_of(y, self._labels))
        self.report_ = replace(report, evidence=None)  # a model need not carry its training rows
        self.chosen_ = report.chosen
        self.classifier_ = trial.fitted(trial.method(report.chosen))
        self._remember(trial.model, trial.first, trial.first_scores)
        return self

    def _fit_plain(self, X: Any, target: Any, weight: Any, recipe: Recipe) -> Self:
        """Fit the classifier as it is: no label has both positives and negatives."""
        plain = METHODS["plain"]
        with constants_said():
            self.classifier_ = plain.make(self.estimator, recipe).fit(X, target, weight)
        self.chosen_ = plain.name
        self.report_ = nothing_compared(self.beta, self._labels.kind, plain.name)
        model = self.classifier_._scorer
        self._remember(model, model, model.predict(X))
        return self

    def _remember(self, model: Any, unseen: Any, scores: NDArray[np.float64]) -> None:
        """Show the model, and keep how one that has not seen some rows scores them."""
        self._show(model.models_)
        self._familiar = Familiar(unseen, scores)

    def predict(self, X: Any) -> Any:
        """Return what the chosen method predicts; warn where X looks unlike the training data.

        Parameters
        ----------
        X : array-like, frame or sparse matrix
            Rows to decide, as the classifier takes them.

        Returns
        -------
        ndarray or sparse matrix
            One label for each row, or a row of 0/1 labels.
        """
        check_is_fitted(self)
        self._familiar.warn_if_unlike(X, self.chosen_)
        return self.classifier_.predict(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the chosen method's decision scores.

        Parameters
        ----------
        X : array-like, frame or sparse matrix
            Rows to decide, as the classifier takes them.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Not negative where the label is predicted.
        """
        check_is_fitted(self)
        scores: NDArray[np.float64] = self.classifier_.decision_function(X)
        return scores
