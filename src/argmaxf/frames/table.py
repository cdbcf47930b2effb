"""A frame as a user gives it: checked, its probabilities beside their segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from argmaxf.frames.engines import Frame
from argmaxf.frames.grouping import P
from argmaxf.validation import check_choice

COLUMN = "argmaxf_column"


@dataclass(frozen=True)
class Table:
    """A frame, its columns of probabilities, and the columns that part it into segments."""

    frame: Frame
    columns: tuple[str, ...]
    by: tuple[str, ...]

    @classmethod
    def of(
        cls, frame: Any, column: str | Sequence[str], by: str | Sequence[str] | None, nulls: str
    ) -> Table:
        """Check what a user gave."""
        try:
            narwhal = nw.from_native(frame)
        except TypeError:
            raise TypeError(f"frame must be a data frame, got {type(frame).__name__}") from None
        columns, names = names_of(column), names_of(by)
        _check_columns(narwhal.collect_schema(), columns, names)
        if check_choice("nulls", nulls, ("raise", "drop")) == "drop":
            narwhal = narwhal.filter(*(~missing(name) for name in columns))
        return cls(narwhal, columns, names)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of `items` that tell segments apart."""
        return (*self.by, COLUMN) if len(self.columns) > 1 else self.by

    @property
    def items(self) -> Frame:
        """The probabilities in double precision, with their segments; columns one after another."""
        if len(self.columns) == 1:
            return self.frame.select(*self.by, number(self.columns[0]).alias(P))
        parts: list[Any] = [
            self.frame.select(*self.by, nw.lit(name).alias(COLUMN), number(name).alias(P))
            for name in self.columns
        ]
        stacked: Frame = nw.concat(parts)
        return stacked


def names_of(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return a name, several or none as a tuple."""
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


def number(column: str) -> nw.Expr:
    """Return a column in double precision."""
    return nw.col(column).cast(nw.Float64)


def missing(column: str) -> nw.Expr:
    """Tell which rows have no probability."""
    return number(column).is_null() | number(column).is_nan()
