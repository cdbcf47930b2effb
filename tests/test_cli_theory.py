"""The commands reproduce and bounds, as a user runs them."""

import json

import pytest

from argmaxf.cli.app import run
from argmaxf.theory import deviation_bound, sample_size


def test_reproduce_prints_what_was_found(tmp_path, capsys):
    assert run(["reproduce", "figure1", "--quick", "--seeds", "1", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "figure1: 1 - F1 follows KL" in printed
    assert "training models" in printed
    assert (tmp_path / "results.md").exists()


def test_reproduce_json(tmp_path, capsys):
    arguments = ["reproduce", "figure1", "--quick", "--seeds", "1", "--jobs", "1", "--json"]
    assert run([*arguments, "--out", str(tmp_path)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["experiments"]["figure1"]["findings"]["seeds"] == 1
    assert str(tmp_path / "results" / "figure1.svg") in result["files"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "experiment must be one of"),
        (["table4", "--data-dir", "/nowhere"], "data_dir must be an existing folder"),
        (["table1", "--seeds", "0"], "seeds must be at least 1, got 0"),
    ],
)
def test_reproduce_refuses_in_one_line(tmp_path, capsys, arguments, message):
    assert run(["reproduce", *arguments, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_reproduce_stopped_by_hand(tmp_path, capsys, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("argmaxf.paper.reproduce", stop)
    assert run(["reproduce", "figure1", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "argmaxf: stopped; the same command goes on from here\n"


def test_reproduce_says_which_extra_is_missing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("argmaxf.cli.reproduce.find_spec", lambda name: None)
    assert run(["reproduce", "figure1", "--out", str(tmp_path)]) == 2
    assert "pip install 'argmaxf[plot,data]'" in capsys.readouterr().err


def test_bounds_are_those_of_the_library(capsys):
    assert run(["bounds", "--n", "100000", "--positive-rate", "0.3", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["lemma_2"]["bound"] == deviation_bound(100_000, 0.3).value
    row = next(r for r in result["needed"] if r["positive_rate"] == 0.3)
    assert row["theorem_3"] == sample_size(0.05, 0.3, vc_dimension=1)


def test_bounds_say_when_they_say_nothing(capsys):
    assert run(["bounds", "--n", "1000", "--positive-rate", "0.05"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Lemma 2 says nothing here: it takes at least 15,320 examples" in printed
    assert "15,320" in printed


def test_bounds_refuse_in_one_line(capsys):
    assert run(["bounds", "--n", "1000", "--positive-rate", "0"]) == 2
    assert capsys.readouterr().err == "argmaxf: positive_rate must lie in (0, 1], got 0.0\n"
