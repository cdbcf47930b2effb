"""Frames: the same summary and the same decision on every engine as on the array."""

import subprocess
import sys
from decimal import Decimal

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from argmaxf import (
    ProbabilitySketch,
    decide,
    maximize_empirical_f,
    maximize_expected_f,
    summarize,
    tune,
)
from argmaxf.expected import band
from argmaxf.expected.array_passes import ArrayPasses
from argmaxf.expected.groups import Groups
from argmaxf.expected.search import Search
from argmaxf.frames import decisions
from argmaxf.frames.engines import as_frame
from argmaxf.frames.expression_passes import ExpressionPasses
from argmaxf.measures import Tversky
from argmaxf.problem import Problem

EDGES = [0.0, 1.0, 0.5, np.nextafter(0.5, 0), 0.25, 1 - 2**-53, 2**-64, 2**-65, 1e-300, 5e-324]


def scores(n, seed=0):
    return np.random.default_rng(seed).beta(0.5, 5, n)


def table_of(p, **columns):
    return pa.table({"row": np.arange(len(p)), "p": p, **columns})


def assert_same_summary(sketch, other):
    np.testing.assert_array_equal(sketch._table[:, 0], other._table[:, 0])
    np.testing.assert_allclose(sketch._table, other._table, rtol=1e-12, atol=1e-11)


def assert_same_decision(found, exact):
    assert (found.k, found.threshold, found.n) == (exact.k, exact.threshold, exact.n)
    assert found.expected == pytest.approx(exact.expected, rel=1e-12)
    assert found.std == pytest.approx(exact.std, rel=1e-9)


def test_the_summary_of_two_parts_is_the_sum_of_theirs(engine):
    p = np.concatenate([scores(3_000), EDGES, 1 - scores(500, seed=1)])
    table = table_of(p)
    a, b = (summarize(engine.frame(part), "p") for part in (table[:1_000], table[1_000:]))
    whole = summarize(engine.frame(table), "p")
    assert_same_summary(a + b, whole)
    assert_same_summary(whole, ProbabilitySketch.from_array(p))


def test_decision_and_labels_are_those_of_the_array(engine):
    p = np.concatenate([scores(20_000), EDGES])
    exact = maximize_expected_f(p, ties="together")
    frame = engine.frame(table_of(p, name=[f"n{i}" for i in range(p.size)]))
    result = decide(frame, "p", output="chosen")
    assert type(result) is type(frame)
    columns = engine.columns(result)
    assert list(columns) == ["row", "p", "name", "chosen"]
    assert columns["chosen"] == exact.selected.tolist()
    assert columns["p"] == p.tolist()


@pytest.mark.slow_on_clusters
@pytest.mark.parametrize(
    "options",
    [{"beta": 0.3}, {"beta": 4.0}, {"measure": "jaccard"}, {"beta": 0.5, "zero_division": 1.0}],
)
def test_every_question_gets_the_answer_of_the_array(engine, options):
    if engine.distributed and "measure" not in options:
        pytest.skip("the question does not reach the engine; one of them is enough here")
    p = scores(30_000, seed=2)
    exact = maximize_expected_f(p, ties="together", **options)
    assert_same_decision(decisions(engine.frame(table_of(p)), "p", **options)[()], exact)


def test_ties_across_partitions_stay_together(engine):
    p = np.round(scores(5_000, seed=3), 1)
    exact = maximize_expected_f(p)
    assert (
        engine.columns(decide(engine.frame(table_of(p)), "p"))["label"] == exact.selected.tolist()
    )


def test_one_decision_for_each_segment(engine):
    rng = np.random.default_rng(4)
    p = scores(6_000, seed=4)
    # macro-F over labels in long format: segments of very different sizes, one of a single row
    name = rng.choice(["rare'x", "common", 'quo"te'], p.size, p=[0.01, 0.9, 0.09])
    name[17] = "single"
    year = rng.integers(2020, 2023, p.size).astype(np.int32)
    frame = engine.frame(table_of(p, name=name, year=year))
    answers = decisions(frame, "p", by=["name", "year"], beta=2.0)
    label = np.array(engine.columns(decide(frame, "p", by=["name", "year"], beta=2.0))["label"])
    assert set(answers) == set(zip(name.tolist(), year.tolist(), strict=True))
    for key, found in answers.items():
        where = (name == key[0]) & (year == key[1])
        exact = maximize_expected_f(p[where], beta=2.0, ties="together")
        assert_same_decision(found, exact)
        np.testing.assert_array_equal(label[where], exact.selected)


