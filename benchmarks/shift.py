"""python -m benchmarks.shift: what remains of each choice when the data move, and the remedies.

Three worlds: the rate of positives falls from 20 to 2 % (prior shift); rows come only where P(1|x)
is below one half (covariate shift, section 4.1.2 of the paper); nothing moves. Mean test F1 in
points over the seeds, and in how many of them AutoFClassifier warned.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from argmaxf import AutoFClassifier, ExpectedFClassifier, SoftFClassifier, ThresholdFClassifier
from argmaxf.estimators import ShiftWarning
from argmaxf.estimators.meta import PlainClassifier
from argmaxf.theory import GaussianMixture

TRAIN, DEPLOY = 0.2, 0.02
ROWS, NEW_ROWS = 1000, 5000
WORLDS = ("prior", "covariate", "none")
MODELS = {
    "logistic regression": LogisticRegression(C=np.inf, max_iter=1000),
    "random forest": RandomForestClassifier(30, min_samples_leaf=3, random_state=0),
}
Data = tuple[Any, Any, Any, Any]


def draw(world: str, seed: int) -> Data:
    """Return training rows and new rows, with their labels."""
    if world == "covariate":
        mixture = GaussianMixture(S=4.0, positive_rate=0.5)
        X, y = mixture.sample(2 * NEW_ROWS, seed=10_000 + seed)
        low = mixture.posterior(X) < 0.5
        return *mixture.sample(ROWS, seed=seed), X[low], y[low]
    rates = (TRAIN, DEPLOY if world == "prior" else TRAIN)
    here, there = (GaussianMixture(S=2.5, positive_rate=rate) for rate in rates)
    return *here.sample(ROWS, seed=seed), *there.sample(NEW_ROWS, seed=10_000 + seed)


def methods(model: Any) -> dict[str, Any]:
    """Return what could be done: choices fixed in training, then the two remedies."""
    return {
        "threshold 0.5": PlainClassifier(model),
        "tuned threshold": ThresholdFClassifier(model),
        "trained for F": SoftFClassifier(),
        "expected F": ExpectedFClassifier(model),
        "expected F, deploy_rate known": ExpectedFClassifier(model, deploy_rate=DEPLOY),
        "expected F, deploy_rate estimated": ExpectedFClassifier(model, deploy_rate="estimate"),
        "AutoF, deploy_rate known": AutoFClassifier(model, deploy_rate=DEPLOY),
        "AutoF, deploy_rate estimated": AutoFClassifier(model, deploy_rate="estimate"),
    }


def trial(world: str, model: Any, seed: int) -> dict[str, float]:
    """Return the F1 of each method on the new rows, and whether AutoF warned (100 or 0)."""
    X, y, X_new, y_new = draw(world, seed)
    found = {
        name: 100 * float(f1_score(y_new, method.fit(X, y).predict(X_new)))
        for name, method in methods(model).items()
        if not (name.endswith("known") and world != "prior")
    }
    auto = AutoFClassifier(model).fit(X, y)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found["AutoF"] = 100 * float(f1_score(y_new, auto.predict(X_new)))
    warned = any(issubclass(one.category, ShiftWarning) for one in said)
    return found | {"AutoF warned": 100.0 * warned}


def show(seeds: range) -> None:
    """Print a row for each world and model."""
    names = [*methods(None), "AutoF", "AutoF warned"]
    print("| |" + "|".join(names) + "|\n| --- |" + " ---: |" * len(names))
    for name, model in MODELS.items():
        for world in WORLDS:
            found = [trial(world, model, seed) for seed in seeds]
            means = {m: np.mean([one[m] for one in found]) for m in names if m in found[0]}
            cells = (f" {means[m]:.1f} " if m in means else " " for m in names)
            print(f"| {world}, {name} |" + "|".join(cells) + "|", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shift", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    warnings.simplefilter("ignore")
    show(range(parser.parse_args().seeds))
