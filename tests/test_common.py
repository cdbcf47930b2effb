"""What every classifier here keeps to: one table of them, and the tests that run over all."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import argmaxf
from argmaxf import (
    AutoFClassifier,
    CostSensitiveFClassifier,
    ExpectedFClassifier,
    JointFClassifier,
    MarginFClassifier,
    SoftFClassifier,
    ThresholdFClassifier,
)

MODEL = LogisticRegression(solver="newton-cholesky", tol=1e-10)
TREE = DecisionTreeClassifier(random_state=0, max_depth=2)

# One row for each class. To add a classifier, add its row.
CLASSIFIERS = [
    AutoFClassifier(GaussianNB()),
    CostSensitiveFClassifier(MODEL, n_costs=3),
    ExpectedFClassifier(MODEL),
    JointFClassifier(MODEL),
    MarginFClassifier(),
    SoftFClassifier(),
    ThresholdFClassifier(MODEL),
]
VARIANTS = [
    CostSensitiveFClassifier(TREE, n_costs=3),
    ExpectedFClassifier(MODEL, calibrate=None),
    SoftFClassifier(sharpness=10.0),
    ThresholdFClassifier(RidgeClassifier(solver="svd")),
    ThresholdFClassifier(TREE),
]
JOINTLY = "a batch is decided jointly: its parts may be decided otherwise"
NOT_ASKED_FOR = [
    "ignore:y has one class only",
    "ignore:Only one sample",
    "ignore:a batch of fewer than",
    "ignore:this batch is unlike",
    "ignore:the classes overlap too much",
]


def expected_failures(estimator):
    """The checks of scikit-learn that a method breaks by what it is, and why."""
    if isinstance(estimator, AutoFClassifier):
        return {"check_methods_subset_invariance": JOINTLY}
    if not isinstance(estimator, ExpectedFClassifier):
        return {}
    if estimator.calibrate is None:
        return {
            "check_methods_subset_invariance": JOINTLY,
            "check_classifiers_train": "the best set is not the rows with p above one half",
        }
    return {
        "check_methods_subset_invariance": JOINTLY,
        "check_classifiers_multilabel_output_format_predict_proba": "isotonic curves reach 0 and 1",
    }


def test_every_public_classifier_is_in_the_table():
    public = {name for name in argmaxf.__all__ if name.endswith("Classifier")}
    assert {type(classifier).__name__ for classifier in CLASSIFIERS} == public


@pytest.mark.filterwarnings(*NOT_ASKED_FOR)
@parametrize_with_checks(CLASSIFIERS, expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings(*NOT_ASKED_FOR)
@parametrize_with_checks(VARIANTS, expected_failed_checks=expected_failures)
def test_scikit_learn_contract_of_variants(estimator, check):
    check(estimator)


every = pytest.mark.parametrize(
    "classifier", CLASSIFIERS, ids=[type(classifier).__name__ for classifier in CLASSIFIERS]
)


@pytest.fixture(scope="module")
def rare():
    return make_classification(400, weights=[0.85], class_sep=1.0, flip_y=0.05, random_state=0)


@pytest.fixture(scope="module")
def table():
    return make_multilabel_classification(200, n_classes=3, n_labels=2, random_state=0)


def fitted(classifier, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return clone(classifier).fit(*data, **options)


@every
def test_a_label_is_predicted_where_its_margin_is_not_negative(classifier, rare, table):
    X, y = rare
    model = fitted(classifier, X, y)
    np.testing.assert_array_equal(model.predict(X) == 1, model.decision_function(X) >= 0)
    X, Y = table
    model = fitted(classifier, X, Y)
    assert model.predict(X).shape == Y.shape
    np.testing.assert_array_equal(model.predict(X) == 1, model.decision_function(X) >= 0)


@every
def test_names_of_classes_change_nothing(classifier, rare):
    X, y = rare
    named = np.where(y == 1, "fraud", "ok")
    plain = fitted(classifier, X, y).predict(X)
    chosen = fitted(clone(classifier).set_params(pos_label="fraud"), X, named).predict(X)
    np.testing.assert_array_equal(chosen == "fraud", plain == 1)


@every
def test_a_pickled_classifier_decides_the_same(classifier, rare):
    X, y = rare
    model = fitted(classifier, X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@every
def test_sparse_rows_are_the_same_rows(classifier, rare):
    if isinstance(classifier, AutoFClassifier):
        classifier = AutoFClassifier(MODEL)  # naive Bayes takes dense rows only
    X, y = rare
    dense, thin = (fitted(classifier, rows, y) for rows in (X, sparse.csr_array(X)))
    assert np.mean(dense.predict(X) == thin.predict(sparse.csr_array(X))) > 0.99


@every
def test_columns_of_a_frame_are_remembered(classifier, rare):
    X, y = rare
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    model = fitted(classifier, frame, y)
    assert list(model.feature_names_in_) == list(frame)
    assert model.n_features_in_ == X.shape[1]


@every
@pytest.mark.parametrize("beta", [0, -1.0, np.nan, np.inf, "1"])
def test_a_beta_that_is_none_is_refused(classifier, rare, beta):
    with pytest.raises(ValueError, match="beta must be"):
        clone(classifier).set_params(beta=beta).fit(*rare)


@every
def test_more_weight_on_recall_selects_no_less(classifier, rare):
    X, y = rare
    few, many = (
        fitted(clone(classifier).set_params(beta=beta), X, y).predict(X).sum()
        for beta in (0.5, 3.0)
    )
    assert few <= many
