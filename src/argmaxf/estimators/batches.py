"""Rows decided as one set: the labels of a batch with the highest expected F, by probabilities."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from argmaxf.constraints import most_of
from argmaxf.estimators.calibration import taken_as_they_are
from argmaxf.estimators.deployed import Deployed
from argmaxf.estimators.doubts import CalibrationWarning, warn_of_few
from argmaxf.estimators.rowwise import (
    RowwiseFClassifier,
    SmallBatches,
    warn_of_small_reference,
)
from argmaxf.estimators.sides import boundary, decided_gain, signed
from argmaxf.estimators.wrapping import MetaFClassifier
from argmaxf.expected.decision import Decision
from argmaxf.expected.macro import is_additive, maximize_expected_macro_f
from argmaxf.expected.maximize import maximize_expected_f

PROVEN = 1e-4  # the part of the best macro F that one class for each row may be short of


class BatchFClassifier(MetaFClassifier):
    """A classifier that decides the rows of a batch together, by their probabilities.

    How the model that gives the probabilities is fitted is left to those who derive from it.
    """

    average: str = "macro"
    calibrate: Any = "auto"
    zero_division: float = 0.0
    min_precision: float | None = None
    min_recall: float | None = None
    confidence_level: float | None = None
    min_selected: int | None = None
    max_selected: int | None = None
    max_selected_rate: float | None = None

    doubt_: str | None  # why the probabilities are known to be off
    _deployed: Deployed  # the rates in training, and those where it predicts
    _reference: NDArray[np.float64] | None  # probabilities of training rows while held out
    _small: SmallBatches  # whether their warning was given

    def _has_probabilities(self) -> bool:
        calibrated = not taken_as_they_are(self.calibrate, self.estimator)
        return calibrated or super()._has_probabilities()

    def decide(self, X: Any) -> Decision:
        """Return the decision for the batch X: the labels, their expected F and its spread.

        Of a multiclass target and a measure other than F_β each class is decided against the rest,
        so that a row may have no class or several: not the same labels as those of `predict`, which
        gives every row one class.

        Parameters
        ----------
        X : array-like
            The rows over which F will be measured.

        Returns
        -------
        Decision
            Expected F and its spread are NaN, with a warning, where the probabilities are known to
            be off (`doubt_`): the set is the best for them, but what they promise does not hold. A
            warning also says where they rest on fewer than ten positives in training. The spread is
            of chance in the labels of X alone, not in what was learned (docs/limits.md).
        """
        check_is_fitted(self)
        if self.doubt_ is not None:
            warnings.warn(f"no F can be promised: {self.doubt_}", CalibrationWarning, stacklevel=2)
        else:
            warn_of_few(self._deployed.fewest, len(self._deployed.train))
        return self._guarantee(self._decide(self._proba(X)))

    def _guarantee(self, decision: Decision) -> Decision:
        """Return the decision without its guarantee where the probabilities are known to be off."""
        if self.doubt_ is None:
            return decision
        unknown = np.nan * np.asarray(decision.expected)
        return replace(decision, expected=unknown[()], std=unknown[()], guarantee=None)

    def predict(self, X: Any) -> Any:
        """Return the labels of the batch X, in the form of the training target.

        Parameters
        ----------
        X : array-like
            The rows over which F will be measured. A batch so small that it holds fewer than three
            positives on average is decided, with a warning.

        Returns
        -------
        array or sparse matrix
            The predicted labels.
        """
        check_is_fitted(self)
        margin = self._margin(X)
        if self._average() != "samples":
            self._small.warn(len(margin), self._deployed.usual_rates)
        return self._labels.decode(margin)

    def freeze(self, X_reference: Any = None) -> RowwiseFClassifier:
        """Return a fitted classifier that decides each row alone, by a threshold kept.

        Parameters
        ----------
        X_reference : array-like, default=None
            Rows like those to come, without labels: the threshold is that of their decision, with a
            warning where they hold fewer than three positives on average. By default the training
            rows, with the probabilities they got while held out.

        Returns
        -------
        RowwiseFClassifier
            With `threshold_`, and the F to expect of it in `expected_` and `std_`: NaN where the
            probabilities are known to be off, with a warning where they rest on few positives.
        """
        check_is_fitted(self)
        limits = self.min_selected, self.max_selected
        if limits != (None, None) and self._average() != "samples":
            raise ValueError(
                "a classifier with min_selected or max_selected cannot be frozen: the budget is of "
                "a batch, and a row that comes alone has none"
            )
        if self.doubt_ is None:
            warn_of_few(self._deployed.fewest, len(self._deployed.train))
        if X_reference is not None:
            reference = self._scorer.predict(X_reference)
            if self._average() != "samples":
                warn_of_small_reference(len(reference), self._deployed.usual_rates)
            return self._frozen_like(reference)
        missing = self._missing()
        if missing is not None:
            raise ValueError(f"freeze needs X_reference, rows like those to come: {missing}")
        return self._frozen_like(self._reference, as_trained=True)

    def _missing(self) -> str | None:
        """Return what training does not have that a threshold is taken from; None if it has all."""
        if self._deployed.by_batch:
            return "training does not show the rate that is to be estimated"
        if self._reference is None:
            return (
                "probabilities that were not calibrated here have none of rows held out, from "
                "which to take the threshold"
            )
        if self._deployed.chance is not None and self._average() != "macro":
            return "training does not show whole rows of labels at other rates"
        return None

    def _frozen_like(self, reference: Any, *, as_trained: bool = False) -> RowwiseFClassifier:
        """Return the classifier with the thresholds and rates of one batch's probabilities.

        Those of the training rows are drawn first as they would come at the rate asked for.
        """
        self = copy(self)
        if self._deployed.chance is not None:
            self._deployed = replace(self._deployed, chance=self._deployed.rates(reference))
            moved = self._deployed.sample_like if as_trained else self._deployed.moved
            reference = moved(reference)
        decision = self._guarantee(self._decide(reference, apart=True))
        if self._average() == "samples":  # each row is decided alone already
            mean, std = float(np.mean(decision.expected)), float(np.mean(decision.std))
            return RowwiseFClassifier.of(self, expected=mean, std=std)
        frozen = RowwiseFClassifier.of(self, expected=decision.expected, std=decision.std)
        return frozen.cut_like(decision, reference, self._average())

    def _decide(self, proba: NDArray[np.float64], *, apart: bool = False) -> Decision:
        """Decide a batch; the classes of a multiclass target share its rows, unless `apart`."""
        binary = self._labels.kind == "binary"
        average = None if binary else self._average()
        measure = self._asked()
        shared = self._labels.kind == "multiclass" and not apart and is_additive(measure)
        if shared:
            return maximize_expected_macro_f(
                proba,
                labels_per_row=1,
                measure=measure,
                zero_division=self.zero_division,
                tol=PROVEN,
            )
        return maximize_expected_f(
            proba[:, 0] if binary else proba,
            measure=measure,
            average=average,
            zero_division=self.zero_division,
            min_precision=self.min_precision,
            min_recall=self.min_recall,
            confidence_level=self.confidence_level,
            min_selected=self.min_selected,
            max_selected=self._most(proba),
        )

    def _most(self, proba: NDArray[np.float64]) -> int | None:
        """Return how many may be selected of each set that is decided; None for any number."""
        if self.max_selected_rate is None:
            return self.max_selected
        sizes = {"samples": proba.shape[1], "micro": proba.size, "macro": len(proba)}
        most = most_of(self.max_selected_rate, sizes[self._average()])
        return most if self.max_selected is None else min(most, self.max_selected)

    def estimate_rate(
        self, X: Any, *, method: str = "likelihood", confidence_level: float = 0.95
    ) -> Any:
        """Return the rate of positives in a batch, if rows of each class look as in training.

        Parameters
        ----------
        X : array-like
            The rows, without labels.
        method : {"likelihood", "moments"}, default="likelihood"
            The estimator, as in `argmaxf.estimate_rate`. `"moments"` rests on the probabilities of
            training rows while held out, which are there after calibration.
        confidence_level : float, default=0.95
            Confidence of the interval.

        Returns
        -------
        Interval, list of Interval or ndarray of float
            The rate with its interval, one for each label of a multilabel target
            (None for a label that training saw always or never); of a multiclass target the most
            likely share of each class.
        """
        check_is_fitted(self)
        proba = self._scorer.predict(X)
        found = self._deployed.estimated(proba, method, confidence_level, self._reference)
        return found[0] if self._labels.kind == "binary" else found

    def _proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities to decide by: calibrated, and moved to the rate of X."""
        return self._deployed.moved(self._scorer.predict(X))

    def _average(self) -> str:
        return self.average if self._labels.kind == "multilabel-indicator" else "macro"

    def _margin(self, X: Any) -> NDArray[np.float64]:
        proba = self._proba(X)
        selected = np.asarray(self._decide(proba).selected).reshape(proba.shape)
        margin = proba - boundary(proba, selected, self._average())
        if self._labels.kind == "multiclass":
            margin = margin * decided_gain(proba, selected, self._asked())
        return signed(margin, selected)
