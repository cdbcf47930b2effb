"""Probabilities that can be taken at their word: calibrated, respected, or doubted aloud."""

import sys
import warnings

import numpy as np
import pytest
from imblearn.ensemble import BalancedRandomForestClassifier
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as resampling_pipeline
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.class_weight import compute_sample_weight

from argmaxf import (
    AutoFClassifier,
    BlendFClassifier,
    ExpectedFClassifier,
    ThresholdFClassifier,
    maximize_expected_f,
)
from argmaxf.estimators import CalibrationWarning
from argmaxf.estimators.calibration import VennAbers, break_ties, reweighting

BALANCED = LogisticRegression(class_weight="balanced")


@pytest.fixture
def rare():
    return make_classification(4000, weights=[0.95], class_sep=0.8, flip_y=0.02, random_state=0)


@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
def test_the_probabilities_are_those_of_scikit_learn(rare, method):
    X, y = rare
    cv = StratifiedKFold(5)
    ours = ExpectedFClassifier(LogisticRegression(), calibration=method, cv=cv).fit(X, y)
    theirs = CalibratedClassifierCV(LogisticRegression(), method=method, cv=cv).fit(X, y)
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert len(ours.estimators_) == 5


def test_each_row_of_a_calibrated_multiclass_target_has_a_total_of_one():
    X, y = make_classification(
        900, n_informative=5, n_classes=3, weights=[0.7, 0.2], random_state=0
    )
    ours = ExpectedFClassifier(LogisticRegression()).fit(X, y)
    assert np.allclose(ours.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "model",
    [BALANCED, RandomForestClassifier(25, class_weight="balanced", random_state=0),
     resampling_pipeline(RandomOverSampler(random_state=0), LogisticRegression())],
)  # fmt: skip
def test_reweighted_models_are_repaired(rare, model):
    """The promise holds on test rows, and F is not behind a tuned threshold's."""
    X, y = rare
    fitted = ExpectedFClassifier(model).fit(X[:2000], y[:2000])
    decision = fitted.decide(X[2000:])
    found = f1_score(y[2000:], decision.selected)
    assert fitted.calibration_issue_ is None
    assert abs(found - decision.expected) < 3 * decision.std
    tuned = ThresholdFClassifier(model).fit(X[:2000], y[:2000])
    assert found > f1_score(y[2000:], tuned.predict(X[2000:])) - 0.03


def test_without_calibration_a_reweighted_model_is_flagged_and_has_no_expected_f(rare):
    X, y = rare
    with pytest.warns(
        CalibrationWarning,
        match=r"expect [\d,]+ positives where there are [\d,]+ \(class_weight='balanced'\): ",
    ):
        fitted = ExpectedFClassifier(BALANCED, calibration=None).fit(X, y)
    with pytest.warns(CalibrationWarning, match="the expected F is unknown"):
        decision = fitted.decide(X)
    assert np.isnan(decision.expected)
    assert np.isnan(decision.std)
    assert decision.k == fitted.predict(X).sum()


def test_sharp_probabilities_that_are_wrong_are_flagged_although_their_total_is_right():
    X, y = make_classification(
        3000, weights=[0.95], flip_y=0.03, n_informative=4, n_redundant=10, random_state=0
    )
    with pytest.warns(CalibrationWarning, match=r"close to 0 or 1: of 87 rows .* expect 73 .* 45"):
        fitted = ExpectedFClassifier(GaussianNB(), calibration=None).fit(X[:1500], y[:1500])
    with pytest.warns(CalibrationWarning, match="the expected F is unknown"):
        assert np.isnan(fitted.decide(X[1500:]).expected)
    for model in (LogisticRegression(), RandomForestClassifier(25, random_state=0)):
        fitted = ExpectedFClassifier(model, calibration=None).fit(X[:1500], y[:1500])
        assert fitted.calibration_issue_ is None


def test_a_frozen_reweighted_model_is_flagged_by_its_total_and_repaired_when_asked(rare):
    X, y = rare
    model = FrozenEstimator(BALANCED.fit(X[:2000], y[:2000]))
    with pytest.warns(CalibrationWarning, match="expect"):
        ExpectedFClassifier(model).fit(X[2000:3000], y[2000:3000])
    fitted = ExpectedFClassifier(model, calibration="isotonic").fit(X[2000:3000], y[2000:3000])
    decision = fitted.decide(X[3000:])
    assert abs(f1_score(y[3000:], decision.selected) - decision.expected) < 3 * decision.std


