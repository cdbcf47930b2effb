"""argmaxf demo: scikit-learn's ways to decide and argmaxf's, on real data with few positives."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argmaxf.cli import common
from argmaxf.cli.compare import compare_tables, made_with

if TYPE_CHECKING:
    import polars as pl

SAMPLES = 2
MIN_PRECISION = 0.7
TUNED, AUTO = "TunedThresholdClassifierCV", "AutoFClassifier"
ARGMAXF = ("ExpectedFClassifier", AUTO)
STORY = (
    "[bold]Which digits are on a card?[/bold] Each card is two real scans of digits, laid over "
    "each other; ten labels. A random forest learns from {train} cards, with {k:.0f} positives of "
    "a label on average; macro F1 on the other {test}, mean of {samples} samples:"
)


def demo(report: Path = Path("argmaxf-demo.html"), seed: int = 0, as_json: bool = False) -> None:
    """Compare scikit-learn and argmaxf on bundled data with few positives, and write a report."""
    from argmaxf.cli.tables import split_table

    with common.report_to(report, "render") as write_report:
        samples = [cards(SAMPLES * seed + i) for i in range(SAMPLES)]
        train = samples[0][: samples[0].height // 2]
        rows = split_table(train, [f"has_{i}" for i in range(10)], "cards")
        if not as_json:
            size = {"train": train.height, "test": samples[0].height - train.height}
            k = rows.y.to_numpy().sum() / 10
            common.console().print(STORY.format(**size, k=k, samples=SAMPLES))
        with common.progress_bar() as show:
            record = measured(samples, progress=show)
            found = compare_tables(rows, estimator=forest(), seed=seed, progress=show)
        if as_json:
            common.print_json(record)
        else:
            _print(record, found.chosen)
        command = ["argmaxf", "demo", "--seed", str(seed)]
        write_report(found, command=command, made_with=made_with(forest(), 5, seed))
    if not as_json:
        common.say_where("report", report)


def cards(seed: int = 0) -> pl.DataFrame:
    """Return cards with two scans of handwritten digits each: 64 pixels, and ten 0/1 labels.

    The scans are the 1,797 that scikit-learn bundles (Alpaydin and Kaynak 1998), each used once; a
    pixel is the darker one of two.

    >>> frame = cards()
    >>> frame.shape, frame["has_9"].sum()
    ((898, 74), 168)
    """
    import numpy as np
    import polars as pl
    from sklearn.datasets import load_digits

    pixels, digit = load_digits(return_X_y=True)
    pairs = np.random.default_rng(seed).permutation(len(digit))[:-1].reshape(2, -1)
    darker = np.maximum(*pixels[pairs])
    frame = pl.DataFrame(darker, schema=[f"pixel_{i // 8}_{i % 8}" for i in range(64)])
    return frame.with_columns(
        pl.Series(f"has_{i}", (digit[pairs] == i).any(axis=0).astype(np.int64)) for i in range(10)
    )


def forest(**options: Any) -> Any:
    """Return the demo's model."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(50, min_samples_leaf=2, random_state=0, **options)


