"""The command bounds, as a user runs it."""

import json

from argmaxf.cli.app import run
from argmaxf.theory import deviation_bound, sample_size


def test_bounds_are_those_of_the_library(capsys):
    assert run(["bounds", "--n", "100000", "--positive-rate", "0.3", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["lemma_2"]["bound"] == deviation_bound(100_000, 0.3).value
    row = next(r for r in result["needed"] if r["positive_rate"] == 0.3)
    assert row["theorem_3"] == sample_size(0.05, 0.3, vc_dimension=1)


def test_bounds_say_when_they_say_nothing(capsys):
    assert run(["bounds", "--n", "1000", "--positive-rate", "0.05"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Lemma 2 does not apply: it needs at least 15,320 examples" in printed
    assert "15,320" in printed


def test_bounds_refuse_in_one_line(capsys):
    assert run(["bounds", "--n", "1000", "--positive-rate", "0"]) == 2
    assert capsys.readouterr().err == "argmaxf: positive_rate must lie in (0, 1], got 0.0\n"
