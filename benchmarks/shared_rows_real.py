"""python -m benchmarks.shared_rows_real [NAME …] [--out FILE]: labels that share rows, real data.

The multilabel sets of the paper with b labels for each row, b the mean number of labels in
training, and Reuters as one class for each document. Every method gets the same probabilities:
logistic models, calibrated on rows held out from training (ExpectedFClassifier). Expected macro-F1
is that of the labels under these probabilities; achieved macro-F1 is that on the test labels, with
95 % intervals from 2,000 resamplings of the test rows, the last column paired with the first line.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf import (
    ExpectedFClassifier,
    MacroDecision,
    expected_f,
    maximize_expected_f,
    maximize_expected_macro_f,
)
from benchmarks.multiclass import single_topic_reuters, text_model
from reproduction.datasets import load_mulan

RESAMPLINGS = 2_000
SEED = 0


class Task(NamedTuple):
    """Probabilities of test rows, what is true, and what Frank–Wolfe learns from."""

    name: str
    b: int
    proba: np.ndarray
    truth: np.ndarray
    held_out: np.ndarray  # probabilities of training rows, by models that had not seen them
    trained_on: np.ndarray  # their labels


class Line(NamedTuple):
    """What one method did on one task."""

    method: str
    selected: np.ndarray
    seconds: float
    gap: float | None = None


def tasks(names: list[str]) -> Iterator[Task]:
    """Yield the tasks of these names, or all of them."""
    for name in ("yeast", "scene", "medical", "enron"):
        if names and name not in names:
            continue
        data = load_mulan(name)
        model = LogisticRegression(max_iter=1000)
        if name in ("yeast", "scene"):  # measurements; the others are words
            model = make_pipeline(StandardScaler(), model)
        b = round(float(data.Y_train.sum(axis=1).mean()))
        yield task(name, b, model, data.X_train, data.Y_train, data.X_test, data.Y_test)
    if not names or "reuters" in names:
        yield task("Reuters", 1, text_model(), *single_topic_reuters())


def task(name: str, b: int, model: Any, X: Any, Y: Any, X_test: Any, Y_test: Any) -> Task:
    """Fit the model, and turn a target of classes into one column for each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # labels without positives in training
        fitted = ExpectedFClassifier(model).fit(X, Y)
        proba = fitted.predict_proba(X_test)
    if Y.ndim == 1:
        Y, Y_test = (np.asarray(y)[:, None] == fitted.classes_ for y in (Y, Y_test))
    return Task(name, b, proba, np.asarray(Y_test) > 0, fitted.held_out_proba_, np.asarray(Y) > 0)


def lines(task: Task) -> Iterator[Line]:
    """Yield what each method selects; ours comes first."""
    p, b = task.proba, task.b
    for name, rule in (("labels_per_row", "exactly"), ("max_labels_per_row", "at most")):
        found, seconds = timed(lambda name=name: maximize_expected_macro_f(p, **{name: b}))
        assert isinstance(found, MacroDecision)
        yield Line(f"argmaxf, {rule} {b}", found.selected, seconds, found.gap)
    found, seconds = timed(lambda: maximize_expected_macro_f(p, labels_per_row=b, tol=1e-3))
    yield Line(f"argmaxf, exactly {b}, tol=1e-3", found.selected, seconds, found.gap)
    yield Line("argmax" if b == 1 else f"top {b}", *timed(lambda: top(p, b)))
    yield from xcolumns_lines(task)
    free, seconds = timed(lambda: maximize_expected_f(p, average="macro"))
    yield Line("argmaxf, any number", free.selected, seconds)


def top(p: np.ndarray, b: int) -> np.ndarray:
    """The b likeliest labels of each row."""
    chosen = np.zeros(p.shape, bool)
    np.put_along_axis(chosen, np.argsort(-p, axis=1, kind="stable")[:, :b], True, axis=1)
    return chosen