@pytest.mark.slow_on_clusters
def test_several_columns_at_once(engine):
    a, b = scores(4_000, seed=10), 1 - scores(4_000, seed=11)
    frame = engine.frame(table_of(a, q=b.astype(np.float32), s=np.arange(a.size) % 2))
    columns = engine.columns(decide(frame, ["p", "q"], output="chosen"))
    assert list(columns) == ["row", "p", "q", "s", "p_chosen", "q_chosen"]
    for name, values in (("p", a), ("q", b.astype(np.float32))):
        exact = maximize_expected_f(values, ties="together")
        assert columns[f"{name}_chosen"] == exact.selected.tolist()
    for (s, name), found in decisions(frame, ["p", "q"], by="s").items():
        values = {"p": a, "q": b.astype(np.float32)}[name]
        assert_same_decision(found, maximize_expected_f(values[s::2], ties="together"))


def test_split_ties_of_each_segment_go_to_its_first_rows(engine):
    if engine.lazy:
        pytest.skip("ties are split in eager frames only")
    p = np.round(scores(2_000, seed=5), 1)
    segment = np.random.default_rng(5).integers(0, 3, p.size)
    frame = engine.frame(table_of(p, segment=segment))
    label = np.array(engine.columns(decide(frame, "p", by="segment", ties="split"))["label"])
    for s in range(3):
        exact = maximize_expected_f(p[segment == s])
        np.testing.assert_array_equal(label[segment == s], exact.selected)


@pytest.mark.slow_on_clusters
def test_null_and_nan_are_refused_with_a_count_or_dropped(engine):
    p = scores(2_000, seed=6)
    given = pa.array(p.tolist()).to_pylist()
    given[5], given[700], given[701] = None, float("nan"), None
    frame = engine.frame(table_of(given))
    with pytest.raises(ValueError, match="got 3 null or NaN; nulls='drop'"):
        decide(frame, "p")
    with pytest.raises(ValueError, match="got 3 null or NaN; nulls='drop'"):
        summarize(frame, "p")
    kept = np.delete(p, [5, 700, 701])
    exact = maximize_expected_f(kept, ties="together")
    assert engine.columns(decide(frame, "p", nulls="drop"))["label"] == exact.selected.tolist()
    assert_same_summary(summarize(frame, "p", nulls="drop"), ProbabilitySketch.from_array(kept))


@pytest.mark.slow_on_clusters
def test_a_null_segment_is_refused_with_a_count(engine):
    names = ["a", None, "b", None]
    frame = engine.frame(table_of([0.1, 0.2, 0.3, 0.4], name=pa.array(names, pa.string())))
    with pytest.raises(ValueError, match="by must not be null or NaN, got 2 such rows"):
        decide(frame, "p", by="name")


@pytest.mark.slow_on_clusters
@pytest.mark.parametrize("bad", [1.5, -0.25, np.inf])
def test_what_is_no_probability_is_named(engine, bad):
    if engine.distributed and bad != 1.5:
        pytest.skip("one bad value is enough on a slow engine")
    frame = engine.frame(table_of([0.5, bad, 0.1, bad]))
    with pytest.raises(ValueError, match=rf"in \[0, 1\], got {bad} \(2 such rows\)"):
        decide(frame, "p")


@pytest.mark.slow_on_clusters
def test_float32_is_computed_in_float64(engine):
    p = scores(3_000, seed=7).astype(np.float32)
    exact = maximize_expected_f(p, ties="together")
    frame = engine.frame(table_of(p))
    assert_same_decision(decisions(frame, "p")[()], exact)
    assert engine.columns(decide(frame, "p"))["label"] == exact.selected.tolist()


