"""Expected F (ML^E): calibrated probabilities from any classifier, and the set with the highest."""

from __future__ import annotations

import warnings
from typing import Any, Self

from sklearn.frozen import FrozenEstimator

from argmaxf._base.arrays import Bools
from argmaxf._base.validation import check_choice
from argmaxf.constraints import ChanceConstraint, Constraints
from argmaxf.estimators.batches import BatchFClassifier
from argmaxf.estimators.calibration import check_form, cross_fit, from_folds, taken_as_they_are
from argmaxf.estimators.deployed import Deployed
from argmaxf.estimators.doubts import CalibrationWarning, doubt, warn_of_weights
from argmaxf.estimators.folds import folds, lonely
from argmaxf.estimators.heldout import HeldOut
from argmaxf.estimators.rowwise import SmallBatches
from argmaxf.estimators.scores import PREFERRED, LabelScorer, is_given, last_step, response_method
from argmaxf.estimators.wrapping import Training
from argmaxf.problem import Problem


class ExpectedFClassifier(BatchFClassifier):
    """A classifier that predicts the labels with the highest expected F_β (ML^E in the paper).

    The probabilities are calibrated on rows held out from training, unless they are settled. Then
    `predict(X)` decides all rows of X together: what is selected depends on the whole batch, and
    two halves of a batch predicted apart may get other labels. That is the method. Give it the set
    over which F will be measured; for rows that come one at a time there is `freeze`.

    Parameters
    ----------
    estimator : classifier
        A scikit-learn classifier with `predict_proba`, or with `decision_function` if calibrated.
        Fitted ones go inside `FrozenEstimator`.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        What to maximize: a name, an object of `argmaxf.measures`, or a function.
    average : {"macro", "samples", "micro"}, default="macro"
        What F means for a multilabel target: `"macro"` decides each label over the batch,
        `"samples"` each row over its labels, `"micro"` all cells together. The classes of a
        multiclass target share the rows, one class for each, with the highest expected macro F
        (docs/shared-rows.md); for a measure other than F_β each class is decided against the rest.
    calibrate : {"auto", "isotonic", "sigmoid", "venn-abers"}, regressor or None, default="auto"
        How scores become probabilities. `"auto"` is the form that measured best on real sets
        (isotonic, docs/choosing.md), and leaves a frozen or already calibrated classifier
        (`CalibratedClassifierCV`, or a pipeline that ends in one) as it is. A form that is named is
        always used; for a frozen classifier, `fit` must then get rows that it has not seen.
        `"venn-abers"` needs the package of that name, and no weights. An object with
        `fit(scores, y)` and `predict(scores)`, such as betacal's `BetaCalibration` on scores that
        are probabilities, is a form too. None takes the probabilities at their word.
    cv : int, float, splitter or list of splits, default=5
        Folds for calibration; a share such as 0.2 calibrates on that part of the rows a classifier
        trained on the others. The classifier is fitted once for each fold: 5 fits, where None and
        settled classifiers need one or none. A label keeps the model's own probability if no fold
        holds both its positives and others.
    deploy_rate : float, array-like of float, "estimate" or None, default=None
        The rate of positives where it predicts, if that is another than in training: a number, or
        one for each label; of a multiclass target the share of each class. `"estimate"` takes the
        most likely rate of each batch (`estimate_rate`). Probabilities are moved there
        (`shift_prior`), which is right where only that rate has moved, and harmful where other
        rows come (docs/shift.md).
    zero_division : float, default=0.0
        F of predicting nothing where there is nothing to find.
    min_precision : float, default=None
        The least precision of the labels of a batch, with probability `confidence_level`; where no
        set has it, nothing is selected.
    min_recall : float, default=None
        The least recall; both hold at once.
    confidence_level : float, default=None
        The probability, if the probabilities are right, with which they hold in each batch.
    min_selected : int, default=None
        Select at least so many of each batch: rows (binary), rows for each label (`"macro"`),
        labels for each row (`"samples"`) or cells (`"micro"`). Not for multiclass targets.
    max_selected : int, default=None
        Select at most so many: the best batch of labels within the budget, exactly.
    max_selected_rate : float, default=None
        Select at most this part of each batch, always; `freeze` keeps it on the rows of reference.
    pos_label : label, default=None
        The class F counts in a binary target; by default the last in sorted order.
    n_jobs : int, default=None
        Processes for the folds.
    random_state : int or RandomState, default=0
        Seed of the folds.

    Attributes
    ----------
    estimators_ : list
        The fitted classifiers, those of each fold in turn; one per label where one cannot hold them
        all.
    calibrate_ : str, regressor or None
        The form of calibration in use.
    doubt_ : str or None
        Why the probabilities are known to be off, where they are: `fit` has then warned, and
        `decide` promises nothing.

    Notes
    -----
    Isotonic curves are flat in places, and many rows get the same probability. Rows of equal
    probability are ordered by the classifier's own score (they differ by a billionth), so that a
    set that takes only some of them takes the best. A model that was reweighted or resampled
    (`class_weight`, `scale_pos_weight`, a sampler in the pipeline) is repaired by calibration, as
    rows held out are neither; without calibration, `fit` warns. Rows that are weighted are another
    matter: F is then that of the weighted population, and `fit` warns where its rate of positives
    is far from that of the rows, unless `deploy_rate` says which one is meant.

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

    def __init__(
        self,
        estimator: Any,
        *,
        beta: float = 1.0,
        measure: Any = "fbeta",
        average: str = "macro",
        calibrate: Any = "auto",
        cv: Any = 5,
        deploy_rate: Any = None,
        zero_division: float = 0.0,
        min_precision: float | None = None,
        min_recall: float | None = None,
        confidence_level: float | None = None,
        min_selected: int | None = None,
        max_selected: int | None = None,
        max_selected_rate: float | None = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.beta = beta
        self.measure = measure
        self.average = average
        self.calibrate = calibrate
        self.cv = cv
        self.deploy_rate = deploy_rate
        self.zero_division = zero_division
        self.min_precision = min_precision
        self.min_recall = min_recall
        self.confidence_level = confidence_level
        self.min_selected = min_selected
        self.max_selected = max_selected
        self.max_selected_rate = max_selected_rate
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, rows: Training) -> None:
        limits = self.min_selected, self.max_selected
        problem = Problem.of(self.beta, self.measure, self.zero_division, "split", *limits)
        check_choice("average", self.average, ("macro", "micro", "samples"))
        if self._labels.kind == "multiclass" and self.average != "macro":
            raise ValueError(
                "average of a multiclass target is 'macro', as one class for each row makes any "
                f"other F accuracy, got {self.average!r}"
            )
        self._check_alone(problem)
        self._deployed = Deployed.of(self.deploy_rate, self._labels, rows.columns, rows.weight)
        if not is_given(self.estimator):  # a comparison says it once
            warn_of_weights(rows.columns, rows.weight, self.deploy_rate)
        self.calibrate_ = self._form(rows.columns)
        params = self._fit_params(rows.weight, rows.params)
        if self.calibrate_ is None:
            self._fit_plain(rows, params)
        else:
            self._fit_calibrated(rows, params)
        self._small = SmallBatches()

    def _check_alone(self, problem: Problem) -> None:
        """Refuse promises that cannot be read, and limits on classes that compete for rows."""
        chance = ChanceConstraint.of(self.min_precision, self.min_recall, self.confidence_level)
        is_free = problem.is_free and not Constraints(None, None, self.max_selected_rate).given()
        if self._labels.kind != "multiclass" or (chance is None and is_free):
            return
        raise ValueError(
            f"a {'budget' if chance is None else 'promise'} needs a binary or multilabel target: "
            f"where classes compete for rows, no class decides alone; got {len(self.classes_)} "
            "classes"
        )

    def _form(self, columns: Bools) -> Any:
        """Return the form of calibration to use, None for probabilities as they are."""
        form = check_form(self.calibrate)
        if taken_as_they_are(form, self.estimator) or lonely(columns).all():
            return None
        return "isotonic" if form == "auto" else form

    def _fit_plain(self, rows: Training, params: dict[str, Any]) -> None:
        """Fit the classifier once, and see whether its total of positives is right."""
        self._fit_scorer(rows, params, ("predict_proba",))
        proba = self._scorer.predict(rows.X)
        self._reference = proba if isinstance(self.estimator, FrozenEstimator) else None
        here = not isinstance(last_step(self.estimator), FrozenEstimator)
        known = {"learned_here": here, "held_out": is_given(self.estimator)}
        self.doubt_ = doubt(self._scorer.models_, proba, rows.columns, rows.weight, **known)
        if self.doubt_ is not None:
            warnings.warn(self.doubt_, CalibrationWarning, stacklevel=4)

    def _fit_calibrated(self, rows: Training, params: dict[str, Any]) -> None:
        """Fit the classifier for each fold, with the curves of the rows held out."""
        splits = folds(self.cv, rows.columns, rows.target, self.random_state, rows.groups)
        method = response_method(self.estimator, PREFERRED[self._labels.kind])
        scorer = LabelScorer(self.estimator, self._labels, method)
        how = (splits, self.calibrate_, rows.weight)
        options: dict[str, Any] = {"n_jobs": self.n_jobs, "params": params}
        self._scorer = cross_fit(scorer, rows.X, rows.target, *how, **options)
        self._show(self._scorer.fitted)
        self._reference = self._scorer.held_out
        self.doubt_ = None

    def _put_on(self, held_out: HeldOut) -> Self:
        """Return this classifier on the models of the folds, which calibration is about."""
        if self.calibrate_ is None:
            return super()._put_on(held_out)
        self.estimator = held_out.estimator
        kind = held_out.kind_of(self._scorer.models[0].method)
        models = [model.reading(kind) for model in held_out.models]
        rest = (held_out.of_kind(kind), held_out.columns, self.calibrate_, held_out.weight)
        self._scorer = from_folds(models, held_out.parts, *rest)
        self._show(self._scorer.fitted)
        self._reference = self._scorer.held_out
        return self
