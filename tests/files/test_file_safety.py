"""No command loses data: inputs are never written over, outputs are whole, bad files are named."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from argmaxf import ProbabilitySketch, decide, maximize_expected_f
from argmaxf._base.atomic_write import refuse_inputs, written_whole
from argmaxf.cli.app import run
from argmaxf.cli.scored_files import _with_std
from argmaxf.cli.tables import read_table

ARGMAXF = [sys.executable, "-c", "from argmaxf.cli import main; main()"]


def refused(capsys, *arguments):
    """Run the command on bad input; return its one line."""
    code = run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert code == 2, captured
    assert captured.out == ""
    assert captured.err.startswith("argmaxf: ")
    assert captured.err.count("\n") == 1
    return captured.err


def result_of(capsys, *arguments):
    code = run([*map(str, arguments), "--json"])
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    return json.loads(captured.out)


@pytest.fixture
def train():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    return pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": (x[:, 0] > 0.7).astype(int)})


# --- inputs ---------------------------------------------------------------------------------------


def other_names(path):
    """Every way in which a file may be called, made beside it."""
    link, hard = path.with_name("link" + path.suffix), path.with_name("hard" + path.suffix)
    folder = path.parent / "folder"
    link.symlink_to(path.name)
    os.link(path, hard)
    folder.symlink_to(path.parent)
    return [path, path.parent / "." / path.name, link, hard, folder / path.name]


def test_compare_never_writes_over_its_tables(train, tmp_path, capsys, monkeypatch):
    path, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_csv(path)
    train.write_csv(test)
    before = path.read_bytes()
    monkeypatch.chdir(tmp_path)
    for option in ("--report", "--save"):
        for name in [
            *other_names(path),
            Path("train.csv"),
            Path("../" + tmp_path.name, "test.csv"),
        ]:
            error = refused(capsys, "compare", path, "--target", "y", "--test", test, option, name)
            assert "the output must not be one of the inputs" in error
        for made in ("link.csv", "hard.csv", "folder"):
            (tmp_path / made).unlink()
    assert path.read_bytes() == test.read_bytes() == before
    error = refused(capsys, "compare", path, "--target", "y", "--report", "o", "--save", "./o")
    assert "each output needs a name of its own" in error


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_decide_never_writes_over_its_files(tmp_path, capsys, kind):
    path = tmp_path / f"in.{kind}"
    frame = pl.DataFrame({"p": [0.2, 0.7]})
    frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
    before = path.read_bytes()
    for name in other_names(path):
        error = refused(capsys, "decide", path, "-p", "p", "-o", name)
        assert "the output must not be one of the inputs" in error
    assert path.read_bytes() == before


def test_the_standard_input_is_an_input_too(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("p\n0.5\n")
    with path.open("rb") as stdin:
        command = [*ARGMAXF, "decide", "-", "-p", "p", "-o", str(path)]
        ended = subprocess.run(command, stdin=stdin, capture_output=True, text=True)
    assert (ended.returncode, path.read_text()) == (2, "p\n0.5\n")
    assert "the output must not be one of the inputs" in ended.stderr


def test_sketch_and_merge_never_write_over_their_inputs(tmp_path, capsys):
    path, other = tmp_path / "a.argmaxf", tmp_path / "b.argmaxf"
    for name in (path, other):
        name.write_bytes(ProbabilitySketch.from_array([0.1, 0.7]).to_bytes())
    for name in other_names(other):
        error = refused(capsys, "merge", path, other, "-o", name)
        assert "the output must not be one of the inputs" in error
    rows = tmp_path / "rows.csv"
    rows.write_text("p\n0.5\n")
    (tmp_path / "rows.argmaxf").symlink_to("rows.csv")
    error = refused(capsys, "sketch", rows, "-p", "p", "-o", tmp_path / "rows.argmaxf")
    assert "the output must not be one of the inputs" in error
    assert rows.read_text() == "p\n0.5\n"


WRITERS = {
    "csv": pl.DataFrame.write_csv,
    "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "parquet": pl.DataFrame.write_parquet,
    "arrow": pl.DataFrame.write_ipc,
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("name", ["x[1]", "x?", "x*", "x{1}", "{}", "%41", "a b~$", "é\u0301"])
def test_a_path_that_exists_is_that_file(tmp_path, capsys, kind, name):
    path, out = tmp_path / f"{name}.{kind}", tmp_path / f"{name} out.{kind}"
    WRITERS[kind](pl.DataFrame({"p": [0.9, 0.8, 0.1]}), path)
    for decoy in ("x1", "x2", "A", "1"):
        WRITERS[kind](pl.DataFrame({"p": [0.5] * 7}), tmp_path / f"{decoy}.{kind}")
    assert result_of(capsys, "decide", path, "-p", "p", "-o", out)["rows"] == 3
    assert result_of(capsys, "decide", out, "-p", "p")["rows"] == 3
    sketch = tmp_path / f"{name}.argmaxf"
    assert result_of(capsys, "sketch", path, "-p", "p", "-o", sketch)["rows"] == 3
    assert result_of(capsys, "decide", sketch)["rows"] == 3


@pytest.mark.parametrize("kind", WRITERS)
def test_compare_reads_the_file_it_is_given(train, tmp_path, capsys, kind):
    path = tmp_path / f"x[1].{kind}"
    WRITERS[kind](train, path)
    WRITERS[kind](train.rename({"y": "z"}), tmp_path / f"x1.{kind}")
    assert result_of(capsys, "compare", path, "--target", "y")["labels"] == ["y"]


# --- outputs --------------------------------------------------------------------------------------


def test_modes_and_links_are_respected(tmp_path, capsys):
    source, out, link = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "link.csv"
    source.write_text("p\n0.5\n")
    result_of(capsys, "decide", source, "-p", "p", "-o", out)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(out.stat().st_mode) == 0o666 & ~umask
    out.chmod(0o600)
    link.symlink_to("out.csv")
    out.write_text("")
    result_of(capsys, "decide", source, "-p", "p", "-o", link, "--force")
    assert link.is_symlink()
    assert out.read_text() == "p,label\n0.5,true\n"
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_only_files_are_written(tmp_path, capsys):
    source = tmp_path / "in.csv"
    source.write_text("p\n0.5\n")
    pipe, null, folder = (tmp_path / f"{name}.csv" for name in ("pipe", "null", "folder"))
    os.mkfifo(pipe)
    null.symlink_to("/dev/null")
    folder.mkdir()
    for name in (pipe, null, folder):
        error = refused(capsys, "decide", source, "-p", "p", "-o", name)
        assert "the output must be a file, not a folder or a device" in error
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_threads_that_write_the_same_output(tmp_path):
    """The final name is always whole, and nothing else is left."""
    path, torn = tmp_path / "out.txt", []

    def write(mark):
        for _ in range(40):
            with written_whole(path) as temporary, temporary.open("w") as file:
                for _ in range(20):
                    file.write(mark * 50)
            if len(set(path.read_text())) != 1 or path.stat().st_size != 1000:
                torn.append(mark)

    threads = [threading.Thread(target=write, args=(mark,)) for mark in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torn == []
    assert os.listdir(tmp_path) == ["out.txt"]


def test_two_processes_with_the_same_number(tmp_path, monkeypatch):
    """As in two containers that share a folder."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    path = tmp_path / "out.txt"
    with written_whole(path) as first:
        first.write_text("first")
        with written_whole(path) as second:
            second.write_text("second")
            assert first != second
        assert path.read_text() == "second"
        assert first.read_text() == "first"  # in use: not taken for one left behind
    assert path.read_text() == "first"


