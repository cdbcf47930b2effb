"""python -m benchmarks.prediction_time: what a prediction costs, beside the plain model."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf import AutoFClassifier, ExpectedFClassifier, ThresholdFClassifier

METHODS: dict[str, Callable[[Any], Any]] = {
    "`ThresholdFClassifier`": ThresholdFClassifier,
    "`ExpectedFClassifier(cv=0.2)`": lambda model: ExpectedFClassifier(model, cv=0.2),
    "`ExpectedFClassifier`": ExpectedFClassifier,
    "`AutoFClassifier`": AutoFClassifier,
}


def cpu_ms(call: Callable[[], Any]) -> float:
    """Return the least of five means of CPU time, in milliseconds."""
    call()
    means = []
    for _ in range(5):
        start, times = time.process_time(), 0
        while time.process_time() - start < 0.1:
            call()
            times += 1
        means.append((time.process_time() - start) / times)
    return 1e3 * min(means)


def main() -> None:
    from lightgbm import LGBMClassifier

    warnings.simplefilter("ignore")
    X, y = make_classification(2000, weights=[0.9], random_state=0)
    many = np.tile(X, (5, 1))
    models = {
        "scaled logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
        "LightGBM": LGBMClassifier(n_jobs=1, verbose=-1),
        "random forest": RandomForestClassifier(100, random_state=0),
    }
    print(
        "| × the plain model's `predict` | " + " | ".join(f"{m}, one row | 10,000" for m in models)
    )
    fitted = {name: model.fit(X, y) for name, model in models.items()}
    plain = {n: (cpu_ms(lambda m=m: m.predict(X[:1])), cpu_ms(lambda m=m: m.predict(many)))
             for n, m in fitted.items()}  # fmt: skip
    print("plain, ms:", {n: [round(ms, 3) for ms in each] for n, each in plain.items()})
    for name, make in METHODS.items():
        cells = []
        for model_name, model in models.items():
            ours = make(model).fit(X, y)
            frozen = ours.freeze()
            one = cpu_ms(lambda frozen=frozen: frozen.predict(X[:1])) / plain[model_name][0]
            batch = cpu_ms(lambda ours=ours: ours.predict(many)) / plain[model_name][1]
            cells += [f"{one:.1f}", f"{batch:.1f}"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
