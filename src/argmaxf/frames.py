"""Data frames of any engine Narwhals knows: the exact decision where the rows are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import narwhals as nw
import numpy as np

from argmaxf.engines.grouping import Frame, P, eager, summarized
from argmaxf.engines.lookup import joined_to
from argmaxf.engines.segments import (
    BITS,
    LEAST,
    Key,
    Segment,
    checked,
    decide_segments,
    sketch_table,
)
from argmaxf.expected.decision import Decision
from argmaxf.expected.groups import Bools, Floats, Ints
from argmaxf.expected.optimum import Question
from argmaxf.expected.sketch import ProbabilitySketch
from argmaxf.validation import check_choice

THRESHOLD, TIES = "argmaxf_threshold", "argmaxf_ties"
ROW, SEGMENT, COLUMN = "argmaxf_row", "argmaxf_segment", "argmaxf_column"

Limits = dict[Key, tuple[float, float]]  # threshold and selected ties of each segment

T = TypeVar("T")


def summarize(frame: Any, column: str, *, nulls: str = "raise") -> ProbabilitySketch:
    """Return the mergeable summary of a column of probabilities, made by the frame's engine.

    Parameters
    ----------
    frame
        Any frame Narwhals knows, eager or lazy: pandas, Polars, PyArrow, DuckDB, Dask, PySpark.
    column
        Its column of probabilities; decimals and float32 are computed in float64.
    nulls
        ``"raise"`` refuses rows without a probability, ``"drop"`` leaves them out.

    Notes
    -----
    One pass, a group-by in the engine; at most 7,364 groups come back.

    Examples
    --------
    >>> import polars as pl
    >>> a = summarize(pl.DataFrame({"p": [0.05, 0.45, 0.1]}), "p")
    >>> b = summarize(pl.LazyFrame({"p": [0.3, 0.4]}), "p")
    >>> (a + b).n
    5
    """
    table = _Table.of(frame, column, None, nulls)
    rows = checked(summarized(table.items, (), BITS, LEAST), ())
    return ProbabilitySketch.from_table(sketch_table(rows))


def decide(
    frame: T,
    column: str | Sequence[str],
    *,
    beta: float = 1.0,
    by: str | Sequence[str] | None = None,
    output: str = "label",
    measure: str = "fbeta",
    zero_division: float = 0.0,
    ties: str = "together",
    nulls: str = "raise",
) -> T:
    """Return the frame with a column of labels added, those with the highest expected F.

    The labels are those of `maximize_expected_f`. The engine of the frame does the work, and a lazy
    frame stays lazy: the threshold is found now, the labels are made when the frame is collected.

    Parameters
    ----------
    frame
        Any frame Narwhals knows, eager or lazy: pandas, Polars, PyArrow, DuckDB, Dask, PySpark.
    column
        Its column of probabilities; decimals and float32 are computed in float64. Several columns,
        one for each label of a multilabel problem, are decided each on its own in the same passes.
    beta, measure, zero_division
        As in `maximize_expected_f`.
    by
        Columns that part the rows into segments, each decided on its own, all in the same passes.
    output
        Name of the column of booleans to add; for several columns ``"{column}_{output}"``.
    ties
        ``"together"`` gives equal probabilities of a segment the same label, so that the answer
        does not depend on the order of rows; ``"split"``, for eager frames only, may select just
        the first ones of them.
    nulls
        ``"raise"`` refuses rows without a probability, ``"drop"`` leaves them out of the result.

    Notes
    -----
    Two or three passes over the column: a group-by of all rows, then one of a narrow band of
    probabilities, until at most 131,072 items are left to be counted one by one.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"p": [0.05, 0.45, 0.1, 0.3, 0.4]})
    >>> decide(frame, "p")["label"].to_list()
    [False, True, False, True, True]
    """
    solved = solve(
        frame,
        column,
        beta=beta,
        by=by,
        measure=measure,
        zero_division=zero_division,
        ties=ties,
        nulls=nulls,
    )
    labelled: T = solved.labelled(output)
    return labelled


def decisions(
    frame: Any,
    column: str | Sequence[str],
    *,
    beta: float = 1.0,
    by: str | Sequence[str] | None = None,
    measure: str = "fbeta",
    zero_division: float = 0.0,
    ties: str = "together",
    nulls: str = "raise",
) -> dict[Key, Decision]:
    """Return k, threshold, expected F and its spread of each segment, without labels.

    The keys are tuples of the values of `by`, and the column where there are several; without
    either there is one, the empty tuple. The parameters are those of `decide`.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"p": [0.9, 0.2, 0.3, 0.4], "s": ["a", "a", "b", "b"]})
    >>> {key: d.k for key, d in sorted(decisions(frame, "p", by="s").items())}
    {('a',): 1, ('b',): 2}
    """
    return solve(
        frame,
        column,
        beta=beta,
        by=by,
        measure=measure,
        zero_division=zero_division,
        ties=ties,
        nulls=nulls,
    ).decisions


def solve(
    frame: Any,
    column: str | Sequence[str],
    *,
    beta: float,
    by: str | Sequence[str] | None,
    measure: str,
    zero_division: float,
    ties: str,
    nulls: str,
) -> Solved:
    """Find the threshold of each segment; the parameters are those of `decide`."""
    question = Question.of(beta, measure, zero_division, ties)
    table = _Table.of(frame, column, by, nulls)
    if question.split_ties and isinstance(table.frame, nw.LazyFrame):
        raise ValueError(
            "ties='split' needs rows in a fixed order, which a lazy frame of "
            f"{table.frame.implementation.value} does not promise; use ties='together'"
        )
    return Solved(table, decide_segments(table.items, table.keys, question), question)


@dataclass(frozen=True)
class _Table:
    """A frame, its columns of probabilities, and the columns that part it into segments."""

    frame: Frame
    columns: tuple[str, ...]
    by: tuple[str, ...]

    @classmethod
    def of(
        cls, frame: Any, column: str | Sequence[str], by: str | Sequence[str] | None, nulls: str
    ) -> _Table:
        """Check what a user gave."""
        try:
            narwhal = nw.from_native(frame)
        except TypeError:
            raise TypeError(f"frame must be a data frame, got {type(frame).__name__}") from None
        columns, names = _names(column), _names(by)
        _check_columns(narwhal.collect_schema(), columns, names)
        if check_choice("nulls", nulls, ("raise", "drop")) == "drop":
            narwhal = narwhal.filter(*(~_missing(name) for name in columns))
        return cls(narwhal, columns, names)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of `items` that tell segments apart."""
        return (*self.by, COLUMN) if len(self.columns) > 1 else self.by

    @property
    def items(self) -> Frame:
        """The probabilities in double precision, with their segments; columns one after another."""
        if len(self.columns) == 1:
            return self.frame.select(*self.by, _number(self.columns[0]).alias(P))
        parts: list[Any] = [
            self.frame.select(*self.by, nw.lit(name).alias(COLUMN), _number(name).alias(P))
            for name in self.columns
        ]
        stacked: Frame = nw.concat(parts)
        return stacked

    def labelled(self, limits: Limits, output: str) -> Frame:
        """Add the labels, given the threshold and the selected ties of each segment."""
        if len(self.columns) == 1:
            return _labelled(self.frame, self.columns[0], self.by, limits, output)
        frame = self.frame
        for name in self.columns:
            own = {key[:-1]: limit for key, limit in limits.items() if key[-1] == name}
            frame = _labelled(frame, name, self.by, own, f"{name}_{output}")
        return frame


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _check_columns(schema: nw.Schema, columns: tuple[str, ...], by: tuple[str, ...]) -> None:
    """Refuse names that the frame does not have, and columns that hold no numbers."""
    if not columns:
        raise ValueError("name at least one column of probabilities, got none")
    for name in (*columns, *by):
        if name not in schema:
            raise ValueError(f"the frame has no column {name!r}; it has {list(schema)}")
    for name in columns:
        if name in by:
            raise ValueError(f"by must not hold the column of probabilities, got {list(by)}")
        if not (schema[name].is_numeric() or schema[name] == nw.Boolean):
            raise ValueError(f"column {name!r} must hold numbers, got {schema[name]}")