def test_plain_models_are_not_flagged(rare):
    X, y = rare
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (LogisticRegression(), RandomForestClassifier(30, random_state=0)):
            assert ExpectedFClassifier(model, calibration=None).fit(X, y).calibration_issue_ is None
            assert (
                ExpectedFClassifier(FrozenEstimator(model.fit(X, y))).fit(X, y).calibration_issue_
                is None
            )


def test_a_reweighted_model_is_accused_only_where_its_total_is_off(rare):
    X, y = rare
    alike = LogisticRegression(class_weight={0: 1, 1: 1})
    half = np.r_[np.flatnonzero(y == 1), np.flatnonzero(y == 0)[: y.sum()]]  # nothing to balance
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (
            CalibratedClassifierCV(BALANCED),
            make_pipeline(CalibratedClassifierCV(BALANCED)),
        ):
            assert ExpectedFClassifier(model).fit(X, y).decide(X).expected > 0
        assert ExpectedFClassifier(alike, calibration=None).fit(X, y).calibration_issue_ is None
        assert (
            ExpectedFClassifier(BALANCED, calibration=None).fit(X[half], y[half]).calibration_issue_
            is None
        )
    forest = RandomForestClassifier(25, class_weight="balanced", random_state=0)
    with pytest.warns(CalibrationWarning, match="class_weight='balanced'"):
        ExpectedFClassifier(forest, calibration=None).fit(X, y)


OVERFITTED = [
    DecisionTreeClassifier(class_weight="balanced", random_state=0),
    make_pipeline(StandardScaler(), DecisionTreeClassifier(class_weight={0: 1, 1: 20})),
    resampling_pipeline(RandomOverSampler(random_state=0), DecisionTreeClassifier()),
    GridSearchCV(DecisionTreeClassifier(), {"class_weight": ["balanced"]}, cv=2),
    DecisionTreeClassifier(random_state=0),
    KNeighborsClassifier(1),
]


@pytest.mark.parametrize("model", OVERFITTED, ids=range(len(OVERFITTED)))
def test_a_model_that_knows_its_rows_from_memory_has_no_expected_f(rare, model):
    """Its total is right on the rows it was trained on, and its expected F would be F = 1."""
    X, y = rare
    plain = ExpectedFClassifier(model, calibration=None)
    with pytest.warns(CalibrationWarning, match=r"(training rows|trained on).*calibrate them"):
        plain.fit(X[:1000], y[:1000])
    assert plain.predict_proba(X[:1000])[:, 1].sum() == pytest.approx(y[:1000].sum(), rel=0.01)
    with pytest.warns(CalibrationWarning, match="the expected F is unknown"):
        assert np.isnan(plain.decide(X[1000:]).expected)
    assert np.isnan(plain.freeze(X[1000:]).expected_)
    repaired = ExpectedFClassifier(model).fit(X[:1000], y[:1000]).decide(X[1000:])
    assert repaired.expected < f1_score(y[1000:], repaired.selected) + 3 * repaired.std


def test_a_frozen_model_is_judged_by_rows_it_may_not_have_seen(rare):
    X, y = rare
    tree = DecisionTreeClassifier(class_weight="balanced", min_samples_leaf=40, random_state=0)
    with pytest.warns(CalibrationWarning, match="expect"):
        ExpectedFClassifier(FrozenEstimator(tree.fit(X[:2000], y[:2000]))).fit(X[2000:], y[2000:])
    seen = ExpectedFClassifier(FrozenEstimator(DecisionTreeClassifier().fit(X, y)))
    with pytest.warns(CalibrationWarning, match="the model may have memorized"):
        assert np.isnan(seen.fit(X, y).freeze().expected_)
    pipeline = make_pipeline(StandardScaler(), FrozenEstimator(DummyClassifier().fit(X, y)))
    assert ExpectedFClassifier(pipeline).fit(X[2000:], y[2000:]).calibration_issue_ is None


