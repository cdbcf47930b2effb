"""Files and the command: the decision of the array, streamed, and every fault in one clear line."""

import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argmaxf import ProbabilitySketch, expected_f, maximize_expected_f
from argmaxf.cli.app import run
from argmaxf.files.text_tables import first_ragged

WRITERS = {
    "csv": pl.DataFrame.write_csv,
    "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "parquet": lambda frame, path: frame.write_parquet(path, row_group_size=5_000),
    "arrow": pl.DataFrame.write_ipc,
}
READERS = {
    "csv": pl.read_csv,
    "tsv": lambda path: pl.read_csv(path, separator="\t"),
    "parquet": pl.read_parquet,
    "arrow": pl.read_ipc,
}
ARGMAXF = [sys.executable, "-c", "from argmaxf.cli import main; main()"]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    n = 20_000  # above what an array sorts
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "p": rng.beta(0.5, 5, n),
            "code": [f"{i % 1000:04}" for i in range(n)],
            "segment": rng.choice(["a", "b"], n),
        }
    )


@pytest.fixture
def files(rows, tmp_path):
    for kind, write in WRITERS.items():
        write(rows, tmp_path / f"rows.{kind}")
    return tmp_path


def argmaxf(capsys, *arguments):
    """Run the command; return its exit code and what it printed."""
    code = run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def decided(capsys, *arguments):
    code, out, err = argmaxf(capsys, "decide", *arguments, "--json")
    assert (code, re.sub("argmaxf: compiling, .*\n", "", err)) == (0, "")  # on the first run
    return json.loads(out)


def test_single_precision_is_compared_in_double(tmp_path, capsys):
    p = np.array([0.7, 0.8, 0.9], np.float32)  # the first is less than .7
    pl.DataFrame({"p": p}).write_parquet(tmp_path / "rows.parquet")
    out = tmp_path / "out.parquet"
    files = tmp_path / "rows.parquet", "-o", out, "-p", "p"
    assert decided(capsys, *files, "--threshold", "0.7")["k"] == 2
    assert pl.read_parquet(out)["label"].to_list() == [False, True, True]


