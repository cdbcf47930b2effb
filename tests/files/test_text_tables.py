"""Text tables as spreadsheets write them: decimal commas, one column, other encodings."""

import json
from itertools import product
from math import prod

import numpy as np
import polars as pl
import pytest

from argmaxf.cli.app import run
from argmaxf.cli.tables import read_table, split_table

P = [0.9, 0.2, 0.73, 0.05, 0.4]


def expected_f1(selected):
    """E[F1] of a set, by its definition: the sum over all label vectors."""
    total = 0.0
    for y in product((0, 1), repeat=len(P)):
        chance = prod(p if label else 1 - p for p, label in zip(P, y, strict=True))
        hits = sum(a and b for a, b in zip(selected, y, strict=True))
        total += chance * 2 * hits / max(1, sum(y) + sum(selected))
    return total


BEST = max(product((False, True), repeat=len(P)), key=expected_f1)


def table(separator, write):
    """Rows with the probabilities, another number and a text."""
    rows = [separator.join(("id", "p", "x"))]
    rows += [separator.join((str(i), write(p), write(i + 0.5))) for i, p in enumerate(P)]
    return "\r\n".join(rows)


def comma(number):
    return str(number).replace(".", ",")


TABLES = {
    "semicolons": ("t.csv", table(";", comma)),
    "semicolons, quoted": ("t.csv", table(";", lambda number: f'"{comma(number)}"')),
    "semicolons, spaces": ("t.csv", table(";", lambda number: f" {comma(number)}")),
    "tabs": ("t.tsv", table("\t", comma)),
    "commas, quoted": ("t.csv", table(",", lambda number: f'"{comma(number)}"')),
    "one column": ("t.csv", "\n".join(["p", *map(comma, P)])),
    "zeros first": ("t.csv", "\n".join(["p;x", *["0;1"] * 500, *(f"{comma(p)};1" for p in P)])),
}


