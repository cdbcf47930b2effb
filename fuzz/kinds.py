"""The kinds of attack: each draws one case, and raises if what a user is promised does not hold."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import signal
import stat
import subprocess
import sys
import tarfile
import threading
import time
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa

import argmaxf
from argmaxf.frames import decisions
from argmaxf.whole import written_whole
from fuzz import draw
from fuzz.engines import ENGINES, frame_of

PLANT = ""  # code that plants a bug in other processes
WRITERS = {
    "csv": pl.DataFrame.write_csv,
    "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "parquet": pl.DataFrame.write_parquet,
    "arrow": pl.DataFrame.write_ipc,
}


def command(*words):
    """Run the command here; return its exit code and what it printed."""
    from argmaxf.commands.app import run

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


def refused(*words):
    """Run the command, which must refuse its input in one line; return it."""
    code, out, err = command(*words)
    assert (code, out, err.count("\n")) == (2, "", 1), (code, out, err)
    return err


def error_of(action):
    """Return what a ValueError says, or None."""
    try:
        action()
    except ValueError as error:
        return str(error)
    return None


def labels_by(p, code, **question):
    """Decide each segment as an array."""
    label = np.zeros(p.size, bool)
    for s in np.unique(code):
        label[code == s] = argmaxf.maximize_expected_f(
            p[code == s], ties="together", **question
        ).selected
    return label


def frames(rng, folder):
    """Labels and decisions of a frame are those of its segments as arrays, on every engine."""
    n = int(rng.integers(2, 300))
    p, code = draw.probabilities(rng, n), draw.codes(rng, n)
    row, column, key, other, output = draw.names(rng, 5)
    kind, values = draw.keys(rng, code)
    table = pa.table({row: np.arange(n), column: p, key: values, other: rng.integers(0, 9, n)})
    beta = float(10 ** rng.uniform(-1, 1))
    engine = str(rng.choice(list(ENGINES)))
    print_on_failure = f"{engine}, {kind}, {table.column_names}, {output!r}, n = {n}"
    with frame_of(engine, table, folder) as (frame, collected):
        labelled = collected(argmaxf.decide(frame, column, by=key, beta=beta, output=output))
        assert labelled.column_names == [*table.column_names, output], print_on_failure
        order = np.argsort(np.asarray(labelled[row].to_pylist()))
        label = np.asarray(labelled[output].to_pylist())[order]
        assert (label == labels_by(p, code, beta=beta)).all(), print_on_failure
        same = np.asarray(labelled[other].to_pylist())[order] == table[other].to_numpy()
        assert same.all(), print_on_failure
        sizes = sorted(d.n for d in decisions(frame, column, by=key).values())
        assert sizes == sorted(np.bincount(code).tolist()), print_on_failure
        for taken in table.column_names:
            with contextlib.suppress(ValueError):
                argmaxf.decide(frame, column, output=taken)
                raise AssertionError(f"{taken!r} was replaced: {print_on_failure}")


def changing(rng, folder):
    """A lazy frame that is another one each time is refused, or was the same where it counts."""
    n = int(rng.integers(20_000, 30_000))
    versions = [draw.probabilities(rng, n) for _ in range(3)]
    reads = [0]

    def other(column):
        if len(column) < n:  # asked for the type
            return column
        reads[0] += 1
        return pl.Series(versions[min(reads[0], 3) - 1])

    frame = pl.LazyFrame({"p": versions[0]}).select(pl.col("p").map_batches(other))
    said = error_of(lambda: argmaxf.decide(frame, "p"))
    assert said is None or "same rows each time" in said, said


def files(rng, folder):
    """A file with an odd name is that file; labels are those of the array; it is not changed."""
    n = int(rng.integers(2, 400))
    p, code = draw.probabilities(rng, n), draw.codes(rng, n)
    source_kind, target_kind = rng.choice(list(WRITERS), 2)
    source = folder / f"{draw.name(rng, for_file=True)}.{source_kind}"
    target = folder / f"{draw.name(rng, for_file=True)} out.{target_kind}"
    column, segment, label = draw.names(rng, 3)
    text = [f"{c:0{1 + c % 3}}" for c in code.tolist()]
    frame = pl.DataFrame({column: p, segment: text})
    WRITERS[source_kind](frame, source)
    for decoy in ("x", "x1", "xa"):
        WRITERS[source_kind](
            pl.DataFrame({column: [0.5] * 3, segment: ["0"] * 3}), folder / f"{decoy}.{source_kind}"
        )
    before, mode = source.read_bytes(), int(rng.choice([0o600, 0o640]))
    target.touch()
    target.chmod(mode)
    by = ["--by", segment] if rng.random() < 0.6 else []
    words = ["decide", source, "-p", column, *by, "-o", target, "--label", label]
    done = command(*words, "--json")
    assert (done[0], done[2]) == (0, ""), (words, done)
    read = {"parquet": pl.read_parquet, "arrow": pl.read_ipc}
    options = {"infer_schema": False, "separator": "\t" if target_kind == "tsv" else ","}
    found = (
        read[target_kind](io.BytesIO(target.read_bytes()))
        if target_kind in read
        else pl.read_csv(io.BytesIO(target.read_bytes()), **options)
    )
    expected = labels_by(p, code if by else np.zeros(n, int))
    assert (found[label].cast(pl.String) == "true").to_list() == expected.tolist(), words
    assert not by or found[segment].to_list() == text, words
    assert source.read_bytes() == before, words
    assert stat.S_IMODE(target.stat().st_mode) == mode, words


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
    refused("decide", source, "-p", "p", "-o", name)
    option = str(rng.choice(["--report", "--save"]))
    refused("compare", source, "--target", "y", option, name)
    sketch, again = folder / "s.argmaxf", folder / "again.argmaxf"
    assert command("sketch", source, "-p", "p", "-o", sketch)[0] == 0
    again.symlink_to("s.argmaxf")
    whole = sketch.read_bytes()
    refused("merge", sketch, "-o", again)
    assert (source.read_bytes(), sketch.read_bytes()) == (before, whole)


BATCH = 40  # damaged files for one process: to start it takes longer than to read them
READ_ALL = """
import json, sys
from fuzz.kinds import command
for words in json.loads(sys.argv[1]):
    print(json.dumps(command(*words)))
