"""Columns of numbers in batches of rows: one place that reads them from any engine.

Batches are arrays in the order of rows, views of the engine's own memory where its type allows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import chain
from queue import Empty, Queue
from typing import Any, TypeVar

import narwhals as nw
from narwhals import Implementation
from numpy.typing import NDArray

from argmaxf.frames.engines import Frame, as_frame

BATCH_ROWS = 1 << 19
AHEAD = 4  # batches that wait, partitions that are read at once
BROUGHT = 1 << 24  # rows that Spark hands over at a time
T = TypeVar("T")
Arrays = tuple[NDArray[Any], ...]


def column_batches(
    frame: Frame, columns: Sequence[str], rows: int = BATCH_ROWS, *, ordered: bool = True
) -> Iterator[Arrays]:
    """Yield the columns of a frame as arrays, about so many rows at a time; null is NaN.

    A query runs once, and the engine streams its result where it can: Polars and DuckDB do, Dask
    gives a few partitions after the other, Spark the parts of a large result. Polars joins many
    times faster where rows need not be `ordered`.
    """
    selected = frame.select(*columns)
    if selected.implementation is Implementation.POLARS and isinstance(selected, nw.LazyFrame):
        batches = polars_batches(selected.to_native(), rows, ordered=ordered)
        yield from (tuple(column.to_numpy() for column in batch) for batch in batches)
    else:
        yield from _READERS.get(selected.implementation, _from_slices)(selected, rows)


def polars_batches(query: Any, rows: int = BATCH_ROWS, *, ordered: bool = True) -> Iterator[Any]:
    """Run a lazy query of Polars out of core; yield data frames, in the order of rows if asked for.

    Unlike `collect_batches`, which just ends where Polars panics, this raises every error.
    """
    ready: Queue[Any] = Queue(AHEAD)
    ended: list[bool] = []

    def take(batch: Any) -> bool:
        ready.put(batch)
        return bool(ended)  # whether no more batches are wanted

    def work() -> None:
        error: BaseException | None = None
        try:
            query.sink_batches(take, chunk_size=rows, maintain_order=ordered, engine="streaming")
        except BaseException as caught:  # panics are no Exception
            error = caught
        ready.put(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while (batch := ready.get()) is not None:
            if isinstance(batch, BaseException):
                raise batch
            yield batch
    finally:
        ended.append(True)
        while thread.is_alive():  # it may wait until what is ready is taken
            with suppress(Empty):
                ready.get(timeout=0.01)


def _from_slices(frame: Frame, rows: int) -> Iterator[Arrays]:
    """Read a frame in memory."""
    eager: Any = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    for start in range(0, len(eager), rows):
        yield tuple(column.to_numpy() for column in eager[start : start + rows].iter_columns())


def on_partitions(frame: Frame, work: Callable[[Any], T], at_once: int) -> Iterator[T]:
    """Do some work on the partitions of a frame of Dask, where they are, so many at once."""
    dask: Any = import_module("dask")
    parts = frame.to_native().to_delayed()
    for first in range(0, len(parts), at_once):
        yield from dask.compute(*map(dask.delayed(work), parts[first : first + at_once]))


def _from_spark(frame: Frame, rows: int) -> Iterator[Arrays]:
    """Bring a large result in parts, by the hash of the first column: Spark streams only objects.

    Unlike numbers of rows, a hash parts rows that come in another order each time.
    """
    from pyspark.sql import functions

    native = frame.to_native()
    size = native.count()
    parts = functions.lit(-(-size // BROUGHT))
    part = functions.pmod(functions.xxhash64(native.columns[0]), parts)
    for i in range(-(-size // BROUGHT)):
        brought = native.filter(part == i) if size > BROUGHT else native
        yield from _arrays(brought.toArrow().to_batches(max_chunksize=rows))


def _arrays(batches: Any) -> Iterator[Arrays]:
    """Return the columns of Arrow's record batches: without a copy where there are no nulls."""
    for batch in batches:
        if batch.num_rows:
            yield tuple(column.to_numpy(zero_copy_only=False) for column in batch.columns)


_READERS: dict[Implementation, Callable[[Frame, int], Iterator[Arrays]]] = {
    # as chunks lie in memory, which are not joined
    Implementation.PYARROW: lambda f, rows: _arrays(f.to_native().to_batches(max_chunksize=rows)),
    Implementation.DUCKDB: lambda f, rows: _arrays(f.to_native().to_arrow_reader(rows)),
    Implementation.DASK: lambda f, rows: chain.from_iterable(
        _from_slices(part, rows) for part in on_partitions(f, as_frame, AHEAD)
    ),
    Implementation.PYSPARK: _from_spark,
    Implementation.PYSPARK_CONNECT: _from_spark,
}