@pytest.mark.slow_on_clusters
def test_decimals(engine):
    p = np.round(scores(2_000, seed=8), 3)
    column = pa.array([Decimal(f"{x:.3f}") for x in p], pa.decimal128(6, 3))
    if engine.name == "pandas":
        import pandas as pd

        frame = table_of(column).to_pandas(types_mapper=pd.ArrowDtype)
    else:
        frame = engine.frame(table_of(column))
    exact = maximize_expected_f(p, ties="together")
    assert_same_decision(decisions(frame, "p")[()], exact)
    assert engine.columns(decide(frame, "p"))["label"] == exact.selected.tolist()


def test_bad_questions_are_named(engine):
    frame = engine.frame(table_of([0.1, 0.2], name=["a", "b"]))
    with pytest.raises(ValueError, match=r"no column 'q'; it has \['row', 'p', 'name'\]"):
        decide(frame, "q")
    with pytest.raises(ValueError, match="no column 'segment'"):
        decide(frame, "p", by="segment")
    with pytest.raises(ValueError, match="column 'name' must hold numbers, got String"):
        decide(frame, "name")
    with pytest.raises(ValueError, match="beta must be positive and finite, got -1"):
        decide(frame, "p", beta=-1)
    with pytest.raises(ValueError, match="nulls must be one of 'raise', 'drop'; got 'keep'"):
        decide(frame, "p", nulls="keep")
    with pytest.raises(ValueError, match="must not hold a column of probabilities"):
        decide(frame, "p", by="p")


@pytest.mark.slow_on_clusters
def test_a_frame_without_rows_is_refused(engine):
    frame = engine.frame(table_of(np.array([], np.float64)))
    with pytest.raises(ValueError, match="at least one probability, got none"):
        decide(frame, "p")


@pytest.mark.slow_on_clusters
def test_partitions_without_rows_change_nothing(engine, little_memory):
    p, y = scores(6_000), np.arange(6_000) % 3 == 0
    whole = nw.from_native(engine.frame(table_of(p, y=y)))
    frame = whole.filter(nw.col("row") >= 4_500).to_native()  # of Dask the first partitions
    p, y = p[4_500:], y[4_500:]
    assert_same_decision(decisions(frame, "p")[()], maximize_expected_f(p, ties="together"))
    assert decisions(frame, "p", by="y")[(True,)].n == y.sum()
    assert tune(frame, label="y", score="p").threshold == maximize_empirical_f(y, p).threshold
    nothing = whole.filter(nw.col("row") < 0).to_native()
    with pytest.raises(ValueError, match="column 'p' must hold at least one probability, got none"):
        decisions(nothing, "p")
    with pytest.raises(ValueError, match="column 'p' must hold at least one score, got none"):
        tune(nothing, label="y", score="p")


def test_what_is_no_frame_is_refused():
    with pytest.raises(TypeError, match="got str; for a file use the command `argmaxf decide`"):
        decide("rows.csv", "p")
    with pytest.raises(TypeError, match="frame must be a data frame, got list"):
        decide([0.1], "p")


@pytest.fixture
def little_memory(monkeypatch):
    """Hold so few items that frames of thousands are read again and again, or spilled."""
    monkeypatch.setattr("argmaxf.frames.table.Rows.HELD", 1_000)
    monkeypatch.setattr("argmaxf.frames.engines.BATCH_ROWS", 1_000)
    monkeypatch.setattr("argmaxf.frames.solve.PART", 3_000)
    monkeypatch.setattr("argmaxf.frames.labelled.PART", 3_000)
    monkeypatch.setattr("argmaxf.frames.engines.BROUGHT", 7_000)


QUESTIONS = [
    {},
    {"beta": 0.1},
    {"measure": "mcc"},
    {"max_selected": 500},
    {"measure": Tversky(0.2, 0.7), "zero_division": 1.0},
]


@pytest.mark.slow_on_clusters
@pytest.mark.parametrize("options", QUESTIONS, ids=str)
def test_frames_larger_than_what_is_held(engine, little_memory, options):
    if engine.distributed and "beta" in options:
        pytest.skip("asked already")
    p = np.concatenate([scores(20_000), EDGES])
    exact = maximize_expected_f(p, ties="together", **options)
    frame = engine.frame(table_of(p))
    assert_same_decision(decisions(frame, "p", ties="together", **options)[()], exact)
    assert decisions(frame, "p", **options).kept_together == (
        engine.lazy and ties_split(p, options)
    )


