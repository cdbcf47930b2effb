"""What all classifiers here share: labels in, one margin per label, labels out.

A classifier says how it is fitted and what its margins are; an entry is predicted positive where
its margin is not negative. `LinearFClassifier` (linear.py) is for models trained here,
`MetaFClassifier` (wrapping.py) for those that wrap a scikit-learn classifier.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from argmaxf.estimators.labels import Labels
from argmaxf.measures import Measure, as_measure


class FClassifier(ClassifierMixin, BaseEstimator):
    """Predict and decision_function from margins, for every kind of target."""

    pos_label: Any = None

    @abstractmethod
    def _margin(self, X: Any) -> NDArray[np.float64]:
        """Return (n, n_columns) margins: not negative where the label is predicted."""

    def predict(self, X: Any) -> Any:
        """Return the predicted labels, in the form of the training target.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to decide.

        Returns
        -------
        ndarray or sparse matrix
            One label for each row, or a row of 0/1 labels.
        """
        check_is_fitted(self)
        return self._labels.decode(self._margin(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return how far each entry lies from being decided the other way.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to decide.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Not negative where the label is predicted.
        """
        check_is_fitted(self)
        return self._labels.orient(self._margin(X))

    def _asked(self) -> Measure:
        """Return the measure to be maximized."""
        return as_measure(getattr(self, "measure", "fbeta"), getattr(self, "beta", 1.0))

    def _read_target(self, y: Any) -> Labels:
        """Take note of the labels, and say which of them cannot be learned."""
        self._labels = Labels.of(y, self.pos_label)
        self._labels.warn_of_constants(self._labels.columns(y))
        self.classes_ = self._labels.classes
        return self._labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags
