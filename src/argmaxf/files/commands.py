"""What argmaxf decide, tune, evaluate and sketch do with files; all rows are written or none.

All files together are a lazy frame of Polars, and decided or tuned as one. The column of
probabilities of text files is read once, into a temporary file, 8 bytes a row: parsing it again
would take longer.
"""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from argmaxf._base.atomic_write import temporary_file, written_whole
from argmaxf._base.validation import check_unit_interval
from argmaxf.empirical.cuts import CutProblem
from argmaxf.empirical.threshold import Threshold
from argmaxf.expected.decision import Decision
from argmaxf.expected.sketch import ProbabilitySketch, groups_of_sketch
from argmaxf.expected.values import value_of_sets
from argmaxf.files.inputs import (
    BROKEN,
    COPIED,
    SEPARATORS,
    first_line,
    is_zipped,
    kind_of,
    refuse_names,
)
from argmaxf.files.scored import ScoredFiles
from argmaxf.frames.decide import rate_of
from argmaxf.frames.engines import unused
from argmaxf.frames.labelled import best_thresholds, evaluate
from argmaxf.frames.solve import Decisions, sketch_of, solve
from argmaxf.frames.table import Key, P
from argmaxf.measures import Interval
from argmaxf.problem import Problem


def decide_files(asked: ScoredFiles, problem: Problem | None = None) -> Decisions:
    """Decide the rows of files; write them with labels if there is an output.

    Memory does not grow with the number of rows. Returns one decision for each segment of `by`,
    or a single one under the empty tuple; with chance constraints `overall` is of all segments.
    """
    with asked.opened() as files:
        frame = rows_to_write(files) if writes(files) else files.frame(only=files.by)
        with files.naming_errors(files.by):
            table = files.table(frame, files.by, files.added if writes(files) else None)
            solved = solve(table, problem or Problem.of())
        if writes(files):
            write(files, solved.labelled())
        return solved.decisions


def label_files(asked: ScoredFiles, threshold: float, problem: Problem | None = None) -> Decision:
    """Label rows by a threshold decided elsewhere: p ≥ threshold is selected."""
    cut = np.float64(check_unit_interval("threshold", threshold))  # no float32, as floats may be
    problem = problem or Problem.of()
    chosen, rest = ProbabilitySketch(), ProbabilitySketch()
    with asked.opened() as files:
        frame = rows_to_write(files) if writes(files) else files.frame(only=())
        with files.naming_errors():
            for batch in files.table(frame).rows(0).batches():
                chosen.update(batch[P][batch[P] >= cut])
                rest.update(batch[P][batch[P] < cut])
        n = chosen.n + rest.n
        if not n:
            files.diagnose()
        if writes(files):
            write(files, _above(files, frame, pl.lit(cut, pl.Float64)))
    value = value_of_sets(groups_of_sketch(chosen), groups_of_sketch(rest), problem)
    return Decision(None, chosen.n, float(cut), value.mean, value.std, problem.beta, n)


def tune_files(asked: ScoredFiles, problem: CutProblem) -> Threshold:
    """Return the best threshold on labelled rows, as `tune` does; write them with predictions."""
    with asked.opened() as files:
        rows = rows_to_write(files) if writes(files) else None
        with files.naming_errors():
            best = best_thresholds(files.labelled(), problem)
        if rows is not None:
            write(files, _predicted(files, rows, best))
    return best


def _predicted(files: ScoredFiles, rows: pl.LazyFrame, best: Threshold) -> pl.LazyFrame:
    """Add the predictions, of each segment at its threshold."""
    if best.segment is None:
        return _above(files, rows, pl.lit(best.threshold, pl.Float64))
    schema = rows.collect_schema()
    (threshold,) = unused([*schema, str(files.added)], ["argmaxf_threshold"])
    keys = [key if isinstance(key, tuple) else (key,) for key in best.segment.tolist()]
    columns = dict(zip(files.by, zip(*keys, strict=True), strict=True))
    table = pl.LazyFrame({**columns, threshold: best.threshold})
    table = table.cast({name: schema[name] for name in files.by})
    joined = rows.join(table, on=list(files.by), how="left", maintain_order="left")
    return _above(files, joined, pl.col(threshold)).drop(threshold)


def _above(files: ScoredFiles, rows: pl.LazyFrame, threshold: pl.Expr) -> pl.LazyFrame:
    """Add labels: whether probabilities reach a threshold."""
    return rows.with_columns((pl.col(files.p) >= threshold).alias(str(files.added)))


