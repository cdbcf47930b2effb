"""The general F maximizer as a scikit-learn classifier."""

import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib import parallel_config
from scipy import sparse
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from argmaxf import (
    ExpectedFClassifier,
    JointFClassifier,
    maximize_expected_f_from_joint,
    maximize_expected_f_from_samples,
)
from argmaxf.measures import FBeta
from reproduction.datasets import load_mulan

FOLDER = Path(os.environ.get("ARGMAXF_DATA", "data"))
MODEL = LogisticRegression(solver="newton-cholesky", tol=1e-10)


@pytest.fixture(scope="module")
def table():
    return make_multilabel_classification(300, n_classes=4, n_labels=2, random_state=0)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("zero_division", [0.0, 1.0])
def test_each_row_is_decided_by_its_parameters(table, beta, zero_division):
    """The parameters come from one multinomial model for each label, trained here by hand."""
    X, Y = table
    fitted = JointFClassifier(MODEL, measure=FBeta(beta), zero_division=zero_division).fit(X, Y)
    total, most = Y.sum(axis=1), Y.sum(axis=1).max()
    P = np.zeros((len(X), 4, most))
    for i in range(4):
        model = sklearn.clone(MODEL).fit(X, Y[:, i] * total)
        for column, s in enumerate(model.classes_):
            if s > 0:
                P[:, i, s - 1] = model.predict_proba(X)[:, column]
    p0 = sklearn.clone(MODEL).fit(X, total == 0).predict_proba(X)[:, 1]
    share = (1 + beta**2) / (np.arange(1, 5) + beta**2 * np.arange(1, most + 1)[:, None])
    delta = -np.sort(-P @ share, axis=1)
    f = np.column_stack(
        [zero_division * p0] + [delta[:, :k, k - 1].sum(axis=1) for k in (1, 2, 3, 4)]
    )
    decision = fitted.decide(X)
    np.testing.assert_allclose(decision.expected, f.max(axis=1), rtol=1e-9)
    np.testing.assert_array_equal(decision.k, f.argmax(axis=1))
    np.testing.assert_array_equal(fitted.predict(X), decision.selected)
    np.testing.assert_array_equal(fitted.decision_function(X) > 0, decision.selected)
    np.testing.assert_allclose(fitted.predict_proba(X), P.sum(axis=2), rtol=1e-9)
    assert (decision.gain > -1e-12).all()


def test_a_row_does_not_depend_on_its_batch(table):
    X, Y = table
    fitted = JointFClassifier(MODEL).fit(X, Y)
    np.testing.assert_array_equal(fitted.predict(X)[::7], fitted.predict(X[::7]))


def exclusive(seed, rows):
    """One label alone, or five others together: the paper's case against independence."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 1))
    alone = rng.random(rows) < 1 / (1 + np.exp(-(0.5 + 0.5 * x[:, 0])))
    return x, np.column_stack([alone] + 5 * [~alone]).astype(int)


def test_dependence_is_worth_something_where_there_is_some():
    X, Y = exclusive(0, 20_000)
    X_test, Y_test = exclusive(1, 20_000)

    def score(model):
        predicted = model.fit(X, Y).predict(X_test)
        return f1_score(Y_test, predicted, average="samples", zero_division=0.0)

    joint = JointFClassifier(LogisticRegression())
    assert score(joint) > score(ExpectedFClassifier(LogisticRegression(), average="samples")) + 0.03
    decision = joint.decide(X_test)
    hits, k = (Y_test * decision.selected).sum(axis=1), decision.selected.sum(axis=1)
    measured = FBeta().value(hits, k, Y_test.sum(axis=1)).mean()
    assert decision.expected.mean() == pytest.approx(measured, abs=0.02)
    assert decision.gain.mean() > 0.03


def test_a_tree_with_pure_leaves_counts_the_draws_in_a_leaf():
    """A tree's leaf holds joint draws: all three ways must agree there."""
    Y = np.array([[1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 1, 1, 1, 1], [0, 0, 0, 0, 0]])
    fitted = JointFClassifier(DecisionTreeClassifier()).fit(np.zeros((4, 1)), Y)
    decision = fitted.decide(np.zeros((1, 1)))
    by_draws = maximize_expected_f_from_samples(Y)
    np.testing.assert_array_equal(decision.selected[0], by_draws.selected)
    assert decision.expected[0] == pytest.approx(by_draws.expected)
    P, p0 = fitted._parameters(np.zeros((1, 1)))
    by_parameters = maximize_expected_f_from_joint(P[0], p0[0])
    assert by_parameters.independent_expected == pytest.approx(by_draws.independent_expected)