def xcolumns_lines(task: Task) -> Iterator[Line]:
    """xCOLUMNs at its defaults, and at the setting of those tried with the highest expectation."""
    from xcolumns.block_coordinate import predict_optimizing_macro_f1_score_using_bc
    from xcolumns.frank_wolfe import find_classifier_using_fw
    from xcolumns.metrics import macro_f1_score_on_conf_matrix  # the wrapper for it fails in 0.0.2

    p, b = task.proba, task.b

    def ascent(**options: Any) -> np.ndarray:
        found = predict_optimizing_macro_f1_score_using_bc(p, k=b, seed=SEED, **options)
        return np.asarray(found) > 0

    def frank_wolfe(labels: np.ndarray, proba: np.ndarray, **options: Any) -> np.ndarray:
        labels = labels.astype(proba.dtype)
        metric = macro_f1_score_on_conf_matrix
        found = find_classifier_using_fw(labels, proba, metric, k=b, seed=SEED, **options)
        return np.asarray(found.predict(p, seed=SEED)) > 0

    ascent()  # compiled
    yield Line("xCOLUMNs ascent, default", *timed(ascent))
    starts = [{"init_y_pred": start, "tolerance": 1e-9} for start in ("random", "top", "greedy")]
    yield best(p, "xCOLUMNs ascent, best", [lambda o=o: ascent(**o) for o in starts])
    usual = timed(lambda: frank_wolfe(task.trained_on, task.held_out))
    yield Line("xCOLUMNs Frank–Wolfe, default", *usual)
    ways = [
        lambda rows=rows, start=start, search=search: frank_wolfe(
            *rows, init_classifier=start, search_for_best_alpha=search
        )
        for rows in ((task.trained_on, task.held_out), (p, p))
        for start in ("random", "top")
        for search in (True, False)
    ]
    yield best(p, "xCOLUMNs Frank–Wolfe, best", ways)


def best(p: np.ndarray, name: str, ways: list[Callable[[], np.ndarray]]) -> Line:
    """Return the way with the highest expected macro-F1, and its time alone."""
    found = [Line(name, *timed(way)) for way in ways]
    return max(found, key=lambda line: expectation(p, line.selected))


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def expectation(p: np.ndarray, selected: np.ndarray) -> float:
    """Expected macro-F1 of some labels."""
    return float(np.mean([expected_f(p[:, c], selected[:, c]).mean for c in range(p.shape[1])]))


def resampled(truth: np.ndarray, selected: np.ndarray) -> np.ndarray:
    """Macro-F1 on the test rows, and on each of their resamplings; 0/0 is 0."""
    n = len(truth)
    rng = np.random.default_rng(SEED)
    weight = np.vstack([np.ones(n), rng.multinomial(n, np.full(n, 1 / n), RESAMPLINGS)])
    hits, sizes = weight @ (truth & selected), weight @ (truth * 1.0 + selected)
    return (2 * hits / np.maximum(sizes, 1)).mean(axis=1)


def table(task: Task) -> str:
    """Return the methods on one task as a Markdown table."""
    found = list(lines(task))
    ours = resampled(task.truth, found[0].selected)
    n, size = task.proba.shape
    text = [
        f"**{task.name}**: {n:,} test rows, {size} labels, b = {task.b}",
        "",
        "| method | expected | proven gap | achieved | 95 % | first less this one | time |",
        "| --- | ---: | ---: | ---: | --- | --- | ---: |",
    ]
    for line in found:
        achieved = resampled(task.truth, line.selected)
        low, high = np.quantile(achieved[1:], [0.025, 0.975])
        less = np.quantile(ours[1:] - achieved[1:], [0.025, 0.975])
        paired = f"{ours[0] - achieved[0]:+.4f} ({less[0]:+.4f} to {less[1]:+.4f})"
        cells = [
            line.method,
            f"{expectation(task.proba, line.selected):.4f}",
            "" if line.gap is None else f"{line.gap:.1e}" if line.gap else "0",
            f"{achieved[0]:.4f}",
            f"{low:.4f} to {high:.4f}",
            "" if line is found[0] else paired,
            f"{line.seconds:.3g} s",
        ]
        text.append("| " + " | ".join(cells) + " |")
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shared_rows_real")
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets; all by default")
    parser.add_argument("--out", type=Path, help="write the tables to this file too")
    options = parser.parse_args()
    maximize_expected_macro_f(np.full((200, 200), 0.3), labels_per_row=1)  # compiled
    maximize_expected_f(np.full((200, 200), 0.3), average="macro")
    tables = []
    for each in tasks(options.names):
        tables.append(table(each))
        print(tables[-1] + "\n", flush=True)
    if options.out:
        options.out.write_text("\n\n".join(tables) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