def summarize_files(asked: ScoredFiles) -> Any:
    """Return the summary of a column of files, or of labelled rows, in one pass."""
    with asked.opened() as files, files.naming_errors():
        if files.label is not None:
            return files.labelled().sketch()
        return sketch_of(files.table(files.frame(only=())).rows(0))


def estimate_files(asked: ScoredFiles, train_rate: float) -> Interval:
    """Return the most likely rate of positives in files, in one pass, with its 95 % interval."""
    if "-" in asked.names:
        raise ValueError(
            "estimating the rate needs a pass of its own, and - can be read only once; pass a file"
        )
    return rate_of(summarize_files(asked), train_rate)


def evaluate_files(asked: ScoredFiles, **options: Any) -> Interval | dict[Key, Interval]:
    """Return F of the predictions in a column, as `evaluate` does."""
    options |= {"label": asked.label, "predicted": asked.column}
    options |= {"by": asked.by or None, "nulls": asked.nulls}
    with asked.opened() as files, files.naming_errors():
        frame = files.labelled_frame()
        return evaluate(frame, pos_label=files.pos_label(frame), **options)


def writes(files: ScoredFiles) -> bool:
    """Whether there is an output of rows."""
    return bool(files.output and files.added)


def rows_to_write(files: ScoredFiles) -> pl.LazyFrame:
    """Return the rows to write, and the probabilities as `p`; refuse an output that cannot be.

    From text to text, values are copied as they are written.
    """
    inputs, path, columns = files.inputs, files.output or Path(), files.inputs[0].columns
    kind_of(path)
    refuse_names([path])
    if len({source.is_text for source in inputs}) > 1:
        raise ValueError("the inputs must be all text files, or none of them, to write their rows")
    for source in inputs:
        if source.columns != columns:
            odd = sorted(set(source.columns) ^ set(columns)) or source.columns
            raise ValueError(
                f"{source.name}: rows to write must have the columns of {inputs[0].name} "
                f"in the same order; see {odd[0]!r}"
            )
        if files.added in files.scan(source).collect_schema():
            raise ValueError(
                f"{source.name}: there is a column {files.added!r} already; choose another --label"
            )
    return files.frame(typed=not (kind_of(path) in SEPARATORS and inputs[0].is_text))


def write(files: ScoredFiles, frame: pl.LazyFrame) -> None:
    """Write labelled rows."""
    advance, path, inputs = files.phase("writing"), files.output or Path(), files.inputs

    def counted(labels: pl.Series) -> pl.Series:
        advance(labels.len())
        return labels

    if files.progress is not False:
        labels = pl.col(str(files.added))
        count: Any = {"return_dtype": pl.Boolean, "is_elementwise": True}
        frame = frame.with_columns(labels.map_batches(counted, **count))
    kind = kind_of(path)
    separator = SEPARATORS.get(kind, "")
    if kind == "csv" and all(each.is_text and each.separator == ";" for each in inputs):
        separator = ";"
    with written_whole(path) as temporary:
        try:
            write_rows = _write_zipped if is_zipped(path) else _write
            write_rows(frame.drop(files.p), temporary, kind, separator)
        except BROKEN as error:
            if "os error" not in str(error):  # nothing wrong with the disk: an input, perhaps
                for source in inputs:
                    source.read(source.columns)
            raise OSError(f"{path}: cannot be written: {first_line(error)}") from error


def _write(frame: pl.LazyFrame, path: Path, kind: str, separator: str) -> None:
    """Write a frame as a stream."""
    if kind == "parquet":
        frame.sink_parquet(path)
    elif kind == "arrow":
        frame.sink_ipc(path)
    else:
        frame.sink_csv(path, separator=separator)


def _write_zipped(frame: pl.LazyFrame, path: Path, kind: str, separator: str) -> None:
    """Write a frame as a stream, and zip what was written; nobody else can read the plain copy."""
    with temporary_file(path.parent, "argmaxf-unzipped", mode=0o600) as plain:
        _write(frame, plain, kind, separator)
        with (
            plain.open("rb") as source,
            path.open("wb") as target,
            gzip.GzipFile("", "wb", fileobj=target, mtime=0) as zipped,  # the same each time
        ):
            shutil.copyfileobj(source, zipped, COPIED)
