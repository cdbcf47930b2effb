"""Settings of all tests; and every engine that can hold a frame, really running, as one fixture."""

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import mpmath
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings

# Timings never decide a test: a busy machine is no counterexample.
settings.register_profile("argmaxf", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("argmaxf")

# What a script starts in the background is deaf to Ctrl-C, and so is what that starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


CLUSTERS = {"spark": {"pyspark", "spark"}, "dask": {"dask", "dask_client"}}


def group_of(nodeid):
    """Tests that share what is slow to set up: a cluster, which their names tell, or a file."""
    path, _, name = nodeid.partition("::")
    return next((cluster for cluster in CLUSTERS if cluster in name), path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep the tests of a group on one core."""
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class InGroups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    return InGroups(config, log)


@pytest.hookimpl(tryfirst=True)  # before marks choose
def pytest_collection_modifyitems(items):
    """Put first what starts slowly, compiles what others use, or takes long: cores end together."""
    items.sort(key=lambda item: _turn(group_of(item.nodeid)))
    for item in items:
        cluster = _cluster_of(item)
        if cluster and group_of(item.nodeid) != cluster:
            raise pytest.UsageError(f"{item.nodeid} starts {cluster}: its name must say so")
        if (cluster and item.get_closest_marker("slow_on_clusters")) or _fits_for_long(item):
            item.add_marker(pytest.mark.slow)


EARLY = ("test_maximize_expected", "test_maximize", "test_classifiers")


def _turn(group):
    """The place of a group among all: clusters, the early ones, the rest."""
    return 0 if group in CLUSTERS else 1 if PurePath(group).stem in EARLY else 2


MANY_MODELS = ("AutoF", "BlendF", "CostSensitiveF", "MarginF", "calibration=None")


def _fits_for_long(item):
    """Whether a check of scikit-learn fits a classifier of many models dozens of times."""
    again = "sparse" in item.name or "readonly_memmap=True)" in item.name
    return "contract" in item.name and again and any(each in item.name for each in MANY_MODELS)


def _cluster_of(item):
    """Return the engine of many processes that a test starts, if it does."""
    engine = item.callspec.params.get("engine") if hasattr(item, "callspec") else None
    chance = {engine, *item.fixturenames}
    return next((cluster for cluster, names in CLUSTERS.items() if chance & names), None)


@pytest.fixture(autouse=True)
def seventy_digits():
    """Give every test the judges' precision, whatever the one before it left in mpmath."""
    with mpmath.workdps(70):
        yield


ENGINES = ["pandas", "polars", "polars-lazy", "pyarrow", "duckdb", "duckdb-file", "dask", "pyspark"]
PARTS = 5  # of a frame that an engine holds in parts; one of them stays empty


@dataclass(frozen=True)
class Engine:
    """How to hand a table to an engine, and get one back."""

    name: str
    frame: Callable[[pa.Table], Any]
    collect: Callable[[Any], pa.Table]

    @property
    def lazy(self):
        return self.name not in ("pandas", "polars", "pyarrow")

    @property
    def distributed(self):
        return self.name in ("dask", "pyspark")

    def columns(self, frame):
        """Return the columns of a frame as lists, rows in the order of its column `row`."""
        return self.collect(frame).sort_by("row").to_pydict()


@pytest.fixture(scope="session")
def spark():
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("PySpark needs Java 17 or newer, e.g. apt install openjdk-17-jre-headless")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2, 4]")  # two threads, a task may fail three times
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.showConsoleProgress", "false")
        # A short life: what is run a few times is not worth compiling well.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.codegen.wholeStage", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def dask_client():
    import dask
    from distributed import Client, LocalCluster

    # Workers that watch themselves keep a core busy while other tests run.
    quiet = {"admin.system-monitor.gil.enabled": False, "admin.system-monitor.interval": "10s"}
    quiet["worker.profile.enabled"] = False
    dask.config.set({f"distributed.{name}": value for name, value in quiet.items()})
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(params=ENGINES)
def engine(request, tmp_path):
    makers = {
        "pandas": _pandas,
        "polars": _polars,
        "polars-lazy": _polars_lazy,
        "pyarrow": _pyarrow,
        "duckdb": _duckdb,
        "duckdb-file": lambda: _duckdb(tmp_path / "rows.duckdb"),
        "dask": lambda: _dask(request.getfixturevalue("dask_client")),
        "pyspark": lambda: _pyspark(request.getfixturevalue("spark")),
    }
    return makers[request.param]()


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


def _pandas():
    return Engine("pandas", lambda table: table.to_pandas(), arrow)


def _polars():
    import polars as pl

    return Engine("polars", pl.from_arrow, lambda frame: frame.to_arrow())


def _polars_lazy():
    import polars as pl

    return Engine(
        "polars-lazy",
        lambda table: pl.from_arrow(table).lazy(),
        lambda frame: frame.collect().to_arrow(),
    )


def _pyarrow():
    return Engine("pyarrow", lambda table: table, lambda table: table)


def _duckdb(path=":memory:"):
    import duckdb

    connection = duckdb.connect(str(path))

    def frame(table):
        connection.execute("DROP TABLE IF EXISTS items")
        connection.register("arrived", table)
        connection.execute("CREATE TABLE items AS SELECT * FROM arrived")
        return connection.table("items")

    name = "duckdb" if path == ":memory:" else "duckdb-file"
    return Engine(name, frame, lambda relation: relation.to_arrow_table())


def parts_of(table):
    """Cut a table into parts, the second one empty."""
    cuts = np.linspace(0, table.num_rows, PARTS).astype(int)
    cuts = np.insert(cuts, 1, cuts[1])
    return [table.slice(a, b - a) for a, b in itertools.pairwise(cuts.tolist())]


def _dask(client):
    import dask.dataframe as dd
    import pandas as pd

    def frame(table):
        parts = [client.submit(as_pandas, part, pure=False) for part in parts_of(table)]
        return dd.from_delayed(parts, meta=as_pandas(table.slice(0, 0)))

    def as_pandas(table):
        # Dask keeps decimals and bytes in Arrow's own types.
        mapper = {t: pd.ArrowDtype(t) for t in table.schema.types if kept(t)}
        return table.to_pandas(types_mapper=mapper.get)

    def kept(kind):
        return pa.types.is_decimal(kind) or pa.types.is_binary(kind) or kind == pa.large_binary()

    return Engine("dask", frame, lambda frame: arrow(frame.compute()))


def _pyspark(session):
    def frame(table):
        return session.createDataFrame(table).repartition(PARTS)

    return Engine("pyspark", frame, lambda frame: frame.toArrow())
