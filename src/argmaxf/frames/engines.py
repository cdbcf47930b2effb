"""What is particular to each engine, in one table; everything else is Narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
from narwhals import Implementation

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]
Columns = dict[str, list[Any]]


class Engine:
    """How an engine runs a query, joins a small table, and gets one from here."""

    def run(self, frame: Frame) -> nw.DataFrame[Any]:
        """Run a query; a frame in memory is its own result."""
        return frame.collect() if isinstance(frame, nw.LazyFrame) else frame

    def join(self, frame: Frame, small: Frame, on: Sequence[str], how: Any) -> Frame:
        """Join a small table to each row."""
        joined: Frame = frame.join(small, on=list(on), how=how)  # type: ignore[arg-type]
        return joined

    def bring(self, table: Columns, frame: Frame, by: Sequence[str]) -> Frame:
        """Make a table that can be joined to a frame on the columns `by`."""
        schema = frame.collect_schema()
        small = nw.from_dict(table, backend=frame.implementation)
        return small.with_columns(nw.col(name).cast(schema[name]) for name in by)


class Polars(Engine):
    """Polars: queries run out of core; joins may shuffle rows unless told not to."""

    def run(self, frame: Frame) -> nw.DataFrame[Any]:  # noqa: D102
        return frame.collect(engine="streaming") if isinstance(frame, nw.LazyFrame) else frame

    def join(self, frame: Frame, small: Frame, on: Sequence[str], how: Any) -> Frame:  # noqa: D102
        rows, other = frame.to_native(), small.to_native()
        return as_frame(rows.join(other, on=list(on), how=how, maintain_order="left"))

    def bring(self, table: Columns, frame: Frame, by: Sequence[str]) -> Frame:  # noqa: D102
        small = super().bring(table, frame, by)
        return small.lazy() if isinstance(frame, nw.LazyFrame) else small


class DuckDB(Engine):
    """DuckDB: relations of different connections cannot be joined, so tables go into the query."""

    def bring(self, table: Columns, frame: Frame, by: Sequence[str]) -> Frame:  # noqa: D102
        relation = frame.to_native()
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        casts = [f"CAST({{}} AS {types.get(name, 'DOUBLE')})" for name in table]
        rows = (
            ", ".join(
                cast.format(_quoted(str(value), "'"))
                for cast, value in zip(casts, row, strict=True)
            )
            for row in zip(*table.values(), strict=True)
        )
        names = ", ".join(_quoted(name, '"') for name in table)
        query = f"SELECT * FROM (VALUES ({'), ('.join(rows)})) AS segments({names})"
        return as_frame(relation.query("argmaxf_rows", query))


class Dask(Engine):
    """Dask: minds if text is not of the same kind on both sides of a join."""

    def bring(self, table: Columns, frame: Frame, by: Sequence[str]) -> Frame:  # noqa: D102
        small = nw.from_dict(table, backend="pandas").lazy(frame.implementation)
        dtypes = {name: frame.to_native().dtypes[name] for name in by}
        return as_frame(small.to_native().astype(dtypes))


class Spark(Engine):
    """Spark: tables arrive as Arrow, in the frame's own session."""

    def bring(self, table: Columns, frame: Frame, by: Sequence[str]) -> Frame:  # noqa: D102
        small = nw.from_dict(table, backend="pyarrow")
        session = getattr(frame.to_native(), "sparkSession", None)
        return small.lazy(frame.implementation, session=session)


PLAIN = Engine()
ENGINES: dict[Implementation, Engine] = {
    Implementation.POLARS: Polars(),
    Implementation.DUCKDB: DuckDB(),
    Implementation.DASK: Dask(),
    Implementation.PYSPARK: Spark(),
    Implementation.PYSPARK_CONNECT: Spark(),
    Implementation.SQLFRAME: Spark(),
}


def engine_of(frame: Frame) -> Engine:
    """Return what is particular to the engine that holds a frame."""
    return ENGINES.get(frame.implementation, PLAIN)


def as_frame(native: Any) -> Frame:
    """Wrap a frame of any engine."""
    frame: Frame = nw.from_native(native)
    return frame


def _quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, 2 * mark) + mark
