"""Expected F (ML^E): calibrated probabilities from any classifier, and the set with the highest."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from argmaxf.constraints import Asked, Constraints, most_of
from argmaxf.estimators.base import MetaFClassifier, boundary, decided_gain, signed
from argmaxf.estimators.calibration import check_form, cross_fit, from_folds, settled
from argmaxf.estimators.deployed import Deployed
from argmaxf.estimators.doubts import CalibrationWarning, doubt
from argmaxf.estimators.folds import folds
from argmaxf.estimators.heldout import HeldOut
from argmaxf.estimators.rowwise import RowwiseFClassifier, SmallBatches
from argmaxf.estimators.scores import PREFERRED, LabelScorer, response_method
from argmaxf.expected.decision import Decision
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.shared_rows.decide import is_additive
from argmaxf.question import Question
from argmaxf.validation import check_choice

PROVEN = 1e-4  # the part of the best macro F that one class for each row may be short of


class ExpectedFClassifier(MetaFClassifier):
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
        The least precision that the labels of a batch shall have, with odds of `odds`; where none
        have it, nothing is selected.
    min_recall : float, default=None
        The least recall, with the same odds; both hold at once.
    odds : float, default=None
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
    rows held out are neither; without calibration, `fit` warns.

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
        odds: float | None = None,
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
        self.odds = odds
        self.min_selected = min_selected
        self.max_selected = max_selected
        self.max_selected_rate = max_selected_rate
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the classifier and the curves that calibrate it.

        Parameters
        ----------
        X : array-like
            The rows, passed on to the classifier untouched.
        y : array-like
            The target: binary, multiclass or a multilabel indicator.
        sample_weight : array-like of float, default=None
            How many rows each row stands for.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that are held out together.
        **fit_params : dict
            Passed on to the classifier's `fit`: eval sets, callbacks, and what has one entry for
            each row, which is cut to the rows of a fold. With metadata routing, what it requests.

        Returns
        -------
        ExpectedFClassifier
            The fitted classifier itself.
        """
        limits = self.min_selected, self.max_selected
        question = Question.of(self.beta, self.measure, self.zero_division, "split", *limits)
        check_choice("average", self.average, ("macro", "micro", "samples"))
        target, weight = self._read(X, y, sample_weight)
        self._check_alone(question)
        columns = self._labels.columns(target)
        self._deployed = Deployed.of(self.deploy_rate, self._labels, columns, weight)
        self.calibrate_ = self._form(columns)
        params = self._fit_params(weight, fit_params)
        if self.calibrate_ is None:
            self._fit_plain(X, target, columns, weight, params)
        else:
            splits = folds(self.cv, columns, target, self.random_state, groups)
            self._fit_calibrated(X, target, splits, weight, params)
        self._small = SmallBatches()
        return self

    def _check_alone(self, question: Question) -> None:
        """Refuse promises that cannot be read, and limits on classes that compete for rows."""
        asked = Asked.of(self.min_precision, self.min_recall, self.odds)
        is_free = question.is_free and not Constraints(None, None, self.max_selected_rate).given()
        if self._labels.kind != "multiclass" or (asked is None and is_free):
            return
        raise ValueError(
            f"a {'budget' if asked is None else 'promise'} needs a binary or multilabel target: "
            f"where classes compete for rows, no class decides alone; got {len(self.classes_)} "
            "classes"
        )

    def _form(self, columns: NDArray[np.bool_]) -> Any:
        """Return the form of calibration to use, None for probabilities as they are."""
        form = check_form(self.calibrate)
        if form is None or (form == "auto" and settled(self.estimator)):
            return None
        lonely = np.minimum(columns.sum(axis=0), (~columns).sum(axis=0)) < 2
        return None if lonely.all() else "isotonic" if form == "auto" else form

    def _fit_plain(self, X: Any, target: Any, columns: Any, weight: Any, params: Any) -> None:
        """Fit the classifier once, and see whether its total of positives is right."""
        self._fit_scorer(X, target, params, ("predict_proba",))
        proba = self._scorer.predict(X)
        self._reference = proba if isinstance(self.estimator, FrozenEstimator) else None
        self.doubt_ = doubt(self.estimator, proba, columns, weight)
        if self.doubt_ is not None:
            warnings.warn(self.doubt_, CalibrationWarning, stacklevel=3)

    def _fit_calibrated(self, X: Any, target: Any, splits: Any, weight: Any, params: Any) -> None:
        """Fit the classifier for each fold, with the curves of the rows held out."""
        method = response_method(self.estimator, PREFERRED[self._labels.kind])
        scorer = LabelScorer(self.estimator, self._labels, method)
        options = {"n_jobs": self.n_jobs, "params": params}
        self._scorer = cross_fit(scorer, X, target, splits, self.calibrate_, weight, **options)
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
            be off (`doubt_`): the set is the best for them, but what they promise does not hold.
        """
        check_is_fitted(self)
        if self.doubt_ is not None:
            warnings.warn(f"no F can be promised: {self.doubt_}", CalibrationWarning, stacklevel=2)
        return self._promise(self._decide(self._proba(X)))

    def _promise(self, decision: Decision) -> Decision:
        """Return the decision without its promise where the probabilities are known to be off."""
        if self.doubt_ is None:
            return decision
        unknown = np.nan * np.asarray(decision.expected)
        return replace(decision, expected=unknown[()], std=unknown[()], promise=None)

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
            self._small.warn(len(margin), self._deployed.train[self._deployed.usual])
        return self._labels.decode(margin)

    def freeze(self, X_reference: Any = None) -> RowwiseFClassifier:
        """Return a fitted classifier that decides each row alone, by a threshold kept.

        Parameters
        ----------
        X_reference : array-like, default=None
            Rows like those to come, without labels: the threshold is that of their decision. By
            default the training rows, with the probabilities they got while held out.

        Returns
        -------
        RowwiseFClassifier
            With `threshold_`, and the F to expect of it in `expected_` and `std_`.
        """
        check_is_fitted(self)
        limits = self.min_selected, self.max_selected
        if limits != (None, None) and self._average() != "samples":
            raise ValueError(
                "a classifier with min_selected or max_selected cannot be frozen: the budget is of "
                "a batch, and a row that comes alone has none"
            )
        if X_reference is not None:
            return self._frozen_like(self._scorer.predict(X_reference))
        if self._reference is None or self._deployed.by_batch or self._moves_rows():
            raise ValueError(
                "freeze needs X_reference, rows like those to come: without calibration there are "
                "no held-out probabilities to take the threshold from, and training does not show "
                "a rate that is to be estimated, nor whole rows at other rates"
            )
        return self._frozen_like(self._reference, as_trained=True)

    def _moves_rows(self) -> bool:
        """Whether rows whose labels are decided together are to be moved to other rates."""
        return self._deployed.asked is not None and self._average() != "macro"

    def _frozen_like(self, reference: Any, *, as_trained: bool = False) -> RowwiseFClassifier:
        """Return the classifier with the thresholds and rates of one batch's probabilities.

        Those of the training rows are drawn first as they would come at the rate asked for.
        """
        self = copy(self)
        if self._deployed.asked is not None:
            self._deployed = replace(self._deployed, asked=self._deployed.rates(reference))
            moved = self._deployed.sample_like if as_trained else self._deployed.moved
            reference = moved(reference)
        decision = self._promise(self._decide(reference, apart=True))
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
        return maximize_expected_f(
            proba[:, 0] if binary else proba,
            measure=measure,
            average=average,
            zero_division=self.zero_division,
            labels_per_row=1 if shared else None,
            tol=PROVEN if shared else None,
            min_precision=self.min_precision,
            min_recall=self.min_recall,
            odds=self.odds,
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

    def estimate_rate(self, X: Any) -> Any:
        """Return the rate of positives in a batch, if rows of each class look as in training.

        Parameters
        ----------
        X : array-like
            The rows, without labels.

        Returns
        -------
        Interval, list of Interval or ndarray of float
            The most likely rate with its 95 % interval, one for each label of a multilabel target
            (None for a label that training saw always or never); of a multiclass target the most
            likely share of each class.
        """
        check_is_fitted(self)
        found = self._deployed.estimated(self._scorer.predict(X))
        return found[0] if self._labels.kind == "binary" else found

    def _proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities to decide by: calibrated, and moved to the rate of X."""
        return self._deployed.moved(self._scorer.predict(X))

    def _average(self) -> str:
        return "macro" if self._labels.kind == "multiclass" else self.average

    def _margin(self, X: Any) -> NDArray[np.float64]:
        proba = self._proba(X)
        selected = np.asarray(self._decide(proba).selected).reshape(proba.shape)
        margin = proba - boundary(proba, selected, self._average())
        if self._labels.kind == "multiclass":
            margin = margin * decided_gain(proba, selected, self._asked())
        return signed(margin, selected)

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities that decisions are made with.

        Parameters
        ----------
        X : array-like
            The rows.

        Returns
        -------
        ndarray
            Of each class, or of each label of a multilabel target.
        """
        check_is_fitted(self)
        return self._labels.both(self._proba(X))

    def _has_probabilities(self) -> bool:
        return hasattr(self.estimator, "predict_proba") or not (
            self.calibrate is None or (self.calibrate == "auto" and settled(self.estimator))
        )
