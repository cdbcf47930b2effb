"""Classifiers that wrap another one: one way to fit them, and what of it they pass on."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.validation import as_weights
from argmaxf.estimators.base import FClassifier
from argmaxf.estimators.heldout import HeldOut
from argmaxf.estimators.scores import LabelScorer, response_method, weight_parameter


@dataclass(frozen=True)
class Training:
    """What a classifier that wraps another is fitted on, checked."""

    X: Any  # passed on untouched
    y: Any  # as it was given, with the names that a frame has
    target: NDArray[Any]  # as the wrapped classifier takes it
    columns: Bools  # one for each label
    weight: Floats | None
    groups: Any  # of rows that are held out together
    params: dict[str, Any]  # for the wrapped classifier's `fit`, as they were given

    def all_params(self) -> dict[str, Any]:
        """Return what was given to `fit`, for a classifier that holds out no rows: groups too."""
        return self.params if self.groups is None else {"groups": self.groups, **self.params}


class MetaFClassifier(MetaEstimatorMixin, FClassifier):
    """A wrapper around one scikit-learn classifier; X is passed on to it untouched."""

    estimator: Any
    _scorer: Any

    @abstractmethod
    def _fit(self, rows: Training) -> None:
        """Fit the wrapped classifier, and learn how to decide by what it says."""

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the classifier, and how labels are decided by what it says of rows.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Training rows, as the classifier takes them.
        y : array-like or sparse matrix of shape (n_samples,) or (n_samples, n_labels)
            A binary, multiclass or multilabel-indicator target.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts, in F and, if the classifier takes weights, in its training.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that are held out together. `JointFClassifier` holds out none and passes
            them on.
        **fit_params : dict
            Passed on to the classifier's `fit`: eval sets, callbacks, and what has one entry for
            each row, which is cut to the rows of a fold. With metadata routing, what it requests.

        Returns
        -------
        object
            The fitted classifier itself.
        """
        self._asked()
        labelled = self._check_target(y)
        check_consistent_length(X, labelled)
        weight = as_weights(sample_weight, labelled.shape[0])
        labels = self._read_target(labelled if weight is None else labelled[weight > 0])
        target = labels.target(labelled)
        self._fit(Training(X, y, target, labels.columns(target), weight, groups, fit_params))
        return self

    def _fit_params(self, weight: Any, given: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the wrapped classifier's `fit` gets of the weights, and what was given."""
        params = dict(given or {})
        if isinstance(self.estimator, FrozenEstimator) or (weight is None and not params):
            return {}
        if get_config()["enable_metadata_routing"]:
            weights = {} if weight is None else {"sample_weight": weight}
            return dict(process_routing(self, "fit", **weights, **params).estimator.fit)
        if weight is None:
            return params
        if weight_parameter(self.estimator) is not None:
            return {"sample_weight": weight, **params}
        warnings.warn(
            f"{type(self.estimator).__name__} takes no sample_weight: the weights only count in "
            "the F to be maximized",
            stacklevel=4,
        )
        return params

    def _fit_scorer(self, rows: Training, params: dict[str, Any], methods: Any) -> None:
        """Fit the wrapped classifier on all rows, and show it."""
        scorer = LabelScorer(self.estimator, self._labels, response_method(self.estimator, methods))
        self._scorer = scorer.fit(rows.X, rows.target, **params)
        self._show(self._scorer.models_)

    def _put_on(self, held_out: HeldOut) -> Self:
        """Return this classifier, which learned from given scores, on the model that gives them."""
        self.estimator = held_out.estimator
        self._scorer = held_out.model.reading(held_out.kind_of(self._scorer.method))
        self._show(self._scorer.models_)
        return self

    def _has_probabilities(self) -> bool:
        """Whether there is, or will be, a probability for each row."""
        return hasattr(self.estimator, "predict_proba")

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the model or models in use; `predict` need not follow them.

        Parameters
        ----------
        X : array-like, frame or sparse matrix
            The rows, as the classifier takes them.

        Returns
        -------
        ndarray
            Of each class, or of each label of a multilabel target.
        """
        check_is_fitted(self)
        return self._labels.both(self._proba(X))

    def _proba(self, X: Any) -> Floats:
        """Return the probability of each label, (n, n_columns)."""
        proba: Floats = self._scorer.scores(X, "predict_proba")
        return proba

    def _show(self, models: list[Any]) -> None:
        """Show the fitted models and the features they were fitted with."""
        self.estimators_ = models
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing: weights are used here, and passed on where they are asked for."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )

    def _check_target(self, y: Any) -> Any:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        y = y.tocsr() if sparse.issparse(y) else np.asarray(y)
        if not y.shape[0]:
            raise ValueError("y must have at least one row, got none")
        assert_all_finite(y, input_name="y")
        return y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        return tags