def methods() -> dict[str, Any]:
    """Return what is compared, by name: scikit-learn's ways, one model a label, then argmaxf's."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import TunedThresholdClassifierCV
    from sklearn.multioutput import MultiOutputClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from argmaxf import AutoFClassifier, ExpectedFClassifier

    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return {
        "threshold 0.5": MultiOutputClassifier(forest()),
        'class_weight="balanced"': MultiOutputClassifier(forest(class_weight="balanced")),
        TUNED: MultiOutputClassifier(TunedThresholdClassifierCV(forest(), scoring="f1")),
        "LogisticRegression": MultiOutputClassifier(linear),
        "ExpectedFClassifier": ExpectedFClassifier(forest()),
        AUTO: AutoFClassifier(forest()),
    }


def measured(samples: Sequence[pl.DataFrame], progress: Any = False) -> dict[str, Any]:
    """Return means over samples and labels, differences paired by label, and what else held."""
    import numpy as np
    from sklearn.metrics import f1_score, precision_score

    f, precision, seconds = (defaultdict[str, list[float]](list) for _ in range(3))
    labels: list[tuple[float, bool, float]] = []
    for i, frame in enumerate(samples):
        if callable(progress):
            progress("samples of training rows", i, len(samples))
        X, Y, half = frame[:, :64].to_numpy(), frame[:, 64:].to_numpy(), frame.height // 2
        for name, method in methods().items():
            start = time.perf_counter()
            method.fit(X[:half], Y[:half])
            seconds[name].append(time.perf_counter() - start)
            found = method.predict(X[half:])
            f[name] += f1_score(Y[half:], found, average=None).tolist()
            precision[name] += precision_score(Y[half:], found, average=None).tolist()
        labels += [_one_label(X, y, half) for y in Y.T]
    predicted, held, guaranteed = np.array(labels).T
    record: dict[str, Any] = {}
    for name, values in f.items():
        behind = np.subtract(values, f[AUTO])
        error = 1.96 * behind.std(ddof=1) / np.sqrt(behind.size)
        numbers = np.mean(values), behind.mean(), error, np.mean(seconds[name])
        keys = ("f1", "difference", "plus_minus", "seconds")
        record[name] = dict(zip(keys, map(float, numbers), strict=True))
    return {
        "methods": record,
        "labels": len(labels),
        "predicted_f1": float(predicted.mean()),
        "intervals_that_held": int(held.sum()),
        "guarantees": int(np.sum(~np.isnan(guaranteed))),
        "guarantees_that_held": int(np.sum(guaranteed >= MIN_PRECISION)),
        "precise_when_tuned": int(np.sum(np.array(precision[TUNED]) >= MIN_PRECISION)),
    }


def _one_label(X: Any, y: Any, half: int) -> tuple[float, bool, float]:
    """Return predicted F, whether F is in its interval, and the precision guaranteed, or NaN."""
    from sklearn.metrics import f1_score, precision_score

    from argmaxf import ExpectedFClassifier, GuaranteeError, ThresholdFClassifier

    decision = ExpectedFClassifier(forest()).fit(X[:half], y[:half]).decide(X[half:])
    predicted: Any = decision.interval
    f = f1_score(y[half:], decision.selected)
    limits: Any = {"min_precision": MIN_PRECISION}
    guaranteed = ThresholdFClassifier(forest(), constraints=limits, confidence_level=0.95)
    try:
        selected = guaranteed.fit(X[:half], y[:half]).predict(X[half:])
    except GuaranteeError:
        selected = None
    precision = math.nan if selected is None else precision_score(y[half:], selected)
    return predicted.value, predicted.low <= f <= predicted.high, precision


def _print(record: dict[str, Any], method: str) -> None:
    """Print the table and what it means; `method` is the one the report recommends."""
    out, n, given, rows = common.console(), record["labels"], record["guarantees"], []
    for name, each in record["methods"].items():
        difference = f"{each['difference']:+.3f} ± {each['plus_minus']:.3f}" if name != AUTO else ""
        title = f"{'argmaxf' if name in ARGMAXF else 'scikit-learn'}: {name}"
        rows.append((title, f"{each['f1']:.3f}", difference, f"{each['seconds']:.1f}"))
    head = ("method", "F1", "difference\n± 95 %", "seconds\nto fit")
    common.print_table(out, head, rows, bold=lambda row: row[0].endswith(AUTO))
    behind = [n for n, d in record["methods"].items() if d["difference"] + d["plus_minus"] < 0]
    clearly = f" Clearly lower: {', '.join(behind)}." if behind else ""
    refused = f" (it refuses {n - given} and says how many rows they need)" if given < n else ""
    for line in (
        f"Use {AUTO}: F1 {record['methods'][AUTO]['f1']:.3f}, by {method} (the report says why)."
        f"{clearly}",
        f"Predicted without test labels: F1 {record['predicted_f1']:.3f}; the F1 found is in "
        f"{record['intervals_that_held']} of {n} predicted 95 % intervals.",
        f"Precision of at least {MIN_PRECISION}: {TUNED} has it for {record['precise_when_tuned']} "
        f"of {n} labels. ThresholdFClassifier guarantees it at 95 % for {given}{refused}; "
        f"{record['guarantees_that_held']} have it.",
        "How data and model were chosen, with more samples: docs/background/demo.md",
    ):
        out.print(line)
