"""argmaxf compare and demo: what they say, and every way to fail."""

import json
import re
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import fbeta_score
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import argmaxf
from argmaxf import AutoFClassifier
from argmaxf.cli.app import run
from argmaxf.cli.compare import compare_tables
from argmaxf.cli.demo import AUTO, cards
from argmaxf.cli.models import ESTIMATORS, make_classifier
from argmaxf.cli.tables import read_table, split_like, split_table, with_positive
from argmaxf.comparison import METHODS
from argmaxf.report.page import code

N = 400


@pytest.fixture(scope="module")
def frame():
    """Numbers, categories and truths with gaps, and a rare target."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 2))
    colour = rng.choice(["red", "green", "blue"], N)
    p = 1 / (1 + np.exp(4.5 - 2 * x[:, 0] - 1.5 * (colour == "red")))
    y = (rng.random(N) < p).astype(int)
    gaps = rng.random(N) < 0.1
    return pl.DataFrame(
        {
            "age": [None if g else v for g, v in zip(gaps, x[:, 0].round(3).tolist(), strict=True)],
            "size": (10 * x[:, 1]).astype(int),
            "colour": [None if v > 1.8 else c for v, c in zip(x[:, 1], colour, strict=True)],
            "member": rng.random(N) < 0.5,
            "y": y,
            "second": (rng.random(N) < 0.3).astype(int),
        }
    )


@pytest.fixture(scope="module")
def rows(frame):
    return split_table(frame.drop("second"), ["y"], "train.csv")


@pytest.fixture(scope="module")
def found(rows):
    return compare_tables(rows)


@pytest.fixture
def csv(frame, tmp_path):
    def write(change=lambda frame: frame, name="train.csv"):
        path = tmp_path / name
        change(frame.drop("second")).write_csv(path)
        return path

    return write


def test_every_method_is_rated_on_rows_its_model_has_not_seen(rows, found):
    assert [m.name for m in found.methods] == [
        "threshold 0.5",
        "tuned threshold",
        "expected F",
        "trained for F",
        "blended F",
    ]
    assert found.evidence.truth[:, 0].tolist() == (rows.y == 1).to_list()
    for m in found.methods:
        table = found.evidence.predictions[m.name]
        assert m.score.value == pytest.approx(fbeta_score(found.evidence.truth, table, beta=1))
        assert m.counts["tp"] + m.counts["fn"] == rows.y.sum()
        assert m.counts["tp"] + m.counts["fp"] == table.sum()
        assert m.counts["tp"] + m.counts["fp"] + m.counts["fn"] + m.counts["tn"] == N
        gap = m.score.value - found.method.score.value
        assert m.difference.value == pytest.approx(gap)
    assert (found.evidence.predictions["threshold 0.5"] == (found.evidence.proba >= 0.5)).all()


def test_out_of_fold_means_out_of_fold():
    """A feature that tells each training row apart helps nobody on other rows."""
    y = np.arange(120) % 4 == 0
    frame = pl.DataFrame({"id": [f"row {i}" for i in range(120)], "y": y.astype(int)})
    found = compare_tables(split_table(frame, ["y"], "t"), estimator="forest", folds=3)
    assert max(m.score.value for m in found.methods) <= 0.45  # all positive gives 0.4


def test_a_test_table_is_what_counts_where_there_is_one(frame):
    train = split_table(frame[:250].drop("second"), ["y"], "train")
    test = split_like(frame[250:], train, "test")
    found = compare_tables(train, test)
    assert found.rated_on == "test"
    assert found.evidence.truth[:, 0].tolist() == (frame[250:]["y"] == 1).to_list()
    model = found.estimator.fit(train.X, train.y)
    assert (model.predict(test.X) == 1).tolist() == found.evidence.predictions[found.chosen][
        :, 0
    ].tolist()


def test_shift_between_tables_is_noted(frame):
    train = split_table(frame[:250].drop("second"), ["y"], "train")
    moved = frame[250:].with_columns(pl.col("age") + 2.0)
    found = compare_tables(train, split_like(moved, train, "test"))
    assert any("unlike the training data" in note for note in found.notes)
    calm = compare_tables(train, split_like(frame[250:], train, "test"))
    assert not any("unlike" in note for note in calm.notes)


def test_larger_beta_finds_more(rows, found):
    eager = compare_tables(rows, beta=3.0)
    assert (
        eager.evidence.predictions["expected F"].sum()
        > found.evidence.predictions["expected F"].sum()
    )
    truth, table = eager.evidence.truth, eager.evidence.predictions["expected F"]
    score = next(m for m in eager.methods if m.name == "expected F").score
    assert score.value == pytest.approx(fbeta_score(truth, table, beta=3))


@pytest.mark.parametrize("estimator", ["forest", "boosting", "nb"])
def test_other_classifiers(estimator, rows):
    assert compare_tables(rows, estimator=estimator, folds=2).chosen


def test_svmperf_and_costs_on_request(rows):
    found = compare_tables(rows, methods=("margin", "cost"), folds=2)
    assert list(found.evidence.predictions)[-2:] == [
        "trained for F by margin",
        "trained with costs",
    ]


def test_svmperf_without_its_solver_is_refused_by_name(csv, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    assert run(["compare", str(csv()), "--target", "y", "--svmperf"]) == 2
    assert capsys.readouterr().err.strip() == (
        "argmaxf: --svmperf needs clarabel: pip install 'argmaxf[svmperf]'"
    )


def test_several_targets_are_compared_by_macro_f(frame):
    found = compare_tables(split_table(frame, ["y", "second"], "t"))
    assert found.labels == ("y", "second")
    for m in found.methods:
        table = found.evidence.predictions[m.name]
        macro = fbeta_score(found.evidence.truth, table, beta=1, average="macro", zero_division=0)
        assert m.score.value == pytest.approx(macro)


def test_classes_of_text_are_one_against_the_rest(frame):
    kinds = frame.with_columns(kind=pl.col("colour").fill_null("none")).drop("colour")
    kinds = kinds.filter(pl.col("kind") != "none")
    found = compare_tables(split_table(kinds, ["kind"], "t"))
    assert found.labels == ("blue", "green", "red")
    assert (found.evidence.predictions["threshold 0.5"].sum(axis=1) == 1).all()


def test_the_table_and_the_verdict_say_where_intervals_may_be_too_narrow(csv, capsys):
    """The rarest class has fewer than ten rows."""
    kinds = pl.when(pl.int_range(N) < 6).then(pl.lit("x")).otherwise(pl.col("member").cast(str))
    path = csv(lambda frame: frame.with_columns(kind=kinds).drop("y"))
    assert run(["compare", str(path), "--target", "kind"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^ method +\(may be too narrow\) ", out, re.M)
    assert re.search(r"\] \(may be too narrow\) on rows", " ".join(out.split()))


def test_the_positive_class_can_be_chosen(frame):
    words = frame.drop("second").with_columns(
        y=pl.when(pl.col("y") == 1).then(pl.lit("bad")).otherwise(pl.lit("good"))
    )
    rows = split_table(words, ["y"], "t")
    assert (
        compare_tables(rows, positive="bad", folds=2).evidence.truth.sum()
        == (rows.y == "bad").sum()
    )
    assert compare_tables(rows, folds=2).evidence.truth.sum() == (rows.y == "good").sum()
    with pytest.raises(ValueError, match="must be one of the classes bad, good, got 'x'"):
        with_positive(rows, None, "x")


def test_the_sentence_promises_only_what_the_method_rests_on(found):
    on_proba = replace(found, chosen="expected F").verdict
    rows = found.evidence
    proba, selected = (each["expected F"][:, 0] for each in (rows.scores, rows.predictions))
    expected = argmaxf.expected_f(proba, selected)
    assert f"predicted F1 {expected.mean:.3f} (std {expected.std:.3f})" in on_proba
    assert "predicted" not in replace(found, chosen="trained for F").verdict


def test_a_prediction_that_the_rows_contradict_is_said_to_be_wrong(found):
    rows = found.evidence
    low = {**rows.scores, "expected F": np.full_like(rows.scores["expected F"], 1e-4)}
    verdict = replace(found, chosen="expected F", evidence=replace(rows, scores=low)).verdict
    assert "which these rows contradict: rely on the measured value" in verdict


@pytest.mark.parametrize("key", METHODS)
def test_the_code_runs_as_it_is_shown(found, rows, key):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    names = {"X": X, "y": (X[:, 0] > 0.5) * 1, "X_new": X}
    model = make_pipeline(StandardScaler(), LogisticRegression())
    exec(code(replace(found, estimator=METHODS[key].make(AutoFClassifier(model)))), names)
    assert len(names["labels"]) == 60


SCALED = make_pipeline(StandardScaler(), LogisticRegression())
OWN = {
    "several": VotingClassifier([("nb", GaussianNB())], voting="soft"),
    "search": GridSearchCV(SCALED, {"logisticregression__C": np.array([0.1, 1.0])}, cv=2),
    "steps": GridSearchCV(SCALED, {"standardscaler": [MinMaxScaler(), "passthrough"]}, cv=2),
}


@pytest.mark.parametrize("name", [*ESTIMATORS, *OWN])
def test_the_code_runs_with_every_classifier(found, name):
    """A forest has an attribute `estimator` and no such parameter; boosting has a private home."""
    if name in ("lightgbm", "xgboost"):
        pytest.importorskip(name)
    model = OWN.get(name) or make_classifier(name, 0)
    if name == "forest":
        model.set_params(n_estimators=5, n_jobs=1)
    X = np.random.default_rng(0).normal(size=(60, 2))
    for key in ("plain", "threshold"):
        names = {"X": X, "y": (X[:, 0] > 0.5) * 1, "X_new": X}
        exec(code(replace(found, estimator=METHODS[key].make(AutoFClassifier(model)))), names)
        assert len(names["labels"]) == 60
        assert type(model).__name__ in repr(names["model"])


def test_the_same_seed_gives_the_same_comparison(rows, found):
    again = compare_tables(rows)
    assert [m.score for m in again.methods] == [m.score for m in found.methods]


# The command


def test_command_prints_table_sentence_and_reason(csv, capsys):
    assert run(["compare", str(csv()), "--target", "y"]) == 0
    lines = capsys.readouterr().out.splitlines()  # of 80 columns, which hold the table
    assert any(line.endswith("found  false  missed  ") for line in lines)
    text = " ".join(" ".join(lines).split())
    for expected in (
        "threshold 0.5",
        "tuned threshold",
        "expected F",
        "trained for F",
        "blended F",
        "on rows it was not trained on",
        "standard error",
        "rows rated (5 folds",
    ):
        assert expected in text


def test_json_is_the_record(csv, capsys, found):
    assert run(["compare", str(csv()), "--target", "y", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["chosen"] == found.chosen
    for shown, m in zip(result["methods"], found.methods, strict=True):
        assert shown["score"]["value"] == pytest.approx(m.score.value, abs=1e-9)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "tsv"])
def test_other_kinds_of_files(frame, tmp_path, suffix):
    path = tmp_path / f"train.{suffix}"
    data = frame.drop("second")
    writers = {
        "parquet": data.write_parquet,
        "arrow": data.write_ipc,
        "tsv": lambda p: data.write_csv(p, separator="\t"),
    }
    writers[suffix](path)
    assert read_table(path).equals(data)


def test_saved_model_predicts_as_the_fitted_one(csv, tmp_path, rows, found, capsys):
    import skops.io

    path = tmp_path / "model.skops"
    arguments = ["compare", str(csv()), "--target", "y", "--save", str(path), "--json"]
    assert run(arguments) == 0
    types = skops.io.get_untrusted_types(file=path)
    assert all(name.startswith(("argmaxf.", "numpy.")) for name in types)
    model = skops.io.load(path, trusted=types)
    chosen = clone(found.estimator).fit(rows.X, rows.y)
    assert (model.predict(rows.X) == chosen.predict(rows.X)).all()
    assert (model.predict(rows.X.to_pandas()) == chosen.predict(rows.X)).all()


def spoil(column, row, value):
    def change(frame):
        values = frame[column].cast(pl.String).to_list()
        values[row] = value
        return frame.with_columns(pl.Series(column, values))

    return change


BAD = {
    "wrong target": (
        lambda f: f,
        ["--target", "yy"],
        "train.csv has no column 'yy'; did you mean 'y'?",
    ),
    "unknown target": (
        lambda f: f,
        ["--target", "price"],
        "train.csv has no column 'price'; its columns are 'age', 'size', 'colour', 'member', 'y'",
    ),
    "constant target": (
        lambda f: f.with_columns(y=pl.lit(0)),
        ["--target", "y"],
        "target 'y' of train.csv is always 0: nothing to learn",
    ),
    "text that is no number": (
        spoil("size", 7, "twelve"),
        ["--target", "y"],
        "column 'size' of train.csv holds numbers, but row 8 has 'twelve': "
        "correct it or leave it empty",
    ),
    "three rows": (
        lambda f: f.sort("y", descending=True)[[0, 1, N - 1]],
        ["--target", "y"],
        "train.csv has 3 rows; 5 folds need at least 10",
    ),
    "no positives in a fold": (
        lambda f: pl.concat([f.filter(pl.col("y") == 0), f.filter(pl.col("y") == 1)[:3]]),
        ["--target", "y"],
        "'y' has 3 positive rows in train.csv, too few for one in each of 5 folds",
    ),
    "no target": (
        lambda f: f.with_columns(y=pl.lit(None, dtype=pl.Int64)),
        ["--target", "y"],
        "target 'y' of train.csv has no values",
    ),
    "a number as target": (
        lambda f: f,
        ["--target", "size"],
        "target 'size' of train.csv has",
    ),
    "nothing to learn from": (
        lambda f: f.select("y"),
        ["--target", "y"],
        "train.csv has no column besides the target that can be learned from",
    ),
    "beta": (lambda f: f, ["--target", "y", "--beta", "-1"], "beta must be positive and finite"),
    "folds": (lambda f: f, ["--target", "y", "--folds", "1"], "folds must be at least 2, got 1"),
    "estimator": (
        lambda f: f,
        ["--target", "y", "--estimator", "magic"],
        "estimator must be one of 'logistic', 'forest', 'boosting', 'nb', 'lightgbm', 'xgboost'; "
        "got 'magic'",
    ),
    "several targets": (
        lambda f: f,
        ["--target", "y", "--target", "size"],
        "several targets must hold 0 and 1; 'size' of train.csv has",
    ),
    "no folder": (
        lambda f: f,
        ["--target", "y", "--report", "nowhere/out.html"],
        "there is no folder nowhere",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_no_report(case, csv, capsys, tmp_path):
    change, arguments, message = BAD[case]
    report = tmp_path / "out.html"
    if "--report" not in arguments:
        arguments = [*arguments, "--report", str(report)]
    assert run(["compare", str(csv(change)), *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("argmaxf: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["train.csv"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop("age"), "test.csv lacks column 'age' of train.csv"),
        (lambda f: f.with_columns(y=pl.lit(0)), "test.csv has no positive row of 'y'"),
        (lambda f: f.with_columns(y=pl.lit(7)), "has the class '7', never seen in training"),
        (spoil("size", 3, "big"), "column 'size' of test.csv must hold numbers, as in train.csv"),
    ],
)
def test_bad_test_tables(change, message, csv, capsys):
    test = csv(change, "test.csv")
    assert run(["compare", str(csv()), "--target", "y", "--test", str(test)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "there is no file"),
        ("a.xlsx", b"", "the extension must be one of .csv"),
        ("a.parquet", b"no parquet", "a.parquet cannot be read"),
        ("a.csv", b"a,y\n", "has no rows"),
        ("a.csv", b"", "a.csv cannot be read"),
    ],
)
def test_unreadable_files(name, content, message, tmp_path, capsys):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    assert run(["compare", str(path), "--target", "y"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_infinite_numbers_are_named(frame, tmp_path):
    frame[["age", "y"]].with_columns(age=pl.lit(float("inf"))).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="column 'age' of a must hold finite numbers, got inf in"):
        split_table(read_table(tmp_path / "a.parquet"), ["y"], "a")


def test_dates_are_left_out_and_named(frame):
    dated = frame.drop("second").with_columns(when=pl.date(2026, 1, 1))
    found = compare_tables(split_table(dated, ["y"], "t"))
    assert any("left out: when" in note for note in found.notes)


def test_ctrl_c_ends_cleanly(csv, tmp_path):
    code = (
        "import sys, time; from argmaxf.cli.app import run;"
        "from argmaxf.comparison.cross_validation import Fit;"
        "fit = lambda *_: print('fitting', flush=True) or time.sleep(60);"
        "Fit.run = fit; sys.exit(run(sys.argv[1:]))"
    )
    arguments = ["compare", str(csv()), "--target", "y", "--report", str(tmp_path / "out.html")]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "fitting\n"
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert [p.name for p in tmp_path.iterdir()] == ["train.csv"]


# The demo


def test_demo_data_are_two_scans_on_a_card():
    frame = cards(seed=3)
    assert frame.shape == (898, 74)
    assert not frame.equals(cards(seed=4))
    digits = frame[:, 64:].sum_horizontal()
    assert set(digits) == {1, 2}  # two scans may show the same digit
    pixels = load_digits().data
    first = frame[:, :64].row(0)
    under = [scan for scan in pixels if (scan <= first).all()]
    assert len(under) >= 2
    assert any((np.maximum(a, b) == first).all() for a in under for b in under)


@pytest.mark.slow
def test_demo_beats_every_way_of_scikit_learn_and_fits_on_a_screen(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "demo.html"
    assert run(["demo", "--report", str(path)]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines[:-1])) <= 80
    row = r"(scikit-learn|argmaxf): (\S+) +(0\.\d+) +(?:([-+]\S+ ± \S+) +)?\d+\.\d"
    rows = re.findall(row, text.replace("threshold 0.5", "plain"))
    f = {name: float(value) for _, name, value, _ in rows}
    assert len(f) == 6
    for package, name, value, difference in rows:
        if package == "scikit-learn":
            gain, error = map(float, difference.split(" ± "))
            assert gain + error < 0, name
            assert float(value) < f[AUTO]
    said = " ".join(text.split())
    held, of = map(int, re.search(r"is in (\d+) of (\d+) predicted 95 % intervals", said).groups())
    assert held >= 0.85 * of
    guaranteed, have = map(int, re.search(r"at 95 % for (\d+).*; (\d+) have it", said).groups())
    assert have >= 0.9 * guaranteed > 0
    chosen = re.search(r"F1 0\.\d+, by (.+?) \(", said)[1]
    assert f"Use {chosen}: " in path.read_text()  # the report's headline
    assert text.rstrip().endswith(str(path))
    assert path.stat().st_size < 3_000_000
