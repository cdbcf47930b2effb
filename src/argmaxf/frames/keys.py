"""The keys of segments as Python values, for people; nothing is computed with them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import narwhals as nw

from argmaxf.frames.base import Frame
from argmaxf.frames.engines import engine_of

Key = tuple[Any, ...]


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
    """Return time stamps in UTC, where no hour comes twice, and nanoseconds as NumPy's."""
    kind = column.dtype
    if isinstance(kind, nw.Datetime) and kind.time_zone:
        column = column.dt.convert_time_zone("UTC")
    if isinstance(kind, nw.Datetime | nw.Duration) and kind.time_unit == "ns":
        code = "datetime64[ns]" if isinstance(kind, nw.Datetime) else "timedelta64[ns]"
        return list(column.to_numpy().astype(code))
    return column.to_list()
