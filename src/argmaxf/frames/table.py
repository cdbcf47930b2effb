"""A frame as a user gives it: checked, and the probabilities beside the number of their segment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from typing import Any

import narwhals as nw
import numpy as np

from argmaxf._base.arrays import Ints
from argmaxf._base.validation import check_choice
from argmaxf.frames.engines import NOT_GROUPED, Frame, Numbered, engine_of, missing, unused
from argmaxf.frames.rows import SEGMENT, P, Rows, Rule, number
from argmaxf.prior import check_fits, factor_of, move_odds

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """A frame, its columns of probabilities, and the segments of its rows."""

    frame: Frame
    columns: tuple[str, ...]
    outputs: tuple[str, ...]  # the columns of labels, one for each of `columns`
    number: str | None = None  # the column of `frame` with the number of each row's segment
    keys: Frame | None = None  # of the segments, each with its number
    sizes: Ints | None = None  # of the segments
    factors: tuple[float, ...] | None = None  # what the odds of each column are multiplied by
    has_order: bool = False  # whether rows come in the same order each time
    reads_again: bool = True  # whether reading is as quick as from a temporary file
    begin: Callable[[], Callable[[int], None]] | None = None  # of a pass; told of rows read then

    @classmethod
    def of(
        cls,
        frame: Any,
        column: str | Sequence[str],
        by: str | Sequence[str] | None = None,
        nulls: str = "raise",
        output: str | None = None,
        prior: Any = None,
        *,
        has_order: bool = False,
        beside: Sequence[str] = (),
        begin: Callable[[], Callable[[int], None]] | None = None,
    ) -> Table:
        """Check what a user gave, and number the segments; eager frames always have an order.

        Columns `beside` the numbers may be of any type.
        """
        try:
            rows = nw.from_native(frame)
        except TypeError:
            path = isinstance(frame, str | PathLike)
            hint = "; for a file use the command `argmaxf decide`, or read it first" if path else ""
            kind = type(frame).__name__
            raise TypeError(f"frame must be a data frame, got {kind}{hint}") from None
        columns, names = names_of(column), names_of(by)
        has_order = has_order or isinstance(rows, nw.DataFrame)
        check_columns(rows, columns, names, beside)
        factors = None if prior is None else _factors(prior, len(columns))
        outputs = () if output is None else _outputs(rows, columns, output)
        if check_choice("nulls", nulls, ("raise", "drop")) == "drop":
            rows = rows.filter(~missing(rows, (*columns, *beside)))
        if not names:
            return cls(rows, columns, outputs, factors=factors, has_order=has_order, begin=begin)
        (name,) = unused([*rows.collect_schema(), *outputs], [SEGMENT])
        frame, keys, sizes = _numbered(rows, names, name)
        return cls(frame, columns, outputs, name, keys, sizes, factors, has_order, begin=begin)

    @property
    def is_eager(self) -> bool:
        """Whether the rows are in memory."""
        return isinstance(self.frame, nw.DataFrame)

    @property
    def segments(self) -> int:
        """How many segments the rows have."""
        return 1 if self.sizes is None else self.sizes.size

    def rows(self, j: int) -> Rows:
        """Return the probabilities of column j, and the numbers of their segments if there are any.

        Floats are as they are, other numbers and moved probabilities in double precision.
        """
        name = self.columns[j]
        is_float = self.frame.collect_schema()[name] in (nw.Float32, nw.Float64)
        p = nw.col(name) if is_float and self.factors is None else self.p(name)
        given = number(name)
        rule = Rule(name, "must be in [0, 1]", (given < 0.0) | (given > 1.0))
        items = self.frame.select(p.alias(P), *self.segment)
        return Rows(self.frame, items, (rule,), "probability", self.number, self.begin)

    @property
    def segment(self) -> list[nw.Expr]:
        """The numbers of the segments of rows, if there are any."""
        return [nw.col(self.number).alias(SEGMENT)] if self.number else []

    def p(self, column: str) -> nw.Expr:
        """Return a column of probabilities in double precision, its odds moved."""
        given = number(column)
        if self.factors is None:
            return given
        moved: nw.Expr = move_odds(given, self.factors[self.columns.index(column)])
        return moved

    def python_keys(self) -> list[Key]:
        """Return the key of each segment as Python values, for people."""
        return [()] if self.keys is None else python_keys(self.keys, str(self.number))


def names_of(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return a name, several or none as a tuple."""
    if given is None or isinstance(given, str):
        return () if given is None else (given,)
    names = tuple(given) if isinstance(given, Iterable) else (given,)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a column must be given by its name, a text, got {name!r}")
    return names


