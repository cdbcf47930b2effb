"""The columns of scores in files: read as a stream, every bad value named by file and row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import polars as pl
from polars import selectors

from argmaxf._base.validation import NotAProbability
from argmaxf.empirical.guarantees import GuaranteeError
from argmaxf.files.inputs import BROKEN, Input, first_line, reading
from argmaxf.files.text_tables import as_number, first_ragged, has_commas
from argmaxf.frames.engines import unused
from argmaxf.frames.table import Table, Unusable
from argmaxf.prior import move_odds

Progress = bool | Callable[[str, int, int | None], None]  # phase, rows so far, rows in all
Advance = Callable[[int], None]  # told how many more rows are done


def phase(progress: Progress, title: str, rows: int | None = None) -> Advance:
    """Begin a phase of long work over so many rows; return what is told how many more are done."""
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        if callable(progress):
            progress(title, done, rows)

    advance(0)
    return advance


class Rule(NamedTuple):
    """What a column of numbers must hold."""

    words: str
    wrong: Callable[[pl.Expr], pl.Expr]  # of numbers that are there
    what: str = "value"
    may_be_boolean: bool = False  # also in text files

    def check(self, inputs: Sequence[Input], name: str, drop_nulls: bool) -> None:
        """Raise an error about the first value that breaks it."""
        missing, where, rows = 0, "", 0
        for source in inputs:
            with reading(source, name):
                n, absent, first, bad, got, is_none = self._first_bad(source, name)
            if bad is not None:
                words = "must hold numbers" if is_none and not self.may_be_boolean else self.words
                place = f"{source.name}, row {bad}"
                raise ValueError(f"{place}: column {name!r} {words}, got {got!r}")
            where = where or (f"{source.name}, row {first}" if absent else "")
            missing, rows = missing + absent, rows + n
        if missing and not drop_nulls:
            raise ValueError(
                f"column {name!r} must have a value in every row, got {missing} null or NaN, "
                f"the first in {where}; --nulls drop leaves such rows out"
            )
        if missing == rows:
            raise ValueError(f"column {name!r} must hold at least one {self.what}, got none")

    def _first_bad(self, source: Input, name: str) -> tuple[Any, ...]:
        """Return how many rows a file has, and lack a value; the first ones without, and bad.

        And what the bad one is, and whether it is no number.
        """
        is_text = source.is_text
        if self.may_be_boolean and is_text:
            is_text = source.scan(typed=True).collect_schema()[name] != pl.Boolean
        (given,), row = named(name), pl.col("row")
        number = given.cast(pl.Float64)
        if is_text:
            number = as_number(given, comma=has_commas(source.beginning(name)[name]))
        frame = source.scan(typed=not is_text, text=[name] if is_text else ())
        frame = frame.select(number.alias("number"), given.alias("given"))
        frame = frame.with_row_index("row", offset=1)
        number, given = pl.col("number"), pl.col("given")
        absent, bad = number.is_null() | number.is_nan(), self.wrong(number.fill_nan(None))
        if is_text:
            bad |= number.is_null() & (given.str.strip_chars() != "")
        firsts = (pl.when(rows).then(row).min() for rows in (absent, bad))
        asked = [pl.len(), absent.sum(), *firsts]
        counts = frame.select(each.alias(str(i)) for i, each in enumerate(asked))
        *found, first = counts.collect(engine="streaming").row(0)
        if first is None:
            return *found, None, None, False
        ((value, text),) = frame.filter(row == first).select(number, given).collect().rows()
        return *found, first, text if value is None else value, value is None


PROBABILITY = Rule("must be in [0, 1]", lambda p: (p < 0.0) | (p > 1.0), "probability")


@dataclass(frozen=True)
class Column:
    """A column of probabilities or scores in one or more files."""

    inputs: Sequence[Input]
    name: str
    drop_nulls: bool = False
    as_text: Sequence[str] = ()  # columns of text files whose values stay as they are written
    factor: float | None = None  # by which the odds of all probabilities are multiplied first
    label: str | None = None  # the column to be added, so that no helper takes its name
    rules: Mapping[str, Rule] | None = None  # of columns that are not one of probabilities
    progress: Progress = False

    @cached_property
    def p(self) -> str:
        """A name that no column has, for floats as they are, and other numbers as doubles."""
        taken = {self.label} if self.label else set()
        for source in self.inputs:
            with reading(source):
                taken.update(source.scan().collect_schema())
        (name,) = unused(taken, ["argmaxf_p"])
        return name

    @contextmanager
    def naming_errors(self, beside: Iterable[str] = ()) -> Iterator[None]:
        """Where reading all files as one fails, read each on its own and name file and row."""
        try:
            yield
            return
        except GuaranteeError:
            raise
        except (ValueError, Unusable, NotAProbability, *BROKEN) as error:
            failed = error
        self.diagnose(beside)
        raise ValueError(first_line(failed)) from failed

    def diagnose(self, beside: Iterable[str] = ()) -> None:
        """Raise an error about the first value that cannot be used, or read in columns `beside`."""
        for name, rule in (self.rules or {self.name: PROBABILITY}).items():
            rule.check(self.inputs, name, self.drop_nulls)
        for source in self.inputs:
            read_columns(source, beside)

    def begin(self) -> Callable[[], Advance]:
        """Return what begins a pass over the files."""
        return partial(phase, self.progress, "reading", count_rows(self.inputs))

    def table(
        self, frame: pl.LazyFrame, by: Sequence[str] = (), output: str | None = None
    ) -> Table:
        """Return the probabilities of a frame of these files as a table."""
        table = Table.of(frame, self.p, by or None, output=output, has_order=True)
        is_text = any(source.is_text for source in self.inputs)
        return replace(table, reads_again=not is_text, begin=self.begin())

    def frame(self, *, typed: bool = False, only: Sequence[str] | None = None) -> pl.LazyFrame:
        """Scan all files as one, without the rows to drop; some columns beside `p`, or all."""
        frame = self._as_one(partial(self.scan, typed=typed, only=only))
        if self.drop_nulls:
            frame = frame.filter(pl.col(self.p).is_not_null() & pl.col(self.p).is_not_nan())
        return frame

    def typed(self, names: Iterable[str]) -> pl.LazyFrame:
        """Scan some columns of all files as one, as they are."""
        columns = dict.fromkeys(names)

        def scan(source: Input) -> pl.LazyFrame:
            refuse_absent(source, *columns)
            return source.scan(typed=True, text=self.as_text).select(named(*columns))

        return self._as_one(scan)

    def _as_one(self, scan: Callable[[Input], pl.LazyFrame]) -> pl.LazyFrame:
        """Scan all files as one; rows of text must have as many fields as the header."""
        frames = [scan(source) for source in self.inputs]
        for source in self.inputs:
            if source.is_text:
                refuse_ragged(source)
        return pl.concat(frames, how="vertical_relaxed") if len(frames) > 1 else frames[0]

    def scan(
        self, source: Input, *, typed: bool = False, only: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """Scan some columns of a file or all, and the probabilities as `p`."""
        refuse_absent(source, self.name)
        with reading(source, self.name):
            frame = source.scan(typed=typed, text=[self.name, *self.as_text])
            (column,), kind = named(self.name), frame.collect_schema()[self.name]
            # a file may write probabilities as 0,5
            comma = source.is_text and has_commas(source.beginning(self.name)[self.name])
        if source.is_text:
            number = as_number(column, comma=comma)
            is_none = number.is_null() & (column.str.strip_chars() != "")  # blank text is missing
            p = pl.when(is_none).then(pl.lit(2.0)).otherwise(self._moved(number))
            frame = frame.with_columns(p.alias(self.p))
            frame = frame.with_columns(number.alias(self.name)) if typed else frame
        elif kind.is_numeric() or kind == pl.Boolean:
            is_float = self.factor is None and kind in (pl.Float32, pl.Float64)
            number = column if is_float else self._moved(column.cast(pl.Float64))
            frame = frame.with_columns(number.alias(self.p))
        else:
            raise ValueError(f"{source.name}: column {self.name!r} must hold numbers, got {kind}")
        return frame if only is None else frame.select(named(*only, self.p))

    def _moved(self, given: pl.Expr) -> pl.Expr:
        """Return probabilities with their odds moved; what is none stays none."""
        return given if self.factor is None else move_odds(given, self.factor)


def named(*names: str) -> list[pl.Expr]:
    """Return columns by their names, none of which is a pattern."""
    return [selectors.by_name(name).as_expr() for name in names]


def refuse_absent(source: Input, *names: str) -> None:
    """Refuse the names of columns that a file does not have."""
    with reading(source):
        there = list(source.scan().collect_schema())
    for name in names:
        if name not in there:
            raise ValueError(f"{source.name}: no column {name!r}; it has {there}")


def read_columns(source: Input, names: Iterable[str]) -> None:
    """Read columns on their own, to name the one that cannot be read."""
    for name in names:
        with reading(source, name):  # in batches, a panic of Polars would pass for the end
            (column,) = named(name)
            source.scan(typed=True).select(column.null_count()).collect(engine="streaming")


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
