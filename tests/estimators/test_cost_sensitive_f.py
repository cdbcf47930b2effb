"""F as a weighted error, and the classifier that searches the weights."""

import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import fbeta_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from argmaxf import CostSensitiveFClassifier, ThresholdFClassifier
from argmaxf.estimators.cost_sensitive_f import cost_weights, target_grid
from argmaxf.measures import FBeta

TIGHT = LogisticRegression(solver="newton-cholesky", tol=1e-10)


@given(
    positives=st.integers(1, 50),
    negatives=st.integers(0, 50),
    data=st.data(),
    t=st.floats(0.01, 1),
    beta=st.floats(0.1, 10),
)
def test_f_exceeds_t_exactly_where_the_weighted_error_is_small(positives, negatives, data, t, beta):
    missed, taken = data.draw(st.integers(0, positives)), data.draw(st.integers(0, negatives))
    hits = positives - missed
    f = FBeta(beta).value(hits, hits + taken, positives)
    miss, take = 1 + beta**2 - t, t
    spare = (1 + beta**2) * (1 - t) * positives - miss * missed - take * taken
    assert (f - t) * (hits + taken + beta**2 * positives) == pytest.approx(spare, abs=1e-9)


@given(
    st.lists(st.booleans(), min_size=2, max_size=7).filter(any),
    st.lists(st.integers(0, 2**7 - 1), min_size=1, max_size=20),
    st.floats(0.3, 3),
)
def test_least_weighted_error_at_the_best_f_is_the_best_f(labels, family, beta):
    """Over any family of labellings: the reduction, with the minimization done by search."""
    y = np.array(labels)
    family = [np.array([(code >> i) & 1 for i in range(len(y))], bool) for code in family]
    scores = [FBeta(beta).value((s & y).sum(), s.sum(), y.sum()) for s in family]
    best = max(scores)
    miss, take = 1 + beta**2 - best, best
    errors = [miss * (y & ~s).sum() + take * (s & ~y).sum() for s in family]
    cheapest = [f for f, e in zip(scores, errors, strict=True) if e <= min(errors) + 1e-12]
    assert cheapest == pytest.approx([best] * len(cheapest))


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_targets_enclose_every_best_f(beta):
    for y in product([0, 1], repeat=5):
        if any(y):
            targets = target_grid(np.mean(y), 6, beta=beta)
            everything = fbeta_score(y, np.ones(5), beta=beta)
            assert targets[0] == 1.0
            assert targets[-1] == pytest.approx(everything)


def test_weights_keep_their_sum_and_t_one_is_unweighted():
    y = np.arange(10) < 3
    weight = np.arange(1.0, 11.0)
    assert cost_weights(y, 0.3, weight=weight).sum() == pytest.approx(weight.sum())
    np.testing.assert_allclose(cost_weights(y, 1.0, weight=weight), weight)
    ratio = cost_weights(y, 0.4, beta=2.0)
    assert ratio[0] / ratio[-1] == pytest.approx((1 + 4 - 0.4) / 0.4)


@pytest.fixture
def rare():
    return make_classification(600, weights=[0.9], class_sep=0.6, flip_y=0.05, random_state=0)


@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC()])
def test_never_below_the_tuned_threshold_it_contains(rare, model):
    X, y = rare
    one = ThresholdFClassifier(model, cv=None).fit(X, y)
    best = CostSensitiveFClassifier(model, cv=None).fit(X, y)
    assert best.scores_[0, 0] == pytest.approx(one.f_)
    assert fbeta_score(y, best.predict(X), beta=1) == pytest.approx(best.scores_.max())
    assert best.scores_.max() >= one.f_


def test_costs_help_where_the_model_cannot_be_right():
    """A line for a ring: weighting moves the line, a threshold can only shift it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    y = (X[:, 0] > 1.5) | ((X[:, 1] > 1) & (X[:, 0] < -0.5))
    one = ThresholdFClassifier(LogisticRegression()).fit(X[:2000], y[:2000])
    best = CostSensitiveFClassifier(LogisticRegression()).fit(X[:2000], y[:2000])
    assert best.target_[0] < 1.0
    f_one, f_best = (fbeta_score(y[2000:], m.predict(X[2000:]), beta=1) for m in (one, best))
    assert f_best >= f_one


def test_multilabel_multiclass_strings_frames_and_sparse(rare):
    X, Y = make_multilabel_classification(200, n_classes=3, random_state=0)
    model = CostSensitiveFClassifier(TIGHT, n_costs=3, cv=2)
    together = model.fit(sparse.csr_array(X), Y).predict(sparse.csr_array(X))
    for k in range(3):
        alone = CostSensitiveFClassifier(TIGHT, n_costs=3, cv=2).fit(X, Y[:, k])
        assert np.array_equal(alone.predict(X), together[:, k])
    three = np.array(["a", "b", "c"])[Y[:, 0] + Y[:, 1]]
    frame = pd.DataFrame(X).rename(columns=str)
    fitted = model.fit(frame, three)
    assert list(fitted.feature_names_in_) == list(frame.columns)
    assert fitted.decision_function(frame).shape == (200, 3)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(frame), fitted.predict(frame))


def test_constant_labels_are_said_and_kept():
    X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    Y[:, 0], Y[:, 1] = 0, 1
    with (
        pytest.warns(UserWarning, match="no positives in training: never predicted: 0"),
        pytest.warns(UserWarning, match="nothing but positives in training: always predicted: 1"),
    ):
        fitted = CostSensitiveFClassifier(LogisticRegression(), n_costs=2).fit(X, Y)
    assert fitted.predict(X)[:, :2].tolist() == [[0, 1]] * 100
    assert np.isnan(fitted.target_).tolist() == [True, True, False]


@pytest.mark.filterwarnings("ignore:labels with no positives")
def test_a_label_whose_positives_weigh_nothing_is_never_predicted():
    X, Y = make_multilabel_classification(100, n_classes=2, random_state=0)
    Y[:, 1] = np.arange(100) == 5
    weight = (np.arange(100) != 5) * 1.0
    fitted = CostSensitiveFClassifier(LogisticRegression(), n_costs=2).fit(X, Y, weight)
    assert not fitted.predict(X)[:, 1].any()


def test_pipelines_take_costs_through_routing(rare):
    X, y = rare
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        piped = CostSensitiveFClassifier(make_pipeline(scaler, inner), n_costs=3).fit(X, y)
        with pytest.raises(ValueError, match="must request sample_weight for fit"):
            CostSensitiveFClassifier(LogisticRegression().set_fit_request(sample_weight=False)).fit(
                X, y
            )
    assert piped.scores_.shape == (1, 3)


def test_in_a_grid_search(rare):
    X, y = rare
    grid = GridSearchCV(
        CostSensitiveFClassifier(LogisticRegression(), n_costs=2, cv=3),
        {"estimator__C": [0.1, 1.0]},
        cv=2,
    )
    assert grid.fit(X, y).predict(X).shape == (600,)


def test_what_cannot_be_weighted_is_refused(rare):
    X, y = rare
    with pytest.raises(ValueError, match="must take sample_weight in fit, KNeighborsClassifier do"):
        CostSensitiveFClassifier(KNeighborsClassifier()).fit(X, y)
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    with pytest.raises(ValueError, match="must be trained again for each cost"):
        CostSensitiveFClassifier(frozen).fit(X, y)
    with pytest.raises(ValueError, match="n_costs must be a whole number of at least 1, got 0"):
        CostSensitiveFClassifier(LogisticRegression(), n_costs=0).fit(X, y)
