"""Labelled rows in files: thresholds tuned on them, and how well predictions fit them.

All files together are a lazy frame of Polars; what cannot be used is named by file and row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from argmaxf.empirical.cuts import CutProblem
from argmaxf.empirical.labelled_sketch import LabelledSketch
from argmaxf.empirical.threshold import Threshold
from argmaxf.files.column import Column, Rule
from argmaxf.files.decide_files import ScoredFiles
from argmaxf.frames.engines import unused
from argmaxf.frames.labelled import LabelledRows, Search, evaluate
from argmaxf.frames.table import Key
from argmaxf.measures import Interval


@dataclass(frozen=True)
class LabelledFiles(ScoredFiles):
    """Files of labelled rows."""

    label: str = ""  # the column of true labels
    weight: str | None = None
    positive: str | None = None  # the positive label as text

    @property
    def rules(self) -> dict[str, Rule]:
        """What the columns must hold."""
        none = pl.lit(False)
        rules = {self.column: Rule("", lambda score: none, "score")}
        if self.weight:
            words = "must be finite and not negative"
            rules[self.weight] = Rule(words, lambda w: (w < 0.0) | w.is_infinite())
        if self.positive is None:
            is_none = lambda y: ~y.is_in([0.0, 1.0])  # noqa: E731
            rules[self.label] = Rule("must hold 0 and 1", is_none, may_be_boolean=True)
        return rules

    def frame(self, items: Column) -> pl.LazyFrame:
        """Scan the columns of all files as one frame."""
        return items.typed(filter(None, (self.label, self.column, self.weight, *self.by)))

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

    def table(self, items: Column, frame: pl.LazyFrame) -> LabelledRows:
        """Return the rows as a labelled table."""
        columns, pos_label = (self.label, self.column, self.weight), self.pos_label(frame)
        more: Any = {"has_order": True, "begin": items.begin()}
        return LabelledRows.of(frame, *columns, self.by or None, self.nulls, pos_label, **more)


def tune_files(
    files: LabelledFiles, problem: CutProblem, confidence_level: float | None = None
) -> Threshold:
    """Return the best threshold on labelled rows, as `tune` does; write them with predictions."""
    with files.opened() as (items, sink):
        frame = files.frame(items)
        with items.naming_errors():
            best = Search(files.table(items, frame), problem, confidence_level).threshold()
        if sink:
            sink.write(_labelled(sink.frame(), items.p, best, files.by, sink.label))
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


def summarize_labelled_files(files: LabelledFiles) -> LabelledSketch:
    """Return the sketch of labelled rows, in one pass."""
    with files.opened() as (items, _), items.naming_errors():
        return files.table(items, files.frame(items)).sketch()


def evaluate_files(files: LabelledFiles, **options: Any) -> Interval | dict[Key, Interval]:
    """Return F of the predictions in a column, as `evaluate` does."""
    options |= {"label": files.label, "predicted": files.column}
    options |= {"by": files.by or None, "nulls": files.nulls}
    with files.opened() as (items, _), items.naming_errors():
        frame = files.frame(items)
        return evaluate(frame, pos_label=files.pos_label(frame), **options)