def test_what_was_left_behind_is_removed_by_the_next_run(tmp_path):
    path = tmp_path / ("n" * 250)
    code = f"""
import os, sys
from pathlib import Path
from argmaxf._base.atomic_write import written_whole
with written_whole(Path({str(path)!r})) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code])
    assert len(os.listdir(tmp_path)) == 1
    with written_whole(path) as temporary:
        temporary.write_text("whole")
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_copies_of_the_standard_input_do_not_stay(tmp_path, number):
    folder = tmp_path / "tmp"
    folder.mkdir()
    environment = os.environ | {"TMPDIR": str(folder)}
    command = [*ARGMAXF, "decide", "-", "-p", "p"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    process.stdin.write(b"p\n0.5\n")
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not list(folder.glob(".argmaxf-stdin*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    (copy,) = folder.glob(".argmaxf-stdin*")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    process.send_signal(number)
    assert process.wait(timeout=60) in (-number, 128 + number)  # though the input is still open
    process.stdin.close()
    subprocess.run(command, input=b"p\n0.5\n", env=environment, check=True, capture_output=True)
    assert list(folder.iterdir()) == []


def test_each_output_has_a_name_of_its_own(tmp_path):
    refuse_inputs([tmp_path / "a", None, tmp_path / "b"], [tmp_path / "c"])
    with pytest.raises(ValueError, match="each output needs a name of its own"):
        refuse_inputs([tmp_path / "a", tmp_path / "." / "a"], [])


# --- what is read ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "arrow"])
def test_segments_of_text_are_the_text_as_it_is_written(tmp_path, capsys, kind):
    rows = [("01", 0.9), ("1", 0.2), ("01", 0.3), ("1.0", 0.4), ("1", 0.1), ("+1", 0.5)] * 3
    source, out = tmp_path / "in.csv", tmp_path / f"out.{kind}"
    source.write_text("s,p\n" + "".join(f"{s},{p}\n" for s, p in rows))
    found = result_of(capsys, "decide", source, "-p", "p", "--by", "s", "-o", out)["segments"]
    assert {s["segment"]["s"]: s["rows"] for s in found} == {"01": 6, "1": 6, "1.0": 3, "+1": 3}
    read = {"parquet": pl.read_parquet, "arrow": pl.read_ipc}.get(
        kind, lambda path: pl.read_csv(path, infer_schema=False, separator="\t,"[kind == "csv"])
    )
    labelled = read(out)
    assert labelled["s"].to_list() == [s for s, _ in rows]
    label = labelled["label"].cast(pl.String).to_numpy() == "true"
    for name in {s for s, _ in rows}:
        where = np.array([s == name for s, _ in rows])
        p = np.array([p for _, p in rows])[where]
        np.testing.assert_array_equal(
            label[where], maximize_expected_f(p, ties="together").selected
        )


@pytest.mark.parametrize("label", ["argmaxf_p", "argmaxf_text", "argmaxf_segment"])
def test_no_label_is_reserved(tmp_path, capsys, label):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("p,s\n0.5,1\n0.1,1\n")
    for more in ([], ["--by", "s"], ["--threshold", 0.3]):
        result_of(
            capsys, "decide", source, "-p", "p", *more, "-o", out, "--force", "--label", label
        )
        assert out.read_text() == f"p,s,{label}\n0.5,1,true\n0.1,1,false\n"


def test_reserved_names_in_files(tmp_path, capsys):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    text = "argmaxf_p,p,argmaxf_text,argmaxf_segment,ARGMAXF_P,argmaxf_threshold_0\n"
    source.write_text(text + "9,0.5,8,7,6,1\n9,0.1,8,7,6,2\n")
    for by in ([], ["--by", "argmaxf_segment"]):
        result_of(capsys, "decide", source, "-p", "p", *by, "-o", out, "--force")
        assert out.read_text() == text[:-1] + ",label\n9,0.5,8,7,6,1,true\n9,0.1,8,7,6,2,false\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "p,caf\xe9\n0.5,1\n".encode("latin-1"),
            r"the header must be UTF-8, got the name b'caf\xe9'",
        ),
        (b"p,x,p\n0.5,1,2\n", "each column must have a name of its own, got 'p' twice"),
        (b"p,x,x\n0.5,1,2\n", "each column must have a name of its own, got 'x' twice"),
    ],
)
def test_odd_headers_are_named(tmp_path, capsys, content, message):
    path = tmp_path / "in.csv"
    path.write_bytes(content)
    for command in (
        ["decide", path, "-p", "p"],
        ["sketch", path, "-p", "p", "-o", tmp_path / "s.argmaxf"],
        ["compare", path, "--target", "p"],
    ):
        assert f"{path}: {message}" in refused(capsys, *command)


def test_a_bom_and_quotes_in_the_header_are_no_part_of_a_name(tmp_path, capsys):
    path = tmp_path / "in.csv"
    path.write_bytes(b'\xef\xbb\xbfp,"a,""b"""\n0.5,1\n')
    assert result_of(capsys, "decide", path, "-p", "p")["rows"] == 1


