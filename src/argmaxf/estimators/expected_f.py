"""Expected F (ML^E): calibrated probabilities, and the set with the highest expected F."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.validation import check_choice, check_unit_interval
from argmaxf.constraints import ChanceConstraint, count_at_rate
from argmaxf.empirical.interval import f_interval
from argmaxf.estimators.calibration import (
    Calibrated,
    CalibrationWarning,
    calibration_form,
    calibration_issue,
    check_calibration,
    warn_about_weights,
)
from argmaxf.estimators.fixed_rule import FixedRule
from argmaxf.estimators.labels import Labels, too_rare
from argmaxf.estimators.linear_f import SoftFClassifier
from argmaxf.estimators.meta import (
    FixedThresholdFClassifier,
    ScoreFClassifier,
    fix_threshold,
    macro_gain,
    midpoint,
    route_fit_params,
    signed,
)
from argmaxf.estimators.scores import HeldOut, TrainingData, response_method
from argmaxf.estimators.shift import TargetPrior
from argmaxf.expected.decision import Decision
from argmaxf.expected.macro import is_additive, maximize_expected_macro_f
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.measures import Interval, Measure
from argmaxf.problem import Problem

NORMAL = 1.96  # standard errors of a 95 % interval
FEW_IN_BATCH = 3.0  # positives that a batch should hold on average: with fewer, F is lower


class SmallBatchWarning(UserWarning):
    """The batch is too small to be decided jointly.

    Examples
    --------
    >>> import warnings
    >>> from argmaxf.estimators import SmallBatchWarning
    >>> warnings.simplefilter("ignore", SmallBatchWarning)
    """


def interval_around(
    expected: Any, std: Any, found: Interval, measure: Measure, share: float = 0.5
) -> Interval:
    """Return where F will be, centred `share` of the way from the F found to the expected one.

    Both have errors of their own: chance in the labels to come (`std`), chance in the held-out
    rows, and calibration learned from few positives, which shows in their difference. Where no F is
    expected, chance in the labels to come is that in the held-out rows.
    """
    error = (found.high - found.low) / (2.0 * NORMAL)
    mean, spread = float(np.mean(expected)), float(np.sqrt(np.mean(np.square(std)) / np.size(std)))
    if not np.isfinite(mean):
        mean, spread = found.value, error
    middle = share * mean + (1.0 - share) * found.value
    reach = NORMAL * np.hypot(np.hypot(error, spread), 0.5 * (mean - found.value))
    low, high = np.clip([middle - reach, middle + reach], *measure.ends)
    return Interval(float(low), float(middle), float(high), found.reliable)


@dataclass(eq=False, repr=False)
class ExpectedFClassifier(ScoreFClassifier):
    """A classifier that predicts the labels with the highest expected F_β (ML^E in the paper).

    The probabilities are calibrated on held-out rows. Then `predict(X)` decides all rows of X
    jointly: the labels depend on the whole batch, and two halves of a batch that are predicted
    separately may get other labels. Pass the set on which F will be measured; for online prediction
    use `freeze`.

    Parameters
    ----------
    estimator : classifier
        A scikit-learn classifier with `predict_proba`, or with `decision_function` if calibrated.
        Put a fitted one inside `FrozenEstimator`.
    measure : as in `FClassifier`
    average : {"macro", "samples", "micro"}, default="macro"
        What F means for a multilabel target: `"macro"` selects the best rows for each label,
        `"samples"` the best labels for each row, `"micro"` the best cells of the whole table. For a
        multiclass target, each row gets one class, so that the expected macro F is the highest
        (docs/labels-per-row.md); for a measure other than F_β each class is decided against the
        rest.
    calibration : {"auto", "isotonic", "sigmoid", "venn-abers"}, regressor or None, default="auto"
        How scores become probabilities. `"auto"` is isotonic, which performed best on real data
        sets (docs/background/method-study.md), and leaves a frozen or already calibrated classifier
        (`CalibratedClassifierCV`, or a pipeline that ends in one) as it is. The other values always
        calibrate; for a frozen classifier, `fit` must then get rows on which it was not trained.
        `"venn-abers"` needs the package of that name and takes no weights. Any object with
        `fit(scores, y)` and `predict(scores)` can be passed, such as betacal's `BetaCalibration`
        for scores that are probabilities. None uses the probabilities of the classifier.
    cv : int, float, splitter or list of splits, default=5
        Folds for calibration, as in `ThresholdFClassifier`. The classifier is fitted once for each
        fold; without calibration, it is fitted once. A label is not calibrated if no fold holds
        both positives and negatives of it.
    deploy_rate : float, array-like of float, "estimate" or None, default=None
        The rate of positives in deployment, if it differs from training: a number, or one for each
        label; for a multiclass target the share of each class. `"estimate"` takes the most likely
        rate of each batch (`estimate_rate`). Probabilities are corrected to this rate
        (`shift_prior`), which is right under prior shift only (docs/distribution-shift.md).
    min_precision : float, default=None
        The minimum precision in a batch, with probability `confidence_level`; if no set reaches it,
        nothing is selected.
    min_recall : float, default=None
        The minimum recall in a batch. If both are given, they hold at once.
    confidence_level : float, default=None
        The probability with which `min_precision` and `min_recall` hold in each batch, if the
        probabilities are right.
    min_selected : int, default=None
        Select at least this many of each batch: rows (binary), rows for each label (`"macro"`),
        labels for each row (`"samples"`) or cells (`"micro"`). Not for multiclass targets.
    max_selected : int or float, default=None
        Select at most this many; a float is the maximum share. `freeze` chooses a threshold that
        selects at most this share of the rows from which the threshold is taken.
    pos_label : as in `FClassifier`

    Attributes
    ----------
    estimators_ : list
        The fitted classifiers, those of each fold in turn; one per label if the classifier takes a
        single label only.
    calibration_ : str, regressor or None
        The form of calibration in use.
    calibration_issue_ : str or None
        Why the probabilities are wrong, if that is known: `fit` has then given a warning, and
        `decide` returns NaN as the expected F.
    held_out_proba_ : ndarray or None
        Calibrated probabilities of the training rows, from models that were not trained on them.

    Notes
    -----
    Isotonic curves have flat parts, where many rows get the same probability. Such rows are ordered
    by the classifier's own score (their probabilities differ by a billionth), so that the best of
    them are selected first. Calibration corrects a model that was reweighted or resampled
    (`class_weight`, `scale_pos_weight`, a sampler in the pipeline); without calibration, `fit`
    warns. With `sample_weight`, F is that of the weighted population: `fit` warns where its rate of
    positives is far from that of the rows, unless `deploy_rate` is given.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.1, random_state=0)
    >>> model = ExpectedFClassifier(LogisticRegression(class_weight="balanced"))
    >>> decision = model.fit(X[:1000], y[:1000]).decide(X[1000:])
    >>> round(decision.expected, 2), round(decision.std, 2)
    (0.75, 0.02)
    """

    estimator: Any
    _: KW_ONLY
    measure: Any = "f1"
    average: str = "macro"
    calibration: Any = "auto"
    cv: Any = 5
    deploy_rate: Any = None
    min_precision: float | None = None
    min_recall: float | None = None
    confidence_level: float | None = None
    min_selected: int | None = None
    max_selected: int | float | None = None
    pos_label: Any = None
    _warned = False  # of a small batch: Python's own filter forgets too easily

    def _fit(self, rows: TrainingData) -> None:
        warn_about_weights(rows.columns, rows.weight, self.deploy_rate)
        super()._fit(rows)
        if self.calibration_issue_ is not None:
            warnings.warn(self.calibration_issue_, CalibrationWarning, stacklevel=3)

    def check(self, rows: TrainingData) -> None:
        """Check parameters; classes that compete for rows have no limits and no average."""
        check_calibration(self.calibration)
        check_choice("average", self.average, ("macro", "micro", "samples"))
        super().check(rows)
        labels = rows.labels
        chance = ChanceConstraint.of(self.min_precision, self.min_recall, self.confidence_level)
        most = self._most_selected(rows.columns, labels)
        problem = Problem.of(1.0, self._measure(), 0.0, "split", self.min_selected, most)
        if labels.kind != "multiclass":
            return
        if self.average != "macro":
            raise ValueError(
                "average of a multiclass target must be 'macro', because with one class for each "
                f"row any other average is accuracy; got {self.average!r}"
            )
        if chance is not None or not problem.is_free:
            raise ValueError(
                f"a {'budget' if chance is None else 'guarantee'} needs a binary or multilabel "
                "target: each row gets one class, so no class is decided alone; got "
                f"{len(labels.classes)} classes"
            )

    def _learn(self, held_out: HeldOut) -> None:
        self._warned = False
        self.held_out_proba_: Floats | None = None
        self.calibration_issue_: str | None = None
        members = self._learn_probabilities(held_out)
        self._probabilities = FixedRule(self._labels, members, seen=self._seen)
        self._held_out_f = self._measured(held_out)
        self._show_models([fitted for m in members for one in m.models for fitted in one.models_])

    def _needs_folds(self, columns: Bools) -> bool:
        form = self._form(columns)
        if form is None:
            response_method(self.estimator, ("predict_proba",))
        return form is not None

    def _form(self, columns: Bools) -> Any:
        """Return the form of calibration to use; None leaves the probabilities as they are."""
        rare = too_rare(columns).all()
        return None if rare else calibration_form(self.calibration, self.estimator)

    def _learn_probabilities(self, held_out: HeldOut) -> list[Calibrated]:
        """Return what gives the probabilities; set those of held-out rows, and what is wrong."""
        self.calibration_ = self._form(held_out.columns)
        if self.calibration_ is not None:
            calibrated = Calibrated.fit(held_out, self.calibration_)
            self.held_out_proba_ = calibrated.held_out(held_out)
            return [calibrated]
        rows = held_out.take(np.flatnonzero(held_out.fold >= 0))
        self.held_out_proba_ = None if rows.seen else rows.tables["predict_proba"]
        self.calibration_issue_ = calibration_issue(rows)
        return [Calibrated([held_out.model], "predict_proba")]

    def _measured(self, held_out: HeldOut) -> Interval | None:
        """Return the F of the decision about held-out rows; None where it cannot be known.

        Nor of micro averages: models of all folds together find more than each alone, and the many
        cells of a micro average make the interval too narrow for that (87 % instead of 95 %).
        """
        moved = self._prior.deploy is not None or held_out.weight is not None
        if self.held_out_proba_ is None or moved or self._average(self._labels) != "macro":
            return None
        selected = np.asarray(self._decide(self.held_out_proba_).selected)
        truth = held_out.columns[held_out.fold >= 0]
        several = "macro" if selected.ndim > 1 else None
        truth = truth if several else truth[:, 0]
        return f_interval(truth, selected, measure=self._measure(), average=several)

    def _forecast(self, decision: Decision) -> Decision:
        """Add where F will be; no F is expected of probabilities that are known to be wrong."""
        if self.calibration_issue_ is not None:
            unknown = (np.nan * np.asarray(decision.expected))[()]
            return replace(decision, expected=unknown, std=unknown, guarantee=None)
        found = self._held_out_f
        if found is None or not np.isfinite(np.mean(decision.expected)):
            return decision
        interval = interval_around(decision.expected, decision.std, found, self._measure())
        return replace(decision, interval=interval)

    def _has_probabilities(self) -> bool:
        form = calibration_form(self.calibration, self.estimator)
        return form is not None or super()._has_probabilities()

    def decide(self, X: Any) -> Decision:
        """Return the decision for the batch X: the labels, their expected F and its spread.

        Both are NaN, with a warning, where the probabilities are known to be wrong
        (`calibration_issue_`). A warning also says where they rest on fewer than ten positives in
        training. `std` reflects randomness in the labels of X only, not estimation error.
        `interval` includes both: it is centred between the expected F and the F that was measured
        on held-out rows (docs/limits.md). It is that of macro F where there are several labels or
        classes, and None for other averages.

        For a multiclass target and a measure other than F_β each class is decided against the rest:
        a row may have no class or several, unlike in `predict`, which gives every row one class.
        """
        check_is_fitted(self)
        if self.calibration_issue_ is not None:
            message = f"the expected F is unknown: {self.calibration_issue_}"
            warnings.warn(message, CalibrationWarning, stacklevel=2)
        else:
            self._prior.warn_if_few()
        return self._forecast(self._decide(self._proba(X)))

    def _predict(self, X: Any) -> Any:
        margin = self._margin(X)
        if not self._warned:
            self._warned = self._warn_if_few(
                len(margin),
                "a batch of fewer than",
                "selects rows that a larger batch would not select; for online prediction, "
                "freeze() gives a classifier that decides each row alone",
            )
        return self._labels.decode(margin)

    def _warn_if_few(self, n: int, fewer: str, harm: str) -> bool:
        """Warn of too few rows to hold positives on average, at the median rate of labels."""
        prior = self._prior  # an estimated rate is not known before the batch
        rates = prior.train if prior.deploy is None or prior.by_batch else prior.rates()
        rates = rates[prior.varies]
        joint = rates.size and self._average(self._labels) != "samples"
        few = FEW_IN_BATCH / np.median(rates) if joint else 0.0
        if n < few:
            warnings.warn(
                f"{fewer} {np.ceil(few):.0f} rows holds fewer than "
                f"{FEW_IN_BATCH:.0f} positives on average, and {harm}",
                SmallBatchWarning,
                stacklevel=4,
            )
        return bool(n < few)

    def _freeze(self, X_reference: Any) -> FixedThresholdFClassifier:
        counts = self.min_selected is not None or not isinstance(self.max_selected, float | None)
        average = self._average(self._labels)
        if counts and average != "samples":
            raise ValueError(
                "a classifier with a number as min_selected or max_selected cannot be frozen: "
                "the number limits a batch, and a frozen classifier decides each row alone"
            )
        if self.calibration_issue_ is None:
            self._prior.warn_if_few()
        if X_reference is None:
            reference, at_rate = self._training_reference(), TargetPrior.sample_like
        else:
            reference, at_rate = self._probabilities.scores(X_reference), TargetPrior.moved
            self._warn_if_few(
                len(reference),
                "a reference of fewer than",
                "its threshold selects rows that a larger reference would not select; pass "
                "freeze() more rows, without labels",
            )
        self = copy(self)
        if self._prior.deploy is not None:
            self._prior = replace(self._prior, deploy=self._prior.rates(reference))
            reference = at_rate(self._prior, reference)
        decision = self._forecast(self._decide(reference, one_vs_rest=True))
        if average == "samples":  # each row is decided alone already
            mean, std = float(np.mean(decision.expected)), float(np.mean(decision.std))
            return fix_threshold(self, self._labels, expected_=mean, std_=std)
        selected = np.asarray(decision.selected).reshape(reference.shape)
        middle = np.squeeze(midpoint(reference, selected, average), axis=0)
        threshold = np.where(selected.any(axis=None if average == "micro" else 0), middle, np.inf)
        one = self._labels.is_binary or average == "micro"
        return fix_threshold(
            self,
            self._labels,
            threshold_=float(threshold[0]) if one else threshold,
            gain_=self._gain(reference, selected),
            expected_=decision.expected,
            std_=decision.std,
            interval_=decision.interval,
        )

    def _training_reference(self) -> Floats:
        """Return the probabilities of training rows, where those to come are like them."""
        missing = None
        if self._prior.by_batch:
            missing = "the rate to be estimated is not that of training"
        elif self.held_out_proba_ is None:
            missing = (
                "without calibration there are no held-out probabilities to take the threshold from"
            )
        elif self._prior.deploy is not None and self._average(self._labels) != "macro":
            missing = "training does not show whole rows of labels at other rates"
        if missing is not None or self.held_out_proba_ is None:
            raise ValueError(f"freeze needs X_reference, rows like the future ones: {missing}")
        return self.held_out_proba_

    def _decide(self, proba: Floats, *, one_vs_rest: bool = False) -> Decision:
        """Decide a batch; the classes of a multiclass target share its rows by default."""
        binary, measure = self._labels.is_binary, self._measure()
        if self._labels.kind == "multiclass" and not one_vs_rest and is_additive(measure):
            close = 1e-4  # the part of the best macro F that may be missed
            return maximize_expected_macro_f(proba, labels_per_row=1, measure=measure, tol=close)
        return maximize_expected_f(
            proba[:, 0] if binary else proba,
            measure=measure,
            average=None if binary else self._average(self._labels),
            min_precision=self.min_precision,
            min_recall=self.min_recall,
            confidence_level=self.confidence_level,
            min_selected=self.min_selected,
            max_selected=self._most_selected(proba, self._labels),
        )

    def _most_selected(self, proba: Any, labels: Labels) -> int | None:
        """Return how many may be selected of each set that is decided; None for any number."""
        if not isinstance(self.max_selected, float):
            return self.max_selected
        sizes = {"samples": proba.shape[1], "micro": proba.size, "macro": len(proba)}
        rate = check_unit_interval("max_selected", self.max_selected)
        return count_at_rate(rate, sizes[self._average(labels)])

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
        proba = self._probabilities.scores(X)
        found = self._prior.estimated(proba, method, confidence_level, self.held_out_proba_)
        return self._for_target(found)

    def _proba(self, X: Any) -> Floats:
        """Return the probabilities to decide by: calibrated, and moved to the rate of X."""
        return self._prior.moved(self._probabilities.scores(X))

    def probability_rule(self) -> FixedRule:
        """Return how probabilities are made, for exports; thresholds are not set."""
        return replace(
            self._probabilities, odds=None if self._prior.deploy is None else self._prior.odds()
        )

    def _average(self, labels: Labels) -> str:
        return self.average if labels.is_multilabel else "macro"

    def _gain(self, proba: Floats, selected: Bools) -> Any:
        """Return what a margin is worth to each class, where classes compete for rows."""
        if self._labels.kind != "multiclass":
            return 1.0
        hits, predicted = (proba * selected).sum(axis=0), selected.sum(axis=0)
        return macro_gain(self._measure(), hits, predicted, proba.sum(axis=0))

    def _margin(self, X: Any) -> Floats:
        proba = self._proba(X)
        selected = np.asarray(self._decide(proba).selected).reshape(proba.shape)
        return signed(proba, selected, self._average(self._labels), self._gain(proba, selected))


class BlendFClassifier(ExpectedFClassifier):
    """A classifier with the highest expected F_β by the mean of two models; experimental.

    The probability of a row is the mean of two: that of the classifier, and that of a linear model
    trained for F (`SoftFClassifier`). Both are calibrated on held-out rows. They make different
    errors: on real imbalanced sets their mean beat each of them
    (docs/background/method-study.md). As with `ExpectedFClassifier`, `predict(X)` decides all rows
    of X jointly; use `freeze` for single rows.

    Both models are fitted once for each fold. Parameters of `fit` are passed on to the classifier;
    the linear model gets the weights only.

    Parameters
    ----------
    estimator : estimator
        The classifier. If it is a pipeline, the linear model shares its preprocessing.
    other : estimator, default=None
        The model to blend with it; by default the linear one.
    measure : str, Measure or callable, default="f1"
        What to maximize: F_β such as ``"f2"``, ``"jaccard"``, or a ratio of `argmaxf.measures`.
    cv : int, float, splitter object or list of splits, default=5
        How rows are held out, as in `ThresholdFClassifier`.
    deploy_rate : float, array-like of float, "estimate" or None, default=None
        The rate of positives where it predicts, as in `ExpectedFClassifier`.
    pos_label : as in `FClassifier`

    Attributes
    ----------
    members_ : list of ExpectedFClassifier
        The classifier and the linear model, calibrated.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(600, weights=[0.9], random_state=0)
    >>> BlendFClassifier(GaussianNB()).fit(X, y).decide(X).k
    63
    """

    def __init__(
        self,
        estimator: Any,
        *,
        other: Any = None,
        measure: Any = "f1",
        cv: Any = 5,
        deploy_rate: Any = None,
        pos_label: Any = None,
    ) -> None:
        super().__init__(
            estimator, measure=measure, cv=cv, deploy_rate=deploy_rate, pos_label=pos_label
        )
        self.other = other

    def hold_out(self, rows: TrainingData) -> HeldOut:
        """Fit both models once for each fold; without folds, the classifier alone."""
        held_out = self._member(self.estimator).hold_out(rows)
        if too_rare(rows.columns).all():  # calibration needs rows of both classes
            return held_out
        other = self.other
        if other is None:
            linear = SoftFClassifier(measure=self.measure, pos_label=self.pos_label)
            other = in_place_of_last(self.estimator, linear)
        member = self._member(other)
        params = route_fit_params(member, rows.weight, {})
        return replace(held_out, other=member.hold_out(replace(rows, params=params)))

    def _member(self, model: Any) -> ExpectedFClassifier:
        return ExpectedFClassifier(
            model, measure=self.measure, cv=self.cv, pos_label=self.pos_label
        )

    def _learn_probabilities(self, held_out: HeldOut) -> list[Calibrated]:
        both = [held_out] if held_out.other is None else [held_out, held_out.other]
        members = [self._member(each.model.estimator).learn(each) for each in both]
        self.members_, self.calibration_ = members, members[0].calibration_
        known = [m.held_out_proba_ for m in members if m.held_out_proba_ is not None]
        self.held_out_proba_ = np.mean(known, axis=0) if len(known) == len(members) else None
        issues = [m.calibration_issue_ for m in members if m.calibration_issue_ is not None]
        self.calibration_issue_ = issues[0] if issues else None
        return [each for member in members for each in member.probability_rule().members]


def in_place_of_last(estimator: Any, classifier: Any) -> Any:
    """Return `classifier`, behind the preprocessing of `estimator` if that is a pipeline."""
    if get_config()["enable_metadata_routing"]:
        classifier = classifier.set_fit_request(sample_weight=True)
    if not isinstance(estimator, Pipeline):
        return classifier
    *steps, (name, _) = clone(estimator).steps
    return Pipeline([*steps, (name, classifier)])
