"""Soft F as an objective of boosted trees: derivatives, both libraries, and the tuned threshold."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score

from argmaxf import ThresholdFClassifier, maximize_empirical_f, measures
from argmaxf.objectives import BestFMetric, BoostedFScorer, SoftFObjective

MEASURES = [
    "f1",
    measures.FBeta(2.0),
    measures.Jaccard(),
    measures.Tversky(0.3, 0.7),
    measures.Dice(smooth=1.0),
]


def soft_value(measure, y, score, weight):
    """The measure of soft counts, by its own formula."""
    share = expit(score)
    tp, k, s, n = (weight * y) @ share, weight @ share, weight @ y, weight.sum()
    return float(measures.as_measure(measure).value(tp, k, s, n))


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_is_that_of_soft_f(measure, weighted):
    rng = np.random.default_rng(0)
    y, score = rng.random(40) < 0.3, rng.normal(size=40)
    weight = rng.lognormal(size=40) if weighted else np.ones(40)
    objective = SoftFObjective(measure)
    gradient, curvature = objective(y, score, weight)
    step = 1e-5
    slopes = [
        (
            soft_value(measure, y, score + step * e, weight)
            - soft_value(measure, y, score - step * e, weight)
        )
        / (2 * step)
        for e in np.eye(40)
    ]
    scale = gradient @ slopes / (slopes @ np.array(slopes))  # one constant for all rows
    np.testing.assert_allclose(gradient, scale * np.array(slopes), rtol=1e-6, atol=1e-9)
    assert scale < 0  # a loss falls where F rises
    assert (curvature > 0).all()
    assert objective.value(y, score, weight) == pytest.approx(
        soft_value(measure, y, score, weight), rel=1e-12
    )


def test_a_weight_counts_as_so_many_rows():
    y, score, times = np.array([1, 0, 0]), np.array([0.3, -0.2, 1.0]), np.array([2, 1, 3])
    weighted = SoftFObjective()(y, score, times)
    repeated = SoftFObjective()(np.repeat(y, times), np.repeat(score, times))
    first = np.cumsum(times) - times
    for one, other in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(one, times * other[first], rtol=1e-12)


def test_the_curvature_bounds_that_of_the_sigmoid():
    rng = np.random.default_rng(1)
    y, score = rng.random(2000) < 0.1, rng.normal(-1, 2, 2000)
    _, curvature = SoftFObjective()(y, score)
    step = 1e-4
    for i in range(0, 2000, 100):
        ends = [
            SoftFObjective()(y, score + sign * step * (np.arange(2000) == i))[0][i]
            for sign in (1, -1)
        ]
        assert (ends[0] - ends[1]) / (2 * step) <= curvature[i] * (1 + 0.02) + 1e-9


def test_the_metric_is_f_at_the_exact_best_threshold():
    rng = np.random.default_rng(2)
    y, score = rng.random(300) < 0.2, rng.normal(size=300)
    name, value, higher_is_better = BestFMetric("f2")(y, score)
    assert (name, higher_is_better) == ("best f2", True)
    assert value == maximize_empirical_f(y, score, beta=2.0).value
    assert BestFMetric("f2").loss(y, score) == 1.0 - value


def rows():
    X, y = make_classification(1500, weights=[0.93], n_informative=5, flip_y=0.02, random_state=0)
    return X[:1000], y[:1000], X[1000:], y[1000:]


def boosters():
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    return {
        "lightgbm": lightgbm.LGBMClassifier(n_estimators=30, n_jobs=1, verbose=-1),
        "xgboost": xgboost.XGBClassifier(n_estimators=30, n_jobs=1),
    }


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_boosting_goes_on_with_soft_f_from_log_loss(library):
    X, y, X_test, y_test = rows()
    trees = boosters()[library]
    model = BoostedFScorer(trees).fit(X, y)
    first = type(trees)(**{**trees.get_params(), "n_estimators": 15}).fit(X, y)
    before = np.log(first.predict_proba(X)[:, 1] / first.predict_proba(X)[:, 0])
    objective = SoftFObjective()
    assert objective.value(y, model.decision_function(X)) > objective.value(y, before)
    tuned = ThresholdFClassifier(BoostedFScorer(trees)).fit(X, y)
    assert f1_score(y_test, tuned.predict(X_test)) > 0.5


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_all_rounds_may_have_one_objective(library, share):
    X, y, _, _ = rows()
    model = BoostedFScorer(boosters()[library], log_loss_share=share).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    if share == 1.0:
        plain = boosters()[library].fit(X, y).predict_proba(X)[:, 1]
        np.testing.assert_allclose(expit(model.decision_function(X)), plain, rtol=1e-5)


@pytest.mark.parametrize(("rate", "then"), [(0.05, 0.15), (0.1, 0.3), (0.2, 0.3), (0.5, 0.5)])
def test_rounds_of_soft_f_learn_faster(rate, then):
    X, y, _, _ = rows()
    trees = boosters()["lightgbm"].set_params(learning_rate=rate, n_estimators=20)
    model = BoostedFScorer(trees).fit(X, y)
    assert model.estimator_.learning_rate == pytest.approx(then)
    assert model.estimator_.n_estimators == 5
    assert model.estimator_.booster_.num_trees() == 20


def test_string_labels_are_returned():
    X, y, _, _ = rows()
    model = BoostedFScorer(boosters()["lightgbm"]).fit(X, np.where(y, "yes", "no"))
    assert set(model.predict(X)) == {"yes", "no"}


def test_early_stopping_on_f():
    lightgbm = pytest.importorskip("lightgbm")
    X, y, X_test, y_test = rows()
    trees = lightgbm.LGBMClassifier(n_estimators=200, n_jobs=1, verbose=-1, metric="None")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LightGBM's own
        trees.fit(
            *(X, y),
            eval_set=[(X_test, y_test)],
            eval_metric=BestFMetric(),
            callbacks=[lightgbm.early_stopping(10, verbose=False)],
        )
    assert trees.best_iteration_ < 200
    best = trees.best_score_["valid_0"]["best f1"]
    score = trees.predict_proba(X_test)[:, 1]
    assert best == pytest.approx(maximize_empirical_f(y_test, score).value, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SoftFObjective("mcc"), "measure must be a ratio of counts"),
        (lambda: SoftFObjective()([0, 0], [0.1, 0.2]), "y_true must have a positive label"),
        (lambda: SoftFObjective()([0, 2], [0.1, 0.2]), "y_true"),
        (lambda: SoftFObjective()([0, 1], [0.1, np.nan]), "y_pred must not hold NaN"),
        (lambda: SoftFObjective()([0, 1], [0.1]), "y_pred must hold one score for each label"),
        (lambda: BoostedFScorer(None).fit([[0], [1]], [0, 1]), "estimator must be an LGBM"),
        (lambda: BoostedFScorer(None).predict([[0]]), "not fitted"),
        (lambda: BoostedFScorer(None).fit([[0], [1], [2]], [0, 1, 2]), "two classes, got 3"),
        (
            lambda: BoostedFScorer(None, log_loss_share=2.0).fit([[0]], [0]),
            "log_loss_share must lie in",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_rows_may_have_weights(library):
    X, y, _, _ = rows()
    model = BoostedFScorer(boosters()[library])
    plain = model.fit(X, y).decision_function(X)
    np.testing.assert_allclose(
        model.fit(X, y, sample_weight=np.ones(y.size)).decision_function(X), plain, rtol=1e-4
    )


def test_the_default_number_of_rounds_of_xgboost():
    xgboost = pytest.importorskip("xgboost")
    X, y, _, _ = rows()
    model = BoostedFScorer(xgboost.XGBClassifier(n_jobs=1)).fit(X, y)
    assert model.estimator_.get_booster().num_boosted_rounds() == 100
