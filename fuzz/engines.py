"""Arrow tables handed to every engine, and taken back."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
from contextlib import contextmanager
from functools import cache


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


def no_spark():
    """Say why Spark cannot be tried here, if so."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "PySpark needs Java 17 or newer, e.g. apt install openjdk-17-jre-headless"
    return None


@cache
def _session():
    """Start Spark, once."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    atexit.register(session.stop)
    return session


def _spark(table, folder):
    yield _session().createDataFrame(table), lambda frame: frame.toArrow()


ENGINES = {
    "pandas": _pandas,
    "pandas with Arrow's types": _pandas_arrow,
    "PyArrow": _plain,
    "Polars": _polars,
    "lazy Polars": _polars_lazy,
    "DuckDB in memory": _duckdb_memory,
    "DuckDB on disk": _duckdb,
    "Dask": _dask,
    "Spark": _spark,
}


@contextmanager
def frame_of(engine, table, folder):
    """Yield a table as a frame of an engine, and how to take one back."""
    yield from ENGINES[engine](table, folder)