@pytest.mark.parametrize("kind", [ExpectedFClassifier, AutoFClassifier])
def test_balanced_rows_predict_the_f_of_balanced_rows(rare, kind):
    X, y = rare
    weight = compute_sample_weight("balanced", y)
    said = (
        r"from 0\.0\d+ to 0\.5: the predicted F is that of the weighted population; .*deploy_rate="
    )
    with pytest.warns(CalibrationWarning, match=said):
        kind(LogisticRegression(), cv=2).fit(X, y, sample_weight=weight)


def test_a_blend_says_it_once(rare):
    X, y = rare
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        BlendFClassifier(LogisticRegression(), cv=2).fit(X, y, compute_sample_weight("balanced", y))
    assert ["sample_weight changes" in str(each.message) for each in found] == [True]


def test_weights_with_their_rate_known_or_kept_are_not_flagged(rare):
    X, y = rare
    weight = compute_sample_weight("balanced", y)[:2000]
    fitted = ExpectedFClassifier(LogisticRegression(), deploy_rate=y[:2000].mean())
    decision = fitted.fit(X[:2000], y[:2000], sample_weight=weight).decide(X[2000:])
    assert abs(f1_score(y[2000:], decision.selected) - decision.expected) < 3 * decision.std
    uneven = np.random.default_rng(0).exponential(size=2000)
    for weight in (uneven, (np.arange(2000) % 2).astype(float)):
        fitted = ExpectedFClassifier(LogisticRegression(), cv=2)
        assert fitted.fit(X[:2000], y[:2000], sample_weight=weight).calibration_issue_ is None


def test_what_reweights_is_named():
    assert list(reweighting(LogisticRegression())) == []
    assert list(reweighting(make_pipeline(StandardScaler(), BALANCED))) == [
        "class_weight='balanced'"
    ]
    assert list(reweighting(LogisticRegression(class_weight={0: 1, 1: 9}))) == ["class_weight"]
    lightgbm = pytest.importorskip("lightgbm")
    assert list(reweighting(lightgbm.LGBMClassifier())) == []
    assert list(reweighting(lightgbm.LGBMClassifier(scale_pos_weight=9))) == ["scale_pos_weight=9"]
    assert list(reweighting(lightgbm.LGBMClassifier(is_unbalance=True))) == ["is_unbalance=True"]
    sampled = resampling_pipeline(RandomOverSampler(), LogisticRegression())
    assert list(reweighting(sampled)) == ["RandomOverSampler in the pipeline"]
    forest = BalancedRandomForestClassifier()
    assert list(reweighting(forest)) == ["BalancedRandomForestClassifier, which resamples"]
    frozen = make_pipeline(StandardScaler(), FrozenEstimator(BALANCED))
    assert list(reweighting(frozen)) == ["class_weight='balanced'"]
    assert list(reweighting(make_pipeline(CalibratedClassifierCV(BALANCED)))) == []
    assert list(reweighting(make_pipeline(SelectFromModel(BALANCED), LogisticRegression()))) == []
    assert list(reweighting(StackingClassifier([("a", BALANCED)], LogisticRegression()))) == []
    assert list(reweighting(VotingClassifier([("a", BALANCED), ("b", GaussianNB())]))) == [
        "class_weight='balanced'"
    ]


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: make_pipeline(StandardScaler(), m)])
def test_a_calibrated_model_is_left_alone(rare, wrap):
    X, y = rare
    model = wrap(CalibratedClassifierCV(GaussianNB(), method="isotonic"))
    fitted = ExpectedFClassifier(model).fit(X, y)
    assert fitted.calibration_ is None
    assert np.allclose(fitted.predict_proba(X), model.fit(X, y).predict_proba(X), atol=1e-15)
    assert ExpectedFClassifier(model, calibration="sigmoid").fit(X, y).calibration_ == "sigmoid"


def test_any_regressor_is_a_form(rare):
    X, y = rare
    form = IsotonicRegression(y_min=0.01, y_max=0.9, out_of_bounds="clip")
    proba = ExpectedFClassifier(LogisticRegression(), calibration=form).fit(X, y).predict_proba(X)
    assert proba[:, 1].min() >= 0.01 - 1e-9
    assert proba[:, 1].max() <= 0.9


