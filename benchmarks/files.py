"""argmaxf decide on files of 1 to 100 million rows, beside Polars reading and copying them.

The files are generated in a temporary folder (TMPDIR) and removed at the end: about 12 GB. Every
run is a process of its own, timed from start to end; its peak memory is the kernel's figure. Polars
sums the column, and copies the rows, in other processes, timed without their start.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from benchmarks.harness import Row

ON_REQUEST = True

SIZES = (10**6, 10**7, 10**8)
CSV_SIZES = (10**6, 10**7, 3 * 10**7)
LIMITED = {"parquet": 10**8, "csv": 10**7}  # fewer rows take less time than starting Python
GIGABYTE = 1e9
COMMAND = "from argmaxf.cli import main; main()"
TIMED = """
import sys, time
import polars as pl
start = time.perf_counter()
{}
print(time.perf_counter() - start)
"""
SUM = TIMED.format("pl.scan_{0}(sys.argv[1]).select(pl.col('p').sum()).collect()")
COPY = TIMED.format("pl.scan_{0}(sys.argv[1]).sink_{0}(sys.argv[2])")
# A process that becomes a command counts what it held before, which for a benchmark is much.
WATCHED = """
import os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(time.perf_counter() - start, usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""
BATCH = 10**6
TURNS = 4


class Run(NamedTuple):
    """What one process took."""

    seconds: float
    peak: int  # bytes resident


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="argmaxf-bench-") as folder:
        yield from kind_rows(Path(folder), "parquet", SIZES)
        yield from kind_rows(Path(folder), "csv", CSV_SIZES)


def kind_rows(folder: Path, kind: str, sizes: tuple[int, ...]) -> Iterator[Row]:
    """Sizes of one kind of file: time beside Polars, peak memory, and both against n."""
    labelled: dict[int, Run] = {}
    name = {"parquet": "Parquet", "csv": "CSV"}[kind]
    for n in sizes:
        source, out = folder / f"rows.{kind}", folder / f"out.{kind}"
        generate(source, n)
        summed, copied, decided, labelled[n] = measured(kind, source, out)
        work = f"{n:,} rows of {name}"
        yield Row(f"{work}: threshold", decided.seconds, "sum of the column", summed)
        budget, speed = 6 * summed + 1.5 * copied, n / labelled[n].seconds
        at_most = 1.0 if n >= LIMITED[kind] else None
        label, note = labelled[n].seconds, f"{speed:,.0f} rows/s"
        yield Row(f"{work}: labels", label, "6 sums + 1.5 copies", budget, at_most, note=note)
        yield Row(f"{work}: labels", label, "copy", copied, note=note)
        peak = max(decided.peak, labelled[n].peak)
        yield Row(f"{work}: peak memory", peak, "1 GB", GIGABYTE, 1.0, unit="B")
        source.unlink()
        out.unlink()
    few, many = sizes[-2:]
    note = f"{many // few} times the rows"
    work, beside = f"{name}, {many:,} rows", f"{few:,} rows"
    yield Row(work, labelled[many].seconds, beside, labelled[few].seconds, note=note)
    yield Row(work, labelled[many].peak, beside, labelled[few].peak, 1.2, unit="B", note=note)


def measured(kind: str, source: Path, out: Path) -> tuple[float, float, Run, Run]:
    """Sum, copy, threshold and labels, in turns so that a disturbance hits all; best of each."""
    decide = [sys.executable, "-c", COMMAND, "decide", str(source), "-p", "p", "--json"]
    turns = []
    for _ in range(TURNS):
        summed, copied = polars(SUM, kind, source), polars(COPY, kind, source, out)
        out.unlink()
        turns.append((summed, copied, once(decide), once([*decide, "-o", str(out), "--force"])))
    sums, copies, decided, labelled = zip(*turns, strict=True)
    return min(sums), min(copies), best_of(decided), best_of(labelled)


def best_of(runs: tuple[Run, ...]) -> Run:
    """Return the best time and the largest peak."""
    return Run(min(run.seconds for run in runs), max(run.peak for run in runs))


def polars(code: str, kind: str, *arguments: object) -> float:
    """Run a query in a fresh process; return its time."""
    command = [sys.executable, "-c", code.format(kind), *map(str, arguments)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def once(command: list[str]) -> Run:
    """Run a command; its time and peak memory, taken by a process that is small itself."""
    watched = [sys.executable, "-c", WATCHED, *command]
    done = subprocess.run(watched, check=True, capture_output=True, text=True)
    seconds, peak = done.stdout.split()
    return Run(float(seconds), int(peak) * 1024)


def generate(path: Path, n: int) -> None:
    """Write n rows, an identifier, a segment and a probability, without holding them all."""
    rng = np.random.default_rng(0)
    parts = []
    for i, start in enumerate(range(0, n, BATCH)):
        size = min(BATCH, n - start)
        part = path.with_name(f"part-{i:04}.parquet")
        pl.DataFrame(
            {
                "id": np.arange(start, start + size),
                "segment": rng.integers(0, 50, size).astype(np.int32),
                "p": rng.beta(0.5, 5, size),
            }
        ).write_parquet(part)
        parts.append(part)
    frame = pl.scan_parquet(parts)
    frame.sink_parquet(path) if path.suffix == ".parquet" else frame.sink_csv(path)
    for part in parts:
        part.unlink()
