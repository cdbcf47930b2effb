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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
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
from argmaxf.comparison.methods import Method, MethodScore, methods_for, score_rows, score_sets
from argmaxf.constraints import Constraints
from argmaxf.empirical.guarantees import refuse_groups
from argmaxf.estimators.calibration import CalibrationWarning, is_calibrated
from argmaxf.estimators.expected_f import SmallBatchWarning
from argmaxf.estimators.labels import (
    Labels,
    assign_folds,
    constants_silenced,
    held_out_rows,
    make_splits,
    seed_of,
    too_rare,
)
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
from argmaxf.measures import GMean, as_measure
from argmaxf.problem import Problem

N_SETS = 400  # how many sets are drawn where their size is given
TIMED_ROWS = 200  # in the batch whose prediction is timed
Progress = bool | Callable[[int, int, str], None]


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
    tables: dict[str | None, dict[str, Floats]]  # read by each method's own model; None: `held_out`
    proba: Floats | None  # the classifier's probabilities of the rows evaluated
    drift_detector: DriftDetector  # with the models of the folds, and their scores

    def __init__(
        self, auto: Any, rows: TrainingData, test: Any = None, needs_model: bool = False
    ) -> None:
        positive = rows.labels.positive
        self.auto, self.rows, self.test = copy(auto), rows, test
        self.auto.pos_label = positive.item() if isinstance(positive, np.generic) else positive
        self.estimator, self.measure = auto.estimator, as_measure(auto.measure)
        self.constraints = Constraints.of(auto.constraints)
        self.guaranteed, self.online = auto.confidence_level is not None, auto.set_size == 1
        self._check_options()
        methods = methods_for(auto.methods, self.measure)
        self.prior = TargetPrior.of(auto.deploy_rate, rows)
        if rows.groups is not None and self.guaranteed:
            refuse_groups()
        self.splits = make_splits(auto.cv, rows.columns, rows.target, rows.groups)
        self.needs_model = (needs_model and len(self.splits) > 1) or test is not None
        self.rated = held_out_rows(self.splits, len(rows.columns))
        self.row_weight = rows.weight  # of each training row, at the target rate
        if auto.deploy_rate is not None and not self.prior.by_batch:
            moved = self.prior.weights(rows.columns, self.prior.rates())[:, 0]
            self.row_weight = moved * ones_unless(rows.weight, len(moved))
        self.truth = rows.columns if test is None else rows.labels.columns(test[1])
        self.whole = test is not None or auto.set_size is None or self.online
        self.parts = self._parts()
        self.sets = [each for _, sets in self.parts for each in sets]
        self.places = np.concatenate(self.sets)  # the rows of all sets, one set after the other
        self.evaluated = np.unique(self.places)  # the rows, in order
        weight = self.row_weight if test is None else None
        self.weight = None if weight is None else weight[self.evaluated]
        self.notes: list[str] = []
        self.fitted: dict[str, Any] = {}  # one classifier of each method that has predicted
        self.methods = self._applicable(methods)
        for method in self.methods:
            if method.wraps:
                method.make(self.auto).check(rows)

    def _check_options(self) -> None:
        """Refuse options that single rows, or labels that share rows, cannot have."""
        auto, rate = self.auto, self.auto.deploy_rate
        if self.guaranteed != bool(self.constraints.given()):
            raise ValueError(
                "a guarantee needs both a constraint and a confidence level, got "
                f"{str(self.constraints) or 'none'} and confidence_level={auto.confidence_level}"
            )
        if auto.set_size is not None:
            check_count("set_size", auto.set_size)
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
            fold = assign_folds(self.rows.columns[self.rated], 5, seed_of(self.auto.cv))
            folds = [self.rated[fold == i] for i in range(5)]
        each = [(np.setdiff1d(self.rated, part), [part]) for part in folds]
        if self.whole:
            return each
        size, often = self.auto.set_size, self.row_weight
        often = None if self.auto.deploy_rate is None else often
        seed = check_random_state(seed_of(self.auto.cv)).randint(2**31)
        rng = np.random.default_rng(seed)

        def draw(rows: Ints) -> Ints:
            """Draw a set; rows repeat where there are too few, or come at another rate."""
            p = None if often is None else often[rows] / often[rows].sum()
            drawn: Ints = rng.choice(rows, size, replace=size > len(rows) or p is not None, p=p)
            return drawn

        times = range(-(-N_SETS // len(folds)))
        return [(rest, [draw(part) for _ in times]) for rest, (part,) in each]

    def _applicable(self, methods: list[Method]) -> list[Method]:
        """Return the methods that can be compared, with all that they blend.

        Those whose expectation takes too long for so many rows are left out if others remain.
        """
        found = [m for m in methods if self._applies(m)]
        keys = {m.key for m in found}
        able = [m for m in found if keys.issuperset(m.members)]
        if not able:
            names = ", ".join(repr(m.key) for m in methods)
            what = f"guarantee {self.constraints}" if self.guaranteed else "take part"
            raise ValueError(f"no method can {what} here, got {names}")
        bounded = isinstance(self.measure, GMean) and not self.guaranteed
        quick = [method for method in able if not method.joint]
        if bounded or not Problem.of(measure=self.measure).needs_items or not quick:
            return able
        batches = [rest for rest, _ in self.parts] if self.online else self.sets
        try:
            refuse_many(max(map(len, batches)), self.measure)
        except ValueError as error:
            self.notes += [f"{m.name} was left out: {error}" for m in able if m.joint]
            return quick
        return able

    def _applies(self, method: Method) -> bool:
        """Whether a method can be compared on these rows; a note says why not."""
        if (self.guaranteed or self.prior.by_batch) and not method.adapts:
            return False
        if self.guaranteed and self.online and method.joint:
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

    def run(self, progress: Progress = False) -> None:
        """Run the fits, and report each of them to `progress`."""
        labels, smallest = self.rows.labels, self.rows.columns.sum(axis=0)
        if labels.kind == "multiclass" and smallest.min() < 2:
            raise ValueError(
                "methods are compared on held-out rows, for which every class needs two rows, got "
                f"{smallest.min()} of class {str(labels.classes[smallest.argmin()])!r}"
            )
        blended = {key for method in self.methods for key in method.members}
        own = [method for method in self.methods if not method.wraps]
        fits: list[tuple[str | None, Fit]] = [
            (None, fit)
            for fit in score_fits(self.estimator, self.rows, self.splits, self.needs_model)
        ]
        for method in own:
            fits += [(method.name, fit) for fit in self._own_fits(method, method.key in blended)]
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
        found = {name: self._gathered(name, each) for name, each in fitted.items()}
        self.tables = {name: each.tables for name, each in found.items()}
        if self.test is not None:
            self.tables = {name: each[-1][1] for name, each in fitted.items()}
        self.fitted = {method.name: fitted[method.name][-1][0] for method in own}
        other = [found[method.name] for method in own if method.key in blended]
        self.held_out = replace(found[None], other=next(iter(other), None))
        proba = self.tables[None].get("predict_proba")
        self.proba = None if proba is None else proba[self.evaluated]
        kind, scores = next(iter(self.held_out.tables.items()))
        self.drift_detector = DriftDetector(self.held_out.models, kind, scores[self.rated])

    def _own_fits(self, method: Method, blended: bool) -> Iterator[Fit]:
        """Yield the fits of a method with a model of its own: on each fold, and for a test set."""
        model = method.make(self.auto)
        read = partial(_read_predictions, self.rows.labels, self.online)
        one = Fit(model, self._own_params(model), read)
        if self.test is None or blended:
            yield from (replace(one, split=split) for split in self.splits)
        if self.test is not None:
            yield one

    def _own_params(self, classifier: Any) -> dict[str, Any]:
        """Return the weights for a method with a model of its own, if it takes them."""
        name, weight = weight_parameter(classifier), self.row_weight
        return {} if weight is None or name is None else {name: weight}

    def _gathered(self, name: str | None, fitted: list[tuple[Any, Any]]) -> HeldOut:
        """Return the models of the classifier (None) or of a method, and what was read of them."""
        if name is not None:
            fitted = [(LabelScorer.of([model], self.rows.labels), read) for model, read in fitted]
        splits = self.splits if len(fitted) >= len(self.splits) else []
        return HeldOut.of(fitted, splits, self.rows)

    def learn(self, method: Method, rows: Ints) -> Any:
        """Return a method that trains no model, learned from the held-out scores of some rows."""
        return method.make(self.auto).learn(self.held_out.take(rows))

    def fit(self, method: Method) -> Any:
        """Return a method fitted on all rows; one that trains no model needs no more fits."""
        if method.wraps:
            return self.learn(method, np.arange(len(self.rows.columns)))
        classifier = method.make(self.auto)
        with constants_silenced():
            params = self._own_params(classifier)
            return classifier.fit(self.rows.X, self.rows.target, **params)

    def predict(self, method: Method) -> tuple[Bools, Floats]:
        """Return the labels selected in all sets, and the scores that decided."""
        tables, labels = self.tables[None if method.wraps else method.name], self.rows.labels
        if not method.wraps:
            return tables["predict"][self.places] > 0, tables["decision_function"][self.places]
        selected, by, scores = [], [], [*tables.values()][-1]
        for rest, sets in self.parts:
            made = self.learn(method, rest) if self.test is None else self.fit(method)
            decides = made.freeze() if self.online else made
            self.fitted[method.name] = made
            for rows in sets:
                X = self.held_out.take(rows) if self.test is None else self.test[0]
                by.append(labels.one(made.predict_proba(X)) if method.joint else scores[rows])
                selected.append(labels.columns(decides.predict(X)))
        return np.concatenate(selected), np.concatenate(by)

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

    def in_order(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return a table of whole parts in the order of the rows evaluated."""
        return table[np.argsort(self.places)]

    def score(self, selected: Bools) -> MethodScore:
        """Score the predictions of all sets."""
        if not self.whole:
            each = np.split(selected, len(self.sets))
            return score_sets(self.truth, each, self.sets, self.measure)
        truth = self.truth[self.evaluated]
        return score_rows(truth, self.in_order(selected), self.measure, self.weight)


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