def test_ties_of_a_plateau_go_by_the_models_scores():
    """A curve of two steps: the set takes part of the upper one, and takes its best scores."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 1))
    y = (rng.random(600) < np.where(x[:, 0] > 0, 0.3, 0.01)).astype(int)

    class Steps:
        def fit(self, score, y):
            return self

        def predict(self, score):
            return np.where(score > np.median(score), 0.3, 0.01)

    fitted = ExpectedFClassifier(LogisticRegression(), calibration=Steps()).fit(x, y)
    chosen = fitted.predict(x) == 1
    direction = np.sign(np.corrcoef(x[:, 0], y)[0, 1])
    assert (direction * x[chosen]).min() > (direction * x[~chosen]).max()


def test_apart_orders_equal_probabilities_and_moves_none_past_another():
    proba = np.array([0.0, 0.2, 0.2, 0.2, 0.2 + 1e-8, 1.0])
    got = break_ties(proba, np.array([5.0, 1.0, -1e300, 7.0, -9.0, 0.0]))
    assert got[0] == 0.0
    assert got[2] < got[1] < got[3] < got[4] < got[5] <= 1.0
    assert np.allclose(got, proba, rtol=1e-8)


@pytest.mark.filterwarnings("ignore:a batch of fewer than")
@pytest.mark.parametrize("positives", [2, 3, 5, 8])
def test_few_positives(positives):
    rng = np.random.default_rng(positives)
    X = rng.normal(size=(300, 3))
    y = np.zeros(300, dtype=int)
    y[np.argsort(-X[:, 0])[:positives]] = 1
    fitted = ExpectedFClassifier(LogisticRegression()).fit(X, y)
    assert fitted.calibration_ == "isotonic"
    proba = fitted.predict_proba(X)[:, 1]
    assert np.isfinite(proba).all()
    assert f1_score(y, fitted.predict(X)) > 0.5


@pytest.mark.filterwarnings("ignore:Only one sample", "ignore:y has one class only")
def test_a_lone_positive_keeps_the_models_probabilities():
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = (np.arange(50) == 7).astype(int)
    fitted = ExpectedFClassifier(LogisticRegression()).fit(X, y)
    assert fitted.calibration_ is None
    assert np.array_equal(fitted.predict_proba(X), LogisticRegression().fit(X, y).predict_proba(X))


@pytest.mark.filterwarnings("ignore:labels with")
def test_many_labels_share_the_fits_of_a_model_that_holds_them_all():
    X, Y = make_multilabel_classification(300, n_classes=7, n_labels=3, random_state=0)
    Y[:, 3], Y[:, 4], Y[:, 5] = 0, 1, np.arange(300) == 5
    forest = RandomForestClassifier(20, random_state=0)
    fitted = ExpectedFClassifier(forest).fit(X, Y)
    assert len(fitted.estimators_) == 5
    predicted = fitted.predict(X)
    assert not predicted[:, 3].any()
    assert predicted[:, 4].all()
    apart_fits = ExpectedFClassifier(LogisticRegression()).fit(X, Y)
    assert len(apart_fits.estimators_) == 5 * 7


def test_labels_are_calibrated_one_by_one():
    X, Y = make_multilabel_classification(400, n_classes=3, random_state=0)
    cv = KFold(4)
    together = ExpectedFClassifier(GaussianNB(), cv=cv).fit(X, Y).predict_proba(X)
    for label, column in enumerate(Y.T):
        alone = ExpectedFClassifier(GaussianNB(), cv=cv).fit(X, column).predict_proba(X)[:, 1]
        assert np.array_equal(together[:, label], alone)


def test_saturated_naive_bayes_is_ordered_by_its_log_odds():
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.3
    X = rng.normal(size=(2000, 1)) + y[:, None]
    X = np.repeat(X, 60, axis=1)  # sixty copies of one attribute: many p are 0 or 1
    model = GaussianNB().fit(X, y)
    assert np.mean(model.predict_proba(X)[:, 1] == 1.0) > 0.2
    fitted = ExpectedFClassifier(GaussianNB()).fit(X[:1000], y[:1000])
    single = ExpectedFClassifier(LogisticRegression()).fit(X[:1000, :1], y[:1000])
    got, want = (f1_score(y[1000:], m.predict(z)) for m, z in
                 [(fitted, X[1000:]), (single, X[1000:, :1])])  # fmt: skip
    assert got > want - 0.01
    tuned = ThresholdFClassifier(GaussianNB()).fit(X[:1000], y[:1000])
    assert tuned.log_odds_threshold_ is not None
    assert f1_score(y[1000:], tuned.predict(X[1000:])) > want - 0.02


@pytest.mark.filterwarnings("ignore:sample_weight changes the rate")
def test_sample_weights_count_in_the_curves(rare):
    X, y = rare
    constant = DummyClassifier()  # all that is learned is the rate
    weight = np.where(y == 1, 3.0, 1.0)
    fitted = ExpectedFClassifier(constant).fit(X, y, sample_weight=weight)
    want = (weight @ y) / weight.sum()
    assert np.allclose(fitted.predict_proba(X)[:, 1], want, atol=0.01)


def test_the_decision_is_the_best_for_the_calibrated_probabilities(rare):
    X, y = rare
    fitted = ExpectedFClassifier(GaussianNB(), measure="f2").fit(X, y)
    want = maximize_expected_f(fitted.predict_proba(X)[:, 1], beta=2.0)
    assert np.array_equal(fitted.predict(X) == 1, want.selected)
    assert fitted.decide(X).expected == want.expected


def test_unknown_forms_are_named(rare):
    with pytest.raises(ValueError, match=r"one of 'auto', .*, a regressor or None, got 'platt'"):
        ExpectedFClassifier(LogisticRegression(), calibration="platt").fit(*rare)


def test_venn_abers_is_two_isotonic_fits_with_the_new_row_among_them():
    """Vovk and Petej's definition, row by row."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=60).round(1)
    y = (rng.random(60) < 1 / (1 + np.exp(-2 * score))).astype(float)
    curve = VennAbers().fit(score, y)
    for new in (-9.0, *score[:8], 0.123, 9.0):
        low, high = (
            IsotonicRegression().fit(np.r_[score, new], np.r_[y, label]).predict([new])[0]
            for label in (0.0, 1.0)
        )
        want = high / (1 - low + high)
        assert curve.predict(np.array([new]))[0] == pytest.approx(want, abs=1e-6)


