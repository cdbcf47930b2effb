"""Segments are what the engine's own group-by makes of any type; names never clash."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from argmaxf import decide, maximize_expected_f
from argmaxf.frames import decisions

N = 240
CODE = np.arange(N) % 4  # the segments as they should be
P = np.random.default_rng(0).beta(0.5, 2, N)
TICKS = 1_729_989_000 + np.array(
    [0, 1800, 3600, 5400]
)  # 02:30, 02:00, 02:30 again, 03:00 in Berlin
BERLIN = "Europe/Berlin"


def column(values, kind=None):
    return pa.array([values[i] for i in CODE], kind)


def stamps(unit, zone=None):
    return pa.array(
        TICKS[CODE] * {"s": 1, "us": 10**6, "ns": 10**9}[unit], pa.timestamp(unit, zone)
    )


KEYS = {
    "nanoseconds": pa.array(10**18 + CODE, pa.timestamp("ns")),
    "nanoseconds in a zone": pa.array(10**18 + CODE, pa.timestamp("ns", BERLIN)),
    "the folded hour": stamps("us", BERLIN),
    "the folded hour in seconds": stamps("s", BERLIN),
    "microseconds": stamps("us"),
    "duration": pa.array(CODE * 1000, pa.duration("ns")),
    "time": pa.array(CODE * 1000, pa.time64("us")),
    "date": column([date(2024, 10, d) for d in (1, 2, 3, 4)]),
    "bytes": column([b"\x00", b"\x00\x00", b"\xff\xaa", b""]),
    "large bytes": column([b"\x00", b"\x00\x00", b"\xff\xaa", b""], pa.large_binary()),
    "text": column(["01", "1", "{a", "a'\"\\"]),
    "large text": column(["01", "1", " 1", ""], pa.large_string()),
    "categories": column(["b", "a", "{", "c"]).dictionary_encode(),
    "decimals": column(
        [Decimal("1.10"), Decimal("1.1000000000000000001"), Decimal(-1), Decimal(0)]
    ),
    "unsigned": column([2**64 - 1, 2**64 - 2, 2**63, 0], pa.uint64()),
    "large integers": column([2**53, 2**53 + 1, -(2**63), 2**63 - 1], pa.int64()),
    "floats": column([0.1, 0.1 + 2**-56, 1e300, -np.inf]),
    "float32": column([0.1, 0.25, 1e30, -np.inf], pa.float32()),
}
TELLING = {"nanoseconds in a zone", "the folded hour", "bytes", "text", "decimals", "floats"}
NO_SPARK = ["unsigned", "categories", "time", "nanoseconds", "nanoseconds in a zone"]
NOT_THERE = {("pyspark", name) for name in NO_SPARK}


def table_of(**keys):
    return pa.table({"row": np.arange(N), "p": P, **keys})


def labels_by(segment):
    """Decide each segment as an array."""
    expected = np.zeros(len(P), bool)
    for s in np.unique(segment):
        expected[segment == s] = maximize_expected_f(P[segment == s], ties="together").selected
    return expected.tolist()


def assert_segments(engine, frame, by, segment=CODE):
    assert engine.columns(decide(frame, "p", by=by))["label"] == labels_by(segment)
    found = decisions(frame, "p", by=by)
    assert sorted(d.n for d in found.values()) == sorted(np.bincount(segment).tolist())


@pytest.mark.slow_on_clusters
@pytest.mark.parametrize("name", KEYS)
def test_segments_of_every_type(engine, name):
    if engine.distributed and (name not in TELLING or (engine.name, name) in NOT_THERE):
        pytest.skip("all that there are at once below")
    assert_segments(engine, engine.frame(table_of(key=KEYS[name])), "key")


@pytest.mark.slow_on_clusters
def test_all_types_at_once(engine):
    keys = {n.replace(" ", "_"): k for n, k in KEYS.items() if (engine.name, n) not in NOT_THERE}
    assert_segments(engine, engine.frame(table_of(**keys)), list(keys))


@pytest.mark.parametrize("name", KEYS)
def test_pandas_with_the_types_of_arrow(name):
    frame = table_of(key=KEYS[name]).to_pandas(types_mapper=pd.ArrowDtype)
    assert decide(frame, "p", by="key")["label"].tolist() == labels_by(CODE)
    assert len(decisions(frame, "p", by="key")) == 4


@pytest.mark.slow_on_clusters
def test_both_zeros_are_one_segment(engine):
    frame = engine.frame(table_of(key=column([0.0, -0.0, 1.0, 2.0])))
    assert_segments(engine, frame, "key", np.array([0, 0, 1, 2])[CODE])


@pytest.mark.slow_on_clusters
def test_nan_is_no_segment(engine):
    keys = [float("nan") if i == 3 else float(c) for i, c in enumerate(CODE)]
    frame = engine.frame(table_of(key=pa.array(keys), other=CODE))
    with pytest.raises(ValueError, match=r"by must not be null or NaN, got 1 such row$"):
        decide(frame, "p", by=["other", "key"])


DUCKDB = {
    "enum": "CASE code WHEN 0 THEN '{a' WHEN 1 THEN 'b''' WHEN 2 THEN '{' ELSE '' END::odd",
    "blob": r"CASE code WHEN 0 THEN '\xAA' WHEN 1 THEN '\x00' ELSE code::TEXT END::BLOB",
    "zone": "'2024-10-27 00:30:00+00'::TIMESTAMPTZ + code * INTERVAL 30 MINUTE",
    "interval": "(code + 1) * INTERVAL '1 month 2 days 3 microseconds'",
    "hugeint": "170141183460469231731687303715884105720::HUGEINT + code::HUGEINT",
    "uuid": "('00000000-0000-0000-0000-00000000000' || code)::UUID",
    "ns": "make_timestamp_ns(code::BIGINT)",
    "timetz": "('12:00:00+0' || code)::TIMETZ",
    "list": "[code, 1]",
    "struct": "{'a': code, 'b': 'x'}",
    "bit": "(code::TEXT::INTEGER)::BIT",
}


@pytest.mark.parametrize("name", DUCKDB)
@pytest.mark.parametrize("place", ["memory", "disk"])
def test_every_type_of_duckdb(name, place, tmp_path):
    import duckdb

    connection = duckdb.connect(":memory:" if place == "memory" else str(tmp_path / "db"))
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    connection.execute("CREATE TYPE odd AS ENUM ('{a', 'b''', '{', '')")
    connection.register("arrived", table_of(code=CODE))
    query = f"CREATE TABLE items AS SELECT row, p, {DUCKDB[name]} AS key FROM arrived"
    connection.execute(query)
    frame = connection.table("items")
    labelled = decide(frame, "p", by="key").order("row").select("label").fetchall()
    assert [label for (label,) in labelled] == labels_by(CODE)
    assert len(decisions(frame, "p", by="key")) == 4


def test_what_duckdb_takes_for_equal_is_one_segment():
    import duckdb

    connection = duckdb.connect()
    connection.register("arrived", table_of(key=column(["a", "A", "b", "c"])))
    connection.execute("CREATE TABLE items (row BIGINT, p DOUBLE, key VARCHAR COLLATE NOCASE)")
    connection.execute("INSERT INTO items SELECT row, p, key FROM arrived")
    labelled = decide(connection.table("items"), "p", by="key").order("row").fetchall()
    assert [row[-1] for row in labelled] == labels_by(np.array([0, 0, 1, 2])[CODE])


@pytest.mark.parametrize("lazy", [False, True])
def test_nested_keys_in_polars(lazy):
    frame = pl.DataFrame({"p": P, "list": [[c, 1] for c in CODE.tolist()], "code": CODE})
    frame = frame.with_columns(struct=pl.struct("code", "list"), enum=pl.lit("x", pl.Enum(["x"])))
    given = frame.lazy() if lazy else frame
    for by in ("list", "struct", ["struct", "enum"]):
        labelled = decide(given, "p", by=by).lazy().collect()
        assert labelled["label"].to_list() == labels_by(CODE)
        assert len(decisions(given, "p", by=by)) == 4


REFUSED = {
    "pandas, lists": (lambda: pd.DataFrame({"p": P, "key": [[c] for c in CODE]}), "pandas"),
    "pandas, float16": (lambda: pd.DataFrame({"p": P, "key": CODE.astype(np.float16)}), "pandas"),
    "pyarrow, lists": (lambda: pa.table({"p": P, "key": [[c] for c in CODE]}), "pyarrow"),
    "pyarrow, structs": (lambda: pa.table({"p": P, "key": [{"a": c} for c in CODE]}), "pyarrow"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_type_that_cannot_be_grouped_is_refused_by_name(case):
    make, engine = REFUSED[case]
    match = rf"by must be of types that {engine} can group, got key \("
    with pytest.raises(ValueError, match=match):
        decide(make(), "p", by="key")


def test_a_map_is_refused_by_name_on_spark(spark):
    frame = spark.sql("SELECT 0.5D AS p, map('a', 1) AS key")
    with pytest.raises(ValueError, match=r"by must be of types that pyspark can group, got key \("):
        decide(frame, "p", by="key")


def test_unhashable_values_are_refused_by_name_on_dask(dask_client):
    import dask
    import dask.dataframe as dd

    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.from_pandas(pd.DataFrame({"p": P, "key": [[c] for c in CODE]}), npartitions=2)
        with pytest.raises(ValueError, match=r"of types that dask can group, got key \("):
            decide(frame, "p", by="key")


def test_decimals_that_dask_cannot_make_up_are_refused_by_name(dask_client):
    import dask.dataframe as dd

    keys = pa.array([Decimal(int(c)).scaleb(-20) for c in CODE], pa.decimal128(20, 20))
    frame = pd.DataFrame({"p": P, "key": pd.Series(keys, dtype=pd.ArrowDtype(keys.type))})
    with pytest.raises(ValueError, match=r"of types that dask can group, got key \(Decimal"):
        decide(dd.from_pandas(frame, npartitions=2), "p", by="key")


def test_keys_for_people():
    frame = pl.DataFrame({"p": [0.5, 0.5]}).with_columns(
        zone=pl.Series([1_729_989_000_000_000, 1_729_992_600_000_000])
        .cast(pl.Datetime("us", "UTC"))
        .dt.convert_time_zone(BERLIN),
        ns=pl.Series([1, 2]).cast(pl.Datetime("ns")),
        day=pl.Series([date(2024, 1, 1), date(2024, 1, 2)]),
        wait=pl.Series([1, 2]).cast(pl.Duration("ns")),
        text=pl.Series(["a", "b"]),
        fine=pl.Series([1, 2]).cast(pl.Time),
    )
    first = datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
    by_zone = set(decisions(frame, "p", by="zone"))
    assert by_zone == {(first,), (first + timedelta(hours=1),)}
    assert {z.astimezone(ZoneInfo(BERLIN)).hour for (z,) in by_zone} == {2}
    assert set(decisions(frame, "p", by="ns")) == {
        (np.datetime64(1, "ns"),),
        (np.datetime64(2, "ns"),),
    }
    assert set(decisions(frame, "p", by=["day", "text"])) == {
        (date(2024, 1, 1), "a"),
        (date(2024, 1, 2), "b"),
    }
    assert set(decisions(frame, "p", by="wait")) == {
        (np.timedelta64(1, "ns"),),
        (np.timedelta64(2, "ns"),),
    }
    assert set(decisions(frame, "p", by="fine")) == {(1,), (2,)}  # ns since midnight


# --- names: outputs are new, nothing is replaced, renamed or counted twice ----------------------


def test_an_output_never_replaces_a_column(engine):
    frame = engine.frame(table_of(label=CODE, p_chosen=CODE, q=P))
    with pytest.raises(ValueError, match="output must be the name of a new column, got 'label'"):
        decide(frame, "p")
    with pytest.raises(ValueError, match="must be the name of a new column, got 'p_chosen'"):
        decide(frame, ["p", "q"], output="chosen")
    with pytest.raises(ValueError, match=r"column must name each column once, got \['p', 'p'\]"):
        decide(frame, ["p", "p"])
    with pytest.raises(ValueError, match=r"by must name each column once"):
        decide(frame, "p", by=["q", "q"])
    if engine.name.startswith(("duckdb", "pyspark")):  # names in which case does not count
        with pytest.raises(ValueError, match="must be the name of a new column, got 'LABEL'"):
            decide(frame, "p", output="LABEL")


RESERVED = ["threshold", "ties", "row", "segment", "column", "p", "key", "low", "high", "text"]


@pytest.mark.slow_on_clusters
def test_no_name_is_reserved(engine):
    names = [f"argmaxf_{name}" for name in [*RESERVED, "threshold_0", "rows", "count", "sum_0"]]
    table = pa.table({"row": np.arange(N)} | {name: CODE + i for i, name in enumerate(names)})
    table = table.set_column(6, "argmaxf_p", pa.array(P)).append_column("other", pa.array(1 - P))
    frame = engine.frame(table)
    by = ["argmaxf_segment", "argmaxf_row"]
    columns = engine.columns(decide(frame, ["argmaxf_p", "other"], by=by, output="x"))
    assert list(columns) == [*table.column_names, "argmaxf_p_x", "other_x"]
    assert columns["argmaxf_p_x"] == labels_by(CODE)
    for name in table.column_names:
        assert columns[name] == table[name].to_pylist()
    single = engine.columns(decide(frame, "argmaxf_p", by=by, output="argmaxf_label"))
    assert single["argmaxf_label"] == labels_by(CODE)


@pytest.mark.parametrize(
    "index", [np.arange(N)[::-1] * 2, np.zeros(N, int), list("abcd" * (N // 4))]
)
def test_an_index_of_pandas_is_kept(index):
    frame = pd.DataFrame({"p": P, "key": CODE}, index=index)
    labelled = decide(frame, "p", by="key")
    assert labelled["label"].tolist() == labels_by(CODE)
    assert labelled.index.tolist() == list(index)
    assert decide(frame, "p")["label"].tolist() == maximize_expected_f(P).selected.tolist()


def indexed_by_a_key():
    """As many a frame is; its columns and its index are grouped by names that must not clash."""
    frame = pd.DataFrame({"p": P, "key": CODE})
    return frame.set_index("key", drop=False)


def test_an_index_may_have_the_name_of_a_key():
    labelled = decide(indexed_by_a_key(), "p", by="key")
    assert labelled["label"].tolist() == labels_by(CODE)
    assert labelled.index.name == "key"


def test_an_index_may_have_the_name_of_a_key_on_dask(dask_client):
    import dask.dataframe as dd

    frame = dd.from_pandas(indexed_by_a_key(), npartitions=2, sort=False)
    assert decide(frame, "p", by="key").compute()["label"].tolist() == labels_by(CODE)


def test_a_column_is_given_by_its_name():
    frame = pd.DataFrame([[0.9, 0.2], [0.3, 0.4]])
    for given in (0, [0, 1]):
        with pytest.raises(TypeError, match="must be given by its name, a text, got 0"):
            decide(frame, given)


def test_a_segment_that_came_later_has_no_label():
    import duckdb

    connection = duckdb.connect()
    connection.execute("CREATE TABLE items AS SELECT * FROM (VALUES ('b', .9), ('c', .2)) t(s, p)")
    labelled = decide(connection.table("items"), "p", by="s")
    connection.execute("INSERT INTO items VALUES ('a', .5), ('c', .1)")
    assert sorted(labelled.fetchall()) == [
        ("a", Decimal("0.50"), None),
        ("b", Decimal("0.90"), True),
        ("c", Decimal("0.10"), False),
        ("c", Decimal("0.20"), True),
    ]


def test_a_band_that_is_empty_the_second_time_is_refused(monkeypatch):
    """A frame that changes never makes the search go on for ever."""
    monkeypatch.setattr("argmaxf.frames.table.Rows.HELD", 1_000)
    monkeypatch.setattr("argmaxf.frames.engines.BATCH_ROWS", 1_000)
    rng = np.random.default_rng(0)
    first = np.sort(rng.beta(0.5, 5, 20_000))
    reads = iter(range(1000))

    def other(column):
        if len(column) < N:  # asked for the type
            return column
        return pl.Series(first) if next(reads) < 2 else pl.Series(np.full(20_000, 0.99999))

    frame = pl.LazyFrame({"p": first}).select(pl.col("p").map_batches(other))
    with pytest.raises(ValueError, match="must have the same rows each time it is read"):
        decide(frame, "p")


def test_a_segment_that_vanishes_between_passes_is_refused():
    reads = iter(range(1000))

    def other(keys):
        if len(keys) < N:  # asked for the type
            return keys
        return keys if next(reads) < 1 else pl.Series(np.where(CODE == 3, 2, CODE))

    frame = pl.LazyFrame({"p": P, "s": CODE}).with_columns(pl.col("s").map_batches(other))
    with pytest.raises(ValueError, match="must have the same rows each time it is read"):
        decide(frame, "p", by="s")
