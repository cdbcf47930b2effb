"""argmaxf tune, evaluate and labelled sketches: the answers of the arrays, from files."""

import json

import numpy as np
import polars as pl
import pytest

from argmaxf import LabelledSketch, f_interval, maximize_empirical_f
from argmaxf.cli.app import run


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    n = 500
    score = rng.beta(0.5, 3.0, n)
    columns = {"id": np.arange(n), "y": (rng.random(n) < score).astype(int), "s": score}
    columns["w"] = rng.integers(0, 3, n).astype(float)
    return pl.DataFrame(columns | {"city": rng.choice(["Bonn", "Lyon"], n)})


@pytest.fixture(params=["csv", "parquet"])
def path(request, rows, tmp_path):
    found = tmp_path / f"rows.{request.param}"
    rows.write_csv(found) if request.param == "csv" else rows.write_parquet(found)
    return found


def asked(capsys, *words):
    """The result of a command that succeeds, from JSON."""
    assert run([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def complaint(capsys, *words):
    assert run([*map(str, words)]) == 2
    return capsys.readouterr().err


def test_threshold_is_that_of_the_arrays(path, rows, capsys):
    options = "--label", "y", "--score", "s", "--weight", "w", "--min-precision", 0.3
    found = asked(capsys, "tune", path, *options, "--measure", "jaccard")
    y, score, weight = (rows[name].to_numpy() for name in ("y", "s", "w"))
    best = maximize_empirical_f(
        y, score, measure="jaccard", sample_weight=weight, min_precision=0.3
    )
    for name in ("threshold", "value", "precision", "recall", "k"):
        assert found[name] == getattr(best, name)
    assert run(["tune", str(path), "--label", "y", "--score", "s", "--threshold-only"]) == 0
    printed = float(capsys.readouterr().out)
    assert printed == maximize_empirical_f(y, score).threshold


def test_predictions_are_written_beside_every_row(path, rows, tmp_path, capsys):
    out = tmp_path / "out.parquet"
    words = "--label", "y", "--score", "s", "--by", "city", "-o", out
    found = asked(capsys, "tune", path, *words, "--predicted", "chosen")
    written = pl.read_parquet(out)
    assert written.columns == [*rows.columns, "chosen"]
    best = maximize_empirical_f(rows["y"], rows["s"], by=rows["city"])
    cuts = dict(zip(best.segment.tolist(), best.threshold.tolist(), strict=True))
    wanted = [s >= cuts[city] for s, city in zip(rows["s"], rows["city"], strict=True)]
    assert written["chosen"].to_list() == wanted
    each = {segment["segment"]["city"]: segment["threshold"] for segment in found["segments"]}
    assert each == cuts
    assert found["overall"]["k"] == sum(wanted)


KEYS = {
    "category": pl.Series(["a", "b"], dtype=pl.Categorical),
    "nanoseconds": pl.Series([1, 2**60 + 1], dtype=pl.Datetime("ns")),
    "zone": pl.Series([0, 10**15], dtype=pl.Datetime("us", "Europe/Berlin")),
    "int32": pl.Series([7, -7], dtype=pl.Int32),
    "float32": pl.Series([0.1, 0.2], dtype=pl.Float32),
}


@pytest.mark.parametrize("kind", KEYS)
def test_predictions_of_segments_of_every_type(rows, tmp_path, kind):
    which = np.arange(len(rows)) % 2
    path, out = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    rows.with_columns(KEYS[kind].gather(which).alias("k")).write_parquet(path)
    words = "--label", "y", "--score", "s", "--by", "k", "-o", str(out)
    assert run(["tune", str(path), *words]) == 0
    best = maximize_empirical_f(rows["y"], rows["s"], by=which)
    chosen = pl.read_parquet(out)["predicted"].to_numpy()
    np.testing.assert_array_equal(chosen, rows["s"].to_numpy() >= best.threshold[which])


def test_intervals_are_those_of_the_arrays(rows, tmp_path, capsys):
    rows = rows.with_columns(label=pl.col("s") > 0.3)
    path = tmp_path / "labels.csv"
    rows.write_csv(path)
    found = asked(capsys, "evaluate", path, "--label", "y", "--predicted", "label")
    interval = f_interval(rows["y"], rows["label"])
    assert (found["low"], found["value"], found["high"]) == (
        interval.low,
        interval.value,
        interval.high,
    )
    found = asked(capsys, "evaluate", path, "--label", "y", "--predicted", "label", "--by", "city")
    for each in found["segments"]:
        there = rows.filter(pl.col("city") == each["segment"]["city"])
        assert each["value"] == f_interval(there["y"], there["label"]).value
    assert run(["evaluate", str(path), "--label", "y", "--predicted", "label"]) == 0
    assert f"{interval.value:.4f}" in capsys.readouterr().out


def test_daily_sketches_are_merged_and_tuned(rows, tmp_path, capsys):
    paths = []
    for i, day in enumerate((rows[:200], rows[200:])):
        day.write_parquet(tmp_path / f"{i}.parquet")
        paths.append(tmp_path / f"{i}.argmaxf")
        words = "sketch", tmp_path / f"{i}.parquet", "-p", "s", "--label", "y", "-o", paths[-1]
        assert asked(capsys, *words)["positives"] == day["y"].sum()
    week = tmp_path / "week.argmaxf"
    asked(capsys, "merge", *paths, "-o", week)
    found = asked(capsys, "tune", week)
    best = LabelledSketch.from_arrays(rows["y"], rows["s"]).tune()
    assert (found["threshold"], found["value"], found["gap"]) == (
        best.threshold,
        best.value,
        best.gap,
    )
    assert "use argmaxf tune" in complaint(capsys, "decide", week)
    unlabelled = tmp_path / "p.argmaxf"
    asked(capsys, "sketch", tmp_path / "0.parquet", "-p", "s", "-o", unlabelled)
    assert "use argmaxf decide" in complaint(capsys, "tune", unlabelled)
    together = complaint(capsys, "merge", week, unlabelled, "-o", tmp_path / "both.argmaxf")
    assert "must be of one kind" in together
    assert "need the rows, got a sketch" in complaint(capsys, "tune", week, "--by", "city")


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("s", "oops", "row 8: column 's' must hold numbers, got 'oops'"),
        ("s", "", "column 's' must have a value in every row, got 1 null or NaN, the first in"),
        ("y", "2", "row 8: column 'y' must hold 0 and 1, got 2.0"),
        ("w", "-1", "row 8: column 'w' must be finite and not negative, got -1.0"),
        ("w", "inf", "row 8: column 'w' must be finite and not negative, got inf"),
    ],
)
def test_bad_values_are_named_by_file_and_row(rows, tmp_path, capsys, column, value, sentence):
    texts = rows.with_columns(pl.all().cast(pl.String))
    new = pl.when(pl.col("id") == "7").then(pl.lit(value)).otherwise(pl.col(column))
    texts.with_columns(new.alias(column)).write_csv(tmp_path / "bad.csv")
    words = "tune", tmp_path / "bad.csv", "--label", "y", "--score", "s", "--weight", "w"
    said = complaint(capsys, *words)
    assert "bad.csv" in said
    assert sentence in said