def refused(capsys, *words):
    assert run([str(word) for word in words]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    return said.err


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_decimal_commas_are_decided(tmp_path, capsys, name, kind):
    file, text = TABLES[name]
    path, out = tmp_path / file, tmp_path / f"out.{kind}"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert run(["decide", str(path), "-p", "p", "-o", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["expected"] == pytest.approx(expected_f1(BEST), rel=1e-12)
    keeps = kind == "csv" and (";" in text or name == "one column")  # opens where the input does
    separator = ";" if keeps else "\t" if kind == "tsv" else ","
    rows = (
        pl.read_parquet(out)
        if kind == "parquet"
        else pl.read_csv(out, separator=separator, infer_schema=False)
    )
    assert rows["label"].cast(pl.String).to_list()[-len(P) :] == [str(b).lower() for b in BEST]
    written = rows["p"].to_list()[-len(P) :]
    assert (
        written == P if kind == "parquet" else [w.strip() for w in written] == list(map(comma, P))
    )
    if kind == "parquet" and name.startswith(("semicolons", "tabs")):
        assert rows["x"].to_list() == [i + 0.5 for i in range(len(P))]
    # what was written is read again
    assert run(["decide", str(out), "-p", "p", "--threshold-only"]) == 0
    assert float(capsys.readouterr().out) == min(np.array(P)[list(BEST)])


def test_a_wrong_value_among_decimal_commas_is_the_one_named(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("p;x\n0,5;a\n;b\n")
    assert "got 1 null or NaN" in refused(capsys, "decide", path, "-p", "p")
    for bad, said in (("0,2,5", "must hold numbers, got '0,2,5'"), ("1,5", "in [0, 1], got 1.5")):
        path.write_text(f"p;x\n0,5;a\n0.25;b\n{bad};c\n")
        error = refused(capsys, "decide", path, "-p", "p")
        assert "row 3" in error
        assert said in error


def test_codes_of_segments_and_lists_in_commas_stay_text(tmp_path, capsys):
    path, out = tmp_path / "t.csv", tmp_path / "out.parquet"
    path.write_text("p;s\n0,5;1,0\n0,4;1,00\n0,3;2\n")
    assert run(["decide", str(path), "-p", "p", "--by", "s", "-o", str(out)]) == 0
    assert pl.read_parquet(out)["s"].to_list() == ["1,0", "1,00", "2"]
    path.write_text('p,tags\n0.5,"1,2"\n0.4,"3,4"\n')
    assert run(["decide", str(path), "-p", "p", "-o", str(out), "--force"]) == 0
    assert pl.read_parquet(out)["tags"].to_list() == ["1,2", "3,4"]


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_numbers_with_points_and_with_commas_are_learned_from(tmp_path, separator, quote):
    """One column with commas once made text of all columns with points."""
    path = tmp_path / "t.csv"
    rows = [("a", "b", "y"), *((f"0,{i}", f"0.{i}", i % 2) for i in range(10, 60))]
    path.write_text(
        "".join(separator.join(f"{quote}{each}{quote}" for each in row) + "\n" for row in rows)
    )
    X = split_table(read_table(path), ["y"], "t").X
    assert X["a"].to_list() == X["b"].to_list() == [i / 100 for i in range(10, 60)]


def test_a_mistake_among_decimal_commas_is_named_and_commas_in_quotes_are_noted(tmp_path):
    rows = [f"{i},5;{i % 2}" for i in range(50)]
    rows[30] = "x;0"
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a;y", *rows]))
    with pytest.raises(ValueError, match=r"'a' of t holds numbers, but row 31 has 'x'"):
        split_table(read_table(path), ["y"], "t")
    path.write_text("\n".join(["b,a,y", *(f'{i % 7},"{i},5",{i % 2}' for i in range(50))]))
    (*_, note) = split_table(read_table(path), ["y"], "t").notes
    assert "Numbers written like these are text: a (0,5)" in note


def test_commas_of_thousands_are_no_decimal_commas(tmp_path, capsys):
    """Tables parted by tabs are written in English, too."""
    path, out = tmp_path / "t.tsv", tmp_path / "out.parquet"
    rows = [f"{i % 7 + 1},{i * 20:03d}\t0.{i:02d}\t{i % 2}" for i in range(1, 50)]
    path.write_text("\n".join(["a\tp\ty", *rows, "950\t0.5\t1"]))
    (*_, note) = split_table(read_table(path), ["y"], "t").notes
    assert "Numbers written like these are text: a (2,020)" in note
    assert run(["decide", str(path), "-p", "p", "-o", str(out)]) == 0
    assert pl.read_parquet(out)["a"].to_list()[-2:] == ["1,980", "950"]


@pytest.mark.parametrize(
    ("learned", "tested", "rule"),
    [
        ("abc", "123", "must hold text, as in train.csv; got 1"),
        (["true", "false"], "ab", "must hold true or false, as in train.csv; got 'a'"),
        ("123", "abc", "must hold numbers, as in train.csv; got 'a'"),
    ],
)
def test_a_test_table_of_other_kinds_is_refused_before_any_work(
    tmp_path, capsys, learned, tested, rule
):
    for name, cells in (("train.csv", learned), ("test.csv", tested)):
        rows = (f"{cells[i % len(cells)]},{i % 5},{i % 2}" for i in range(60))
        (tmp_path / name).write_text("\n".join(["a,b,y", *rows]))
    words = [tmp_path / "train.csv", "--target", "y", "--test", tmp_path / "test.csv"]
    assert f"column 'a' of test.csv {rule}" in refused(capsys, "compare", *words)


def test_a_column_may_have_the_name_of_a_format(tmp_path, capsys, monkeypatch):
    """Parquet files start with PAR1, Arrow files with ARROW1."""
    path = tmp_path / "t.csv"
    for name in ("PAR1", "ARROW1"):
        path.write_text("\n".join([f"{name},x", *(f"{p},1" for p in P)]))
        with path.open() as file:
            monkeypatch.setattr("sys.stdin", file)
            for given in (path, "-"):
                assert run(["decide", str(given), "-p", name, "--threshold-only"]) == 0
                assert float(capsys.readouterr().out) == min(np.array(P)[list(BEST)])


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("p;x\n0,5;café\n".encode("cp1252"), "invalid utf-8 sequence; save the file as UTF-8"),
        ("p;é\n0,5;1\n".encode("cp1252"), "got the name b'\\xe9'; save the file as UTF-8"),
        ("p;x\n0,5;a\n".encode("utf-16"), "; save the file as UTF-8"),
        (b"p;y\r0,5;1\r0,4;0\r", "lines must end with a line feed, got carriage returns alone"),
        (b"\x1f\x8b\x08\x00" + bytes(99), "a zipped file must be named with .gz"),
        (b"PAR1\x15\x00,\xff\n" + bytes(99), "a Parquet file must be named with .parquet"),
        (b"ARROW1\x00\x00\xff\n" + bytes(99), "an Arrow file must be named with .arrow"),
    ],
)
def test_other_text_is_refused_with_what_to_do(tmp_path, capsys, content, rule):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    commands = (
        ["decide", path, "-p", "p"],
        ["sketch", path, "-p", "p", "-o", tmp_path / "s.argmaxf"],
        ["compare", path, "--target", "y"],
    )
    for words in commands:
        error = refused(capsys, *words)
        assert str(path) in error
        assert rule in error
        assert "column" not in error
    assert list(tmp_path.iterdir()) == [path]


def test_an_arrow_stream_is_named(tmp_path, capsys):
    path = tmp_path / "t.arrow"
    pl.DataFrame({"p": [0.5]}).write_ipc_stream(path)
    for words in (["decide", path, "-p", "p"], ["compare", path, "--target", "p"]):
        assert f"{path}: an Arrow stream; give it as" in refused(capsys, *words)


def test_blank_text_is_a_missing_number(tmp_path, capsys):
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text('"p","x"\n"0.5","a"\n"","b"\n" ","c"\n"0.4","d"\n')
    error = refused(capsys, "decide", path, "-p", "p")
    assert f"got 2 null or NaN, the first in {path}, row 2; --nulls drop" in error
    assert run(["decide", str(path), "-p", "p", "--nulls", "drop", "-o", str(out)]) == 0
    assert pl.read_csv(out)["x"].to_list() == ["a", "d"]


@pytest.mark.parametrize("name", ["^x$", "*"])
def test_names_that_are_patterns_are_refused(tmp_path, capsys, name):
    """Polars would learn from, or ask for values in, other columns than the one."""
    path = tmp_path / "t.parquet"
    pl.DataFrame({name: [0.5, 0.25] * 9, "y": [0, 1] * 9}).write_parquet(path)
    error = refused(capsys, "compare", path, "--target", "y")
    assert f"{path}: column {name!r} must have another name" in error


def test_a_target_that_holds_no_classes_is_named(tmp_path, capsys):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"x": [0.5, 0.25] * 9, "y": [[0], [1]] * 9}).write_parquet(path)
    error = refused(capsys, "compare", path, "--target", "y")
    assert "target 'y' of t.parquet must hold classes, got List(Int64)" in error
