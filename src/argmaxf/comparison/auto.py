"""The method for the data at hand: AutoFClassifier compares them, and uses the one that suits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from argmaxf._base.validation import check_count_if_given
from argmaxf.comparison.compare import names_of
from argmaxf.comparison.fits import without_advice
from argmaxf.comparison.judge import judge
from argmaxf.comparison.learned import fitted
from argmaxf.comparison.methods import METHODS, checked_candidates, taking_part
from argmaxf.comparison.recipe import Recipe
from argmaxf.comparison.result import nothing_compared
from argmaxf.comparison.trial import Trial, nothing_to_tell
from argmaxf.constraints import Constraints
from argmaxf.estimators.deployed import check_deploy_rate
from argmaxf.estimators.doubts import warn_of_weights
from argmaxf.estimators.labels import constants_said
from argmaxf.estimators.rowwise import RowwiseFClassifier
from argmaxf.estimators.shift import Familiar
from argmaxf.estimators.wrapping import MetaFClassifier, Training
from argmaxf.measures import MeasureLike


class AutoFClassifier(MetaFClassifier):
    """A classifier that finds out which method gives the highest F_β on the data at hand.

    The candidates are the classifier as it is (cut at 0.5), with a tuned threshold
    (`ThresholdFClassifier`), with the highest expected F (`ExpectedFClassifier`), a model trained
    for F (`SoftFClassifier`), the blend of the last two (`BlendFClassifier`) and any others given.
    They are compared on held-out rows, paired; of those too close to tell apart the one is taken
    that lost least in our measurements, the blend where there is one (docs/choosing.md). `report_`
    has the scores and says why. `predict` warns (`ShiftWarning`) when a batch looks unlike the
    training data. There is no budget (`max_selected`) to give: `ExpectedFClassifier` takes one.

    Cost: the classifier is fitted once for each fold and once on all rows; a method that trains its
    own model once for each fold, and once more where it is chosen.

    Parameters
    ----------
    estimator : estimator
        What gives the scores; those of one without `predict_proba` are calibrated for expected F.
        Inside `FrozenEstimator`, where the model is settled, no other model is tried.
    beta : float, default=1.0
        The weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        What to maximize: a name, an object of `argmaxf.measures`, or a function.
    cv : int, float, splitter object or list of splits, default=5
        How rows are held out. A share such as 0.2 holds out that part of them once, and the
        classifier that predicts is trained on the others alone.
    set_size : int, default=None
        How many rows will be predicted at a time, where F will be measured on such sets. Methods
        are then compared on sets of that size drawn from each fold; by default on whole folds. 1
        is a stream: methods are compared by the F of all rows, each decided alone, and the one
        chosen decides so.
    candidates : dict of str to estimator, default=None
        Further classifiers to compare, by names that no method of ours has.
    min_precision : float, default=None
        The least precision to be promised: only methods that can promise take part.
    min_recall : float, default=None
        The least recall to be promised.
    max_selected_rate : float, default=None
        The largest part of the rows that may be predicted positive, promised too. Expected F keeps
        it in every batch.
    confidence_level : float, default=None
        With what probability: over draws of the rows for a tuned threshold, under the model for
        expected F (its `confidence_level`).
    deploy_rate : float, array-like of float, "estimate" or None, default=None
        The rate of positives where it predicts, if that is another than in training; of a
        multiclass target the share of each class. Methods are compared on rows weighted to that
        rate, and each is made for it: models that are trained for F get those weights. With
        `"estimate"`, the most likely rate of each batch, only expected F and the tuned threshold
        take part, which can follow it. There is no `ShiftWarning` then: the difference is known.
        Not for multilabel targets, whose rows cannot be weighted for all labels at once.
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

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(2000, weights=[0.95], class_sep=0.7, random_state=0)
    >>> auto = AutoFClassifier(LogisticRegression()).fit(X, y)
    >>> list(auto.report_.scores)
    ['cut at 0.5', 'tuned threshold', 'expected F', 'trained for F', 'blended F']
    >>> auto.chosen_ in auto.report_.scores
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        cv: Any = 5,
        set_size: int | None = None,
        candidates: Mapping[str, Any] | None = None,
        min_precision: float | None = None,
        min_recall: float | None = None,
        max_selected_rate: float | None = None,
        confidence_level: float | None = None,
        deploy_rate: Any = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.beta = beta
        self.measure = measure
        self.cv = cv
        self.set_size = set_size
        self.candidates = candidates
        self.min_precision = min_precision
        self.min_recall = min_recall
        self.max_selected_rate = max_selected_rate
        self.confidence_level = confidence_level
        self.deploy_rate = deploy_rate
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, rows: Training) -> None:
        self._check_rate()
        check_count_if_given("set_size", self.set_size)
        checked_candidates(self.candidates)
        warn_of_weights(rows.columns, rows.weight, self.deploy_rate)
        recipe = self._recipe()
        if nothing_to_tell(self._labels, rows.target, rows.weight):
            self._fit_plain(rows, recipe)
            return
        trial = self._trial(rows, recipe)
        trial.run()
        report = judge(trial, self.set_size, names_of(rows.y, self._labels))
        self.report_ = replace(report, evidence=None)  # a model need not carry its training rows
        self.chosen_ = report.chosen
        self.classifier_ = fitted(trial, trial.method(report.chosen))
        if trial.stream and hasattr(self.classifier_, "freeze"):
            with without_advice():
                self.classifier_ = self.classifier_.freeze()
        self._remember(trial.model, trial.familiar)

    def _recipe(self) -> Recipe:
        """Return how methods are to be made."""
        options = (self.pos_label, self.cv, self.n_jobs, self.random_state)
        limits = Constraints(self.min_precision, self.min_recall, self.max_selected_rate)
        rate = {"deploy_rate": self.deploy_rate}
        return Recipe(
            self.beta, self.measure, *options, limits, self.confidence_level, **rate
        ).checked()

    def _trial(self, rows: Training, recipe: Recipe) -> Trial:
        """Return the comparison that is to be run."""
        return Trial(
            rows.X,
            rows.target,
            self._labels,
            rows.weight,
            self.estimator,
            recipe,
            taking_part(None, self.candidates, self._asked()),
            self._fit_params(rows.weight, rows.params),
            needs_model=True,
            stream=self.set_size == 1,
            groups=rows.groups,
        )

    def _check_rate(self) -> None:
        """Refuse rates of labels that share rows, and those that single rows cannot show."""
        check_deploy_rate(self.deploy_rate, self._labels)
        if self.deploy_rate is not None and self._labels.kind == "multilabel-indicator":
            raise ValueError(
                "deploy_rate of AutoFClassifier is for binary and multiclass targets: rows cannot "
                "be weighted for all labels at once; ExpectedFClassifier takes one for each label"
            )
        if isinstance(self.deploy_rate, str) and self.set_size == 1:
            raise ValueError(
                "set_size=1 decides each row alone, and one row shows no rate: give deploy_rate a "
                "number, or freeze a classifier on rows like those to come"
            )

    def _fit_plain(self, rows: Training, recipe: Recipe) -> None:
        """Fit the classifier as it is: no label has both positives and negatives."""
        plain = METHODS["plain"]
        with constants_said():
            self.classifier_ = plain.make(self.estimator, recipe).fit(
                rows.X, rows.target, rows.weight, **rows.params
            )
        self.chosen_ = plain.name
        self.report_ = nothing_compared(recipe.chance, self._labels.kind, plain.name)
        model = self.classifier_._scorer
        self._remember(model, Familiar([model], model.predict(rows.X)))

    def _remember(self, model: Any, familiar: Familiar) -> None:
        """Show the model fitted on all rows, and keep what scores of like batches look like."""
        self._scorer, self._familiar = model, familiar
        self._show(model.models_)

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
        if self.deploy_rate is None:
            self._familiar.warn_if_unlike(X, self.chosen_)
        return self.classifier_.predict(X)

    def _has_probabilities(self) -> bool:
        """Whether the method chosen has probabilities, or else the classifier."""
        chosen = getattr(self, "classifier_", None)
        return hasattr(chosen, "predict_proba") or super()._has_probabilities()

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the method chosen, or of the classifier where it has none.

        Parameters
        ----------
        X : array-like, frame or sparse matrix
            The rows, as the classifier takes them.

        Returns
        -------
        ndarray
            Of each class, or of each label of a multilabel target.
        """
        check_is_fitted(self)
        if hasattr(self.classifier_, "predict_proba"):
            return np.asarray(self.classifier_.predict_proba(X))
        return self._labels.both(self._scorer.scores(X, "predict_proba"))

    def freeze(self, X_reference: Any = None) -> RowwiseFClassifier:
        """Return a fitted classifier that decides each row alone: for rows as they come.

        Parameters
        ----------
        X_reference : array-like, default=None
            Rows like those to come, without labels, by which a method that decides by a whole
            batch takes its threshold; by default the training rows, as they were held out.

        Returns
        -------
        RowwiseFClassifier
            The method chosen, with `threshold_` where it has one, and `expected_` and `std_` where
            they are known.
        """
        check_is_fitted(self)
        chosen = self.classifier_
        if isinstance(chosen, RowwiseFClassifier) and X_reference is not None:
            chosen = chosen.estimator  # of a stream, by other rows than those of training
        if hasattr(chosen, "freeze"):
            chosen = chosen.freeze(X_reference)
        if isinstance(chosen, RowwiseFClassifier):
            return chosen
        frozen = RowwiseFClassifier.of(self)
        frozen.threshold_ = getattr(chosen, "threshold_", None)
        return frozen

    def _margin(self, X: Any) -> NDArray[np.float64]:
        """Return the chosen method's margins; of one that has none, the side it decides for."""
        if hasattr(self.classifier_, "decision_function"):
            return self._labels.margins(self.classifier_.decision_function(X))
        return np.where(self._labels.columns(self.classifier_.predict(X)), 1.0, -1.0)
