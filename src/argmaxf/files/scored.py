"""Files with a column of scores: decided, tuned and summarized as one lazy frame of Polars.

Every bad value is named by file and row, and labelled rows are written all or not at all. The
column of probabilities of text files is read once, and where it is too long for memory written to
a temporary file, 8 bytes a row: parsing it again would take longer.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from argmaxf._base.atomic_write import refuse_inputs, writing, written_whole
from argmaxf._base.lazy import cached_property
from argmaxf._base.validation import NotAProbability, Unusable, check_choice, check_unit_interval
from argmaxf.empirical.cuts import CutProblem
from argmaxf.empirical.guarantees import GuaranteeError
from argmaxf.empirical.threshold import Threshold
from argmaxf.expected.decision import Decision
from argmaxf.expected.sketch import ProbabilitySketch, groups_of_sketch
from argmaxf.expected.values import value_of_sets
from argmaxf.files.inputs import (
    BROKEN,
    SEPARATORS,
    Input,
    find_inputs,
    first_line,
    is_zipped,
    kind_of,
    named,
    reading,
    refuse_names,
)
from argmaxf.frames.engines import unused
from argmaxf.frames.labelled import LabelledRows, best_thresholds, evaluate
from argmaxf.frames.solve import Decisions, rate_of, sketch_of, solve
from argmaxf.frames.table import Key, P, Table
from argmaxf.measures import Interval
from argmaxf.prior import factor_of, move_odds
from argmaxf.problem import Problem

Progress = bool | Callable[[str, int, int | None], None]  # phase, rows so far, rows in all
Wrong = Callable[[pl.Expr], Any]  # of numbers that are there


@dataclass(frozen=True)
class ScoredFiles:
    """Files, folders, patterns or "-" with a column of scores, and where labelled rows go.

    Memory does not grow with the number of rows. `prior` has the rates of positives in training
    and in these rows. `progress` is False, or a function of the phase, the rows so far and those
    in all, None if unknown. `label` is the column of true labels, if they are known, `weight` that
    of weights, `positive` the positive label as text. `inputs` are the files once they are found.
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

    def decide(self, problem: Problem | None = None) -> Decisions:
        """Decide the rows; write them with labels if there is an output.

        Returns one decision for each segment of `by`, or a single one under the empty tuple; with
        chance constraints `overall` is of all segments.
        """
        with self._opened() as files:
            frame, output = files._rows_to_write(files.by), files.added if files._writes else None
            with files.naming_errors(files.by):
                solved = solve(files._table(frame, files.by, output), problem or Problem.of())
            files._write(solved.labelled)
            return solved.decisions

    def select(self, threshold: float, problem: Problem | None = None) -> Decision:
        """Label rows by a threshold decided elsewhere: p ≥ threshold is selected."""
        cut = np.float64(check_unit_interval("threshold", threshold))  # no float32, as p may be
        problem = problem or Problem.of()
        chosen, rest = ProbabilitySketch(), ProbabilitySketch()
        with self._opened() as files:
            frame = files._rows_to_write(only=())
            with files.naming_errors():
                for batch in files._table(frame).rows(0).batches():
                    chosen.update(batch[P][batch[P] >= cut])
                    rest.update(batch[P][batch[P] < cut])
            n = chosen.n + rest.n
            if not n:
                files.diagnose()
            files._write(partial(files._above, frame, pl.lit(cut, pl.Float64)))
        value = value_of_sets(groups_of_sketch(chosen), groups_of_sketch(rest), problem)
        return Decision(None, chosen.n, float(cut), value.mean, value.std, problem.beta, n)

    def tune(self, problem: CutProblem) -> Threshold:
        """Return the best threshold on labelled rows, as `tune` does; write the predictions."""
        with self._opened() as files:
            rows = files._rows_to_write(only=()) if files._writes else None
            with files.naming_errors():
                best = best_thresholds(files._labelled, problem)
            files._write(lambda: files._predicted(rows, best))
        return best

    def summarize(self) -> Any:
        """Return the summary of the column, or of labelled rows, in one pass."""
        with self._opened() as files, files.naming_errors():
            if files.label is not None:
                return files._labelled.sketch()
            return sketch_of(files._table(files.frame(only=())).rows(0))

    def estimate(self, train_rate: float) -> Interval:
        """Return the most likely rate of positives, in one pass, with its 95 % interval."""
        if "-" in self.names:
            raise ValueError(
                "estimating the rate needs a pass of its own, and - can be read only once; "
                "pass a file"
            )
        return rate_of(self.summarize(), train_rate)

    def evaluate(self, **options: Any) -> Interval | dict[Key, Interval]:
        """Return F of the predictions in the column, as `evaluate` does."""
        options |= {"label": self.label, "predicted": self.column}
        options |= {"by": self.by or None, "nulls": self.nulls}
        with self._opened() as files, files.naming_errors():
            frame = files._labelled_frame
            return evaluate(frame, pos_label=files._pos_label(frame), **options)

    @contextmanager
    def _opened(self) -> Iterator[ScoredFiles]:
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

    # Reading

    @cached_property
    def p(self) -> str:
        """A name that no column has, for floats as they are, and other numbers as doubles."""
        columns = {name for source in self.inputs for name in source.columns}
        (name,) = unused(columns | {str(self.added)}, ["argmaxf_p"])
        return name

    def frame(self, *, typed: bool = False, only: Sequence[str] | None = None) -> pl.LazyFrame:
        """Scan all files as one, without the rows to drop; some columns beside `p`, or all."""
        columns = self.inputs[0].columns
        for source in self.inputs if only is None else ():
            if source.columns != columns:
                odd = sorted(set(source.columns) ^ set(columns)) or source.columns
                raise ValueError(
                    f"{source.name}: rows to write must have the columns of {self.inputs[0].name} "
                    f"in the same order; see {odd[0]!r}"
                )
        frame = self._as_one(partial(self._scan, typed=typed, only=only))
        if self.nulls == "drop":
            frame = frame.filter(pl.col(self.p).is_not_null() & pl.col(self.p).is_not_nan())
        return frame

    def _scan(self, source: Input, typed: bool, only: Sequence[str] | None) -> pl.LazyFrame:
        """Scan some columns of a file or all, and the probabilities, their odds moved, as `p`."""
        source.refuse_absent(self.column)
        with reading(source, self.column):
            frame = source.scan(typed=typed, text=[self.column, *self.by])
            (column,), kind = named(self.column), frame.collect_schema()[self.column]
            number = source.number(self.column)
        p = number if self.prior is None else move_odds(number, float(factor_of(self.prior)))
        if source.is_text:
            is_none = number.is_null() & (column.str.strip_chars() != "")  # blank text is missing
            frame = frame.with_columns(pl.when(is_none).then(2.0).otherwise(p).alias(self.p))
            frame = frame.with_columns(number.alias(self.column)) if typed else frame
        elif kind.is_numeric() or kind == pl.Boolean:
            is_float = self.prior is None and kind in (pl.Float32, pl.Float64)
            frame = frame.with_columns((column if is_float else p).alias(self.p))
        else:
            raise ValueError(f"{source.name}: column {self.column!r} must hold numbers, got {kind}")
        return frame if only is None else frame.select(named(*only, self.p))

    def _as_one(self, scan: Callable[[Input], pl.LazyFrame]) -> pl.LazyFrame:
        """Scan all files as one; rows of text must have as many fields as the header."""
        frames = [scan(source) for source in self.inputs]
        for source in self.inputs:
            if source.is_text:
                source.refuse_ragged()
        return pl.concat(frames, how="vertical_relaxed") if len(frames) > 1 else frames[0]

    def _table(
        self, frame: pl.LazyFrame, by: Sequence[str] = (), output: str | None = None
    ) -> Table:
        """Return the probabilities of a frame of these files as a table."""
        begin = partial(self._phase, "reading")
        table = Table.of(frame, self.p, by or None, output=output, has_order=True, begin=begin)
        return replace(table, reads_again=not any(source.is_text for source in self.inputs))

    @property
    def _labelled(self) -> LabelledRows:
        """Labels, scores and weights of all files."""
        frame, by = self._labelled_frame, self.by or None
        columns = str(self.label), self.column, self.weight, by, self.nulls, self._pos_label(frame)
        begin = partial(self._phase, "reading")
        return LabelledRows.of(frame, *columns, has_order=True, begin=begin)

    @property
    def _labelled_frame(self) -> pl.LazyFrame:
        """The columns of labelled rows of all files as one, as they are."""
        columns = filter(None, (self.label, self.column, self.weight, *self.by))
        chosen = named(*dict.fromkeys(columns))
        return self._as_one(lambda each: each.scan(typed=True, text=self.by).select(chosen))

    def _pos_label(self, frame: pl.LazyFrame) -> Any:
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

    def _phase(self, title: str) -> Callable[[int], None]:
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
        counts = [source.scan().select(pl.len()) for source in self.inputs]
        return sum(int(count.item()) for count in pl.collect_all(counts))

    # Naming what cannot be used

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
        if self.label is None:
            words = "must be in [0, 1]"
            self._check(self.column, words, lambda p: (p < 0) | (p > 1), "probability")
        else:
            self._check(self.column, "", lambda score: pl.lit(False), "score")
            if self.weight:
                words = "must be finite and not negative"
                self._check(self.weight, words, lambda w: (w < 0) | w.is_infinite())
            if self.positive is None:
                self._check(self.label, "must hold 0 and 1", lambda y: ~y.is_in([0.0, 1.0]))
        for source in self.inputs:
            source.read(beside)

    def _check(self, name: str, rule: str, wrong: Wrong, what: str = "value") -> None:
        """Raise an error about the first number of a column that breaks a rule."""
        missing, where, rows, may_be_boolean = 0, "", 0, name == self.label
        for source in self.inputs:
            source.refuse_absent(name)
            with reading(source, name):
                cells = _cells(source, name, wrong, may_be_boolean)
                bad = cells.filter("wrong").head(1).collect(engine="streaming")
                counts = cells.select(
                    pl.len(), pl.sum("absent"), pl.col("row").filter("absent").min()
                )
                n, absent, first = counts.collect(engine="streaming").row(0)
            for row, number, given, *_ in bad.iter_rows():
                words = "must hold numbers" if number is None and not may_be_boolean else rule
                got = given if number is None else number
                raise ValueError(f"{source.name}, row {row}: column {name!r} {words}, got {got!r}")
            where = where or (f"{source.name}, row {first}" if absent else "")
            missing, rows = missing + absent, rows + n
        if missing and self.nulls == "raise":
            raise ValueError(
                f"column {name!r} must have a value in every row, got {missing} null or NaN, "
                f"the first in {where}; --nulls drop leaves such rows out"
            )
        if missing == rows:
            raise ValueError(f"column {name!r} must hold at least one {what}, got none")

    # Writing

    @property
    def _writes(self) -> bool:
        """Whether there is an output of rows."""
        return bool(self.output and self.added)

    def _rows_to_write(self, only: Sequence[str]) -> pl.LazyFrame:
        """Return the rows to write, and the probabilities as `p`; refuse an odd output.

        From text to text, values are copied as they are written. Without an output, return some
        columns beside `p`.
        """
        if not self._writes:
            return self.frame(only=only)
        inputs, path, columns = self.inputs, self.output or Path(), self.inputs[0].columns
        kind = kind_of(path)
        refuse_names([path])
        if len({source.is_text for source in inputs}) > 1:
            raise ValueError(
                "the inputs must be all text files, or none of them, to write their rows"
            )
        if self.added in columns:
            raise ValueError(
                f"{inputs[0].name}: there is a column {self.added!r} already; choose another "
                "--label"
            )
        return self.frame(typed=not (kind in SEPARATORS and inputs[0].is_text))

    def _above(self, rows: pl.LazyFrame, threshold: pl.Expr) -> pl.LazyFrame:
        """Add labels: whether probabilities reach a threshold."""
        return rows.with_columns((pl.col(self.p) >= threshold).alias(str(self.added)))

    def _predicted(self, rows: Any, best: Threshold) -> pl.LazyFrame:
        """Add the predictions, of each segment at its threshold."""
        if best.segment is None:
            return self._above(rows, pl.lit(best.threshold, pl.Float64))
        schema = rows.collect_schema()
        (threshold,) = unused([*schema, str(self.added)], ["argmaxf_threshold"])
        keys = [key if isinstance(key, tuple) else (key,) for key in best.segment.tolist()]
        columns = dict(zip(self.by, zip(*keys, strict=True), strict=True))
        table = pl.LazyFrame({**columns, threshold: best.threshold})
        table = table.cast({name: schema[name] for name in self.by})
        joined = rows.join(table, on=list(self.by), how="left", maintain_order="left")
        return self._above(joined, pl.col(threshold)).drop(threshold)

    def _write(self, labelled: Callable[[], pl.LazyFrame]) -> None:
        """Write labelled rows as a stream, if there is an output; zipped the same each time."""
        if not self._writes:
            return
        advance, path, frame = self._phase("writing"), self.output or Path(), labelled()

        def counted(labels: pl.Series) -> pl.Series:
            advance(labels.len())
            return labels

        if self.progress is not False:
            count: Any = {"return_dtype": pl.Boolean, "is_elementwise": True}
            frame = frame.with_columns(pl.col(str(self.added)).map_batches(counted, **count))
        frame, kind, options = frame.drop(self.p), kind_of(path), {}
        sinks: dict[str, Any] = {"parquet": frame.sink_parquet, "arrow": frame.sink_ipc}
        if kind in SEPARATORS:
            opens = all(each.is_text and each.separator == ";" for each in self.inputs)
            options["separator"] = ";" if kind == "csv" and opens else SEPARATORS[kind]
        with written_whole(path) as temporary, writing(path):
            try:
                with _target(path, temporary) as target:
                    sinks.get(kind, frame.sink_csv)(target, **options)
            except BROKEN as error:
                if getattr(error, "strerror", None):  # in Python, which zips
                    raise
                if "os error" not in str(error):  # nothing wrong with the disk: an input, perhaps
                    for source in self.inputs:
                        source.read(source.columns)
                raise OSError(f"{path}: cannot be written: {first_line(error)}") from error


@contextmanager
def _target(path: Path, temporary: Path) -> Iterator[Any]:
    """Yield what Polars writes to: a file, or one that zips, the same each time."""
    if not is_zipped(path):
        yield temporary
        return
    with temporary.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as zipped:
        yield zipped


def _cells(source: Input, name: str, wrong: Wrong, may_be_boolean: bool) -> pl.LazyFrame:
    """Return a column as numbers, null where one is none, as it is given, and what is wrong."""
    is_text = source.is_text
    if may_be_boolean and is_text:
        is_text = source.scan(typed=True).collect_schema()[name] != pl.Boolean
    (given,), number = named(name), pl.col("number")
    cells = source.scan(typed=not is_text, text=[name] if is_text else ())
    values = source.number(name) if is_text else given.cast(pl.Float64)
    cells = cells.select(values.alias("number"), given.alias("given")).with_row_index("row", 1)
    bad = wrong(number.fill_nan(None))
    if is_text:  # blank text is missing
        bad |= number.is_null() & (pl.col("given").str.strip_chars() != "")
    return cells.with_columns(wrong=bad, absent=number.is_null() | number.is_nan())
