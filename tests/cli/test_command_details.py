"""The small things of the command that people stumble on."""

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from argmaxf.cli.app import EXAMPLES, run
from argmaxf.cli.common import print_table
from argmaxf.cli.models import behind_preprocessing, make_classifier
from argmaxf.cli.tables import leaks, read_table, split_like, split_table, with_positive

N = 300


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    size = rng.normal(size=N)
    return pl.DataFrame(
        {
            "customer": [f"c{i:05}" for i in range(N)],
            "row": range(1, N + 1),
            "size": size.round(3),
            "colour": rng.choice(["red", "blue"], N),
            "y": (size + rng.normal(size=N) > 0.8).astype(int),
        }
    )


def test_columns_that_only_name_rows_are_left_out_and_named(frame):
    table = split_table(frame, ["y"], "t")
    assert table.X.columns == ["size", "colour"]
    (note,) = table.notes
    assert "customer, row; --only" in note
    kept = split_table(frame, ["y"], "t", only=["row", "size"])
    assert kept.X.columns == ["row", "size"]
    assert kept.notes == ()


def test_odd_columns_are_left_out_or_named(frame):
    odd = frame.select(
        "size",
        "y",
        nothing=pl.lit(None, dtype=pl.String),
        income=pl.col("row").map_elements(lambda i: f"{i * 977:,}.50", pl.String),
        share=(pl.col("row") % 7).cast(pl.String) + " %",
        zip=pl.lit("0") + (pl.col("row") % 9 + 1000).cast(pl.String),  # digits, and still a name
    )
    table = split_table(odd, ["y"], "t")
    assert table.X.columns == ["size", "share", "zip"]
    empty, same, text = table.notes
    assert empty == "Columns without values were left out: nothing."
    assert "left out: income;" in same
    assert "are text: income (977.50), share (1 %);" in text


def test_the_row_of_a_bad_cell_is_that_of_the_file(frame):
    row = pl.col("row")
    y = pl.when(row != 2).then("y")
    for bad, message in [("inf", "got inf in row 5"), ("many", "but row 5 has 'many'")]:
        size = pl.when(row == 5).then(pl.lit(bad)).otherwise(pl.col("size").cast(pl.String))
        size = size.cast(pl.Float64) if bad == "inf" else size
        with pytest.raises(ValueError, match=message):
            split_table(frame.with_columns(size=size, y=y), ["y"], "t")


@pytest.mark.parametrize(
    ("names", "positive", "said"),
    [
        (("churn", "stay"), None, "F counts 'stay', .*; --positive churn counts the other"),
        (("churn", "stay"), "churn", None),
        (("no", "yes"), None, None),  # the usual words, and the rare one is last
        ((1, 0), None, None),
    ],
)
def test_a_class_that_is_taken_for_the_positive_one_is_named(frame, names, positive, said):
    rare, common = names if names != ("no", "yes") else names[::-1]
    y = pl.Series("y", [rare if value else common for value in frame["y"]])
    table = split_table(frame.with_columns(y), ["y"], "t")
    notes = with_positive(table, None, positive)[0].notes
    found = [note for note in notes if note not in table.notes]
    assert re.search(said, *found) if said else found == []


