"""argmaxf demo: scikit-learn's ways to decide and argmaxf's, on real data with few positives."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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


def demo(
    report: Annotated[
        Path, common.option(common.OUTPUT, "Where to write the report; an older one is replaced.")
    ] = Path("argmaxf-demo.html"),
    seed: common.Seed = 0,
    as_json: common.Json = False,
) -> None:
    """Compare scikit-learn and argmaxf on bundled data with few positives, and write a report."""
    from argmaxf._base.atomic_write import writing, written_whole
    from argmaxf.cli.tables import split_table

    render = common.report_writer("render")
    samples = [cards(SAMPLES * seed + i) for i in range(SAMPLES)]
    train = samples[0][: samples[0].height // 2]
    rows = split_table(train, [f"has_{i}" for i in range(10)], "cards")
    if not as_json:
        size = {"train": train.height, "test": samples[0].height - train.height}
        k = rows.y.to_numpy().sum() / 10
        common.console().print(STORY.format(**size, k=k, samples=SAMPLES))
    with written_whole(report) as draft:
        with common.progress_bar() as show:
            record = measured(samples, progress=show)
            found = compare_tables(rows, estimator=forest(), seed=seed, progress=show)
        if as_json:
            common.print_json(record)
        else:
            _print(record, found.chosen)
        with common.working("writing the report"), writing(report):
            command = ["argmaxf", "demo", "--seed", str(seed)]
            page = render(found, command=command, made_with=made_with(forest(), 5, seed))
            draft.write_text(page, encoding="utf-8")
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

    every = []
    for i, frame in enumerate(samples):
        if callable(progress):
            progress("samples of training rows", i, len(samples))
        every.append(_one_sample(frame))
    f, precise, alone = (
        np.concatenate(each, axis=1) for each in list(zip(*every, strict=True))[:3]
    )
    seconds = np.mean([each[3] for each in every], axis=0)
    names, (predicted, held, sure) = list(methods()), alone
    behind = f - f[names.index(AUTO)]
    error = 1.96 * behind.std(axis=1, ddof=1) / np.sqrt(f.shape[1])
    numbers = np.column_stack([f.mean(axis=1), behind.mean(axis=1), error, seconds]).tolist()
    keys = ("f1", "difference", "plus_minus", "seconds")
    return {
        "methods": {
            name: dict(zip(keys, each, strict=True))
            for name, each in zip(names, numbers, strict=True)
        },
        "labels": f.shape[1],
        "predicted_f1": float(predicted.mean()),
        "intervals_that_held": int(held.sum()),
        "guarantees": int(np.sum(~np.isnan(sure))),
        "guarantees_that_held": int(np.sum(sure >= MIN_PRECISION)),
        "precise_when_tuned": int(np.sum(precise[names.index(TUNED)] >= MIN_PRECISION)),
    }


def _one_sample(frame: pl.DataFrame) -> tuple[Any, Any, Any, Any]:
    """Return F and precision of each method and label, what held by label, and seconds to fit."""
    import numpy as np
    from sklearn.metrics import f1_score, precision_score

    from argmaxf import ExpectedFClassifier, GuaranteeError, ThresholdFClassifier

    X, Y, half = frame[:, :64].to_numpy(), frame[:, 64:].to_numpy(), frame.height // 2
    f, precision, seconds, alone = [], [], [], []
    for method in methods().values():
        start = time.perf_counter()
        method.fit(X[:half], Y[:half])
        seconds.append(time.perf_counter() - start)
        found = method.predict(X[half:])
        f.append(f1_score(Y[half:], found, average=None))
        precision.append(precision_score(Y[half:], found, average=None))
    for y, y_test in zip(Y[:half].T, Y[half:].T, strict=True):
        decision = ExpectedFClassifier(forest()).fit(X[:half], y).decide(X[half:])
        predicted: Any = decision.interval
        sure = np.nan
        with suppress(GuaranteeError):
            limits: Any = {"min_precision": MIN_PRECISION}
            guaranteed = ThresholdFClassifier(forest(), constraints=limits, confidence_level=0.95)
            guaranteed.fit(X[:half], y)
            sure = precision_score(y_test, guaranteed.predict(X[half:]))
        held = predicted.low <= f1_score(y_test, decision.selected) <= predicted.high
        alone.append([predicted.value, held, sure])
    return np.array(f), np.array(precision), np.array(alone).T, seconds


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
