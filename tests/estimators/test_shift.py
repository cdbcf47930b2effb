"""When the world moves: the rate of positives, or the rows; what each remedy gives and harms."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold, cross_val_predict

from argmaxf import (
    AutoFClassifier,
    ExpectedFClassifier,
    ThresholdFClassifier,
    maximize_empirical_f,
    maximize_expected_f,
    shift_prior,
)
from argmaxf.estimators import MultilabelStratifiedKFold, ShiftWarning
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.meta import PlainClassifier
from argmaxf.estimators.scores import TrainingData, hold_out
from argmaxf.estimators.shift import DriftDetector
from argmaxf.theory import GaussianMixture

MODEL = LogisticRegression(C=np.inf, max_iter=1000)
TRAIN, DEPLOY = 0.2, 0.02


def moved_prior(seed):
    here, there = (GaussianMixture(S=2.5, positive_rate=rate) for rate in (TRAIN, DEPLOY))
    return *here.sample(1000, seed=seed), *there.sample(5000, seed=10_000 + seed)


def moved_rows(seed):
    """Section 4.1.2 of the paper: new rows only where P(1|x) is below one half."""
    mixture = GaussianMixture(S=4.0, positive_rate=0.5)
    X, y = mixture.sample(10_000, seed=10_000 + seed)
    low = mixture.posterior(X) < 0.5
    return *mixture.sample(1000, seed=seed), X[low], y[low]


def scores(data, methods):
    X, y, X_new, y_new = data
    return [f1_score(y_new, method.fit(X, y).predict(X_new)) for method in methods]


FIXED = [PlainClassifier(MODEL), ThresholdFClassifier(MODEL), ExpectedFClassifier(MODEL)]


@pytest.mark.parametrize("deploy_rate", [DEPLOY, "estimate"])
@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(20), marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_a_moved_rate_is_repaired(seeds, deploy_rate):
    remedy = ExpectedFClassifier(MODEL, deploy_rate=deploy_rate)
    mean = np.mean([scores(moved_prior(seed), [*FIXED, remedy]) for seed in seeds], axis=0)
    assert mean[-1] > mean[:-1].max() - 0.02
    assert mean[-1] > mean[2] + 0.1  # expected F as it was learned is what the shift harms


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(20), marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_moved_rows_are_decided_by_the_batch(seeds):
    harm = ExpectedFClassifier(MODEL, deploy_rate="estimate")
    mean = np.mean([scores(moved_rows(seed), [*FIXED, harm]) for seed in seeds], axis=0)
    assert mean[2] > mean[:2].max() - 0.02
    assert mean[3] < mean[2]  # why the warning gives both readings


def familiar(X, y):
    labels = Labels.of(y)
    rows = TrainingData(X, y, labels)
    found = hold_out(MODEL, rows, list(KFold(5).split(X)))
    return DriftDetector(found.models, "predict_proba", found.tables["predict_proba"])


@pytest.mark.parametrize("world", [moved_prior, moved_rows])
def test_the_warning_says_both_readings_and_advises_neither_alone(world):
    X, y, X_new, _ = world(0)
    known = familiar(X, y)
    with pytest.warns(ShiftWarning, match="unlike the training data") as said:
        known.warn_if_unlike(X_new, "trained for F", False)
    text = str(said[0].message)
    assert "(1) Covariate shift: the features" in text
    assert "(2) Prior shift: the share of positives" in text
    assert "deploy_rate='estimate'" in text
    assert "The method in use, trained for F, is tuned in training, right for neither" in text
    with pytest.warns(ShiftWarning, match="in use, expected F, is right for the first cause"):
        known.warn_if_unlike(X_new, "expected F", True)
    same = GaussianMixture(S=2.5 if world is moved_prior else 4.0,
                           positive_rate=TRAIN if world is moved_prior else 0.5)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known.warn_if_unlike(same.sample(5000, seed=77)[0], "expected F", True)


def test_deploy_rate_moves_the_probabilities():
    X, y, X_new, _ = moved_prior(1)
    plain = ExpectedFClassifier(MODEL).fit(X, y)
    moved = ExpectedFClassifier(MODEL, deploy_rate=DEPLOY).fit(X, y)
    p = shift_prior(plain.predict_proba(X_new)[:, 1], train_rate=y.mean(), deploy_rate=DEPLOY)
    assert np.allclose(moved.predict_proba(X_new)[:, 1], p)
    assert np.array_equal(moved.predict(X_new) == 1, maximize_expected_f(p).selected)
    rate = plain.estimate_rate(X_new)
    assert rate.low < rate.value < rate.high < y.mean() / 2  # far from the rate of training
    assert abs(rate.value - DEPLOY) < 0.015
    guessed = ExpectedFClassifier(MODEL, deploy_rate="estimate").fit(X, y)
    p = shift_prior(plain.predict_proba(X_new)[:, 1], train_rate=y.mean(), deploy_rate=rate.value)
    assert np.allclose(guessed.predict_proba(X_new)[:, 1], p)


def test_a_frozen_classifier_keeps_the_rate_of_its_reference():
    X, y, X_new, _ = moved_prior(2)
    fitted = ExpectedFClassifier(MODEL, deploy_rate="estimate").fit(X, y)
    service = fitted.freeze(X_new)
    assert np.array_equal(service.predict(X_new), fitted.predict(X_new))
    assert np.array_equal(service.predict(X_new[:5]), fitted.predict(X_new)[:5])
    with pytest.raises(ValueError, match="freeze needs X_reference"):
        fitted.freeze()


@pytest.mark.filterwarnings("ignore:labels with")
def test_rates_of_labels():
    X, Y = make_multilabel_classification(400, n_classes=3, random_state=0)
    Y[:, 2] = 0
    model = LogisticRegression(max_iter=1000)
    plain = ExpectedFClassifier(model).fit(X, Y)
    moved = ExpectedFClassifier(model, deploy_rate=[0.1, 0.5, 0.3]).fit(X, Y)
    for label, rate in enumerate([0.1, 0.5]):
        p = plain.predict_proba(X)[:, label]
        want = shift_prior(p, train_rate=Y[:, label].mean(), deploy_rate=rate)
        assert np.allclose(moved.predict_proba(X)[:, label], want)
    assert not moved.predict(X)[:, 2].any()
    assert plain.estimate_rate(X)[2] is None
    guessed = ExpectedFClassifier(model, deploy_rate="estimate").fit(X, Y)
    assert not guessed.predict(X)[:, 2].any()


def test_bad_rates_are_named():
    X, y = make_classification(200, random_state=0)
    with pytest.raises(ValueError, match=r"deploy_rate must be above 0 and below 1, got 2.0"):
        ExpectedFClassifier(MODEL, deploy_rate=2).fit(X, y)
    with pytest.raises(ValueError, match="deploy_rate must be one of 'estimate'; got 'guess'"):
        ExpectedFClassifier(MODEL, deploy_rate="guess").fit(X, y)
    with pytest.raises(ValueError, match="one for each of 1 labels, got 2"):
        ExpectedFClassifier(MODEL, deploy_rate=[0.1, 0.2]).fit(X, y)
    with pytest.raises(ValueError, match="a share for each of 3 classes, got 1"):
        ExpectedFClassifier(MODEL, deploy_rate=0.1).fit(X, np.arange(200) % 3)
    with pytest.raises(ValueError, match=r"sum to 1, got 0.6"):
        ThresholdFClassifier(MODEL, deploy_rate=[0.1, 0.2, 0.3]).fit(X, np.arange(200) % 3)
    with pytest.raises(ValueError, match="confidence_level is about rows as in training"):
        ThresholdFClassifier(
            MODEL, deploy_rate=0.1, constraints={"min_precision": 0.5}, confidence_level=0.9, cv=0.5
        ).fit(X, y)
    with pytest.raises(ValueError, match="the rate cannot be estimated from one row"):
        AutoFClassifier(MODEL, deploy_rate="estimate", set_size=1).fit(X, y)
    with pytest.raises(ValueError, match="for binary and multiclass targets"):
        AutoFClassifier(MODEL, deploy_rate=0.1).fit(X, np.column_stack([y, 1 - y]))


def test_a_threshold_is_tuned_for_the_rate_where_it_is_used():
    """Held-out rows weighted by hand: each class counts as much as it will."""
    X, y, X_new, _ = moved_prior(3)
    moved = ThresholdFClassifier(MODEL, deploy_rate=DEPLOY).fit(X, y)
    cut = cross_val_predict(MODEL, X, y, cv=moved_folds(y), method="decision_function")
    weight = np.where(y == 1, DEPLOY / y.mean(), (1 - DEPLOY) / (1 - y.mean()))
    want = maximize_empirical_f(y, cut, sample_weight=weight)
    assert moved.log_odds_threshold_ == pytest.approx(want.threshold)
    assert moved.f_ == pytest.approx(want.value)
    guessed = ThresholdFClassifier(MODEL, deploy_rate="estimate").fit(X, y)
    assert guessed.threshold_ == pytest.approx(ThresholdFClassifier(MODEL).fit(X, y).threshold_)
    service = guessed.freeze(X_new)
    assert service.predict(X_new[:7]).tolist() == guessed.predict(X_new)[:7].tolist()
    assert not np.array_equal(
        guessed.predict(X_new), ThresholdFClassifier(MODEL).fit(X, y).predict(X_new)
    )
    with pytest.raises(ValueError, match="freeze needs X_reference"):
        guessed.freeze()
    assert np.array_equal(moved.freeze().predict(X_new), moved.predict(X_new))


def moved_folds(y):
    return list(MultilabelStratifiedKFold().split(None, y))


@pytest.mark.parametrize("kind", [ExpectedFClassifier, ThresholdFClassifier])
def test_shares_of_classes_may_move_too(kind):
    rng = np.random.default_rng(0)
    centres = 1.5 * np.eye(3)

    def draw(shares, n):
        y = rng.choice(3, n, p=shares)
        return centres[y] + rng.normal(size=(n, 3)), np.array(["a", "b", "c"])[y]

    X, y = draw([0.5, 0.3, 0.2], 800)
    now = [0.9, 0.08, 0.02]
    X_new, y_new = draw(now, 3000)
    f = [
        f1_score(y_new, kind(MODEL, deploy_rate=rate).fit(X, y).predict(X_new), average="macro")
        for rate in (None, now, "estimate")
    ]
    assert min(f[1:]) > f[0] + 0.03
    if kind is ExpectedFClassifier:
        assert kind(MODEL).fit(X, y).estimate_rate(X_new) == pytest.approx(now, abs=0.03)


def test_thresholds_of_labels_have_rates_of_their_own():
    X, Y = make_multilabel_classification(400, n_classes=2, random_state=0)
    both = ThresholdFClassifier(MODEL, deploy_rate=[0.1, 0.6]).fit(X, Y)
    alone = [
        ThresholdFClassifier(MODEL, deploy_rate=rate, cv=moved_table(Y)).fit(X, Y[:, j]).threshold_
        for j, rate in enumerate([0.1, 0.6])
    ]
    assert both.threshold_ == pytest.approx(alone)


def moved_table(Y):
    return list(MultilabelStratifiedKFold().split(None, Y))


@pytest.mark.parametrize("deploy_rate", [DEPLOY, "estimate"])
def test_auto_compares_at_the_rate_where_it_predicts(deploy_rate):
    X, y, X_new, y_new = moved_prior(4)
    plain = AutoFClassifier(MODEL).fit(X, y)
    auto = AutoFClassifier(MODEL, deploy_rate=deploy_rate).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ShiftWarning)  # the difference is known
        found = f1_score(y_new, auto.predict(X_new))
    with pytest.warns(ShiftWarning):
        assert found > f1_score(y_new, plain.predict(X_new)) + 0.1
    if deploy_rate == "estimate":
        assert list(auto.report_.scores) == ["tuned threshold", "expected F"]
        assert "each batch will be corrected to its own rate" in str(auto.report_)
        assert np.array_equal(auto.freeze(X_new).predict(X_new), auto.predict(X_new))
    else:
        assert "weighted to the target rate: 0.02" in str(auto.report_)
        weight = np.where(y == 1, DEPLOY / y.mean(), (1 - DEPLOY) / (1 - y.mean()))
        cut = cross_val_predict(MODEL, X, y, cv=moved_folds(y))
        want = f1_score(y, cut, sample_weight=weight)
        assert auto.report_.scores["threshold 0.5"] == pytest.approx(want)
        stream = AutoFClassifier(MODEL, deploy_rate=deploy_rate, set_size=1).fit(X, y)
        assert f1_score(y_new, stream.predict(X_new)) > found - 0.05


def test_a_frozen_threshold_of_a_known_rate_needs_no_new_rows():
    X, y, X_new, y_new = moved_prior(5)
    fitted = ExpectedFClassifier(MODEL, deploy_rate=DEPLOY).fit(X, y)
    batch, single = fitted.predict(X_new), fitted.freeze().predict(X_new)
    assert f1_score(y_new, single) > f1_score(y_new, batch) - 0.05
    assert fitted.freeze().threshold_ == pytest.approx(fitted.freeze(X_new).threshold_, abs=0.1)
    assert fitted.freeze().expected_ == pytest.approx(fitted.freeze(X_new).expected_, abs=0.1)


def test_the_estimator_of_the_rate_can_be_chosen():
    X, y, X_new, _ = moved_prior(1)
    fitted = ExpectedFClassifier(MODEL).fit(X, y)
    likely, moments = (fitted.estimate_rate(X_new, method=m) for m in ("likelihood", "moments"))
    assert likely == fitted.estimate_rate(X_new)
    assert moments != likely
    assert abs(moments.value - DEPLOY) < 0.03
    narrow = fitted.estimate_rate(X_new, confidence_level=0.5)
    assert likely.low < narrow.low < narrow.value < narrow.high < likely.high
    with pytest.raises(ValueError, match="method must be one of 'likelihood', 'moments'; got 'x'"):
        fitted.estimate_rate(X_new, method="x")
    plain = ExpectedFClassifier(MODEL, calibration=None).fit(X, y)
    with pytest.raises(ValueError, match="needs reference, held-out probabilities of training"):
        plain.estimate_rate(X_new, method="moments")
