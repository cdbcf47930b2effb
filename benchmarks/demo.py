"""python -m benchmarks.demo: which bundled set the demo shows, chosen on training rows alone.

Every set of classes that scikit-learn bundles, each class with at most a third of the rows against
the rest, with logistic regression and naive Bayes. Half of the rows are for training; methods are
compared on folds of them. The demo's is the one on which the method that AutoF picks gains most
over the better of cutting at 0.5 and a tuned threshold, there. The other half is looked at once,
for the last column, which decides nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf import AutoFClassifier, ThresholdFClassifier
from argmaxf.commands.models import make_classifier

SETS = {"breast cancer": load_breast_cancer, "digits": load_digits, "iris": load_iris,
        "wine": load_wine}  # fmt: skip
RARE = 1 / 3
MODELS = ("logistic", "nb")  # of argmaxf compare, those whose fits take no time
BASELINES = ("cut at 0.5", "tuned threshold")


def problems(seed: int = 0) -> Iterator[tuple[str, Any, Any]]:
    """Give each class of each set against the rest, rows in the order of `seed`."""
    for name, load in SETS.items():
        X, target = load(return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(target))
        for label in np.unique(target):
            if np.mean(target == label) <= RARE:
                yield f"{name}, class {label}", X[order], (target[order] == label).astype(int)


def gains(model: Any, X: Any, y: Any) -> tuple[float, float, str]:
    """Return the gain on held-out training rows, that on the test rows, and the method picked."""
    half = len(y) // 2
    auto = AutoFClassifier(model).fit(X[:half], y[:half])
    held_out = auto.report_.scores
    base = max(held_out[name] for name in BASELINES)
    others = [model.fit(X[:half], y[:half]), ThresholdFClassifier(model).fit(X[:half], y[:half])]
    f = [f1_score(y[half:], each.predict(X[half:])) for each in (auto, *others)]
    return held_out[auto.chosen_] - base, f[0] - max(f[1:]), auto.chosen_


def show() -> None:
    """Print the problems by falling gain on training rows."""
    rows = []
    for name, X, y in problems():
        for key in MODELS:
            model = make_pipeline(StandardScaler(), make_classifier(key, 0))
            rows.append((f"{name}, {key}", *gains(model, X, y)))
    print("| problem | gain on training rows | gain on test rows | picked |")
    print("| --- | ---: | ---: | --- |")
    for name, train, test, chosen in sorted(rows, key=lambda row: -row[1]):
        print(f"| {name} | {100 * train:+.1f} | {100 * test:+.1f} | {chosen} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    show()
