"""Odd input of the command: one clear line and exit code 2, or the right result."""

import datetime
import gzip
import json
import os
import stat
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from argmaxf import decide
from argmaxf.cli.app import run
from argmaxf.cli.common import MEASURES, plain
from argmaxf.frames import decisions
from argmaxf.measures import MEASURES as REGISTRY

ARGMAXF = [sys.executable, "-c", "from argmaxf.cli import main; main()"]


def ended(*words, **options):
    """Run the command in a process of its own."""
    return subprocess.run([*ARGMAXF, *words], capture_output=True, timeout=120, **options)


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("p,s\n0.9,a\n0.1,b\n0.4,b\n")
    return path


def test_a_file_name_that_is_not_utf8_is_named(rows, tmp_path):
    odd = os.path.join(os.fsencode(tmp_path), b"odd\xff.csv")
    with open(odd, "wb") as file:
        file.write(rows.read_bytes())
    for words in ([odd, "-p", "p"], [tmp_path, "-p", "p"], [rows, "-p", "p", "-o", odd]):
        done = ended("decide", *words)
        assert done.returncode == 2, done
        assert done.stderr.decode().count("\n") == 1
        assert b"the name of a file must be UTF-8, got b'" in done.stderr


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    done = ended("decide", tmp_path / "pipe.csv", "-p", "p")
    assert (done.returncode, b"must be a file, got a pipe" in done.stderr) == (2, True)
    os.mkfifo(tmp_path / "pipe.argmaxf")
    words = ["merge", tmp_path / "pipe.argmaxf", "-o", tmp_path / "out.argmaxf"]
    assert ended(*words).returncode == 2


@pytest.mark.parametrize("encoding", ["ascii", "ascii:strict", "latin-1"])
def test_a_terminal_with_few_letters_gets_the_result(rows, tmp_path, encoding):
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    out = tmp_path / "out.csv"
    done = ended("decide", rows, "-p", "p", "-o", out, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert out.exists()
    assert ended("bounds", "--n", "100", "--positive-rate", ".5", env=environment).returncode == 0


def test_escape_sequences_of_the_data_do_not_reach_the_terminal(tmp_path, capsys):
    name = "a\x1b]0;owned\x07\x9b31m"
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"p": [0.5, 0.25], "s\x1b[1m": [name, "b"]}).write_parquet(path)
    for more in (
        [],
        ["--threshold-only"],
        ["--json"],
        ["--min-precision", ".1", "--confidence-level", ".5"],
    ):
        assert run(["decide", str(path), "-p", "p", "--by", "s\x1b[1m", *more]) == 0
        printed = capsys.readouterr().out
        assert not set(printed) & {"\x1b", "\x07", "\x9b"}, more
        assert "owned" in printed
    assert run(["decide", str(path), "-p", "p\x1b[31m"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_plain_text_keeps_letters():
    assert plain("Zürich 東京 €") == "Zürich 東京 €"
    assert plain("a\nb\x00") == r"a\nb\x00"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_segments_of_an_empty_column_are_refused_by_that(tmp_path, capsys, kind):
    frame = pl.DataFrame(
        {"p": [0.9, 0.1], "s": [None, None]}, schema={"p": pl.Float64, "s": pl.String}
    )
    path = tmp_path / f"rows.{kind}"
    {"csv": frame.write_csv, "parquet": frame.write_parquet}[kind](path)
    assert run(["decide", str(path), "-p", "p", "--by", "s"]) == 2
    assert "by must not be null or NaN, got 2 such rows" in capsys.readouterr().err


@pytest.mark.parametrize("make", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, pl.DataFrame.lazy])
def test_frames_refuse_an_empty_column_of_segments_by_that(make):
    frame = pl.DataFrame(
        {"p": [0.9, 0.1], "s": [None, None]}, schema={"p": pl.Float64, "s": pl.String}
    )
    with pytest.raises(ValueError, match="by must not be null or NaN, got 2 such rows"):
        decide(make(frame), "p", by="s")
    with pytest.raises(ValueError, match="at least one probability, got none"):
        decide(make(frame.clear()), "p", by="s")


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_zoned_times_of_segments_keep_their_zone(tmp_path, capsys, unit):
    times = pl.Series([datetime.datetime(2024, 1, 1, 12), datetime.datetime(2024, 7, 1)])
    zoned = times.dt.replace_time_zone("Europe/Paris").cast(pl.Datetime(unit, "Europe/Paris"))
    frame = pl.DataFrame({"p": [0.9, 0.1], "t": zoned})
    frame.write_parquet(tmp_path / "rows.parquet")
    words = ["decide", str(tmp_path / "rows.parquet"), "-p", "p", "--by", "t", "--json"]
    assert run(words) == 0
    found = [each["segment"]["t"] for each in json.loads(capsys.readouterr().out)["segments"]]
    assert [pd.Timestamp(each) for each in found] == [pd.Timestamp(each) for each in zoned]
    assert all(each.endswith("+00:00") for each in found)
    assert all("+00:00" in str(key) for (key,) in decisions(frame, "p", by="t"))


def test_integers_that_no_double_holds_are_names(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    y = (x + rng.normal(size=80) > 0).astype(int)
    group = [10**25 + int(i) for i in rng.integers(0, 3, 80)]
    frame = {"x": x, "group": group, "id": [10**25 + 7 * i for i in range(80)], "y": y}
    path = tmp_path / "rows.csv"
    lines = zip(*(map(str, column) for column in frame.values()), strict=True)
    path.write_text("\n".join(map(",".join, [tuple(frame), *lines])) + "\n")
    words = ["compare", str(path), "--folds", "2", "--json", "--target"]
    assert run([*words, "y"]) == 0, capsys.readouterr().err
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any("only number or name the rows were left out: id" in note for note in notes)
    path.write_text(
        "x,y\n" + "".join(f"{v},{10**25 + i}\n" for v, i in zip(x, y.tolist(), strict=True))
    )
    assert run([*words, "y"]) == 0, capsys.readouterr().err


def test_a_private_file_is_zipped_in_private(tmp_path, monkeypatch):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv.gz"
    path.write_text("p\n0.9\n0.1\n")
    out.touch()
    out.chmod(0o600)
    modes, sink = [], pl.LazyFrame.sink_csv

    def seen(frame, target, **options):
        sink(frame, target, **options)
        modes.extend(stat.S_IMODE(each.stat().st_mode) for each in tmp_path.glob(".*.part"))

    monkeypatch.setattr(pl.LazyFrame, "sink_csv", seen)
    assert run(["decide", str(path), "-p", "p", "-o", str(out), "--force"]) == 0
    assert modes == [0o600]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert gzip.decompress(out.read_bytes()) == b"p,label\n0.9,true\n0.1,false\n"


def test_help_names_every_measure():
    assert MEASURES.startswith(f"{', '.join(REGISTRY)};")


def test_help_imports_no_engine_and_no_library_of_numbers():
    code = (
        "import sys; from argmaxf.cli.app import run; run(['--help']); run(['decide', '--help']);"
        "heavy = {'polars', 'numpy', 'sklearn', 'numba', 'narwhals', 'scipy'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
