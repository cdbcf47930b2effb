"""ML^δ: scores from any classifier, and the threshold on them with the highest F."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from argmaxf._base.arrays import Floats
from argmaxf._base.validation import check_choice
from argmaxf.constraints import Constraints
from argmaxf.empirical.guarantees import refuse_groups
from argmaxf.estimators.deployed import Deployed
from argmaxf.estimators.folds import folds, is_share, lonely
from argmaxf.estimators.heldout import HeldOut
from argmaxf.estimators.rowwise import RowwiseFClassifier
from argmaxf.estimators.scores import PREFERRED, LabelScorer, is_given, response_method
from argmaxf.estimators.sides import macro_gain, margin
from argmaxf.estimators.tuning import TunedRows, Tuning
from argmaxf.estimators.wrapping import MetaFClassifier, Training


class ThresholdFClassifier(MetaFClassifier):
    """A classifier whose decision threshold is tuned for F_β, exactly (ML^δ in the paper).

    Parameters
    ----------
    estimator : estimator
        A classifier with `decision_function` or `predict_proba`. A fitted one inside
        `FrozenEstimator` keeps its model and only gets a threshold.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        What to maximize: a name, an object of `argmaxf.measures`, or a function of counts.
    average : {"macro", "micro", "samples"}, default="macro"
        What F of several labels is. `"macro"` gives each label the threshold of its own highest F;
        `"micro"` and `"samples"` all labels one threshold, of the highest F of all cells, or of the
        highest mean F of rows. The last two are for multilabel targets, without `confidence_level`.
    cv : int, float, splitter object, list of splits or None, default=5
        Folds for the out-of-fold scores on which the threshold is tuned: a number of them, a
        splitter, or splits. Only rows held out tune; the model that predicts is trained on all. A
        share such as 0.2 holds out that part of the rows, drawn at random, and the model is
        trained on the others alone. None tunes on the training scores themselves, as the paper
        does; that is overfitted where rows are few for the model.
    min_precision : float, default=None
        The least precision, on the scores the threshold is tuned on; `fit` fails where no
        threshold reaches it.
    min_recall : float, default=None
        The least recall, on the same.
    max_selected_rate : float, default=None
        The largest part of the rows to be predicted positive. A number of rows in each batch is
        no threshold: `ExpectedFClassifier(max_selected=…)` keeps to one.
    confidence_level : float, default=None
        The probability with which these hold for new rows (see `maximize_empirical_f`). It is
        proven where the model did not see the rows the threshold is tuned on: with `cv` a share
        of the rows, or a `FrozenEstimator`. With folds it is about what was measured in
        docs/promises.md: the threshold comes from other models than the one that predicts.
    deploy_rate : float, array-like of float, "estimate" or None, default=None
        The rate of positives where it predicts, if that is another than in training: a number, or
        one for each label; of a multiclass target the share of each class. The threshold is the
        best for that rate: held-out rows of a class count as much as the class will.
        `"estimate"` takes the most likely rate of each batch, which is then decided as a whole;
        `freeze(X_reference)` keeps the rate of some rows. Right where only that rate has moved
        (docs/shift.md). `confidence_level` is about rows as in training, and cannot be had with it.
    response_method : {"auto", "decision_function", "log_odds", "predict_proba"}, default="auto"
        The scores to cut; `"log_odds"` is for naive Bayes, whose probabilities saturate, and
        `"auto"` is the first of these that the classifier has (the last for multiclass targets).
    pos_label : scalar, default=None
        The class F counts in a binary target; by default the last in sorted order.
    n_jobs : int, default=None
        Processes for the folds.
    random_state : int or RandomState, default=0
        Seed of the folds.

    Attributes
    ----------
    estimators_ : list of estimator
        The classifier fitted on all rows, or on those not held out; one per label where it cannot
        hold them all.
    threshold_ : float or ndarray of shape (n_labels,)
        The threshold on its scores; a number for a binary target. With
        ``deploy_rate="estimate"`` the one for the rate of training.
    f_ : float or ndarray of shape (n_labels,)
        The F_β, or the measure asked for, reached there, on the scores the threshold was tuned on.
    threshold_std_ : float or ndarray of shape (n_labels,)
        The standard deviation of the threshold, estimated from disjoint parts of the data; NaN
        where there are too few positives to say, and where labels share a threshold.
    guarantee_ : Guarantee, list of Guarantee or None
        What is promised for new rows, and what it costs; one per label, or one for a binary target.
    response_method_ : str
        Which scores these are.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(2000, weights=[0.95], class_sep=0.7, random_state=0)
    >>> tuned = ThresholdFClassifier(LogisticRegression()).fit(X, y)
    >>> tuned.response_method_, tuned.threshold_ < 0  # log-odds: cut below one half
    ('decision_function', True)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        beta: float = 1.0,
        measure: Any = "fbeta",
        average: str = "macro",
        cv: Any = 5,
        min_precision: float | None = None,
        min_recall: float | None = None,
        max_selected_rate: float | None = None,
        confidence_level: float | None = None,
        deploy_rate: Any = None,
        response_method: str = "auto",
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.beta = beta
        self.measure = measure
        self.average = average
        self.cv = cv
        self.min_precision = min_precision
        self.min_recall = min_recall
        self.max_selected_rate = max_selected_rate
        self.confidence_level = confidence_level
        self.deploy_rate = deploy_rate
        self.response_method = response_method
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, rows: Training) -> None:
        self._deployed = Deployed.of(self.deploy_rate, self._labels, rows.columns, rows.weight)
        limits = Constraints(self.min_precision, self.min_recall, self.max_selected_rate).given()
        self._check_constraints(limits)
        if rows.groups is not None and self.confidence_level is not None:
            refuse_groups()
        params = self._fit_params(rows.weight, rows.params)
        if is_share(self.cv) and not isinstance(self.estimator, FrozenEstimator):
            held_out = self._hold_out(rows, params)
        else:
            self._fit_scorer(rows, params, self._methods())
            scores = self._tuning_scores(rows, params)
            held_out = TunedRows.of(rows.columns, scores, rows.weight)
        if self._deployed.by_batch:
            self._rows, self._curves = held_out, held_out.curves(self._scorer)
        self._set_thresholds(self._counted(held_out), limits)
        if not is_given(self.estimator):  # a comparison asks for it of the method chosen only
            self._set_spread(self._counted(held_out))

    def _counted(self, rows: TunedRows) -> TunedRows:
        """Return held-out rows as they count where it predicts, if that is known."""
        if self._deployed.chance is None or self._deployed.by_batch:
            return rows
        return rows.at(self._deployed, self._deployed.rates(rows.scores))

    def _put_on(self, held_out: HeldOut) -> Self:
        """Return this classifier on the model of its scores, with its spread."""
        super()._put_on(held_out)
        scores = held_out.of_kind(self._scorer.method)
        rows = TunedRows.of(held_out.columns, scores, held_out.weight)
        self._set_spread(self._counted(rows))
        return self

    def _hold_out(self, rows: Training, params: dict[str, Any]) -> TunedRows:
        """Fit the classifier on some rows; return the others with their scores."""
        (split,) = folds(self.cv, rows.columns, rows.target, self.random_state, rows.groups)
        method = response_method(self.estimator, self._methods())
        scorer = LabelScorer(self.estimator, self._labels, method)
        scores, self._scorer = scorer.on_held_out(rows.X, rows.target, split, params=params)
        self._show(self._scorer.models_)
        weight = None if rows.weight is None else rows.weight[split[1]]
        return TunedRows(rows.columns[split[1]], scores, weight)

    def _check_constraints(self, limits: dict[str, float]) -> None:
        """Refuse constraints on classes that compete for rows, and promises at another rate."""
        check_choice("average", self.average, ("macro", "micro", "samples"))
        together = self.average != "macro"
        if together and self._labels.kind != "multilabel-indicator":
            raise ValueError(
                f"average={self.average!r} is for multilabel targets, got a {self._labels.kind} one"
            )
        if together and self.deploy_rate is not None:
            raise ValueError(f"deploy_rate is for average='macro', got {self.average!r}")
        if self.confidence_level is not None and self.deploy_rate is not None:
            raise ValueError(
                "confidence_level is about rows as in training, and cannot be had where "
                f"deploy_rate says that their rate is another; got {self.confidence_level:g} and "
                f"{self.deploy_rate!r}"
            )
        if limits and self._labels.kind == "multiclass":
            raise ValueError(
                "constraints need a binary or multilabel target: where classes compete for rows, "
                f"a threshold does not decide alone; got {len(self.classes_)} classes"
            )

    @property
    def response_method_(self) -> str:
        """Which scores are cut."""
        return str(self._scorer.method)

    def _methods(self) -> tuple[str, ...]:
        choices = ("auto", "decision_function", "log_odds", "predict_proba")
        method = check_choice("response_method", self.response_method, choices)
        return PREFERRED[self._labels.kind] if method == "auto" else (method,)

    def _tuning_scores(self, rows: Training, params: dict[str, Any]) -> Floats:
        """Return out-of-fold scores, or training scores where those are wanted or all there is."""
        training: Floats = self._scorer.predict(rows.X)
        alone = lonely(rows.columns)
        if self.cv is None or isinstance(self.estimator, FrozenEstimator) or alone.all():
            return training
        splits = folds(self.cv, rows.columns, rows.target, self.random_state, rows.groups)
        options = {"n_jobs": self.n_jobs, "params": params}
        held_out, _ = self._scorer.out_of_fold(rows.X, rows.target, splits, **options)
        return np.where(alone, training, held_out)

    def _set_thresholds(self, rows: TunedRows, limits: dict[str, float]) -> None:
        """Keep the thresholds, and what they reach on the scores they were tuned on."""
        tuning = self._tuning = self._how(limits)
        threshold, promises = tuning.thresholds(rows)
        self._gain = self._class_gain(rows.counts(threshold))
        binary = self._labels.kind == "binary"
        reached = tuning.reached(rows, threshold)
        self.f_ = float(reached[0]) if binary else reached
        self.threshold_ = float(threshold[0]) if binary else threshold
        self.guarantee_ = promises[0] if promises and binary else promises

    def _how(self, limits: dict[str, float]) -> Tuning:
        """Return how thresholds are found on rows with their scores."""
        return Tuning(self._asked(), self.average, self.confidence_level, limits)

    def _set_spread(self, rows: TunedRows) -> None:
        """Keep how far the thresholds would move on other data of this size."""
        std = self._tuning.spread(rows, self.random_state)
        self.threshold_std_ = std[0] if self._labels.kind == "binary" else np.array(std)

    def _class_gain(self, counts: tuple[Any, Any, Any, Any]) -> Any:
        """Return what a margin is worth to each class when classes compete for a row."""
        if self._labels.kind != "multiclass" or self.response_method_ != "predict_proba":
            return 1.0
        return macro_gain(*counts[:3], self._asked())

    def _margin(self, X: Any) -> NDArray[np.float64]:
        scores = self._scorer.predict(X)
        if not self._deployed.by_batch:
            return margin(scores, self.threshold_, self._gain)
        rows = self._rows.at(self._deployed, self._deployed.rates(self._curves.of([scores])))
        threshold = self._tuning.thresholds(rows)[0]
        return margin(scores, threshold, self._class_gain(rows.counts(threshold)))

    def freeze(self, X_reference: Any = None) -> RowwiseFClassifier:
        """Return a fitted classifier that decides each row alone, whatever it comes with.

        Parameters
        ----------
        X_reference : array-like, default=None
            With ``deploy_rate="estimate"``: rows like those to come, whose rate is kept. Otherwise
            each row is decided alone already, and none are needed.

        Returns
        -------
        RowwiseFClassifier
            The same classifier, with its threshold.
        """
        check_is_fitted(self)
        frozen = copy(self)
        if self._deployed.by_batch:
            if X_reference is None:
                raise ValueError("freeze needs X_reference: rows like those to come show the rate")
            rates = self._deployed.rates(self._curves.of([self._scorer.predict(X_reference)]))
            frozen._deployed = replace(self._deployed, chance=rates)
            frozen._set_thresholds(self._rows.at(self._deployed, rates), self._tuning.limits)
        return RowwiseFClassifier.of(frozen)
