"""The exact threshold beside scikit-learn's curve and its grid of thresholds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer, precision_recall_curve
from sklearn.model_selection import TunedThresholdClassifierCV

from argmaxf import ThresholdFClassifier, maximize_empirical_f
from argmaxf.theory import GaussianMixture
from benchmarks.harness import Row, best_pair


def rows() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    n = 10**6
    for name, p in [("Beta(.5, 5)", rng.beta(0.5, 5, n)), ("uniform", rng.random(n))]:
        y = rng.random(n) < p
        yield _row(f"maximize_empirical_f, n = 1,000,000, {name}", y, p, 0.6)
    yield _row("the same, scores of two decimals", y, p.round(2), 0.6)
    yield _prefit()


def _row(work: str, y: np.ndarray, score: np.ndarray, at_most: float) -> Row:
    def curve() -> float:
        precision, recall, threshold = precision_recall_curve(y, score)
        f = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
        return float(threshold[np.argmax(f[:-1])])

    ours, other = best_pair(lambda: maximize_empirical_f(y, score), curve, 7)
    return Row(work, ours, "precision_recall_curve, argmax", other, at_most)


def _prefit() -> Row:
    """A fitted model gets its threshold from 100,000 rows."""
    mixture = GaussianMixture(D=10, S=2.0, positive_rate=0.1)
    model = FrozenEstimator(LogisticRegression().fit(*mixture.sample(2000, seed=0)))
    X, y = mixture.sample(100_000, seed=1)
    ours = ThresholdFClassifier(model)
    grid = TunedThresholdClassifierCV(
        model, scoring=make_scorer(f1_score), cv="prefit", refit=False, thresholds=100
    )
    times = best_pair(_fit(ours, X, y), _fit(grid, X, y), 3)
    f = [f1_score(y, fitted.predict(X)) for fitted in (ours, grid)]
    assert f[0] >= f[1], f"training F is lower than the grid's: {f}"
    work = "prefit ThresholdFClassifier, n = 100,000"
    return Row(work, times[0], "TunedThresholdClassifierCV, 100 thresholds", times[1], 1 / 20)


def _fit(estimator: object, X: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    return lambda: estimator.fit(X, y)
