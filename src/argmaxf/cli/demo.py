"""argmaxf demo: the comparison on real data that scikit-learn brings, with a report."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from argmaxf.cli.common import OUTPUT, Beta, Json, Seed, console, option
from argmaxf.cli.compare import answer, compare_tables

if TYPE_CHECKING:
    import polars as pl

    from argmaxf.cli.tables import LabelledTable
    from argmaxf.comparison.result import Comparison

STORY = (
    "[bold]Which of these handwritten digits are a 9?[/bold] {n:,} scans, {rate:.1%} of them "
    "a 9, and naive Bayes.\nThe methods are evaluated on digits that their models were not "
    "trained on:"
)


def demo(
    report: Annotated[
        Path, option(OUTPUT, "Where to write the report; an older one is replaced.")
    ] = Path("argmaxf-demo.html"),
    beta: Beta = 1.0,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Compare decision methods on bundled real data with rare positives, and write a report."""
    from argmaxf.cli.models import model_named
    from argmaxf.cli.tables import split_like, split_table

    digits = nines(seed)
    half = digits.height // 2
    rows = split_table(digits[:half], ["is_9"], "digits")
    apart = split_like(digits[half:], rows, "held-out digits")
    if not as_json:
        console().print(STORY.format(rate=rows.y.mean(), n=len(rows.y)))

    def compared(progress: Any) -> Comparison:
        found = compare_tables(rows, estimator="nb", beta=beta, seed=seed, progress=progress)
        return replace(found, reason=f"{found.reason} {_judged(found, rows, apart, seed)}")

    command = ["argmaxf", "demo", "--beta", f"{beta:g}", "--seed", str(seed)]
    made_with = f"Classifier: {model_named('nb', seed)}; 5 folds, seed {seed}"
    answer(compared, rows, command, made_with, report=report, as_json=as_json)


def _judged(found: Comparison, rows: LabelledTable, apart: LabelledTable, seed: int) -> str:
    """Say how the choice does on rows that took no part in it, beside the usual thresholds."""
    from argmaxf.cli.models import behind_preprocessing, make_classifier
    from argmaxf.comparison.methods import METHODS, Settings
    from argmaxf.comparison.ranking import CLEAR_LEAD, score_rows
    from argmaxf.estimators.labels import Labels

    usual = [METHODS[key] for key in ("plain", "threshold")]
    pipeline = behind_preprocessing(rows.X, make_classifier("nb", seed))
    settings = Settings(found.measure)
    models = [found.estimator, *(method.make(pipeline, settings) for method in usual)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = [model.fit(rows.X, rows.y).predict(apart.X) for model in models]
    target = Labels.of(rows.y)
    truth, *tables = (target.columns(each) for each in (apart.y, *labels))
    best, *others = (score_rows(truth, each, found.measure, None) for each in tables)

    def folds(name: str) -> str:
        return f"{found.scores[name]:.3f} on the folds"

    beaten = " and ".join(
        f"{best.value - other.value:+.3f} ± {CLEAR_LEAD * best.std_error(other):.3f} against "
        f"{method.name} ({other.value:.3f}, {folds(method.name)})"
        for method, other in zip(usual, others, strict=True)
    )
    name = f"{found.measure} {best.value:.3f} ({folds(found.chosen)})"
    return f"On {len(apart.y):,} {apart.name}, {found.chosen} reaches {name}: {beaten}."


def nines(seed: int = 0) -> pl.DataFrame:
    """Return scans of handwritten digits in the order of `seed`: 64 pixels, and `is_9`.

    1,797 digits of 43 writers (Alpaydin and Kaynak 1998), as scikit-learn bundles them.

    >>> frame = nines()
    >>> frame.shape, frame["is_9"].sum()
    ((1797, 65), 180)
    """
    import numpy as np
    import polars as pl
    from sklearn.datasets import load_digits

    pixels, digit = load_digits(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(digit))
    frame = pl.DataFrame(pixels[rows], schema=[f"pixel_{i // 8}_{i % 8}" for i in range(64)])
    return frame.with_columns(is_9=pl.Series((digit[rows] == 9).astype(np.int64)))
