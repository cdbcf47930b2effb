"""Every result is shown in a few lines, the answer first, and as an escaped table in notebooks."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import argmaxf
from argmaxf import (
    Interval,
    LabelledSketch,
    SavedThreshold,
    SoftFClassifier,
    compare,
    empirical_f_curve,
    expected_f,
    f_interval,
    maximize_empirical_f,
    maximize_expected_f,
    maximize_expected_macro_f,
    maximize_worst_case_f,
    plan_labels,
    predict_f,
)
from argmaxf._base.shown import short
from argmaxf.displays import ExpectedFDisplay
from argmaxf.theory import deviation_bound

RNG = np.random.default_rng(0)
P = RNG.random(2000) ** 3
Y = RNG.random(2000) < P


def compared():
    X, y = make_classification(300, weights=[0.9], random_state=0)
    y = np.where(y, "<b>bad</b>", "good")
    auto = argmaxf.AutoFClassifier(LogisticRegression(), methods=["plain"], pos_label="<b>bad</b>")
    return compare(X, y, auto)


def monitored():
    monitor = argmaxf.Monitor(0.4, P)
    return monitor.update(P[:500], period="<script>")


RESULTS = {
    "a decision": (lambda: maximize_expected_f(P), "Decision(k="),
    "rows": (lambda: maximize_expected_f(P.reshape(20, 100), average="samples"), "Decision(k=["),
    "segments": (lambda: maximize_expected_f(P, by=np.arange(2000) % 3), "Decision(k=["),
    "a guaranteed decision": (
        lambda: maximize_expected_f(P, min_precision=0.8, confidence_level=0.9),
        "Decision(k=",
    ),
    "one class per row": (
        lambda: maximize_expected_macro_f(P.reshape(200, 10), labels_per_row=1),
        "MacroDecision(k=[",
    ),
    "a worst case": (lambda: maximize_worst_case_f(P * 0.9, P), "WorstCase(k="),
    "expected F": (lambda: expected_f(P, P > 0.5), "ExpectedF(mean="),
    "a threshold": (lambda: maximize_empirical_f(Y, P), "Threshold(threshold="),
    "a guaranteed threshold": (
        lambda: maximize_empirical_f(Y, P, min_precision=0.7, confidence_level=0.9),
        "Threshold(threshold=",
    ),
    "a guarantee": (
        lambda: maximize_empirical_f(Y, P, min_precision=0.7, confidence_level=0.9).guarantee,
        "Guarantee(constraints=",
    ),
    "a curve": (lambda: empirical_f_curve(Y, P), "Curve(threshold=["),
    "an interval": (lambda: f_interval(Y, P > 0.5), "Interval(low="),
    "a prediction": (lambda: predict_f(P, P > 0.5), "PredictedF(f="),
    "a plan": (lambda: plan_labels(P, P > 0.4, budget=50), "LabelPlan(indices=["),
    "a period": (monitored, "Period(name="),
    "a monitor": (lambda: argmaxf.Monitor(0.4, P), "Monitor(periods=0, with_alarms=0, threshold="),
    "a sketch": (lambda: argmaxf.ProbabilitySketch.from_array(P), "ProbabilitySketch(n=2000"),
    "labelled scores": (lambda: LabelledSketch.from_arrays(Y, P), "LabelledSketch(n=2000"),
    "a saved threshold": (lambda: SavedThreshold.of(0.3), "SavedThreshold(thresholds=[0.3]"),
    "a bound": (lambda: deviation_bound(10**5, 0.5), "Bound(value=0.061"),
    "a display": (
        lambda: ExpectedFDisplay.from_predictions(P, ax=False),
        "ExpectedFDisplay(beta=1, measure=F1, k=[",
    ),
    "a comparison": (compared, "Comparison(chosen=threshold 0.5, F1 of"),
    "a method's result": (lambda: compared().method, "Standing(method=threshold 0.5, score="),
    "the rows evaluated": (lambda: compared().evidence, "Evidence(truth=array of shape (300, 1)"),
    "a linear model": (
        lambda: SoftFClassifier().fit(P[:, None], Y).models_[0],
        "SoftF(coef=[",
    ),
}


@pytest.mark.parametrize(("make", "answer"), RESULTS.values(), ids=RESULTS)
def test_results_are_short(make, answer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = make()
    assert repr(result).startswith(answer)
    assert len(repr(result)) < 700
    assert "\n" not in repr(result)
    page = result._repr_html_()
    assert page.startswith("<table>")
    assert len(page) < 2500
    assert "<b>" not in page
    assert "<script>" not in page


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(1 / 3), "0.333333"),
        (np.arange(7.0), "[0, 1, ..., 5, 6]"),
        ((0.1, np.int64(2)), "(0.1, 2)"),
        ([Interval(0.1, 0.2, 0.3), None], "[0.2 [0.1, 0.3], None]"),
        (np.zeros((3, 2)), "array of shape (3, 2)"),
        ("x" * 300, "x" * 199 + "…"),
    ],
)
def test_values_are_short(value, text):
    assert short(value) == text