def test_columns_that_look_like_identifiers_or_like_the_label_are_named(frame):
    rng = np.random.default_rng(1)
    y, row = frame["y"], frame["row"]
    X = pl.DataFrame(
        {
            "subject_id": rng.integers(0, 50, N),
            "customerId": rng.choice(["a", "b", "c"], N),
            "salary": rng.integers(0, 10**9, N),  # near-unique integers
            "visit": (row // 3) * 7,  # a gapped sequence
            "age": rng.integers(18, 80, N),
            "paid": rng.choice([0, 1], N),
            "width": rng.normal(size=N),
            "outcome": y * 2.0 + rng.normal(size=N) * 0.1,
            "code": pl.Series(np.where(y == 1, "closed", "open")),
        }
    )
    identifiers, *separating = leaks(X, y)
    assert "identifiers: subject_id, customerId, salary, visit. If they are" in identifiers
    assert [each.split("'")[1] for each in separating] == ["outcome", "code"]
    assert leaks(X[["age", "paid", "width"]], y) == []


def test_one_of_three_classes_is_against_the_rest(frame, tmp_path, capsys):
    kind = np.where(frame["y"] == 1, "a", np.where(frame["colour"] == "red", "b", "c"))
    data = frame.select("size", "colour", kind=pl.Series(kind))
    data.write_csv(tmp_path / "t.csv")
    words = ["compare", str(tmp_path / "t.csv"), "--target", "kind", "--json", "--folds", "2"]
    assert run([*words, "--positive", "a"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["notes"][0] == "F counts a against all other classes."
    counts = found["methods"][0]
    assert counts["tp"] + counts["fn"] == (kind == "a").sum()
    assert run([*words, "--positive", "d"]) == 2
    assert "--positive must be one of the classes a, b, c, got 'd'" in capsys.readouterr().err


def test_rows_of_one_group_are_held_out_together(tmp_path, capsys):
    """Labels that belong to a subject cannot be learned from its other rows."""
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(60), 8)
    signature = rng.normal(size=(60, 4))[subject]
    label = (rng.random(60) < 0.3)[subject].astype(int)
    X = pl.DataFrame(signature, schema=list("abcd")).with_columns(subject=subject, y=label)
    X.write_csv(tmp_path / "t.csv")
    words = ["compare", str(tmp_path / "t.csv"), "--target", "y", "--estimator", "forest"]
    scores = {}
    for how in (["--drop", "subject"], ["--group", "subject", "--save", str(tmp_path / "m.skops")]):
        assert run([*words, *how, "--json"]) == 0
        methods = json.loads(capsys.readouterr().out)["methods"]
        scores[how[0]] = max(m["score"]["value"] for m in methods)
    assert scores["--drop"] > 0.95
    assert scores["--group"] < 0.6
    assert (tmp_path / "m.skops").exists()
    assert run([*words, "--group", "subjekt"]) == 2
    assert "did you mean 'subject'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["decide", "sketch", "compare"])
def test_outputs_are_replaced_only_by_force(command, frame, tmp_path, capsys):
    data, out = tmp_path / "t.csv", tmp_path / "out.argmaxf"
    frame.with_columns(p=1 / (1 + (-pl.col("size")).exp())).write_csv(data)
    out = out if command == "sketch" else out.with_suffix(".csv")
    words = {
        "decide": ["decide", str(data), "-p", "p", "-o", str(out)],
        "sketch": ["sketch", str(data), "-p", "p", "-o", str(out)],
        "compare": ["compare", str(data), "--target", "y", "--folds", "2", "--report", str(out)],
    }[command]
    out.write_text("precious")
    assert run(words) == 2
    assert f"{out} exists: pass --force to replace it" in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert run([*words, "--force"]) == 0
    assert out.read_bytes() != b"precious"


def test_save_without_skops_fails_before_anything_is_fitted(frame, tmp_path, capsys, monkeypatch):
    frame.write_csv(tmp_path / "t.csv")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    monkeypatch.setattr("argmaxf.cli.compare.compare_tables", None)
    words = ["compare", str(tmp_path / "t.csv"), "--target", "y", "--save", "m.skops"]
    assert run(words) == 2
    assert "--save needs skops: pip install" in capsys.readouterr().err


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_report_without_its_packages_fails_before_the_work(
    package, frame, tmp_path, capsys, monkeypatch
):
    frame.write_csv(tmp_path / "t.csv")
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "argmaxf.report.page", raising=False)
    monkeypatch.setattr("argmaxf.cli.compare.compare_tables", None)
    words = ["compare", str(tmp_path / "t.csv"), "--target", "y"]
    assert run([*words, "--report", str(tmp_path / "r.html")]) == 2
    needs = f"--report needs {package}: pip install 'argmaxf[report]'"
    assert needs in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()


def test_weights_of_a_sketch_without_labels_are_refused(frame, tmp_path, capsys):
    frame.write_csv(tmp_path / "t.csv")
    words = ["sketch", str(tmp_path / "t.csv"), "-p", "size", "--weight", "row"]
    assert run([*words, "-o", str(tmp_path / "t.argmaxf")]) == 2
    assert "--weight needs --label" in capsys.readouterr().err


def test_results_are_printed_even_if_saving_fails(frame, tmp_path, capsys, monkeypatch):
    frame.write_csv(tmp_path / "t.csv")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("argmaxf.cli.models.save_classifier", full)
    words = ["compare", str(tmp_path / "t.csv"), "--target", "y", "--folds", "2"]
    assert run([*words, "--save", str(tmp_path / "m.skops")]) == 2
    shown = capsys.readouterr()
    assert "tuned threshold" in shown.out
    assert "No space left" in shown.err
    assert not (tmp_path / "m.skops").exists()


def test_columns_can_be_left_out(frame):
    table = split_table(frame, ["y"], "t", drop=["colour", "customer", "row"])
    assert table.X.columns == ["size"]
    with pytest.raises(ValueError, match=r"t has no column 'color'; did you mean 'colour'\?"):
        split_table(frame, ["y"], "t", drop=["color"])
    with pytest.raises(ValueError, match=r"give either --drop or --only"):
        split_table(frame, ["y"], "t", drop=["colour"], only=["size"])


def test_rows_without_a_target_are_left_out_and_counted(frame):
    holes = frame.with_columns(y=pl.when(pl.col("row") % 100 == 0).then(None).otherwise("y"))
    table = split_table(holes, ["y"], "train")
    assert table.X.height == len(table.y) == N - 3
    assert table.notes[0] == "3 of 300 rows of train have no target and were left out."
    assert split_like(holes, table, "test").X.height == N - 3
    one = frame.with_columns(y=pl.when(pl.col("row") == 100).then(None).otherwise("y"))
    said, *_ = split_table(one, ["y"], "train").notes
    assert said == "1 of 300 rows of train has no target and was left out."


@pytest.mark.parametrize("separator", [";", "\t", ","])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_separators_are_found_and_zipped_files_read(frame, tmp_path, capsys, separator, name):
    path = tmp_path / name
    text = frame.write_csv(separator=separator).encode()
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert read_table(path).equals(frame)
    scores = frame.with_columns(p=1 / (1 + (-pl.col("size")).exp()))
    text = scores.write_csv(separator=separator).encode()
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    out = tmp_path / "out.csv"
    assert run(["decide", str(path), "-p", "p", "-o", str(out)]) == 0
    labelled = pl.read_csv(out, separator=";" if separator == ";" else ",")
    assert labelled.height == N
    assert labelled.filter("label")["p"].min() > labelled.filter(~pl.col("label"))["p"].max()


def test_decimal_commas_are_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("size;y\n0,5;1\n-1,25;0\n3;1\n")
    assert read_table(path)["size"].to_list() == [0.5, -1.25, 3.0]


def test_a_damaged_zip_is_one_sentence(tmp_path, capsys):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n1,0\n" * 1000)[:-20])
    assert run(["compare", str(path), "--target", "y"]) == 2
    assert "t.csv.gz cannot be read" in capsys.readouterr().err


def test_rows_are_printed_on_request(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("p\n0.9\n0.1\n0.8\n")
    command = [sys.executable, "-c", "from argmaxf.cli import main; main()", "decide", str(path)]
    done = subprocess.run([*command, "-p", "p", "-o", "-"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert pl.read_csv(io.StringIO(done.stdout))["label"].to_list() == [True, False, True]
    assert "threshold" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]
    assert run(["decide", str(path), "-p", "p", "-o", "-", "--json"]) == 2


def test_help_by_a_letter_and_options_meant(capsys):
    assert run(["decide", "-h"]) == 0
    assert "--probability" in capsys.readouterr().out
    assert run(["compare", "t.csv", "--traget", "y"]) == 2
    assert "No such option: --traget (Possible options: " in capsys.readouterr().err


def named(command):
    return command.__name__.replace("_", "-")


def test_every_help_has_groups_an_example_and_flags_without_values(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    for command, example in EXAMPLES.items():
        assert run([named(command), "--help"]) == 0
        text = capsys.readouterr().out
        assert f"Example: {example}" in text
        assert "bool" not in text
        assert "Output" in text


@pytest.mark.parametrize("command", [None, *EXAMPLES], ids=lambda c: getattr(c, "__name__", "all"))
def test_help_cuts_nothing_off_on_a_narrow_terminal(command, capsys, monkeypatch):
    shown = {}
    for width in (60, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        assert run([*([named(command)] if command else []), "--help"]) == 0
        shown[width] = re.sub(r"╭─.*", "", capsys.readouterr().out)  # without titles of boxes
    assert max(map(len, shown[60].splitlines())) <= 60
    said = {width: set(re.findall(r"[-\w]+", text)) for width, text in shown.items()}
    together = "".join(shown[60].split())  # words are parted at their hyphens
    assert {word for word in said[200] - said[60] - {"bool"} if word not in together} == set()


def test_shells_complete_it():
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    code = "from argmaxf.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--show-completion", "bash"],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert "complete" in done.stdout


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_boosting_of_other_packages_by_name(name, frame, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=f"--estimator {name} needs {name}: pip install {name}"):
        make_classifier(name, 0)
    monkeypatch.undo()
    pytest.importorskip(name)
    X, y = frame[["size", "colour"]], frame["y"]
    model = behind_preprocessing(X, make_classifier(name, 0)).fit(X, y)
    assert model.predict_proba(X).shape == (N, 2)


def test_a_model_of_ones_own_is_trained_anew(frame, tmp_path, capsys):
    import skops.io
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    own = make_pipeline(
        make_column_transformer((StandardScaler(), ["size"])), LogisticRegression(C=0.5)
    )
    skops.io.dump(own, tmp_path / "own.skops")
    loaded = make_classifier(str(tmp_path / "own.skops"), 0)
    assert behind_preprocessing(frame, loaded) is loaded
    data = tmp_path / "t.csv"
    frame.write_csv(data)
    words = ["compare", str(data), "--target", "y", "--estimator", str(tmp_path / "own.skops")]
    assert run([*words, "--folds", "2"]) == 0
    skops.io.dump(Ridge(), tmp_path / "ridge.skops")
    with pytest.raises(ValueError, match=r"must hold a classifier, got Ridge"):
        make_classifier(str(tmp_path / "ridge.skops"), 0)
    with pytest.raises(ValueError, match=r"there is no file none.skops"):
        make_classifier("none.skops", 0)
    (tmp_path / "bad.skops").write_bytes(b"no model")
    with pytest.raises(ValueError, match=r"bad.skops cannot be read"):
        make_classifier(str(tmp_path / "bad.skops"), 0)


def test_what_has_a_pipeline_inside_brings_its_own_preprocessing(frame, tmp_path, capsys):
    """A search over a pipeline, and what `--save` wrote: both ask for columns by name."""
    import skops.io
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaled = make_column_transformer((StandardScaler(), ["size"]))
    pipeline = make_pipeline(scaled, LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=2)
    skops.io.dump(search, tmp_path / "search.skops")
    data = tmp_path / "t.csv"
    frame.write_csv(data)
    words = ["compare", str(data), "--target", "y", "--folds", "2", "--json"]
    saved = tmp_path / "saved.skops"
    searched = [*words, "--estimator", str(tmp_path / "search.skops"), "--save", str(saved)]
    assert run(searched) == 0, capsys.readouterr().err
    assert run([*words, "--estimator", str(saved)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_number_is_cut_off_on_a_narrow_terminal(width):
    out = Console(file=io.StringIO(), width=width)
    row = ("tuned threshold", ".630 [.558, .696]", "1,234,567")
    print_table(out, ("method", "F 95 %", "found"), [row])
    text = out.file.getvalue()
    assert "tuned threshold" in text
    assert ".630 [.558, .696]" in text
    assert "1,234,567" in text
    assert "…" not in text


def test_speed_is_said_only_where_it_means_something(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("p\n0.9\n0.1\n")
    assert run(["decide", str(path), "-p", "p"]) == 0
    assert "rows/s" not in capsys.readouterr().out


def test_bounds_offer_no_rows_that_nobody_has(capsys):
    assert run(["bounds", "--n", "100", "--positive-rate", "0.01"]) == 0
    text = capsys.readouterr().out
    assert "does not apply" in text
    assert "> 10,000,000" in text
    assert "368," not in text


@pytest.mark.parametrize(("n", "rate"), [("1000", "1e-300"), ("1" + "0" * 400, "0.1")])
def test_bounds_beyond_doubles_are_refused(n, rate, capsys):
    assert run(["bounds", "--n", n, "--positive-rate", rate]) == 2
    assert "1e300" in capsys.readouterr().err


def test_a_bound_above_one_says_nothing(capsys):
    assert run(["bounds", "--n", "100000", "--positive-rate", "0.1"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Lemma 2: with probability 0.95, F measured on them is within 0.365" in text
    assert "Theorem 3 gives no information: its bound is 3.62" in text


def test_the_command_listens_before_it_loads_anything():
    """Until `argmaxf.cli` is imported nobody answers Ctrl-C: it takes some milliseconds."""
    code = "import sys; b = set(sys.modules); import argmaxf.cli; print(*set(sys.modules) - b)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "argmaxf.cli" in done.stdout
    assert not {"re", "typing", "numpy", "typer"} & set(done.stdout.split())


@pytest.mark.parametrize("after", [0.0, 0.05, 0.2])
def test_ctrl_c_in_the_first_moment_is_quiet(after, tmp_path):
    code = "from argmaxf.cli import main; print('here', flush=True); main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "demo", "--report", str(tmp_path / "r.html")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "here\n"
    time.sleep(after + 0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in error


def test_a_semicolon_in_a_name_does_not_part_fields(tmp_path, capsys):
    path = tmp_path / "in.csv"
    path.write_text("p;;x,k\n0.5,a\n0.25,b\n")
    assert run(["decide", str(path), "-p", "p;;x", "--by", "k", "--json"]) == 0
    assert '"k"' in capsys.readouterr().out
