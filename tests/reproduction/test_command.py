"""python -m reproduction, as a user runs it."""

import pytest

from reproduction.__main__ import main


def test_the_command_prints_what_was_found(tmp_path, capsys):
    arguments = ["figure1", "--quick", "--seeds", "1", "--jobs", "1", "--out", str(tmp_path)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "figure1: 1 - F1 follows KL" in printed
    assert "training models" in printed
    assert (tmp_path / "results.md").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "experiment must be one of"),
        (["table4", "--data-dir", "/nowhere"], "data_dir must be an existing folder"),
        (["table1", "--seeds", "0"], "seeds must be at least 1, got 0"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(tmp_path, capsys, arguments, message):
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_run_that_is_stopped_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("reproduction.run.reproduce", stop)
    assert main(["figure1", "--out", str(tmp_path)]) == 130
    expected = "reproduction: stopped; the same command goes on from here\n"
    assert capsys.readouterr().err == expected


def test_missing_packages_are_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("reproduction.__main__.find_spec", lambda name: None)
    assert main(["figure1", "--out", str(tmp_path)]) == 2
    assert "pip install matplotlib pooch liac-arff" in capsys.readouterr().err
