"""Scores from any scikit-learn classifier, one column per label, of rows it was not trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_validate
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.estimators.folds import Split
from argmaxf.estimators.labels import Labels, constants_silenced

# The first of these that a classifier has gives the scores for thresholds and calibration. A
# multinomial model's decision_function does not score one class against the rest. Log-odds are for
# naive Bayes, whose probabilities round to 0 and 1.
PREFERRED = {
    "binary": ("decision_function", "log_odds", "predict_proba"),
    "multilabel-indicator": ("decision_function", "log_odds", "predict_proba"),
    "multiclass": ("predict_proba", "decision_function"),
}
# Modules whose transformers use the target only if their tags require it.
UNSUPERVISED = tuple(
    f"sklearn.{name}"
    for name in (
        "decomposition",
        "feature_extraction",
        "impute",
        "kernel_approximation",
        "preprocessing",
        "random_projection",
    )
)


@dataclass(frozen=True)
class TrainingData:
    """The checked arguments of `fit`."""

    X: Any  # passed on as it is
    y: Any  # as it was given, with the column names of a frame
    labels: Labels
    target: NDArray[Any]  # as the wrapped classifier takes it
    columns: Bools  # one for each label
    weight: Floats | None
    groups: Any  # of rows that are held out together
    params: dict[str, Any]  # for the wrapped classifier's `fit`


class LabelScorer(BaseEstimator):
    """A classifier as a function from X to scores, (n, n_columns).

    One model is fitted where the classifier can hold all labels at once, otherwise one per label;
    the first steps of a pipeline are then fitted once, if they do not depend on the label. Where
    training has one class only, a constant model is fitted in its place.
    """

    __metadata_request__fit = {"sample_weight": True}  # noqa: RUF012  scikit-learn's convention

    def __init__(self, estimator: Any, labels: Labels, passed: tuple[str, ...] = ()) -> None:
        self.estimator = estimator
        self.labels = labels
        self.passed = passed  # the parameters of `fit` to request where metadata are routed

    def fit(self, X: Any, y: NDArray[Any], sample_weight: Any = None, **params: Any) -> LabelScorer:
        """Fit the classifier on `y`, as `Labels.target` gives it; `params` are for its `fit`."""
        tags = get_tags(self.estimator).classifier_tags
        one_holds_all = isinstance(self.estimator, FrozenEstimator) or (tags and tags.multi_label)
        targets = y.T if self.labels.is_multilabel and not one_holds_all else [y]
        self.shared_, rest = None, self.estimator
        if len(targets) > 1 and not params:
            self.shared_, rest, X = share_features(self.estimator, X)
        models = [_fit_one(rest, X, t, sample_weight, params) for t in targets]
        self.models_ = [joined(self.shared_, model) for model in models]
        return self

    def get_metadata_routing(self) -> Any:
        """Return which parameters of `fit` are requested."""
        request = super().get_metadata_routing()
        for name in self.passed:
            request.fit.add_request(param=name, alias=True)
        return request

    def scores(self, X: Any, kind: str) -> Floats:
        """Return the scores of one kind: a method of the classifier, or `"log_odds"`.

        Those are of `predict_log_proba`, which orders rows whose probabilities round to 0 or 1.
        """
        return X.tables[kind] if isinstance(X, HeldOut) else self.read(X, (kind,))[kind]

    def read(self, X: Any, kinds: Sequence[str]) -> dict[str, Floats]:
        """Return the scores of several kinds."""
        models = self.models_
        if self.shared_ is not None:
            first = len(self.shared_)
            models = [m[first:] if isinstance(m, Pipeline) else m for m in models]
            X = self.shared_.transform(X)
        found = {}
        for kind in kinds:
            scores = np.concatenate([self._columns(model, X, kind) for model in models], axis=1)
            if np.isnan(scores).any():
                row = int(np.argmax(np.isnan(scores).any(axis=1)))
                name = type(last_step(self.estimator)).__name__
                raise ValueError(f"{name} must give numbers as {kind}, got NaN in row {row}")
            found[kind] = scores
        return found

    def _columns(self, model: Any, X: Any, kind: str) -> Floats:
        never = 0.0 if kind == "predict_proba" else -np.inf
        response, classes = _response(model, X, kind, never), model.classes_
        if not self.labels.is_multilabel:
            return _align(response, classes, self.labels.names, kind, never)
        if isinstance(response, list):  # one array per label, as forests give
            pairs = zip(response, classes, strict=True)
            return np.concatenate([_align(r, c, [1], kind, never) for r, c in pairs], axis=1)
        one = len(self.models_) == 1
        return response if one else _align(response, classes, [1], kind, never)


@dataclass(frozen=True)
class HeldOut:
    """Rows with their labels, and their scores by models that were not trained on them.

    Classifiers learn from it, and a `LabelScorer` takes it in place of X.
    """

    model: LabelScorer  # for new rows: fitted on all rows, or on those of a single split
    models: list[LabelScorer]  # of each fold
    fold: Ints  # whose model scored each row; -1 where a row is never held out
    tables: dict[str, Floats]  # of each kind of scores; NaN in rows that are never held out
    columns: Bools
    weight: Floats | None
    seen: bool | None = False  # whether the models were trained on these rows; None is not known
    other: HeldOut | None = None  # the same rows by the model to blend with

    @classmethod
    def of(
        cls, fitted: Sequence[Any], splits: Sequence[Split], columns: Bools, weight: Floats | None
    ) -> HeldOut:
        """Gather models and what `Fit` has read; one after those of the splits is for new rows."""
        models, read = zip(*fitted, strict=True)
        tables = {kind: np.full(columns.shape, np.nan) for kind in read[0]}
        fold = np.full(len(columns), -1)
        for i, (_, rows) in enumerate(splits):
            fold[rows] = i
            for kind, scores in read[i].items():
                tables[kind][rows] = scores
        return cls(models[-1], [*models[: len(splits)]], fold, tables, columns, weight)

    @property
    def labels(self) -> Labels:
        """The labels of the target."""
        return self.model.labels

    @property
    def kind(self) -> str:
        """The kind of scores for thresholds and calibration."""
        return tuple(self.tables)[-1]

    def parts(self) -> Iterator[tuple[LabelScorer, Ints]]:
        """Yield the model of each fold and its rows, where there are any."""
        for i, model in enumerate(self.models):
            rows = np.flatnonzero(self.fold == i)
            if rows.size:
                yield model, rows

    def take(self, rows: Ints) -> HeldOut:
        """Return some of the rows."""
        return replace(
            self,
            fold=self.fold[rows],
            tables={kind: table[rows] for kind, table in self.tables.items()},
            columns=self.columns[rows],
            weight=None if self.weight is None else self.weight[rows],
            other=None if self.other is None else self.other.take(rows),
        )

    def has_logistic_link(self) -> bool:
        """Whether probabilities are the logistic function of the scores for thresholds."""
        proba, scores = self.tables.get("predict_proba"), self.tables[self.kind]
        if proba is None or proba is scores:
            return False
        return bool(np.allclose(proba, expit(scores), rtol=1e-9, atol=1e-12, equal_nan=True))


@dataclass(frozen=True)
class Fit:
    """One model to fit: on the rest of a fold, or without a split on all rows."""

    model: Any
    params: dict[str, Any]
    read: Callable[[Any, Any], Any]  # what to keep of the model for rows it was not trained on
    split: Split | None = None

    def run(self, X: Any, target: NDArray[Any], X_new: Any = None) -> tuple[Any, Any]:
        """Return the fitted model, and what was read from it for the fold or for `X_new`."""
        with constants_silenced():
            if self.split is None:
                model = clone(self.model).fit(X, target, **self.params)
                return model, None if X_new is None else self.read(model, X_new)
            how = {"scoring": partial(_keep, self.read), "params": self.params}
            (model,) = cross_validate(
                self.model, X, target, cv=[self.split], return_estimator=True, error_score="raise",
                **how,
            )["estimator"]  # fmt: skip
            return model, vars(model).pop("read_")


def _keep(read: Callable[[Any, Any], Any], model: Any, X: Any, y: Any) -> float:
    """Keep what is read on the model; `cross_validate` calls this as its scorer."""
    model.read_ = read(model, X)
    return 0.0


def score_fits(
    estimator: Any, labels: Labels, splits: Sequence[Split], params: dict[str, Any], whole: bool
) -> list[Fit]:
    """Return the fits of a classifier on the rest of each split, and if `whole` on all rows.

    They read probabilities, where it has any, and the scores for thresholds.
    """
    wanted = dict.fromkeys(("predict_proba", response_method(estimator, PREFERRED[labels.kind])))
    read = partial(LabelScorer.read, kinds=[kind for kind in wanted if has_method(estimator, kind)])
    one = Fit(LabelScorer(estimator, labels, tuple(params)), params, read)
    return [*(replace(one, split=split) for split in splits), *([one] if whole else [])]


def hold_out(
    estimator: Any, rows: TrainingData, splits: Sequence[Split], params: dict[str, Any], whole: bool
) -> HeldOut:
    """Return each row's scores from a model that was not trained on it, and all models.

    Without splits one model is fitted, and scores the rows it was fitted on.
    """
    fits = score_fits(estimator, rows.labels, splits, params, whole or not splits)
    also = None if splits else rows.X
    fitted = Parallel()(delayed(fit.run)(rows.X, rows.target, also) for fit in fits)
    every = (np.arange(0), np.arange(len(rows.target)))
    held_out = HeldOut.of(fitted, splits or [every], rows.columns, rows.weight)
    known = not isinstance(last_step(estimator), FrozenEstimator)
    return replace(held_out, seen=not splits if known else None)


def response_method(estimator: Any, methods: Sequence[str]) -> str:
    """Return the first of `methods` that the classifier has; raise if it has none."""
    found = next((method for method in methods if has_method(estimator, method)), None)
    if found is None:
        if not hasattr(estimator, "fit"):
            raise ValueError(f"estimator must be a classifier, got {estimator!r}")
        name, wanted = type(estimator).__name__, [m for m in methods if m != "log_odds"]
        advice = f": calibrate it, as in CalibratedClassifierCV({name}(...))"
        helps = wanted == ["predict_proba"] and hasattr(estimator, "decision_function")
        raise ValueError(f"{name} has no {' or '.join(wanted)}{advice if helps else ''}")
    return found


def has_method(estimator: Any, kind: str) -> bool:
    """Whether a classifier has a kind of scores; log-odds are of naive Bayes."""
    if kind != "log_odds":
        return hasattr(estimator, kind)
    naive_bayes = hasattr(last_step(estimator), "predict_joint_log_proba")
    return naive_bayes and hasattr(estimator, "predict_log_proba")


def last_step(estimator: Any) -> Any:
    """Return the classifier at the end of a pipeline, or the classifier itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def weight_parameter(estimator: Any) -> str | None:
    """Return the name by which `fit` takes weights; a pipeline passes them to its last step."""
    if isinstance(estimator, Pipeline) and get_config()["enable_metadata_routing"]:
        routed = get_routing_for_object(estimator).consumes("fit", ["sample_weight"])
        return "sample_weight" if routed else None
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = weight_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def share_features(estimator: Any, X: Any) -> tuple[Pipeline | None, Any, Any]:
    """Return the first steps of a pipeline, fitted, the other steps, and the features these get.

    The first steps are those that ignore the target, so that one fit serves every label; None where
    there are none, or where metadata are routed to them.
    """
    if type(estimator) is not Pipeline or get_config()["enable_metadata_routing"]:
        return None, estimator, X
    steps = [step for _, step in estimator.steps[:-1]]
    first = next((i for i, step in enumerate(steps) if not ignores_target(step)), len(steps))
    if not first:
        return None, estimator, X
    shared = clone(estimator[:first])
    return shared, estimator[first:], shared.fit_transform(X)


