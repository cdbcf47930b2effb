"""Constraints and guarantees of the classifiers."""

import re

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from argmaxf import (
    AutoFClassifier,
    ExpectedFClassifier,
    GuaranteeError,
    ThresholdFClassifier,
    compare,
    maximize_empirical_f,
    maximize_expected_f,
)

LIMITS = {"min_precision": 0.8, "confidence_level": 0.9}
COMPARED = {"constraints": {"min_precision": 0.8}, "confidence_level": 0.9}


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(3000, weights=[0.7], class_sep=1.5, flip_y=0.02, random_state=0)
    return X[:2000], y[:2000], X[2000:], y[2000:]


def test_a_frozen_model_gets_the_threshold_that_is_guaranteed(rows):
    X, y, X_new, y_new = rows
    model = LogisticRegression().fit(X[:1000], y[:1000])
    tuned = ThresholdFClassifier(FrozenEstimator(model), **COMPARED).fit(X[1000:], y[1000:])
    alone = maximize_empirical_f(y[1000:], model.decision_function(X[1000:]), **LIMITS)
    assert tuned.log_odds_threshold_ == alone.threshold
    assert tuned.guarantee_ == alone.guarantee
    predicted = tuned.predict(X_new)
    assert y_new[predicted == 1].mean() >= 0.8
    assert np.array_equal(predicted == 1, model.decision_function(X_new) >= alone.threshold)


def test_a_binary_target_has_no_label_to_name(rows):
    X, y, *_ = rows
    with pytest.raises(GuaranteeError, match=r"^min_precision=0\.99999 cannot be guaranteed"):
        ThresholdFClassifier(
            LogisticRegression(), constraints={"min_precision": 0.99999}, confidence_level=0.9
        ).fit(X, y)


def test_held_out_rows_are_unseen_by_the_model_that_predicts(rows):
    X, y, X_new, _ = rows
    tuned = ThresholdFClassifier(LogisticRegression(), cv=0.4, **COMPARED).fit(X, y)
    (model,) = tuned.estimators_
    rng = np.random.RandomState(0)
    held_out = rng.permutation(2000)[:800]
    trained = np.setdiff1d(np.arange(2000), held_out)
    assert np.allclose(model.coef_, LogisticRegression().fit(X[trained], y[trained]).coef_)
    score = model.decision_function(X[held_out])
    alone = maximize_empirical_f(y[held_out], score, **LIMITS)
    assert tuned.log_odds_threshold_ == alone.threshold
    assert np.array_equal(
        tuned.predict(X_new) == 1, model.decision_function(X_new) >= alone.threshold
    )


def test_folds_guarantee_too_and_plain_constraints_do_not(rows):
    X, y, *_ = rows
    guaranteed = ThresholdFClassifier(LogisticRegression(), **COMPARED).fit(X, y)
    plain = ThresholdFClassifier(LogisticRegression(), constraints={"min_precision": 0.8}).fit(X, y)
    free = ThresholdFClassifier(LogisticRegression()).fit(X, y)
    assert guaranteed.guarantee_.constraints.min_precision == 0.8
    assert guaranteed.threshold_ >= plain.threshold_
    assert guaranteed.f_ <= plain.f_ <= free.f_
    assert plain.guarantee_ is None
    assert free.guarantee_ is None


def test_labels_have_guarantees_of_their_own():
    X, Y = make_multilabel_classification(2000, n_classes=3, random_state=0)
    tuned = ThresholdFClassifier(
        LogisticRegression(), constraints={"min_recall": 0.8}, confidence_level=0.9
    ).fit(X, Y)
    assert len(tuned.guarantee_) == 3
    assert all(guarantee.recall_low >= 0.8 for guarantee in tuned.guarantee_)


def test_what_cannot_be_guaranteed_says_so(rows):
    X, y, *_ = rows
    few = ThresholdFClassifier(
        LogisticRegression(), constraints={"min_precision": 0.99}, confidence_level=0.99
    )
    with pytest.raises(GuaranteeError, match="labelled rows"):
        few.fit(X[:60], y[:60])
    with pytest.raises(ValueError, match=r"cv as a part of the rows .* got 1.5"):
        ThresholdFClassifier(LogisticRegression(), cv=1.5, **COMPARED).fit(X, y)
    classes = np.arange(len(y)) % 3
    for model in (
        ThresholdFClassifier(LogisticRegression(), **COMPARED),
        ExpectedFClassifier(LogisticRegression(), min_precision=0.8, confidence_level=0.9),
    ):
        with pytest.raises(ValueError, match=r"binary or multilabel target.*got 3 classes"):
            model.fit(X, classes)
    with pytest.raises(ValueError, match=r"min_recall=0.5 needs confidence_level"):
        ExpectedFClassifier(LogisticRegression(), min_recall=0.5).fit(X, y)


def test_expected_f_meets_its_constraint_in_the_batch(rows):
    X, y, X_new, _ = rows
    options = {"min_precision": 0.9, "confidence_level": 0.95}
    model = ExpectedFClassifier(LogisticRegression(), calibration=None, **options).fit(X, y)
    decision = model.decide(X_new)
    proba = model.predict_proba(X_new)[:, 1]
    alone = maximize_expected_f(proba, **options)
    assert decision.k == alone.k == model.predict(X_new).sum()
    assert decision.guarantee == alone.guarantee
    assert decision.guarantee.probability >= 0.95


