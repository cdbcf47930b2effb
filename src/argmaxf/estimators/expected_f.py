"""Expected F (ML^E): calibrated probabilities, and the set with the highest expected F."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from sklearn.frozen import FrozenEstimator

from argmaxf._base.arrays import Bools
from argmaxf._base.validation import check_choice
from argmaxf.constraints import ChanceConstraint
from argmaxf.estimators.calibration import (
    CalibrationWarning,
    calibrate,
    calibration_issue,
    check_calibration,
    leaves_as_is,
    warn_about_weights,
)
from argmaxf.estimators.folds import make_splits, too_rare
from argmaxf.estimators.joint_decision import JointDecisionMixin
from argmaxf.estimators.meta import TrainingData
from argmaxf.estimators.scores import (
    PREFERRED,
    HeldOutScores,
    LabelScorer,
    is_precomputed,
    last_step,
    response_method,
)
from argmaxf.estimators.shift import TargetPrior
from argmaxf.problem import Problem


@dataclass(eq=False, repr=False)
class ExpectedFClassifier(JointDecisionMixin):
    """A classifier that predicts the labels with the highest expected F_β (ML^E in the paper).

    The probabilities are calibrated on held-out rows. Then `predict(X)` decides all rows of X
    jointly: what is selected depends on the whole batch, and two halves of a batch predicted
    separately may get other labels. Pass the set over which F will be measured; for online
    prediction use `freeze`.

    Parameters
    ----------
    estimator : classifier
        A scikit-learn classifier with `predict_proba`, or with `decision_function` if calibrated.
        Put a fitted one inside `FrozenEstimator`.
    measure : str, Measure or callable, default="f1"
        What to maximize: a name such as ``"f2"``, an object of `argmaxf.measures`, or a function.
    average : {"macro", "samples", "micro"}, default="macro"
        What F means for a multilabel target: `"macro"` decides each label over the batch,
        `"samples"` each row over its labels, `"micro"` all cells together. The classes of a
        multiclass target share the rows, one class for each, with the highest expected macro F
        (docs/labels-per-row.md); for a measure other than F_β each class is decided against the
        rest.
    calibration : {"auto", "isotonic", "sigmoid", "venn-abers"}, regressor or None, default="auto"
        How scores become probabilities. `"auto"` is isotonic, which measured best on real sets
        (docs/background/method-study.md), and leaves a frozen or already calibrated classifier
        (`CalibratedClassifierCV`, or a pipeline that ends in one) as it is. A form that is named is
        always used; for a frozen classifier, `fit` must then get rows it was not trained on.
        `"venn-abers"` needs the package of that name, and no weights. An object with
        `fit(scores, y)` and `predict(scores)`, such as betacal's `BetaCalibration` on scores that
        are probabilities, is a form too. None uses the probabilities of the classifier.
    cv : int, float, splitter or list of splits, default=5
        Folds for calibration, as in `ThresholdFClassifier`. The classifier is fitted once for each
        fold; without calibration once. A label keeps the model's own probability if no fold holds
        both positives and negatives of it.
    deploy_rate : float, array-like of float, "estimate" or None, default=None
        The rate of positives where it predicts, if it differs from training: a number, or one for
        each label; for a multiclass target the share of each class. `"estimate"` takes the most
        likely rate of each batch (`estimate_rate`). Probabilities are moved there (`shift_prior`),
        which is right under prior shift only (docs/distribution-shift.md).
    min_precision : float, default=None
        The least precision of the labels of a batch, with probability `confidence_level`; where no
        set has it, nothing is selected.
    min_recall : float, default=None
        The least recall; both hold at once.
    confidence_level : float, default=None
        The probability, if the probabilities are right, with which they hold in each batch.
    min_selected : int, default=None
        Select at least this many of each batch: rows (binary), rows for each label (`"macro"`),
        labels for each row (`"samples"`) or cells (`"micro"`). Not for multiclass targets.
    max_selected : int or float, default=None
        Select at most this many, or with a float at most this part: the best set within the budget.
        `freeze` keeps a part on the reference rows.
    pos_label : label, default=None
        The class F counts in a binary target; by default the last in sorted order.

    Attributes
    ----------
    estimators_ : list
        The fitted classifiers, those of each fold in turn; one per label where one cannot hold them
        all.
    calibration_ : str, regressor or None
        The form of calibration in use.
    calibration_issue_ : str or None
        Why the probabilities are known to be wrong, where they are: `fit` has then warned, and
        `decide` gives no expected F.
    held_out_proba_ : ndarray or None
        Calibrated probabilities of the training rows while held out.

    Notes
    -----
    Isotonic curves have flat parts, where many rows get the same probability. Such rows are ordered
    by the classifier's own score (they differ by a billionth), so that a set that takes only some
    of them takes the best. Calibration corrects a model that was reweighted or resampled
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

    def _fit(self, rows: TrainingData) -> None:
        self._check_limits(rows)
        self._prior = TargetPrior.of(self.deploy_rate, self._labels, rows.columns, rows.weight)
        if not is_precomputed(self.estimator):  # a comparison warns once
            warn_about_weights(rows.columns, rows.weight, self.deploy_rate)
        self.calibration_ = self._form(rows.columns)
        params = self._fit_params(rows.weight, rows.params)
        self._warned, self.calibration_issue_ = False, None
        if self.calibration_ is None:
            self._fit_uncalibrated(rows, params)
            return
        splits = make_splits(self.cv, rows.columns, rows.target, rows.groups)
        method = response_method(self.estimator, PREFERRED[self._labels.kind])
        scorer = LabelScorer(self.estimator, self._labels, method)
        how = (splits, self.calibration_, rows.weight, params)
        self._use(calibrate(scorer, rows.X, rows.target, *how))
        self.held_out_proba_ = self._scorer.held_out

    def _check_limits(self, rows: TrainingData) -> None:
        """Check average and limits; classes that compete for rows have neither."""
        check_choice("average", self.average, ("macro", "micro", "samples"))
        chance = ChanceConstraint.of(self.min_precision, self.min_recall, self.confidence_level)
        least, most = self.min_selected, self._most_selected(rows.columns)
        problem = Problem.of(1.0, self._measure(), 0.0, "split", least, most)
        if self._labels.kind != "multiclass":
            return
        if self.average != "macro":
            raise ValueError(
                "average of a multiclass target must be 'macro', as one class for each row makes "
                f"any other F accuracy, got {self.average!r}"
            )
        if chance is not None or not problem.is_free:
            raise ValueError(
                f"a {'budget' if chance is None else 'guarantee'} needs a binary or multilabel "
                "target: where classes compete for rows, no class decides alone; got "
                f"{len(self.classes_)} classes"
            )

    def _form(self, columns: Bools) -> Any:
        """Return the form of calibration to use; None leaves the probabilities as they are."""
        form = check_calibration(self.calibration)
        if leaves_as_is(form, self.estimator) or too_rare(columns).all():
            return None
        return "isotonic" if isinstance(form, str) and form == "auto" else form

    def _fit_uncalibrated(self, rows: TrainingData, params: dict[str, Any]) -> None:
        """Fit the classifier once, and check its probabilities."""
        self._fit_scorer(rows, params, ("predict_proba",))
        proba = self._scorer.predict(rows.X)
        self.held_out_proba_ = proba if isinstance(self.estimator, FrozenEstimator) else None
        self.calibration_issue_ = calibration_issue(
            self._scorer.models_,
            proba,
            rows.columns,
            rows.weight,
            learned_here=not isinstance(last_step(self.estimator), FrozenEstimator),
            held_out=is_precomputed(self.estimator),
        )
        if self.calibration_issue_ is not None:
            warnings.warn(self.calibration_issue_, CalibrationWarning, stacklevel=4)

    def _replace_models(self, held_out: HeldOutScores, *_: HeldOutScores) -> None:
        if self.calibration_ is None:
            super()._replace_models(held_out)
            return
        kind = held_out.kind_of(self._scorer.method)
        models = [model.reading(kind) for model in held_out.models]
        self._use(replace(self._scorer, models=models))
