"""The parts all estimators share, through the smallest linear classifier made of them."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from argmaxf import SoftFClassifier, ThresholdFClassifier, compare
from argmaxf.empirical.soft_f import LinearModel
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.linear_f import LinearFClassifier


class MeanDifference(LinearFClassifier):
    """Scores by the line between the two class means."""

    def __init__(self, *, beta=1.0, pos_label=None):
        self.beta = beta
        self.pos_label = pos_label

    def _fit_label(self, X, y, weight):
        weight = np.ones(len(y)) if weight is None else weight
        sides = [np.asarray((weight * side) @ X) / (weight @ side) for side in (y, ~y)]
        return LinearModel(sides[0] - sides[1])


@pytest.mark.filterwarnings("ignore:y has one class only")
@parametrize_with_checks([MeanDifference()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.3
    return rng.normal(size=(200, 3)) + 2 * y[:, None], y


def test_strings_and_the_positive_class(blobs):
    X, y = blobs
    names = np.where(y, "fraud", "ok")
    last = MeanDifference().fit(X, names)
    first = MeanDifference(pos_label="fraud").fit(X, names)
    plain = MeanDifference().fit(X, y)
    assert np.array_equal(first.predict(X) == "fraud", plain.predict(X))
    assert set(last.predict(X)) == {"fraud", "ok"}
    # decision_function points to classes_[1] whatever the positive class, as scikit-learn has it
    assert np.array_equal(first.decision_function(X) > 0, first.predict(X) == "ok")


MISSING = {
    "boolean": pd.Series([True, False, pd.NA] * 10, dtype="boolean"),
    "text": pd.Series(["a", "b", pd.NA] * 10, dtype="string"),
    "objects": np.array(["a", "b", None] * 10, dtype=object),
    "two columns": pd.DataFrame(
        {"a": pd.array([True, False, pd.NA] * 10, dtype="boolean"), "b": [True, False, True] * 10}
    ),
}
LEARNERS = {
    "threshold": lambda X, y: ThresholdFClassifier(LogisticRegression()).fit(X, y),
    "soft F": lambda X, y: SoftFClassifier().fit(X, y),
    "compare": lambda X, y: compare(X, y, LogisticRegression()),
}


@pytest.mark.parametrize("learn", LEARNERS.values(), ids=LEARNERS)
@pytest.mark.parametrize("y", MISSING.values(), ids=MISSING)
def test_a_missing_label_is_named(y, learn):
    """Scikit-learn said that the boolean value of NA is ambiguous."""
    with pytest.raises(ValueError, match=r"y must hold a label everywhere, got (<NA>|None) at"):
        learn(np.zeros((30, 2)), y)


def test_unknown_positive_class_is_named(blobs):
    X, y = blobs
    with pytest.raises(ValueError, match=r"pos_label must be one of \[0, 1\], got 2"):
        MeanDifference(pos_label=2).fit(X, y.astype(int))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_indicator_equals_label_by_label(blobs, kind):
    X, y = blobs
    table = np.column_stack([y, X[:, 0] > 1, X[:, 1] > 0]).astype(int)
    together = MeanDifference().fit(X, kind(table)).predict(X)
    assert sparse.issparse(together) == (kind is not np.asarray)
    together = together.toarray() if sparse.issparse(together) else together
    apart = [MeanDifference().fit(X, column).predict(X) for column in table.T]
    assert np.array_equal(together, np.column_stack(apart))


def test_constant_labels_are_said_and_kept(blobs):
    X, y = blobs
    table = np.column_stack([y, 0 * y, 0 * y + 1])
    with (
        pytest.warns(UserWarning, match="no positives in training: never predicted: 1"),
        pytest.warns(UserWarning, match="nothing but positives in training: always predicted: 2"),
    ):
        fitted = MeanDifference().fit(X, table)
    predicted = fitted.predict(100 * X)
    assert not predicted[:, 1].any()
    assert predicted[:, 2].all()


def test_one_class_is_said_and_predicted(blobs):
    X, _ = blobs
    with pytest.warns(UserWarning, match="y has one class only, ham: it is always predicted"):
        fitted = MeanDifference().fit(X, ["ham"] * 200)
    assert set(fitted.predict(X)) == {"ham"}


def test_every_row_of_a_multiclass_target_gets_one_class(blobs):
    X, y = blobs
    three = np.where(y, "a", np.where(X[:, 0] > 0, "b", "c"))
    fitted = MeanDifference().fit(X, three)
    assert fitted.predict(X).shape == (200,)
    assert fitted.decision_function(X).shape == (200, 3)
    assert np.array_equal(
        fitted.classes_[fitted.decision_function(X).argmax(axis=1)], fitted.predict(X)
    )


def test_other_targets_are_refused():
    with pytest.raises(ValueError, match="got a multiclass-multioutput target"):
        Labels.of(np.array([[1, 2], [3, 1], [2, 2]]))
    with pytest.raises(ValueError, match="Unknown label type"):
        Labels.of([0.1, 0.2])