def refused(capsys, *arguments):
    """Run the command on bad input; return its one line."""
    code, out, err = argmaxf(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("argmaxf: ")
    assert err.count("\n") == 1
    return err


def exact(rows, **options):
    return maximize_expected_f(rows["p"].to_numpy(), ties="together", **options)


def assert_same(result, decision):
    assert (result["rows"], result["k"]) == (decision.n, decision.k)
    assert result["threshold"] == decision.threshold
    assert result["expected"] == pytest.approx(decision.expected, rel=1e-12)
    assert result["std"] == pytest.approx(decision.std, rel=1e-9)


@pytest.mark.parametrize("target", WRITERS)
@pytest.mark.parametrize("source", WRITERS)
def test_every_format_to_every_format(files, rows, capsys, source, target):
    out = files / f"labels.{target}"
    result = decided(capsys, files / f"rows.{source}", "-p", "p", "--beta", 2, "-o", out)
    best = exact(rows, beta=2.0)
    assert_same(result, best)
    labelled = READERS[target](out)
    assert labelled.columns == [*rows.columns, "label"]
    assert labelled["label"].to_list() == best.selected.tolist()
    assert labelled["p"].to_list() == rows["p"].to_list()
    assert sorted(p.name for p in files.iterdir() if p.name.startswith(".")) == []


@pytest.mark.parametrize("kind", WRITERS)
def test_an_output_named_gz_is_zipped(files, rows, tmp_path, capsys, kind):
    out, again = tmp_path / f"labels.{kind}.gz", tmp_path / f"again.{kind}"
    decided(capsys, files / "rows.parquet", "-p", "p", "-o", out)
    again.write_bytes(gzip.decompress(out.read_bytes()))
    assert READERS[kind](again)["label"].to_list() == exact(rows).selected.tolist()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert_same(decided(capsys, out, "-p", "p"), exact(rows))


def test_text_is_copied_as_it_is_written(tmp_path, capsys):
    text = 'p,code,note\n0.90,007,"a ""b"", c"\n.2,1e3,"two\nlines"\n 0.7,,x\n'
    (tmp_path / "in.csv").write_text(text)
    decided(capsys, tmp_path / "in.csv", "-p", "p", "-o", tmp_path / "out.csv")
    given, labelled = (
        pl.read_csv(tmp_path / name, infer_schema=False) for name in ("in.csv", "out.csv")
    )
    assert labelled.drop("label").equals(given)
    assert labelled["label"].to_list() == ["true", "false", "true"]


def test_numbers_in_text_become_numbers_elsewhere(tmp_path, capsys):
    ones = "".join(f"{i % 2},{i}\n" for i in range(12_000))  # types are guessed from 10,000 rows
    (tmp_path / "in.csv").write_text(f"p,i\n{ones} 0.5,7\n")
    decided(capsys, tmp_path / "in.csv", "-p", "p", "-o", tmp_path / "out.parquet")
    labelled = pl.read_parquet(tmp_path / "out.parquet")
    assert dict(labelled.schema) == {"p": pl.Float64, "i": pl.Int64, "label": pl.Boolean}
    assert labelled["p"][-1] == 0.5


def test_folders_patterns_and_several_files(files, rows, tmp_path, capsys):
    shards = tmp_path / "shards" / "deep"
    shards.mkdir(parents=True)
    rows[:7_000].write_parquet(shards / "part-0.parquet")
    rows[7_000:7_000].write_parquet(shards / "part-1.parquet")
    rows[7_000:].write_parquet(shards / "part-2.parquet")
    ways = [[shards.parent], [shards / "part-*.parquet"], sorted(shards.iterdir())]
    for way in ways:
        out = tmp_path / "labels.arrow"
        assert_same(decided(capsys, *way, "-p", "p", "-o", out, "--force"), exact(rows))
        assert pl.read_ipc(out)["id"].to_list() == rows["id"].to_list()
        assert pl.read_ipc(out)["label"].to_list() == exact(rows).selected.tolist()


@pytest.mark.parametrize("kind", WRITERS)
def test_standard_input(files, rows, tmp_path, capsys, monkeypatch, kind):
    class Stdin:
        buffer = io.BytesIO((files / f"rows.{kind}").read_bytes())

    monkeypatch.setattr(sys, "stdin", Stdin)
    out = tmp_path / "labels.parquet"
    assert_same(decided(capsys, "-", "-p", "p", "-o", out), exact(rows))
    assert pl.read_parquet(out)["label"].to_list() == exact(rows).selected.tolist()


@pytest.mark.parametrize("source", ["csv", "parquet"])
def test_each_segment_is_decided(files, rows, tmp_path, capsys, source):
    out = tmp_path / "labels.parquet"
    result = decided(capsys, files / f"rows.{source}", "-p", "p", "--by", "segment", "-o", out)
    labelled = pl.read_parquet(out)
    assert labelled["id"].to_list() == rows["id"].to_list()
    for segment in result["segments"]:
        part = rows.filter(pl.col("segment") == segment["segment"]["segment"])
        assert_same(segment, exact(part))
        labels = labelled.join(part, on="id", maintain_order="left")["label"]
        assert labels.to_list() == exact(part).selected.tolist()


def test_the_terminal_shows_rows_k_threshold_and_spread(files, rows, capsys):
    best = exact(rows)
    code, out, err = argmaxf(capsys, "decide", files / "rows.parquet", "-p", "p")
    assert (code, err) == (0, "")
    for part in (
        "20,000",
        f"{best.k:,}",
        repr(best.threshold),
        f"{best.expected:.6g} ± ",
    ):
        assert part in out
    code, out, _ = argmaxf(capsys, "decide", files / "rows.csv", "-p", "p", "--threshold-only")
    assert (code, float(out)) == (0, best.threshold)


def test_shards_are_summarized_apart_merged_and_decided(files, rows, tmp_path, capsys):
    sketches = []
    for i, part in enumerate((rows[:5_000], rows[5_000:])):
        part.write_parquet(tmp_path / f"part{i}.parquet")
        sketches.append(tmp_path / f"{i}.argmaxf")
        shard = tmp_path / f"part{i}.parquet"
        assert argmaxf(capsys, "sketch", shard, "-p", "p", "-o", sketches[-1])[0] == 0
    merged = tmp_path / "all.argmaxf"
    code, out, _ = argmaxf(capsys, "merge", *sketches, "-o", merged, "--json")
    assert (code, json.loads(out)["rows"]) == (0, rows.height)
    assert merged.stat().st_size < 300_000
    result = decided(capsys, merged)
    low, high = result["bracket"]
    assert low <= exact(rows).threshold <= high
    # the threshold decided centrally is applied where the rows are
    shard, out = tmp_path / "part1.parquet", tmp_path / "labels.parquet"
    applied = decided(capsys, shard, "-p", "p", "--threshold", result["threshold"], "-o", out)
    p = rows[5_000:]["p"].to_numpy()
    chosen = p >= result["threshold"]
    np.testing.assert_array_equal(pl.read_parquet(out)["label"].to_numpy(), chosen)
    assert (applied["k"], applied["rows"]) == (chosen.sum(), p.size)
    value = expected_f(p, chosen)
    assert (applied["expected"], applied["std"]) == pytest.approx(tuple(value), rel=1e-9)


def test_rows_do_not_count_twice(files, tmp_path, capsys):
    rows, link, sketch = files / "rows.csv", tmp_path / "link.csv", tmp_path / "s.argmaxf"
    link.symlink_to(rows)
    assert argmaxf(capsys, "sketch", rows, "-p", "p", "-o", sketch)[0] == 0
    for words in (
        ["decide", rows, link, "-p", "p"],
        ["sketch", rows, tmp_path / "rows.c*", "-p", "p", "-o", tmp_path / "t.argmaxf"],
        ["merge", sketch, sketch, "-o", tmp_path / "t.argmaxf"],
    ):
        assert ": each input must be given once, got it twice" in refused(capsys, *words)


def test_split_ties_go_to_the_first_rows(tmp_path, capsys):
    p = np.round(np.random.default_rng(1).beta(0.5, 5, 20_000), 2)
    pl.DataFrame({"p": p}).write_parquet(tmp_path / "in.parquet")
    out = tmp_path / "out.parquet"
    decided(capsys, tmp_path / "in.parquet", "-p", "p", "--ties", "split", "-o", out)
    np.testing.assert_array_equal(pl.read_parquet(out)["label"], maximize_expected_f(p).selected)


def test_rows_without_a_probability(tmp_path, capsys):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("p,x\n0.5,a\n,b\n0.2,c\nnan,d\n0.7,e\n")
    error = refused(capsys, "decide", path, "-p", "p", "-o", out)
    assert f"got 2 null or NaN, the first in {path}, row 2; --nulls drop" in error
    assert not out.exists()
    best = maximize_expected_f([0.5, 0.2, 0.7])
    assert decided(capsys, path, "-p", "p", "--nulls", "drop", "-o", out)["k"] == best.k
    labelled = pl.read_csv(out)
    assert labelled["x"].to_list() == ["a", "c", "e"]
    assert labelled["label"].to_list() == best.selected.tolist()


# --- faults: one clear line, exit code 2, nothing left behind ------------------------------------


@contextmanager
def untouched(folder):
    """Check that a failing command changes nothing in a folder."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    yield
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def damaged(path, column):
    """Overwrite the last pages of a column, found by its statistics in the file's own order."""
    import pyarrow.parquet as pq

    group = pq.ParquetFile(path).metadata.row_group(2)
    chunk = next(
        group.column(i)
        for i in range(group.num_columns)
        if group.column(i).path_in_schema == column
    )
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + chunk.total_compressed_size] = bytes([255]) * chunk.total_compressed_size
    path.write_bytes(data)


