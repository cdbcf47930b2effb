"""The keys of segments as Python values, for people; nothing is computed with them."""

from __future__ import annotations

from typing import Any

import narwhals as nw

Key = tuple[Any, ...]


def python_keys(keys: nw.DataFrame[Any]) -> list[Key]:
    """Return each row as a tuple that can be told from every other."""
    return list(zip(*(_values(keys[name]) for name in keys.columns), strict=True))


def _values(column: nw.Series[Any]) -> list[Any]:
    """Return a column as Python values, or as text where Python cannot tell them apart."""
    try:
        values = _as_python(column)
        if len(set(values)) == column.n_unique():
            return values
    except (TypeError, ValueError):  # nested values, or times finer than Python's
        pass
    try:
        return column.cast(nw.String).to_list()
    except Exception:  # every engine has its own way to say that it cannot
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