def ties_split(p, options):
    """Whether the best set parts equal items."""
    best = maximize_expected_f(p, **options)
    return bool((p[~best.selected] == best.threshold).any())


@pytest.mark.slow_on_clusters
@pytest.mark.parametrize("options", QUESTIONS[:4], ids=str)
def test_segments_larger_than_what_is_held(engine, little_memory, options):
    """One segment of more items than a part may have, some that share one, all in several parts."""
    if engine.distributed and options:
        pytest.skip("asked already")
    rng = np.random.default_rng(3)
    p, segment = scores(30_000, seed=3), rng.choice(8, 30_000, p=[0.6, *[0.4 / 7] * 7])
    frame = engine.frame(table_of(p, s=segment))
    for (s,), found in decisions(frame, "p", by="s", ties="together", **options).items():
        exact = maximize_expected_f(p[segment == s], ties="together", **options)
        assert_same_decision(found, exact)


@pytest.mark.slow_on_clusters
@pytest.mark.parametrize("segments", [1, 4])
def test_a_null_segment_is_refused_where_segments_are_read_in_parts(
    engine, little_memory, segments
):
    names = [f"s{i % segments}" for i in range(4_000)]
    names[70] = names[90] = None
    columns = {"s": pa.array(names, pa.string()), "y": np.arange(4_000) % 2}
    frame = engine.frame(table_of(scores(4_000), **columns))
    with pytest.raises(ValueError, match="by must not be null or NaN, got 2 such rows"):
        decisions(frame, "p", by="s")
    with pytest.raises(ValueError, match="by must not be null or NaN, got 2 such rows"):
        tune(frame, label="y", score="p", by="s")


def test_a_lazy_polars_frame_can_be_streamed():
    p = scores(20_000, seed=12)
    labelled = decide(pl.LazyFrame({"p": p}), "p").collect(engine="streaming")
    exact = maximize_expected_f(p, ties="together")
    assert labelled["label"].to_list() == exact.selected.tolist()


@pytest.mark.parametrize("by", [None, "s"])
@pytest.mark.parametrize("first", [19_000, 20_000])
def test_a_frame_that_changes_between_passes_is_refused(little_memory, by, first):
    """Sorted, so that the first rows are unlike the others and one pass is not enough."""
    counter = iter(range(100))

    def other_each_time(column):
        if len(column) < 10_000:  # asked for the type
            return column
        seed = next(counter)
        p = np.sort(scores(20_000, seed=seed))
        return pl.Series(np.where(np.arange(20_000) < first, p, 0.9))

    rows = {"p": scores(20_000), "s": np.arange(20_000) % 3}
    changing = pl.LazyFrame(rows).with_columns(pl.col("p").map_batches(other_each_time))
    if by:
        changing = changing.filter(pl.col("p") > 0.01)
    with pytest.raises(ValueError, match="must have the same rows each time it is read"):
        decide(changing, "p", by=by)


def test_a_frame_that_changes_before_any_of_its_passes_is_never_decided_wrongly(little_memory):
    """Between levels a band is empty, and one more pass finds the threshold."""
    rng = np.random.default_rng(0)
    rising = np.sort(np.round(rng.random(20_000), 2))
    versions = [rising, rising * 0.997]
    exact = {(d.k, d.threshold) for d in map(maximize_expected_f, versions)}
    refused = []
    for same in range(1, 7):
        reads = iter(range(100))

        def other(column, reads=reads, same=same):
            if len(column) < 10_000:  # asked for the type
                return column
            return pl.Series(versions[next(reads) >= same])

        frame = pl.LazyFrame({"p": versions[0]}).select(pl.col("p").map_batches(other))
        try:
            found = decisions(frame, "p")[()]
        except ValueError as error:
            refused.append(str(error))
        else:
            assert (found.k, found.threshold) in exact
    assert len(refused) >= 2
    assert all("must have the same rows each time it is read" in each for each in refused)


