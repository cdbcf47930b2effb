"""Files with a column of scores: read as a stream, every bad value named by file and row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from argmaxf._base.atomic_write import refuse_inputs
from argmaxf._base.lazy import cached_property
from argmaxf._base.validation import NotAProbability, Unusable, check_choice
from argmaxf.empirical.guarantees import GuaranteeError
from argmaxf.files.inputs import BROKEN, Input, find_inputs, first_line, named, reading
from argmaxf.frames.engines import unused
from argmaxf.frames.labelled import LabelledRows
from argmaxf.frames.table import Table
from argmaxf.prior import factor_of, move_odds

Progress = bool | Callable[[str, int, int | None], None]  # phase, rows so far, rows in all
Advance = Callable[[int], None]  # told how many more rows are done


class Rule(NamedTuple):
    """What a column of numbers must hold."""

    column: str
    words: str
    wrong: Callable[[pl.Expr], pl.Expr]  # of numbers that are there
    what: str = "value"
    may_be_boolean: bool = False  # also in text files


@dataclass(frozen=True)
class ScoredFiles:
    """Files, folders, patterns or "-" with a column of scores, and where labelled rows go.

    `prior` has the rates of positives in training and in these rows. `progress` is False, or a
    function of the phase, the rows so far and those in all, None if unknown. `label` is the column
    of true labels, if they are known, `weight` that of weights, `positive` the positive label as
    text. `inputs` are the files once they are found.
    """

    names: Sequence[str]
    column: str
    by: Sequence[str] = ()
    nulls: str = "raise"
    prior: tuple[float, Any] | None = None
    output: Path | None = None
    added: str | None = "label"  # the column of labels to write; None for an output without rows
    progress: Progress = False
    label: str | None = None
    weight: str | None = None
    positive: str | None = None
    inputs: Sequence[Input] = ()

    @contextmanager
    def opened(self) -> Iterator[ScoredFiles]:
        """Find the files, and check the columns in them; `output` must be none of them."""
        check_choice("nulls", self.nulls, ("raise", "drop"))
        with ExitStack() as stack:
            inputs = find_inputs(self.names, stack)
            refuse_inputs([self.output], [source.origin for source in inputs])
            if self.column in self.by:
                raise ValueError(f"--by must not be the column of scores, got {self.column!r}")
            for source in inputs:
                source.refuse_absent(self.column, self.label, self.weight, *self.by)
            yield replace(self, inputs=inputs)

    @property
    def rules(self) -> list[Rule]:
        """What the columns must hold: probabilities, or scores with labels."""
        if self.label is None:
            wrong = lambda p: (p < 0.0) | (p > 1.0)  # noqa: E731
            return [Rule(self.column, "must be in [0, 1]", wrong, "probability")]
        rules = [Rule(self.column, "", lambda score: pl.lit(False), "score")]
        if self.weight:
            words = "must be finite and not negative"
            rules.append(Rule(self.weight, words, lambda w: (w < 0.0) | w.is_infinite()))
        if self.positive is None:
            wrong = lambda y: ~y.is_in([0.0, 1.0])  # noqa: E731
            rules.append(Rule(self.label, "must hold 0 and 1", wrong, may_be_boolean=True))
        return rules

    @cached_property
    def p(self) -> str:
        """A name that no column has, for floats as they are, and other numbers as doubles."""
        taken = {self.added} if self.added else set()
        for source in self.inputs:
            taken.update(source.columns)
        (name,) = unused(taken, ["argmaxf_p"])
        return name

    @cached_property
    def factor(self) -> float | None:
        """What the odds of all probabilities are multiplied by first."""
        return None if self.prior is None else float(factor_of(self.prior))

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
        for rule in self.rules:
            self._check(rule)
        for source in self.inputs:
            source.read(beside)

    def _check(self, rule: Rule) -> None:
        """Raise an error about the first value that breaks a rule."""
        name, missing, where, rows = rule.column, 0, "", 0
        for source in self.inputs:
            with reading(source, name):
                n, absent, first, bad, value, text = _first_bad(source, rule)
            if bad is not None:
                is_none = value is None
                words = "must hold numbers" if is_none and not rule.may_be_boolean else rule.words
                got = text if is_none else value
                raise ValueError(f"{source.name}, row {bad}: column {name!r} {words}, got {got!r}")
            where = where or (f"{source.name}, row {first}" if absent else "")
            missing, rows = missing + absent, rows + n
        if missing and self.nulls == "raise":
            raise ValueError(
                f"column {name!r} must have a value in every row, got {missing} null or NaN, "
                f"the first in {where}; --nulls drop leaves such rows out"
            )
        if missing == rows:
            raise ValueError(f"column {name!r} must hold at least one {rule.what}, got none")

    def phase(self, title: str) -> Advance:
        """Begin a phase of work over all rows; return what is told how many more are done."""
        done, rows = 0, self._rows

        def advance(more: int) -> None:
            nonlocal done
            done += more
            if callable(self.progress):
                self.progress(title, done, rows)

        advance(0)
        return advance

    @cached_property
    def _rows(self) -> int | None:
        """The number of rows where files say it without being read."""
        if any(source.is_text for source in self.inputs):
            return None
        rows = 0
        for source in self.inputs:
            with reading(source):
                rows += int(source.scan().select(pl.len()).collect().item())
        return rows

    def table(
        self, frame: pl.LazyFrame, by: Sequence[str] = (), output: str | None = None
    ) -> Table:
        """Return the probabilities of a frame of these files as a table."""
        begin = partial(self.phase, "reading")
        table = Table.of(frame, self.p, by or None, output=output, has_order=True, begin=begin)
        return replace(table, reads_again=not any(source.is_text for source in self.inputs))

    def labelled(self) -> LabelledRows:
        """Return labels, scores and weights of all files."""
        frame = self.labelled_frame()
        more: Any = {"has_order": True, "begin": partial(self.phase, "reading")}
        columns = str(self.label), self.column, self.weight, self.by or None, self.nulls
        return LabelledRows.of(frame, *columns, self.pos_label(frame), **more)

    def pos_label(self, frame: pl.LazyFrame) -> Any:
        """Return the positive label in the type of its column."""
        kind = frame.collect_schema()[str(self.label)]
        if self.positive is None or not (kind.is_numeric() or kind == pl.Boolean):
            return self.positive
        try:
            return float(self.positive)
        except ValueError:
            raise ValueError(
                f"column {self.label!r} holds numbers, so --positive must be one; "
                f"got {self.positive!r}"
            ) from None

    def labelled_frame(self) -> pl.LazyFrame:
        """Scan the columns of labelled rows of all files as one, as they are."""
        columns = filter(None, (self.label, self.column, self.weight, *self.by))
        chosen = named(*dict.fromkeys(columns))
        return self._as_one(lambda each: each.scan(typed=True, text=self.by).select(chosen))

    def frame(self, *, typed: bool = False, only: Sequence[str] | None = None) -> pl.LazyFrame:
        """Scan all files as one, without the rows to drop; some columns beside `p`, or all."""
        frame = self._as_one(partial(self.scan, typed=typed, only=only))
        if self.nulls == "drop":
            frame = frame.filter(pl.col(self.p).is_not_null() & pl.col(self.p).is_not_nan())
        return frame

    def _as_one(self, scan: Callable[[Input], pl.LazyFrame]) -> pl.LazyFrame:
        """Scan all files as one; rows of text must have as many fields as the header."""
        frames = [scan(source) for source in self.inputs]
        for source in self.inputs:
            if source.is_text:
                source.refuse_ragged()
        return pl.concat(frames, how="vertical_relaxed") if len(frames) > 1 else frames[0]

    def scan(
        self, source: Input, *, typed: bool = False, only: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """Scan some columns of a file or all, and the probabilities as `p`."""
        source.refuse_absent(self.column)
        with reading(source, self.column):
            frame = source.scan(typed=typed, text=[self.column, *self.by])
            (column,), kind = named(self.column), frame.collect_schema()[self.column]
            number = source.number(self.column)
        if source.is_text:
            is_none = number.is_null() & (column.str.strip_chars() != "")  # blank text is missing
            p = pl.when(is_none).then(pl.lit(2.0)).otherwise(self._moved(number))
            frame = frame.with_columns(p.alias(self.p))
            frame = frame.with_columns(number.alias(self.column)) if typed else frame
        elif kind.is_numeric() or kind == pl.Boolean:
            is_float = self.factor is None and kind in (pl.Float32, pl.Float64)
            frame = frame.with_columns((column if is_float else self._moved(number)).alias(self.p))
        else:
            raise ValueError(f"{source.name}: column {self.column!r} must hold numbers, got {kind}")
        return frame if only is None else frame.select(named(*only, self.p))

    def _moved(self, given: pl.Expr) -> pl.Expr:
        """Return probabilities with their odds moved; what is none stays none."""
        return given if self.factor is None else move_odds(given, self.factor)


def _first_bad(source: Input, rule: Rule) -> tuple[Any, ...]:
    """Return how many rows a file has, and lack a value; the first ones without, and bad.

    And what the bad one is as a number, None if it is none, and as it is written.
    """
    name, is_text = rule.column, source.is_text
    if rule.may_be_boolean and is_text:
        is_text = source.scan(typed=True).collect_schema()[name] != pl.Boolean
    (given,), row = named(name), pl.col("row")
    number = source.number(name) if is_text else given.cast(pl.Float64)
    frame = source.scan(typed=not is_text, text=[name] if is_text else ())
    frame = frame.select(number.alias("number"), given.alias("given"))
    number, given = pl.col("number"), pl.col("given")
    absent, bad = number.is_null() | number.is_nan(), rule.wrong(number.fill_nan(None))
    if is_text:
        bad |= number.is_null() & (given.str.strip_chars() != "")
    firsts = (
        e.filter(at).first() for e, at in ((row, absent), *((e, bad) for e in (row, number, given)))
    )
    asked = (each.alias(str(i)) for i, each in enumerate((pl.len(), absent.sum(), *firsts)))
    query = frame.with_row_index("row", offset=1).select(*asked)
    return query.collect(engine="streaming").row(0)
