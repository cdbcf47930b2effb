"""The bounds against their formulas and simulation; the mixture against 40-digit arithmetic."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import multivariate_normal

from argmaxf.measures import FBeta
from argmaxf.theory import (
    GaussianMixture,
    deviation_bound,
    mean_kl,
    regret_bound,
    sample_size,
)

rates = st.floats(1e-4, 1.0)
betas = st.floats(0.1, 10.0)
etas = st.floats(1e-6, 0.9)


@given(st.integers(1, 10**9), rates, betas, etas)
def test_lemma_2_is_its_formula(n, rate, beta, eta):
    r = math.sqrt(math.log(6 / eta) / (2 * n))
    bound = deviation_bound(n, rate, beta, eta)
    if r < beta**2 * rate / (2 * (1 + beta**2)):
        # the paper's own consequence: below half the limit the bound is at most 6(1+β²)r/(β²π₁)
        slack = beta**2 * rate - 2 * (1 + beta**2) * r
        assert bound.value == pytest.approx(3 * (1 + beta**2) * r / slack, rel=1e-9)
        if r < beta**2 * rate / (4 * (1 + beta**2)):
            assert bound.value <= 6 * (1 + beta**2) * r / (beta**2 * rate) * (1 + 1e-12)
        assert bound.reason == ""
    else:
        assert bound.value == math.inf
        assert f"n = {n} is too small" in bound.reason


@given(st.integers(1, 10**9), st.integers(1, 10**4), rates, betas, etas)
def test_theorem_3_is_its_formula(n, d, rate, beta, eta):
    bound = regret_bound(n, d, rate, beta, eta)
    limit = beta**2 * rate / (2 * (1 + beta**2))
    if 2 * n < d:
        assert bound.value == math.inf
        return
    r = math.sqrt((math.log(12 / eta) + d * math.log(2 * math.e * n / d)) / n)
    expected = 3 * r / (limit - r) if r < limit else math.inf
    assert bound.value == pytest.approx(expected, rel=1e-6)
    assert bool(bound.reason) == (bound.value == math.inf)


@given(st.floats(1e-3, 1.0), st.floats(0.01, 1.0), betas, st.sampled_from([None, 1, 11, 500]))
def test_sample_size_is_the_smallest(accuracy, rate, beta, d):
    n = sample_size(accuracy, rate, beta, vc_dimension=d)

    def bound(n):
        if d is None:
            return deviation_bound(n, rate, beta).value
        return regret_bound(n, d, rate, beta).value

    assert bound(n) <= accuracy
    assert n == 1 or bound(n - 1) > accuracy


def test_where_lemma_2_begins():
    assert sample_size(math.inf, 0.05) == math.ceil(math.log(120) / (2 * 0.0125**2)) == 15320
    assert deviation_bound(15320, 0.05).reason == ""
    assert deviation_bound(15319, 0.05).reason != ""


def test_lemma_2_covers():
    mixture = GaussianMixture(D=1, S=2.0, positive_rate=0.3)
    rng = np.random.default_rng(3)
    bound = deviation_bound(5000, 0.3, eta=0.1)
    limit = mixture.fbeta(0.4)
    off = []
    for _ in range(200):
        X, y = mixture.sample(5000, rng)
        s = mixture.posterior(X) > 0.4
        off.append(abs(FBeta().value((s & (y == 1)).sum(), s.sum(), y.sum()) - limit))
    assert 0.005 < np.quantile(off, 0.9) < bound.value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: deviation_bound(0, 0.5), "n must be a whole number of at least 1, got 0"),
        (lambda: deviation_bound(10.5, 0.5), "n must be a whole number of at least 1, got 10.5"),
        (lambda: deviation_bound(10, 0.0), r"positive_rate must lie in \(0, 1\], got 0.0"),
        (lambda: deviation_bound(10, 0.5, eta=1.0), r"eta must lie in \(0, 1\), got 1.0"),
        (lambda: deviation_bound(10, 0.5, beta=-1), "beta must be positive and finite, got -1"),
        (lambda: regret_bound(10, 0, 0.5), "vc_dimension must be a whole number"),
        (lambda: sample_size(0.0, 0.5), "accuracy must be positive, got 0.0"),
        (lambda: GaussianMixture(S=-1), "S must be finite and not negative, got -1"),
        (lambda: GaussianMixture(D=0), "D must be a whole number of at least 1, got 0"),
        (lambda: GaussianMixture(positive_rate=1), r"positive_rate must lie in \(0, 1\), got 1"),
        (lambda: mean_kl([0.5], [1.5]), r"assumed must be finite and in \[0, 1\], got 1.5"),
        (lambda: mean_kl([0.5], [0.5, 0.5]), "must have one shape"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def exact_optimum(S, rate, beta):
    """Maximize eq. 2 over the cut t with 40 digits."""
    with mpmath.workdps(40):
        S, rate, b2 = mpmath.mpf(S), mpmath.mpf(rate), mpmath.mpf(beta) ** 2

        def f(t):
            p11 = rate * mpmath.ncdf(S / 2 - t)
            return (1 + b2) * p11 / (b2 * rate + p11 + (1 - rate) * mpmath.ncdf(-S / 2 - t))

        start = max(np.linspace(-30, 30, 241), key=f)
        return f(mpmath.findroot(lambda t: mpmath.diff(f, t), start))


@pytest.mark.parametrize("S", [0.4, 2.0, 4.0, 6.0])
@pytest.mark.parametrize("rate", [0.001, 0.05, 0.5, 0.9])
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_optimum_against_40_digits(S, rate, beta):
    best = GaussianMixture(S=S, positive_rate=rate).optimum(beta)
    assert best.fbeta == pytest.approx(float(exact_optimum(S, rate, beta)), rel=1e-10)
    assert best.threshold == pytest.approx(best.fbeta / (1 + beta**2), rel=1e-14)


@given(st.floats(0.0, 10.0), st.floats(1e-5, 0.999), betas, st.floats(0.0, 1.0))
def test_no_threshold_beats_the_optimum(S, rate, beta, threshold):
    mixture = GaussianMixture(S=S, positive_rate=rate)
    best = mixture.optimum(beta)
    assert mixture.fbeta(threshold, beta) <= best.fbeta * (1 + 1e-12)
    if S > 0.01:
        assert mixture.fbeta(best.threshold, beta) == pytest.approx(best.fbeta, rel=1e-9)


@given(st.floats(0.0, 6.0), st.floats(0.01, 0.99), st.floats(0.001, 0.999))
def test_confusion_is_a_distribution(S, rate, threshold):
    p11, p10, p01, p00 = GaussianMixture(S=S, positive_rate=rate).confusion(threshold)
    assert min(p11, p10, p01, p00) >= 0
    assert p11 + p10 == pytest.approx(rate)
    assert p11 + p10 + p01 + p00 == pytest.approx(1)


def test_the_papers_theory_column():
    values = [
        100 * GaussianMixture(S=s, positive_rate=rate).optimum().fbeta
        for s, rate in [(4, 0.5), (0.4, 0.5), (4, 0.05)]
    ]
    assert [math.floor(100 * v) / 100 for v in values] == [97.72, 66.88, 91.73]


def test_equal_centres_predict_everything():
    best = GaussianMixture(S=0.0, positive_rate=0.3).optimum()
    assert best.fbeta == pytest.approx(0.6 / 1.3)


def test_posterior_is_bayes_rule():
    mixture = GaussianMixture(D=3, S=1.5, O=2.0, positive_rate=0.2)
    X, _ = mixture.sample(50, seed=1)
    one = np.full(3, 3.5 / math.sqrt(12))
    zero = np.full(3, 0.5 / math.sqrt(12))
    joint = 0.2 * multivariate_normal(one).pdf(X), 0.8 * multivariate_normal(zero).pdf(X)
    np.testing.assert_allclose(mixture.posterior(X), joint[0] / sum(joint), rtol=1e-10)
    np.testing.assert_allclose(expit(mixture.log_odds(X)), mixture.posterior(X))


def test_sample_has_the_moments_and_repeats():
    mixture = GaussianMixture(D=4, S=3.0, O=1.0, positive_rate=0.3)
    X, y = mixture.sample(40_000, seed=0)
    assert y.mean() == pytest.approx(0.3, abs=0.01)
    np.testing.assert_allclose(X[y == 1].mean(axis=0), 4 / math.sqrt(16), atol=0.04)
    np.testing.assert_allclose(X[y == 0].mean(axis=0), -2 / math.sqrt(16), atol=0.04)
    np.testing.assert_allclose(np.cov(X[y == 1].T), np.eye(4), atol=0.06)
    again, _ = mixture.sample(40_000, seed=0)
    np.testing.assert_array_equal(X, again)


def test_offset_only_moves_the_points():
    near, far = GaussianMixture(), GaussianMixture(O=50.0)
    (X, y), (moved, same) = near.sample(100, seed=5), far.sample(100, seed=5)
    np.testing.assert_array_equal(y, same)
    np.testing.assert_allclose(near.posterior(X), far.posterior(moved), rtol=1e-9)


def test_mean_kl_is_the_definition():
    p, q = np.array([0.0, 0.3, 1.0]), np.array([0.2, 0.6, 0.9])
    by_hand = (
        math.log(1 / 0.8) + 0.3 * math.log(0.5) + 0.7 * math.log(0.7 / 0.4) - math.log(0.9)
    ) / 3
    assert mean_kl(p, q) == pytest.approx(by_hand)
    assert mean_kl([0.5], [0.0]) == math.inf