def test_a_frame_that_changes_after_its_items_are_counted_is_refused(little_memory):
    """Few positives: counts of all items say where the band is, and the next pass reads it."""
    versions = [
        scores(20_000) ** 20,
        np.full(20_000, 0.6),
        np.append(1e-3 * scores(19_500), np.ones(500)),
    ]
    reads = iter([0, 0, 1])

    def other(column):
        if len(column) < 10_000:  # asked for the type
            return column
        return pl.Series(versions[next(reads, 2)])

    frame = pl.LazyFrame({"p": versions[0]}).select(pl.col("p").map_batches(other))
    with pytest.raises(ValueError, match="must have the same rows each time it is read"):
        decisions(frame, "p")


def test_a_billion_equal_values_twice():
    # counts in the summary stand for rows: 0.3 and 0.1, a billion times each
    groups = Groups.of_values(np.array([0.3, 0.1]), np.array([1e9, 1e9]))
    search = Search(groups, Problem.of(1.0, "fbeta", ties="together"))
    assert search.wanted == []
    decision = search.decision(3 * 10**9)
    assert (decision.k, decision.threshold, decision.n) == (10**9, 0.3, 3 * 10**9)
    # F = 2T / (k + S) with T = 0.3 k and S = 0.4 k, both sharp by the law of large numbers
    assert decision.expected == pytest.approx(0.6 / 1.4, rel=1e-8)
    assert decision.std < 1e-4


def near_edges():
    """Probabilities at and beside the edges of groups."""
    rng = np.random.default_rng(9)
    edges = np.ldexp(1.0, -rng.integers(1, 64, 300)) * (1 + rng.integers(0, 65, 300) / 64)
    near = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1)])
    p = np.concatenate([near, 1 - near, EDGES])
    return p[(p >= 0) & (p <= 1)]


def test_passes_by_expressions_are_those_over_the_array():
    p = np.concatenate([near_edges(), scores(5_000)])
    passes = ExpressionPasses(as_frame(pl.LazyFrame({"p": p})), "p")
    exact, low, high = ArrayPasses(p), 0.1, 0.2
    np.testing.assert_array_equal(passes.counts(), exact.counts())
    np.testing.assert_array_equal(passes.counts(sampled=True), exact.counts())
    np.testing.assert_allclose(passes.above(low), exact.above(low), rtol=1e-14)
    found, expected = passes.around(low, high, p.size), exact.around(low, high, p.size)
    np.testing.assert_allclose(found.sums, expected.sums, rtol=1e-12)
    np.testing.assert_array_equal(found.items, expected.items)
    assert passes.around(low, high, 3).items is None
    assert passes.least_above(high) == exact.least_above(high)


@pytest.mark.parametrize("beta", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("mean", [40_000, 5])
def test_the_band_by_expressions_is_that_of_the_array(beta, mean):
    p = scores(200_000) if mean > 100 else np.exp(np.random.default_rng(0).normal(-13, 2, 200_000))
    p = np.minimum(p, 1.0)
    passes = ExpressionPasses(as_frame(pl.LazyFrame({"p": p})), "p")
    found = band.decide(passes, Problem.of(beta))
    exact = maximize_expected_f(p, beta=beta)
    assert (found.k, found.threshold) == (exact.k, exact.threshold)
    assert found.expected == pytest.approx(exact.expected, rel=1e-12)


ONLY = {
    "polars": "import polars as pl; frame = pl.LazyFrame({'p': [0.1, 0.7], 's': [1, 2]})",
    "pandas": "import pandas as pd; frame = pd.DataFrame({'p': [0.1, 0.7], 's': [1, 2]})",
    "pyarrow": "import pyarrow as pa; frame = pa.table({'p': [0.1, 0.7], 's': [1, 2]})",
}


@pytest.mark.parametrize("name", ONLY)
def test_no_engine_is_imported_but_the_one_that_is_given(name):
    code = f"""
import sys
{ONLY[name]}
before = set(sys.modules)
import argmaxf
argmaxf.decide(frame, "p", by="s"), argmaxf.summarize(frame, "p")
engines = ["pandas", "polars", "pyarrow", "duckdb", "dask", "pyspark"]
print([e for e in engines if e in sys.modules and e not in before])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
