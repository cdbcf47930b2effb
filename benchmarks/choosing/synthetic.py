"""The methods on the rows of the paper's Table 1 with R1, where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from argmaxf import (
    AutoFClassifier,
    BlendFClassifier,
    ExpectedFClassifier,
    SoftFClassifier,
    ThresholdFClassifier,
)
from argmaxf.estimators.meta import PlainClassifier
from argmaxf.theory import GaussianMixture

SETTINGS: dict[str, dict[str, float]] = {
    "Default": {},
    "S=0.4": {"S": 0.4},
    "D=100": {"D": 100},
    "Ntr=100": {"n": 100},
    "π₁=0.05": {"positive_rate": 0.05},
    "O=50": {"O": 50.0},
}
SEEDS = range(100, 120)
MODEL = LogisticRegression(C=np.inf, tol=1e-8, max_iter=10_000)  # likelihood alone, as in the paper


def trial(setting: dict[str, float], seed: int) -> dict[str, float]:
    """Return what each method scores on 3,000 test rows."""
    options: dict[str, Any] = {"D": 10, "S": 4.0, "O": 0.0, "positive_rate": 0.5, "n": 1000}
    options |= setting
    n = options.pop("n")
    mixture = GaussianMixture(**options)
    X, y = mixture.sample(n, seed=seed)
    X_test, y_test = mixture.sample(3000, seed=10_000 + seed)
    methods = {
        "threshold 0.5": PlainClassifier(MODEL),
        "tuned threshold": ThresholdFClassifier(MODEL),
        "expected F, uncalibrated": ExpectedFClassifier(MODEL, calibration=None),
        "expected F": ExpectedFClassifier(MODEL),
        "trained for F": SoftFClassifier(),
        "blended F": BlendFClassifier(MODEL),
        "AutoF": AutoFClassifier(MODEL),
    }
    return {m: 100 * f1_score(y_test, c.fit(X, y).predict(X_test)) for m, c in methods.items()}


def show_all(seeds: range = SEEDS) -> None:
    """Print the mean test F1 of each method on each row."""
    means = {}
    for row, setting in SETTINGS.items():
        found = [trial(setting, seed) for seed in seeds]
        means[row] = {m: np.mean([one[m] for one in found]) for m in found[0]}
    print("| |" + "|".join(SETTINGS) + "|\n|" + " --- |" * (len(SETTINGS) + 1))
    for method in means["Default"]:
        print(f"| {method} |" + "|".join(f" {means[row][method]:.2f} " for row in SETTINGS) + "|")
