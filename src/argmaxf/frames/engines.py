"""What is particular to each engine, in one table; everything else is Narwhals.

Engines are recognised without being imported. Segments are numbered inside the engine, by its own
group-by: no value of a key leaves it for a comparison, so whatever the engine takes for equal is
one segment. Only numbers travel, in batches: arrays in the order of rows, views of the engine's own
memory where its type allows.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from queue import Empty, Queue
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
from narwhals import Implementation
from numpy.typing import NDArray

from argmaxf._base.arrays import Ints

T = TypeVar("T")
Arrays = tuple[NDArray[Any], ...]

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]
NO_SEGMENT = -1  # the number of rows with a null or NaN key
# What engines raise when they cannot group by a type, by name: they are not imported.
NOT_GROUPED = {"TypeError", "NotImplementedError", "InvalidOperationError", "SchemaError"}
NOT_GROUPED |= {"ArrowException", "PySparkException"}
BATCH_ROWS = 1 << 19
AHEAD = 4  # batches that wait, partitions that are read at once
BROUGHT = 1 << 24  # rows that Spark hands over at a time


class Engine:
    """A lazy frame whose engine needs no special treatment that we know of."""

    folds_case = False  # whether "Label" and "label" are the same column
    patterns = "(?!)"  # names of columns that the engine takes for more than that: none

    def is_pattern(self, name: str) -> bool:
        """Whether the engine takes the name of a column for more than that."""
        return re.fullmatch(self.patterns, name, re.DOTALL) is not None

    def run(self, frame: Frame) -> nw.DataFrame[Any]:
        """Run a query; a frame in memory is its own result."""
        return frame.collect() if isinstance(frame, nw.LazyFrame) else frame

    def sample(self, frame: Frame, share: float) -> Frame:
        """Return about such a share of the rows, or more of them."""
        return frame

    def batches(self, frame: Frame, *, ordered: bool = True) -> Iterator[Arrays]:
        """Yield the columns of a frame as arrays, BATCH_ROWS rows at a time; null is NaN.

        A query runs once, and its result is streamed where the engine can. Polars joins many times
        faster where rows need not be `ordered`.
        """
        eager = self.run(frame)
        for start in range(0, len(eager), BATCH_ROWS):
            rows = eager[start : start + BATCH_ROWS]
            yield tuple(column.to_numpy() for column in rows.iter_columns())

    def number(self, frame: Frame, by: Sequence[str], name: str) -> tuple[Frame, Frame, Ints]:
        """Number the segments of `by` from 0 in a new column; NO_SEGMENT where a key is missing.

        Return the frame with it, the keys with theirs, and the sizes of the segments.
        """
        # Keys get plain names: to DuckDB "a.b" is column b of table a
        wanted = ["argmaxf_rows", *(f"argmaxf_key_{i}" for i in range(len(by)))]
        size, *plain = unused([*frame.collect_schema(), name], wanted)
        pairs = zip(by, plain, strict=True)
        rows = frame.with_columns(key_of(frame, old).alias(new) for old, new in pairs)
        keys = self.number_keys(distinct(rows, plain, size), name)
        sizes = self.run(keys.select(name, size)).sort(name)[size].to_numpy().astype(np.int64)
        keys = keys.drop(size)
        number = nw.col(name).fill_null(NO_SEGMENT).cast(nw.Int64)
        rows = self.join(rows, keys, plain).with_columns(number).drop(*plain)
        return rows, keys, sizes

    def number_keys(self, keys: Frame, name: str) -> Frame:
        """Number distinct keys once and for all, so that every pass sees the same numbers."""
        numbered: Frame = keys.with_row_index(name, order_by=keys.collect_schema().names())
        return numbered

    def from_arrays(self, frame: Frame, table: Mapping[str, Any]) -> Frame:
        """Make a table of numbers that can be joined to a frame."""
        session = getattr(frame.to_native(), "sparkSession", None)
        return nw.from_dict(table, backend="pyarrow").lazy(frame.implementation, session=session)

    def join(self, frame: Frame, small: Frame, on: Sequence[str]) -> Frame:
        """Join a small table to each row."""
        joined: Frame = frame.join(small, on=list(on), how="left")  # type: ignore[arg-type]
        return joined


class InMemory(Engine):
    """Frames in memory: numbers are arrays beside the rows, and nothing is joined."""

    def number(  # noqa: D102
        self, frame: Frame, by: Sequence[str], name: str
    ) -> tuple[Frame, Frame, Ints]:
        keys = self.run(frame.select(*(key_of(frame, column) for column in by)))
        keys = nw.maybe_reset_index(keys)  # it may have a key's name
        row = np.arange(len(keys))
        rows = with_arrays(keys, {name: row})
        first = rows.select(nw.col(name).min().over(*by))[name].to_numpy()  # of each row's segment
        absent = keys.select(missing(keys, by))["missing"].to_numpy().astype(bool)
        starts = np.flatnonzero((first == row) & ~absent)
        numbers = np.full(row.size, NO_SEGMENT)
        numbers[starts] = np.arange(starts.size)
        found = with_arrays(keys[starts], {name: numbers[starts]})
        number = numbers[first]
        sizes = np.bincount(number[number >= 0], minlength=starts.size)
        return with_arrays(frame, {name: number}), found, sizes


class Polars(InMemory):
    """Polars, eager."""

    patterns = r"\*|\^.*\$"


class Arrow(InMemory):
    """PyArrow: batches are as chunks lie in memory, which are not joined."""

    def batches(self, frame: Frame, *, ordered: bool = True) -> Iterator[Arrays]:  # noqa: D102
        return _arrays(frame.to_native().to_batches(max_chunksize=BATCH_ROWS))


class PolarsLazy(Engine):
    """Polars, lazy: queries run out of core; joins may shuffle rows unless told not to."""

    patterns = Polars.patterns

    def run(self, frame: Frame) -> nw.DataFrame[Any]:  # noqa: D102
        return frame.collect(engine="streaming") if isinstance(frame, nw.LazyFrame) else frame

    def batches(self, frame: Frame, *, ordered: bool = True) -> Iterator[Arrays]:  # noqa: D102
        for batch in polars_batches(frame.to_native(), ordered=ordered):
            yield tuple(column.to_numpy() for column in batch)

    def number_keys(self, keys: Frame, name: str) -> Frame:  # noqa: D102
        return self.run(keys).with_row_index(name).with_columns(nw.col(name).cast(nw.Int64)).lazy()

    def from_arrays(self, frame: Frame, table: Mapping[str, Any]) -> Frame:  # noqa: D102
        return nw.from_dict(table, backend="polars").lazy()

    def join(self, frame: Frame, small: Frame, on: Sequence[str]) -> Frame:  # noqa: D102
        rows, other = frame.to_native(), small.to_native()
        return as_frame(rows.join(other, on=list(on), how="left", maintain_order="left"))


class DuckDB(Engine):
    """DuckDB: relations of different connections cannot be joined; a relation runs queries in its.

    Keys wait in a temporary table of that connection, in their own types.
    """

    folds_case = True
    patterns = r"\*"

    def batches(self, frame: Frame, *, ordered: bool = True) -> Iterator[Arrays]:  # noqa: D102
        return _arrays(frame.to_native().to_arrow_reader(BATCH_ROWS))

    def number_keys(self, keys: Frame, name: str) -> Frame:  # noqa: D102
        relation, table, view = keys.to_native(), _new_name(), _new_name()
        number = f'row_number() OVER () - 1 AS "{name}"'
        relation.query(view, f"CREATE TEMP TABLE {table} AS SELECT *, {number} FROM {view}")
        return as_frame(relation.query(view, f"SELECT * FROM temp.{table}"))

    def from_arrays(self, frame: Frame, table: Mapping[str, Any]) -> Frame:  # noqa: D102
        return as_frame(_scanned(frame.to_native(), dict(table)))


class Dask(Engine):
    """Dask: each partition is a pandas frame, to which small ones are joined where it is."""

    def batches(self, frame: Frame, *, ordered: bool = True) -> Iterator[Arrays]:  # noqa: D102
        for part in self.on_partitions(frame, as_frame, AHEAD):
            yield from engine_of(part).batches(part)

    def on_partitions(
        self, frame: Frame, work: Callable[[Any], T], at_once: int = 1 << 20
    ) -> Iterator[T]:
        """Do some work on the partitions of a frame, where they are, so many at once."""
        dask: Any = import_module("dask")
        parts = frame.to_native().to_delayed()
        for first in range(0, len(parts), at_once):
            yield from dask.compute(*map(dask.delayed(work), parts[first : first + at_once]))

    def number_keys(self, keys: Frame, name: str) -> Frame:  # noqa: D102
        return nw.maybe_reset_index(self.run(keys)).with_row_index(name)

    def from_arrays(self, frame: Frame, table: Mapping[str, Any]) -> Frame:  # noqa: D102
        return nw.from_dict(table, backend="pandas")

    def join(self, frame: Frame, small: Frame, on: Sequence[str]) -> Frame:  # noqa: D102
        rows, other = frame.to_native(), small.to_native()
        keys = rows[list(on)]  # no other column has to be read
        found = keys.map_partitions(_merged, other, on, meta=_merged(keys._meta, other, on))
        return as_frame(rows.assign(**{c: found[c] for c in other.columns if c not in on}))


class Spark(Engine):
    """Spark: keys arrive as Arrow, in the frame's own session and types."""

    folds_case = True
    patterns = r"\*|.*[.`].*"

    def sample(self, frame: Frame, share: float) -> Frame:  # noqa: D102
        return as_frame(frame.to_native().sample(fraction=share, seed=0))

    def batches(self, frame: Frame, *, ordered: bool = True) -> Iterator[Arrays]:
        """Bring a large result in parts, by the hash of the first column.

        Spark streams only objects. Unlike numbers of rows, a hash parts rows that come in another
        order each time.
        """
        from pyspark.sql import functions

        native = frame.to_native()
        size = native.count()
        parts = -(-size // BROUGHT)
        part = functions.pmod(functions.xxhash64(native.columns[0]), functions.lit(parts))
        for i in range(parts):
            brought = native.filter(part == i) if parts > 1 else native
            yield from _arrays(brought.toArrow().to_batches(max_chunksize=BATCH_ROWS))

    def number_keys(self, keys: Frame, name: str) -> Frame:  # noqa: D102
        from pyspark.sql.types import LongType

        native = keys.to_native()
        table = native.toArrow()
        numbers = nw.new_series(name, np.arange(len(table)), backend="pyarrow").to_native()
        schema = native.schema.add(name, LongType())
        numbered = table.append_column(name, numbers)
        return as_frame(native.sparkSession.createDataFrame(numbered, schema))


ENGINES: dict[tuple[Implementation, bool], Engine] = {  # by whether frames are lazy
    (Implementation.POLARS, False): Polars(),
    (Implementation.POLARS, True): PolarsLazy(),
    (Implementation.PYARROW, False): Arrow(),
    (Implementation.DUCKDB, True): DuckDB(),
    (Implementation.DASK, True): Dask(),
    (Implementation.PYSPARK, True): Spark(),
    (Implementation.PYSPARK_CONNECT, True): Spark(),
}


def engine_of(frame: Frame) -> Engine:
    """Return what is particular to the engine that holds a frame."""
    is_lazy = isinstance(frame, nw.LazyFrame)
    return ENGINES.get((frame.implementation, is_lazy)) or (Engine() if is_lazy else InMemory())


def polars_batches(query: Any, *, ordered: bool = True) -> Iterator[Any]:
    """Run a lazy query of Polars out of core; yield data frames, in the order of rows if asked for.

    Unlike `collect_batches`, which just ends where Polars panics, this raises every error.
    """
    ready: Queue[Any] = Queue(AHEAD)
    ended: list[bool] = []
    how: Any = {"chunk_size": BATCH_ROWS, "maintain_order": ordered, "engine": "streaming"}

    def take(batch: Any) -> bool:
        ready.put(batch)
        return bool(ended)  # whether no more batches are wanted

    def work() -> None:
        error: BaseException | None = None
        try:
            query.sink_batches(take, **how)
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


def _arrays(batches: Any) -> Iterator[Arrays]:
    """Return the columns of Arrow's record batches: without a copy where there are no nulls."""
    for batch in batches:
        if batch.num_rows:
            yield tuple(column.to_numpy(zero_copy_only=False) for column in batch.columns)


def as_frame(native: Any) -> Frame:
    """Wrap a frame of any engine."""
    frame: Frame = nw.from_native(native)
    return frame


def with_arrays(frame: Frame, arrays: Mapping[str, Any]) -> Frame:
    """Add arrays to a frame in memory as columns."""
    backend = frame.implementation
    series = [nw.new_series(name, array, backend=backend) for name, array in arrays.items()]
    return frame.with_columns(*series)


def unused(taken: Iterable[str], wanted: Sequence[str]) -> list[str]:
    """Return names like those wanted that are not taken, in any case of letters."""
    there = {name.lower() for name in taken}
    suffix = ""
    while any((name + suffix).lower() in there for name in wanted):
        suffix += "_"
    return [name + suffix for name in wanted]


def distinct(frame: Frame, by: Iterable[str], size: str) -> Frame:
    """Return each key of a segment once, in the engine's own type, and its rows; none with a null.

    The column `size` has the number of rows.
    """
    names = list(by)
    keys = frame.select(*names).group_by(*names).agg(nw.len().alias(size))
    found: Frame = keys.filter(~missing(frame, names))
    return found


def missing(frame: Frame, by: Iterable[str]) -> nw.Expr:
    """Return where some key is null or NaN."""
    schema = frame.collect_schema()
    tests = [nw.col(name).is_null() for name in by]
    tests += [nw.col(name).is_nan() for name in by if schema[name].is_float()]
    return nw.any_horizontal(*tests, ignore_nulls=True).alias("missing")


def key_of(frame: Frame, name: str) -> nw.Expr:
    """Return a column with one zero only: -0.0 + 0.0 is 0.0, and Arrow tells them apart."""
    return nw.col(name) + 0.0 if frame.collect_schema()[name].is_float() else nw.col(name)


def _merged(part: Any, other: Any, on: Sequence[str]) -> Any:
    """Join a pandas frame to another one, whose index stays; it may have a column's name."""
    return part.reset_index(drop=True).merge(other, on=list(on), how="left").set_axis(part.index)


def _scanned(relation: Any, argmaxf_numbers_9d5f: dict[str, Any]) -> Any:
    """Return arrays as a relation; DuckDB finds them by the name that they have here."""
    return relation.query(_new_name(), "SELECT * FROM argmaxf_numbers_9d5f")


def _new_name() -> str:
    """Return a name that no table or view has."""
    return f"argmaxf_{secrets.token_hex(8)}"