def _labelled(frame: Frame, column: str, by: tuple[str, ...], limits: Limits, output: str) -> Frame:
    """Add the labels of one column."""
    if isinstance(frame, nw.DataFrame):
        label = _labels(frame, column, by, limits)
        return frame.with_columns(
            nw.new_series(output, label, nw.Boolean, backend=frame.implementation)
        )
    p = _number(column)
    if not by:
        return frame.with_columns((p >= limits[()][0]).alias(output))
    joined = joined_to(frame, by, limits, (THRESHOLD, TIES), how="left")
    return joined.with_columns((p >= nw.col(THRESHOLD)).alias(output)).drop(THRESHOLD, TIES)


def _labels(frame: nw.DataFrame[Any], column: str, by: tuple[str, ...], limits: Limits) -> Bools:
    """Return the labels of a frame in memory, in the order of its rows."""
    p = frame.select(_number(column)).to_numpy()[:, 0]
    segment = np.zeros(p.size, np.int64)
    if by:
        numbers = {key: (float(i),) for i, key in enumerate(limits)}
        rows = frame.select(*by).with_row_index(ROW)
        joined = joined_to(rows, by, numbers, (SEGMENT,), how="left").sort(ROW)
        segment = eager(joined)[SEGMENT].to_numpy().astype(np.int64)
    threshold, ties = np.array(list(limits.values())).T
    return top_items(p, segment, threshold, ties)


@dataclass(frozen=True)
class Solved:
    """The thresholds of a frame's segments, found; labels still to be made."""

    table: _Table
    segments: dict[Key, Segment]
    question: Question

    @property
    def decisions(self) -> dict[Key, Decision]:
        """The decision of each segment."""
        return {key: segment.decision(self.question) for key, segment in self.segments.items()}

    def labelled(self, output: str) -> Any:
        """Return the frame with its labels."""
        if output in (*self.table.columns, *self.table.by):
            raise ValueError(f"output must be the name of a new column, got {output!r}")
        limits = {key: segment.limits() for key, segment in self.segments.items()}
        return self.table.labelled(limits, output).to_native()


def top_items(p: Floats, segment: Ints, threshold: Floats, ties: Floats) -> Bools:
    """Mark what is above its segment's threshold, and the first `ties` of those equal to it."""
    selected: Bools = p > threshold[segment]
    equal = np.flatnonzero(p == threshold[segment])
    equal = equal[np.argsort(segment[equal], kind="stable")]
    _, first, of = np.unique(segment[equal], return_index=True, return_inverse=True)
    rank = np.arange(equal.size) - first[of]
    selected[equal[rank < ties[segment[equal]]]] = True
    return selected


def _number(column: str) -> nw.Expr:
    return nw.col(column).cast(nw.Float64)


def _missing(column: str) -> nw.Expr:
    return _number(column).is_null() | _number(column).is_nan()
