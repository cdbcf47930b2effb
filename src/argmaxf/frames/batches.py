"""Columns of numbers in batches of rows: one place that reads them from any engine.

Batches are arrays in the order of rows, views of the engine's own memory where its type allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import narwhals as nw
from narwhals import Implementation
from numpy.typing import NDArray

from argmaxf.frames.engines import Frame

BATCH_ROWS = 1 << 18
Arrays = tuple[NDArray[Any], ...]


def column_batches(
    frame: Frame, columns: Sequence[str], rows: int = BATCH_ROWS
) -> Iterator[Arrays]:
    """Yield the columns of a frame as arrays, about so many rows at a time; null is NaN.

    A query runs once, and the engine streams its result where it can: Polars and DuckDB do, Dask
    gives one partition after another, Spark its whole result.
    """
    selected = frame.select(*columns)
    yield from _READERS.get(selected.implementation, _from_slices)(selected, rows)


def polars_batches(query: Any, rows: int = BATCH_ROWS) -> Iterator[Any]:
    """Run a lazy query of Polars out of core; yield data frames in the order of rows."""
    yield from query.collect_batches(chunk_size=rows, maintain_order=True, engine="streaming")


def _from_slices(frame: Frame, rows: int) -> Iterator[Arrays]:
    """Read a frame in memory."""
    eager: Any = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    for start in range(0, len(eager), rows):
        part = eager[start : start + rows]
        yield tuple(part[name].to_numpy() for name in part.columns)


def _from_polars(frame: Frame, rows: int) -> Iterator[Arrays]:
    if isinstance(frame, nw.DataFrame):
        yield from _from_slices(frame, rows)
        return
    for batch in polars_batches(frame.to_native(), rows):
        yield tuple(column.to_numpy() for column in batch)


def _from_arrow(frame: Frame, rows: int) -> Iterator[Arrays]:
    """Read Arrow's batches one by one: as they lie in memory, without joining chunks."""
    yield from _arrays(frame.to_native().to_batches(max_chunksize=rows))


def _from_duckdb(frame: Frame, rows: int) -> Iterator[Arrays]:
    yield from _arrays(frame.to_native().to_arrow_reader(rows))


def _from_dask(frame: Frame, rows: int) -> Iterator[Arrays]:
    for part in frame.to_native().partitions:
        yield from _from_slices(nw.from_native(part.compute(), eager_only=True), rows)


def _from_spark(frame: Frame, rows: int) -> Iterator[Arrays]:
    yield from _arrays(frame.to_native().toArrow().to_batches(max_chunksize=rows))


def _arrays(batches: Any) -> Iterator[Arrays]:
    """Return the columns of Arrow's record batches: without a copy where there are no nulls."""
    for batch in batches:
        if batch.num_rows:
            yield tuple(column.to_numpy(zero_copy_only=False) for column in batch.columns)


_READERS: dict[Implementation, Callable[[Frame, int], Iterator[Arrays]]] = {
    Implementation.POLARS: _from_polars,
    Implementation.PYARROW: _from_arrow,
    Implementation.DUCKDB: _from_duckdb,
    Implementation.DASK: _from_dask,
    Implementation.PYSPARK: _from_spark,
    Implementation.PYSPARK_CONNECT: _from_spark,
}
