"""The column of probabilities in files: read as a stream, every bad value named by file and row."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from polars import selectors

from argmaxf._base.arrays import Floats
from argmaxf.files.inputs import Input, reading
from argmaxf.files.text_tables import as_number, first_ragged, has_commas
from argmaxf.frames.batches import polars_batches
from argmaxf.frames.table import unused
from argmaxf.prior import move_odds

Progress = bool | Callable[[str, int, int | None], None]  # phase, rows so far, rows in all
Advance = Callable[[int], None]  # told how many more rows are done


def phase(progress: Progress, title: str, rows: int | None = None) -> Advance:
    """Begin a phase of long work over so many rows; return what is told how many more are done."""
    if progress is False:
        return lambda more: None
    if progress is not True and not callable(progress):
        raise ValueError(f"progress must be False, True or a function, got {progress!r}")
    report, done = _print_progress if progress is True else progress, 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        report(title, done, rows)

    advance(0)
    return advance


def _print_progress(title: str, done: int, rows: int | None) -> None:
    """Show how far a phase is, each on a line of its own."""
    total = "" if rows is None else f" of {rows:,}"
    print(f"{title} {done:,}{total} rows", file=sys.stderr)


@dataclass(frozen=True)
class Column:
    """A column of probabilities in one or more files."""

    inputs: Sequence[Input]
    name: str
    drop_nulls: bool = False
    as_text: Sequence[str] = ()  # columns of text files whose values stay as they are written
    factor: float | None = None  # by which the odds of all probabilities are multiplied first
    label: str | None = None  # the column to be added, so that no helper takes its name

    @cached_property
    def helpers(self) -> tuple[str, str]:
        """Two names that no column has: for the probabilities as doubles, and as text."""
        taken = {self.label} if self.label else set()
        for source in self.inputs:
            with reading(source):
                taken.update(source.scan().collect_schema())
        p, text = unused(taken, ["argmaxf_p", "argmaxf_text"])
        return p, text

    @cached_property
    def commas(self) -> set[Path]:
        """The text files that write probabilities as 0,5, by their first rows."""
        found = set()
        for source in self.inputs:
            if source.is_text and self.name in source.check_header():
                with reading(source, self.name):
                    if has_commas(source.beginning(self.name)[self.name]):
                        found.add(source.path)
        return found

    @property
    def p(self) -> str:
        """The name of the probabilities in double precision."""
        return self.helpers[0]

    def batches(self, advance: Advance, beside: Sequence[str] = ()) -> Iterator[Floats]:
        """Yield the probabilities in order; at the end, refuse nulls if there were any.

        The columns `beside` them are read too, to see that they can be.
        """
        missing, where = 0, ""
        for source in self.inputs:
            row = 0
            for values in self._read(source, beside):
                row += values.size
                advance(values.size)
                if values.min(initial=1.0) >= 0.0 and values.max(initial=0.0) <= 1.0:
                    yield values
                    continue
                absent, first = np.isnan(values), row - values.size + 1
                self._refuse_others(values, source, first)
                where = where or f"{source.name}, row {first + int(absent.argmax())}"
                missing += int(absent.sum())
                yield values[~absent]
        if missing and not self.drop_nulls:
            raise ValueError(
                f"column {self.name!r} must have a value in every row, got {missing} null or NaN, "
                f"the first in {where}; --nulls drop leaves such rows out"
            )

    def _read(self, source: Input, beside: Sequence[str]) -> Iterator[Floats]:
        """Yield the column of one file, NaN for null."""
        frame = self.scan(source)
        with reading(source, self.name):
            if source.is_text:
                refuse_ragged(source)
            p, text = self.helpers
            columns = [p, text] if source.is_text else [p]
            row = 0
            for batch in polars_batches(frame.select(*columns, *beside)):
                if source.is_text and batch[p].null_count() > batch[text].null_count():
                    self._refuse_text(batch, source, row)
                row += batch.height
                yield batch[p].fill_null(np.nan).to_numpy()
        if not source.is_text and row != (rows := rows_of(source)):
            # where a damaged file makes Polars panic, its stream just ends
            raise ValueError(
                f"{source.name}, column {self.name!r}: cannot be read: "
                f"{row:,} of {rows:,} rows came"
            )

    def rows(self) -> int | None:
        """Return the number of rows where files say it without being read."""
        if any(source.is_text for source in self.inputs):
            return None
        return sum(map(rows_of, self.inputs))

    def frame(self, *, typed: bool = False, only: Sequence[str] | None = None) -> pl.LazyFrame:
        """Scan all files as one, without the rows to drop; some columns beside `p`, or all."""
        frames = [self.scan(source, typed=typed) for source in self.inputs]
        if only is not None:
            frames = [frame.select(*only, self.p) for frame in frames]
        frame = pl.concat(frames, how="vertical_relaxed") if len(frames) > 1 else frames[0]
        if self.drop_nulls:
            frame = frame.filter(pl.col(self.p).is_not_null() & pl.col(self.p).is_not_nan())
        return frame

    def scan(self, source: Input, *, typed: bool = False) -> pl.LazyFrame:
        """Scan all columns of a file, and the probabilities in double precision as `p`."""
        p, text = self.helpers
        with reading(source, self.name):
            frame = source.scan(typed=typed)
            schema = frame.collect_schema()
        if self.name not in schema:
            raise ValueError(f"{source.name}: no column {self.name!r}; it has {list(schema)}")
        column, kind = selectors.by_name(self.name).as_expr(), schema[self.name]
        if source.is_text:
            number = as_number(column, comma=source.path in self.commas)
            given = number.alias(self.name) if typed else column.alias(text)
            frame = source.scan(typed=typed, text=[self.name, *self.as_text])
            return frame.with_columns(given, self._moved(number).alias(p))
        if not (kind.is_numeric() or kind == pl.Boolean):
            raise ValueError(f"{source.name}: column {self.name!r} must hold numbers, got {kind}")
        return frame.with_columns(self._moved(column.cast(pl.Float64)).alias(p))

    def _moved(self, given: pl.Expr) -> pl.Expr:
        """Return probabilities with their odds moved; what is none stays none."""
        return given if self.factor is None else move_odds(given, self.factor)

    def _refuse_text(self, batch: pl.DataFrame, source: Input, row: int) -> None:
        """Refuse text that is no number; blank text is a missing one."""
        p, text = self.helpers
        bad = (batch[p].is_null() & (batch[text].str.strip_chars() != "")).arg_true()
        if len(bad):
            raise ValueError(
                f"{source.name}, row {row + bad[0] + 1}: column {self.name!r} must hold numbers, "
                f"got {batch[text][bad[0]]!r}"
            )

    def _refuse_others(self, values: Floats, source: Input, first: int) -> None:
        """Refuse what is neither a probability nor missing; `first` is the first value's row."""
        bad = (values < 0.0) | (values > 1.0)
        if bad.any():
            place = int(bad.argmax())
            if self.factor is not None:
                values = move_odds(values, 1.0 / self.factor).round(12)
            raise ValueError(
                f"{source.name}, row {first + place}: column {self.name!r} must be in [0, 1], "
                f"got {float(values[place])!r}"
            )


def rows_of(source: Input) -> int:
    """Return the number of rows that a file says it has."""
    with reading(source):
        return int(source.scan().select(pl.len()).collect().item())


def refuse_ragged(source: Input) -> None:
    """Refuse a text file with a row that has too few or too many fields."""
    ragged = first_ragged(source.path, source.separator)
    if ragged:
        raise ValueError(
            f"{source.name}, row {ragged.row}: a row must have {ragged.expected} fields "
            f"like the header, got {ragged.fields}"
        )
