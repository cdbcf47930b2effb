"""Small tables with one row for each segment, brought to the engine and joined there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from argmaxf.engines.grouping import Frame, as_frame

LOW, HIGH = "argmaxf_low", "argmaxf_high"


def within(
    frame: Frame, by: Sequence[str], column: str, bands: Mapping[tuple[Any, ...], tuple[float, ...]]
) -> Frame:
    """Keep the rows whose probability lies in the band of their segment."""
    p = nw.col(column)
    if not by:
        low, high = bands[()]
        return frame.filter((p >= low) & (p <= high))
    joined = joined_to(frame, by, bands, (LOW, HIGH), how="inner")
    return joined.filter((p >= nw.col(LOW)) & (p <= nw.col(HIGH))).drop(LOW, HIGH)


def joined_to(
    frame: Frame,
    by: Sequence[str],
    values: Mapping[tuple[Any, ...], tuple[float, ...]],
    names: Sequence[str],
    *,
    how: Any,
) -> Frame:
    """Add to each row the values of its segment, as columns of the given names."""
    columns = [*zip(*values, strict=True), *zip(*values.values(), strict=True)]
    table = dict(zip([*by, *names], map(list, columns), strict=True))
    small = _like(frame, by, table)
    if frame.implementation.is_polars():  # the only engine that may shuffle rows unless told not to
        rows, other = frame.to_native(), small.to_native()
        return as_frame(rows.join(other, on=list(by), how=how, maintain_order="left"))
    joined: Frame = frame.join(small, on=list(by), how=how)  # type: ignore[arg-type]
    return joined


def _like(frame: Frame, by: Sequence[str], table: dict[str, list[Any]]) -> Frame:
    """Make a small frame that the engine of another one can join."""
    schema = frame.collect_schema()
    engine = frame.implementation
    if engine.is_duckdb():
        return _in_duckdb(frame, table)
    here = isinstance(frame, nw.DataFrame) or engine.is_polars()
    backend = engine if here else "pandas" if engine.is_dask() else "pyarrow"
    small = nw.from_dict(table, backend=backend)
    if here:
        small = small.with_columns(nw.col(name).cast(schema[name]) for name in by)
    if isinstance(frame, nw.DataFrame):
        return small
    if engine.is_polars():
        return small.lazy()
    native = frame.to_native()
    lazy = small.lazy(engine, session=getattr(native, "sparkSession", None))
    if engine.is_dask():  # which minds if text is not of the same kind
        dtypes = {name: native.dtypes[name] for name in by}
        return as_frame(lazy.to_native().astype(dtypes))
    return lazy


def _in_duckdb(frame: Frame, table: dict[str, list[Any]]) -> Frame:
    """Write the table into a query: relations of different connections cannot be joined."""
    relation = frame.to_native()
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    casts = [f"CAST({{}} AS {types.get(name, 'DOUBLE')})" for name in table]
    rows = (
        ", ".join(
            cast.format(_quoted(str(value), "'")) for cast, value in zip(casts, row, strict=True)
        )
        for row in zip(*table.values(), strict=True)
    )
    names = ", ".join(_quoted(name, '"') for name in table)
    query = f"SELECT * FROM (VALUES ({'), ('.join(rows)})) AS segments({names})"
    return as_frame(relation.query("argmaxf_rows", query))


def _quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, 2 * mark) + mark