def test_rows_without_a_label_can_be_dropped(rows, tmp_path, capsys):
    given = rows.with_columns(y=pl.when(pl.col("id") % 5 == 0).then(None).otherwise(pl.col("y")))
    given.write_csv(tmp_path / "rows.csv")
    words = "tune", tmp_path / "rows.csv", "--label", "y", "--score", "s"
    assert "column 'y' must have a value in every row, got 100" in complaint(capsys, *words)
    kept = given.drop_nulls()
    best = maximize_empirical_f(kept["y"], kept["s"])
    assert asked(capsys, *words, "--nulls", "drop")["threshold"] == best.threshold


def test_labels_may_be_texts(rows, tmp_path, capsys):
    given = rows.with_columns(
        y=pl.when(pl.col("y") == 1).then(pl.lit("spam")).otherwise(pl.lit(""))
    )
    given = given.with_columns(pl.col("y").replace("", "ham"))
    given.write_csv(tmp_path / "rows.csv")
    words = "tune", tmp_path / "rows.csv", "--label", "y", "--score", "s"
    found = asked(capsys, *words, "--positive", "spam")
    assert found["threshold"] == maximize_empirical_f(rows["y"], rows["s"]).threshold
    assert "column 'y' must hold 0 and 1, got 'ham'" in complaint(capsys, *words)


def test_guarantees_are_printed(path, capsys):
    words = ["tune", str(path), "--label", "y", "--score", "s", "--min-precision", "0.2"]
    assert run([*words, "--confidence-level", "0.9"]) == 0
    assert "guaranteed: min_precision=0.2 at confidence level 0.9" in capsys.readouterr().out
    said = complaint(capsys, *words, "--confidence-level", "0.9", "--min-recall", "1")
    assert "cannot be guaranteed" in said


def test_columns_and_files_that_are_not_there_are_named(path, capsys):
    assert "name the column of labels" in complaint(capsys, "tune", path)
    assert "no column 'q'" in complaint(capsys, "tune", path, "--label", "q", "--score", "s")
    sketch = path.with_name("all.argmaxf")
    assert "no column 'q'" in complaint(
        capsys, "sketch", path, "-p", "s", "--label", "q", "-o", sketch
    )
    words = "tune", path, "--label", "y", "--score", "s", "-o", path, "--force"
    assert "input" in complaint(capsys, *words)
