"""The column of probabilities in files: read as a stream, every bad value named by file and row."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from polars import selectors

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.validation import NotAProbability
from argmaxf.files.inputs import BROKEN, Input, first_line, reading
from argmaxf.files.text_tables import as_number, first_ragged, has_commas
from argmaxf.frames.batches import polars_batches
from argmaxf.frames.engines import unused
from argmaxf.frames.table import Table
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


class Rule(NamedTuple):
    """What a column of numbers must hold."""

    words: str
    wrong: Callable[[Floats], Bools]
    what: str = "value"
    may_be_boolean: bool = False  # also in text files

    def check(
        self, inputs: Sequence[Input], name: str, drop_nulls: bool, beside: Sequence[str] = ()
    ) -> None:
        """Raise an error about the first value that breaks it; columns `beside` are read too."""
        missing, where, rows = 0, "", 0
        for source in inputs:
            with reading(source, name):
                for row, batch in _numbers(source, name, beside, self.may_be_boolean):
                    number, given = batch["argmaxf_p"], batch["argmaxf_text"]
                    values = number.fill_null(np.nan).to_numpy()
                    absent, bad = np.isnan(values), self.wrong(values)
                    if given.dtype == pl.String:
                        blank = given.str.strip_chars().fill_null("") == ""
                        bad |= (number.is_null() & ~blank).to_numpy()
                    if bad.any():
                        i = int(bad.argmax())
                        is_none = absent[i] and not self.may_be_boolean
                        words = "must hold numbers" if is_none else self.words
                        got = given[i] if absent[i] else float(values[i])
                        place = f"{source.name}, row {row + i + 1}"
                        raise ValueError(f"{place}: column {name!r} {words}, got {got!r}")
                    if absent.any():
                        where = where or f"{source.name}, row {row + int(absent.argmax()) + 1}"
                    missing, rows = missing + int(absent.sum()), rows + batch.height
        if missing and not drop_nulls:
            raise ValueError(
                f"column {name!r} must have a value in every row, got {missing} null or NaN, "
                f"the first in {where}; --nulls drop leaves such rows out"
            )
        if missing == rows:
            raise ValueError(f"column {name!r} must hold at least one {self.what}, got none")


def _numbers(
    source: Input, name: str, beside: Sequence[str], may_be_boolean: bool
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield a column of a file as numbers and as it is written, and the rows before each batch."""
    is_text = source.is_text
    if may_be_boolean and is_text:
        is_text = source.scan(typed=True).collect_schema()[name] != pl.Boolean
    frame = source.scan(typed=not is_text, text=[name] if is_text else ())
    column, row = selectors.by_name(name).as_expr(), 0
    comma = is_text and has_commas(source.beginning(name)[name])
    number = as_number(column, comma=comma) if is_text else column.cast(pl.Float64)
    asked = number.alias("argmaxf_p"), column.alias("argmaxf_text")
    for batch in polars_batches(frame.select(*asked, *beside)):
        yield row, batch
        row += batch.height


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
        """Two names that no column has: for the probabilities as floats, and as text."""
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
        """The name of the probabilities: floats as they are, and other numbers as doubles."""
        return self.helpers[0]

    @contextmanager
    def naming_errors(self, beside: Sequence[str] = ()) -> Iterator[None]:
        """Where reading all files as one fails, read each on its own and name file and row."""
        try:
            yield
            return
        except (ValueError, NotAProbability, *BROKEN) as error:
            failed: Any = error
        self.diagnose(beside)
        raise ValueError(first_line(failed)) from failed

    def diagnose(self, beside: Sequence[str] = ()) -> None:
        """Raise an error about the first value that cannot be read or is no probability.

        The columns `beside` them are read too, to see that they can be.
        """
        rule = Rule("must be in [0, 1]", lambda p: (p < 0.0) | (p > 1.0), "probability")
        rule.check(self.inputs, self.name, self.drop_nulls, beside)

    def table(
        self,
        frame: pl.LazyFrame,
        progress: Progress,
        by: Sequence[str] = (),
        output: str | None = None,
    ) -> Table:
        """Return the probabilities of a frame of these files as a table."""
        table = Table.of(frame, self.p, by or None, output=output, has_order=True)
        is_text = any(source.is_text for source in self.inputs)
        begin = partial(phase, progress, "reading", count_rows(self.inputs))
        return replace(table, reads_again=not is_text, begin=begin)

    def frame(self, *, typed: bool = False, only: Sequence[str] | None = None) -> pl.LazyFrame:
        """Scan all files as one, without the rows to drop; some columns beside `p`, or all."""
        frames = [self.scan(source, typed=typed) for source in self.inputs]
        for source in self.inputs:
            if source.is_text:
                refuse_ragged(source)
        if only is not None:
            frames = [frame.select(*only, self.p) for frame in frames]
        frame = pl.concat(frames, how="vertical_relaxed") if len(frames) > 1 else frames[0]
        if self.drop_nulls:
            frame = frame.filter(pl.col(self.p).is_not_null() & pl.col(self.p).is_not_nan())
        return frame

    def scan(self, source: Input, *, typed: bool = False) -> pl.LazyFrame:
        """Scan all columns of a file, and the probabilities as `p`."""
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
            is_none = number.is_null() & (column.str.strip_chars() != "")  # blank text is missing
            p_or_none = pl.when(is_none).then(pl.lit(2.0)).otherwise(self._moved(number))
            return frame.with_columns(given, p_or_none.alias(p))
        if not (kind.is_numeric() or kind == pl.Boolean):
            raise ValueError(f"{source.name}: column {self.name!r} must hold numbers, got {kind}")
        is_float = self.factor is None and kind in (pl.Float32, pl.Float64)
        number = column if is_float else self._moved(column.cast(pl.Float64))
        return frame.with_columns(number.alias(p))

    def _moved(self, given: pl.Expr) -> pl.Expr:
        """Return probabilities with their odds moved; what is none stays none."""
        return given if self.factor is None else move_odds(given, self.factor)


def count_rows(inputs: Sequence[Input]) -> int | None:
    """Return the number of rows where files say it without being read."""
    if any(source.is_text for source in inputs):
        return None
    rows = 0
    for source in inputs:
        with reading(source):
            rows += int(source.scan().select(pl.len()).collect().item())
    return rows


def refuse_ragged(source: Input) -> None:
    """Refuse a text file with a row that has too few or too many fields."""
    ragged = first_ragged(source.path, source.separator)
    if ragged:
        raise ValueError(
            f"{source.name}, row {ragged.row}: a row must have {ragged.expected} fields "
            f"like the header, got {ragged.fields}"
        )
