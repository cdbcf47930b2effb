"""Columns in batches: every engine gives the same arrays, without a copy where it can."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from argmaxf.frames import engines
from argmaxf.frames.engines import as_frame, engine_of


def column_batches(frame, columns):
    return engine_of(frame).batches(frame.select(*columns))


def test_every_engine_gives_the_columns_in_batches(engine, monkeypatch):
    monkeypatch.setattr(engines, "BATCH_ROWS", 128)
    p = np.random.default_rng(0).random(1_000)
    frame = as_frame(engine.frame(pa.table({"row": np.arange(p.size), "p": p, "other": p})))
    batches = list(column_batches(frame, ["row", "p"]))
    assert len(batches) > 1
    assert {len(batch) for batch in batches} == {2}
    row, found = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    if engine.name != "pyspark":  # which has no order
        assert (row == np.arange(p.size)).all()
    assert (found == p[row]).all()


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table, pd.DataFrame])
def test_arrays_are_views_of_a_frame_in_memory(make):
    p = np.random.default_rng(0).random(1_000)
    native = make({"p": p})
    (first,), *_ = column_batches(as_frame(native), ["p"])
    columns = {pl.DataFrame: lambda f: f["p"].to_numpy(), pd.DataFrame: lambda f: f["p"].to_numpy()}
    columns[pa.table] = lambda table: table["p"].chunk(0).to_numpy()
    assert np.shares_memory(first, columns[make](native))


def test_missing_numbers_are_nan(engine):
    frame = as_frame(engine.frame(pa.table({"row": [0, 1, 2], "p": [0.5, None, 0.25]})))
    ((row, p),) = [
        batch for batch in column_batches(frame, ["row", "p"]) if len(batch[0]) == 3
    ] or [tuple(map(np.concatenate, zip(*column_batches(frame, ["row", "p"]), strict=True)))]
    np.testing.assert_array_equal(p[np.argsort(row)], [0.5, np.nan, 0.25])


def test_an_empty_frame_has_no_batches_of_rows():
    for native in (
        pl.DataFrame({"p": []}, schema={"p": pl.Float64}),
        pa.table({"p": pa.array([], "f8")}),
    ):
        assert sum(p.size for (p,) in column_batches(as_frame(native), ["p"])) == 0
