"""Promises on frames, in files and by the command."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from argmaxf import decide, maximize_expected_f, shift_prior
from argmaxf.cli.app import app
from argmaxf.frames import decisions

rng = np.random.default_rng(0)
P = np.round(rng.beta(2, 1, 900), 3)
BY = np.array(["a", "b", "c"])[rng.integers(0, 3, 900)]
PROMISE = {"min_precision": 0.8, "confidence_level": 0.9}
TOGETHER = {"ties": "together"}  # as lazy frames have it


def assert_same(found, other):
    """Equal but for the last digits, in which compiled code may differ."""
    assert found.constraints == other.constraints
    assert (found.confidence_level, found.probability, found.cost) == pytest.approx(
        (other.confidence_level, other.probability, other.cost), abs=1e-13
    )


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def test_a_frame_keeps_the_promise_of_its_array(make):
    frame = make({"p": P})
    together = TOGETHER if make is pl.LazyFrame else {}
    alone = maximize_expected_f(P, **together, **PROMISE)
    (found,) = decisions(frame, "p", **together, **PROMISE).values()
    assert found.k == alone.k
    assert_same(found.guarantee, alone.guarantee)
    labelled = decide(frame, "p", **together, **PROMISE)
    labelled = labelled.collect() if isinstance(labelled, pl.LazyFrame) else labelled
    assert np.array_equal(labelled["label"].to_numpy(), alone.selected)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.LazyFrame])
def test_all_segments_keep_it_at_once(make):
    frame = make({"p": P, "by": BY})
    found = decisions(frame, "p", by="by", **TOGETHER, **PROMISE)
    each = 0.9 ** (1 / 3)
    kept = 1.0
    for (name,), decision in found.items():
        alone = maximize_expected_f(
            P[name == BY], ties="together", min_precision=0.8, confidence_level=each
        )
        assert decision.k == alone.k
        assert_same(decision.guarantee, alone.guarantee)
        assert decision.guarantee.joint_confidence_level == 0.9
        kept *= decision.guarantee.probability
    assert kept >= 0.9
    overall = maximize_expected_f(P, by=BY, **TOGETHER, **PROMISE).overall
    assert_same(found.overall.guarantee, overall.guarantee)
    assert found.overall.expected == pytest.approx(overall.expected, abs=1e-13)
    assert (found.overall.k, found.overall.n) == (overall.k, 900)


def test_several_columns_have_each_their_overall():
    frame = pl.DataFrame({"p": P, "q": P[::-1] ** 2, "by": BY})
    found = decisions(frame, ["p", "q"], by="by", **PROMISE)
    for column in ("p", "q"):
        alone = decisions(frame, column, by="by", **PROMISE)
        assert_same(found.overall[column].guarantee, alone.overall.guarantee)
        assert {key[:-1]: d.k for key, d in found.items() if key[-1] == column} == {
            key: d.k for key, d in alone.items()
        }
    assert decisions(frame, "p", by="by").overall is None
    assert decisions(frame, "p", **PROMISE).overall is None


def test_the_segment_that_cannot_keep_it_is_named():
    hard = {"min_precision": 0.9, "min_recall": 0.9, "confidence_level": 0.9}
    p, by = np.append(P[:50] ** 0.01, [0.5, 0.5]), np.append(["fine"] * 50, ["hard"] * 2)
    told = (
        r"segment 'hard': .* cannot be met at confidence level 0\.9486\d* \(0\.9 for all segments"
    )
    with pytest.raises(ValueError, match=told):
        maximize_expected_f(p, by=by, **hard)
    frame = pl.DataFrame({"p": p, "by": by})
    with pytest.raises(ValueError, match=told):
        decisions(frame, "p", by="by", **hard)


def test_columns_keep_their_own():
    frame = pl.DataFrame({"p": P, "q": P[::-1] ** 2})
    found = decisions(frame, ["p", "q"], **PROMISE)
    assert found["q",].k == maximize_expected_f(P**2, **PROMISE).k


def test_the_command_says_what_is_promised(tmp_path, run):
    path = tmp_path / "scores.csv"
    pl.DataFrame({"p": P, "by": BY}).write_csv(path)
    chance = ["--min-precision", "0.8", "--confidence-level", "0.9"]
    alone = maximize_expected_f(P, **PROMISE)
    answer = json.loads(run("decide", str(path), "-p", "p", *chance, "--json"))
    assert answer["k"] == alone.k
    assert answer["guarantee"]["probability"] == pytest.approx(alone.guarantee.probability)
    assert answer["guarantee"]["min_precision"] == 0.8
    text = run("decide", str(path), "-p", "p", "--by", "by", *chance)
    assert "a: guaranteed: min_precision=0.8 with probability 0.9" in text
    assert "(0.9 for all segments at once)" in text
    overall = maximize_expected_f(P, by=BY, **PROMISE).overall
    assert f"All segments together: E[F] {overall.expected:.6g}" in text
    assert f"guaranteed: {overall.guarantee}" in text
    answer = json.loads(run("decide", str(path), "-p", "p", "--by", "by", *chance, "--json"))
    assert answer["overall"]["k"] == overall.k
    assert answer["overall"]["guarantee"]["probability"] == pytest.approx(
        overall.guarantee.probability
    )
    assert answer["segments"][0]["guarantee"]["joint_confidence_level"] == 0.9
    written = tmp_path / "labels.csv"
    run("decide", str(path), "-p", "p", *chance, "-o", str(written))
    assert pl.read_csv(written)["label"].sum() == alone.k


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_at_another_rate_keeps_the_promise_of_the_moved_array(tmp_path, run, suffix):
    """A file, a prior and a promise together, with a budget and by segments too."""
    path = tmp_path / f"scores.{suffix}"
    frame = pl.DataFrame({"p": P, "by": BY})
    frame.write_csv(path) if suffix == "csv" else frame.write_parquet(path)
    rates = ["--train-rate", "0.5", "--deploy-rate", "0.3"]
    chance = ["--min-precision", "0.7", "--min-recall", "0.1", "--confidence-level", "0.9", *rates]
    options = {
        "min_precision": 0.7,
        "min_recall": 0.1,
        "confidence_level": 0.9,
    }
    moved = shift_prior(P, train_rate=0.5, deploy_rate=0.3)
    alone = maximize_expected_f(moved, max_selected=200, **options)
    written = tmp_path / f"labels.{suffix}"
    more = ["--max-selected", "200", "-o", str(written)]
    answer = json.loads(run("decide", str(path), "-p", "p", *chance, *more, "--json"))
    assert answer["k"] == alone.k > 0
    assert answer["guarantee"]["probability"] == pytest.approx(alone.guarantee.probability)
    read = pl.read_csv if suffix == "csv" else pl.read_parquet
    assert np.array_equal(read(written)["label"].to_numpy(), alone.selected)
    found = maximize_expected_f(moved, by=BY, **options)
    answer = json.loads(run("decide", str(path), "-p", "p", "--by", "by", *chance, "--json"))
    assert [each["k"] for each in answer["segments"]] == found.k.tolist()


@pytest.fixture
def run():
    from typer.testing import CliRunner

    def run(*arguments):
        result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    return run


def test_the_command_refuses_what_it_cannot_promise(tmp_path):
    from typer.testing import CliRunner

    path = tmp_path / "scores.csv"
    pl.DataFrame({"p": P}).write_csv(path)
    for more, message in [
        (["--min-precision", "0.8"], "needs confidence_level"),
        (["--confidence-level", "0.8"], "needs min_precision"),
        (["--min-recall", "0.8", "--confidence-level", "0.8", "--threshold", "0.5"], "got both"),
    ]:
        with pytest.raises(ValueError, match=message):
            CliRunner().invoke(app, ["decide", str(path), "-p", "p", *more], catch_exceptions=False)
