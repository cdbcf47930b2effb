"""python -m benchmarks.prediction_time: what a prediction costs, beside the plain model.

The second table is of single rows: of each way to deploy, and of a scoring service by FastAPI.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, make_classification
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


def one_row_at_a_time() -> None:
    """Print p50 and p99 of the time of a row, and its mean CPU time, in milliseconds."""
    import onnxruntime
    from fastapi import FastAPI
    from fastapi.testclient import TestClient
    from skl2onnx import to_onnx

    import argmaxf.onnx  # noqa: F401  registers the converters

    X, y = load_breast_cancer(return_X_y=True)
    train, rows = (X[:400], y[:400]), X[400:]
    model = make_pipeline(StandardScaler(), LogisticRegression())
    plain, threshold = model.fit(*train), ThresholdFClassifier(model).fit(*train)
    frozen = ExpectedFClassifier(model).fit(*train).freeze()
    data = to_onnx(frozen, X[:1].astype(np.float32)).SerializeToString()
    session, service = onnxruntime.InferenceSession(data), frozen.to_sklearn()
    app = FastAPI()

    @app.post("/plain")
    def plain_label(row: list[float]) -> dict[str, float]:
        return {"label": float(plain.predict(np.array([row]))[0])}

    @app.post("/frozen")
    def frozen_label(row: list[float]) -> dict[str, float]:
        return {"label": float(frozen.predict(np.array([row]))[0])}

    client = TestClient(app)
    ways: dict[str, Callable[[Any], Any]] = {
        "scikit-learn's own `predict`": lambda row: plain.predict(row[None]),
        "`ThresholdFClassifier`": lambda row: threshold.predict(row[None]),
        "`ExpectedFClassifier`, frozen": lambda row: frozen.predict(row[None]),
        "the same by `to_sklearn()`": lambda row: service.predict(row[None]),
        "the same as ONNX": lambda row: session.run(None, {"X": row[None].astype(np.float32)}),
        "the service with scikit-learn": lambda row: client.post("/plain", json=row.tolist()),
        "the service, frozen": lambda row: client.post("/frozen", json=row.tolist()),
    }
    print("| one row by | p50, ms | p99, ms | CPU, ms |")
    for name, call in ways.items():
        times, cpu = [], time.process_time()
        for row in np.tile(rows, (2, 1)):
            start = time.perf_counter()
            call(row)
            times.append(1e3 * (time.perf_counter() - start))
        mean = 1e3 * (time.process_time() - cpu) / len(times)
        p50, p99 = np.percentile(times, [50, 99])
        print(f"| {name} | {p50:.2f} | {p99:.2f} | {mean:.2f} |", flush=True)


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
    one_row_at_a_time()


if __name__ == "__main__":
    main()