@pytest.mark.filterwarnings("ignore:labels with")
def test_constant_labels(table):
    X, Y = table
    Y = np.column_stack([Y, 0 * Y[:, 0], 0 * Y[:, 0] + 1])
    fitted = JointFClassifier(MODEL).fit(X, Y)
    predicted = fitted.predict(X)
    assert not predicted[:, 4].any()
    assert predicted[:, 5].all()
    nothing = JointFClassifier(MODEL).fit(X, 0 * Y)
    assert not nothing.predict(X).any()


def test_counts_never_seen_with_a_label_have_no_probability():
    X = np.arange(12.0)[:, None]
    Y = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [1, 1, 1]] * 3)
    fitted = JointFClassifier(GaussianNB()).fit(X, Y)
    P, p0 = fitted._parameters(X)
    assert P.shape == (12, 3, 3)
    assert (P[:, 2, 0] == 0).all()
    assert (p0 == 0).all()


def test_one_class_per_row_is_the_most_probable_class():
    X, y = make_classification(300, n_informative=5, n_classes=3, random_state=0)
    plain = sklearn.clone(MODEL).fit(X, y)
    fitted = JointFClassifier(MODEL).fit(X, y)
    np.testing.assert_array_equal(fitted.predict(X), plain.predict(X))
    decision = fitted.decide(X)
    np.testing.assert_array_equal(decision.selected, plain.predict(X)[:, None] == [0, 1, 2])
    assert np.isnan(decision.expected).all()
    names = np.where(y == 0, "no", "yes")
    binary = JointFClassifier(MODEL, pos_label="no").fit(X, names)
    np.testing.assert_array_equal(binary.predict(X), sklearn.clone(MODEL).fit(X, names).predict(X))


def test_frames_sparse_pipelines_jobs_and_pickle(table):
    X, Y = table
    want = JointFClassifier(MODEL).fit(X, Y).predict(X)
    framed = JointFClassifier(MODEL).fit(pd.DataFrame(X).rename(columns="x{}".format), Y)
    assert framed.feature_names_in_[0] == "x0"
    thin = JointFClassifier(MultinomialNB()).fit(sparse.csr_array(X), sparse.csr_array(Y))
    dense = JointFClassifier(MultinomialNB()).fit(X, Y)
    predicted = thin.predict(sparse.csr_array(X))
    assert sparse.issparse(predicted)
    np.testing.assert_array_equal(predicted.toarray(), dense.predict(X))
    with parallel_config(backend="threading", n_jobs=2):
        parallel = JointFClassifier(MODEL).fit(X, Y)
    restored = pickle.loads(pickle.dumps(parallel))
    np.testing.assert_array_equal(restored.predict(X), want)
    pipe = make_pipeline(StandardScaler(), JointFClassifier(MODEL)).fit(X, Y)
    assert f1_score(Y, pipe.predict(X), average="samples", zero_division=0.0) > 0.6


def test_weights_reach_the_models(table):
    X, Y = table
    weight = np.random.default_rng(0).integers(1, 4, len(Y))
    fitted = JointFClassifier(MODEL).fit(X, Y, sample_weight=weight)
    twice = JointFClassifier(MODEL).fit(X.repeat(weight, 0), Y.repeat(weight, 0))
    np.testing.assert_allclose(fitted.predict_proba(X), twice.predict_proba(X), rtol=1e-6)


def test_bad_options_are_named(table):
    with pytest.raises(ValueError, match="beta must be positive and finite, got 0"):
        JointFClassifier(MODEL, measure="f0").fit(*table)
    with pytest.raises(ValueError, match=r"zero_division must lie in \[0, 1\], got 3"):
        JointFClassifier(MODEL, zero_division=3).fit(*table)
    with pytest.raises(ValueError, match="LinearSVC has no predict_proba: calibrate it"):
        JointFClassifier(LinearSVC()).fit(*table)
    with pytest.raises(ValueError, match="trains a model for each label: it cannot be frozen"):
        JointFClassifier(FrozenEstimator(MODEL.fit(*make_classification()))).fit(*table)


@pytest.mark.slow
@pytest.mark.skipif(not (FOLDER / "scene").is_dir(), reason="ARGMAXF_DATA has no data sets")
@pytest.mark.parametrize("name", ["yeast", "scene"])
def test_both_decisions_beat_one_half_on_real_rows(name):
    data = load_mulan(name)
    scaler = StandardScaler().fit(data.X_train)
    X, X_test = scaler.transform(data.X_train), scaler.transform(data.X_test)

    def score(predicted):
        return f1_score(data.Y_test, predicted, average="samples", zero_division=0.0)

    base = LogisticRegression(C=0.01, tol=1e-3, max_iter=500)
    independent = ExpectedFClassifier(base, average="samples").fit(X, data.Y_train)
    dependent = JointFClassifier(base).fit(X, data.Y_train)
    at_half = score(independent.predict_proba(X_test) > 0.5)
    assert score(independent.predict(X_test)) > at_half + 0.02
    assert score(dependent.predict(X_test)) > at_half + 0.02
