"""The methods compared: short sentences over scikit-learn's models and argmaxf's functions."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from argmaxf.empirical.soft_f import fit_soft_f
from argmaxf.empirical.threshold import maximize_empirical_f
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.measures import FBeta
from reproduction.datasets import MultilabelData

Array = NDArray[Any]
PARTS = ("fit", "soft F", "decide")  # where a cell's time goes
spent: defaultdict[str, float] = defaultdict(float)  # seconds in each of them


@contextmanager
def timed(part: str) -> Iterator[None]:
    """Count the time spent inside towards one part."""
    start = time.perf_counter()
    try:
        yield
    finally:
        spent[part] += time.perf_counter() - start


@dataclass(frozen=True)
class TrainTestScores:
    """Log-odds of the training and of the test examples under one model."""

    train: Array
    test: Array


def targets(data: MultilabelData, label: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a label's 0/1 targets, of the training rows and of the test rows."""
    column = data.labels.index(label)
    return data.Y_train[:, column].astype(np.int64), data.Y_test[:, column].astype(np.int64)


def with_dummy(X: Any) -> Any:
    """Return X with the dummy attribute fixed at one as its last column."""
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])


def represented(X: Array, representation: str) -> Array:
    """Return section 4.1's attributes: R0 coordinates, R1 with a constant 1, R2 with products.

    >>> represented(np.array([[2.0, 3.0]]), "R2")
    array([[2., 3., 1., 4., 6., 9.]])
    """
    i, j = np.triu_indices(X.shape[1])
    products = [X[:, i] * X[:, j]] if representation == "R2" else []
    return X if representation == "R0" else np.hstack([with_dummy(X), *products])


def logistic(
    X: Any,
    y: Array,
    X_test: Any,
    *,
    penalty: float = 0.0,
    tol: float = 1e-8,
    max_iter: int = 50_000,
) -> TrainTestScores:
    """Fit logistic regression by L-BFGS from zeros: the ML of ML^E and ML^δ.

    Minimizes Σ log-loss + (penalty/2)‖w‖² over the attributes as they are, without an intercept of
    its own. With no penalty and separable classes there is no minimum and L-BFGS ends where the
    gradient is below `tol`; early stopping with a small `max_iter` is a choice too.
    """
    C = 1.0 / penalty if penalty else np.inf
    model = LogisticRegression(C=C, fit_intercept=False, tol=tol, max_iter=max_iter)
    weight = None
    if y.min() == y.max():
        # With one class the penalized minimum exists, but scikit-learn wants to see two: an
        # example of the other class that weighs nothing.
        X, y, weight = _with_weightless_example(X, y)
    with timed("fit"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=weight)
    n = X.shape[0] - (weight is not None)
    return TrainTestScores(model.decision_function(X[:n]), model.decision_function(X_test))


def soft_f(X: Any, y: Array, X_test: Any, *, penalty: float = 0.0) -> TrainTestScores:
    """Fit soft F1 by L-BFGS from zeros: the scores of F^δ. Minimizes -soft F + (penalty/2)‖w‖²."""
    with timed("soft F"):
        found = fit_soft_f(X, y, alpha=penalty, fit_intercept=False, tol=1e-6, max_iter=10_000)
    return TrainTestScores(X @ found.coef, X_test @ found.coef)


def by_threshold(scores: TrainTestScores, y: Array) -> Array:
    """Select test examples by the threshold with the best F1 in training (the δ methods)."""
    with timed("decide"):
        return np.asarray(scores.test >= maximize_empirical_f(y, scores.train).threshold)


def by_expectation(score: Array, *, zero_division: float = 0.0) -> Array:
    """Select the examples with the highest expected F1 (the E methods); each row is one set."""
    average = "samples" if score.ndim == 2 else None
    with timed("decide"):
        found = maximize_expected_f(expit(score), average=average, zero_division=zero_division)
    return np.asarray(found.selected)


def f1(y: Array, selected: Array) -> Any:
    """Return F1 in percent, of each row where there are several, with 0/0 = 0."""
    return 100.0 * FBeta().value(
        tp=(selected & (y == 1)).sum(axis=-1), k=selected.sum(axis=-1), s=y.sum(axis=-1)
    )


def _with_weightless_example(X: Any, y: Array) -> tuple[Any, Array, Array]:
    rows = [X, X[:1]]
    more = sparse.vstack(rows, format="csr") if sparse.issparse(X) else np.vstack(rows)
    return more, np.append(y, 1 - y[0]), np.append(np.ones(len(y)), 0.0)
