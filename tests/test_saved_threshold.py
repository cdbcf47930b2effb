"""Thresholds as data: written, read, applied, and refused where they are damaged."""

import json
import math
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import argmaxf
from argmaxf import (
    BlendFClassifier,
    ExpectedFClassifier,
    SavedThreshold,
    SoftFClassifier,
    ThresholdFClassifier,
    maximize_empirical_f,
    maximize_expected_f,
)
from argmaxf.measures import FBeta, Tversky
from argmaxf.saved_threshold import column_threshold

LINEAR = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))


@pytest.fixture(scope="module")
def data():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:400], y[:400], X[400:]


def as_text(saved):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "threshold.json"
        saved.save(path)
        return path.read_text()


def of_text(text):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "threshold.json"
        path.write_text(text)
        return SavedThreshold.load(path)


def through_json(saved):
    text = as_text(saved)
    again = of_text(text)
    assert as_text(again) == text
    return again


@pytest.mark.parametrize("calibration", ["isotonic", "sigmoid"])
def test_a_frozen_classifier_with_its_calibration(data, calibration):
    X, y, X_new = data
    fitted = ExpectedFClassifier(LINEAR, measure="f2", calibration=calibration).fit(X, y)
    frozen = fitted.freeze()
    saved = through_json(SavedThreshold.of(frozen))
    assert saved.measure == FBeta(2)
    assert saved.provenance["rows"] == 400
    assert saved.provenance["positives"] == [y.sum()]
    assert saved.provenance["argmaxf"] == argmaxf.__version__
    assert saved.expected == [frozen.expected_]
    assert saved.interval == [*(getattr(frozen.interval_, a) for a in ("low", "value", "high"))]
    scores = np.column_stack([m.decision_function(X_new) for m in fitted.estimators_])
    proba = saved.calibrate(scores)
    np.testing.assert_allclose(proba, frozen.predict_proba(X_new)[:, 1], rtol=1e-12)
    np.testing.assert_array_equal(saved.select(proba), frozen.predict(X_new))


def test_naive_bayes_is_calibrated_by_its_log_odds(data):
    X, y, X_new = data
    fitted = ExpectedFClassifier(make_pipeline(StandardScaler(), GaussianNB())).fit(X, y)
    saved = through_json(SavedThreshold.of(fitted.freeze()))
    assert {curve["scores"] for curve in saved.calibration[0][0]} == {"log_odds"}
    tables = [model.predict_log_proba(X_new) for model in fitted.estimators_]
    proba = saved.calibrate(np.column_stack([table[:, 1] - table[:, 0] for table in tables]))
    np.testing.assert_allclose(proba, fitted.predict_proba(X_new)[:, 1], rtol=1e-12)


def test_a_blend_has_curves_of_both_models(data):
    X, y, X_new = data
    frozen = BlendFClassifier(LINEAR).fit(X, y).freeze()
    saved = through_json(SavedThreshold.of(frozen))
    models = frozen.estimator.estimators_
    scores = np.column_stack([m.decision_function(X_new) for m in models])
    proba = frozen.predict_proba(X_new)[:, 1]
    np.testing.assert_allclose(saved.calibrate(scores), proba, rtol=1e-14)


@pytest.mark.filterwarnings("ignore:labels with")
def test_a_label_without_a_curve_has_the_probability_of_its_models(data):
    X, y, X_new = data
    frozen = ExpectedFClassifier(LINEAR).fit(X, np.column_stack([y, 0 * y])).freeze()
    saved = through_json(SavedThreshold.of(frozen))
    scores = np.full((len(X_new), len(saved.calibration[1][0])), -1e300)  # of a label never seen
    np.testing.assert_array_equal(saved.calibrate(scores, 1), frozen.predict_proba(X_new)[:, 1])


def test_several_labels():
    X, Y = make_multilabel_classification(300, n_classes=3, random_state=0)
    model = ThresholdFClassifier(RandomForestClassifier(10, random_state=0)).fit(X, Y)
    saved = through_json(SavedThreshold.of(model))
    assert saved.labels == ["0", "1", "2"]
    assert saved.value == model.f_.tolist()
    np.testing.assert_array_equal(saved.select(model.predict_proba(X)), model.predict(X))
    with pytest.raises(ValueError, match="one column for each of 3 labels"):
        saved.select(np.zeros(5))
    with pytest.raises(ValueError, match="name of one of the labels '0', '1', '2', got 'p'"):
        column_threshold(saved, "p")
    assert column_threshold(saved, "1") == model.threshold_[1]


