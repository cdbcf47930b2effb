"""SoftFClassifier and MarginFClassifier as scikit-learn classifiers."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib import parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import fbeta_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf import MarginFClassifier, SoftFClassifier
from argmaxf.empirical.soft_f import fit_soft_f
from argmaxf.measures import FBeta
from tests.judges import best_cut

BOTH = pytest.mark.parametrize("model", [SoftFClassifier(), MarginFClassifier()])


@pytest.fixture
def rare():
    return make_classification(600, weights=[0.9], class_sep=0.8, flip_y=0.05, random_state=0)


@pytest.fixture
def table():
    return make_multilabel_classification(300, n_classes=4, n_labels=2, random_state=0)


@BOTH
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_no_other_threshold_gives_more_on_the_training_data(rare, model, beta):
    X, y = rare
    fitted = clone(model).set_params(measure=FBeta(beta)).fit(X, y)
    score = X @ fitted.coef_[0] + fitted.intercept_[0]
    found = fbeta_score(y, fitted.predict(X), beta=beta)
    assert found == pytest.approx(best_cut(y, score, beta), abs=1e-12)


@BOTH
def test_training_for_f_beats_training_for_likelihood_at_one_half(rare, model):
    X, y = rare
    plain = fbeta_score(y, LogisticRegression().fit(X, y).predict(X), beta=1)
    assert fbeta_score(y, clone(model).fit(X, y).predict(X), beta=1) > plain


@BOTH
def test_every_form_of_x_is_the_same(rare, model):
    X, y = rare
    X = np.round(X, 1)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    model = clone(model).set_params(tol=1e-6)  # the optimum, not the way there
    dense = clone(model).fit(X, y)
    framed = clone(model).fit(frame, y)
    assert list(framed.feature_names_in_) == list(frame.columns)
    assert np.array_equal(framed.predict(frame), dense.predict(X))
    for form in (sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        thin = clone(model).fit(form(X), y)
        np.testing.assert_allclose(thin.coef_, dense.coef_, atol=5e-3)
        assert np.mean(thin.predict(form(X)) == dense.predict(X)) > 0.99


@BOTH
def test_labels_may_be_strings_and_either_may_be_positive(rare, model):
    X, y = rare
    names = np.where(y == 1, "fraud", "ok")
    fitted = clone(model).set_params(pos_label="fraud").fit(X, names)
    assert np.array_equal(fitted.predict(X) == "fraud", clone(model).fit(X, y).predict(X) == 1)


@BOTH
def test_indicator_is_label_by_label_whatever_the_number_of_jobs(table, model):
    X, Y = table
    with parallel_config(n_jobs=2):
        together = clone(model).fit(X, Y)
    apart = [clone(model).fit(X, column).predict(X) for column in Y.T]
    assert np.array_equal(together.predict(X), np.column_stack(apart))
    assert together.threshold_.shape == (4,)
    assert len(together.models_) == 4


@BOTH
def test_multiclass_is_one_against_the_rest(model):
    X, y = make_classification(
        300, n_classes=3, n_informative=4, class_sep=2, weights=[0.6, 0.3], random_state=0
    )
    fitted = clone(model).fit(X, y)
    assert fitted.coef_.shape == (3, 20)
    rest = clone(model).fit(X, y == 2)
    np.testing.assert_allclose(fitted.decision_function(X)[:, 2], rest.decision_function(X))
    assert np.mean(fitted.predict(X) == y) > 0.8


@BOTH
def test_composes_with_scikit_learn(rare, model):
    X, y = rare
    pipe = make_pipeline(StandardScaler(), clone(model))
    grid = GridSearchCV(pipe, {f"{type(model).__name__.lower()}__measure": ["f0.5", "f2"]}, cv=3)
    assert grid.fit(X, y).predict(X).shape == (600,)
    assert set(cross_val_predict(pipe, X, y, cv=3)) == {0, 1}
    again = pickle.loads(pickle.dumps(pipe.fit(X, y)))
    assert np.array_equal(again.predict(X), pipe.predict(X))
    wrapped = OneVsRestClassifier(clone(model)).fit(X, y)
    assert np.array_equal(wrapped.predict(X), clone(model).fit(X, y).predict(X))


@BOTH
def test_weights_are_routed(rare, model):
    X, y = rare
    weight = np.random.default_rng(0).integers(0, 3, 600)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = clone(model).set_fit_request(sample_weight=True)
        asking.set_score_request(sample_weight=True)
        cross_validate(asking, X, y, cv=2, params={"sample_weight": weight}, error_score="raise")
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        routed = make_pipeline(scaler, asking).fit(X, y, sample_weight=weight)
    X = StandardScaler().fit_transform(X)
    direct = clone(model).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(routed[-1].coef_, direct.coef_, rtol=1e-6)


def test_learned_threshold_is_used_and_not_tuned(rare):
    X, y = rare
    fitted = SoftFClassifier(sharpness=5.0, standardize=False).fit(X, y)
    model = fit_soft_f(X, y, sharpness=5.0)
    assert fitted.threshold_ == model.threshold != 0.0
    assert np.array_equal(fitted.predict(X), X @ model.coef + model.intercept >= model.threshold)


@BOTH
def test_constant_labels_are_said_and_kept(table, model):
    X, Y = table
    Y = Y.copy()
    Y[:, 1], Y[:, 2] = 0, 1
    with (
        pytest.warns(UserWarning, match="no positives in training: never predicted: 1"),
        pytest.warns(UserWarning, match="nothing but positives in training: always predicted: 2"),
    ):
        fitted = clone(model).fit(X, Y)
    assert fitted.predict(10 * X)[:, 1:3].tolist() == [[0, 1]] * 300


@BOTH
def test_stopping_early_is_said(rare, model):
    X, y = rare
    with pytest.warns(ConvergenceWarning, match="stopped before it converged, for 1: raise max_it"):
        clone(model).set_params(max_iter=1).fit(X, y)


def test_no_margin_to_be_had_is_said():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.random(300) < 0.1
    with pytest.warns(UserWarning, match="overlap too much for a margin, for True: all weights"):
        fitted = MarginFClassifier().fit(X, y)
    assert not fitted.coef_.any()
    # it is the optimum all the same: nothing near or far does better than budget times loss 1
    assert fitted.models_[0].objective == pytest.approx(300.0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_scale_of_the_features_does_not_matter(rare, form):
    """Columns in other units give the same decisions, and coefficients in those units."""
    X, y = rare
    units = 10.0 ** np.random.default_rng(0).integers(-4, 5, X.shape[1])
    plain = SoftFClassifier().fit(form(X), y)
    other = SoftFClassifier().fit(form(X * units), y)
    assert np.array_equal(plain.predict(form(X)), other.predict(form(X * units)))
    np.testing.assert_allclose(other.coef_ * units, plain.coef_, rtol=1e-3, atol=1e-6)
    score = X @ plain.coef_[0] + plain.intercept_[0] - plain.threshold_
    np.testing.assert_allclose(plain.decision_function(form(X)), score, atol=1e-9)


def test_sparse_rows_stay_sparse(rare, monkeypatch):
    X, y = rare
    seen = []
    monkeypatch.setattr(
        SoftFClassifier,
        "_fit_label",
        lambda self, X, y, w: seen.append(sparse.issparse(X)) or fit_soft_f(X, y),
    )
    SoftFClassifier().fit(sparse.csr_array(X), y)
    assert seen == [True]


def test_a_missing_solver_is_named(rare, monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    told = r"^MarginFClassifier needs clarabel: pip install 'argmaxf\[svmperf\]'$"
    with pytest.raises(ImportError, match=told):
        MarginFClassifier().fit(*rare)
