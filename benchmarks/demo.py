"""python -m benchmarks.demo: which bundled set the demo shows, chosen on training rows alone.

Every set of classes that scikit-learn bundles, each class with at most a third of the rows against
the rest, with logistic regression and naive Bayes. Half of the rows are for training, and are split
in halves ten times: methods are fitted on one and judged on the other, each by the one model that
would be used. (Held-out rows of folds are no such judge of a tuned threshold: one threshold is laid
to five models.) The demo's set is the one on which the method that AutoF picks gains most over the
better of cutting at 0.5 and a tuned threshold. The other half is looked at once, for the last
column, which decides nothing.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf import AutoFClassifier, ThresholdFClassifier
from argmaxf.cli.models import make_classifier

SETS = {"breast cancer": load_breast_cancer, "digits": load_digits, "iris": load_iris,
        "wine": load_wine}  # fmt: skip
RARE = 1 / 3
MODELS = ("logistic", "nb")  # of argmaxf compare, those whose fits take no time
SPLITS = 10


def problems(seed: int = 0) -> Iterator[tuple[str, Any, Any]]:
    """Give each class of each set against the rest, rows in the order of `seed`."""
    for name, load in SETS.items():
        X, target = load(return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(target))
        for label in np.unique(target):
            if np.mean(target == label) <= RARE:
                yield f"{name}, class {label}", X[order], (target[order] == label).astype(int)


def gain(model: Any, X: Any, y: Any, train: Any, test: Any) -> float:
    """Return what AutoF gains over the better of the usual two, fitted on some rows, on others."""
    makers = (AutoFClassifier(model), model, ThresholdFClassifier(model))
    fitted = [each.fit(X[train], y[train]) for each in makers]
    f, *usual = (f1_score(y[test], each.predict(X[test]), zero_division=0.0) for each in fitted)
    return float(f - max(usual))


def gains(model: Any, X: Any, y: Any) -> tuple[float, float, float]:
    """Return the mean gain on training rows, its standard error, and the gain on test rows."""
    half = len(y) // 2
    orders = [np.random.default_rng(seed).permutation(half) for seed in range(SPLITS)]
    found = [gain(model, X, y, o[: half // 2], o[half // 2 :]) for o in orders]
    apart = gain(model, X, y, np.arange(half), np.arange(half, len(y)))
    return float(np.mean(found)), float(np.std(found, ddof=1) / SPLITS**0.5), apart


def show() -> None:
    """Print the problems by falling gain on training rows."""
    rows = []
    for name, X, y in problems():
        for key in MODELS:
            model = make_pipeline(StandardScaler(), make_classifier(key, 0))
            rows.append((f"{name}, {key}", *gains(model, X, y)))
            print(rows[-1], file=sys.stderr, flush=True)
    print("| problem | gain on training rows | gain on test rows |")
    print("| --- | ---: | ---: |")
    for name, mean, error, apart in sorted(rows, key=lambda row: -row[1]):
        print(
            f"| {name} | {100 * mean:+.1f} ± {100 * error:.1f} | {100 * apart:+.1f} |", flush=True
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    show()
