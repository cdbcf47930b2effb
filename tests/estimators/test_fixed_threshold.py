"""Rows as they come: thresholds kept, each row decided alone, small batches warned about."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.naive_bayes import GaussianNB

from argmaxf import (
    AutoFClassifier,
    ExpectedFClassifier,
    ThresholdFClassifier,
    maximize_expected_f,
)
from argmaxf.estimators import SmallBatchWarning

one_at_a_time = pytest.mark.filterwarnings("ignore:a batch of fewer than")


@pytest.fixture
def rare():
    return make_classification(4000, weights=[0.95], class_sep=0.8, flip_y=0.02, random_state=1)


@one_at_a_time
@pytest.mark.parametrize("model", [LogisticRegression(), GaussianNB()])
def test_single_rows_score_within_a_point_of_the_batch(rare, model):
    X, y = rare
    fitted = ExpectedFClassifier(model).fit(X[:2000], y[:2000])
    batch = f1_score(y[2000:], fitted.predict(X[2000:]))
    frozen = fitted.freeze()
    single = frozen.predict(X[2000:])
    some = np.concatenate([frozen.predict(row[None]) for row in X[2000:2100]])
    assert np.array_equal(single[:100], some)
    assert f1_score(y[2000:], single) > batch - 0.01
    alone = np.concatenate([fitted.predict(row[None]) for row in X[2000:2100]])
    assert alone.mean() > 0.9  # what the method itself does with single rows: nearly all selected
    assert abs(frozen.expected_ - f1_score(y[2000:], single)) < 3 * frozen.std_


def test_the_threshold_is_that_of_the_reference(rare):
    X, y = rare
    fitted = ExpectedFClassifier(LogisticRegression(), measure="f2").fit(X[:2000], y[:2000])
    frozen = fitted.freeze(X[2000:])
    decision = fitted.decide(X[2000:])
    assert np.array_equal(frozen.predict(X[2000:]) == 1, decision.selected)
    assert (frozen.expected_, frozen.std_) == (decision.expected, decision.std)
    theirs = FixedThresholdClassifier(
        FrozenEstimator(fitted), threshold=frozen.threshold_, response_method="predict_proba"
    ).fit(X, y)
    assert np.array_equal(theirs.predict(X), frozen.predict(X))
    assert np.array_equal(frozen.decision_function(X) >= 0, frozen.predict(X) == 1)
    assert np.array_equal(frozen.predict_proba(X), fitted.predict_proba(X))


def test_frozen_is_kept_by_clone_and_pickle(rare):
    X, y = rare
    frozen = ExpectedFClassifier(LogisticRegression()).fit(X, y).freeze()
    for copy in (clone(frozen), pickle.loads(pickle.dumps(frozen)), frozen.fit(X, 1 - y)):
        assert np.array_equal(copy.predict(X), frozen.predict(X))


@pytest.mark.parametrize("average", ["macro", "micro", "samples"])
def test_multilabel(average):
    X, Y = make_multilabel_classification(600, n_classes=4, n_labels=2, random_state=0)
    fitted = ExpectedFClassifier(LogisticRegression(), average=average).fit(X, Y)
    frozen = fitted.freeze(X)
    assert np.array_equal(frozen.predict(X), fitted.predict(X))
    assert np.array_equal(frozen.predict(X[:7]), fitted.predict(X)[:7])
    if average == "samples":
        assert frozen.threshold_ is None
    else:
        assert np.shape(frozen.threshold_) == ((4,) if average == "macro" else ())


def test_multiclass_and_strings():
    X, y = make_classification(900, n_informative=5, n_classes=3, random_state=0)
    names = np.array(["a", "b", "c"])[y]
    fitted = ExpectedFClassifier(LogisticRegression()).fit(X, names)
    frozen = fitted.freeze(X)
    assert np.mean(frozen.predict(X) == fitted.predict(X)) > 0.99
    assert np.array_equal(frozen.predict(X)[:5], frozen.predict(X[:5]))


@pytest.mark.filterwarnings("ignore:labels with")
def test_labels_never_or_always_seen_stay_so():
    X, Y = make_multilabel_classification(300, n_classes=3, random_state=0)
    Y[:, 0], Y[:, 1] = 0, 1
    predicted = ExpectedFClassifier(LogisticRegression()).fit(X, Y).freeze().predict(10 * X)
    assert not predicted[:, 0].any()
    assert predicted[:, 1].all()


def test_without_held_out_probabilities_a_reference_is_asked_for(rare):
    X, y = rare
    forest = RandomForestClassifier(10, random_state=0)
    fitted = ExpectedFClassifier(forest, calibration=None).fit(X, y)
    said = "freeze needs X_reference, rows like the future ones: "
    with pytest.raises(ValueError, match=f"{said}without calibration there are no held-out"):
        fitted.freeze()
    with pytest.raises(ValueError, match=f"{said}the rate to be estimated"):
        ExpectedFClassifier(LogisticRegression(), deploy_rate="estimate").fit(X, y).freeze()
    assert fitted.freeze(X).predict(X).any()
    model = LogisticRegression().fit(X[:2000], y[:2000])
    frozen = ExpectedFClassifier(FrozenEstimator(model)).fit(X[2000:], y[2000:]).freeze()
    want = maximize_expected_f(model.predict_proba(X[2000:])[:, 1])
    assert np.array_equal(frozen.predict(X[2000:]) == 1, want.selected)


def test_a_small_batch_is_said_once_with_the_remedy(rare):
    X, y = rare
    fitted = ExpectedFClassifier(LogisticRegression()).fit(X, y)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for row in X[:20]:
            fitted.predict(row[None])
    assert [w.category for w in said] == [SmallBatchWarning]
    assert "freeze()" in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict(X[:500])
        fitted.freeze().predict(X[:1])
        X, Y = make_multilabel_classification(300, n_classes=4, random_state=0)
        ExpectedFClassifier(LogisticRegression(), average="samples").fit(X, Y).predict(X[:1])


@pytest.mark.parametrize(("rate", "n", "small"), [(0.01, 100, True), (0.2, 40, False)])
def test_a_batch_is_small_at_the_rate_in_use(rare, rate, n, small):
    X, y = rare
    fitted = ExpectedFClassifier(LogisticRegression(), deploy_rate=rate).fit(X, y)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted.predict(X[:n])
    assert [w.category for w in said] == [SmallBatchWarning] * small


def test_a_small_reference_is_said(rare):
    X, y = rare
    fitted = ExpectedFClassifier(LogisticRegression()).fit(X, y)
    with pytest.warns(SmallBatchWarning, match="pass freeze\\(\\) more rows"):
        fitted.freeze(X[:1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.freeze(X[:500])


def test_a_frozen_threshold_is_shown(rare):
    X, y = rare
    tuned = ThresholdFClassifier(LogisticRegression()).fit(X, y)
    frozen = tuned.freeze()
    assert frozen.threshold_ == tuned.threshold_
    assert np.array_equal(frozen.predict(X), tuned.predict(X))
    assert np.isnan(frozen.expected_)  # not the F it was tuned to


@pytest.mark.parametrize(("flipped", "by_batch"), [(0.02, False), (0.1, True)])
def test_a_stream_is_frozen_with_what_it_knows(flipped, by_batch):
    """Trained for F has a threshold of its own; a blend also knows the F to expect."""
    X, y = make_classification(
        4000,
        weights=[0.95 - 0.05 * by_batch],
        class_sep=0.8,
        flip_y=flipped,
        random_state=1 - by_batch,
    )
    auto = AutoFClassifier(LogisticRegression(), set_size=1, cv=2).fit(X, y)
    frozen = auto.freeze()
    assert isinstance(frozen.threshold_, float)
    assert np.array_equal(frozen.predict(X), auto.predict(X))
    assert np.isfinite([frozen.expected_, frozen.std_]).all() == by_batch
    assert isinstance(auto.freeze(X[:2000]).threshold_, float)


@pytest.mark.filterwarnings("ignore:y has one class only")
def test_the_classifier_as_it_is_shows_its_own_threshold(rare):
    X, _ = rare
    assert AutoFClassifier(LogisticRegression()).fit(X, np.ones(len(X))).freeze().threshold_ == 0.5
