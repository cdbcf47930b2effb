"""One column of scores per label, from any scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_validate
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags, indexable, resample
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.estimators.labels import Labels

# The first of these that a classifier has gives its scores. A multinomial model's decision_function
# does not score one class against the rest. Log-odds are for naive Bayes, which saturates.
PREFERRED = {
    "binary": ("decision_function", "log_odds", "predict_proba"),
    "multilabel-indicator": ("decision_function", "log_odds", "predict_proba"),
    "multiclass": ("predict_proba", "decision_function"),
}
CERTAIN = {  # the scores of a label that is positive in no row, and in every row
    "predict_proba": (0.0, 1.0),
    "log_odds": (-np.inf, np.inf),
    "decision_function": (-np.inf, np.inf),
}


class PrecomputedScores(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose input is its own scores, one column per label.

    With it, methods that wrap a classifier learn from one table of held-out scores. The table has a
    block of columns for each of `kinds`: probabilities first where there are any, and the scores
    for thresholds last. `first` is the number of other blocks before them.
    """

    def __init__(
        self, labels: Labels, kinds: tuple[str, ...], calibrated: bool = True, first: int = 0
    ) -> None:
        self.labels = labels
        self.kinds = kinds
        self.calibrated = calibrated  # whether the probabilities are to be used as they are
        self.first = first

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes of the labels."""
        return self.labels.classes

    @available_if(lambda self: self.kinds[0] == "predict_proba")
    def predict_proba(self, X: Floats) -> Floats:
        """Return the first block, as probabilities."""
        return self.labels.both(self.block(X, "predict_proba"))

    @available_if(lambda self: self.kinds[-1] != "predict_proba")
    def decision_function(self, X: Floats) -> Floats:
        """Return the last block, as decision scores."""
        return self.labels.orient(self.block(X, "decision_function"))

    def block(self, X: Floats, kind: str) -> Floats:
        """Return the columns of one kind: probabilities, or else the scores for thresholds."""
        number = 0 if kind == "predict_proba" else len(self.kinds) - 1
        start = (self.first + number) * self.labels.n_columns
        return X[:, start : start + self.labels.n_columns]

    def fit(self, X: Any, y: Any) -> Self:
        """Do nothing: the scores are given."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


def is_precomputed(estimator: Any) -> bool:
    """Whether a classifier is `PrecomputedScores`, frozen so that nothing fits it."""
    frozen = isinstance(estimator, FrozenEstimator)
    return frozen and isinstance(estimator.estimator, PrecomputedScores)


