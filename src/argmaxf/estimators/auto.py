"""The method for the data at hand: both approaches compared on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from argmaxf.estimators.base import MetaFClassifier
from argmaxf.estimators.compare import HeldOut, draw_sets
from argmaxf.estimators.expected import ExpectedFClassifier
from argmaxf.estimators.folds import folds
from argmaxf.estimators.labels import constants_said
from argmaxf.estimators.plain import NEUTRAL, PlainClassifier
from argmaxf.estimators.report import Held, Report, choose
from argmaxf.estimators.shift import Familiar
from argmaxf.estimators.softf import SoftFClassifier
from argmaxf.estimators.threshold import ThresholdFClassifier
from argmaxf.validation import check_beta

NOTHING = "There is nothing to compare: no label has both positives and negatives."


class AutoFClassifier(MetaFClassifier):
    """A classifier that finds out which method gives the highest F_β on the data at hand.

    The candidates are ML^.5 (the classifier as it is), ML^δ (`ThresholdFClassifier`), ML^E
    (`ExpectedFClassifier`), F^δ (`SoftFClassifier`) and any others given. They are compared on
    held-out rows, paired; of those too close to tell apart the one is taken that lost least in our
    measurements (docs/choosing.md). `report_` has the scores and says why. `predict` warns
    (`ShiftWarning`) when a batch looks unlike the training data.

    Parameters
    ----------
    estimator : the classifier that gives the scores; without `predict_proba` there is no ML^E, and
        inside `FrozenEstimator`, where the model is settled, no F^δ
    beta : weight of recall against precision
    cv : folds: a number, a scikit-learn splitter or a list of splits
    set_size : how many rows will be predicted at a time, where F will be measured on such sets.
        Methods are then compared on sets of that size drawn from each fold; by default on whole
        folds
    candidates : further classifiers to compare, by name
    pos_label : the class F counts in a binary target; by default the last in sorted order
    n_jobs : processes for the folds
    random_state : seed of the folds and of the sets

    Attributes
    ----------
    report_ : the comparison, a `Report`; print it
    chosen_ : the name of the method used
    classifier_ : that method, fitted on all rows
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
        """Compare the candidates on held-out rows, and fit the chosen one on all of them."""
        check_beta(self.beta)
        target, weight = self._read(X, y, sample_weight)
        self._fit_scorer(X, target, self._fit_params(weight), tuple(NEUTRAL))
        self.report_ = self._compare(X, target, weight)
        self.chosen_ = self.report_.chosen
        self.classifier_ = _fit(self._method(self.chosen_), X, target, weight)
        return self

    def predict(self, X: Any) -> Any:
        """Return what the chosen method predicts; warn where X looks unlike the training data."""
        check_is_fitted(self)
        self._familiar.warn_if_unlike(X, self.chosen_)
        return self.classifier_.predict(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the chosen method's decision scores."""
        check_is_fitted(self)
        scores: NDArray[np.float64] = self.classifier_.decision_function(X)
        return scores

    def _compare(self, X: Any, target: Any, weight: Any) -> Report:
        columns = self._labels.columns(target)
        if np.all(columns == columns[0]):
            self._familiar = Familiar(self._scorer, self._scorer.predict(X))
            return Report("ML^.5", {}, {}, {}, NOTHING)
        held_out = self._hold_out(X, target, columns, weight)
        rated, notes = self._rate(X, held_out)
        proba = held_out.scores if held_out.method == "predict_proba" else None
        report = choose(rated, columns, proba)
        return replace(report, notes=report.notes + notes)

    def _hold_out(self, X: Any, target: Any, columns: Any, weight: Any) -> HeldOut:
        """Return the folds and sets on which to compare, with the classifier's scores there."""
        splits = folds(self.cv, columns, target, self.random_state)
        if isinstance(self.estimator, FrozenEstimator):
            scores = self._scorer.predict(X)
            self._familiar = Familiar(self._scorer, scores)
        else:
            options = {"n_jobs": self.n_jobs, "params": self._fit_params(weight)}
            scores, models = self._scorer.out_of_fold(X, target, splits, **options)
            self._familiar = Familiar(models[0], models[0].kept_scores_)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        sets = draw_sets(splits, self.set_size, rng)
        method = self._scorer.method
        whole = self.set_size is None
        return HeldOut(self._labels, target, weight, scores, method, splits, sets, whole)

    def _rate(self, X: Any, held_out: HeldOut) -> tuple[dict[str, Held], tuple[str, ...]]:
        """Rate every candidate; one that cannot be trained on X is left out with a note."""
        rated = {
            name: held_out.rate_wrapper(wrap, self.beta) for name, wrap in self._wrappers().items()
        }
        notes = []
        for name, candidate in self._trained().items():
            try:
                rated[name] = held_out.rate_predictions(
                    self._predict_out_of_fold(candidate, X, held_out), self.beta
                )
            except (TypeError, ValueError) as error:
                if name != "F^δ":  # what the user added must work
                    raise
                notes.append(f"F^δ was left out, it needs plain numbers: {error}")
        return rated, tuple(notes)

    def _predict_out_of_fold(self, candidate: Any, X: Any, held_out: HeldOut) -> Any:
        takes = held_out.weight is not None and has_fit_parameter(candidate, "sample_weight")
        params = {"sample_weight": held_out.weight} if takes else {}
        options = {"cv": held_out.splits, "n_jobs": self.n_jobs, "params": params}
        with constants_said():
            return cross_val_predict(candidate, X, held_out.target, **options)

    def _wrappers(self) -> dict[str, Callable[[Any], Any]]:
        """Return the methods that wrap the classifier, as functions of it."""
        options = {"beta": self.beta, "pos_label": self.pos_label}
        seeded = {"n_jobs": self.n_jobs, "random_state": self.random_state}
        methods: dict[str, Callable[[Any], Any]] = {
            "ML^.5": partial(PlainClassifier, pos_label=self.pos_label),
            "ML^δ": partial(ThresholdFClassifier, cv=self.cv, **options, **seeded),
        }
        if self._scorer.method == "predict_proba":
            methods["ML^E"] = partial(ExpectedFClassifier, calibrate=None, **options)
        return methods

    def _trained(self) -> dict[str, Any]:
        """Return the candidates that bring a model of their own."""
        soft = {} if isinstance(self.estimator, FrozenEstimator) else {"F^δ": self._soft()}
        return {**soft, **(self.candidates or {})}

    def _soft(self) -> Any:
        """Return F^δ, behind the same preprocessing where the classifier ends a pipeline."""
        soft = SoftFClassifier(beta=self.beta, pos_label=self.pos_label)
        if not isinstance(self.estimator, Pipeline):
            return soft
        return Pipeline([*clone(self.estimator).steps[:-1], ("softfclassifier", soft)])

    def _method(self, name: str) -> Any:
        wrappers = self._wrappers()
        return wrappers[name](self.estimator) if name in wrappers else clone(self._trained()[name])


def _fit(classifier: Any, X: Any, target: Any, weight: Any) -> Any:
    takes = weight is not None and has_fit_parameter(classifier, "sample_weight")
    with constants_said():
        return classifier.fit(X, target, **({"sample_weight": weight} if takes else {}))
