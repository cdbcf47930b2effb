"""Pipelines with one model per label: steps that ignore the target are fitted once."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler, TargetEncoder
from sklearn.utils import all_estimators

from argmaxf import ExpectedFClassifier, JointFClassifier, ThresholdFClassifier
from argmaxf.estimators.scores import ignores_target


class Unknown(TransformerMixin, BaseEstimator):
    """A transformer of which nothing is known: it may look at y."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X

    def __sklearn_is_fitted__(self):
        return True


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    Y = (X[:, :4] + rng.normal(size=(300, 4)) > 1).astype(int)
    return X, Y, rng.normal(size=(100, 6))


CLASSIFIERS = [ThresholdFClassifier, ExpectedFClassifier, JointFClassifier]


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_shared_steps_change_nothing(rows, classifier):
    X, Y, X_new = rows
    shared = make_pipeline(StandardScaler(), PCA(4), LogisticRegression())
    apart = make_pipeline(Unknown(), StandardScaler(), PCA(4), LogisticRegression())
    weight = np.random.default_rng(1).random(300) + 0.5
    for weights in ({}, {"sample_weight": weight}):
        one = classifier(shared).fit(X, Y, **weights)
        other = classifier(apart).fit(X, Y, **weights)
        assert np.array_equal(one.predict(X_new), other.predict(X_new))
        assert np.array_equal(one.predict_proba(X_new), other.predict_proba(X_new))
        both = zip(one.estimators_, other.estimators_, strict=True)
        for mine, theirs in both:
            assert np.array_equal(mine.predict_proba(X_new), theirs.predict_proba(X_new))


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_vectorizer_is_fitted_once_for_each_fold(monkeypatch, classifier):
    fits = []
    fit_transform = TfidfVectorizer.fit_transform
    monkeypatch.setattr(
        TfidfVectorizer,
        "fit_transform",
        lambda self, X, y=None: fits.append(1) or fit_transform(self, X, y),
    )
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 5)) < 0.4).astype(int)
    texts = [" ".join(f"w{i} w{rng.integers(9)}" for i in np.flatnonzero(y)) + " the" for y in Y]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    classifier(model).fit(texts, Y).predict(texts)
    assert len(fits) <= 6  # five folds and all rows, for any number of labels


def test_supervised_steps_are_fitted_for_each_label(rows):
    X, Y, _ = rows
    model = make_pipeline(StandardScaler(), SelectKBest(k=1), LogisticRegression())
    fitted = ThresholdFClassifier(model).fit(X, Y).estimators_
    assert [each[1].get_support().argmax() for each in fitted] == [0, 1, 2, 3]
    assert len({id(each[0]) for each in fitted}) == 1


def test_a_label_without_positives_among_shared_steps(rows):
    X, Y, X_new = rows
    model = ThresholdFClassifier(make_pipeline(StandardScaler(), LogisticRegression()))
    with pytest.warns(UserWarning, match="never predicted: 1"):
        model.fit(X, Y * [1, 0, 1, 1])
    assert model.predict(X_new).any(axis=0).tolist() == [True, False, True, True]


@pytest.mark.parametrize(
    ("step", "known"),
    [
        ("passthrough", True),
        (CountVectorizer(), True),
        (HashingVectorizer(), True),
        (ColumnTransformer([("words", CountVectorizer(), 0), ("rest", "drop", [1])]), True),
        (ColumnTransformer([("a", "drop", [0])], remainder=TargetEncoder()), False),
        (FeatureUnion([("a", PCA()), ("b", Pipeline([("c", Unknown())]))]), False),
        (SelectKBest(), False),
        (TargetEncoder(), False),
        (LogisticRegression(), False),
    ],
    ids=str,
)
def test_which_steps_are_shared(step, known):
    assert ignores_target(step) is known


@pytest.mark.filterwarnings("ignore")  # of solvers that stop early
def test_no_known_transformer_of_scikit_learn_uses_the_target():
    rng = np.random.default_rng(0)
    X = rng.random((60, 5))
    one, other = X[:, 0] > 0.5, X[:, 1] > 0.5
    tried = 0
    for _, kind in all_estimators("transformer"):
        try:
            step = kind()
            if "random_state" in step.get_params():
                step.set_params(random_state=0)
            if not ignores_target(step) or isinstance(step, FunctionTransformer):
                continue
            found = [clone(step).fit(X, y).transform(X) for y in (one, other)]
        except (TypeError, ValueError, AttributeError):
            continue  # it needs other arguments or other rows
        first, second = (each.toarray() if hasattr(each, "toarray") else each for each in found)
        assert np.array_equal(first, second), step
        tried += 1
    assert tried > 20