class LabelScorer(BaseEstimator):
    """A classifier as a function from X to scores, (n, n_columns).

    One model is fitted where the classifier can hold all labels at once, otherwise one per label.
    Where training has one class only, a constant model is fitted in its place.

    `method` is `"predict_proba"`, `"decision_function"`, or `"log_odds"`: those of
    `predict_log_proba`, which still order rows where probabilities round to 0 or 1.
    """

    __metadata_request__fit = {"sample_weight": True}  # noqa: RUF012  scikit-learn's convention

    def __init__(
        self, estimator: Any, labels: Labels, method: str, passed: tuple[str, ...] = ()
    ) -> None:
        self.estimator = estimator
        self.labels = labels
        self.method = method
        self.passed = passed  # the parameters of `fit` to request where metadata are routed

    def fit(self, X: Any, y: NDArray[Any], sample_weight: Any = None, **params: Any) -> LabelScorer:
        """Fit the classifier on `y`, as `Labels.target` gives it; `params` are for its `fit`."""
        targets = y.T if self._one_model_per_label() else [y]
        self.models_ = [_fit_one(self.estimator, X, t, sample_weight, params) for t in targets]
        return self

    def get_metadata_routing(self) -> Any:
        """Return which parameters of `fit` are requested."""
        request = super().get_metadata_routing()
        for name in self.passed:
            request.fit.add_request(param=name, alias=True)
        return request

    def predict(self, X: Any) -> Floats:
        """Return the scores."""
        return self.scores(X, self.method)

    def scores(self, X: Any, method: str) -> Floats:
        """Return the scores that `method` of the fitted classifier gives."""
        found = [self._columns(model, X, method) for model in self.models_]
        scores = np.concatenate(found, axis=1)
        if not is_precomputed(self.estimator) and np.isnan(scores).any():
            row = int(np.argmax(np.isnan(scores).any(axis=1)))
            name = type(last_step(self.estimator)).__name__
            raise ValueError(f"{name} must give numbers as {method}, got NaN in row {row}")
        return scores

    def reading(self, method: str) -> LabelScorer:
        """Return the same fitted models with another method."""
        other = LabelScorer(self.estimator, self.labels, method)
        other.models_ = self.models_
        return other

    def has_logistic_link(self, X: Any, n: int) -> bool:
        """Whether probabilities are the logistic function of scores, on up to 200 of n rows."""
        if not hasattr(self.estimator, "predict_proba"):
            return False
        few = resample(*indexable(X), replace=False, n_samples=min(200, n), random_state=0)
        proba = self.scores(few, "predict_proba")
        return bool(np.allclose(proba, expit(self.predict(few)), rtol=1e-9, atol=1e-12))

    def out_of_fold(
        self, X: Any, y: NDArray[Any], splits: list[Any], params: dict[str, Any] | None = None
    ) -> tuple[Floats, list[LabelScorer]]:
        """Return each row's scores from a model that was not trained on it, and all these models.

        Rows that are never held out, as the first of a time series, have NaN.
        """
        scorer = LabelScorer(self.estimator, self.labels, self.method, tuple(params or ()))
        models = cross_validate(
            scorer, X, y, cv=splits, scoring=_keep_scores, return_estimator=True,
            error_score="raise", params=params,
        )["estimator"]  # fmt: skip
        scores = np.full((len(y), self.labels.n_columns), np.nan)
        for (_, rows), model in zip(splits, models, strict=True):
            scores[rows] = model.held_out_scores_
            del model.held_out_scores_
        return scores, models

    def _one_model_per_label(self) -> bool:
        tags = get_tags(self.estimator).classifier_tags
        return (
            self.labels.kind == "multilabel-indicator"
            and not isinstance(self.estimator, FrozenEstimator)
            and not (tags is not None and tags.multi_label)
        )

    def _columns(self, model: Any, X: Any, method: str) -> Floats:
        if is_precomputed(model):
            return model.estimator.block(X, method)  # type: ignore[no-any-return]
        response, classes = _response(model, X, method), model.classes_
        if self.labels.kind != "multilabel-indicator":
            return _align(response, classes, self.labels.names, method)
        if isinstance(response, list):  # one array per label, as forests give
            pairs = zip(response, classes, strict=True)
            return np.concatenate([_align(r, c, [1], method) for r, c in pairs], axis=1)
        return response if len(self.models_) == 1 else _align(response, classes, [1], method)


@dataclass(frozen=True)
class HeldOutScores:
    """Held-out scores of a classifier, and its models: one for all rows, and one for each part.

    `scores` has a block of columns for each of `kinds`, as in `PrecomputedScores`. `parts` are the
    rows that each of `models` was not trained on.
    """

    estimator: Any
    model: LabelScorer | None
    models: list[LabelScorer]
    parts: list[Ints]
    kinds: tuple[str, ...]
    scores: Floats
    columns: Bools
    weight: Floats | None

    def kind_of(self, method: str) -> str:
        """Return which of `kinds` this method of `PrecomputedScores` gives."""
        return self.kinds[0 if method == "predict_proba" else -1]

    def of_kind(self, kind: str) -> Floats:
        """Return the scores of one kind."""
        width = self.columns.shape[1]
        start = self.kinds.index(kind) * width
        return self.scores[:, start : start + width]