@pytest.mark.parametrize(("kind", "separator"), [("csv", ","), ("tsv", "\t")])
def test_a_column_with_quotes_in_its_name_is_found(tmp_path, capsys, kind, separator):
    path, out = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"
    path.write_text(f'"a""b"{separator}"s"""\n0.5{separator}01\n0.25{separator}1\n')
    chance = ["decide", path, "-p", 'a"b', "--by", 's"', "-o", out, "--label", '"l"']
    assert len(result_of(capsys, *chance)["segments"]) == 2
    lines = [f'"a""b"{separator}"s"""{separator}"""l"""', f"0.5{separator}01{separator}true"]
    assert out.read_text().splitlines()[:2] == lines
    assert [*read_table(path).columns] == ['a"b', 's"']


def test_files_whose_columns_differ(tmp_path, capsys):
    a, b, out = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "out.csv"
    a.write_text("p,s,x\n0.5,1,2\n")
    b.write_text("p,s\n0.25,1\n")
    assert result_of(capsys, "decide", a, b, "-p", "p", "--by", "s")["segments"][0]["rows"] == 2
    error = refused(capsys, "decide", a, b, "-p", "p", "--by", "s", "-o", out)
    assert f"{b}: rows to write must have the columns of {a} in the same order; see 'x'" in error
    assert "no column 'x'" in refused(capsys, "decide", a, b, "-p", "p", "--by", "x")
    assert "--by must not be the column" in refused(capsys, "decide", a, "-p", "p", "--by", "p")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_nested_segments(tmp_path, capsys, kind):
    path = tmp_path / f"in.{kind}"
    frame = pl.DataFrame({"p": [0.5, 0.2, 0.9], "l": [[1], [2], [1]], "s": [{"a": 1}] * 3})
    WRITERS[kind](frame, path)
    for by, sizes in (("l", [1, 2]), ("s", [3])):
        found = result_of(capsys, "decide", path, "-p", "p", "--by", by)["segments"]
        assert sorted(each["rows"] for each in found) == sizes
    error = refused(capsys, "decide", path, "-p", "p", "--by", "l", "-o", tmp_path / "out.csv")
    assert "cannot be written" in error
    assert sorted(os.listdir(tmp_path)) == [f"in.{kind}"]


