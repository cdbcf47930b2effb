"""Joint decisions: the labels of a batch with the highest expected F, by its probabilities."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from argmaxf._base.arrays import Floats
from argmaxf._base.validation import check_unit_interval
from argmaxf.constraints import count_at_rate
from argmaxf.estimators.calibration import (
    CalibrationWarning,
    leaves_as_is,
    warn_about_few_positives,
)
from argmaxf.estimators.fixed_threshold import FixedThresholdFClassifier, FreezeMixin, fix_threshold
from argmaxf.estimators.margins import decided_gain, midpoint, signed
from argmaxf.estimators.meta import MetaFClassifier
from argmaxf.estimators.shift import TargetPrior
from argmaxf.expected.decision import Decision
from argmaxf.expected.macro import is_additive, maximize_expected_macro_f
from argmaxf.expected.maximize import maximize_expected_f

FEW_IN_BATCH = 3.0  # positives that a batch should hold on average: with fewer, F is lower


class SmallBatchWarning(UserWarning):
    """The batch is too small to be decided jointly."""


class JointDecisionMixin(FreezeMixin, MetaFClassifier):
    """A classifier that decides the rows of a batch together, by their probabilities.

    Subclasses fit the model that gives the probabilities.
    """

    average: str = "macro"
    calibration: Any = "auto"
    min_precision: float | None = None
    min_recall: float | None = None
    confidence_level: float | None = None
    min_selected: int | None = None
    max_selected: int | float | None = None

    calibration_issue_: str | None
    held_out_proba_: Floats | None
    _prior: TargetPrior
    _warned: bool  # whether a small batch was warned about: Python's own filter forgets too easily

    def _has_probabilities(self) -> bool:
        calibrated = not leaves_as_is(self.calibration, self.estimator)
        return calibrated or super()._has_probabilities()

    def decide(self, X: Any) -> Decision:
        """Return the decision for the batch X: the labels, their expected F and its spread.

        For a multiclass target and a measure other than F_β each class is decided against the rest:
        a row may have no class or several, unlike in `predict`, which gives every row one class.

        Parameters
        ----------
        X : array-like
            The rows over which F will be measured.

        Returns
        -------
        Decision
            Expected F and its spread are NaN, with a warning, where the probabilities are known to
            be wrong (`calibration_issue_`). A warning also says where they rest on fewer than ten
            positives in training. The spread reflects randomness in the labels of X only, not
            estimation error (docs/limits.md).
        """
        check_is_fitted(self)
        if self.calibration_issue_ is not None:
            message = f"the F to expect is not known: {self.calibration_issue_}"
            warnings.warn(message, CalibrationWarning, stacklevel=2)
        else:
            warn_about_few_positives(self._prior.fewest, len(self._prior.train))
        return self._without_forecast(self._decide(self._proba(X)))

    def _without_forecast(self, decision: Decision) -> Decision:
        """Remove the expected F where the probabilities are known to be wrong."""
        if self.calibration_issue_ is None:
            return decision
        unknown = (np.nan * np.asarray(decision.expected))[()]
        return replace(decision, expected=unknown, std=unknown, guarantee=None)

    def _predict(self, X: Any) -> Any:
        margin = self._margin(X)
        few = self._fewest_rows()
        if not self._warned and len(margin) < few:
            self._warned = True
            warnings.warn(
                f"a batch of fewer than {np.ceil(few):.0f} rows holds fewer than "
                f"{FEW_IN_BATCH:.0f} positives on average, and rows are selected that no larger "
                "batch would select; for online prediction, freeze() gives a classifier that "
                "decides each row alone",
                SmallBatchWarning,
                stacklevel=3,
            )
        return self._labels.decode(margin)

    def _fewest_rows(self) -> float:
        """Return how many rows hold enough positives on average, at the median rate of labels."""
        rates = self._prior.usual_rates
        joint = rates.size and self._average() != "samples"
        return float(FEW_IN_BATCH / np.median(rates)) if joint else 0.0

    def _freeze(self, X_reference: Any) -> FixedThresholdFClassifier:
        counts = self.min_selected is not None or not isinstance(self.max_selected, float | None)
        if counts and self._average() != "samples":
            raise ValueError(
                "a classifier with a number as min_selected or max_selected cannot be frozen: the "
                "number is for a batch, and a single row has none"
            )
        if self.calibration_issue_ is None:
            warn_about_few_positives(self._prior.fewest, len(self._prior.train))
        if X_reference is None:
            missing = self._missing()
            if missing is not None:
                raise ValueError(f"freeze needs X_reference, rows like those to come: {missing}")
            return self._frozen_like(self.held_out_proba_, from_training=True)
        reference, few = self._scorer.predict(X_reference), self._fewest_rows()
        if len(reference) < few:
            warnings.warn(
                f"a reference of fewer than {np.ceil(few):.0f} rows holds fewer than "
                f"{FEW_IN_BATCH:.0f} positives on average, and its threshold selects rows that no "
                "larger one would select; give freeze() more rows, without labels",
                SmallBatchWarning,
                stacklevel=3,
            )
        return self._frozen_like(reference)

    def _missing(self) -> str | None:
        """Return what training lacks to take a threshold from it; None if nothing."""
        if self._prior.by_batch:
            return "training does not show the rate that is to be estimated"
        if self.held_out_proba_ is None:
            return (
                "probabilities that were not calibrated here have none of held-out rows, from "
                "which to take the threshold"
            )
        if self._prior.deploy is not None and self._average() != "macro":
            return "training does not show whole rows of labels at other rates"
        return None

    def _frozen_like(
        self, reference: Any, *, from_training: bool = False
    ) -> FixedThresholdFClassifier:
        """Return the classifier with the thresholds and rates of one batch's probabilities.

        Those of the training rows are drawn first as they would come at the target rate.
        """
        self = copy(self)
        if self._prior.deploy is not None:
            self._prior = replace(self._prior, deploy=self._prior.rates(reference))
            moved = self._prior.sample_like if from_training else self._prior.moved
            reference = moved(reference)
        decision = self._without_forecast(self._decide(reference, one_vs_rest=True))
        average = self._average()
        if average == "samples":  # each row is decided alone already
            mean, std = float(np.mean(decision.expected)), float(np.mean(decision.std))
            return fix_threshold(self, self._labels, expected_=mean, std_=std)
        selected = np.asarray(decision.selected).reshape(reference.shape)
        middle = np.squeeze(midpoint(reference, selected, average), axis=0)
        threshold = np.where(selected.any(axis=None if average == "micro" else 0), middle, np.inf)
        one = self._labels.is_binary or average == "micro"
        multiclass = self._labels.kind == "multiclass"
        gain = decided_gain(reference, selected, self._measure()) if multiclass else 1.0
        return fix_threshold(
            self,
            self._labels,
            threshold_=float(threshold[0]) if one else threshold,
            gain_=gain,
            expected_=decision.expected,
            std_=decision.std,
        )

    def _decide(self, proba: Floats, *, one_vs_rest: bool = False) -> Decision:
        """Decide a batch; the classes of a multiclass target share its rows by default."""
        binary, measure = self._labels.is_binary, self._measure()
        if self._labels.kind == "multiclass" and not one_vs_rest and is_additive(measure):
            close = 1e-4  # the part of the best macro F that may be missed
            return maximize_expected_macro_f(proba, labels_per_row=1, measure=measure, tol=close)
        return maximize_expected_f(
            proba[:, 0] if binary else proba,
            measure=measure,
            average=None if binary else self._average(),
            min_precision=self.min_precision,
            min_recall=self.min_recall,
            confidence_level=self.confidence_level,
            min_selected=self.min_selected,
            max_selected=self._most_selected(proba),
        )

    def _most_selected(self, proba: Any) -> int | None:
        """Return how many may be selected of each set that is decided; None for any number."""
        if not isinstance(self.max_selected, float):
            return self.max_selected
        sizes = {"samples": proba.shape[1], "micro": proba.size, "macro": len(proba)}
        rate = check_unit_interval("max_selected", self.max_selected)
        return count_at_rate(rate, sizes[self._average()])

    def estimate_rate(
        self, X: Any, *, method: str = "likelihood", confidence_level: float = 0.95
    ) -> Any:
        """Return the rate of positives in a batch, if rows of each class look as in training.

        Parameters
        ----------
        X : array-like
            The rows, without labels.
        method : {"likelihood", "moments"}, default="likelihood"
            The estimator, as in `argmaxf.estimate_rate`. `"moments"` needs the probabilities of
            training rows while held out, which calibration provides.
        confidence_level : float, default=0.95
            Confidence level of the interval.

        Returns
        -------
        Interval, list of Interval or ndarray of float
            The rate with its interval, one for each label of a multilabel target
            (None for a label with one value only in training); for a multiclass target the most
            likely share of each class.
        """
        check_is_fitted(self)
        proba = self._scorer.predict(X)
        found = self._prior.estimated(proba, method, confidence_level, self.held_out_proba_)
        return self._for_target(found)

    def _proba(self, X: Any) -> Floats:
        """Return the probabilities to decide by: calibrated, and moved to the rate of X."""
        return self._prior.moved(self._scorer.predict(X))

    def _average(self) -> str:
        return self.average if self._labels.kind == "multilabel-indicator" else "macro"

    def _margin(self, X: Any) -> Floats:
        proba = self._proba(X)
        selected = np.asarray(self._decide(proba).selected).reshape(proba.shape)
        margin = proba - midpoint(proba, selected, self._average())
        if self._labels.kind == "multiclass":
            margin = margin * decided_gain(proba, selected, self._measure())
        return signed(margin, selected)
