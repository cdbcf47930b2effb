"""The methods' predictions of rows their models have not seen: which fits that takes, and the fits.

Rows to be rated are those of a test table, or each fold of the training table by models trained on
the others. A threshold is tuned on out-of-fold scores of rows that are not rated with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from argmaxf.estimators import (
    CostSensitiveFClassifier,
    ExpectedFClassifier,
    MarginFClassifier,
    SoftFClassifier,
    ThresholdFClassifier,
)
from argmaxf.estimators.folds import folds
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.plain import GivenScores, PlainClassifier
from argmaxf.estimators.scores import LabelScorer
from argmaxf.estimators.shift import Familiar
from argmaxf.report.models import behind_preprocessing, make_classifier
from argmaxf.report.tables import Rows

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Options:
    """What is asked of a comparison."""

    estimator: str = "logistic"
    beta: float = 1.0
    n_folds: int = 5
    seed: int = 0
    positive: Any = None
    svmperf: bool = False
    cost: bool = False


@dataclass(frozen=True)
class Fit:
    """One model to be fitted, and what becomes of its predictions for other rows."""

    name: str
    estimator: Any
    X: pl.DataFrame
    y: NDArray[Any]
    rows: NDArray[np.int64] | slice  # of X and y, to be trained on
    X_rated: pl.DataFrame
    rated: NDArray[np.int64] | slice
    keep: Callable[[Any, Any], None]

    def run(self) -> None:
        """Fit the model and keep its predictions."""
        model = clone(self.estimator).fit(self.X[self.rows], self.y[self.rows])
        self.keep(model, model.predict(self.X_rated[self.rated]))


@dataclass
class Contest:
    """The data of a comparison, and its predictions as they come in."""

    train: Rows
    test: Rows | None
    options: Options
    labels: Labels
    splits: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    scores: Floats  # out of fold, for every training row
    test_scores: Floats | None
    own: dict[str, Bools]  # predictions of methods with a model of their own
    first: Any = None  # the classifier that did not see the first fold

    @classmethod
    def of(cls, train: Rows, test: Rows | None, options: Options) -> Contest:
        """Check that there is something to compare, and deal out the folds."""
        labels = _labels(train, options)
        options = replace(options, positive=_plain(labels.positive))
        columns = labels.columns(train.y)
        _check_enough(columns, names_of(train, labels), train.name, options.n_folds)
        splits = folds(options.n_folds, columns, labels.target(train.y), options.seed)
        if test is not None:
            _check_test(test, labels, names_of(train, labels))
        shape = (len(train.y) if test is None else len(test.y), labels.n_columns)
        own = {name: np.zeros(shape, dtype=bool) for name in trained(train, options)}
        scores = np.zeros(columns.shape)
        test_scores = None if test is None else np.zeros(shape)
        return cls(train, test, options, labels, splits, scores, test_scores, own)

    def fits(self) -> list[Fit]:
        """Return the model fits that the comparison needs."""
        classifier = make_classifier(self.options.estimator, self.options.seed)
        pipeline = behind_preprocessing(self.train.X, classifier)
        scorer = LabelScorer(pipeline, self.labels, "predict_proba")
        found = [*self._in_folds(self.options.estimator, scorer, self._keep_scores)]
        if self.test_scores is not None:
            keep = _keeper(self.test_scores)
            found.append(self._on_test(self.options.estimator, scorer, keep))
        for name, model in trained(self.train, self.options).items():
            keep = _keeper(self.own[name], self.labels.columns)
            found += (
                self._in_folds(name, model, keep)
                if self.test is None
                else [self._on_test(name, model, keep)]
            )
        return found

    def _in_folds(self, name: str, model: Any, keep: Any) -> Iterator[Fit]:
        X, y = self.train.X, self.labels.target(self.train.y)
        for i, (rest, fold) in enumerate(self.splits, start=1):
            label = f"{name}, fold {i} of {len(self.splits)}"
            yield Fit(label, model, X, y, rest, X, fold, keep(fold))

    def _on_test(self, name: str, model: Any, keep: Any) -> Fit:
        assert self.test is not None
        y, rows = self.labels.target(self.train.y), slice(None)
        name = f"{name}, all rows"
        return Fit(name, model, self.train.X, y, rows, self.test.X, rows, keep(rows))

    def _keep_scores(self, rows: Any) -> Callable[[Any, Any], None]:
        def keep(model: Any, scores: Any) -> None:
            self.scores[rows] = scores
            self.first = self.first or model

        return keep

    def predictions(self) -> dict[str, Bools]:
        """Return every method's predictions of the rows to be rated."""
        wrapped = {name: self._decide(wrap) for name, wrap in wrappers(self.options).items()}
        return {**wrapped, **self.own}

    def _decide(self, wrap: Callable[[Any], Any]) -> Bools:
        """Return a wrapping method's predictions, from scores: refitted for each set rated."""
        given = FrozenEstimator(GivenScores(self.labels, "predict_proba"))
        y = self.labels.target(self.train.y)
        if self.test_scores is not None:
            fitted = wrap(given).fit(self.scores, y)
            return self.labels.columns(fitted.predict(self.test_scores))
        found = np.zeros(self.scores.shape, dtype=bool)
        for rest, fold in self.splits:
            fitted = wrap(given).fit(self.scores[rest], y[rest])
            found[fold] = self.labels.columns(fitted.predict(self.scores[fold]))
        return found

    def look_for_shift(self, chosen: str) -> None:
        """Warn where the test rows look unlike the training rows, to a model that saw neither."""
        if self.test is not None:
            unseen = self.splits[0][1]
            Familiar(self.first, self.scores[unseen]).warn_if_unlike(self.test.X, chosen)


