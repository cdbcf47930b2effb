"""ML^E as a scikit-learn classifier."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.stats import binom
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from argmaxf import AutoFClassifier, ExpectedFClassifier, expected_f, maximize_expected_f
from argmaxf.measures import FBeta

MODEL = LogisticRegression(solver="newton-cholesky", tol=1e-10)


@pytest.fixture
def rare():
    return make_classification(1000, weights=[0.9], class_sep=0.6, flip_y=0.05, random_state=0)


@pytest.fixture
def table():
    return make_multilabel_classification(300, n_classes=4, n_labels=2, random_state=0)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.5])
def test_predicts_the_best_set_for_the_batch(rare, beta):
    X, y = rare
    fitted = ExpectedFClassifier(LogisticRegression(), measure=FBeta(beta), calibration=None)
    fitted.fit(X[:500], y[:500])
    proba = LogisticRegression().fit(X[:500], y[:500]).predict_proba(X[500:])[:, 1]
    want = maximize_expected_f(proba, beta=beta)
    assert np.array_equal(fitted.predict(X[500:]) == 1, want.selected)
    decision = fitted.decide(X[500:])
    assert (decision.k, decision.expected, decision.std) == (want.k, want.expected, want.std)
    assert np.array_equal(fitted.predict_proba(X[500:])[:, 1], proba)


def test_the_batch_matters(rare):
    """Rows too poor to be chosen beside better ones are chosen on their own."""
    X, y = rare
    fitted = ExpectedFClassifier(LogisticRegression()).fit(X, y)
    left_out = X[fitted.predict(X) == 0]
    assert fitted.predict(left_out).any()


def test_strings_and_the_positive_class(rare):
    X, y = rare
    names = np.where(y == 1, "fraud", "ok")
    named = ExpectedFClassifier(LogisticRegression(), pos_label="fraud").fit(X, names)
    plain = ExpectedFClassifier(LogisticRegression()).fit(X, y)
    assert np.array_equal(named.predict(X) == "fraud", plain.predict(X) == 1)
    assert np.array_equal(named.decision_function(X) < 0, plain.predict(X) == 1)
    assert named.classes_.tolist() == ["fraud", "ok"]
    assert np.allclose(named.predict_proba(X)[:, 0], plain.predict_proba(X)[:, 1])


@pytest.mark.parametrize("average", ["macro", "micro", "samples"])
@pytest.mark.parametrize(
    "model", [LogisticRegression(), RandomForestClassifier(20, random_state=0)]
)
def test_multilabel_averages(table, average, model):
    X, Y = table
    fitted = ExpectedFClassifier(model, average=average).fit(X, Y)
    want = maximize_expected_f(fitted.predict_proba(X), average=average)
    assert np.array_equal(fitted.predict(X), want.selected)
    assert np.array_equal(fitted.decision_function(X) > 0, want.selected)


@pytest.mark.filterwarnings("ignore:labels with")
def test_constant_labels(table):
    X, Y = table
    Y = np.column_stack([Y[:, 0], 0 * Y[:, 0], 0 * Y[:, 0] + 1])
    predicted = ExpectedFClassifier(LogisticRegression()).fit(X, Y).predict(X)
    assert not predicted[:, 1].any()
    assert predicted[:, 2].all()


def test_multiclass_gives_one_class_per_row_and_gains_macro_f():
    gains = []
    for seed in range(5):
        X, y = make_classification(
            4000, n_informative=8, n_classes=5, n_clusters_per_class=1, class_sep=0.7,
            weights=[0.6, 0.2, 0.1, 0.06], random_state=seed,
        )  # fmt: skip
        ours = ExpectedFClassifier(MODEL).fit(X[:2000], y[:2000]).predict(X[2000:])
        plain = MODEL.fit(X[:2000], y[:2000]).predict(X[2000:])
        gains.append(np.subtract(*(f1_score(y[2000:], p, average="macro") for p in (ours, plain))))
    assert np.mean(gains) > 0.01


def test_the_promise_of_a_multiclass_decision_is_that_of_what_is_predicted():
    X, y = make_classification(
        1500, n_informative=8, n_classes=5, n_clusters_per_class=1, class_sep=0.7,
        weights=[0.6, 0.2, 0.1, 0.06], random_state=0,
    )  # fmt: skip
    model = ExpectedFClassifier(MODEL, calibration=None).fit(X[:1000], y[:1000])
    decision, predicted = model.decide(X[1000:]), model.predict(X[1000:])
    np.testing.assert_array_equal(decision.selected, predicted[:, None] == model.classes_)
    proba = model.predict_proba(X[1000:])
    columns = [expected_f(p, s).mean for p, s in zip(proba.T, decision.selected.T, strict=True)]
    assert decision.expected == pytest.approx(np.mean(columns), rel=1e-12)
    assert decision.gap <= 1e-4
    likeliest = proba.argmax(axis=1)[:, None] == np.arange(5)
    plain = [expected_f(p, s).mean for p, s in zip(proba.T, likeliest.T, strict=True)]
    assert decision.expected > np.mean(plain)


def test_average_is_for_several_labels():
    X, y = make_classification(300, n_classes=3, n_informative=4, random_state=0)
    with pytest.raises(ValueError, match=r"multiclass target must be 'macro'.*got 'micro'"):
        ExpectedFClassifier(LogisticRegression(), average="micro").fit(X, y)
    for average in ("micro", "samples"):  # one label: there is one F
        fitted = ExpectedFClassifier(LogisticRegression(), average=average).fit(X, y == 0)
        want = ExpectedFClassifier(LogisticRegression()).fit(X, y == 0)
        assert np.array_equal(fitted.predict(X), want.predict(X))
        assert fitted.freeze().threshold_ == want.freeze().threshold_


@pytest.mark.parametrize("model", [None, Ridge()])
def test_what_is_no_classifier_is_not_told_to_be_calibrated(rare, model):
    with pytest.raises(ValueError, match=r"must be a classifier, got None|Ridge has no") as error:
        ExpectedFClassifier(model, calibration=None).fit(*rare)
    assert "calibrate it" not in str(error.value)


@pytest.mark.parametrize("kind", [ExpectedFClassifier, AutoFClassifier])
def test_folds_are_dealt_where_none_are_named(rare, kind):
    """Rows in the order of their class would leave folds without one."""
    X, y = rare
    order = np.argsort(y, kind="stable")
    usual, none = (kind(LogisticRegression(), cv=cv).fit(X[order], y[order]) for cv in (5, None))
    assert np.array_equal(usual.predict(X), none.predict(X))


def test_without_probabilities_calibration_makes_them_or_the_error_says_so(rare):
    X, y = rare
    assert f1_score(y, ExpectedFClassifier(LinearSVC()).fit(X, y).predict(X)) > 0.3
    with pytest.raises(ValueError, match=r"LinearSVC has no predict_proba: calibrate it, as in "
                       r"CalibratedClassifierCV\(LinearSVC"):  # fmt: skip
        ExpectedFClassifier(LinearSVC(), calibration=None).fit(X, y)
    assert ExpectedFClassifier(CalibratedClassifierCV(LinearSVC())).fit(X, y).predict(X).any()
    assert hasattr(ExpectedFClassifier(LinearSVC()), "predict_proba")
    assert not hasattr(ExpectedFClassifier(LinearSVC(), calibration=None), "predict_proba")


def test_wrapped_decisions_are_kept(table):
    X, Y = table
    ours = ExpectedFClassifier(LogisticRegression(), cv=KFold(5))  # the same folds for each label
    want = ours.fit(X, Y).predict(X)
    assert np.array_equal(OneVsRestClassifier(ours).fit(X, Y).predict(X), want)
    assert np.array_equal(MultiOutputClassifier(ours).fit(X, Y).predict(X), want)
    plain = OneVsRestClassifier(LogisticRegression()).fit(X, Y).predict(X)
    assert not np.array_equal(plain, want)


def test_wrapped_decisions_are_kept_among_equal_probabilities():
    X = np.repeat([[0.0], [1.0], [2.0]], 20, axis=0)
    Y = np.column_stack([np.arange(60) % 3 == 0, np.arange(60) % 7 < 3, np.arange(60) > 30]) * 1
    ours = ExpectedFClassifier(LogisticRegression(), calibration=None)
    want = ours.fit(X, Y).predict(X)
    assert np.array_equal(OneVsRestClassifier(ours).fit(X, Y).predict(X), want)


def test_frozen_frames_sparse_pipelines_search_and_pickle(rare):
    X, y = rare
    model = LogisticRegression().fit(X[:500], y[:500])
    frozen = ExpectedFClassifier(FrozenEstimator(model)).fit(X[500:], y[500:])
    want = maximize_expected_f(model.predict_proba(X)[:, 1]).selected
    assert np.array_equal(frozen.predict(X) == 1, want)
    frame = pd.DataFrame(X).rename(columns="x{}".format)
    framed = ExpectedFClassifier(LogisticRegression()).fit(frame, y)
    assert framed.feature_names_in_[0] == "x0"
    thin = ExpectedFClassifier(LogisticRegression()).fit(sparse.csr_array(X), y)
    assert np.array_equal(thin.predict(sparse.csr_array(X)), framed.predict(frame))
    pipe = make_pipeline(StandardScaler(), ExpectedFClassifier(LogisticRegression()))
    grid = {"expectedfclassifier__estimator__C": [0.01, 1.0]}
    search = GridSearchCV(pipe, grid, scoring="f1", cv=3).fit(X, y)
    restored = pickle.loads(pickle.dumps(search))
    assert np.array_equal(restored.predict(X), search.predict(X))
    held_out = cross_val_predict(ExpectedFClassifier(LogisticRegression()), X, y, cv=3)
    assert f1_score(y, held_out) > 0.3


def test_weights_reach_the_model(rare):
    X, y = rare
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    fitted = ExpectedFClassifier(MODEL, calibration=None).fit(X, y, sample_weight=weight)
    twice = ExpectedFClassifier(MODEL, calibration=None)
    twice.fit(X.repeat(weight, 0), y.repeat(weight))
    assert np.allclose(fitted.predict_proba(X), twice.predict_proba(X))
    with sklearn.config_context(enable_metadata_routing=True):
        chance = ExpectedFClassifier(MODEL.set_fit_request(sample_weight=True), calibration=None)
        routed = chance.fit(X, y, sample_weight=weight)
    assert np.array_equal(routed.predict_proba(X), fitted.predict_proba(X))


def test_bad_options_are_named(rare):
    with pytest.raises(ValueError, match="average must be one of 'macro', 'micro', 'samples'"):
        ExpectedFClassifier(LogisticRegression(), average="weighted").fit(*rare)
    with pytest.raises(ValueError, match="beta must be positive and finite, got 0"):
        ExpectedFClassifier(LogisticRegression(), measure="f0").fit(*rare)


@pytest.mark.filterwarnings("ignore:y has one class only")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("only", [0, 1])
def test_of_one_class_the_decision_is_that_of_predict(only, weighted):
    X, y = make_classification(100, random_state=0)
    weight = (y == only).astype(float) if weighted else None
    y = y if weighted else np.full(100, only)
    fitted = ExpectedFClassifier(LogisticRegression()).fit(X, y, sample_weight=weight)
    assert fitted.classes_.tolist() == [only]
    assert np.array_equal(fitted.predict(X), np.full(100, only))
    decision = fitted.decide(X)
    assert np.array_equal(decision.selected, np.full(100, only == 1))
    assert decision.expected == pytest.approx(only)
    assert np.array_equal(fitted.predict_proba(X), np.ones((100, 1)))


def test_the_interval_of_a_decision_holds_the_f_of_new_rows():
    held = []
    for seed in range(30):
        X, y = make_classification(
            1600, weights=[0.93], flip_y=0.05, n_informative=4, random_state=seed
        )
        model = ExpectedFClassifier(GaussianNB()).fit(X[:600], y[:600])
        decision, frozen = model.decide(X[600:]), model.freeze()
        found = f1_score(y[600:], decision.selected)
        held.append(decision.interval.low <= found <= decision.interval.high)
        held.append(frozen.interval_.low <= f1_score(y[600:], frozen.predict(X[600:])))
        assert decision.interval.high - decision.interval.low > 3.9 * decision.std
    assert np.mean(held) >= binom(30, 0.95).ppf(1e-3) / 30


@pytest.mark.parametrize("target", ["macro", "multiclass"])
def test_the_interval_of_several_labels_holds_the_f_of_new_rows(target):
    held, widths = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1800, 5))
        score = X[:, :3] + rng.normal(size=(1800, 3)) - np.array([0.6, 1.0, 1.4])
        y = score.argmax(axis=1) if target == "multiclass" else score > 0.0
        model = ExpectedFClassifier(LogisticRegression()).fit(X[:800], y[:800])
        frozen = model.freeze()
        for interval, predicted in (
            (model.decide(X[800:]).interval, model.predict(X[800:])),
            (frozen.interval_, frozen.predict(X[800:])),
        ):
            found = f1_score(y[800:], predicted, average="macro")
            held.append(interval.low <= found <= interval.high)
            widths.append(interval.high - interval.low)
    assert np.mean(held) >= binom(12, 0.95).ppf(1e-3) / 12
    assert 0.02 < np.mean(widths) < 0.2


@pytest.mark.parametrize("average", ["samples", "micro"])
def test_the_interval_of_other_averages_is_not_known(average):
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = ExpectedFClassifier(LogisticRegression(), average=average).fit(X, X > 0.5)
    assert model.decide(X).interval is None


@pytest.mark.parametrize("options", [{"deploy_rate": 0.3}, {"calibration": None}])
def test_no_interval_where_held_out_rows_do_not_show_f(options):
    X, y = make_classification(600, weights=[0.9], random_state=0)
    model = ExpectedFClassifier(LogisticRegression(), **options).fit(X, y)
    assert model.decide(X).interval is None