@pytest.mark.filterwarnings("ignore::argmaxf.estimators.calibration.CalibrationWarning")
def test_an_interval_of_too_few_positives_says_so(data):
    X, y, _ = data
    few = np.arange(len(y)) < 6
    frozen = ExpectedFClassifier(LINEAR, average="macro").fit(X, np.column_stack([y, few])).freeze()
    assert not frozen.interval_.reliable
    saved = through_json(SavedThreshold.of(frozen))
    assert saved.provenance["interval"] == "may be too narrow"
    assert (
        "interval"
        not in SavedThreshold.of(ExpectedFClassifier(LINEAR).fit(X, y).freeze()).provenance
    )


def test_results_and_numbers():
    y, p = np.array([0, 0, 1, 1, 0]), np.array([0.1, 0.4, 0.35, 0.8, 0.2])
    best = maximize_empirical_f(y, p)
    saved = through_json(SavedThreshold.of(best, measure="f1", rows=5, positives=2))
    assert saved.thresholds == [best.threshold]
    assert saved.value == [best.value]
    assert saved.provenance["rows"] == 5
    decided = maximize_expected_f(p, measure=Tversky(0.3, 0.7))
    saved = through_json(SavedThreshold.of(decided, measure=Tversky(0.3, 0.7)))
    assert saved.measure == Tversky(0.3, 0.7)
    np.testing.assert_array_equal(saved.select(p), decided.selected)


def test_a_threshold_on_other_numbers_than_probabilities_is_one_on_scores():
    best = maximize_empirical_f([0, 0, 1, 1], [-3.0, 1.0, 2.5, 4.0])
    saved = through_json(SavedThreshold.of(best, measure="f1"))
    assert (saved.scale, saved.thresholds) == ("score", [best.threshold])
    with pytest.raises(ValueError, match="on scores"):
        column_threshold(saved, "score")
    with pytest.raises(ValueError, match=r"probabilities lie in \[0, 1\], got \[2.5\]"):
        SavedThreshold([2.5])


@pytest.mark.filterwarnings("ignore:labels with")
def test_labels_that_are_always_or_never_predicted():
    X, Y = make_multilabel_classification(200, n_classes=3, random_state=0)
    Y[:, 0], Y[:, 1] = 1, 0
    saved = through_json(SavedThreshold.of(ThresholdFClassifier(LINEAR).fit(X, Y)))
    assert saved.thresholds[:2] == [-math.inf, math.inf]
    assert json.loads(as_text(saved))["thresholds"][:2] == ["always", "never"]
    assert column_threshold(saved, "0") == 0.0
    with pytest.raises(ValueError, match="selects no row"):
        column_threshold(saved, "1")


def test_thresholds_on_scores_are_for_scores(data):
    X, y, X_new = data
    for model in (ThresholdFClassifier(LinearSVC()), SoftFClassifier()):
        saved = through_json(SavedThreshold.of(model.fit(X / 100.0, y)))
        assert saved.scale == "score"
        with pytest.raises(ValueError, match="save that of a classifier with predict_proba"):
            column_threshold(saved, None)
    scores = X_new / 100.0 @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_array_equal(saved.select(scores), model.predict(X_new / 100.0))


def test_a_function_of_ones_own_is_not_saved_as_a_measure(data):
    X, y, _ = data
    model = ThresholdFClassifier(LINEAR, measure=lambda tp, k, s, n: tp / (k + s)).fit(X, y)
    assert through_json(SavedThreshold.of(model)).measure is None


