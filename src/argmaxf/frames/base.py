"""What an engine is asked to do, and how one without quirks that we know of does it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from argmaxf._base.arrays import Floats

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]
Values = Mapping[str, Floats]  # columns with one number for each segment
NAMELESS = -1  # the number of rows with a null or NaN key
CHANGED = "the frame must have the same rows each time it is read"


class Numbered(NamedTuple):
    """A frame with the number of each row's segment, and the keys with theirs."""

    frame: Frame
    keys: Frame


class Engine:
    """A lazy frame whose engine has no quirks we know of."""

    folds_case = False  # whether "Label" and "label" are the same column

    def is_pattern(self, name: str) -> bool:
        """Tell whether the engine takes the name of a column for more than that."""
        return False

    def run(self, frame: Frame) -> nw.DataFrame[Any]:
        """Run a query; a frame in memory is its own result."""
        return frame.collect() if isinstance(frame, nw.LazyFrame) else frame

    def number(self, frame: Frame, by: Sequence[str], name: str) -> Numbered:
        """Number the segments of `by` from 0, in a new column; NAMELESS where a key is missing."""
        keys = self.settle(distinct(frame, by), name)
        rows = self.join(frame, keys, by).with_columns(nw.col(name).fill_null(NAMELESS))
        return Numbered(rows, keys)

    def look_up(self, frame: Frame, name: str, values: Values) -> Frame:
        """Add to each row the values of the segment with its number."""
        return self.join(frame, self.bring(frame, _with_numbers(name, values)), [name])

    def refusals(self) -> tuple[type[Exception], ...]:
        """Return what the engine raises when it cannot group by a type."""
        return (TypeError, NotImplementedError)

    def settle(self, keys: Frame, name: str) -> Frame:
        """Number distinct keys once and for all, so that every pass sees the same numbers."""
        numbered: Frame = keys.with_row_index(name, order_by=keys.collect_schema().names())
        return numbered

    def bring(self, frame: Frame, table: Mapping[str, Any]) -> Frame:
        """Make a table of numbers that can be joined to a frame."""
        return nw.from_dict(table, backend="pyarrow").lazy(frame.implementation)

    def join(self, frame: Frame, small: Frame, on: Sequence[str]) -> Frame:
        """Join a small table to each row."""
        joined: Frame = frame.join(small, on=list(on), how="left")  # type: ignore[arg-type]
        return joined


def as_frame(native: Any) -> Frame:
    """Wrap a frame of any engine."""
    frame: Frame = nw.from_native(native)
    return frame


def with_arrays(frame: Frame, arrays: Mapping[str, Any]) -> Frame:
    """Add arrays to a frame in memory as columns."""
    backend = frame.implementation
    series = [nw.new_series(name, array, backend=backend) for name, array in arrays.items()]
    return frame.with_columns(*series)


def distinct(frame: Frame, by: Iterable[str]) -> Frame:
    """Return the keys of segments, each once, in the engine's own types; none with a null."""
    names = list(by)
    keys = frame.select(*names).group_by(*names).agg(nw.len().alias("argmaxf_rows"))
    found: Frame = keys.filter(~missing(frame, names)).select(*names)
    return found


def missing(frame: Frame, by: Iterable[str]) -> nw.Expr:
    """Tell where some key is null or NaN."""
    schema = frame.collect_schema()
    tests = [nw.col(name).is_null() for name in by]
    tests += [nw.col(name).is_nan() for name in by if schema[name].is_float()]
    return nw.any_horizontal(*tests, ignore_nulls=True).alias("missing")


def _with_numbers(name: str, values: Values) -> dict[str, Any]:
    return {name: np.arange(len(next(iter(values.values())))), **values}