def _factors(prior: Any, columns: int) -> tuple[float, ...]:
    """Return what the odds of each column are multiplied by."""
    factor = factor_of(prior)
    check_fits(factor, "columns", (columns,))
    return tuple(np.broadcast_to(factor, columns).tolist())


def check_columns(
    frame: Frame, columns: tuple[str, ...], by: tuple[str, ...], beside: Sequence[str] = ()
) -> None:
    """Refuse names that are no column, or several to the engine, and columns without numbers."""
    schema = frame.collect_schema()
    if not columns and not beside:
        raise ValueError("name at least one column of probabilities, got none")
    for name in (*columns, *beside, *by):
        if name not in schema:
            raise ValueError(f"the frame has no column {name!r}; it has {list(schema)}")
    for what, names in (("column", (*columns, *beside)), ("by", by)):
        if len(set(names)) < len(names):
            raise ValueError(f"{what} must name each column once, got {list(names)}")
    for name in (*columns, *beside):
        if name in by:
            raise ValueError(
                f"by must not hold a column of probabilities, scores or labels, got {list(by)}"
            )
    for name in columns:
        if not (schema[name].is_numeric() or schema[name] == nw.Boolean):
            raise ValueError(f"column {name!r} must hold numbers, got {schema[name]}")
    for name in filter(engine_of(frame).is_pattern, (*columns, *beside, *by)):
        raise ValueError(
            f"column {name!r} must have another name: {frame.implementation.name} "
            "takes this one for a pattern"
        )


def _outputs(frame: Frame, columns: tuple[str, ...], output: str) -> tuple[str, ...]:
    """Return the names of the columns of labels; refuse those that the frame has already."""
    several = len(columns) > 1
    outputs = tuple(f"{column}_{output}" if several else output for column in columns)
    fold = str.lower if engine_of(frame).folds_case else str
    there = {fold(name) for name in frame.collect_schema().names()}
    for name in outputs:
        if fold(name) in there:
            raise ValueError(f"output must be the name of a new column, got {name!r}")
    return outputs


def _numbered(frame: Frame, by: tuple[str, ...], name: str) -> Numbered:
    """Number the segments, or say why the engine cannot."""
    engine, schema = engine_of(frame), frame.collect_schema()
    try:
        return engine.number(frame, by, name)
    except Exception as error:
        if not NOT_GROUPED & {kind.__name__ for kind in type(error).__mro__}:
            raise
        kinds = ", ".join(f"{each} ({schema[each]})" for each in by)
        kind = frame.implementation.value
        raise ValueError(f"by must be of types that {kind} can group, got {kinds}") from error


def python_keys(keys: Frame, number: str) -> list[Key]:
    """Return the keys in the order of their numbers, each a tuple that is like no other."""
    names = [name for name in keys.collect_schema().names() if name != number]
    table = engine_of(keys).run(keys).sort(number)
    found = list(zip(*(_values(table[name]) for name in names), strict=True))
    if len(set(found)) == len(found):
        return found
    text = keys.with_columns(nw.col(name).cast(nw.String) for name in names)
    table = engine_of(keys).run(text).sort(number)
    return list(zip(*(table[name].to_list() for name in names), strict=True))


def _values(column: nw.Series[Any]) -> list[Any]:
    """Return a column as Python values, or else in the first form that tells them apart."""
    forms: list[Callable[[], list[Any]]] = [
        lambda: _as_python(column),
        lambda: column.cast(nw.String).to_list(),
        lambda: column.cast(nw.Int64).to_list(),  # times finer than Python's
    ]
    for form in forms:
        with suppress(Exception):  # every engine has its own way to say that it cannot
            values = form()
            if len(set(values)) == column.n_unique():
                return values
    return [repr(value) for value in column.to_list()]


def _as_python(column: nw.Series[Any]) -> list[Any]:
    """Return time stamps in UTC, where no hour comes twice, and nanoseconds as NumPy's.

    NumPy has no time zones: zoned nanoseconds are text.
    """
    kind = column.dtype
    zone = kind.time_zone if isinstance(kind, nw.Datetime) else None
    if zone:
        column = column.dt.convert_time_zone("UTC")
    if isinstance(kind, nw.Datetime | nw.Duration) and kind.time_unit == "ns":
        code = "datetime64[ns]" if isinstance(kind, nw.Datetime) else "timedelta64[ns]"
        fine = list(column.to_numpy().astype(code))
        return [f"{each}+00:00" for each in fine] if zone else fine
    return column.to_list()
