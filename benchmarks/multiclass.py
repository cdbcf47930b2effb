"""python -m benchmarks.multiclass [NAME …] [--out FILE]: macro-F1 of one class for each row.

Half of the rows train and half test, five times over (Reuters: its own split), with logistic models
and forests. "Tuned together" is what could replace ThresholdFClassifier's thresholds: a shift of
each class's probability, all tuned together by exact coordinate ascent for the macro-F1 of the
largest shifted probability on the same out-of-fold rows.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf import AutoFClassifier, ExpectedFClassifier, ThresholdFClassifier
from argmaxf.estimators import MultilabelStratifiedKFold
from reproduction.datasets import load_reuters

SPLITS = 5
SWEEPS = 20  # over the classes, at most
METHODS = {
    "argmax": lambda model: model,
    "`ThresholdFClassifier`": ThresholdFClassifier,
    "tuned together": lambda model: TunedTogether(model),
    "`ExpectedFClassifier`": ExpectedFClassifier,
    "`AutoFClassifier`": AutoFClassifier,
}


class TunedTogether:
    """The class of the largest probability, each shifted; shifts tuned on out-of-fold rows."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: np.ndarray) -> TunedTogether:
        self.classes, target = np.unique(y, return_inverse=True)
        proba = np.zeros((len(y), self.classes.size))
        for train, test in MultilabelStratifiedKFold().split(None, y):
            model = clone(self.model).fit(X[train], y[train])
            seen = np.searchsorted(self.classes, model.classes_)
            proba[np.ix_(test, seen)] = model.predict_proba(X[test])
        self.shift = best_shifts(proba, target)
        self.model.fit(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.classes[np.argmax(self.model.predict_proba(X) + self.shift, axis=1)]


def best_shifts(proba: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Raise macro-F1 class after class, each to its exact best shift, until nothing moves."""
    shift = np.zeros(proba.shape[1])
    best = -1.0
    for _ in range(SWEEPS):
        before = best
        for c in range(shift.size):
            others = proba + shift
            others[:, c] = -np.inf
            rival = np.argmax(others, axis=1)
            needed = others.max(axis=1) - proba[:, c]  # the shift from which a row goes to c
            order = np.argsort(needed, kind="stable")
            value = macro_f1_along(order, rival, y, c, shift.size)
            ascending = needed[order]
            value[1:-1][ascending[1:] == ascending[:-1]] = -1.0
            if value.max() > best + 1e-12:
                at, best = int(np.argmax(value)), float(value.max())
                ends = np.concatenate([[ascending[0] - 1.0], ascending, [ascending[-1] + 1.0]])
                shift[c] = (ends[at] + ends[at + 1]) / 2
        if best == before:
            break
    return shift


def macro_f1_along(
    order: np.ndarray, rival: np.ndarray, y: np.ndarray, c: int, size: int
) -> np.ndarray:
    """Macro-F1 as the first 0, 1, 2, … rows in this order go from their rivals to class c."""
    rows = np.arange(1, order.size + 1)
    truth, left = y[order], rival[order]
    positives = np.bincount(y, minlength=size)
    own = 2 * np.cumsum(truth == c) / (rows + positives[c])
    total = np.zeros(order.size + 1)
    total[1:] += own
    for d in np.unique(rival):  # what each rival loses
        gone = np.concatenate([[0], np.cumsum(left == d)])
        hits = np.concatenate([[0], np.cumsum((left == d) & (truth == d))])
        total += 2 * (hits[-1] - hits) / np.maximum(gone[-1] - gone + positives[d], 1)
    return total / size


def sets() -> Iterator[tuple[str, Any, np.ndarray]]:
    X, y = load_digits(return_X_y=True)
    yield "digits", X, y
    yield "wine", *load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    kept = [rng.permutation(np.flatnonzero(y == c))[: int(170 * 0.7**c) + 5] for c in range(10)]
    rows = np.concatenate(kept)
    yield "digits, noisy, rarer and rarer", X[rows] + rng.normal(0, 6, (rows.size, 64)), y[rows]
    for seed in range(2):
        yield f"made, 5 classes, seed {seed}", *make_classification(
            4000, n_features=20, n_informative=6, n_classes=5, weights=[0.6, 0.25, 0.1, 0.035],
            class_sep=0.7, flip_y=0.05, random_state=seed,
        )  # fmt: skip


def models() -> dict[str, Any]:
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        "forest": RandomForestClassifier(60, min_samples_leaf=2, random_state=0),
    }


def single_topic_reuters(at_least: int = 1) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Documents with one topic that so many training documents with one topic have.

    Words that fewer than five training documents have are left out.
    """
    data = load_reuters()
    single = [np.asarray(Y).sum(axis=1) == 1 for Y in (data.Y_train, data.Y_test)]
    topic = np.asarray(data.Y_train)[single[0]].argmax(axis=1)
    test_topic = np.asarray(data.Y_test)[single[1]].argmax(axis=1)
    often = np.flatnonzero(np.bincount(topic) >= at_least)
    rows, known = np.isin(topic, often), np.isin(test_topic, often)
    X, X_test = data.X_train[single[0]][rows], data.X_test[single[1]][known]
    topic = topic[rows]
    words = np.bincount(X.indices, minlength=X.shape[1]) >= 5
    return X[:, words], topic, X_test[:, words], test_topic[known]


def text_model() -> Any:
    """A logistic model of words; not run to the last digit, since many are fitted."""
    words = TfidfTransformer(sublinear_tf=True)
    return make_pipeline(words, LogisticRegression(C=10.0, tol=1e-2))


def scores(model: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> list[float]:
    """Macro-F1 over the classes of training of each method."""
    found = []
    for make in METHODS.values():
        fitted = make(clone(model)).fit(X, y)
        options = {"labels": np.unique(y), "average": "macro", "zero_division": 0}
        found.append(float(f1_score(y_test, fitted.predict(X_test), **options)))
    return found


def tried(names: list[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each work's name and its scores: splits × methods."""
    for name, X, y in sets():
        for kind, model in models().items():
            if names and name not in names:
                continue
            splits = [
                train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
                for seed in range(SPLITS)
            ]
            yield (
                f"{name}, {kind}",
                np.array([scores(model, X1, y1, X2, y2) for X1, X2, y1, y2 in splits]),
            )
    if not names or "Reuters" in names:
        split = single_topic_reuters(at_least=2)  # AutoFClassifier holds one of them out
        yield "Reuters, logistic", np.array([scores(text_model(), *split)])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.multiclass")
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets; all by default")
    parser.add_argument("--out", type=Path, help="write the table to this file too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # small batches, classes missing from a fold
    head = ["| macro-F1 | " + " | ".join(METHODS) + " |", "| --- |" + " ---: |" * len(METHODS)]
    print("\n".join(head), flush=True)
    text = head
    for name, found in tried(options.names):
        text.append(f"| {name} | " + " | ".join(f"{f:.4f}" for f in found.mean(axis=0)) + " |")
        print(text[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