"""


def damage(rng, folder):
    """A damaged file among others is refused in one line, or all rows are read; nothing is left."""
    n, kind = 3_000, str(rng.choice(["parquet", "arrow", "csv"]))
    good = folder / f"good.{kind}"
    frame = pl.DataFrame({"p": rng.random(n), "s": [f"s{i % 5}" for i in range(n)]})
    frame = frame if kind == "csv" else frame.with_columns(l=[[i] for i in range(n)])
    WRITERS[kind](frame, good)
    paths = [folder / f"{i}.{kind}" for i in range(BATCH)]
    tasks = []
    for path in paths:
        path.write_bytes(draw.damaged(rng, good.read_bytes()))
        by = ["--by", "s"] if rng.random() < 0.5 else []
        out = ["-o", f"{path}.out.parquet"] if rng.random() < 0.5 else []
        tasks.append(["decide", str(good), str(path), "-p", "p", *by, *out, "--json"])
    words = [sys.executable, "-c", PLANT + READ_ALL, json.dumps(tasks)]
    ended = subprocess.run(words, capture_output=True, text=True)
    assert ended.returncode == 0, ended
    for path, line in zip(paths, ended.stdout.splitlines(), strict=True):
        _check_damage(path, 2 * n, *json.loads(line))
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
    environment = os.environ | {"TMPDIR": str(temporary)}
    start = "from argmaxf.cli import main; main()"
    words = [sys.executable, "-c", PLANT + start, "decide", "-", "-p", "p", "-o", str(out)]
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment
    )
    process.stdin.write(text[: 1 << 16])
    process.stdin.flush()
    deadline, wait = time.monotonic() + 60, rng.uniform(0, 2)
    while not list(temporary.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.005)
    if rng.random() < 0.7:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(text[1 << 16 :])
            process.stdin.close()
        time.sleep(wait)
    process.send_signal(signal.SIGKILL if rng.random() < 0.5 else signal.SIGTERM)
    process.wait()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    expected = labels_by(p, np.zeros(n, int)).tolist()
    if out.exists():
        assert (pl.read_csv(out)["label"]).to_list() == expected
    subprocess.run(words, input=text, env=environment, check=True, capture_output=True)
    assert (pl.read_csv(out)["label"]).to_list() == expected
    assert sorted(os.listdir(folder)) == ["out.csv", "tmp"], os.listdir(folder)
    assert os.listdir(temporary) == [], os.listdir(temporary)


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


def ties(rng, folder):
    """k is the smallest of the best ones, in exact fractions, as an array and as a frame."""
    n = int(rng.integers(1, 9))
    grid = int(rng.choice([2, 3, 4, 5, 10, 20]))
    p = rng.integers(0, grid + 1, n) / grid
    p = np.clip(np.where(rng.random(n) < 0.3, np.nextafter(p, rng.random()), p), 0, 1)
    beta, zero = float(rng.choice([0.5, 1.0, 2.0])), float(rng.choice([0.0, 1.0]))
    curve = exact_curve(np.sort(p)[::-1], Fraction(beta) ** 2, Fraction(zero))
    best = max(curve) * (1 - Fraction(1, 10**50))
    k = next(i for i, f in enumerate(curve) if f >= best)
    found = argmaxf.maximize_expected_f(p, beta=beta, zero_division=zero)
    assert found.k == k, (p.tolist(), beta, zero, found.k, k)
    options = {"beta": beta, "zero_division": zero, "ties": "split"}
    frame = decisions(pl.DataFrame({"p": p}), "p", **options)[()]
    assert frame.k == k, (p.tolist(), beta, zero, frame.k, k)


def exact_curve(p, b2, zero):
    """f_0 … f_n of falling probabilities, in fractions."""
    chances = [Fraction(float(value)) for value in p]
    curve = []
    for k in range(len(chances) + 1):
        inside, outside = counts(chances[:k]), counts(chances[k:])
        terms = (
            a * b * ((1 + b2) * t / (k + b2 * (t + r)) if k + t + r else zero)
            for t, a in enumerate(inside)
            for r, b in enumerate(outside)
        )
        curve.append(sum(terms, Fraction(0)))
    return curve


def counts(chances):
    """P(S = s) of independent labels."""
    found = [Fraction(1)]
    for p in chances:
        found = [a * (1 - p) + b * p for a, b in zip([*found, 0], [0, *found], strict=True)]
    return found


def sketches(rng, folder):
    """Bytes with a right checksum are a possible summary, or refused."""
    sketch = argmaxf.ProbabilitySketch.from_array(
        draw.probabilities(rng, int(rng.integers(1, 2_000)))
    )
    table = sketch.table.copy()
    used = np.flatnonzero(table[:, 0])
    row, column = int(rng.choice(used)), int(rng.integers(8))
    table[row, column] = (table[row, column] + rng.normal()) * 10 ** rng.uniform(-1, 3)
    data = argmaxf.ProbabilitySketch.from_table(table).to_bytes()
    assert argmaxf.ProbabilitySketch.from_bytes(sketch.to_bytes()).n == sketch.n
    try:
        found = argmaxf.ProbabilitySketch.from_bytes(data).decide()
    except ValueError:
        return
    assert -1e-9 <= found.expected <= 1 + 1e-9, found
    assert 0 <= found.k <= found.n, found
    assert 0 <= found.std <= 0.5 + 1e-9, found
    assert found.n == table[:, 0].sum(), found
    groups = argmaxf.ProbabilitySketch.from_bytes(data).groups_with_zeros()
    slack = 1e-9 * groups.count * groups.high
    assert (groups.mass >= groups.count * groups.low - slack).all(), "items below their group"
    assert (groups.mass <= groups.count * groups.high + slack).all(), "items above their group"
    mean = argmaxf.ProbabilitySketch.from_bytes(data).mean_positives
    assert -1e-6 <= mean <= found.n * (1 + 1e-9), (mean, found)


def archives(rng, folder):
    """A damaged archive is refused in one sentence, or read whole."""
    from argmaxf.paper.datasets.reuters import read_archive
    from argmaxf.paper.datasets.storage import sha256_of

    content = rng.integers(0, 64, 20_000).astype(np.uint8).tobytes()
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w|") as archive,
    ):
        info = tarfile.TarInfo("one.sgm")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    path = folder / "a.tar.gz"
    path.write_bytes(draw.damaged(rng, packed.getvalue()))
    found: list[str] = []
    said = error_of(lambda: found.extend(read_archive(path, {"one.sgm": sha256_of(content)})))
    assert "is corrupted" in said if said else found == [content.decode("latin-1")], said


KINDS = {
    "frames": frames,
    "changing": changing,
    "files": files,
    "inputs": inputs,
    "damage": damage,
    "stream": stream,
    "writers": writers,
    "ties": ties,
    "sketches": sketches,
    "archives": archives,
}