def ignores_target(step: Any) -> bool:
    """Whether a transformer is known to be the same for every target.

    That is known of scikit-learn's unsupervised transformers; others may look at an optional y.
    """
    if step is None or isinstance(step, str):
        return True
    parts = {
        Pipeline: ("steps",),
        FeatureUnion: ("transformer_list",),
        ColumnTransformer: ("transformers", "remainder"),
    }.get(type(step))
    if parts is None:
        known = type(step).__module__.startswith(UNSUPERVISED)
        return known and not get_tags(step).target_tags.required
    inside = [getattr(step, name) for name in parts]
    return all(
        all(ignores_target(named[1]) for named in each)
        if isinstance(each, list)
        else ignores_target(each)
        for each in inside
    )


def joined(shared: Pipeline | None, model: Any) -> Any:
    """Return the model behind the steps that it shares with others."""
    if shared is None or not isinstance(model, Pipeline):  # a constant model needs no features
        return model
    return Pipeline([*shared.steps, *model.steps])


def _fit_one(estimator: Any, X: Any, y: NDArray[Any], weight: Any, params: dict[str, Any]) -> Any:
    if isinstance(estimator, FrozenEstimator):
        return estimator.fit(X, y)
    seen = y if weight is None else y[weight > 0]
    if y.ndim == 1 and len(np.unique(seen)) == 1:
        return DummyClassifier().fit(X, y, sample_weight=weight)
    model = clone(estimator)
    name = None if weight is None else weight_parameter(model)
    return model.fit(X, y, **({} if name is None else {name: weight}), **params)


def _response(model: Any, X: Any, kind: str, never: float) -> Any:
    if kind == "log_odds" and has_method(model, kind):  # of two classes
        log_proba = np.asarray(model.predict_log_proba(X))
        return log_proba - log_proba[:, ::-1]
    if hasattr(model, kind):
        return getattr(model, kind)(X)
    return np.where(model.predict_proba(X) > 0, -never, never)  # of a constant model


def _align(response: Any, classes: Any, wanted: Any, kind: str, never: float) -> Floats:
    """Return the response's columns for the `wanted` classes.

    A class that was not in training is never predicted: it gets the lowest score.
    """
    response = np.asarray(response, dtype=np.float64)
    if response.ndim == 1:  # a binary decision_function scores the second class
        response = np.column_stack([-response, response])
    if response.shape[1] != len(classes):
        raise ValueError(
            f"{kind} must give one column per class, got {response.shape[1]} for "
            f"{len(classes)} classes"
        )
    known = {value: response[:, i] for i, value in enumerate(classes)}
    lowest = np.full(len(response), never)
    return np.column_stack([known.get(value, lowest) for value in wanted])
