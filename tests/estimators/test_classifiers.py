"""What every classifier here must do, in one table: each test runs over all of them."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import argmaxf
from argmaxf import (
    AutoFClassifier,
    BlendFClassifier,
    CostSensitiveFClassifier,
    ExpectedFClassifier,
    JointFClassifier,
    MarginFClassifier,
    SoftFClassifier,
    ThresholdFClassifier,
)
from argmaxf.estimators.meta import PlainClassifier

MODEL = LogisticRegression(solver="newton-cholesky", tol=1e-10)
CLASSIFIERS = {  # two folds are quick; five, the default, have tests of their own
    "plain": PlainClassifier(MODEL),
    "threshold": ThresholdFClassifier(MODEL, cv=2),
    "expected": ExpectedFClassifier(MODEL, cv=2),
    "uncalibrated": ExpectedFClassifier(MODEL, calibration=None, cv=2),
    "soft": SoftFClassifier(),
    "margin": MarginFClassifier(),
    "cost": CostSensitiveFClassifier(MODEL, n_costs=2, cv=2),
    "joint": JointFClassifier(MODEL),
    "blend": BlendFClassifier(MODEL, cv=2),
    "auto": AutoFClassifier(MODEL, cv=2),
}
FIVE_FOLDS = {
    name: clone(each).set_params(cv=5)
    for name, each in CLASSIFIERS.items()
    if "cv" in each.get_params()
}
WRAPPERS = {name: each for name, each in CLASSIFIERS.items() if hasattr(each, "estimator")}
BATCH = ("expected", "uncalibrated", "blend", "auto")  # decide the rows of a batch together

SET_WISE = {"check_methods_subset_invariance": "a batch is decided jointly: its parts may differ"}
ONE_HALF = {"check_classifiers_train": "the best set is not the rows with p above one half"}
CURVES = {
    "check_classifiers_multilabel_output_format_predict_proba": "isotonic curves reach 0 and 1"
}
VARIANTS = {
    "threshold of scores": ThresholdFClassifier(RidgeClassifier(solver="svd")),
    "threshold of a tree": ThresholdFClassifier(DecisionTreeClassifier(random_state=0)),
    "sharp": SoftFClassifier(sharpness=10.0),
    "auto naive Bayes": AutoFClassifier(GaussianNB()),
}
FAILURES = {
    "threshold": ONE_HALF,
    "threshold of a tree": {next(iter(CURVES)): "a tree is sure of its leaves"},
    "expected": SET_WISE | CURVES | ONE_HALF,
    "uncalibrated": SET_WISE | ONE_HALF,
    "cost": ONE_HALF,
    "blend": SET_WISE | CURVES | ONE_HALF,
    "auto": ONE_HALF,
    "auto naive Bayes": SET_WISE | CURVES | ONE_HALF,
}
FAILURES_OF_FIVE_FOLDS = FAILURES | {
    "expected": SET_WISE | CURVES,
    "auto": SET_WISE | CURVES | ONE_HALF,
}
QUIET = pytest.mark.filterwarnings(
    "ignore:y has one class only",
    "ignore:labels with",
    "ignore:Only one sample",
    "ignore:the classes overlap too much",
    "ignore:a batch of fewer than",
    "ignore:this batch is unlike",
)


def expected_failures(estimator):
    if (name := name_in(FIVE_FOLDS, estimator)) is not None:
        return FAILURES_OF_FIVE_FOLDS.get(name, {})
    return FAILURES.get(name_in({**CLASSIFIERS, **VARIANTS}, estimator), {})


def name_in(table, estimator):
    return next((name for name, each in table.items() if each is estimator), None)


def test_every_public_classifier_is_in_the_table():
    public = {name for name in argmaxf.__all__ if name.endswith("Classifier")}
    assert public <= {type(classifier).__name__ for classifier in CLASSIFIERS.values()}


@QUIET
@parametrize_with_checks(list(CLASSIFIERS.values()), expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@QUIET
@parametrize_with_checks(
    [*FIVE_FOLDS.values(), *VARIANTS.values()], expected_failed_checks=expected_failures
)
def test_scikit_learn_contract_of_variants(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def rare():
    return make_classification(500, weights=[0.85], class_sep=0.8, flip_y=0.05, random_state=0)


@pytest.fixture(scope="module")
def table():
    return make_multilabel_classification(300, n_classes=3, n_labels=2, random_state=0)


@pytest.fixture(params=CLASSIFIERS)
def model(request):
    return clone(CLASSIFIERS[request.param])


def test_strings_may_be_labels_and_either_may_be_positive(model, rare):
    X, y = rare
    names = np.where(y == 1, "fraud", "ok")
    named = clone(model).set_params(pos_label="fraud").fit(X, names)
    plain = model.fit(X, y)
    assert named.classes_.tolist() == ["fraud", "ok"]
    assert np.array_equal(named.predict(X) == "fraud", plain.predict(X) == 1)
    assert np.array_equal(named.decision_function(X) < 0, plain.decision_function(X) > 0)


def test_unknown_positive_class_is_named(model, rare):
    with pytest.raises(ValueError, match=r"pos_label must be one of \[0, 1\], got 2"):
        model.set_params(pos_label=2).fit(*rare)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_multilabel_predictions_have_the_form_of_the_target(model, table, form):
    X, Y = table
    fitted = model.fit(X, form(Y))
    predicted = fitted.predict(X)
    assert sparse.issparse(predicted) == (form is not np.asarray)
    predicted = predicted.toarray() if sparse.issparse(predicted) else predicted
    assert predicted.shape == Y.shape
    assert f1_score(Y, predicted, average="macro") > 0.6
    assert np.array_equal(fitted.decision_function(X) >= 0, predicted > 0)


def test_every_row_of_a_multiclass_target_gets_one_class(model):
    X, y = make_classification(300, n_classes=3, n_informative=4, class_sep=2, random_state=0)
    fitted = model.fit(X, np.array(["a", "b", "c"])[y])
    predicted = fitted.predict(X)
    assert predicted.shape == (300,)
    assert np.mean(predicted == np.array(["a", "b", "c"])[y]) > 0.75
    best = fitted.classes_[fitted.decision_function(X).argmax(axis=1)]
    assert np.array_equal(best, predicted)


@QUIET
def test_constant_labels_are_never_or_always_predicted(model, table):
    X, Y = table
    constant = np.column_stack([Y[:, 0], 0 * Y[:, 0], 0 * Y[:, 0] + 1])
    predicted = model.fit(X, constant).predict(X)
    assert not predicted[:, 1].any()
    assert predicted[:, 2].all()


def test_constant_labels_are_said(model, table):
    X, Y = table
    constant = np.column_stack([Y[:, 0], 0 * Y[:, 0], 0 * Y[:, 0] + 1])
    with (
        pytest.warns(UserWarning, match="no positives in training: never predicted: 1"),
        pytest.warns(UserWarning, match="nothing but positives in training: always predicted: 2"),
    ):
        model.fit(X, constant)


@QUIET
def test_one_class_is_predicted(model, rare):
    X, _ = rare
    assert set(model.fit(X, ["ham"] * 500).predict(X)) == {"ham"}


def test_frames_and_sparse_rows_are_the_same_rows(model, rare):
    X, y = rare
    frame = pd.DataFrame(X).rename(columns="x{}".format)
    plain = clone(model).fit(X, y).predict(X)
    framed = clone(model).fit(frame, y)
    assert framed.feature_names_in_[0] == "x0"
    assert framed.n_features_in_ == 20
    assert np.array_equal(framed.predict(frame), plain)
    thin = clone(model).fit(sparse.csr_array(X), y)
    assert np.mean(thin.predict(sparse.csr_array(X)) == plain) > 0.97


def test_pickled_and_cloned_ones_predict_alike(model, rare):
    X, y = rare
    fitted = model.fit(X, y)
    again = clone(fitted).fit(X, y)
    restored = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(X), fitted.predict(X))
    assert np.array_equal(restored.predict(X), fitted.predict(X))


def test_output_containers_do_not_change_predictions(model, rare):
    X, y = rare
    with sklearn.config_context(transform_output="pandas"):
        framed = clone(model).fit(X, y).predict(X)
    assert np.array_equal(framed, model.fit(X, y).predict(X))


def test_composes_with_pipelines_and_searches(model, rare):
    X, y = rare
    pipe = make_pipeline(StandardScaler(), model)
    if "measure" in model.get_params():
        name = f"{type(model).__name__.lower()}__measure"
        pipe = GridSearchCV(pipe, {name: ["f0.5", "f2"]}, scoring="f1", cv=2)
    assert set(pipe.fit(X, y).predict(X)) == {0, 1}


def test_rows_of_weight_zero_count_for_nothing(model, rare):
    X, y = rare
    counted = np.random.default_rng(0).random(500) < 0.7
    model.set_params(**({"cv": None} if "cv" in model.get_params() and model_tunes(model) else {}))
    if "cv" in model.get_params() and model.get_params()["cv"] is not None:
        pytest.skip("folds are dealt over all rows")
    weighted = clone(model).fit(X, y, sample_weight=counted.astype(float))
    without = clone(model).fit(X[counted], y[counted])
    assert np.mean(weighted.predict(X) == without.predict(X)) > 0.99


def model_tunes(model):
    return isinstance(model, ThresholdFClassifier | CostSensitiveFClassifier)


@pytest.mark.filterwarnings("ignore:sample_weight changes the rate")
@pytest.mark.parametrize("name", WRAPPERS)
def test_weights_reach_the_last_step_of_a_pipeline(name, rare):
    """A pipeline with nothing before the classifier is the classifier, also with weights."""
    X, y = rare
    weight = np.where(y == 1, 5.0, 1.0)
    alone = clone(WRAPPERS[name])
    piped = clone(alone).set_params(estimator=make_pipeline(alone.estimator))
    want = alone.fit(X, y, sample_weight=weight).predict(X)
    assert np.array_equal(piped.fit(X, y, sample_weight=weight).predict(X), want)


@pytest.mark.parametrize("name", WRAPPERS)
def test_probabilities_are_there_where_the_model_has_them(name, rare):
    X, y = rare
    proba = clone(WRAPPERS[name]).fit(X, y).predict_proba(X)
    assert proba.shape == (500, 2)
    assert np.allclose(proba.sum(axis=1), 1.0)
    assert proba[y == 1, 1].mean() > proba[y == 0, 1].mean()
    if name in ("plain", "threshold", "uncalibrated"):
        assert np.allclose(proba, MODEL.fit(X, y).predict_proba(X))


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name not in BATCH])
def test_a_row_is_decided_alone(name, rare):
    X, y = rare
    fitted = clone(CLASSIFIERS[name]).fit(X, y)
    alone = [fitted.predict(X[i : i + 1])[0] for i in range(0, 500, 25)]
    assert alone == fitted.predict(X)[::25].tolist()


@pytest.mark.parametrize("name", BATCH)
def test_frozen_a_row_is_decided_alone(name, rare):
    X, y = rare
    fitted = clone(CLASSIFIERS[name]).fit(X, y)
    frozen = fitted.freeze(X if name == "uncalibrated" else None)
    alone = [frozen.predict(X[i : i + 1])[0] for i in range(0, 500, 25)]
    assert alone == frozen.predict(X)[::25].tolist()


MEASURED = ["threshold", "expected", "uncalibrated", "soft", "blend", "auto"]


@pytest.mark.parametrize("name", MEASURED)
def test_jaccard_is_reached_by_name_and_by_object(name, rare):
    X, y = rare
    from argmaxf.measures import Jaccard

    by_name = clone(CLASSIFIERS[name]).set_params(measure="jaccard").fit(X, y)
    by_object = clone(CLASSIFIERS[name]).set_params(measure=Jaccard()).fit(X, y)
    assert np.array_equal(by_name.predict(X), by_object.predict(X))
    with pytest.raises(ValueError, match="measure must be one of 'f1', 'fbeta', 'jaccard'"):
        clone(CLASSIFIERS[name]).set_params(measure="accuracy").fit(X, y)


@pytest.mark.parametrize("measure", ["f0", "f-1", "fnan", "f", 2.0])
@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "plain"])
def test_a_measure_that_is_none_is_refused(name, rare, measure):
    with pytest.raises(ValueError, match=r"beta must be|measure must be"):
        clone(CLASSIFIERS[name]).set_params(measure=measure).fit(*rare)


@pytest.mark.parametrize("name", ["margin", "cost", "joint"])
def test_classifiers_for_f_beta_refuse_other_measures(name, rare):
    with pytest.raises(ValueError, match=r"measure must be F_β here, such as 'f1' or 'f2', got"):
        clone(CLASSIFIERS[name]).set_params(measure="jaccard").fit(*rare)


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "plain"])
def test_more_weight_on_recall_selects_no_less(name, rare):
    X, y = rare
    few, many = (
        clone(CLASSIFIERS[name]).set_params(measure=measure).fit(X, y).predict(X).sum()
        for measure in ("f0.5", "f3")
    )
    assert few <= many


def test_held_out_rows_are_better_than_chance(model, rare):
    X, y = rare
    assert f1_score(y, cross_val_predict(model, X, y, cv=2)) > 0.35
