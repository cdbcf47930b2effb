"""Labelled rows in files: thresholds tuned on them, and how well predictions fit them.

All files together are a lazy frame of Polars; what cannot be used is named by file and row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from argmaxf._base.atomic_write import refuse_inputs
from argmaxf.empirical.cuts import CutProblem
from argmaxf.empirical.guarantees import GuaranteeError
from argmaxf.empirical.labelled_sketch import LabelledSketch
from argmaxf.empirical.threshold import Threshold
from argmaxf.files.column import Column, Progress, Rule, count_rows, phase, refuse_ragged
from argmaxf.files.inputs import BROKEN, Input, find_inputs, first_line, reading
from argmaxf.files.output import Output
from argmaxf.frames.engines import unused
from argmaxf.frames.labelled import LabelledTable, Search, evaluate, summarize_labelled
from argmaxf.frames.table import Key
from argmaxf.measures import Interval


@dataclass(frozen=True)
class LabelledFiles:
    """Files of labelled rows, and their columns."""

    names: Sequence[str]
    label: str
    score: str
    weight: str | None = None
    by: Sequence[str] = ()
    positive: str | None = None  # the positive label as text
    nulls: str = "raise"
    progress: Progress = False

    @contextmanager
    def opened(self, output: Path | None = None) -> Iterator[tuple[list[Input], pl.LazyFrame]]:
        """Find the files, and scan their columns as one frame."""
        with ExitStack() as stack:
            inputs = find_inputs(self.names, stack)
            refuse_inputs([output], [source.origin for source in inputs])
            yield inputs, self._frame(inputs)

    @contextmanager
    def naming_errors(self, inputs: Sequence[Input]) -> Iterator[None]:
        """Name file and row where a value cannot be used."""
        try:
            yield
        except GuaranteeError:
            raise
        except (ValueError, *BROKEN) as error:
            self._diagnose(inputs)
            raise ValueError(first_line(error)) from error

    def _frame(self, inputs: Sequence[Input]) -> pl.LazyFrame:
        """Scan the columns of all files as one frame."""
        columns = dict.fromkeys(filter(None, (self.label, self.score, self.weight, *self.by)))
        frames = []
        for source in inputs:
            with reading(source):
                frame = source.scan(typed=True, text=self.by if source.is_text else ())
                there = frame.collect_schema()
            for name in columns:
                if name not in there:
                    raise ValueError(f"{source.name}: no column {name!r}; it has {list(there)}")
            if source.is_text:
                refuse_ragged(source)
            frames.append(frame.select(*columns))
        return pl.concat(frames, how="vertical_relaxed")

    def pos_label(self, frame: pl.LazyFrame) -> Any:
        """Return the positive label in the type of its column."""
        kind = frame.collect_schema()[self.label]
        if self.positive is None or not (kind.is_numeric() or kind == pl.Boolean):
            return self.positive
        try:
            return float(self.positive)
        except ValueError:
            raise ValueError(
                f"column {self.label!r} holds numbers, so --positive must be one; "
                f"got {self.positive!r}"
            ) from None

    def rows(self, inputs: Sequence[Input], frame: pl.LazyFrame) -> LabelledTable:
        """Return the rows as a labelled table."""
        columns = self.label, self.score, self.weight, self.by or None
        found = LabelledTable.of(frame, *columns, self.nulls, self.pos_label(frame))
        begin = partial(phase, self.progress, "reading", count_rows(inputs))
        return replace(found, table=replace(found.table, begin=begin, has_order=True))

    def _diagnose(self, inputs: Sequence[Input]) -> None:
        """Raise an error about the first value that cannot be used."""
        rules = {self.score: Rule("", lambda score: np.zeros(score.size, np.bool_), "score")}
        if self.weight:
            words = "must be finite and not negative"
            rules[self.weight] = Rule(words, lambda w: (w < 0.0) | np.isposinf(w))
        if self.positive is None:
            wrong = lambda y: ~np.isin(y, (0.0, 1.0)) & (y == y)  # noqa: E731
            rules[self.label] = Rule("must hold 0 and 1", wrong, may_be_boolean=True)
        for name, rule in rules.items():
            rule.check(inputs, name, self.nulls == "drop")


def tune_files(
    files: LabelledFiles,
    problem: CutProblem,
    confidence_level: float | None = None,
    *,
    output: Path | None = None,
    predicted: str = "predicted",
) -> Threshold:
    """Return the best threshold on labelled rows, as `tune` does; write them with predictions."""
    drop = files.nulls == "drop"
    with files.opened(output) as (inputs, frame):
        items = Column(inputs, files.score, drop, files.by, label=predicted)
        sink = Output.checked(output, predicted, items) if output else None
        with files.naming_errors(inputs):
            best = Search(files.rows(inputs, frame), problem, confidence_level).threshold()
        if sink:
            rows = _labelled(sink.frame(), items.p, best, files.by, predicted)
            sink.write(rows, files.progress)
    return best


def _labelled(
    rows: pl.LazyFrame, p: str, best: Threshold, by: Sequence[str], predicted: str
) -> pl.LazyFrame:
    """Add the predictions, of each segment at its threshold."""
    if best.segment is None:
        return rows.with_columns((pl.col(p) >= pl.lit(best.threshold, pl.Float64)).alias(predicted))
    (threshold,) = unused([*rows.collect_schema(), predicted], ["argmaxf_threshold"])
    keys = [key if isinstance(key, tuple) else (key,) for key in best.segment.tolist()]
    columns = dict(zip(by, zip(*keys, strict=True), strict=True))
    table = pl.LazyFrame({**columns, threshold: best.threshold})
    joined = rows.join(table, on=list(by), how="left", maintain_order="left")
    chosen = (pl.col(p) >= pl.col(threshold)).alias(predicted)
    return joined.with_columns(chosen).drop(threshold)


def summarize_labelled_files(files: LabelledFiles, output: Path | None = None) -> LabelledSketch:
    """Return the sketch of labelled rows, in one pass; `output` must be none of the files."""
    with files.opened(output) as (inputs, frame), files.naming_errors(inputs):
        return summarize_labelled(files.rows(inputs, frame))


def evaluate_files(files: LabelledFiles, **options: Any) -> Interval | dict[Key, Interval]:
    """Return F of the predictions in the column `score`, as `evaluate` does."""
    options |= {"by": files.by or None, "nulls": files.nulls}
    with files.opened() as (inputs, frame), files.naming_errors(inputs):
        pos_label = files.pos_label(frame)
        return evaluate(
            frame, label=files.label, predicted=files.score, pos_label=pos_label, **options
        )
