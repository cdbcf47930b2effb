"""Training for F beside training for likelihood and margin, on Reuters word counts.

Needs the Reuters data (`ARGMAXF_DATA`, or a download); without it there are no rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.svm import LinearSVC

from argmaxf import MarginFClassifier, SoftFClassifier
from benchmarks.harness import Row, best_pair, timed
from reproduction.datasets import DataNotFoundError, MultilabelData, load_reuters

EVERY = 3  # of the 90 topics with test and training documents, in alphabetical order


def rows() -> Iterator[Row]:
    try:
        data = load_reuters()
    except DataNotFoundError as error:
        print(error, file=sys.stderr)
        return
    yield from soft_f(data)
    yield margin_f(data)


def soft_f(data: MultilabelData) -> Iterator[Row]:
    """Time every third topic: the mean, and the topic that is slowest beside its model."""
    topics = data.usable(1)[::EVERY]
    times = np.array([topic_times(data, topic) for topic in topics])
    shape = f"Reuters, {data.X_train.shape[0]} × {data.X_train.shape[1]:,}"
    beside = "LogisticRegression (lbfgs)"
    ours, other = times.mean(axis=0)
    yield Row(f"SoftFClassifier, {shape}, mean of {len(topics)} topics", ours, beside, other, 5)
    worst = int(np.argmax(times[:, 0] / times[:, 1]))
    ours, other = times[worst]
    name = data.labels[topics[worst]]
    yield Row(f"the same, its slowest topic beside the other ({name})", ours, beside, other)


def topic_times(data: MultilabelData, topic: int) -> tuple[float, float]:
    X, y = data.X_train, data.Y_train[:, topic]
    return best_pair(
        lambda: SoftFClassifier().fit(X, y),
        lambda: LogisticRegression(max_iter=1000).fit(X, y),
        repeat=3,
    )


def margin_f(data: MultilabelData) -> Row:
    """Time the `earn` topic; its test F1 and certified gap go into the note."""
    topic = data.labels.index("earn")
    y, y_test = data.Y_train[:, topic], data.Y_test[:, topic]
    model, svm = MarginFClassifier(), LinearSVC(loss="hinge", max_iter=100_000)
    ours, other = timed(lambda: model.fit(data.X_train, y)), timed(lambda: svm.fit(data.X_train, y))
    f1 = f1_score(y_test, model.predict(data.X_test))
    trained = model.models_[0]
    note = (
        f"{trained.n_iter} planes, gap {trained.gap / trained.objective:.2%}, test F1 {f1:.4f} "
        f"({f1_score(y_test, svm.predict(data.X_test)):.4f})"
    )
    return Row("MarginFClassifier, topic earn", ours, "LinearSVC (hinge)", other, note=note)
