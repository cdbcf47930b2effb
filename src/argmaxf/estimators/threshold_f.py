"""ML^δ: scores from any classifier, and the threshold on them with the highest F."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.validation import check_choice, check_not_negative
from argmaxf.constraints import Constraints
from argmaxf.empirical.cuts import is_reversed, threshold_std
from argmaxf.empirical.threshold import Threshold
from argmaxf.estimators.calibration import Calibrated
from argmaxf.estimators.labels import is_share, seed_of, too_rare
from argmaxf.estimators.meta import (
    FixedThresholdFClassifier,
    ScoreFClassifier,
    best_thresholds,
    fix_threshold,
    macro_gain,
)
from argmaxf.estimators.scores import HeldOut, TrainingData
from argmaxf.estimators.shift import TargetPrior

SATURATED = 25.0  # log-odds from which probabilities are too close to 1 to order rows


class TuningRows(NamedTuple):
    """The rows on which thresholds are tuned, with their scores."""

    columns: Bools
    scores: Floats
    weight: Floats | None  # (n, 1), or of each label

    def at(self, prior: TargetPrior, rates: Floats) -> TuningRows:
        """Return the rows weighted to these rates."""
        moved = prior.weights(self.columns, rates)
        return self._replace(weight=moved if self.weight is None else moved * self.weight)

    def labels(self) -> Iterator[TuningRows]:
        """Yield the rows of each label by itself."""
        weight = self.weight
        each = None if weight is None else np.broadcast_to(weight, self.columns.shape)
        for j in range(self.columns.shape[1]):
            own = None if each is None else each[:, [j]]
            yield TuningRows(self.columns[:, [j]], self.scores[:, [j]], own)

    def counts(self, threshold: Any) -> list[Floats]:
        """Return true positives, predicted and actual positives of each label."""
        selected, weight = self.scores >= threshold, 1.0 if self.weight is None else self.weight
        cells = (selected & self.columns, selected, self.columns)
        return [np.sum(weight * cell, axis=0) for cell in cells]


@dataclass(eq=False, repr=False)
class ThresholdFClassifier(ScoreFClassifier):
    """A classifier whose decision threshold is tuned for F_β, exactly (ML^δ in the paper).

    Labels with few positives are smoothed before the threshold is chosen (see `smoothing`).

    Parameters
    ----------
    estimator : estimator
        A classifier with `decision_function` or `predict_proba`. A fitted one inside
        `FrozenEstimator` keeps its model and only gets a threshold.
    measure : as in `FClassifier`
    average : {"macro", "micro", "samples"}, default="macro"
        What F means for several labels. `"macro"` gives each label its own threshold, with the
        highest F of the label. `"micro"` gives all labels one threshold, with the highest F of all
        cells together, `"samples"` one with the highest mean F of the rows. The last two are for
        multilabel targets, without `confidence_level`.
    cv : int, float, splitter object, list of splits or None, default=5
        How rows are held out; the threshold is tuned on their scores. A number of stratified folds,
        a splitter (`MultilabelStratifiedKFold(5, random_state=1)` for another seed), or splits; the
        model that predicts is then trained on all rows. A share such as 0.2, or any single split,
        holds out rows once, and the model is trained on the others only. None tunes on the scores
        of the training rows, as the paper does; that overfits if the model has few rows. Folds run
        in parallel inside ``joblib.parallel_config(n_jobs=4)``.
    constraints : dict of str to float, default=None
        What the threshold must reach on the scores used for tuning: `min_precision`, `min_recall`,
        and `max_selected_rate`, the maximum share of rows to be predicted positive, as in
        ``{"min_precision": 0.8}``. `fit` fails if no threshold does. For a number of rows in each
        batch use `ExpectedFClassifier(max_selected=…)`.
    confidence_level : float, default=None
        The probability with which the constraints hold for new rows (see `maximize_empirical_f`).
        This guarantee is proven if the model was not trained on the rows on which the threshold is
        tuned: with a share as `cv`, or a `FrozenEstimator`. With folds, the threshold comes from
        other models than the one that predicts; the guarantee was then checked by simulation only
        (docs/background/guarantee-proofs.md).
    smoothing : float, default=50
        Labels with fewer positives than this are smoothed before their threshold is chosen, which
        overfits less (see `maximize_empirical_f`). 0 takes the highest F on the held-out rows, as
        the paper does. Nothing is smoothed with `confidence_level` or ``average="samples"``.
    deploy_rate : float, array-like of float, "estimate" or None, default=None
        The rate of positives in deployment, if it differs from training: a number, or one for each
        label; for a multiclass target the share of each class. Held-out rows are weighted to that
        rate. `"estimate"` takes the most likely rate of each batch, so that the label of a row
        depends on the batch; `freeze(X_reference)` keeps the rate estimated from these rows. The
        correction is right under prior shift only (docs/distribution-shift.md). Not with
        `confidence_level`, whose guarantee assumes rows as in training.
    pos_label : as in `FClassifier`

    Attributes
    ----------
    estimators_ : list of estimator
        The classifier fitted on all rows, or on those not held out; one per label if it takes a
        single label only.
    threshold_ : float or ndarray of shape (n_labels,)
        The threshold on probabilities: ``predict_proba(X)[:, 1] >= threshold_`` is `predict` for a
        binary target. If `estimator` has no `predict_proba`, it is the threshold on the
        `decision_function` of `estimator`. It is NaN if it lies among probabilities that round to
        1; `log_odds_threshold_` then decides. With
        ``deploy_rate="estimate"`` it is the threshold for the training rate.
    log_odds_threshold_ : float, ndarray of shape (n_labels,) or None
        The same threshold on log-odds; None if the probabilities of the classifier are not the
        logistic function of its scores.
    f_ : float or ndarray of shape (n_labels,)
        The measure at the threshold, on the scores on which it was tuned.
    threshold_std_ : float or ndarray of shape (n_labels,)
        The standard deviation of `threshold_`, estimated from disjoint parts of the data; NaN if
        there are too few positives, or if labels share a threshold.
    guarantee_ : Guarantee, list of Guarantee or None
        What is guaranteed for new rows, and its cost; one per label, or one for a binary target.
    response_method_ : str
        The scale of `threshold_`: ``"predict_proba"`` or ``"decision_function"``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(2000, weights=[0.95], class_sep=0.7, random_state=0)
    >>> tuned = ThresholdFClassifier(LogisticRegression()).fit(X, y)
    >>> tuned.response_method_, round(tuned.threshold_, 2)
    ('predict_proba', 0.35)
    """

    estimator: Any
    _: KW_ONLY
    measure: Any = "f1"
    average: str = "macro"
    cv: Any = 5
    constraints: Constraints | Mapping[str, float] | None = None
    confidence_level: float | None = None
    smoothing: float = 50
    deploy_rate: Any = None
    pos_label: Any = None
    _refits = True

    def check(self, rows: TrainingData) -> None:
        """Refuse constraints on classes that compete for rows, and guarantees at another rate."""
        labels = rows.labels
        check_not_negative("smoothing", self.smoothing)
        check_choice("average", self.average, ("macro", "micro", "samples"))
        super().check(rows)
        shared = self.average != "macro"
        if shared and not labels.is_multilabel:
            raise ValueError(
                f"average={self.average!r} is for multilabel targets, got a {labels.kind} one"
            )
        if shared and self.deploy_rate is not None:
            raise ValueError(f"deploy_rate is for average='macro', got {self.average!r}")
        if self.confidence_level is not None and self.deploy_rate is not None:
            raise ValueError(
                "confidence_level is about rows as in training and cannot be combined with "
                f"deploy_rate; got {self.confidence_level:g} and {self.deploy_rate!r}"
            )
        if self._limits() and labels.kind == "multiclass":
            raise ValueError(
                "constraints need a binary or multilabel target: each row gets one class, so a "
                f"threshold does not decide alone; got {len(labels.classes)} classes"
            )

    def _limits(self) -> dict[str, Any]:
        return Constraints.of(self.constraints).given()

    def _needs_folds(self, columns: Bools) -> bool:
        return self.cv is not None and (is_share(self.cv) or not too_rare(columns).all())

    def hold_out(self, rows: TrainingData) -> HeldOut:
        """Fit the classifier, and hold out rows to tune on where that is possible.

        A label that is too rare for folds has the scores of the model trained on all rows.
        """
        held_out, rare = super().hold_out(rows), too_rare(rows.columns)
        if len(held_out.models) < 2 or not rare.any():
            return held_out
        own = held_out.model.read(rows.X, tuple(held_out.tables))
        tables = {kind: np.where(rare, own[kind], t) for kind, t in held_out.tables.items()}
        return replace(held_out, tables=tables)

    def _learn(self, held_out: HeldOut) -> None:
        self._logistic = held_out.has_logistic_link()
        # A threshold on scores is shown as one on probabilities, where there are any.
        self._kind = held_out.kind if self._logistic else next(iter(held_out.tables))
        held_out = held_out.take(np.flatnonzero(held_out.fold >= 0))
        scores = held_out.tables[self._kind]
        weight = None if held_out.weight is None else held_out.weight[:, None]
        rows = TuningRows(held_out.columns, scores, weight)
        if self._prior.by_batch:
            fold, tables = np.zeros(len(scores), dtype=int), {self._kind: scores}
            tuned = replace(held_out, fold=fold, tables=tables, models=[held_out.model])
            self._rows, self._curves = rows, Calibrated.fit(tuned, "isotonic")
        elif self._prior.deploy is not None:
            rows = rows.at(self._prior, self._prior.rates())
        threshold = self._set_thresholds(rows)
        self._set_spread(rows)
        if self._labels.kind != "multiclass" and not self._limits():
            self._warn_if_reversed(rows, threshold)

    def _warn_if_reversed(self, rows: TuningRows, threshold: Floats) -> None:
        """Warn the caller of `fit` of labels whose positives have the lower scores."""
        columns = zip(self._labels.names, rows.columns.T, rows.scores.T, threshold, strict=True)
        found = [str(name) for name, y, s, cut in columns if is_reversed(y, s, s >= cut)]
        if found:
            where = "" if self._labels.is_binary else f" of {', '.join(found)}"
            warnings.warn(
                f"the tuned threshold{where} selects nearly every row or none, because positives "
                "have the lower scores; is pos_label the other class?",
                stacklevel=6,
            )

    @property
    def response_method_(self) -> str:
        """The scale of `threshold_`."""
        on_proba = self._logistic or self._kind == "predict_proba"
        return "predict_proba" if on_proba else "decision_function"

    def _set_thresholds(self, rows: TuningRows) -> Floats:
        """Store the thresholds, and what they reach on the rows they were tuned on."""
        best, gain = self._tune(rows), 1.0
        threshold: Floats = best.threshold
        if self._labels.kind == "multiclass" and self.response_method_ == "predict_proba":
            gain = macro_gain(self._measure(), *rows.counts(threshold))
        shown = self._shown(threshold, rows)
        self.f_ = self._for_target(best.value)
        self.threshold_ = self._for_target(shown)
        self.log_odds_threshold_ = self._for_target(threshold) if self._logistic else None
        self.guarantee_ = None
        if self.confidence_level is not None:
            self.guarantee_ = self._for_target(best.guarantee.tolist())
        if self._logistic and not np.isnan(shown).any():  # probabilities that are not rounded
            self._cut("predict_proba", shown)
        else:
            self._cut(self._kind, threshold, gain)
        if self._prior.by_batch:
            self._rule = None
        return threshold

    def _tune(self, rows: TuningRows) -> Threshold:
        """Return the best threshold on the scores of each label, or of all, within the limits."""
        weight = rows.weight
        if weight is not None and weight.shape[1] > 1:
            each = [self._tune(label) for label in rows.labels()]
            threshold, value = (
                np.concatenate([getattr(one, name) for one in each])
                for name in ("threshold", "value")
            )
            return replace(each[0], threshold=threshold, value=value)
        plain = self.confidence_level is not None or self.average == "samples"
        return best_thresholds(
            rows.columns,
            rows.scores,
            None if weight is None else weight[:, 0],
            self._measure(),
            self.average,
            confidence_level=self.confidence_level,
            smoothing=0 if plain else self.smoothing,
            **self._limits(),
        )

    def _shown(self, threshold: Floats, rows: TuningRows) -> Floats:
        """Return thresholds on scores on the scale of `threshold_`."""
        if not self._logistic:
            return threshold
        # A threshold may equal a score, of which the model's probability is right to some digits.
        some = (rows.scores >= threshold).any(axis=0)
        proba = expit(threshold) * (1.0 + np.where(some, -1e-15, 1e-15))
        saturated = (threshold > SATURATED) | (threshold < -700.0)
        return np.where(np.isinf(threshold), threshold, np.where(saturated, np.nan, proba))

    def _set_spread(self, rows: TuningRows) -> None:
        """Store the standard deviation of each threshold on other data of this size."""
        std = np.full(rows.columns.shape[1], np.nan)
        if self.average == "macro":
            if self._logistic:
                rows = rows._replace(scores=expit(rows.scores))
            seed = check_random_state(seed_of(self.cv)).randint(2**31)
            rng, measure = np.random.default_rng(seed), self._measure()
            for j, one in enumerate(rows.labels()):
                weight = None if one.weight is None else one.weight[:, 0]
                y, score = one.columns[:, 0], one.scores[:, 0]
                std[j] = threshold_std(y, score, rng, measure=measure, weight=weight)
        self.threshold_std_ = self._for_target(np.where(np.isnan(self.threshold_), np.nan, std))

    def _at_rates_of(self, X: Any) -> Self:
        """Return the classifier for the most likely rates of a batch."""
        rates = self._prior.rates(self._curves.predict(X))
        fixed = copy(self)
        fixed._prior = replace(self._prior, deploy=rates)
        fixed._set_thresholds(self._rows.at(fixed._prior, rates))
        return fixed

    def _margin(self, X: Any) -> Floats:
        return self._at_rates_of(X)._margin(X) if self._prior.by_batch else super()._margin(X)

    def _freeze(self, X_reference: Any) -> FixedThresholdFClassifier:
        if not self._prior.by_batch:
            return super()._freeze(X_reference)
        if X_reference is None:
            raise ValueError(
                "freeze needs X_reference, rows like the future ones, to estimate the rate"
            )
        return fix_threshold(self._at_rates_of(X_reference), self._labels)