@pytest.mark.parametrize("column", ["p", "code"])
def test_a_corrupt_parquet_page(files, tmp_path, capsys, column):
    path = tmp_path / "rows.parquet"
    damaged(path, column)
    with untouched(tmp_path):
        error = refused(capsys, "decide", path, "-p", "p", "-o", tmp_path / "out.parquet")
    assert f"{path}, column '{column}': cannot be read" in error


@pytest.mark.parametrize(("line", "fields"), [("3,0.5", 2), ('4,0.5,"x,y",z', 4), ("5,0.4,x,,", 5)])
def test_a_ragged_row(tmp_path, capsys, line, fields):
    path = tmp_path / "in.csv"
    good = "".join(f'{i},0.25,"a\n{i},"\n' for i in range(300))
    path.write_text(f"id,p,x\n{good}{line}\n9,0.5,y\n")
    with untouched(tmp_path):
        error = refused(capsys, "decide", path, "-p", "p", "-o", tmp_path / "out.csv")
    assert f"{path}, row 301: a row must have 3 fields like the header, got {fields}" in error


@given(
    st.lists(st.lists(st.text('a,"\n\r ', max_size=4), min_size=2, max_size=4), min_size=2),
    st.booleans(),
)
@settings(
    deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_ragged_rows_are_those_the_csv_module_sees(tmp_path, table, ended):
    path = tmp_path / "in.csv"
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(table)
    path.write_bytes(text.getvalue().removesuffix("" if ended else "\n").encode())
    wrong = [i for i, row in enumerate(table) if len(row) != len(table[0])]
    found = first_ragged(path, ",")
    assert (found.row if found else None) == (wrong[0] if wrong else None)


def test_an_empty_line_counts_as_a_row_in_every_message(tmp_path, capsys):
    path = tmp_path / "in.csv"
    for last, said in (("high,c", "must hold numbers"), ("0.5", "must have 2 fields")):
        path.write_text(f"\np,x\n0.5,a\n\n0.4,b\n{last}\n")
        error = refused(capsys, "decide", path, "-p", "p")
        assert f"{path}, row 4: " in error
        assert said in error


def test_a_missing_column_a_text_value_and_what_is_no_probability(files, tmp_path, capsys):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("p,x\n0.5,a\n0.4,b\nhigh,c\n0.2,1.5\n")
    with untouched(tmp_path):
        error = refused(capsys, "decide", path, "-p", "q", "-o", out)
        assert f"{path}: no column 'q'; it has ['p', 'x']" in error
        error = refused(capsys, "decide", path, "-p", "p", "-o", out)
        assert f"{path}, row 3: column 'p' must hold numbers, got 'high'" in error
        error = refused(capsys, "decide", path, "-p", "p", "--by", "x", "--nulls", "drop")
        assert f"{path}, row 3: column 'p' must hold numbers, got 'high'" in error
        parquet = tmp_path / "rows.parquet"
        error = refused(capsys, "decide", parquet, "-p", "code", "-o", out)
        assert f"{parquet}: column 'code' must hold numbers, got String" in error
        error = refused(capsys, "decide", parquet, "-p", "id", "--by", "segment", "-o", out)
        assert f"{parquet}, row 3: column 'id' must be in [0, 1], got 2.0" in error
        error = refused(capsys, "decide", parquet, "-p", "p", "--by", "nothing")
        assert "no column 'nothing'" in error


def test_a_sketch_cut_short(tmp_path, capsys):
    path = tmp_path / "s.argmaxf"
    data = ProbabilitySketch.from_array([0.1, 0.7]).to_bytes()
    path.write_bytes(data[:-5])
    for command in (["decide", path], ["merge", path, "-o", tmp_path / "all.argmaxf"]):
        with untouched(tmp_path):
            assert f"{path}: the sketch is truncated" in refused(capsys, *command)


def test_questions_that_make_no_sense(files, tmp_path, capsys):
    rows, out = files / "rows.parquet", files / "out.parquet"
    sketch = files / "s.argmaxf"
    sketch.write_bytes(ProbabilitySketch.from_array([0.1, 0.7]).to_bytes())
    with untouched(tmp_path):
        for arguments, message in [
            ([rows], "name the column of probabilities with -p"),
            ([rows, "-p", "p", "--beta", -1], "beta must be positive and finite, got -1.0"),
            ([rows, "-p", "p", "-o", files / "out.xlsx"], "the extension must be one of"),
            ([rows, "-p", "p", "-o", rows], "must not be one of the inputs"),
            ([rows, "-p", "p", "-o", files / "no" / "out.csv"], "there is no folder"),
            ([rows, "-p", "p", "-o", out, "--label", "code"], "a column 'code' already"),
            ([rows, "-p", "p", "--nulls", "keep"], "nulls must be one of"),
            ([rows, "-p", "p", "--threshold", 2], "threshold must lie in [0, 1], got 2.0"),
            ([files / "none*.csv", "-p", "p"], "there is no such file"),
            ([files, "-p", "p", "-o", out], "must be all text files, or none of them"),
            ([files / "rows.parquet", sketch, "-p", "p"], "give one sketch"),
            ([sketch, "-o", out], "a sketch has no rows to label"),
            ([sketch, "--threshold", 0.5], "a sketch has no rows to label"),
            ([files / "no.argmaxf"], "no.argmaxf: cannot be read: No such file or directory"),
        ]:
            assert message in refused(capsys, "decide", *arguments)
        assert "must be named" in refused(capsys, "sketch", rows, "-p", "p", "-o", files / "s.csv")


def test_a_full_disk(rows, tmp_path, capsys, monkeypatch):
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs more rights than this process has")
    try:
        source = tmp_path / "rows.parquet"
        rows.write_parquet(source)
        for kind in (*WRITERS, "csv.gz", "parquet.gz"):
            out = small / f"labels.{kind}"
            error = refused(capsys, "decide", source, "-p", "p", "-o", out)
            assert f"{out}: cannot be written: " in error
            assert "No space left on device" in error
            assert list(small.iterdir()) == []
        out = small / "s.argmaxf"
        error = refused(capsys, "sketch", source, "-p", "p", "-o", out)
        assert f"{out}: cannot be written: No space left on device" in error
        monkeypatch.setattr("tempfile.tempdir", str(small))
        monkeypatch.setattr("argmaxf.frames.table.Rows.HELD", 1_000)
        text = tmp_path / "rows.csv"  # text is parsed once, and much of it kept in a temporary file
        rows.write_csv(text)
        error = refused(capsys, "decide", text, "-p", "p")
        assert f"{small}: no room for a temporary file: No space left on device; TMPDIR" in error
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_folder_that_nobody_may_write_to(files, tmp_path, capsys):
    closed = tmp_path / "closed"
    closed.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(closed)]
    if subprocess.run(mount, capture_output=True).returncode:
        closed.chmod(0o500)  # without the rights to mount, this is enough
    rows, table = files / "rows.parquet", tmp_path / "t.csv"
    table.write_text("a,y\n" + "1,0\n2,1\n" * 9)
    try:
        for words, name in (
            (["decide", rows, "-p", "p", "-o"], "out.csv"),
            (["sketch", rows, "-p", "p", "-o"], "s.argmaxf"),
            (["compare", table, "--target", "y", "--report"], "r.html"),
        ):
            error = refused(capsys, *words, closed / name)
            assert error.startswith(f"argmaxf: {closed / name}: cannot be written: ")
            assert "Errno" not in error
    finally:
        subprocess.run(["umount", str(closed)], capture_output=True)