def with_curve(**curve):
    """A calibration of one label by one curve."""
    return {"calibration": [[[{"scores": "decision_function"} | curve]]]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "something"}, "format must be 'argmaxf threshold'"),
        ({"version": 2}, r"saved by a newer argmaxf \(version 2 of the format"),
        ({"version": "1"}, "damaged: version must be 1"),
        ({"thresholds": []}, "damaged: thresholds must be numbers"),
        ({"thresholds": [math.nan]}, "damaged: thresholds must be numbers"),
        ({"thresholds": [1.5]}, r"damaged: probabilities lie in \[0, 1\]"),
        ({"thresholds": ["0.5"]}, "damaged"),
        ({"thresholds": None}, "damaged"),
        ({"labels": ["a", "b"]}, "damaged: labels must be a name for each of 1"),
        ({"scale": "log"}, "damaged: scale must be"),
        ({"measure": {"name": "f7"}}, "damaged"),
        ({"measure": {"name": "fbeta", "beta": -1}}, "damaged: beta must be positive"),
        ({"surprise": 1}, "damaged.*surprise"),
        ({"provenance": []}, "damaged: provenance"),
        ({"interval": [0.1]}, "damaged: interval must have three numbers"),
        ({"value": ["high"]}, "damaged: value, expected and interval must be numbers"),
        (with_curve(isotonic={"x": [1, 0], "y": [0, 1]}), "damaged: a curve must have rising x"),
        (with_curve(isotonic={"x": [0, 1], "y": [0]}), "damaged: a curve must have rising x"),
        (with_curve(sigmoid={"slope": 1}), "damaged: 'intercept'"),
        (with_curve(sigmoid={"slope": 1, "intercept": math.nan}), "a curve must have finite"),
        (with_curve(pickle="gA=="), "damaged"),
        (with_curve(scores="predict", none=None), "damaged: a curve must name the method"),
        ({"calibration": [[[{"none": None}]]]}, "damaged: a curve must name the method"),
        ({"calibration": []}, "damaged: calibration must hold curves for each of 1 labels"),
        ({"calibration": [[[]]]}, "damaged: calibration must hold curves for each of 1 labels"),
        ({"thresholds": [10**400]}, "damaged: int too large"),
        ({"expected": [math.nan]}, "damaged: value, expected and interval must be numbers"),
        ({"interval": [0.1, 0.2, math.inf]}, "damaged: value, expected and interval must be"),
    ],
)
def test_what_is_damaged_or_newer_is_refused(change, message, tmp_path):
    text = as_text(SavedThreshold.of(0.5, measure="f1"))
    path = tmp_path / "threshold.json"
    path.write_text(json.dumps(json.loads(text) | change))
    with pytest.raises(ValueError, match=f"threshold.json: .*{message}"):
        SavedThreshold.load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_without_a_writer_is_refused(tmp_path):
    os.mkfifo(tmp_path / "t.json")
    with pytest.raises(ValueError, match="json: must be a file, got a folder, a pipe"):
        SavedThreshold.load(tmp_path / "t.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", "\x00", "[" * 10**5])
def test_what_is_no_such_json_is_refused(text):
    with pytest.raises(ValueError, match="not a saved threshold"):
        of_text(text)


def test_a_file_cut_short_anywhere_is_refused(data):
    X, y, _ = data
    text = as_text(SavedThreshold.of(ExpectedFClassifier(LINEAR).fit(X, y).freeze())).rstrip()
    for end in range(0, len(text), 97):
        with pytest.raises(ValueError, match="not a saved threshold"):
            of_text(text[:end])


def test_a_multiclass_target_is_refused():
    X, y = np.random.default_rng(0).normal(size=(90, 3)), np.arange(90) % 3
    with pytest.raises(ValueError, match="classes compete for a row"):
        SavedThreshold.of(ThresholdFClassifier(LINEAR).fit(X, y))


def test_the_command_applies_a_file(tmp_path, capsys):
    pytest.importorskip("typer")
    from argmaxf.cli.app import run

    scores, path = tmp_path / "scores.csv", tmp_path / "threshold.json"
    scores.write_text("p\n0.1\n0.6\n0.4\n0.9\n")
    SavedThreshold.of(0.4, measure="f2").save(path)
    arguments = ["decide", str(scores), "-p", "p", "--json"]
    assert run([*arguments, "--threshold-from", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert run([*arguments, "--threshold", "0.4", "--measure", "fbeta", "--beta", "2"]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert found | {"seconds": 0} == expected | {"seconds": 0}
    assert found["k"] == 3
    assert run([*arguments, "--threshold-from", str(path), "--threshold", "0.5"]) == 2
    assert "either --threshold or --threshold-from" in capsys.readouterr().err
    path.write_text(path.read_text()[:50])
    assert run([*arguments, "--threshold-from", str(path)]) == 2
    assert "threshold.json: not a saved threshold" in capsys.readouterr().err
    assert run([*arguments, "--threshold-from", str(tmp_path / "none.json")]) == 2
    assert "none.json: cannot be read" in capsys.readouterr().err