def wrappers(options: Options) -> dict[str, Callable[[Any], Any]]:
    """Return the methods that wrap the classifier, as functions of it."""
    common: dict[str, Any] = {"beta": options.beta, "pos_label": options.positive}
    tuning: dict[str, Any] = {"cv": options.n_folds, "random_state": options.seed}
    return {
        "ML^.5": lambda model: PlainClassifier(model, pos_label=options.positive),
        "ML^δ": lambda model: ThresholdFClassifier(model, **common, **tuning),
        "ML^E": lambda model: ExpectedFClassifier(model, calibrate=None, **common),
    }


def trained(train: Rows, options: Options) -> dict[str, Any]:
    """Return the methods that train a model of their own, behind the same preprocessing."""
    common: dict[str, Any] = {"beta": options.beta, "pos_label": options.positive}
    classifier = make_classifier(options.estimator, options.seed)
    found = {"F^δ": SoftFClassifier(**common)}
    if options.svmperf:
        found["SVMperf"] = MarginFClassifier(**common)
    if options.cost:
        found["cost"] = CostSensitiveFClassifier(classifier, **common)
    return {name: behind_preprocessing(train.X, model) for name, model in found.items()}


def _labels(train: Rows, options: Options) -> Labels:
    y = train.y
    if y.ndim == 1 and len(np.unique(y)) == 1:
        raise ValueError(
            f"target {train.targets[0]!r} of {train.name} is always {y[0]}: nothing to learn"
        )
    positive = options.positive
    if positive is not None:
        classes = np.unique(y)
        matching = [c for c in classes.tolist() if str(c) == str(positive)]
        if y.ndim != 1 or len(classes) != 2 or not matching:
            values = ", ".join(map(str, classes))
            raise ValueError(f"positive must be one of two classes, {values}; got {positive!r}")
        positive = matching[0]
    return Labels.of(y, positive)


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python value."""
    return value.item() if isinstance(value, np.generic) else value


def names_of(train: Rows, labels: Labels) -> tuple[str, ...]:
    """Return what the labels are called: targets, classes, or the one target."""
    if labels.kind == "multiclass":
        return tuple(map(str, labels.classes))
    return train.targets


def _check_enough(columns: Bools, names: tuple[str, ...], table: str, n_folds: int) -> None:
    if n_folds < 2:
        raise ValueError(f"folds must be at least 2, got {n_folds}")
    if len(columns) < 2 * n_folds:
        raise ValueError(
            f"{table} has {len(columns)} rows; {n_folds} folds need at least {2 * n_folds}"
        )
    for name, positive in zip(names, columns.sum(axis=0).tolist(), strict=True):
        for count, kind in [(positive, "positive"), (len(columns) - positive, "negative")]:
            if count < n_folds:
                raise ValueError(
                    f"{name!r} has {count} {kind} rows in {table}, too few for one in each of "
                    f"{n_folds} folds"
                )


def _check_test(test: Rows, labels: Labels, names: tuple[str, ...]) -> None:
    unknown = set(np.unique(test.y).tolist()) - set(labels.classes.tolist())
    if test.y.ndim == 1 and unknown:
        value = sorted(map(str, unknown))[0]
        raise ValueError(f"target of {test.name} has the class {value!r}, never seen in training")
    for name, positive in zip(names, labels.columns(test.y).sum(axis=0).tolist(), strict=True):
        if not positive:
            raise ValueError(f"{test.name} has no positive row of {name!r}: F says nothing there")


def _keeper(into: Any, read: Callable[[Any], Any] = np.asarray) -> Callable[[Any], Any]:
    """Return what makes, for some rows, a function that keeps their predictions."""

    def for_rows(rows: Any) -> Callable[[Any, Any], None]:
        def keep(model: Any, predicted: Any) -> None:
            into[rows] = read(predicted)

        return keep

    return for_rows
