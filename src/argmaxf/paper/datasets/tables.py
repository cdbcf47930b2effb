"""The record every loader returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class MultilabelData:
    """A data set with its published split.

    Attributes
    ----------
    name : str
        Its name.
    X_train : ndarray or sparse matrix of shape (n_train, n_features)
        Attributes of the training rows, dense or CSR.
    Y_train : ndarray of shape (n_train, n_labels)
        Their 0/1 labels.
    X_test : ndarray or sparse matrix of shape (n_test, n_features)
        Attributes of the test rows.
    Y_test : ndarray of shape (n_test, n_labels)
        Their 0/1 labels.
    features : tuple of str
        Names of the attributes.
    labels : tuple of str
        Names of the labels.
    """

    name: str
    X_train: Any
    Y_train: NDArray[np.int8]
    X_test: Any
    Y_test: NDArray[np.int8]
    features: tuple[str, ...]
    labels: tuple[str, ...]

    def usable(self, at_least: int) -> NDArray[np.intp]:
        """Return the labels with enough positives in both parts.

        Parameters
        ----------
        at_least : int
            How many positives a label needs (the paper's C).

        Returns
        -------
        ndarray of int
            The columns of these labels.
        """
        fewest = np.minimum(self.Y_train.sum(axis=0), self.Y_test.sum(axis=0))
        return np.flatnonzero(fewest >= at_least)
