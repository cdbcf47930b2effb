"""Arrow tables handed to every engine, and taken back."""

from __future__ import annotations

from contextlib import contextmanager


def _plain(table, folder):
    yield table, lambda frame: frame


def _pandas(table, folder):
    import pyarrow as pa

    yield table.to_pandas(), lambda f: pa.Table.from_pandas(f, preserve_index=False)


def _pandas_arrow(table, folder):
    import pandas as pd
    import pyarrow as pa

    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    yield frame, lambda f: pa.Table.from_pandas(f, preserve_index=False)


def _polars(table, folder):
    import polars as pl

    yield pl.from_arrow(table), lambda frame: frame.to_arrow()


def _polars_lazy(table, folder):
    import polars as pl

    yield pl.from_arrow(table).lazy(), lambda frame: frame.collect().to_arrow()


def _duckdb(table, folder):
    import duckdb

    with duckdb.connect(
        ":memory:" if folder is None else str(folder / "rows.duckdb")
    ) as connection:
        connection.register("arrived", table)
        connection.execute("CREATE TABLE items AS SELECT * FROM arrived")
        yield connection.table("items"), lambda relation: relation.to_arrow_table()


def _duckdb_memory(table, folder):
    yield from _duckdb(table, None)


def _dask(table, folder):
    import dask
    import dask.dataframe as dd
    import pandas as pd
    import pyarrow as pa

    with dask.config.set(scheduler="synchronous"):
        frame = dd.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3)
        yield frame, lambda f: pa.Table.from_pandas(f.compute(), preserve_index=False)


ENGINES = {
    "pandas": _pandas,
    "pandas with Arrow's types": _pandas_arrow,
    "PyArrow": _plain,
    "Polars": _polars,
    "lazy Polars": _polars_lazy,
    "DuckDB in memory": _duckdb_memory,
    "DuckDB on disk": _duckdb,
    "Dask": _dask,
}


@contextmanager
def frame_of(engine, table, folder):
    """Yield a table as a frame of an engine, and how to take one back."""
    yield from ENGINES[engine](table, folder)
