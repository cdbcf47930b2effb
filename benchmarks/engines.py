"""decide and tune on Polars, DuckDB, Dask and Spark, beside each engine's own sum of the column.

Every engine reads the same Parquet file, in a process of its own that has already answered for a
million rows: neither Spark's start nor compiling is counted. "labels" counts the selected rows in
the engine, "tune" finds the best threshold of labelled scores; np.sort has the scores in memory. A
billion rows go through the command `argmaxf decide --threshold-only`, beside one pass of Polars.
Peak memory is that of the Python process, after all work on one size. Files lie in TMPDIR and are
removed at the end: 4 GB.
"""

from __future__ import annotations

import json
import os
import resource
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
SUMMED, SORTED = "sum of the column", "np.sort of the scores in memory"
DECIDE = [sys.executable, "-c", COMMAND, "decide"]
SEGMENTED = 2 * 10**7
SEGMENTS = {16: 3.0, 100_000: 5.0}  # and the seconds that they may take


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="argmaxf-bench-") as folder:
        path, small = Path(folder, "rows.parquet"), Path(folder, "small.parquet")
        generate(small, SIZES[0])
        for n in SIZES:
            generate(path, n)
            for engine in ENGINES:
                yield from engine_rows(engine, path, small, n)
        for segments, most in SEGMENTS.items():
            generate(path, SEGMENTED, segments)
            for engine in ("Polars", "DuckDB"):
                found = measured(engine, path, small, "by")
                if found:
                    work = f"{engine}, {SEGMENTED:,} rows in {segments:,} segments"
                    yield Row(f"{work}: threshold", found["by"], f"{most:g} s", most, 1.0)
                    yield Row(f"{work}: peak memory", found["peak"], "1 GB", 1e9, 1.0, unit="B")
            ours = once([*DECIDE, str(path), "-p", "p", "--by", "s", "--threshold-only"])
            work = f"argmaxf decide --by, {SEGMENTED:,} rows in {segments:,} segments"
            yield Row(work, ours.seconds, f"{most:g} s", most, 1.0)
            yield Row(f"{work}: peak memory", ours.peak, "1 GB", 1e9, 1.0, unit="B")
        generate(path, BILLION)
        yield from billion_rows(path)


def engine_rows(engine: str, path: Path, small: Path, n: int) -> Iterator[Row]:
    """Threshold and labels beside the engine's sum, tuning beside a sort, and peak memory."""
    found = measured(engine, path, small, SUMMED, "threshold", "labels", "tune", SORTED)
    if not found:
        return
    for work in ("threshold", "labels", "tune"):
        yield Row(f"{engine}, {n:,} rows: {work}", found[work], SUMMED, found[SUMMED])
    yield Row(f"{engine}, {n:,} rows: tune", found["tune"], SORTED, found[SORTED])
    yield Row(f"{engine}, {n:,} rows: peak memory", found["peak"], "1 GB", 1e9, unit="B")


def measured(engine: str, path: Path, small: Path, *works: str) -> dict[str, float]:
    """Return the seconds of each work in a fresh process; nothing where it fails."""
    command = [sys.executable, "-m", "benchmarks.engines", engine, str(path), str(small), *works]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{engine}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return {}
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def billion_rows(path: Path) -> Iterator[Row]:
    """The command beside Polars summing the column: time, and memory beside a gigabyte."""
    decide = [*DECIDE, str(path), "-p", "p", "--threshold-only"]
    sums, runs = zip(*((polars(SUM, "parquet", path), once(decide)) for _ in range(2)), strict=True)
    ours = best_of(runs)
    work = f"argmaxf decide --threshold-only, {BILLION:,} rows of Parquet"
    yield Row(work, ours.seconds, "one pass of Polars: the sum", min(sums))
    yield Row(f"{work}: peak memory", ours.peak, "1 GB", 1e9, 1.0, unit="B")


def generate(path: Path, n: int, segments: int = 16) -> None:
    """Write n probabilities as float32, labels and segments, without holding them all."""
    rng = np.random.default_rng(0)
    schema = pa.schema([("p", pa.float32()), ("y", pa.bool_()), ("s", pa.int32())])
    schema = schema if n < BILLION else pa.schema([schema.field("p")])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, n, GROUP):
            p = rng.random(min(GROUP, n - start), np.float32) ** 5
            columns = {"p": p}
            if n < BILLION:
                segment = rng.integers(0, segments, p.size, np.int32)
                columns |= {"y": rng.random(p.size, np.float32) < p, "s": segment}
            writer.write_table(pa.table(columns, schema))


# ------------------------------------------------------------------ in a process for each engine


def main(engine: str, path: str, small: str, *works: str) -> None:
    """Time one engine on one file, after a round on the small one; print seconds and memory."""
    warm, summed, counted = ENGINES[engine](small)
    for work in works:
        if work != SORTED:
            WORKS[work](warm, summed, counted)()
    frame, *_ = ENGINES[engine](path)
    best = dict.fromkeys(works, float("inf"))
    for turn in range(TURNS):
        start = time.perf_counter()
        for work in (each for each in works if each != SORTED):
            best[work] = min(best[work], seconds(WORKS[work](frame, summed, counted)))
        if time.perf_counter() - start > LONG and turn == 0:
            break
    peak = 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if SORTED in works:  # last, as it holds all scores
        scores = pq.read_table(path, columns=["p"])["p"].to_numpy()
        best[SORTED] = min(seconds(lambda: np.sort(scores)) for _ in range(TURNS))
    print(json.dumps(best | {"peak": peak}))


def decided(frame: Any, **options: Any) -> Any:
    from argmaxf.frames import decisions

    return decisions(frame, "p", **options)


def labelled(frame: Any) -> Any:
    from argmaxf import decide

    return decide(frame, "p")


def tuned(frame: Any) -> Any:
    from argmaxf import tune

    return tune(frame, label="y", score="p")


WORKS: dict[str, Callable[..., Callable[[], Any]]] = {
    SUMMED: lambda frame, summed, counted: lambda: summed(frame),
    "threshold": lambda frame, summed, counted: lambda: decided(frame),
    "labels": lambda frame, summed, counted: lambda: counted(labelled(frame)),
    "by": lambda frame, summed, counted: lambda: decided(frame, by="s"),
    "tune": lambda frame, summed, counted: lambda: tuned(frame),
}


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

    builder = SparkSession.builder.master("local[*]").config("spark.driver.memory", "2g")
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