def test_the_comparison_takes_only_methods_that_guarantee(rows):
    X, y, *_ = rows
    found = compare(X, y, LogisticRegression(), **COMPARED)
    assert {standing.name for standing in found.methods} == {"tuned threshold", "expected F"}
    (note,) = [note for note in found.notes if note.startswith("guaranteed:")]
    assert "min_precision=0.8" in note
    auto = AutoFClassifier(LogisticRegression(), **COMPARED).fit(X, y)
    assert any(note.startswith("guaranteed: min_precision=0.8") for note in auto.report_.notes)
    chosen = auto.classifier_
    assert chosen.constraints == {"min_precision": 0.8}
    with pytest.raises(ValueError, match=r"needs both a constraint and a confidence level"):
        compare(X, y, LogisticRegression(), constraints={"min_precision": 0.8})
    with pytest.raises(ValueError, match=r"needs both a constraint and a confidence level"):
        AutoFClassifier(LogisticRegression(), confidence_level=0.8).fit(X, y)
    with pytest.raises(ValueError, match=r"constraints must be one of .*; got 'recall'"):
        compare(X, y, LogisticRegression(), constraints={"recall": 0.8}, confidence_level=0.9)


@pytest.mark.parametrize(("methods", "set_size"), [(["plain", "soft"], None), (["expected"], 1)])
def test_methods_that_cannot_guarantee_are_named(rows, methods, set_size):
    X, y, *_ = rows
    told = f"no method can guarantee min_precision=0.8 here, got '{methods[0]}'"
    with pytest.raises(ValueError, match=told):
        AutoFClassifier(LogisticRegression(), methods=methods, set_size=set_size, **COMPARED).fit(
            X, y
        )


def test_a_rate_is_kept_by_every_method_that_takes_part(rows):
    X, y, X_new, _ = rows
    model = LogisticRegression()
    rate = {"constraints": {"max_selected_rate": 0.2}, "confidence_level": 0.9}
    found = compare(X, y, model, **rate)
    assert {standing.name for standing in found.methods} == {"tuned threshold", "expected F"}
    for standing in found.methods:
        assert standing.counts["tp"] + standing.counts["fp"] <= 0.2 * len(y)
    (note,) = [note for note in found.notes if note.startswith("guaranteed:")]
    assert note.startswith("guaranteed: max_selected_rate=0.2 in each batch; on the held-out rows")
    auto = AutoFClassifier(model, **rate).fit(X, y)
    assert auto.predict(X_new).mean() <= 0.2


def test_online_predictions_are_guaranteed_by_a_threshold(rows):
    """Expected F guarantees for a batch, and single rows are none."""
    X, y, *_ = rows
    auto = AutoFClassifier(LogisticRegression(), set_size=1, **COMPARED).fit(X, y)
    assert auto.chosen_ == "tuned threshold"
    assert any(note.startswith("expected F was left out") for note in auto.report_.notes)


@pytest.mark.parametrize(("rate", "most"), [(0.29, 29), (0.0, 0), (0.075, 7)])
def test_expected_f_selects_at_most_a_part_of_the_batch(rows, rate, most):
    X, y, X_new, _ = rows
    model = ExpectedFClassifier(LogisticRegression(), calibration=None, max_selected=rate)
    free = ExpectedFClassifier(LogisticRegression(), calibration=None).fit(X, y)
    batch = X_new[:100]
    assert free.decide(batch).k > most
    assert model.fit(X, y).decide(batch).k == most
    tighter = ExpectedFClassifier(LogisticRegression(), calibration=None, max_selected=5)
    assert tighter.fit(X, y).decide(batch).k == 5


def test_the_part_of_a_batch_is_of_what_is_decided():
    X, Y = make_multilabel_classification(400, n_classes=4, random_state=0)
    options = {"calibration": None, "max_selected": 0.25}
    for average, sums in [("macro", 0), ("samples", 1), ("micro", None)]:
        model = ExpectedFClassifier(LogisticRegression(), average=average, **options).fit(X, Y)
        assert (model.predict(X).mean(axis=sums) <= 0.25).all()
        assert model.predict(X).sum() > 0
    with pytest.raises(ValueError, match=r"a budget needs a binary or multilabel target"):
        ExpectedFClassifier(LogisticRegression(), **options).fit(X, np.arange(400) % 3)
    with pytest.raises(ValueError, match=r"max_selected must lie in \[0, 1\], got 2"):
        ExpectedFClassifier(LogisticRegression(), max_selected=2.0).fit(X, Y)


def test_the_report_shows_the_guarantee_and_its_cost(rows):
    from argmaxf.report.page import render

    X, y, *_ = rows
    found = compare(X, y, LogisticRegression(), **COMPARED)
    (note,) = [note for note in found.notes if note.startswith("guaranteed:")]
    assert re.search(r"costs (no|0\.\d+) (expected )?F", note)
    page = render(found, command=["argmaxf"])
    assert note.replace("'", "&#39;") in page
    assert "precision guaranteed at confidence level 0.9" in page
    assert "The guarantee is left aside here" in page
    plain = render(compare(X, y, LogisticRegression()), command=["argmaxf"])
    assert "guarantee" not in plain


@pytest.mark.parametrize(
    ("classifier", "chance"),
    [
        (ThresholdFClassifier, COMPARED),
        (AutoFClassifier, COMPARED),
        (ExpectedFClassifier, {"min_precision": 0.8, "confidence_level": 0.9}),
    ],
)
def test_rows_in_groups_have_no_guarantee(rows, classifier, chance):
    """With clusters of 20 rows a guarantee of 95 % held in 73.5 % of draws."""
    X, y, *_ = rows
    with pytest.raises(
        ValueError, match=r"needs independent rows, .* fit on one row of each group"
    ):
        classifier(LogisticRegression(), **chance).fit(X, y, groups=np.arange(len(y)) // 20)
    classifier(LogisticRegression()).fit(X[:300], y[:300], groups=np.arange(300) // 20)