def test_a_link_to_nowhere_and_a_name_left_empty(files, tmp_path, capsys):
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "gone" / "out.csv")
    error = refused(capsys, "decide", files / "rows.csv", "-p", "p", "-o", link)
    assert f"{link}: there is no folder {tmp_path / 'gone'}" in error
    assert "a file must have a name, got ''" in refused(capsys, "decide", "", "-p", "p")


def test_killed_at_any_moment_the_second_run_succeeds(rows, tmp_path):
    source, out = tmp_path / "rows.csv", tmp_path / "labels.csv"
    pl.concat([rows] * 20).write_csv(source)
    command = [*ARGMAXF, "decide", str(source), "-p", "p", "-o", str(out)]
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    whole, took = out.read_bytes(), time.perf_counter() - start
    out.unlink()
    seen = 0
    for wait in (0.3 * took, np.inf):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # Wait for the moment, or for the output to be half written.
        deadline = time.perf_counter() + wait
        while time.perf_counter() < deadline and process.poll() is None:
            if seen := max(map(size_of, tmp_path.glob(".labels*")), default=0):
                break
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not out.exists() or out.read_bytes() == whole
        out.unlink(missing_ok=True)
    assert seen > 0, "no run was killed while it was writing"
    subprocess.run(command, check=True, capture_output=True)
    assert out.read_bytes() == whole
    assert sorted(os.listdir(tmp_path)) == ["labels.csv", "rows.csv"]


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def test_no_progress_bar_when_piped_and_one_on_a_terminal(files):
    import pty

    command = [*ARGMAXF, "decide", str(files / "rows.csv"), "-p", "p", "-o", str(files / "o.csv")]
    command.append("--force")
    piped = subprocess.run(command, check=True, capture_output=True)
    # the first run of an installation also says that it compiles
    notices = [line for line in piped.stderr.splitlines() if b"compiling" not in line]
    assert notices == []
    main, terminal = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    environment.pop("NO_COLOR", None)
    pipes = {"stdout": subprocess.DEVNULL, "stderr": terminal}
    process = subprocess.Popen(command, env=environment, **pipes)
    os.close(terminal)
    shown = b""
    while True:  # while it runs: a terminal that nobody reads holds a few kilobytes, then it waits
        try:
            shown += os.read(main, 1 << 16)
        except OSError:
            break
    os.close(main)
    assert process.wait() == 0
    assert b"reading" in shown
    assert b"writing" in shown
    assert b"20,000 rows" in shown
    assert b"rows/s" in shown


@pytest.mark.parametrize("order", ["any", "rising", "falling"])
def test_above_a_million_rows_only_a_band_is_kept(tmp_path, capsys, order):
    rng = np.random.default_rng(2)
    p = np.concatenate([rng.beta(0.5, 5, 1_500_000), np.full(100_000, 0.2), [0.0, 1.0]])
    p = {"any": rng.permutation, "rising": np.sort, "falling": lambda p: -np.sort(-p)}[order](p)
    pl.DataFrame({"p": p}).write_parquet(tmp_path / "in.parquet")
    best = maximize_expected_f(p, beta=1.5, ties="together")
    assert_same(decided(capsys, tmp_path / "in.parquet", "-p", "p", "--beta", 1.5), best)