def test_venn_abers_calibrates_a_model_that_was_reweighted():
    X, y = make_classification(3000, weights=[0.95], flip_y=0.05, random_state=0)
    off = LogisticRegression(class_weight="balanced")
    fitted = ExpectedFClassifier(off, calibration="venn-abers").fit(X[:1500], y[:1500])
    proba = fitted.predict_proba(X[1500:])[:, 1]
    weighted = off.fit(X[:1500], y[:1500]).predict_proba(X[1500:])[:, 1]
    rate = y[1500:].mean()  # with few positives in each fold, the mean stays a little above it
    assert abs(proba.mean() - rate) < abs(weighted.mean() - rate) / 3
    with pytest.raises(ValueError, match="takes no sample_weight; use 'isotonic'"):
        ExpectedFClassifier(off, calibration="venn-abers").fit(X, y, sample_weight=np.ones(3000))


def test_venn_abers_says_which_package_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "venn_abers", None)
    with pytest.raises(ImportError, match="pip install venn-abers"):
        VennAbers().fit(np.zeros(2), np.array([0.0, 1.0]))


@pytest.mark.parametrize(("k", "said"), [(1, "1 positive in"), (7, "7 positives in"), (10, "")])
def test_a_forecast_that_rests_on_few_positives_says_so(rare, k, said):
    X, y = rare
    rows = np.r_[np.flatnonzero(y == 1)[:k], np.flatnonzero(y == 0)[:300]]
    fitted = ExpectedFClassifier(LogisticRegression()).fit(X[rows], y[rows])
    for ask in (fitted.decide, fitted.freeze):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            ask(X)
        told = [f"the predicted F is based on {said}" in str(each.message) for each in found]
        assert told == [True] * (k < 10)


def test_a_blend_takes_another_model(rare):
    X, y = rare
    forest = RandomForestClassifier(20, random_state=0)
    blend = BlendFClassifier(LogisticRegression(), other=forest, cv=2).fit(X, y)
    each = [ExpectedFClassifier(model, cv=2).fit(X, y) for model in (LogisticRegression(), forest)]
    want = np.mean([model.predict_proba(X) for model in each], axis=0)
    np.testing.assert_allclose(blend.predict_proba(X), want, rtol=1e-12)
    assert type(blend.members_[1].estimator) is RandomForestClassifier
