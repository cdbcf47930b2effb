"""Cross-validation for a comparison: every model fitted once per fold, and scores of other rows.

The rows evaluated are those of a test set, or those that `cv` holds out. One table of held-out
scores of the classifier serves all methods that wrap it; a method with a model of its own predicts
the same rows.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.parallel import Parallel, delayed

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.validation import check_count, ones_unless
from argmaxf.comparison.methods import Method, Settings, methods_for
from argmaxf.empirical.guarantees import refuse_groups
from argmaxf.estimators.calibration import CalibrationWarning, is_calibrated
from argmaxf.estimators.expected_f import SmallBatchWarning
from argmaxf.estimators.folds import assign_folds, held_out_rows, make_splits, seed_of, too_rare
from argmaxf.estimators.labels import Labels, constants_silenced
from argmaxf.estimators.scores import (
    Fit,
    HeldOut,
    LabelScorer,
    TrainingData,
    last_step,
    score_fits,
    weight_parameter,
)
from argmaxf.estimators.shift import DriftDetector, TargetPrior

Progress = bool | Callable[[int, int, str], None]


@contextmanager
def advice_silenced() -> Iterator[None]:
    """Suppress what methods advise their users; the notes of the comparison say it once."""
    with constants_silenced(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        warnings.simplefilter("ignore", SmallBatchWarning)
        yield


def _read_predictions(online: bool, model: Any, X: Any) -> tuple[Any, Any]:
    """Return predictions, and decision scores where there are any."""
    model = model.freeze() if online and hasattr(model, "freeze") else model
    scores = model.decision_function(X) if hasattr(model, "decision_function") else None
    return model.predict(X), scores


@dataclass
class CrossValidation:
    """The rows of a comparison, and the scores and predictions of models not trained on them."""

    auto: Any  # the `AutoFClassifier` whose options are those of the comparison
    rows: TrainingData
    test: tuple[Any, Any] | None = None  # X and the target of a test set
    needs_model: bool = False  # whether the classifier that predicts is used

    # What is read from the models: the classifier's scores, with those of the linear model to blend
    # as `other`, its scores of the test set, and what methods with their own models predict.
    held_out: HeldOut = field(init=False)
    test_scores: dict[str, Floats] = field(init=False)
    own: dict[str, tuple[Bools, Floats]] = field(init=False)

    def __post_init__(self) -> None:
        auto, rows = self.auto, self.rows
        self.estimator = auto.estimator
        self.set_size: int | None = auto.set_size
        self.settings = settings = Settings.of(auto, rows.labels.positive)
        if self.set_size is not None:
            check_count("set_size", self.set_size)
        self._check_rate()
        methods = methods_for(auto.methods, settings.objective)
        self.prior = TargetPrior.of(settings.deploy_rate, rows.labels, rows.columns, rows.weight)
        if rows.groups is not None and settings.confidence_level is not None:
            refuse_groups()
        self.splits = make_splits(settings.cv, rows.columns, rows.target, rows.groups)
        self.rated = held_out_rows(self.splits, len(rows.columns))
        self.notes: list[str] = []
        self.methods = self._applicable(methods)
        self.blended = {key for method in self.methods for key in method.members}
        for method in self.methods:
            if method.wraps:
                method.make(self.estimator, settings).check(rows.labels, rows.columns)

    def _check_rate(self) -> None:
        """Refuse rates of labels that share rows, and those that single rows cannot show."""
        rate = self.settings.deploy_rate
        if rate is not None and self.rows.labels.is_multilabel:
            raise ValueError(
                "deploy_rate of AutoFClassifier is for binary and multiclass targets: rows cannot "
                "be weighted for all labels at once; ExpectedFClassifier takes one for each label"
            )
        if isinstance(rate, str) and self.online:
            raise ValueError(
                "set_size=1 decides each row alone, and the rate cannot be estimated from one "
                "row: pass a number as deploy_rate, or freeze a classifier on rows like the "
                "future ones"
            )

    @property
    def online(self) -> bool:
        """Whether each row is decided alone."""
        return self.set_size == 1

    @cached_property
    def truth(self) -> Bools:
        """The labels of the rows to evaluate, one column for each."""
        return self.rows.columns if self.test is None else self.rows.labels.columns(self.test[1])

    @property
    def weight_in_use(self) -> Floats | None:
        """The weight of each training row at the target rate."""
        weight, columns = self.rows.weight, self.rows.columns
        if self.settings.deploy_rate is None or self.prior.by_batch:
            return weight
        moved = self.prior.weights(columns, self.prior.rates())[:, 0]
        return moved * ones_unless(weight, len(moved))

    @property
    def proba(self) -> Floats | None:
        """The classifier's probabilities for the rows to evaluate, where it has any."""
        return (self.test_scores or self.held_out.tables).get("predict_proba")

    @property
    def drift_detector(self) -> DriftDetector:
        """The models of the folds, and their scores of held-out rows."""
        kind, scores = next(iter(self.held_out.tables.items()))
        return DriftDetector(self.held_out.models, kind, scores[self.rated])

    def parts(self) -> list[tuple[Ints, Ints]]:
        """Return the held-out rows in parts, each with the rest, from which methods learn."""
        parts = [fold for _, fold in self.splits]
        if len(parts) == 1:
            fold = assign_folds(self.rows.columns[self.rated], 5, seed_of(self.settings.cv))
            parts = [self.rated[fold == i] for i in range(5)]
        return [(np.setdiff1d(self.rated, part), part) for part in parts]

    def run(self, progress: Progress = False) -> None:
        """Run the fits, and report each of them to `progress`."""
        smallest = self.rows.columns.sum(axis=0)
        if self.rows.labels.kind == "multiclass" and smallest.min() < 2:
            raise ValueError(
                "methods are compared on held-out rows, for which every class needs two rows, got "
                f"{smallest.min()} of class {str(self.rows.labels.classes[smallest.argmin()])!r}"
            )
        show = _print_progress if progress is True else progress
        whole = (self.needs_model and len(self.splits) > 1) or self.test is not None
        of_rows = (self.estimator, self.rows.labels, self.splits, self.rows.params, whole)
        fits: list[tuple[Method | None, Fit]] = [(None, fit) for fit in score_fits(*of_rows)]
        fits += [(method, fit) for method in self.methods for fit in self._own_fits(method)]
        rows = (self.rows.X, self.rows.target, None if self.test is None else self.test[0])
        models = Parallel(return_as="generator")(delayed(fit.run)(*rows) for _, fit in fits)
        fitted: dict[Method | None, list[tuple[Any, Any]]] = defaultdict(list)
        for number, (method, fit) in enumerate(fits):
            if show:
                name = method.name if method else type(last_step(self.estimator)).__name__
                fold = f"fold {len(fitted[method]) + 1} of {len(self.splits)}"
                show(number, len(fits), f"{name}, {'all rows' if fit.split is None else fold}")
            fitted[method].append(next(models))
        if show:
            show(len(fits), len(fits), "")
        self._gather(fitted)

    def _gather(self, fitted: dict[Method | None, list[tuple[Any, Any]]]) -> None:
        """Keep what was read from the models of the classifier (None) and of methods."""
        labels, shape = self.rows.labels, self.truth.shape
        of_rows = (self.splits, self.rows.columns, self.rows.weight)
        self.held_out = HeldOut.of(fitted[None], *of_rows)
        self.test_scores = {} if self.test is None else fitted[None][-1][1]
        places: list[Any] = [part for _, part in self.splits]
        places = places if self.test is None else [slice(None)]
        self.own = {}
        for method in self.methods:
            if method.wraps:
                continue
            own, selected, scores = fitted[method], np.zeros(shape, bool), np.full(shape, np.nan)
            for place, (_, (predicted, margins)) in zip(places, own[-len(places) :], strict=True):
                selected[place] = labels.columns(predicted)
                if margins is not None:
                    scores[place] = labels.margins(margins)
            self.own[method.name] = selected, scores
            if method.key in self.blended:
                folds = [
                    (_as_scorer(model, labels), {"decision_function": labels.margins(margins)})
                    for model, (_, margins) in own[: len(self.splits)]
                ]
                self.held_out = replace(self.held_out, other=HeldOut.of(folds, *of_rows))

    def _applicable(self, methods: list[Method]) -> list[Method]:
        """Return the methods that can be compared, with all that they blend."""
        found = [m for m in methods if self._applies(m)]
        keys = {m.key for m in found}
        able = [m for m in found if keys.issuperset(m.members)]
        if not able:
            names = ", ".join(repr(m.key) for m in methods)
            limited = self.settings.confidence_level is not None
            what = f"guarantee {self.settings.constraints}" if limited else "take part"
            raise ValueError(f"no method can {what} here, got {names}")
        return able

    def _applies(self, method: Method) -> bool:
        """Whether a method can be compared on these rows; a note says why not."""
        guaranteed = self.settings.confidence_level is not None
        if (guaranteed or self.prior.by_batch) and not method.adapts:
            return False
        if guaranteed and self.online and method.joint:
            self.notes.append(
                f"{method.name} was left out: its guarantee is for a batch, and rows are predicted "
                "one at a time"
            )
            return False
        if method.rests_on == "probabilities" and not hasattr(self.estimator, "predict_proba"):
            return method.key != "uncalibrated" and not is_calibrated(self.estimator)
        if isinstance(self.estimator, FrozenEstimator) and not method.wraps:
            return method.added
        if method.members:
            return not any(too_rare(self.rows.columns[rest]).all() for rest, _ in self.parts())
        problem = _not_numeric(self.estimator, self.rows) if method.linear else ""
        if problem:
            self.notes.append(f"{method.name} was left out, it needs numeric features: {problem}")
        return not problem

    def _own_fits(self, method: Method) -> Iterator[Fit]:
        """Yield the fits of a method with a model of its own: on each fold, and for a test set."""
        if method.wraps:
            return
        model = method.make(self.estimator, self.settings)
        one = Fit(model, self._own_params(model), partial(_read_predictions, self.online))
        if self.test is None or method.key in self.blended:
            yield from (replace(one, split=split) for split in self.splits)
        if self.test is not None:
            yield one

    def _own_params(self, classifier: Any) -> dict[str, Any]:
        """Return the weights for a method with a model of its own, if it takes them."""
        name, weight = weight_parameter(classifier), self.weight_in_use
        return {} if weight is None or name is None else {name: weight}

    def learn(self, method: Method, rows: Ints) -> Any:
        """Return a method that trains no model, learned from the held-out scores of some rows."""
        return method.make(self.estimator, self.settings).learn(self.held_out.take(rows))

    def fit(self, method: Method) -> Any:
        """Return a method fitted on all rows; one that trains no model needs no more fits."""
        if method.wraps:
            return self.learn(method, np.arange(len(self.rows.columns)))
        classifier = method.make(self.estimator, self.settings)
        with constants_silenced():
            params = self._own_params(classifier)
            return classifier.fit(self.rows.X, self.rows.target, **params)


def _as_scorer(model: Any, labels: Labels) -> LabelScorer:
    scorer = LabelScorer(model, labels)
    scorer.models_, scorer.shared_ = [model], None
    return scorer


def _print_progress(done: int, total: int, name: str) -> None:
    print(f"{done} of {total} models fitted{f', next {name}' if name else ''}", file=sys.stderr)


def _not_numeric(estimator: Any, rows: TrainingData) -> str:
    """Return why X, as the classifier of a pipeline gets it, is no table of numbers."""
    X = rows.X
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        X = clone(estimator[:-1]).fit_transform(X, rows.target)
    try:
        check_array(X, accept_sparse="csr", dtype=np.float64)
    except (TypeError, ValueError) as error:
        return str(error).splitlines()[0]
    return ""
