"""python -m benchmarks.choosing: what choosing a method costs, on the rows of Table 1 with R1.

Regret is the F1 (in points, mean over seeds) lost against the method that is best on that row. The
rules differ in what they do with methods whose held-out scores are close.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from argmaxf import AutoFClassifier, ExpectedFClassifier, SoftFClassifier, ThresholdFClassifier
from argmaxf.comparison.choice import DOUBTED, TRUSTED
from argmaxf.comparison.result import Comparison
from argmaxf.estimators.plain import PlainClassifier
from argmaxf.theory import GaussianMixture

SETTINGS: dict[str, dict[str, float]] = {
    "Default": {},
    "S=0.4": {"S": 0.4},
    "D=100": {"D": 100},
    "Ntr=100": {"n": 100},
    "π₁=0.05": {"positive_rate": 0.05},
    "O=50": {"O": 50.0},
}
MODELS = {
    "no penalty": LogisticRegression(C=np.inf, tol=1e-8, max_iter=10_000),
    "C = 1": LogisticRegression(tol=1e-6, max_iter=10_000),
}


def within(
    near: float, order: Callable[[Comparison], tuple[str, ...]]
) -> Callable[[Comparison], str]:
    """Of the methods within `near` standard errors of the best, take the first in `order`."""

    def rule(report: Comparison) -> str:
        close = [m for m in report.scores if report.behind[m] <= near * report.std_error[m]]
        return min(close, key=order(report).index)

    return rule


def by_calibration(report: Comparison) -> tuple[str, ...]:
    assert report.choice is not None
    return TRUSTED if report.choice.trusted else DOUBTED


RULES = {
    "the highest score": within(0.0, lambda _: TRUSTED),
    "within 2 se: expected F first": within(2.0, lambda _: TRUSTED),
    "within 2 se: trained for F first": within(2.0, lambda _: DOUBTED),
    "within 1 se: by calibration": within(1.0, by_calibration),
    "within 2 se: by calibration (in use)": within(2.0, by_calibration),
    "always expected F": lambda _: "expected F",
    "always tuned threshold": lambda _: "tuned threshold",
    "always trained for F": lambda _: "trained for F",
}


def trial(model: Any, setting: dict[str, float], seed: int) -> tuple[Comparison, dict[str, float]]:
    """Return what AutoF saw in training, and what each method then scored on 3,000 test rows."""
    options: dict[str, Any] = {"D": 10, "S": 4.0, "O": 0.0, "positive_rate": 0.5, "n": 1000}
    options |= setting
    n = options.pop("n")
    mixture = GaussianMixture(**options)
    X, y = mixture.sample(n, seed=seed)
    X_test, y_test = mixture.sample(3000, seed=10_000 + seed)
    methods = {
        "cut at 0.5": PlainClassifier(model),
        "tuned threshold": ThresholdFClassifier(model),
        "expected F": ExpectedFClassifier(model),
        "trained for F": SoftFClassifier(),
        "AutoF": AutoFClassifier(model),
    }
    test = {m: 100 * f1_score(y_test, c.fit(X, y).predict(X_test)) for m, c in methods.items()}
    return methods["AutoF"].report_, test


def show(name: str, seeds: range) -> None:
    trials = {
        row: [trial(MODELS[name], setting, seed) for seed in seeds]
        for row, setting in SETTINGS.items()
    }
    print(f"\n{name}, seeds {seeds.start} to {seeds.stop - 1}: mean test F1\n")
    print("| |" + "|".join(SETTINGS) + "|\n|" + " --- |" * (len(SETTINGS) + 1))
    methods = list(trials["Default"][0][1])
    mean = {m: [np.mean([t[m] for _, t in trials[row]]) for row in SETTINGS] for m in methods}
    for method in methods:
        print(f"| {method} |" + "|".join(f" {value:.2f} " for value in mean[method]) + "|")
    best = np.max([mean[m] for m in methods if m != "AutoF"], axis=0)
    print("\n| regret |" + "|".join(SETTINGS) + "| largest |\n|" + " --- |" * (len(SETTINGS) + 2))
    for label, rule in RULES.items():
        got = [np.mean([test[rule(report)] for report, test in trials[row]]) for row in SETTINGS]
        regret = best - got
        print(f"| {label} |" + "|".join(f" {r:.2f} " for r in regret) + f"| {regret.max():.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=(100, 200), metavar=("FROM", "TO"))
    chosen = range(*parser.parse_args().seeds)
    warnings.simplefilter("ignore")
    for model_name in MODELS:
        show(model_name, chosen)
