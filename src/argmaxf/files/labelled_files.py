"""Labelled rows in files: thresholds tuned on them, and how well predictions fit them.

All files together are a lazy frame of Polars; what cannot be used is named by file and row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from argmaxf._base.atomic_write import refuse_inputs
from argmaxf.empirical.cuts import CutProblem
from argmaxf.empirical.labelled_sketch import LabelledSketch
from argmaxf.empirical.threshold import Threshold
from argmaxf.files.column import Column, Progress, Rule, begin, concat, named, refuse_absent
from argmaxf.files.inputs import Input, find_inputs, reading
from argmaxf.files.output import Output
from argmaxf.frames.engines import unused
from argmaxf.frames.labelled import LabelledTable, Search, evaluate
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
    def opened(
        self, output: Path | None = None, predicted: str | None = None
    ) -> Iterator[tuple[Column, pl.LazyFrame]]:
        """Find the files, and scan their columns as one frame."""
        with ExitStack() as stack:
            inputs = find_inputs(self.names, stack)
            refuse_inputs([output], [source.origin for source in inputs])
            items = Column(
                inputs, self.score, self.nulls == "drop", self.by, None, predicted, self._rules()
            )
            yield items, concat(inputs, self._scan)

    def _scan(self, source: Input) -> pl.LazyFrame:
        columns = dict.fromkeys(filter(None, (self.label, self.score, self.weight, *self.by)))
        with reading(source):
            frame = source.scan(typed=True, text=self.by)
            there = frame.collect_schema()
        refuse_absent(source, there, *columns)
        return frame.select(named(*columns))

    def _rules(self) -> dict[str, Rule]:
        """Return what the columns must hold."""
        none = pl.lit(False)
        rules = {self.score: Rule("", lambda score: none, "score")}
        if self.weight:
            words = "must be finite and not negative"
            rules[self.weight] = Rule(words, lambda w: (w < 0.0) | w.is_infinite())
        if self.positive is None:
            is_none = lambda y: ~y.is_in([0.0, 1.0])  # noqa: E731
            rules[self.label] = Rule("must hold 0 and 1", is_none, may_be_boolean=True)
        return rules

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

    def table(self, inputs: Sequence[Input], frame: pl.LazyFrame) -> LabelledTable:
        """Return the rows as a labelled table."""
        columns, pos_label = (self.label, self.score, self.weight), self.pos_label(frame)
        more: Any = {"has_order": True, "begin": begin(inputs, self.progress)}
        return LabelledTable.of(frame, *columns, self.by or None, self.nulls, pos_label, **more)


def tune_files(
    files: LabelledFiles,
    problem: CutProblem,
    confidence_level: float | None = None,
    *,
    output: Path | None = None,
    predicted: str = "predicted",
) -> Threshold:
    """Return the best threshold on labelled rows, as `tune` does; write them with predictions."""
    with files.opened(output, predicted) as (items, frame):
        sink = Output.checked(output, predicted, items) if output else None
        with items.naming_errors():
            table = files.table(items.inputs, frame)
            best = Search(table, problem, confidence_level).threshold()
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
    with files.opened(output) as (items, frame), items.naming_errors():
        return files.table(items.inputs, frame).sketch()


def evaluate_files(files: LabelledFiles, **options: Any) -> Interval | dict[Key, Interval]:
    """Return F of the predictions in the column `score`, as `evaluate` does."""
    options |= {"label": files.label, "predicted": files.score}
    options |= {"by": files.by or None, "nulls": files.nulls}
    with files.opened() as (items, frame), items.naming_errors():
        return evaluate(frame, pos_label=files.pos_label(frame), **options)
