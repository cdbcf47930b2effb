"""Attacks on frames: odd names, keys of every type, frames that change, on every engine."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa

import argmaxf
from argmaxf.frames import decisions
from fuzz import draw
from fuzz.asking import error_of, labels_by
from fuzz.engines import ENGINES, frame_of

# Types of keys that an engine does not have, or cuts short as it takes the rows in.
UNKNOWN = {"Spark": ("ns", "ns zone", "duration", "time", "unsigned", "dictionary")}
LOCAL = [name for name in ENGINES if name != "Spark"]


def frames(rng, folder):
    """Labels and decisions of a frame are those of its segments as arrays, on every engine."""
    on_engine(str(rng.choice(LOCAL)), rng, folder)


def spark(rng, folder):
    """The same on Spark, which takes longer."""
    on_engine("Spark", rng, folder)


def on_engine(engine, rng, folder):
    """Labels and decisions of a frame are those of its segments as arrays."""
    n = int(rng.integers(2, 300))
    p, code = draw.probabilities(rng, n), draw.codes(rng, n)
    row, column, key, other, output = draw.names(rng, 5)
    kind, values = draw.keys(rng, code, UNKNOWN.get(engine, ()))
    table = pa.table({row: np.arange(n), column: p, key: values, other: rng.integers(0, 9, n)})
    beta = float(10 ** rng.uniform(-1, 1))
    print_on_failure = f"{engine}, {kind}, {table.column_names}, {output!r}, n = {n}"
    with frame_of(engine, table, folder) as (frame, collected):
        labelled = collected(argmaxf.decide(frame, column, by=key, beta=beta, output=output))
        assert labelled.column_names == [*table.column_names, output], print_on_failure
        order = np.argsort(np.asarray(labelled[row].to_pylist()))
        label = np.asarray(labelled[output].to_pylist())[order]
        assert (label == labels_by(p, code, beta=beta)).all(), print_on_failure
        same = np.asarray(labelled[other].to_pylist())[order] == table[other].to_numpy()
        assert same.all(), print_on_failure
        sizes = sorted(d.n for d in decisions(frame, column, by=key).values())
        assert sizes == sorted(np.bincount(code).tolist()), print_on_failure
        for taken in table.column_names:
            said = error_of(lambda taken=taken: argmaxf.decide(frame, column, output=taken))
            assert said, f"{taken!r} was replaced: {print_on_failure}"


def changing(rng, folder):
    """A lazy frame that is another one each time is refused, or decided as one of them."""
    n = int(rng.integers(20_000, 30_000))
    versions = [draw.probabilities(rng, n) for _ in range(3)]
    reads, first = [0], int(rng.integers(1, 5))

    def other(column):
        if len(column) < n:  # asked for the type
            return column
        reads[0] += 1
        return pl.Series(versions[min(max(reads[0] - first, 0), 2)])

    frame = pl.LazyFrame({"p": versions[0]}).select(pl.col("p").map_batches(other))
    found = []
    with patch("argmaxf.frames.table.Rows.HELD", 1_000):  # more rows are read again and again
        said = error_of(lambda: found.extend(decisions(frame, "p").values()))
    if said:
        assert "same rows each time" in said, said
        return
    exact = [argmaxf.maximize_expected_f(p, ties="together") for p in versions]
    assert (found[0].k, found[0].threshold) in [(d.k, d.threshold) for d in exact], found
