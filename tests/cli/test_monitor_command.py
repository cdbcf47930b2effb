"""argmaxf monitor, label-plan and estimate: on files, from deployment to an estimate by labels."""

import csv
import json
import math
import re

import numpy as np
import polars as pl
import pytest

from argmaxf import Monitor, estimate_f, plan_labels
from argmaxf.cli.app import run
from argmaxf.monitoring.files import read_plan


def scored(rng, rate, days, n=600):
    p = rng.beta(0.5, 0.5 / rate, days * n)
    y = (rng.random(p.size) < p).astype(int)
    day = np.repeat(np.datetime64("2026-03-01") + np.arange(days), n)
    return pl.DataFrame({"name": [f"r{i}" for i in range(p.size)], "day": day, "p": p, "y": y})


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    scored(rng, 0.05, 1, 3000).write_parquet(tmp_path / "reference.parquet")
    later = scored(rng, 0.05, 3)
    later = later.with_columns(
        y=pl.when(pl.int_range(pl.len()) % 2 == 0).then("y"), p=pl.col("p").cast(pl.Float64)
    )
    (tmp_path / "daily").mkdir()
    for i, (_, part) in enumerate(later.group_by("day", maintain_order=True)):
        part.write_parquet(tmp_path / "daily" / f"day{i}.parquet")
    scored(rng, 0.2, 1).with_columns(day=pl.lit("2026-03-04").str.to_date()).write_parquet(
        tmp_path / "daily" / "day3.parquet"
    )
    return tmp_path


def watch(files, *options):
    given = [str(files / "reference.parquet"), str(files / "daily/*.parquet")]
    return run(["monitor", *given, "-p", "p", "--threshold", "0.3", *options])


def test_monitor_prints_what_the_library_says(files, capsys):
    assert watch(files, "--time", "day", "--label", "y", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    reference = pl.read_parquet(files / "reference.parquet")
    monitor = Monitor(0.3, reference["p"].to_numpy(), labels=reference["y"].to_numpy())
    rows = pl.read_parquet(files / "daily/*.parquet")
    expected = monitor.update_frame(rows, "p", time="day", label="y")
    assert [each["name"] for each in found["periods"]] == [f"2026-03-0{i}" for i in range(1, 5)]
    for one, other in zip(found["periods"], expected, strict=True):
        assert one["predicted"]["f"]["value"] == pytest.approx(other.predicted.f.value)
        assert one["found"]["value"] == other.found.value
        assert tuple(one["alarms"]) == other.alarms
    assert found["periods"][3]["alarms"]
    assert found["reference"]["n"] == 3000


def test_later_files_may_be_without_labels(files, capsys):
    later = files / "later.parquet"
    pl.read_parquet(files / "daily/*.parquet").drop("y").write_parquet(later)
    given = ["monitor", str(files / "reference.parquet"), str(later), "-p", "p", "--json"]
    assert run([*given, "--threshold", "0.3", "--label", "y"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reference"]["found"] is not None
    assert found["periods"][0]["found"] is None


def test_without_times_each_file_is_a_period(files, capsys):
    text = pl.read_parquet(files / "daily/day0.parquet").select("p")
    text.write_csv(files / "daily.csv", separator=";", decimal_comma=True)
    assert watch(files, str(files / "daily.csv")) == 0
    out = capsys.readouterr().out
    names = [f"day{i}" for i in range(4)] + ["daily"]
    assert [name for name in re.findall(r"day\d|daily", out) if name in names][:5] == names
    assert "2 of 5 periods" in out or "1 of 5 periods" in out
    assert "raises no alarm without labels" in " ".join(out.split())


def test_the_report_is_a_page_that_escapes_names(files, capsys):
    day = files / "daily" / "day0.parquet"
    pl.read_parquet(day).with_columns(day=pl.lit("<b>&")).write_parquet(files / "odd.parquet")
    report = files / "report.html"
    given = [str(files / "reference.parquet"), str(files / "odd.parquet")]
    options = ["-p", "p", "--threshold", "0.3", "--time", "day", "--report", str(report)]
    assert run(["monitor", *given, *options]) == 0
    page = report.read_text()
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;" in page
    assert page.count("<svg") == 2
    assert run(["monitor", *given, *options]) == 2
    assert "pass --force" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["red\x1b[31m\x07", "月", "$x^", r"$\frac$"])
def test_the_report_shows_any_name(files, name, capfd):
    day = files / "daily" / "day0.parquet"
    pl.read_parquet(day).with_columns(day=pl.lit(name)).write_parquet(files / "odd.parquet")
    report = files / "report.html"
    given = [str(files / "reference.parquet"), str(files / "odd.parquet")]
    options = ["-p", "p", "--threshold", "0.3", "--time", "day", "--report", str(report)]
    assert run(["monitor", *given, *options]) == 0
    page = report.read_text(encoding="utf-8")
    assert name.partition("\x1b")[0] in page
    assert "\x1b" not in page + "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--time", "hour"], "no column 'hour'"),
        (["--label", "hour"], "no file has a column 'hour' of labels"),
        (["--time", "name"], r"at most 1,000 different values, got 1,800"),
        (["--label", "name"], "label must be a column of numbers"),
        (["--every", "1d"], "every needs time"),
        (["--alpha", "0"], "false_alarm_rate"),
        (["--measure", "f7"], "--measure must be one of"),
        (["--nulls", "x"], "nulls must be"),
    ],
)
def test_bad_input_of_monitor_is_one_sentence(files, options, says, capsys):
    assert watch(files, *options) == 2
    error = capsys.readouterr().err
    assert re.search(says, error)
    assert error.count("\n") == 1