def test_time_stamps_as_segments(tmp_path, capsys):
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    ns = pl.Series(range(200)) // 3
    frame = pl.DataFrame({"p": np.linspace(0.01, 0.99, 200)}).with_columns(
        t=ns.cast(pl.Datetime("ns"))
    )
    frame.write_parquet(path)
    found = result_of(capsys, "decide", path, "-p", "p", "--by", "t", "-o", out)["segments"]
    assert len({each["segment"]["t"] for each in found}) == 67
    assert pl.read_parquet(out)["label"].null_count() == 0


def corrupted(good, rng):
    bad = bytearray(good)
    for _ in range(rng.integers(1, 4)):
        at = rng.integers(len(bad)) if rng.random() < 0.5 else -rng.integers(1, 800)
        bad[at] = rng.integers(256)
    return bytes(bad)


@pytest.mark.parametrize("tries", [5, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_damaged_file_is_refused_or_read_whole(tmp_path, capfd, kind, tries):
    """Polars panics at some of them; then its stream of batches just ends."""
    rng = np.random.default_rng(0)
    path = tmp_path / f"in.{kind}"
    frame = pl.DataFrame({"p": rng.random(3000), "s": [f"s{i % 5}" for i in range(3000)]})
    WRITERS[kind](frame.with_columns(l=[[i] for i in range(3000)]), path)
    good = path.read_bytes()
    for _ in range(tries):
        path.write_bytes(corrupted(good, rng))
        for by in ([], ["--by", "s"]):
            code = run(["decide", str(path), "-p", "p", *by, "--json"])
            out, err = capfd.readouterr()
            assert code in (0, 2), (out, err)
            if code == 0:
                result = json.loads(out)
                assert sum(each["rows"] for each in result.get("segments", [result])) == 3000


def panicking(tmp_path):
    """Return a damaged file at which Polars panics."""
    rng = np.random.default_rng(1)
    path = tmp_path / "in.arrow"
    pl.DataFrame({"p": rng.random(3000), "l": [[i] for i in range(3000)]}).write_ipc(path)
    good = path.read_bytes()
    for _ in range(400):
        path.write_bytes(corrupted(good, rng))
        try:
            pl.scan_ipc(path, glob=False).collect()
        except pl.exceptions.PanicException:
            return path
        except (OSError, pl.exceptions.PolarsError):
            pass
    return pytest.skip("this version of Polars panics at none of 400 damaged files")


def test_a_panic_is_one_line(tmp_path):
    path = panicking(tmp_path)
    words = ["decide", str(path), "-p", "p", "-o", str(tmp_path / "out.parquet")]
    ended = subprocess.run([*ARGMAXF, *words], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"argmaxf: {path}")
    assert ended.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["in.arrow"]


def test_a_closed_standard_input(tmp_path):
    ended = subprocess.run(
        f"exec {sys.executable} -c 'from argmaxf.cli import main; main()' decide - -p p <&-",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "argmaxf: the standard input must be open, got a closed one\n"


@pytest.mark.parametrize("beta", ["1e200", "1e-200", "inf", "nan"])
def test_extreme_beta_is_one_line(train, tmp_path, capsys, beta):
    path = tmp_path / "train.csv"
    train.with_columns(p=pl.lit(0.5)).write_csv(path)
    sketch = tmp_path / "s.argmaxf"
    sketch.write_bytes(ProbabilitySketch.from_array([0.1, 0.7]).to_bytes())
    for command in (
        ["decide", path, "-p", "p"],
        ["decide", path, "-p", "p", "--by", "y"],
        ["decide", path, "-p", "p", "--threshold", "0.5"],
        ["decide", sketch],
        ["compare", path, "--target", "y"],
        ["bounds", "--n", 1000, "--positive-rate", 0.1],
    ):
        assert "beta must " in refused(capsys, *command, "--beta", beta)


def test_row_numbers_are_the_same_in_every_message(tmp_path, capsys):
    """Rows are counted from 1, without the header."""
    path = tmp_path / "in.csv"
    for cell in ("", "x", "1.5", "0.1,2"):
        path.write_text("p,y\n" + "0.5,1\n" * 6 + f"{cell},1\n" + "0.25,0\n" * 30)
        for by in ([], ["--by", "y"]):
            assert "row 7" in refused(capsys, "decide", path, "-p", "p", *by)
    path.write_text("a,y\n" + "0.5,1\n" * 6 + "x,1\n" + "0.25,0\n" * 30)
    assert "row 7" in refused(capsys, "compare", path, "--target", "y")
    path.write_text("a,y\n" + "0.5,1\n" * 6 + "0.5,1,1\n" + "0.25,0\n" * 30)
    assert "row 7" in refused(capsys, "compare", path, "--target", "y")


def test_no_spread_below_zero_is_shown(tmp_path, capsys):
    for std in (-0.0, -1e-20):
        assert _with_std(SimpleNamespace(expected=0.5, std=std)) == "0.5 ± 0"
    path = tmp_path / "in.csv"
    path.write_text("p\n0\n0\n")
    assert run(["decide", str(path), "-p", "p"]) == 0
    assert "± 0" in capsys.readouterr().out


def test_the_report_carries_no_folders(train, tmp_path, monkeypatch):
    path, page = tmp_path / "train.csv", tmp_path / "out.html"
    train.write_csv(path)
    words = ["compare", str(path), "--target", "y", f"--report={page}"]
    monkeypatch.setattr(sys, "argv", ["argmaxf", *words])
    assert run(words) == 0
    text = page.read_text()
    assert str(tmp_path) not in text
    assert "argmaxf compare train.csv --target y --report=out.html" in text


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", ["*", "^p$", "^.*$"])
def test_a_name_that_polars_takes_for_a_pattern_is_refused(name, lazy):
    frame = pl.DataFrame({name: [0.9, 0.2], "p": [0.5, 0.5], "s": ["a", "b"]})
    frame = frame.lazy() if lazy else frame
    for chance in ({"column": name}, {"column": "p", "by": name}):
        with pytest.raises(ValueError, match="must have another name: POLARS takes this one"):
            decide(frame, **chance)


def test_names_that_are_patterns_elsewhere_are_names():
    for name in ("a.b", "^p$", "a b"):
        table = pa.table({name: ["x", "y", "x"], "p": [0.9, 0.8, 0.1]})
        with duckdb.connect() as connection:
            connection.register("rows", table)
            found = decide(connection.table("rows"), "p", by=name).to_arrow_table().to_pydict()
            assert (list(found), found["label"]) == ([name, "p", "label"], [True, True, False])
            with pytest.raises(ValueError, match="must have another name: DUCKDB takes this one"):
                decide(connection.sql('SELECT p AS "*" FROM rows'), "*")


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_a_file_whose_column_is_called_like_a_pattern(kind, tmp_path, capsys):
    path, out = tmp_path / f"in.{kind}", tmp_path / "out.parquet"
    frame = pl.DataFrame({"*": [0.9, 0.2], "^.*$": ["a", "b"]})
    {"csv": frame.write_csv, "parquet": frame.write_parquet, "arrow": frame.write_ipc}[kind](path)
    assert run(["decide", str(path), "-p", "*", "-o", str(out)]) == 0
    assert pl.read_parquet(out)["label"].to_list() == [True, False]
    capsys.readouterr()
    assert run(["decide", str(path), "-p", "*", "--by", "^.*$"]) == 2
    assert "must have another name" in capsys.readouterr().err


@pytest.mark.parametrize("out", [[], ["-o", "out.parquet"]])
def test_a_schema_at_which_polars_panics_is_refused(tmp_path, capsys, monkeypatch, out):
    path = tmp_path / "in.parquet"
    pl.DataFrame({"p": [0.5]}).write_parquet(path)

    def panic(frame):
        raise pl.exceptions.PanicException("called unwrap on nothing")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pl.LazyFrame, "collect_schema", panic)
    assert "called unwrap on nothing" in refused(capsys, "decide", path, "-p", "p", *out)
    assert [each.name for each in tmp_path.iterdir()] == ["in.parquet"]