def _keep_scores(model: LabelScorer, X: Any, y: Any) -> float:
    """Keep the held-out scores on the model; `cross_validate` calls this as its scorer."""
    model.held_out_scores_ = model.predict(X)
    return 0.0


def kinds_of_scores(estimator: Any) -> tuple[str, ...]:
    """Return which scores to read from a classifier: probabilities, and those for thresholds."""
    wanted = ("predict_proba", response_method(estimator, PREFERRED["binary"]))
    return tuple(kind for kind in dict.fromkeys(wanted) if _has(estimator, kind))


def response_method(estimator: Any, methods: Sequence[str]) -> str:
    """Return the first of `methods` that the classifier has; raise if it has none."""
    found = next((method for method in methods if _has(estimator, method)), None)
    if found is None:
        if not hasattr(estimator, "fit"):
            raise ValueError(f"estimator must be a classifier, got {estimator!r}")
        name, wanted = type(estimator).__name__, [m for m in methods if m != "log_odds"]
        advice = f": calibrate it, as in CalibratedClassifierCV({name}(...))"
        helps = wanted == ["predict_proba"] and hasattr(estimator, "decision_function")
        raise ValueError(f"{name} has no {' or '.join(wanted)}{advice if helps else ''}")
    return found


def _has(estimator: Any, method: str) -> bool:
    if method == "log_odds":
        return hasattr(estimator, "predict_log_proba") and hasattr(
            last_step(estimator), "predict_joint_log_proba"
        )
    return hasattr(estimator, method)


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


def requesting_weights(classifier: Any) -> Any:
    """Return a classifier that requests weights, where scikit-learn routes metadata."""
    routed = get_config()["enable_metadata_routing"]
    return classifier.set_fit_request(sample_weight=True) if routed else classifier


def _fit_one(estimator: Any, X: Any, y: NDArray[Any], weight: Any, params: dict[str, Any]) -> Any:
    if isinstance(estimator, FrozenEstimator):
        return estimator.fit(X, y)
    seen = y if weight is None else y[weight > 0]
    if y.ndim == 1 and len(np.unique(seen)) == 1:
        return DummyClassifier().fit(X, y, sample_weight=weight)
    model = clone(estimator)
    name = None if weight is None else weight_parameter(model)
    return model.fit(X, y, **({} if name is None else {name: weight}), **params)


def _response(model: Any, X: Any, method: str) -> Any:
    if method == "log_odds" and _has(model, method):
        return log_odds(np.asarray(model.predict_log_proba(X)))
    if hasattr(model, method):
        return getattr(model, method)(X)
    never, always = CERTAIN[method]  # a constant model has probabilities only
    return np.where(model.predict_proba(X) > 0, always, never)


def log_odds(log_proba: Floats) -> Floats:
    """Return the log-odds of each class against all others, from logarithms of probabilities.

    >>> log_odds(np.log([[0.25, 0.5, 0.25]])).round(4)
    array([[-1.0986,  0.    , -1.0986]])
    """
    classes = range(log_proba.shape[1])
    others = [logsumexp(np.delete(log_proba, k, axis=1), axis=1) for k in classes]
    return np.asarray(log_proba - np.column_stack(others))


def _align(response: Any, classes: Any, wanted: Any, method: str) -> Floats:
    """Return the response's columns for the `wanted` classes.

    A class that was not in training is never predicted: it gets the lowest score.
    """
    response = np.asarray(response, dtype=np.float64)
    if response.ndim == 1:  # a binary decision_function scores the second class
        response = np.column_stack([-response, response])
    if response.shape[1] != len(classes):
        raise ValueError(
            f"{method} must give one column per class, got {response.shape[1]} for "
            f"{len(classes)} classes"
        )
    known = {value: response[:, i] for i, value in enumerate(classes)}
    never = np.full(len(response), CERTAIN[method][0])
    return np.column_stack([known.get(value, never) for value in wanted])
