import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import fbeta_score, jaccard_score

from argmaxf.measures import FBeta, Jaccard

labels = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30)


def counts(pairs):
    truth, predicted = np.array(pairs, dtype=int).T
    return (truth & predicted).sum(), predicted.sum(), truth.sum(), truth, predicted


@given(labels, st.floats(0.05, 20), st.sampled_from([0.0, 1.0]))
def test_equal_to_scikit_learn(pairs, beta, zero_division):
    t, k, s, truth, predicted = counts(pairs)
    ours = FBeta(beta).value(t, k, s, zero_division=zero_division)
    theirs = fbeta_score(truth, predicted, beta=beta, zero_division=zero_division)
    assert ours == pytest.approx(theirs, rel=1e-12)
    ours = Jaccard().value(t, k, s, zero_division=zero_division)
    assert ours == pytest.approx(jaccard_score(truth, predicted, zero_division=zero_division))


def test_zero_over_zero_is_the_callers_value_and_only_there():
    assert FBeta().value(0, 0, 0) == 0.0
    assert FBeta().value(0, 0, 0, zero_division=0.25) == 0.25
    assert FBeta().value(0, 0, 5, zero_division=1.0) == 0.0
    assert FBeta().value(0, 5, 0, zero_division=1.0) == 0.0
    assert Jaccard().value(0, 0, 0, zero_division=1.0) == 1.0


def test_arrays_broadcast():
    f = FBeta(2).value([0, 1, 2], [1, 2, 3], 3)
    np.testing.assert_allclose(f, [0, 5 / 14, 10 / 15])


@pytest.mark.parametrize("beta", [0, -1, float("nan"), float("inf"), "1", None])
def test_bad_beta_is_named(beta):
    with pytest.raises(ValueError, match=r"beta must be .*, got"):
        FBeta(beta).value(1, 1, 1)


@pytest.mark.parametrize("zero_division", [-0.1, 1.1, float("nan"), "warn"])
def test_bad_zero_division_is_named(zero_division):
    with pytest.raises(ValueError, match="zero_division must"):
        Jaccard().value(1, 1, 1, zero_division=zero_division)
