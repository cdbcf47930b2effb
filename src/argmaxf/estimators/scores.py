"""Scores from any scikit-learn classifier, one column per label, of rows it was not trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_validate
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.lazy import cached_property
from argmaxf.estimators.labels import Labels, Split, constants_silenced

# The first of these that a classifier has gives the scores for thresholds and calibration. A
# multinomial model's decision_function does not score one class against the rest. Log-odds are for
# naive Bayes, whose probabilities round to 0 and 1.
PREFERRED = {
    "binary": ("decision_function", "log_odds", "predict_proba"),
    "multilabel-indicator": ("decision_function", "log_odds", "predict_proba"),
    "multiclass": ("predict_proba", "decision_function"),
}


@dataclass(frozen=True)
class TrainingData:
    """The checked arguments of `fit`."""

    X: Any  # passed on as it is
    y: Any  # as it was given, with the column names of a frame
    labels: Labels
    weight: Floats | None = None
    groups: Any = None  # of rows that are held out together
    params: dict[str, Any] = field(default_factory=dict)  # for the wrapped classifier's `fit`

    @cached_property
    def target(self) -> NDArray[Any]:
        """The target as the wrapped classifier takes it."""
        return self.labels.target(self.y)

    @cached_property
    def columns(self) -> Bools:
        """The target as one column for each label."""
        return self.labels.columns(self.target)


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

    @classmethod
    def of(cls, models: list[Any], labels: Labels) -> LabelScorer:
        """Return fitted classifiers as such a function: one, or one for each label."""
        scorer = cls(models[0], labels)
        scorer.models_, scorer.shared_ = models, None
        return scorer

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
            columns = [Score.of(self, label, kind) for label in range(len(self.labels.names))]
            answers = [_answer(model, kind, X) for model in models]
            if len(models) == 1:
                answers *= len(columns)
            each = [column.values(a) for column, a in zip(columns, answers, strict=True)]
            found[kind] = scores = np.stack(each, axis=1)
            if np.isnan(scores).any():
                row = int(np.argmax(np.isnan(scores).any(axis=1)))
                name = type(last_step(self.estimator)).__name__
                raise ValueError(f"{name} must give numbers as {kind}, got NaN in row {row}")
        return found


def _answer(model: Any, kind: str, X: Any) -> Any:
    answer, n = getattr(model, answering(model, kind))(X), len(model.classes_)
    if not isinstance(answer, list) and np.shape(answer)[1:] not in ((), (n,)):
        raise ValueError(
            f"{kind} must give one column per class, got {np.shape(answer)[1]} for {n} classes"
        )
    return answer


def answering(model: Any, kind: str) -> str:
    """Return the method whose answer has scores of a kind, or rows where they are constant."""
    if not has_method(model, kind):
        return "predict_proba"
    return "predict_log_proba" if kind == "log_odds" else kind


@dataclass(frozen=True)
class Score:
    """A number that a fitted model gives for each row: a column of one of its methods.

    It is `sign` times column `place` of what `method` returns for target `output`; `log_odds` are
    those of `predict_log_proba`. Without a place it is `constant`: the class was not in training.
    """

    model: Any
    method: str
    output: int | None = None  # of models that hold several labels and return a list
    place: int | None = None  # None: the one column of a binary decision_function, or a constant
    sign: float = 1.0
    constant: float | None = None

    @classmethod
    def of(cls, scorer: LabelScorer, label: int, method: str) -> Score:
        """Return the score of a label; a class that was not in training gets the lowest one."""
        labels, models = scorer.labels, scorer.models_
        model = models[0] if len(models) == 1 else models[label]
        output, classes = None, model.classes_
        wanted = 1 if labels.is_multilabel else labels.names[label]
        if labels.is_multilabel and len(models) == 1:
            if method != "predict_proba" or not _gives_lists(model):
                return cls(model, method, place=label)
            output, classes = label, classes[label]
        never = 0.0 if method == "predict_proba" else -np.inf
        (found,) = np.nonzero(np.asarray(classes) == wanted)
        if not found.size or not has_method(model, method):  # one of a constant label
            return cls(model, method, output, constant=-never if found.size else never)
        place = int(found[0])
        if method == "decision_function" and len(classes) == 2:
            return cls(model, method, sign=1.0 if place else -1.0)
        return cls(model, method, output, place)

    def values(self, answer: Any) -> Floats:
        """Return the scores of rows, given what the method returned for them."""
        table = np.asarray(answer if self.output is None else answer[self.output], np.float64)
        if self.constant is not None:
            return np.full(len(table), self.constant)
        if self.place is None:
            return self.sign * table
        column = table[:, self.place]
        return column - table[:, 1 - self.place] if self.method == "log_odds" else column


def _gives_lists(model: Any) -> bool:
    """Whether a model of several labels has a table of probabilities for each, as forests have."""
    classes, model = model.classes_, last_step(model)
    while isinstance(model, FrozenEstimator):
        model = last_step(model.estimator)
    return isinstance(classes, list) and not isinstance(model, ClassifierChain)


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
    def of(cls, fitted: Sequence[Any], splits: Sequence[Split], rows: TrainingData) -> HeldOut:
        """Gather models and what `Fit` has read; one after those of the splits is for new rows."""
        models, read = zip(*fitted, strict=True)
        tables = {kind: np.full(rows.columns.shape, np.nan) for kind in read[0]}
        fold = np.full(len(rows.columns), -1)
        for i, (_, part) in enumerate(splits):
            fold[part] = i
            for kind, scores in read[i].items():
                tables[kind][part] = scores
        of_folds = [*models[: len(splits)]]
        return cls(models[-1], of_folds, fold, tables, rows.columns, rows.weight)

    @property
    def labels(self) -> Labels:
        """The labels of the target."""
        return self.model.labels

    @property
    def kind(self) -> str:
        """The kind of scores for thresholds and calibration."""
        return tuple(self.tables)[-1]

    def parts(self) -> list[tuple[LabelScorer, Ints]]:
        """Return the model of each fold and its rows, where there are any."""
        rows = [np.flatnonzero(self.fold == i) for i in range(len(self.models))]
        return [(m, part) for m, part in zip(self.models, rows, strict=True) if part.size]

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
    estimator: Any, rows: TrainingData, splits: Sequence[Split], whole: bool
) -> list[Fit]:
    """Return the fits of a classifier on the rest of each split, and if `whole` on all rows.

    They read probabilities, where it has any, and the scores for thresholds.
    """
    wanted = ("predict_proba", response_method(estimator, PREFERRED[rows.labels.kind]))
    kinds = [kind for kind in dict.fromkeys(wanted) if has_method(estimator, kind)]
    scorer = LabelScorer(estimator, rows.labels, tuple(rows.params))
    one = Fit(scorer, rows.params, partial(LabelScorer.read, kinds=kinds))
    return [*(replace(one, split=split) for split in splits), *([one] if whole else [])]


def hold_out(
    estimator: Any, rows: TrainingData, splits: Sequence[Split], whole: bool = False
) -> HeldOut:
    """Return each row's scores from a model that was not trained on it, and all models.

    Without splits one model is fitted, and scores the rows it was fitted on.
    """
    fits = score_fits(estimator, rows, splits, whole or not splits)
    also = None if splits else rows.X
    fitted = Parallel()(delayed(fit.run)(rows.X, rows.target, also) for fit in fits)
    every = (np.arange(0), np.arange(len(rows.target)))
    held_out = HeldOut.of(fitted, splits or [every], rows)
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
    free = [ignores_target(step) for _, step in estimator.steps]
    first = [*free[:-1], False].index(False)
    if not first:
        return None, estimator, X
    shared = clone(estimator[:first])
    return shared, estimator[first:], shared.fit_transform(X)


def ignores_target(step: Any) -> bool:
    """Whether a transformer, with all inside of it, is known to be the same for every target.

    That is known of scikit-learn's unsupervised transformers; others may look at an optional y.
    """
    inside = step.get_params().values() if hasattr(step, "get_params") else ()
    for part in (each for each in (step, *inside) if hasattr(each, "fit")):
        package, module = (*type(part).__module__.split("."), "")[:2]
        by_label = module in ("feature_selection", "cross_decomposition")
        if package != "sklearn" or by_label or get_tags(part).target_tags.required:
            return False
    return True


def joined(shared: Pipeline | None, model: Any) -> Any:
    """Return the model behind the steps that it shares with others."""
    if shared is None or not isinstance(model, Pipeline):  # a constant model needs no features
        return model
    return Pipeline([*shared.steps, *model.steps])


def _fit_one(estimator: Any, X: Any, y: NDArray[Any], weight: Any, params: dict[str, Any]) -> Any:
    if isinstance(estimator, FrozenEstimator):
        return estimator.fit(X, y)
    seen = y if weight is None else y[weight > 0]
    if y.ndim == 1 and len(np.unique(seen)) == 1:  # rows of weight 0 have no class
        return DummyClassifier().fit(X, np.full(len(y), seen[0]))
    model = clone(estimator)
    name = None if weight is None else weight_parameter(model)
    return model.fit(X, y, **({} if name is None else {name: weight}), **params)
