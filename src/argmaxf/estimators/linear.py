"""Classifiers that are trained here: a linear score for each label, and a threshold on it."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import validate_data

from argmaxf._base.validation import as_weights
from argmaxf.empirical.linear_model import LinearModel
from argmaxf.estimators.base import FClassifier
from argmaxf.estimators.sides import is_constant, margin, tune


class Complaint(NamedTuple):
    """What may be wrong with a trained model, and the warning that names its labels."""

    holds: Callable[[LinearModel], bool]
    message: str
    category: type[Warning] = UserWarning


class LinearFClassifier(FClassifier):
    """A linear score per label, trained one label at a time, with its threshold tuned on them."""

    beta: float
    measure: Any = "fbeta"
    n_jobs: int | None = None
    _complaints: tuple[Complaint, ...] = (
        Complaint(
            lambda model: not model.converged,
            "training stopped before it converged, for {}: raise max_iter, scale the features, or "
            "regularize more",
            ConvergenceWarning,
        ),
    )

    @abstractmethod
    def _fit_label(
        self, X: Any, y: NDArray[np.bool_], weight: NDArray[np.float64] | None
    ) -> LinearModel:
        """Return the score trained for one label that has both positives and negatives."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the coefficients, then the thresholds, for each label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            A binary, multiclass or multilabel-indicator target.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        object
            The fitted classifier itself.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, multi_output=True)
        X, y, weight = _weighted_rows(X, y, as_weights(sample_weight, X.shape[0]))
        columns = self._read_target(y).columns(y)
        scale = self._scale(X, weight)
        scaled = X if scale is None else scale.transform(X)
        models = Parallel(n_jobs=self.n_jobs)(
            delayed(self._fit_column)(scaled, column, weight) for column in columns.T
        )
        self.models_ = [_unscaled(model, scale) for model in models]
        self.coef_ = np.array([model.coef for model in self.models_])
        self.intercept_ = np.array([model.intercept for model in self.models_])
        self.n_iter_ = np.array([model.n_iter for model in self.models_])
        threshold = self._thresholds(columns, self._scores(X), weight)
        self.threshold_ = float(threshold[0]) if self._labels.kind == "binary" else threshold
        self._warn_of_models()
        return self

    def _scale(self, X: Any, weight: Any) -> StandardScaler | None:
        """Return what brings the features to one scale, None to train on them as they are."""
        return None

    def _fit_column(self, X: Any, column: NDArray[np.bool_], weight: Any) -> LinearModel:
        if is_constant(column):
            return LinearModel(np.zeros(X.shape[1]), n_iter=1)
        return self._fit_label(X, column, weight)

    def _thresholds(self, columns: Any, scores: Any, weight: Any) -> NDArray[np.float64]:
        """Return the thresholds that were learned with the scores, and tune the others."""
        tuned = tune(columns, scores, self._asked(), weight)
        for k, model in enumerate(self.models_):
            tuned[k] = tuned[k] if model.threshold is None else model.threshold
        return tuned

    def _warn_of_models(self) -> None:
        """Say of which labels there is something to complain about."""
        for holds, message, category in self._complaints:
            pairs = zip(self._labels.names, self.models_, strict=True)
            names = [str(name) for name, model in pairs if holds(model)]
            if names:
                warnings.warn(message.format(", ".join(names)), category, stacklevel=3)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def _margin(self, X: Any) -> NDArray[np.float64]:
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return margin(self._scores(X), self.threshold_)


def _unscaled(model: LinearModel, scale: StandardScaler | None) -> LinearModel:
    """Return a score of scaled features as one of the features themselves."""
    if scale is None:
        return model
    coef = model.coef / scale.scale_
    shift = coef @ scale.mean_ if scale.with_mean else 0.0
    return replace(model, coef=coef, intercept=model.intercept - float(shift))


def _weighted_rows(X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Leave out rows of weight zero: they must count for nothing."""
    if weight is None or weight.all():
        return X, y, weight
    return X[weight > 0], y[weight > 0], weight[weight > 0]
