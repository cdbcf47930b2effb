"""Folders named as Hive does, city=A/rows.parquet: every command reads the names as columns."""

import json

import polars as pl
import pytest

from argmaxf.cli.app import run
from argmaxf.cli.tables import read_table
from argmaxf.files.scored import ScoredFiles

ROWS = {"p": [0.9, 0.1, 0.4], "x": [1.0, 2.0, 3.0]}
WRITERS = {
    "parquet": pl.DataFrame.write_parquet,
    "csv": pl.DataFrame.write_csv,
    "arrow": pl.DataFrame.write_ipc,
}


@pytest.fixture(params=WRITERS)
def folder(tmp_path, request):
    for city, day in (("A", 1), ("B%2FC", 2), ("__HIVE_DEFAULT_PARTITION__", 2)):
        place = tmp_path / "part" / f"city={city}" / f"day={day}"
        place.mkdir(parents=True)
        WRITERS[request.param](pl.DataFrame(ROWS), place / f"a.{request.param}")
    return tmp_path / "part"


def test_names_of_folders_are_columns_of_the_output(folder, capsys):
    out = folder.parent / "out.parquet"
    assert run(["decide", str(folder), "-p", "p", "-o", str(out)]) == 0, capsys.readouterr().err
    written = pl.read_parquet(out)
    assert written.columns == ["p", "x", "city", "day", "label"]
    assert written["city"].to_list() == ["A"] * 3 + ["B/C"] * 3 + [None] * 3
    assert written["day"].to_list() == [1] * 3 + [2] * 6


def test_rows_are_parted_by_the_names_of_folders(folder, capsys):
    assert run(["decide", str(folder), "-p", "p", "--by", "day", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["segments"]
    assert [(each["segment"], each["rows"]) for each in found] == [
        ({"day": "1"}, 3),
        ({"day": "2"}, 6),
    ]
    by_pattern = ScoredFiles([f"{folder}/*/*/*"], "p", by=["day"]).decide()
    assert {key: d.n for key, d in by_pattern.items()} in (
        {(1,): 3, (2,): 6},
        {("1",): 3, ("2",): 6},
    )
    single = next(folder.rglob("a.*"))
    assert len(ScoredFiles([str(single)], "p", by=["city"]).decide()) == 1


def test_a_missing_partition_is_a_missing_value(folder, capsys):
    assert run(["decide", str(folder), "-p", "p", "--by", "city"]) == 2
    assert "by must not be null or NaN, got 3 such rows" in capsys.readouterr().err


def test_columns_of_the_file_come_before_names_of_folders(tmp_path, capsys):
    place = tmp_path / "city=A"
    place.mkdir()
    pl.DataFrame({"p": [0.5], "city": ["own"]}).write_csv(place / "a.csv")
    out = tmp_path / "out.csv"
    assert run(["decide", str(place / "a.csv"), "-p", "p", "-o", str(out)]) == 0
    assert pl.read_csv(out)["city"].to_list() == ["own"]


def test_leading_zeros_stay(tmp_path):
    for month in ("01", "12"):
        (tmp_path / f"month={month}").mkdir()
        pl.DataFrame({"p": [0.5, 0.6]}).write_parquet(tmp_path / f"month={month}" / "a.parquet")
    assert set(ScoredFiles([str(tmp_path)], "p", by=["month"]).decide()) == {("01",), ("12",)}
    assert ScoredFiles([str(tmp_path)], "p").summarize().n == 4


def test_compare_learns_from_folders(folder, capsys):
    table = read_table(folder)
    assert table.height == 9
    assert table.columns == ["p", "x", "city", "day"]
    assert table["day"].to_list() == [1] * 3 + [2] * 6
    out = next(folder.rglob("a.*"))
    assert run(["compare", str(folder), "--target", "day", "--report", str(out)]) == 2
    assert "the output must not be one of the inputs" in capsys.readouterr().err
