"""Attacks on files: odd names, links, damage, kills, several writers."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from unittest.mock import patch

import numpy as np
import polars as pl

from argmaxf._base.atomic_write import written_whole
from fuzz import draw, worker
from fuzz.asking import command, labels_by, refused

BATCH = 5  # damaged copies of one file
WRITERS = {
    "csv": pl.DataFrame.write_csv,
    "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "parquet": pl.DataFrame.write_parquet,
    "arrow": pl.DataFrame.write_ipc,
}


def files(rng, folder):
    """A file with an odd name is that file; labels are those of the array; it is not changed."""
    n = int(rng.integers(2, 400))
    p, code = draw.probabilities(rng, n), draw.codes(rng, n)
    source_kind, target_kind = rng.choice(list(WRITERS), 2)
    place = folder / "argmaxf partition=7%20b" if rng.random() < 0.3 else folder
    place.mkdir(exist_ok=True)
    source = place / f"{draw.name(rng, for_file=True)}.{source_kind}"
    target = folder / f"{draw.name(rng, for_file=True)} out.{target_kind}"
    column, segment, label = draw.names(rng, 3)
    text = [f"{c:0{1 + c % 3}}" for c in code.tolist()]
    frame = pl.DataFrame({column: p, segment: text})
    WRITERS[source_kind](frame, source)
    for decoy in {"x", "x1", "xa"} - {source.stem}:
        WRITERS[source_kind](
            pl.DataFrame({column: [0.5] * 3, segment: ["0"] * 3}), folder / f"{decoy}.{source_kind}"
        )
    before, mode = source.read_bytes(), int(rng.choice([0o600, 0o640]))
    target.touch()
    target.chmod(mode)
    by = ["--by", segment] if rng.random() < 0.6 else []
    words = ["decide", source, "-p", column, *by, "-o", target, "--force", "--label", label]
    done = command(*words, "--json")
    assert (done[0], done[2]) == (0, ""), (words, done)
    read = {"parquet": pl.read_parquet, "arrow": pl.read_ipc}
    found = (
        read[target_kind](io.BytesIO(target.read_bytes()))
        if target_kind in read
        else _text_table(target, "\t" if target_kind == "tsv" else ",")
    )
    expected = labels_by(p, code if by else np.zeros(n, int))
    assert (found[label].cast(pl.String) == "true").to_list() == expected.tolist(), words
    assert not by or found[segment].to_list() == text, words
    assert source.read_bytes() == before, words
    if place != folder:
        assert set(found["argmaxf partition"].to_list()) == {"7 b"}, words
    assert stat.S_IMODE(target.stat().st_mode) == mode, words


def _text_table(path, separator):
    """Read a text table, every value as it is written."""
    with path.open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file, delimiter=separator)
    return pl.DataFrame(rows, schema=names, orient="row")


def inputs(rng, folder):
    """No command writes over one of its inputs, whatever name it goes by."""
    kind = str(rng.choice(list(WRITERS)))
    source = folder / f"{draw.name(rng, for_file=True)}.{kind}"
    frame = pl.DataFrame(
        {"p": draw.probabilities(rng, 60), "a": rng.random(60), "y": np.arange(60) % 2}
    )
    WRITERS[kind](frame, source)
    before = source.read_bytes()
    link, hard, inner = folder / f"link.{kind}", folder / f"hard.{kind}", folder / "inner"
    link.symlink_to(source.name)
    os.link(source, hard)
    inner.symlink_to(folder)
    name = rng.choice(
        np.array([source, folder / "." / source.name, link, hard, inner / source.name], object)
    )
    refused("decide", source, "-p", "p", "-o", name, "--force")
    option = str(rng.choice(["--report", "--save"]))
    refused("compare", source, "--target", "y", option, name, "--force")
    sketch, again = folder / "s.argmaxf", folder / "again.argmaxf"
    assert command("sketch", source, "-p", "p", "-o", sketch)[0] == 0
    again.symlink_to("s.argmaxf")
    whole = sketch.read_bytes()
    refused("merge", sketch, "-o", again, "--force")
    assert (source.read_bytes(), sketch.read_bytes()) == (before, whole)


def damage(rng, folder):
    """A damaged file among others is refused in one line, or all rows are read; nothing is left."""
    n, kind = 3_000, str(rng.choice(["parquet", "arrow", "csv"]))
    good = folder / f"good.{kind}"
    frame = pl.DataFrame({"p": rng.random(n), "s": [f"s{i % 5}" for i in range(n)]})
    frame = frame if kind == "csv" else frame.with_columns(pl.Series("l", [[i] for i in range(n)]))
    WRITERS[kind](frame, good)
    paths = [folder / f"{i}.{kind}" for i in range(BATCH)]
    for path in paths:
        path.write_bytes(draw.damaged(rng, good.read_bytes()))
        by = ["--by", "s"] if rng.random() < 0.5 else []
        out = ["-o", f"{path}.out.parquet", "--force"] if rng.random() < 0.5 else []
        answer = worker.in_worker("decide", good, path, "-p", "p", *by, *out, "--json")
        _check_damage(path, 2 * n, *answer)
    left = [name for name in os.listdir(folder) if name.startswith(".")]
    assert left == [], left


def _check_damage(path, n, code, out, err):
    """Check what became of one damaged file."""
    written = path.with_name(f"{path.name}.out.parquet")
    assert code in (0, 2), (code, err)
    if code == 2:
        assert err.count("\n") == 1, err
        assert not written.exists(), err
        return
    result = json.loads(out)
    rows = sum(each["rows"] for each in result.get("segments", [result]))
    assert result["output"] is None or rows == pl.read_parquet(written).height, (rows, path)
    assert path.suffix == ".csv" or rows == n, (rows, path)


def stream(rng, folder):
    """Killed at any moment, a run leaves a whole output or none, and the next one no leftovers."""
    n = 60_000
    p = draw.probabilities(rng, n)
    text = b"p\n" + b"".join(b"%.17g\n" % value for value in p)
    out, temporary = folder / "out.csv", folder / "tmp"
    temporary.mkdir()
    words = ["decide", "-", "-p", "p", "-o", str(out), "--force"]
    _killed(rng, words, text, temporary)
    expected = labels_by(p, np.zeros(n, int)).tolist()
    if out.exists():
        assert (pl.read_csv(out)["label"]).to_list() == expected
    with patch.object(tempfile, "tempdir", str(temporary)):
        done = command(*words, "--json", stdin=text)
    assert done[0] == 0, done
    assert (pl.read_csv(out)["label"]).to_list() == expected
    assert sorted(os.listdir(folder)) == ["out.csv", "tmp"], os.listdir(folder)
    left = [name for name in os.listdir(temporary) if "argmaxf" in name]
    assert left == [], left  # Python's own trial file, killed before it is removed, is not ours


def _killed(rng, words, text, temporary):
    """Start the command with its input in a pipe, and kill it at some moment."""
    start = "from argmaxf.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", worker.PLANT + start, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    process.stdin.write(text[: 1 << 16])
    process.stdin.flush()
    while not list(temporary.iterdir()) and process.poll() is None:
        time.sleep(0.005)
    with contextlib.suppress(BrokenPipeError):
        if rng.random() < 0.7:
            process.stdin.write(text[1 << 16 :])
            process.stdin.close()
            time.sleep(10 ** rng.uniform(-3, 0.5))
        process.send_signal(signal.SIGKILL if rng.random() < 0.5 else signal.SIGTERM)
        process.wait()
        process.stdin.close()


def writers(rng, folder):
    """Several writers of one file: it is always whole, and nothing else stays."""
    path, torn = folder / "out.txt", []

    def write(mark):
        for _ in range(20):
            with written_whole(path) as temporary, temporary.open("w") as file:
                for _ in range(10):
                    file.write(mark * 100)
                    file.flush()
            content = path.read_text()
            if len(content) != 1000 or len(set(content)) != 1:
                torn.append(content)

    threads = [threading.Thread(target=write, args=(mark,)) for mark in "abcd"]
    before, threading.excepthook = (
        threading.excepthook,
        lambda failed: torn.append(failed.exc_value),
    )
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        threading.excepthook = before
    assert torn == [], torn[:1]
    assert os.listdir(folder) == ["out.txt"]