def test_a_bad_probability_is_named_by_file_and_row(files, capsys):
    frame = pl.read_parquet(files / "daily/day1.parquet")
    p = pl.when(pl.int_range(pl.len()) == 6).then(1.5).otherwise("p")
    frame.with_columns(p=p).write_parquet(files / "daily/day1.parquet")
    assert watch(files, "--time", "day") == 2
    error = capsys.readouterr().err
    assert "day1.parquet, row 7: column 'p' must be in [0, 1], got 1.5" in error


def fill(path, table, keep=slice(None), label="label"):
    with path.open() as file:
        rows = list(csv.DictReader(file))
    truth = dict(table.select("name", "y").iter_rows())
    for row in rows[keep]:
        row[label] = str(truth[row["name"]])
    with path.open("w") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return rows


@pytest.fixture
def plan(tmp_path):
    table = scored(np.random.default_rng(1), 0.05, 2, 2000)
    table.select("name", "p").write_csv(tmp_path / "scores.csv")
    return table, tmp_path / "scores.csv", tmp_path / "plan.csv"


def draw(scores, output, *options, budget=150):
    options = ["--threshold", "0.3", "--budget", str(budget), "-o", str(output), *options]
    return run(["label-plan", str(scores), "-p", "p", *options])


def test_a_plan_that_is_filled_in_gives_the_estimate_of_the_library(plan, capsys):
    table, scores, path = plan
    assert draw(scores, path, "--seed", "7") == 0
    assert "Fill in 0 or 1" in capsys.readouterr().out
    rows = fill(path, table)
    p, y = table["p"].to_numpy(), table["y"].to_numpy()
    expected = plan_labels(p, p >= 0.3, 150, random_state=7)
    assert [int(row["row"]) - 1 for row in rows] == expected.indices.tolist()
    assert run(["estimate", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    f = estimate_f(y[expected.indices], expected)
    assert (found["low"], found["value"], found["high"]) == pytest.approx(
        (f.low, f.value, f.high), abs=0.01
    )
    assert found["labels"] == 150
    assert found["positives"] == y[expected.indices].sum()
    assert run(["estimate", str(path)]) == 0
    assert "from 150 of 150 labels" in capsys.readouterr().out


def test_fewer_labels_and_a_second_plan(plan, capsys):
    table, scores, path = plan
    assert draw(scores, path) == 0
    fill(path, table, slice(0, 100))
    second = path.with_name("second.csv")
    assert draw(scores, second, "--labelled", str(path), budget=60) == 0
    new = fill(second, table)
    assert not {row["name"] for row in new} & {row["name"] for row in _first(path, 100)}
    read = read_plan(second)
    assert (read.labels.size, read.budget) == (160, 160)
    capsys.readouterr()
    assert run(["estimate", str(second), "--json"]) == 0
    both = json.loads(capsys.readouterr().out)
    assert both["labels"] == 160
    third = path.with_name("third.csv")
    assert draw(scores, third, "--labelled", str(second), budget=20) == 0
    fill(third, table)
    assert read_plan(third).labels.size == 180


def _first(path, size):
    with path.open() as file:
        return list(csv.DictReader(file))[:size]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rest": [[[0.5], [2**53]], [[0.1], [1]]]}, "Unable to allocate"),
        ({"threshold": 1e308}, "threshold must lie in"),
    ],
)
def test_a_damaged_plan_is_refused(plan, change, says, capsys):
    table, scores, path = plan
    assert draw(scores, path) == 0
    fill(path, table)
    state = path.with_suffix(".json")
    state.write_text(json.dumps(json.loads(state.read_text()) | change))
    assert run(["estimate", str(path)]) == 2
    error = capsys.readouterr().err
    assert "the saved label plan is damaged" in error
    assert says in error


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace("label", "lable", 1), "no column 'label', which the plan has"),
        (lambda text: re.sub(r"\n(\d+),0,", r"\n\1,maybe,", text, count=1), "must hold 0 or 1"),
        (lambda text: text + text.splitlines()[1] + "\n", "is there twice"),
        (lambda text: re.sub(r"\n\d+,", "\n999999,", text, count=1), "'999999' is not in the plan"),
        (lambda text: re.sub(r"\n(\d+),[01],", r"\n\1,,", text), "at least one label, got none"),
    ],
)
def test_a_plan_that_is_filled_in_wrongly_is_refused(plan, change, says, capsys):
    table, scores, path = plan
    assert draw(scores, path) == 0
    fill(path, table)
    path.write_text(change(path.read_text()))
    assert run(["estimate", str(path)]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--label", "name"], "there is a column 'name' already; choose another --label"),
        (["-p", "q"], "no column 'q'; it has ['name', 'p'"),
        (["--target", "x"], "target must be"),
        (["--labelled", "none.csv"], "none.csv: there is no such file"),
        (["--threshold", "7"], "threshold must lie in"),
        (["--threshold", "1"], "selected must mark at least one of 4000 rows, got none"),
        (["--budget", "9999"], "budget must be at most the number of rows"),
        (["-o", "plan.txt"], "a plan must be named with .csv"),
    ],
)
def test_bad_options_of_label_plan_are_one_sentence(plan, options, says, capsys):
    _, scores, path = plan
    assert draw(scores, path, *options) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not path.exists()


