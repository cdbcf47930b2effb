"""Cross-validation for a comparison: every model fitted once per fold, and scores of other rows.

The rows evaluated are those of a test set, or those that `cv` holds out. One table of held-out
scores of the classifier serves all methods that wrap it; a method with a model of its own predicts
the same rows.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_validate
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.parallel import Parallel, delayed

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.validation import ones_unless
from argmaxf.comparison.methods import Method, Settings
from argmaxf.empirical.guarantees import refuse_groups
from argmaxf.estimators.calibration import CalibrationWarning, is_calibrated
from argmaxf.estimators.folds import assign_folds, held_out_rows, make_splits, seed_of, too_rare
from argmaxf.estimators.joint_decision import SmallBatchWarning
from argmaxf.estimators.labels import Labels, constants_silenced
from argmaxf.estimators.scores import (
    HeldOutScores,
    LabelScorer,
    PrecomputedScores,
    kinds_of_scores,
    last_step,
    weight_parameter,
)
from argmaxf.estimators.shift import DriftDetector, TargetPrior

LINEAR = ("decision_function",)  # the scores that are read from a linear model
Progress = bool | Callable[[int, int, str], None]


@contextmanager
def advice_silenced() -> Iterator[None]:
    """Suppress what methods advise their users; the notes of the comparison say it once."""
    with constants_silenced(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        warnings.simplefilter("ignore", SmallBatchWarning)
        yield


@dataclass(frozen=True)
class Fit:
    """One model to fit: on the rest of a fold, or without a split on all rows."""

    method: Method | None  # None is the classifier itself
    name: str
    model: Any
    params: dict[str, Any]
    read: Callable[[Any, Any], Any]  # what to keep of the model for rows it was not trained on
    split: tuple[Ints, Ints] | None = None

    def run(self, X: Any, target: NDArray[Any], X_test: Any) -> Any:
        """Return the fitted model, with what was read from it as `read_`."""
        with constants_silenced():
            if self.split is not None:
                how = {"scoring": partial(_keep, self.read), "params": self.params}
                return cross_validate(
                    self.model, X, target, cv=[self.split], return_estimator=True,
                    error_score="raise", **how,
                )["estimator"][0]  # fmt: skip
            model = clone(self.model).fit(X, target, **self.params)
            model.read_ = None if X_test is None else self.read(model, X_test)
            return model


def _keep(read: Callable[[Any, Any], Any], model: Any, X: Any, y: Any) -> float:
    """Keep what is read on the model; `cross_validate` calls this as its scorer."""
    model.read_ = read(model, X)
    return 0.0


def _read_scores(kinds: Sequence[str], scorer: LabelScorer, X: Any) -> Floats:
    return np.hstack([scorer.scores(X, kind) for kind in kinds])


def _read_predictions(online: bool, model: Any, X: Any) -> tuple[Any, Any]:
    """Return predictions, and decision scores where there are any."""
    model = model.freeze() if online and hasattr(model, "freeze") else model
    scores = model.decision_function(X) if hasattr(model, "decision_function") else None
    return model.predict(X), scores


@dataclass
class CrossValidation:
    """The rows of a comparison, and the scores and predictions of models not trained on them.

    `scores` has a row for each training row and a block of columns for each of `kinds`:
    probabilities, and scores for thresholds.
    """

    X: Any
    target: NDArray[Any]
    labels: Labels
    weight: Floats | None
    estimator: Any
    settings: Settings
    methods: list[Method]
    fit_params: dict[str, Any]  # for the classifier's fit, with the weights
    test: tuple[Any, NDArray[Any]] | None = None  # X and the target of a test set
    groups: Any = None  # of rows that are held out together
    needs_model: bool = False  # whether the classifier that predicts is used
    set_size: int | None = None  # rows predicted at a time; 1 is online prediction

    def __post_init__(self) -> None:
        columns, settings = self.labels.columns(self.target), self.settings
        self.prior = TargetPrior.of(settings.deploy_rate, self.labels, columns, self.weight)
        if self.groups is not None and settings.confidence_level is not None:
            refuse_groups()
        self.kinds = kinds_of_scores(self.estimator)
        self.splits = make_splits(settings.cv, columns, self.target, self.groups)
        self.held_out = held_out_rows(self.splits, len(columns))
        self.scores = np.full((len(columns), len(self.kinds) * columns.shape[1]), np.nan)
        self.linear_scores = np.full(columns.shape, np.nan)  # of the linear model to blend
        self.test_scores: Floats | None = None
        self.notes: list[str] = []
        self.methods = self._applicable()
        self.blended = {key for method in self.methods for key in method.members}
        shape = (len(self.truth), columns.shape[1])
        own = [m.name for m in self.methods if m.rests_on == "rows"]
        self.own = {name: (np.zeros(shape, bool), np.full(shape, np.nan)) for name in own}
        self.models: list[LabelScorer] = []  # of each fold
        self.linear_models: list[LabelScorer] = []
        self.model: LabelScorer | None = None  # trained on all rows, or on those of a single split

    @property
    def online(self) -> bool:
        """Whether each row is decided alone."""
        return self.set_size == 1

    @property
    def X_test(self) -> Any:
        """The rows of the test set, if there is one."""
        return None if self.test is None else self.test[0]

    @cached_property
    def truth(self) -> Bools:
        """The labels of the rows to evaluate, one column for each."""
        return self.labels.columns(self.target if self.test is None else self.test[1])

    @property
    def weight_in_use(self) -> Floats | None:
        """The weight of each training row at the target rate."""
        if self.settings.deploy_rate is None or self.prior.by_batch:
            return self.weight
        columns = self.labels.columns(self.target)
        moved = self.prior.weights(columns, self.prior.rates(self.scores))[:, 0]
        return moved * ones_unless(self.weight, len(moved))

    @property
    def proba(self) -> Floats | None:
        """The classifier's probabilities for the rows to evaluate, where it has any."""
        scores = self.scores if self.test_scores is None else self.test_scores
        has_any = self.kinds[0] == "predict_proba"
        return scores[:, : self.labels.n_columns] if has_any else None

    @cached_property
    def table(self) -> Floats:
        """What methods learn from once all fits are run: scores, and those to blend."""
        return np.hstack([self.scores, self.linear_scores]) if self.blended else self.scores

    @property
    def drift_detector(self) -> DriftDetector:
        """The models of the folds, and their scores of held-out rows."""
        return DriftDetector(self.models, self.scores[self.held_out, : self.labels.n_columns])

    def parts(self) -> list[tuple[Ints, Ints]]:
        """Return the held-out rows in parts, each with the rest, from which methods learn."""
        parts = [fold for _, fold in self.splits]
        if len(parts) == 1:
            columns = self.labels.columns(self.target)[self.held_out]
            fold = assign_folds(columns, 5, seed_of(self.settings.cv))
            parts = [self.held_out[fold == i] for i in range(5)]
        return [(np.setdiff1d(self.held_out, part), part) for part in parts]

    def run(self, progress: Progress = False) -> None:
        """Run the fits, and report each of them to `progress`."""
        self._check_classes()
        show = _print_progress if progress is True else progress
        fits = [*self._classifier_fits(), *self._own_fits()]
        rows = (self.X, self.target, self.X_test)
        models = Parallel(return_as="generator")(delayed(fit.run)(*rows) for fit in fits)
        for number, fit in enumerate(fits):
            if show:
                show(number, len(fits), fit.name)
            self._keep(fit, next(models))
        if show:
            show(len(fits), len(fits), "")

    def _check_classes(self) -> None:
        """Refuse a class in one row only: no method can learn it while that row is held out."""
        rows = self.labels.columns(self.target).sum(axis=0)
        if self.labels.kind == "multiclass" and rows.min() < 2:
            raise ValueError(
                "methods are compared on held-out rows, for which every class needs two rows, got "
                f"{rows.min()} of class {str(self.labels.classes[np.argmin(rows)])!r}"
            )

    def _applicable(self) -> list[Method]:
        """Return the methods that can be compared, with all that they blend."""
        found = [m for m in self.methods if self._applies(m)]
        keys = {m.key for m in found}
        able = [m for m in found if keys.issuperset(m.members)]
        if not able:
            names = ", ".join(repr(m.key) for m in self.methods)
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
        if method.rests_on == "probabilities" and self.kinds[0] != "predict_proba":
            return method.key != "uncalibrated" and not is_calibrated(self.estimator)
        if isinstance(self.estimator, FrozenEstimator) and method.rests_on == "rows":
            return method.added
        if method.members:
            columns = self.labels.columns(self.target)
            return not any(too_rare(columns[rest]).all() for rest, _ in self.parts())
        problem = _not_numeric(self.estimator, self.X, self.target) if method.linear else ""
        if problem:
            self.notes.append(f"{method.name} was left out, it needs numeric features: {problem}")
        return not problem

    def _classifier_fits(self) -> Iterator[Fit]:
        scorer = LabelScorer(self.estimator, self.labels, self.kinds[0], tuple(self.fit_params))
        name = type(last_step(self.estimator)).__name__
        common = (scorer, self.fit_params, partial(_read_scores, self.kinds))
        splits: list[Any] = self.splits
        if isinstance(self.estimator, FrozenEstimator):  # it was trained on none of the rows
            splits = [(self.held_out, self.held_out)]
        for i, split in enumerate(splits, start=1):
            yield Fit(None, f"{name}, fold {i} of {len(splits)}", *common, split)
        if (self.needs_model and len(self.splits) > 1) or self.test is not None:
            yield Fit(None, f"{name}, all rows", *common)

    def _own_fits(self) -> Iterator[Fit]:
        read, splits = partial(_read_predictions, self.online), self.splits
        for method in self.methods:
            if method.rests_on != "rows":
                continue
            model = method.make(self.estimator, self.settings)
            common = (model, self._own_params(model), read)
            if self.test is not None:
                yield Fit(method, f"{method.name}, all rows", *common)
            if self.test is None or method.key in self.blended:
                for i, split in enumerate(splits, start=1):
                    yield Fit(method, f"{method.name}, fold {i} of {len(splits)}", *common, split)

    def _own_params(self, classifier: Any) -> dict[str, Any]:
        """Return the weights for a method with a model of its own, if it takes them."""
        name, weight = weight_parameter(classifier), self.weight_in_use
        return {} if weight is None or name is None else {name: weight}

    def _keep(self, fit: Fit, model: Any) -> None:
        """Keep what was read from one model."""
        rows: Any = slice(None) if fit.split is None else fit.split[1]
        if fit.method is None:
            if fit.split is None:
                self.model, self.test_scores = model, model.read_
            else:
                self.scores[rows] = model.read_
                self.models.append(model)
                if len(self.splits) == 1:  # the model that predicts
                    self.model = model
        else:
            predicted, scores = model.read_
            if fit.method.key in self.blended and fit.split is not None:
                self.linear_scores[rows] = self.labels.margins(scores)
                scorer = LabelScorer(model, self.labels, *LINEAR)
                scorer.models_ = [model]
                self.linear_models.append(scorer)
            if self.test is None or fit.split is None:
                own, own_scores = self.own[fit.method.name]
                own[rows] = self.labels.columns(predicted)
                if scores is not None:
                    own_scores[rows] = self.labels.margins(scores)
        model.read_ = None

    def learn(self, method: Method, rows: Ints) -> Any:
        """Return a method that trains no model, learned from the held-out scores of some rows."""
        calibrated = is_calibrated(self.estimator)
        given = PrecomputedScores(self.labels, self.kinds, calibrated)
        parts = [np.flatnonzero(np.isin(rows, part)) for _, part in self.splits]
        places = np.arange(len(rows))
        cv = [(np.setdiff1d(places, part), part) for part in parts if len(part)]
        fresh = method.make(FrozenEstimator(given), replace(self.settings, cv=cv))
        if method.members:
            linear = PrecomputedScores(self.labels, LINEAR, False, first=len(self.kinds))
            fresh.set_params(other=FrozenEstimator(linear))
        weight = None if self.weight is None else self.weight[rows]
        return fresh.fit(self.table[rows], self.target[rows], sample_weight=weight)

    def fit(self, method: Method) -> Any:
        """Return a method fitted on all rows; one that trains no model needs no more fits."""
        if method.wraps or method.members:
            with advice_silenced():
                return self.learn(method, self.held_out).use_models(*self._held_out_scores(method))
        classifier = method.make(self.estimator, self.settings)
        with constants_silenced():
            return classifier.fit(self.X, self.target, **self._own_params(classifier))

    def _held_out_scores(self, method: Method) -> Iterator[HeldOutScores]:
        """Yield the held-out scores of the classifier, and of the linear model to blend with it."""
        parts = [part for _, part in self.splits]
        one = isinstance(self.estimator, FrozenEstimator)
        rows = (self.labels.columns(self.target), self.weight)
        of_parts = (self.models, [self.held_out] if one else parts, self.kinds, self.scores)
        yield HeldOutScores(self.estimator, self.model, *of_parts, *rows)
        if method.members:
            of_parts = (self.linear_models, parts, LINEAR, self.linear_scores)
            yield HeldOutScores(self.linear_models[0].estimator, None, *of_parts, *rows)


def _print_progress(done: int, total: int, name: str) -> None:
    print(f"{done} of {total} models fitted{f', next {name}' if name else ''}", file=sys.stderr)


def has_one_class(labels: Labels, target: NDArray[Any], weight: Floats | None) -> bool:
    """Whether no label has both positives and negatives among the rows of positive weight."""
    counted = labels.columns(target if weight is None else target[weight > 0])
    return bool(np.all(counted == counted[0]))


def _not_numeric(estimator: Any, X: Any, target: Any) -> str:
    """Return why X, as the classifier of a pipeline gets it, is no table of numbers."""
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        X = clone(estimator[:-1]).fit_transform(X, target)
    try:
        check_array(X, accept_sparse="csr", dtype=np.float64)
    except (TypeError, ValueError) as error:
        return str(error).splitlines()[0]
    return ""
