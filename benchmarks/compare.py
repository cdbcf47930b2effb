"""`argmaxf compare` on 100,000 rows × 50 columns, beside the model fits it needs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression

from argmaxf import compare
from argmaxf.cli.models import behind_preprocessing
from argmaxf.cli.tables import read_table, split_table
from argmaxf.report.page import render
from benchmarks.harness import Row

ROWS, COLUMNS = 100_000, 50


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.csv", Path(folder) / "large.csv"
        write(small, 2_000)
        write(large, ROWS)
        measure(small)  # compiles what is compiled when first used
        fits, compared, reported = measure(large)
    work = f"compare, {ROWS:,} × {COLUMNS}, logistic"
    yield Row(f"{work}, from CSV to verdict", compared, "its model fits", fits, 2.0)
    yield Row(f"{work}, with the HTML report", reported, "its model fits", fits, 2.0)


def measure(path: Path) -> tuple[float, float, float]:
    """Return the seconds of the model fits, of the whole comparison, and of it with a report."""
    calls = []  # one before each fit, and one after the last

    def watch(done: int, total: int, name: str) -> None:
        calls.append(time.perf_counter())

    start = time.perf_counter()
    table = split_table(read_table(path), ["y"], path.name)
    model = behind_preprocessing(table.X, LogisticRegression(max_iter=1000))
    comparison = compare(table.X, table.y, model, progress=watch)
    compared = time.perf_counter() - start
    render(comparison, command=["argmaxf", "compare"])
    return calls[-1] - calls[0], compared, time.perf_counter() - start


def write(path: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, COLUMNS))
    logit = x @ (rng.normal(size=COLUMNS) / COLUMNS**0.5) * 1.5 - 3.5
    y = rng.random(n) < 1 / (1 + np.exp(-logit))
    frame = pl.DataFrame(x.round(4), schema=[f"x{i}" for i in range(COLUMNS)])
    frame.with_columns(y=pl.Series(y.astype(np.int64))).write_csv(path)
