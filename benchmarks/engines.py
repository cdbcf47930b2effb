"""decide on Polars, DuckDB, Dask and Spark, beside each engine's own sum of the same column.

Every engine reads the same Parquet file, in a process of its own that has already answered once:
neither Spark's start nor compiling is counted. "labels" counts the selected rows in the engine. A
billion rows go through the command `argmaxf decide --threshold-only`, beside one pass of Polars.
Files lie in TMPDIR and are removed at the end: 4 GB of float32.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.files import COMMAND, SUM, best_of, once, polars
from benchmarks.harness import Row

ON_REQUEST = True

SIZES = (10**6, 10**7, 10**8)
BILLION = 10**9
GROUP = 10**6  # rows of a row group
TURNS, LONG = 3, 60.0  # a round that takes a minute is the only one
SUMMED = "sum of the column"


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="argmaxf-bench-") as folder:
        path = Path(folder, "rows.parquet")
        for n in SIZES:
            generate(path, n)
            for engine in ENGINES:
                yield from engine_rows(engine, path, n)
        generate(path, BILLION)
        yield from billion_rows(path)


def engine_rows(engine: str, path: Path, n: int) -> Iterator[Row]:
    """Threshold and labels beside the engine's sum; nothing where it is not installed or fails."""
    command = [sys.executable, "-m", "benchmarks.engines", engine, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{engine} at {n:,}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return
    seconds = json.loads(done.stdout.splitlines()[-1])
    for work in ("threshold", "labels"):
        yield Row(f"{engine}, {n:,} rows: {work}", seconds[work], SUMMED, seconds[SUMMED])


def billion_rows(path: Path) -> Iterator[Row]:
    """The command beside Polars summing the column: time, and memory beside a gigabyte."""
    decide = [sys.executable, "-c", COMMAND, "decide", str(path), "-p", "p", "--threshold-only"]
    sums, runs = zip(*((polars(SUM, "parquet", path), once(decide)) for _ in range(2)), strict=True)
    ours = best_of(runs)
    work = f"argmaxf decide --threshold-only, {BILLION:,} rows of Parquet"
    yield Row(work, ours.seconds, "one pass of Polars: the sum", min(sums))
    yield Row(f"{work}: peak memory", ours.peak, "1 GB", 1e9, 1.0, unit="B")


def generate(path: Path, n: int) -> None:
    """Write n probabilities as float32, one in six positive, without holding them all."""
    rng = np.random.default_rng(0)
    schema = pa.schema([("p", pa.float32())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, n, GROUP):
            p = rng.random(min(GROUP, n - start), np.float32) ** 5
            writer.write_table(pa.table({"p": p}, schema))


# ------------------------------------------------------------------ in a process for each engine


def main(engine: str, path: str) -> None:
    """Time one engine on one file; the first round is not counted, unless it is long."""
    frame, summed, counted = ENGINES[engine](path)
    from argmaxf import decide
    from argmaxf.frames import decisions

    works: dict[str, Callable[[], Any]] = {
        SUMMED: lambda: summed(frame),
        "threshold": lambda: decisions(frame, "p"),
        "labels": lambda: counted(decide(frame, "p")),
    }
    turns = [{name: seconds(work) for name, work in works.items()}]
    if sum(turns[0].values()) < LONG:
        turns = [{name: seconds(work) for name, work in works.items()} for _ in range(TURNS)]
    print(json.dumps({name: min(turn[name] for turn in turns) for name in works}))


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def on_polars(path: str) -> tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]:
    import polars as pl

    return (
        pl.scan_parquet(path),
        lambda frame: frame.select(pl.col("p").sum()).collect(),
        lambda frame: frame.select(pl.col("label").sum()).collect(engine="streaming"),
    )


def on_duckdb(path: str) -> tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]:
    import duckdb

    return (
        duckdb.read_parquet(path),
        lambda frame: frame.aggregate("sum(p)").fetchall(),
        lambda frame: frame.aggregate("count(*) FILTER (label)").fetchall(),
    )


def on_dask(path: str) -> tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]:
    import dask.dataframe as dd

    return (
        dd.read_parquet(path, split_row_groups=5),
        lambda frame: frame["p"].sum().compute(),
        lambda frame: frame["label"].sum().compute(),
    )


def on_spark(path: str) -> tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]:
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").config("spark.driver.memory", "4g")
    session = builder.config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return (
        session.read.parquet(path),
        lambda frame: frame.agg({"p": "sum"}).collect(),
        lambda frame: frame.where("label").count(),
    )


ENGINES = {"Polars": on_polars, "DuckDB": on_duckdb, "Dask": on_dask, "Spark": on_spark}

if __name__ == "__main__":
    main(*sys.argv[1:])
