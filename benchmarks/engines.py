"""decide and tune on Polars, DuckDB, Dask and Spark, beside each engine's own sum of the column.

Every engine reads the same Parquet file, in a process of its own that has already answered for a
million rows: neither Spark's start nor compiling is counted. "labels" counts the selected rows in
the engine, "tune" finds the best threshold of labelled scores; np.sort has the scores in memory.
The command `argmaxf tune` reads the same file, `argmaxf decide --threshold-only` a billion rows,
beside one pass of Polars. Peak memory is that of the Python process; Spark's JVM has 2 GB besides.
Files lie in TMPDIR and are removed at the end: 5 GB. NumPy's sort is timed as it is, and in a
process that uses no wide vectors, as on processors without AVX2 and AVX-512.

    python -m benchmarks.engines Polars billion

runs some parts only: an engine by its name, "tune" for the command on labelled rows, "segments",
or "billion" for a billion rows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.files import COMMAND, SUM, best_of, once, polars
from benchmarks.harness import Row, table

ON_REQUEST = True

SMALL, LARGE, BILLION = 10**6, 10**8, 10**9
LIMITS = {"Polars": (8.0, 5.0), "DuckDB": (6.0, 4.0), "Dask": (12.0, 8.0), "Spark": (20.0, 10.0)}
GROUP = 10**6  # rows of a row group
TURNS, LONG = 3, 30.0  # a round that takes half a minute is the only one
SUMMED, SORTED = "sum of the column", "np.sort of the scores in memory"
PLAIN = f"{SORTED}, without wide vectors"
ARGMAXF = [sys.executable, "-c", COMMAND]
SEGMENTED = 2 * 10**7
SEGMENTS = {16: 3.0, 100_000: 5.0}  # and the seconds that they may take


def rows(parts: Container[str] | None = None) -> Iterator[Row]:
    chosen = [part for part in PARTS if parts is None or part in parts]
    with tempfile.TemporaryDirectory(prefix="argmaxf-bench-") as folder:
        path, small = Path(folder, "rows.parquet"), Path(folder, "small.parquet")
        generate(small, SMALL)
        if {*ENGINES, "tune"} & set(chosen):
            generate(path, LARGE)
            plain = sorting_without_vectors(path)
        for engine in filter(chosen.__contains__, ENGINES):
            yield from engine_rows(engine, path, small, plain)
        if "tune" in chosen:
            yield from tuned_file(path, plain)
        for segments, most in SEGMENTS.items() if "segments" in chosen else ():
            generate(path, SEGMENTED, segments)
            yield from segment_rows(path, small, segments, most)
        if "billion" in chosen:
            generate(path, BILLION)
            yield from billion_rows(path)


def engine_rows(engine: str, path: Path, small: Path, plain: float) -> Iterator[Row]:
    """Threshold and labels beside the engine's sum, tuning beside sorts, and peak memory."""
    found = measured(engine, path, small, SUMMED, "threshold", "labels", "tune", SORTED)
    if not found:
        return
    name = f"{engine}, {LARGE:,} rows"
    yield Row(f"{name}: threshold", found["threshold"], SUMMED, found[SUMMED], *LIMITS[engine])
    for work in ("labels", "tune"):
        yield Row(f"{name}: {work}", found[work], SUMMED, found[SUMMED])
    limits = (1.0, 0.3) if engine == "Polars" else ()
    yield Row(f"{name}: tune", found["tune"], SORTED, found[SORTED], *limits)
    yield Row(f"{name}: tune", found["tune"], PLAIN, plain, *limits)
    yield memory(name, found["peak"])


def memory(name: str, peak: float) -> Row:
    return Row(f"{name}: peak memory", peak, "1 GB", 1e9, 1.0, unit="B")


def tuned_file(path: Path, plain: float) -> Iterator[Row]:
    """The command on a file, starting included, beside sorts of the scores in memory."""
    ours = once([*ARGMAXF, "tune", str(path), "--label", "y", "--score", "p", "--threshold-only"])
    name = f"argmaxf tune, {LARGE:,} rows of Parquet"
    yield Row(name, ours.seconds, SORTED, sorting(path), 1.0, 0.3)
    yield Row(name, ours.seconds, PLAIN, plain, 1.0, 0.3)
    yield memory(name, ours.peak)


def segment_rows(path: Path, small: Path, segments: int, most: float) -> Iterator[Row]:
    """Thresholds of segments beside the seconds that they may take."""
    name, limit = f"{SEGMENTED:,} rows in {segments:,} segments", (f"{most:g} s", most, 1.0)
    for engine in ("Polars", "DuckDB"):
        if found := measured(engine, path, small, "by"):
            yield Row(f"{engine}, {name}: threshold", found["by"], *limit)
            yield memory(f"{engine}, {name}", found["peak"])
    decide = "decide", str(path), "-p", "p", "--by", "s", "--threshold-only"
    ours = once([*ARGMAXF, *decide])
    yield Row(f"argmaxf decide --by, {name}", ours.seconds, *limit)
    yield memory(f"argmaxf decide --by, {name}", ours.peak)


def measured(engine: str, path: Path, small: Path, *works: str) -> dict[str, float]:
    """Return the seconds of each work in a fresh process; nothing where it fails."""
    given = MEASURED, engine, str(path), str(small), *works
    command = [sys.executable, "-m", "benchmarks.engines", *given]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{engine}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return {}
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def billion_rows(path: Path) -> Iterator[Row]:
    """The command beside Polars summing the column: time, and memory beside a gigabyte."""
    decide = [*ARGMAXF, "decide", str(path), "-p", "p", "--threshold-only"]
    sums, runs = zip(*((polars(SUM, "parquet", path), once(decide)) for _ in range(2)), strict=True)
    ours = best_of(runs)
    work = f"argmaxf decide --threshold-only, {BILLION:,} rows of Parquet"
    yield Row(work, ours.seconds, "one pass of Polars: the sum", min(sums), 12.0, 8.0)
    yield memory(work, ours.peak)


def sorting(path: Path | str) -> float:
    """Return the seconds of np.sort of all scores in memory."""
    scores = pq.read_table(path, columns=["p"])["p"].to_numpy()
    return min(seconds(lambda: np.sort(scores)) for _ in range(TURNS))


def sorting_without_vectors(path: Path) -> float:
    """Return the seconds of np.sort of all scores in a process without wide vectors."""
    code = "import sys; from benchmarks.engines import sorting; print(sorting(sys.argv[1]))"
    there = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env=os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(there)},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


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


def measure(engine: str, path: str, small: str, *works: str) -> None:
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
    peak = peak_memory()
    if SORTED in works:  # last, as it holds all scores
        best[SORTED] = sorting(path)
    print(json.dumps(best | {"peak": peak}))


def peak_memory() -> float:
    """Return what this process held at most; `resource` counts what its parent held before, too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024.0 * int(status.split("VmHWM:")[1].split()[0])


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
        dd.read_parquet(path, split_row_groups=2),
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

PARTS = (*ENGINES, "tune", "segments", "billion")
MEASURED = "measured"  # the first argument of a process for one engine


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; default all")
    parts = parser.parse_args().parts or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no part is called {min(unknown)!r}; there are {', '.join(PARTS)}")
    print(table(rows(parts)))


if __name__ == "__main__":
    if sys.argv[1:2] == [MEASURED]:
        measure(*sys.argv[2:])
    else:
        main()
