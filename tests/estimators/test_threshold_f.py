"""ML^δ as a scikit-learn classifier."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.special import expit
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, fbeta_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    TimeSeriesSplit,
    TunedThresholdClassifierCV,
    cross_val_predict,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from argmaxf import (
    AutoFClassifier,
    ExpectedFClassifier,
    ThresholdFClassifier,
    maximize_empirical_f,
)
from argmaxf.empirical.cuts import threshold_std
from argmaxf.estimators.labels import assign_folds
from argmaxf.measures import FBeta
from tests.judges import best_cut

TIGHT = LogisticRegression(solver="newton-cholesky", tol=1e-10)


@pytest.fixture
def rare():
    return make_classification(1000, weights=[0.9], class_sep=0.6, flip_y=0.05, random_state=0)


@pytest.fixture
def table():
    return make_multilabel_classification(400, n_classes=4, n_labels=2, random_state=0)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_training_threshold_is_the_best_of_all(rare, beta):
    X, y = rare
    fitted = ThresholdFClassifier(LogisticRegression(), measure=FBeta(beta), cv=None).fit(X, y)
    log_odds = LogisticRegression().fit(X, y).decision_function(X)
    found = fbeta_score(y, fitted.predict(X), beta=beta)
    assert found == pytest.approx(best_cut(y, log_odds, beta), abs=1e-12)
    want = maximize_empirical_f(y, log_odds, beta=beta).threshold
    assert fitted.log_odds_threshold_ == want
    assert fitted.threshold_ == pytest.approx(expit(want), rel=1e-14)


def test_default_threshold_comes_from_rows_the_model_has_not_seen(rare):
    X, y = rare
    cv = KFold(4, shuffle=True, random_state=3)
    held_out = cross_val_predict(LogisticRegression(), X, y, cv=cv, method="decision_function")
    fitted = ThresholdFClassifier(LogisticRegression(), cv=cv).fit(X, y)
    assert fitted.log_odds_threshold_ == maximize_empirical_f(y, held_out).threshold
    again = ThresholdFClassifier(LogisticRegression(), cv=list(cv.split(X))).fit(X, y)
    assert again.threshold_ == fitted.threshold_


def test_fitted_models_keep_their_parameters(rare):
    X, y = rare
    model = LogisticRegression().fit(X[:500], y[:500])
    before = model.coef_.copy()
    tuned = ThresholdFClassifier(FrozenEstimator(model)).fit(X[500:], y[500:])
    assert np.array_equal(model.coef_, before)
    want = maximize_empirical_f(y[500:], model.decision_function(X[500:]))
    assert tuned.log_odds_threshold_ == want.threshold
    grid = TunedThresholdClassifierCV(
        FrozenEstimator(model), scoring=make_scorer(f1_score), cv="prefit", refit=False
    ).fit(X[500:], y[500:])
    ours, theirs = (f1_score(y[500:], m.predict(X[500:])) for m in (tuned, grid))
    assert ours >= theirs


@pytest.mark.parametrize(
    "model", [LogisticRegression(), RandomForestClassifier(20, random_state=0), GaussianNB()]
)
def test_labels_are_tuned_one_by_one(table, model):
    X, Y = table
    fitted = ThresholdFClassifier(model, cv=None).fit(X, Y)
    assert fitted.threshold_.shape == fitted.threshold_std_.shape == (4,)
    scores = fitted._model.scores(X, fitted._kind)
    want = maximize_empirical_f(Y, scores, average="macro")
    assert f1_score(Y, fitted.predict(X), average=None) == pytest.approx(want.value, abs=1e-12)


def test_frozen_multilabel_model(table):
    X, Y = table
    forest = RandomForestClassifier(20, random_state=0).fit(X[:200], Y[:200])
    fitted = ThresholdFClassifier(FrozenEstimator(forest)).fit(X[200:], Y[200:])
    scores = np.column_stack([p[:, 1] for p in forest.predict_proba(X[200:])])
    want = maximize_empirical_f(Y[200:], scores, average="macro")
    assert np.array_equal(fitted.threshold_, want.threshold)


@pytest.mark.parametrize("seeds", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_multiclass_gains_macro_f(seeds):
    """Where classes are unequal, competing for rows by gain beats the most probable class."""
    gains = []
    for seed in range(seeds):
        X, y = make_classification(
            4000, n_informative=8, n_classes=5, n_clusters_per_class=1, class_sep=0.7,
            weights=[0.6, 0.2, 0.1, 0.06], random_state=seed,
        )  # fmt: skip
        model = LogisticRegression(max_iter=2000)
        tuned = ThresholdFClassifier(model).fit(X[:2000], y[:2000]).predict(X[2000:])
        plain = model.fit(X[:2000], y[:2000]).predict(X[2000:])
        gains.append(np.subtract(*(f1_score(y[2000:], p, average="macro") for p in (tuned, plain))))
    assert np.mean(gains) > 0.01


def test_without_probabilities_the_decision_function_is_cut(rare):
    X, y = rare
    fitted = ThresholdFClassifier(LinearSVC()).fit(X, y)
    assert fitted.response_method_ == "decision_function"
    assert f1_score(y, fitted.predict(X)) > f1_score(y, LinearSVC().fit(X, y).predict(X))
    assert fitted.log_odds_threshold_ is None
    score = fitted.estimators_[0].decision_function(X)
    assert np.array_equal(score >= fitted.threshold_, fitted.predict(X) == 1)


def test_pairwise_scores_are_refused():
    X, y = make_classification(200, n_informative=5, n_classes=4, random_state=0)
    model = ThresholdFClassifier(SVC(decision_function_shape="ovo"))
    with pytest.raises(ValueError, match="one column per class, got 6 for 4 classes"):
        model.fit(X, y)


def test_text_frames_and_sparse_columns_pass_through():
    texts = ["rare find"] * 12 + ["common thing", "common other thing"] * 20
    y = np.repeat(["keep", "drop"], [12, 40])
    words = make_pipeline(CountVectorizer(), MultinomialNB())
    fitted = ThresholdFClassifier(words, pos_label="keep").fit(texts, y)
    assert (fitted.predict(texts) == y).all()
    X, z = make_classification(300, n_features=4, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    plain = ThresholdFClassifier(LogisticRegression()).fit(X, z)
    framed = ThresholdFClassifier(LogisticRegression()).fit(frame, z)
    assert framed.feature_names_in_.tolist() == list("abcd")
    assert framed.n_features_in_ == 4
    assert np.array_equal(framed.predict(frame), plain.predict(X))
    thin = ThresholdFClassifier(LogisticRegression()).fit(sparse.csr_matrix(X), z)
    assert np.array_equal(thin.predict(sparse.csr_matrix(X)), plain.predict(X))


def test_search_pipeline_clone_and_pickle(rare):
    X, y = rare
    pipe = make_pipeline(StandardScaler(), ThresholdFClassifier(LogisticRegression()))
    grid = {"thresholdfclassifier__estimator__C": [0.01, 1.0]}
    search = GridSearchCV(pipe, grid, scoring="f1", cv=3).fit(X, y)
    restored = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(restored.predict(X), search.predict(X))
    held_out = cross_val_predict(ThresholdFClassifier(LogisticRegression()), X, y, cv=3)
    assert f1_score(y, held_out) > 0.3


def test_weights_reach_the_model_and_the_threshold(rare):
    X, y = rare
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    fitted = ThresholdFClassifier(TIGHT, cv=None).fit(X, y, sample_weight=weight)
    twice = ThresholdFClassifier(TIGHT, cv=None).fit(X.repeat(weight, 0), y.repeat(weight))
    assert fitted.threshold_ == pytest.approx(twice.threshold_, abs=1e-6)
    with pytest.warns(UserWarning, match="KNeighborsClassifier takes no sample_weight"):
        ThresholdFClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=weight)


def test_weights_are_routed_where_routing_is_on(rare):
    X, y = rare
    weight = np.where(y == 1, 5.0, 1.0)
    want = ThresholdFClassifier(LogisticRegression()).fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        chance = LogisticRegression().set_fit_request(sample_weight=True)
        got = ThresholdFClassifier(chance).fit(X, y, sample_weight=weight)
        declined = LogisticRegression().set_fit_request(sample_weight=False)
        other = ThresholdFClassifier(declined).fit(X, y, sample_weight=weight)
        in_pipe = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            ThresholdFClassifier(chance).set_fit_request(sample_weight=True),
        ).fit(X, y, sample_weight=weight)
    assert got.threshold_ == want.threshold_
    assert np.array_equal(
        other.estimators_[0].coef_, LogisticRegression().fit(X, y).coef_
    )  # weights not asked for do not reach the model
    assert in_pipe[-1].estimators_[0].coef_.shape == (1, 20)


@pytest.mark.parametrize("positives", [1, 2, 3])
def test_few_positives(positives):
    rng = np.random.default_rng(0)
    y = np.zeros(60, dtype=int)
    y[:positives] = 1
    X = rng.normal(size=(60, 2)) + 4 * y[:, None]
    fitted = ThresholdFClassifier(LogisticRegression()).fit(X, y)
    assert np.array_equal(fitted.predict(X), y)
    assert np.isnan(fitted.threshold_std_)


def test_rare_labels_are_dealt_over_the_folds():
    rng = np.random.default_rng(0)
    columns = rng.random((500, 6)) < [0.5, 0.2, 0.05, 0.02, 0.01, 0.8]
    fold = assign_folds(columns, 5, 0)
    sizes = np.bincount(fold, minlength=5)
    assert np.ptp(sizes) <= 2
    rare = columns[:, columns.sum(axis=0).argmin()]
    per_fold = np.bincount(fold[rare], minlength=5)
    assert np.ptp(per_fold) <= 1


@pytest.mark.filterwarnings("ignore:labels with")
def test_constant_labels_inside_the_folds(table):
    X, Y = table
    Y = np.column_stack([Y[:, :2], np.zeros(400, int), np.ones(400, int)])
    Y[0, 2] = 1  # one positive only: no fold can hold it out
    for model in (LogisticRegression(), GaussianNB(), DecisionTreeClassifier(random_state=0)):
        predicted = ThresholdFClassifier(model).fit(X, Y).predict(X)
        assert predicted[:, 3].all()
        assert predicted[:, 2].sum() < 200


def test_wrapped_decisions_are_kept(table):
    X, Y = table
    ours = ThresholdFClassifier(LogisticRegression(), cv=None)
    want = ours.fit(X, Y).predict(X)
    assert np.array_equal(OneVsRestClassifier(ours).fit(X, Y).predict(X), want)
    assert np.array_equal(MultiOutputClassifier(ours).fit(X, Y).predict(X), want)


@pytest.mark.parametrize("cv", [1, 0])
def test_too_few_folds_are_refused(rare, cv):
    with pytest.raises(ValueError, match="cv must be at least 2 folds, got"):
        ThresholdFClassifier(LogisticRegression(), cv=cv).fit(*rare)


@pytest.mark.parametrize(("rate", "gap", "n"), [(0.5, 2, 500), (0.1, 2, 2000), (0.05, 4, 2000)])
def test_threshold_std_is_the_spread_over_fresh_data(rate, gap, n):
    rng = np.random.default_rng(0)
    found, claimed = [], []
    for _ in range(150):
        y = rng.random(n) < rate
        score = rng.normal(size=n) + gap * y
        found.append(maximize_empirical_f(y, score).threshold)
        claimed.append(threshold_std(y, score, rng))
    assert np.mean(claimed) == pytest.approx(np.std(found), rel=0.3)


def test_rows_that_are_never_held_out_do_not_tune(rare):
    X, y = rare
    later = TimeSeriesSplit(3)
    fitted = ThresholdFClassifier(LogisticRegression(), cv=later).fit(X, y)
    rows = np.concatenate([test for _, test in later.split(X)])
    scores = [
        LogisticRegression().fit(X[train], y[train]).decision_function(X[test])
        for train, test in later.split(X)
    ]
    want = maximize_empirical_f(y[rows], np.concatenate(scores))
    assert fitted.log_odds_threshold_ == pytest.approx(want.threshold)


@pytest.mark.parametrize("share", [0.25, 0.4, 0.75])
@pytest.mark.parametrize("guaranteed", [False, True])
def test_a_share_of_the_rows_is_unseen_by_the_model_that_predicts(rare, share, guaranteed):
    """One meaning, with and without a guarantee, in every classifier."""
    X, y = rare
    limits = {"constraints": {"min_recall": 0.3}, "confidence_level": 0.8} if guaranteed else {}
    fitted = ThresholdFClassifier(LogisticRegression(), cv=share, **limits).fit(X, y)
    ((train, held_out),) = ShuffleSplit(1, test_size=share, random_state=0).split(X)
    model = LogisticRegression().fit(X[train], y[train])
    options = {"smoothing": 50}
    if guaranteed:
        options = {"min_recall": 0.3, "confidence_level": 0.8}
    want = maximize_empirical_f(y[held_out], model.decision_function(X[held_out]), **options)
    assert len(held_out) == round(share * len(y))
    assert fitted.log_odds_threshold_ == pytest.approx(want.threshold)
    assert fitted.estimators_[0].coef_ == pytest.approx(model.coef_)
    if guaranteed:
        chosen = AutoFClassifier(LogisticRegression(), cv=share, **limits).fit(X, y).classifier_
        assert chosen.estimators_[0].coef_ == pytest.approx(model.coef_)
    calibrated = ExpectedFClassifier(LogisticRegression(), cv=share).fit(X, y)
    assert calibrated.estimators_[0].coef_ == pytest.approx(model.coef_)


def test_rows_held_out_twice_are_refused(rare):
    X, y = rare
    with pytest.raises(ValueError, match="cv must hold out every row at most once, row"):
        ThresholdFClassifier(LogisticRegression(), cv=ShuffleSplit(3, random_state=0)).fit(X, y)


@pytest.mark.parametrize("average", ["micro", "samples"])
def test_labels_may_share_the_threshold_of_the_average_that_counts(average):
    X, Y = make_multilabel_classification(300, n_classes=4, random_state=0)
    base = LogisticRegression()
    fitted = ThresholdFClassifier(base, average=average, cv=None).fit(X, Y)
    assert len(set(fitted.threshold_)) == 1
    score = fitted.decision_function(X)
    chosen = score >= np.unique(score)[:, None, None]
    axes = (1, 2) if average == "micro" else 2
    tp, both = (chosen & (Y == 1)).sum(axis=axes), (chosen * 1 + Y).sum(axis=axes)
    reached = (2 * tp / np.maximum(both, 1)).reshape(len(chosen), -1).mean(axis=1)
    found = f1_score(Y, fitted.predict(X), average=average, zero_division=0)
    assert found == pytest.approx(reached.max(), abs=1e-14)
    assert fitted.f_ == pytest.approx(found)
    with pytest.raises(ValueError, match=f"average='{average}' is for multilabel targets"):
        ThresholdFClassifier(LogisticRegression(), average=average).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="average must be 'macro'"):
        ThresholdFClassifier(
            base, average=average, constraints={"min_recall": 0.5}, confidence_level=0.9
        ).fit(X, Y)


MODELS = {
    "logistic": LogisticRegression(),
    "unregularized": LogisticRegression(C=np.inf, max_iter=5000),
    "naive Bayes": GaussianNB(),
    "forest": RandomForestClassifier(20, random_state=0),
    "tree": DecisionTreeClassifier(random_state=0),
    "boosting": AdaBoostClassifier(n_estimators=10, random_state=0),  # another link than logistic
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
}


@pytest.mark.parametrize("cv", [3, 0.3, None])
@pytest.mark.parametrize("name", MODELS)
def test_the_threshold_is_on_the_scale_of_predict_proba(rare, name, cv):
    X, y = rare
    fitted = ThresholdFClassifier(MODELS[name], cv=cv).fit(X[:500], y[:500])
    assert fitted.response_method_ == "predict_proba"
    selected = fitted.predict_proba(X)[:, 1] >= fitted.threshold_
    assert np.array_equal(selected, fitted.predict(X) == 1)
    words = ThresholdFClassifier(MODELS[name], cv=cv, pos_label="bad")
    words.fit(X[:500], np.where(y[:500] == 1, "bad", "ok"))
    selected = words.predict_proba(X)[:, 0] >= words.threshold_
    assert np.array_equal(selected, words.predict(X) == "bad")


@pytest.mark.parametrize("measure", ["f1", "f0.1", "mcc"])
def test_saturated_probabilities_are_thresholded_on_log_odds(measure):
    """Copies of a column make naive Bayes so sure that p rounds to 1, and log-odds decide."""
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.3
    X = np.repeat(rng.normal(size=(2000, 1)) + y[:, None], 400, axis=1)
    fitted = ThresholdFClassifier(GaussianNB(), measure=measure).fit(X, y)
    proba, log_odds = (
        fitted.predict_proba(X)[:, 1],
        np.diff(fitted.estimators_[0].predict_joint_log_proba(X))[:, 0],
    )
    assert np.mean(proba == 1.0) > 0.1
    assert np.array_equal(log_odds >= fitted.log_odds_threshold_, fitted.predict(X))
    if fitted.log_odds_threshold_ > 25:
        assert np.isnan(fitted.threshold_)
        assert np.isnan(fitted.threshold_std_)
    else:
        assert np.array_equal(proba >= fitted.threshold_, fitted.predict(X))
    both = np.column_stack([y, np.arange(2000) % 3 == 0])  # a label that saturates beside another
    labels = ThresholdFClassifier(GaussianNB(), measure=measure).fit(X, both)
    on_proba = ~np.isnan(labels.threshold_)
    selected = labels.predict_proba(X) >= labels.threshold_
    assert np.array_equal(selected[:, on_proba], labels.predict(X)[:, on_proba] == 1)


@pytest.mark.parametrize("constraint", [{"min_precision": 1.0}, {"max_selected_rate": 0.0}])
def test_an_empty_selection_stays_empty_on_probabilities(rare, constraint):
    X, y = rare
    model = ThresholdFClassifier(LogisticRegression(), cv=None, constraints=constraint).fit(X, y)
    predicted = model.predict(X) == 1
    assert np.array_equal(model.predict_proba(X)[:, 1] >= model.threshold_, predicted)
    score = model.estimators_[0].decision_function(X)
    assert np.array_equal(score >= model.log_odds_threshold_, predicted)


def test_reversed_classes_are_noticed():
    X, y = make_classification(300, weights=[0.8], class_sep=2, random_state=0)

    class Reversed(LogisticRegression):
        def decision_function(self, X):
            return -super().decision_function(X)

    with pytest.warns(UserWarning, match="threshold selects nearly every row .* lower scores"):
        ThresholdFClassifier(Reversed()).fit(X, y)
    Y = np.column_stack([1 - y, y])
    with pytest.warns(UserWarning, match="threshold of 0, 1 selects nearly every row"):
        ThresholdFClassifier(Reversed()).fit(X, Y)
    ThresholdFClassifier(LogisticRegression()).fit(X[:, :1] * 0, y)  # no information at all
