"""Cross-validation for a comparison: every model fitted once per fold, and scores of other rows.

The rows evaluated are those of a test set, or those that `cv` holds out. One table of held-out
scores of the classifier serves all methods that wrap it; a method with a model of its own predicts
the same rows.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_random_state
from sklearn.utils.parallel import Parallel, delayed

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.validation import check_count, ones_unless
from argmaxf.comparison.methods import Method, Settings, methods_for
from argmaxf.comparison.ranking import MethodScore, score_rows, score_sets
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
from argmaxf.expected.counts import refuse_many
from argmaxf.measures import GMean
from argmaxf.problem import Problem

N_SETS = 400  # how many sets are drawn where their size is given
TIMED_ROWS = 200  # in the batch whose prediction is timed
Progress = bool | Callable[[int, int, str], None]
Prediction = tuple[Bools, Floats]  # the labels selected in one set, and the scores that decided


@contextmanager
def advice_silenced() -> Iterator[None]:
    """Suppress what methods advise their users; the notes of the comparison say it once."""
    with constants_silenced(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        warnings.simplefilter("ignore", SmallBatchWarning)
        yield


class CrossValidation:
    """The rows of a comparison, and what models that were not trained on them say of them.

    `auto` is the `AutoFClassifier` whose options are used, `test` the X and the target of a test
    set; `needs_model` says whether the classifier will predict other rows.

    The rows to evaluate come in parts: the rows that a method may learn from, and the sets it then
    predicts, which are one set of all rows of the part or, unless `whole`, many of the size that
    will be predicted at a time.
    """

    held_out: HeldOut  # scores of the classifier, those of the model to blend with as `other`
    own: dict[str, HeldOut]  # what methods with models of their own predict
    tested: dict[str | None, dict[str, Floats]]  # the same for a test set, by method; None: scores

    def __init__(
        self, auto: Any, rows: TrainingData, test: Any = None, needs_model: bool = False
    ) -> None:
        self.estimator, self.rows, self.test = auto.estimator, rows, test
        self.settings = settings = Settings.of(auto, rows.labels.positive)
        self.set_size: int | None = auto.set_size
        if self.set_size is not None:
            check_count("set_size", self.set_size)
        self.online = self.set_size == 1  # each row is decided alone
        self._check_rate()
        methods = methods_for(auto.methods, settings.objective)
        self.prior = TargetPrior.of(settings.deploy_rate, rows)
        if rows.groups is not None and settings.confidence_level is not None:
            refuse_groups()
        self.splits = make_splits(settings.cv, rows.columns, rows.target, rows.groups)
        self.needs_model = (needs_model and len(self.splits) > 1) or test is not None
        self.rated = held_out_rows(self.splits, len(rows.columns))
        self.truth = rows.columns if test is None else rows.labels.columns(test[1])
        self.parts = self._parts()
        self.whole = test is not None or self.set_size is None or self.online
        self.notes: list[str] = []
        self.fitted: dict[str, Any] = {}  # one classifier of each method that has predicted
        self.methods = self._applicable(methods)
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

    def _parts(self) -> list[tuple[Ints, list[Ints]]]:
        """Return whole parts, or sets of a given size drawn from them."""
        if self.test is not None:
            return [(self.rated, [np.arange(len(self.truth))])]
        folds = [fold for _, fold in self.splits]
        if len(folds) == 1:
            fold = assign_folds(self.rows.columns[self.rated], 5, seed_of(self.settings.cv))
            folds = [self.rated[fold == i] for i in range(5)]
        size, often = self.set_size, self.weight_in_use
        often = None if self.settings.deploy_rate is None else often
        if size is None or self.online:
            return [(np.setdiff1d(self.rated, part), [part]) for part in folds]
        seed = check_random_state(seed_of(self.settings.cv)).randint(2**31)
        rng = np.random.default_rng(seed)

        def draw(rows: Ints) -> Ints:
            """Draw a set; rows repeat where there are too few, or come at another rate."""
            p = None if often is None else often[rows] / often[rows].sum()
            drawn: Ints = rng.choice(rows, size, replace=size > len(rows) or p is not None, p=p)
            return drawn

        each = range(-(-N_SETS // len(folds)))
        return [(np.setdiff1d(self.rated, part), [draw(part) for _ in each]) for part in folds]

    @property
    def sets(self) -> list[Ints]:
        """All sets of rows to evaluate, one part after the other."""
        return [rows for _, sets in self.parts for rows in sets]

    @property
    def evaluated(self) -> Ints:
        """The rows that are evaluated, in order."""
        return np.unique(np.concatenate(self.sets))

    @property
    def weight_in_use(self) -> Floats | None:
        """The weight of each training row at the target rate."""
        weight, columns = self.rows.weight, self.rows.columns
        if self.settings.deploy_rate is None or self.prior.by_batch:
            return weight
        moved = self.prior.weights(columns, self.prior.rates())[:, 0]
        return moved * ones_unless(weight, len(moved))

    @property
    def weight(self) -> Floats | None:
        """The weight of each row evaluated; rows of a test set have none."""
        weight = self.weight_in_use
        return None if weight is None or self.test is not None else weight[self.evaluated]

    @property
    def proba(self) -> Floats | None:
        """The classifier's probabilities of the rows evaluated, where it has any."""
        tables = self.held_out.tables if self.test is None else self.tested[None]
        return tables["predict_proba"][self.evaluated] if "predict_proba" in tables else None

    @property
    def drift_detector(self) -> DriftDetector:
        """The models of the folds, and their scores of held-out rows."""
        kind, scores = next(iter(self.held_out.tables.items()))
        return DriftDetector(self.held_out.models, kind, scores[self.rated])

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
        return self._quick_enough(able)

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
            return not any(too_rare(self.rows.columns[rest]).all() for rest, _ in self.parts)
        problem = _not_numeric(self.estimator, self.rows) if method.linear else ""
        if problem:
            self.notes.append(f"{method.name} was left out, it needs numeric features: {problem}")
        return not problem

    def _quick_enough(self, methods: list[Method]) -> list[Method]:
        """Leave out methods whose expectation takes too long for so many rows, if others remain."""
        problem = Problem.of(measure=self.settings.objective)
        bounded = isinstance(problem.measure, GMean) and self.settings.confidence_level is None
        able = [method for method in methods if not method.joint]
        if bounded or not problem.needs_items or not able:
            return methods
        batches = [rest for rest, _ in self.parts] if self.online else self.sets
        try:
            refuse_many(max(map(len, batches)), problem.measure)
        except ValueError as error:
            self.notes += [f"{m.name} was left out: {error}" for m in methods if m.joint]
            return able
        return methods

    def run(self, progress: Progress = False) -> None:
        """Run the fits, and report each of them to `progress`."""
        labels, smallest = self.rows.labels, self.rows.columns.sum(axis=0)
        if labels.kind == "multiclass" and smallest.min() < 2:
            raise ValueError(
                "methods are compared on held-out rows, for which every class needs two rows, got "
                f"{smallest.min()} of class {str(labels.classes[smallest.argmin()])!r}"
            )
        blended = {key for method in self.methods for key in method.members}
        of_rows = (self.estimator, self.rows, self.splits, self.needs_model)
        fits: list[tuple[str | None, Fit]] = [(None, fit) for fit in score_fits(*of_rows)]
        for method in self.methods:
            if not method.wraps:
                fits += [(method.name, fit) for fit in self._own_fits(method, blended)]
        rows = (self.rows.X, self.rows.target, None if self.test is None else self.test[0])
        models = Parallel(return_as="generator")(delayed(fit.run)(*rows) for _, fit in fits)
        show: Any = _print_progress if progress is True else progress or (lambda *_: None)
        fitted: dict[str | None, list[tuple[Any, Any]]] = defaultdict(list)
        for number, (name, fit) in enumerate(fits):
            fold = f"fold {len(fitted[name]) + 1} of {len(self.splits)}"
            shown = type(last_step(self.estimator)).__name__ if name is None else name
            show(number, len(fits), f"{shown}, {'all rows' if fit.split is None else fold}")
            fitted[name].append(next(models))
        show(len(fits), len(fits), "")
        self.tested = {} if self.test is None else {n: each[-1][1] for n, each in fitted.items()}
        self.own = {n: self._gathered(n, each) for n, each in fitted.items() if n is not None}
        other = [self.own[m.name] for m in self.methods if m.key in blended and not m.wraps]
        self.held_out = replace(self._gathered(None, fitted[None]), other=next(iter(other), None))

    def _own_fits(self, method: Method, blended: set[str]) -> Iterator[Fit]:
        """Yield the fits of a method with a model of its own: on each fold, and for a test set."""
        model = method.make(self.estimator, self.settings)
        read = partial(_read_predictions, self.rows.labels, self.online)
        one = Fit(model, self._own_params(model), read)
        if self.test is None or method.key in blended:
            yield from (replace(one, split=split) for split in self.splits)
        if self.test is not None:
            yield one

    def _own_params(self, classifier: Any) -> dict[str, Any]:
        """Return the weights for a method with a model of its own, if it takes them."""
        name, weight = weight_parameter(classifier), self.weight_in_use
        return {} if weight is None or name is None else {name: weight}

    def _gathered(self, name: str | None, fitted: list[tuple[Any, Any]]) -> HeldOut:
        """Return the models of the classifier (None) or of a method, and what was read of them."""
        if name is not None:
            fitted = [(LabelScorer.of([model], self.rows.labels), read) for model, read in fitted]
        splits = self.splits if len(fitted) >= len(self.splits) else []
        return HeldOut.of(fitted, splits, self.rows.columns, self.rows.weight)

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

    def predict(self, method: Method) -> list[Prediction]:
        """Return the prediction of each set."""
        of_test = self.test is not None
        if not method.wraps:
            own = self.own[method.name]
            (self.fitted[method.name],) = own.model.models_
            tables = self.tested[method.name] if of_test else own.tables
            return [(tables["predict"][r] > 0, tables["decision_function"][r]) for r in self.sets]
        found = []
        for rest, sets in self.parts:
            made = self.fit(method) if of_test else self.learn(method, rest)
            for rows in sets:
                X = self.test[0] if of_test else self.held_out.take(rows)
                tables = self.tested[None] if of_test else X.tables
                found.append(self._prediction(method, made, X, tables))
            self.fitted[method.name] = made
        return found

    def seconds_per_row(self, predict: Callable[[Any], Any]) -> float:
        """Return how long a prediction takes for each row of a small batch."""
        X = self.rows.X.tocsr() if sparse.issparse(self.rows.X) else self.rows.X
        X = X if hasattr(X, "__getitem__") else np.asarray(X)
        n, seconds = min(TIMED_ROWS, len(self.rows.columns)), []
        for _ in range(2):
            start = time.perf_counter()
            predict(X[:n])
            seconds.append(time.perf_counter() - start)
        return min(seconds) / n

    def _prediction(
        self, method: Method, fitted: Any, X: Any, scores: dict[str, Floats]
    ) -> Prediction:
        labels = self.rows.labels
        by = labels.one(fitted.predict_proba(X)) if method.joint else [*scores.values()][-1]
        fitted = fitted.freeze() if self.online else fitted
        return labels.columns(fitted.predict(X)), by

    def in_order(self, tables: Iterable[NDArray[Any]]) -> NDArray[Any]:
        """Return one table, in the order of the rows evaluated, from those of whole parts."""
        return np.concatenate([*tables])[np.argsort(np.concatenate(self.sets))]

    def score(self, selected: Sequence[Bools]) -> MethodScore:
        """Score the predictions of all sets."""
        truth, measure = self.truth, self.settings.objective
        if not self.whole:
            return score_sets(truth, selected, self.sets, measure)
        return score_rows(truth[self.evaluated], self.in_order(selected), measure, self.weight)


def _read_predictions(labels: Labels, online: bool, model: Any, X: Any) -> dict[str, Floats]:
    """Return predictions, and decision scores, which are NaN where there are none."""
    model = model.freeze() if online and hasattr(model, "freeze") else model
    selected = labels.columns(model.predict(X)).astype(np.float64)
    scored = hasattr(model, "decision_function")
    margins = labels.margins(model.decision_function(X)) if scored else selected * np.nan
    return {"predict": selected, "decision_function": margins}


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