def test_files_with_other_columns_are_named(tmp_path, capsys):
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("p,name\n0.5,x\n")
    second.write_text("p\n0.2\n")
    options = ["--threshold", "0.3", "--budget", "1", "-o", str(tmp_path / "plan.csv")]
    assert run(["label-plan", str(first), str(second), "-p", "p", *options]) == 2
    assert "b.csv: rows to write must have the columns of " in capsys.readouterr().err
    assert run(["monitor", str(first), str(second), "-p", "q", "--threshold", "0.3"]) == 2
    assert "a.csv: no column 'q'; it has ['p', 'name']" in capsys.readouterr().err


def test_a_plan_without_its_other_file_or_of_other_rows_is_refused(plan, capsys):
    table, scores, path = plan
    assert draw(scores, path) == 0
    fill(path, table)
    second = path.with_name("second.csv")
    table.select("name", p=1 - pl.col("p")).write_csv(scores)
    assert draw(scores, second, "--labelled", str(path)) == 2
    assert "must be a plan of the same rows and threshold" in capsys.readouterr().err
    state = json.loads(path.with_suffix(".json").read_text())
    wrong = [{}, state | {"rows": [2**70]}, state | {"p": [math.nan] * len(state["p"])}]
    for damaged in [*map(json.dumps, wrong), "[" * 10**5]:
        path.with_suffix(".json").write_text(damaged)
        assert run(["estimate", str(path)]) == 2
        assert "saved label plan" in capsys.readouterr().err
    path.with_suffix(".json").unlink()
    assert run(["estimate", str(path)]) == 2
    assert "an estimate needs it" in capsys.readouterr().err
