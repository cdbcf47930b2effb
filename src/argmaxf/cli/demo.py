"""argmaxf demo: scikit-learn's ways to decide and argmaxf's, on real data with few positives."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from argmaxf.cli.common import (
    OUTPUT,
    Json,
    Seed,
    console,
    option,
    print_json,
    print_table,
    progress_bar,
)
from argmaxf.cli.compare import answer, compare_tables

if TYPE_CHECKING:
    import polars as pl

    from argmaxf.comparison.result import Comparison

SAMPLES = 2
MIN_PRECISION, CONFIDENCE_LEVEL = 0.7, 0.95
PLAIN, BALANCED, TUNED = "threshold 0.5", 'class_weight="balanced"', "TunedThresholdClassifierCV"
LINEAR, EXPECTED, AUTO = "LogisticRegression", "ExpectedFClassifier", "AutoFClassifier"
STORY = (
    "[bold]Which digits are on a card?[/bold] Each card is two real scans of digits, laid over "
    "each other; ten labels. A random forest learns from {train} cards, with {k:.0f} positives of "
    "a label on average; macro F1 on the other {test}, mean of {samples} samples:"
)


def demo(
    report: Annotated[
        Path, option(OUTPUT, "Where to write the report; an older one is replaced.")
    ] = Path("argmaxf-demo.html"),
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Compare scikit-learn and argmaxf on bundled data with few positives, and write a report."""
    from argmaxf.cli.tables import split_table

    samples = [cards(SAMPLES * seed + i) for i in range(SAMPLES)]
    train = samples[0][: samples[0].height // 2]
    rows = split_table(train, [f"has_{i}" for i in range(10)], "cards")
    if not as_json:
        size = {"train": train.height, "test": samples[0].height - train.height}
        k = rows.y.to_numpy().sum() / 10
        console().print(STORY.format(**size, k=k, samples=SAMPLES))
    with progress_bar() as show:
        record = measured(samples, progress=show)
    answer(
        lambda show: compare_tables(rows, estimator=forest(), seed=seed, progress=show),
        rows,
        ["argmaxf", "demo", "--seed", str(seed)],
        f"Classifier: {' '.join(repr(forest()).split())}; 5 folds, seed {seed}",
        report=report,
        present=lambda comparison: print_json(record) if as_json else _print(record, comparison),
    )


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


def methods(model: Callable[..., Any]) -> dict[str, Any]:
    """Return what is compared, by name: scikit-learn's ways, then argmaxf's."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import TunedThresholdClassifierCV
    from sklearn.multioutput import MultiOutputClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from argmaxf import AutoFClassifier, ExpectedFClassifier

    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    ways = (
        model(),
        model(class_weight="balanced"),
        TunedThresholdClassifierCV(model(), scoring="f1"),
    )
    usual = map(MultiOutputClassifier, (*ways, linear))  # one model for each label
    return {
        **dict(zip((PLAIN, BALANCED, TUNED, LINEAR), usual, strict=True)),
        EXPECTED: ExpectedFClassifier(model()),
        AUTO: AutoFClassifier(model()),
    }


def measured(
    samples: Sequence[pl.DataFrame],
    model: Callable[..., Any] | None = None,
    progress: Any = False,
) -> dict[str, Any]:
    """Return means over samples and labels, differences paired by label, and what else held."""
    import numpy as np

    model, every = model or forest, []
    for i, frame in enumerate(samples):
        if callable(progress):
            progress("samples of training rows", i, len(samples))
        train = frame.height // 2
        every.append(_one_sample(frame[:train], frame[train:], model))
    f, precision, by_label = (np.concatenate([one[i] for one in every], axis=1) for i in range(3))
    names, seconds = list(methods(model)), np.mean([one[3] for one in every], axis=0)
    behind = f - f[names.index(AUTO)]
    error = 1.96 * behind.std(axis=1, ddof=1) / np.sqrt(f.shape[1])
    numbers = np.column_stack([f.mean(axis=1), behind.mean(axis=1), error, seconds]).tolist()
    keys = ("f1", "difference", "plus_minus", "seconds")
    low, predicted, high, found, guaranteed = by_label
    return {
        "methods": {
            name: dict(zip(keys, each, strict=True))
            for name, each in zip(names, numbers, strict=True)
        },
        "labels": f.shape[1],
        "predicted_f1": float(predicted.mean()),
        "intervals_that_held": int(np.sum((low <= found) & (found <= high))),
        "guarantees": int(np.sum(~np.isnan(guaranteed))),
        "guarantees_that_held": int(np.sum(guaranteed >= MIN_PRECISION)),
        "precise_when_tuned": int(np.sum(precision[names.index(TUNED)] >= MIN_PRECISION)),
    }


def _one_sample(
    train: pl.DataFrame, test: pl.DataFrame, model: Callable[..., Any]
) -> tuple[Any, Any, Any, Any]:
    """Return F and precision of each method and label, what held by label, and seconds to fit."""
    import numpy as np
    from sklearn.metrics import f1_score, precision_score

    from argmaxf import ExpectedFClassifier, GuaranteeError, ThresholdFClassifier

    (X, Y), (X_test, Y_test) = ((t[:, :64].to_numpy(), t[:, 64:].to_numpy()) for t in (train, test))
    f, precision, seconds, by_label = [], [], [], []
    for method in methods(model).values():
        start = time.perf_counter()
        method.fit(X, Y)
        seconds.append(time.perf_counter() - start)
        found = method.predict(X_test)
        f.append(f1_score(Y_test, found, average=None))
        precision.append(precision_score(Y_test, found, average=None))
    limits: Any = {"min_precision": MIN_PRECISION, "confidence_level": CONFIDENCE_LEVEL}
    for y, y_test in zip(Y.T, Y_test.T, strict=True):
        decision, guaranteed = ExpectedFClassifier(model()).fit(X, y).decide(X_test), np.nan
        with suppress(GuaranteeError):
            sure = ThresholdFClassifier(model(), **limits).fit(X, y)
            guaranteed = precision_score(y_test, sure.predict(X_test))
        of: Any = decision.interval
        found = f1_score(y_test, decision.selected)
        by_label.append([of.low, of.value, of.high, found, guaranteed])
    return np.array(f), np.array(precision), np.array(by_label).T, seconds


def _print(record: dict[str, Any], comparison: Comparison) -> None:
    """Print the table and what it means."""
    out, n = console(), record["labels"]
    head = ("method", "F1", "difference\n± 95 %", "seconds\nto fit")
    rows = [
        (
            f"{'scikit-learn' if name in (PLAIN, BALANCED, TUNED, LINEAR) else 'argmaxf'}: {name}",
            f"{each['f1']:.3f}",
            f"{each['difference']:+.3f} ± {each['plus_minus']:.3f}" if name != AUTO else "",
            f"{each['seconds']:.1f}",
        )
        for name, each in record["methods"].items()
    ]
    print_table(out, head, rows, bold=lambda row: row[0].endswith(AUTO))
    given = record["guarantees"]
    behind = [n for n, d in record["methods"].items() if d["difference"] + d["plus_minus"] < 0]
    clearly = f" Clearly lower: {', '.join(behind)}." if behind else ""
    refused = f" (it refuses {n - given} and says how many rows they need)" if given < n else ""
    for line in (
        f"Use {AUTO}: F1 {record['methods'][AUTO]['f1']:.3f}, by {comparison.chosen} (the report "
        f"says why).{clearly}",
        f"Predicted without test labels: F1 {record['predicted_f1']:.3f}; the F1 found is in "
        f"{record['intervals_that_held']} of {n} predicted 95 % intervals.",
        f"Precision of at least {MIN_PRECISION}: {TUNED} has it for {record['precise_when_tuned']} "
        f"of {n} labels. ThresholdFClassifier guarantees it at 95 % for {given}{refused}; "
        f"{record['guarantees_that_held']} have it.",
        "How data and model were chosen, with more samples: docs/background/demo.md",
    ):
        out.print(line)
