"""Soft F against its definition, its gradient in 40-digit arithmetic, and its optimum by search."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from argmaxf.empirical.soft_f import Objective, Scores, fit_soft_f, soft_f
from argmaxf.measures import FBeta, Jaccard


def problem(seed, n=40, d=3, rate=0.3):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < rate
    y[:2] = [True, False]
    return rng.normal(size=(n, d)) + y[:, None], y


def decision(score, threshold, sharpness):
    p = 1 / (1 + mpmath.exp(-score))
    if sharpness is None:
        return p
    delta = 1 / (1 + mpmath.exp(-threshold))
    return 1 / (1 + mpmath.exp(-sharpness * (p - delta)))


def objective_by_definition(parameters, X, y, weight, measure, alphas, sharpness):
    """-F + penalty, term by term, for parameters w, b and logit δ."""
    *w, b, threshold = parameters
    s = [decision(mpmath.fdot(w, row) + b, threshold, sharpness) for row in X.tolist()]
    t = mpmath.fsum(c * si for c, si, yi in zip(weight, s, y, strict=True) if yi)
    k = mpmath.fdot(weight, s)
    positives = mpmath.fsum(c for c, yi in zip(weight, y, strict=True) if yi)
    if measure == Jaccard():
        f = t / (k + positives - t)
    else:
        f = (1 + measure.beta**2) * t / (k + measure.beta**2 * positives)
    return mpmath.fdot(alphas, [v * v / 2 for v in (*w, b)]) - f


@given(
    seed=st.integers(0, 10_000),
    measure=st.just(Jaccard()) | st.floats(0.1, 10).map(FBeta),
    sharpness=st.none() | st.floats(0.5, 30),
    scale=st.sampled_from([0.1, 1.0, 10.0]),
)
@settings(max_examples=25, deadline=None)
def test_gradient_in_40_digits(seed, measure, sharpness, scale):
    X, y = problem(seed, n=6, d=2)
    rng = np.random.default_rng(seed)
    weight, parameters = rng.uniform(0.1, 3, 6), scale * rng.normal(size=4)
    objective = Objective(
        Scores(X, True),
        y * 1.0,
        weight,
        measure,
        alpha=0.3,
        intercept_alpha=0.7,
        sharpness=sharpness,
    )
    value, gradient = objective(parameters[: objective.size])
    with mpmath.workdps(40):

        def f(*v):
            return objective_by_definition(
                v, X, y, weight.tolist(), measure, (0.3, 0.3, 0.7), sharpness
            )

        point = [mpmath.mpf(float(v)) for v in parameters]
        assert value == pytest.approx(float(f(*point)), rel=1e-12, abs=1e-14)
        for i in range(objective.size):
            slope = mpmath.diff(f, point, tuple(int(i == j) for j in range(4)))
            assert gradient[i] == pytest.approx(float(slope), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("sharpness", [None, 8.0])
def test_gradient_equals_finite_differences(form, sharpness):
    X, y = problem(0)
    objective = Objective(
        Scores(form(X), True), y * 1.0, np.ones(40), FBeta(2.0), 0.1, 0.0, sharpness
    )
    rng = np.random.default_rng(1)
    for _ in range(5):
        point, step = rng.normal(size=objective.size), 1e-6
        _, gradient = objective(point)
        for i in range(objective.size):
            e = step * np.eye(objective.size)[i]
            central = (objective(point + e)[0] - objective(point - e)[0]) / (2 * step)
            assert gradient[i] == pytest.approx(central, abs=1e-8)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(1, 9)), min_size=1))
def test_hard_decisions_give_f_itself(rows):
    y, s, c = np.array(rows, dtype=float).T
    y[0] = 1.0
    value, _ = soft_f(y, s, c, measure=FBeta(1.7))
    counted = FBeta(1.7).value((c * y * s).sum(), (c * s).sum(), (c * y).sum())
    assert value == pytest.approx(counted, rel=1e-13)


def test_steep_sigmoid_approaches_f_of_the_rule():
    X, y = problem(3)
    objective = Objective(Scores(X, False), y * 1.0, np.ones(40), sharpness=1e7)
    w, threshold = np.array([1.0, -0.5, 2.0]), 0.4
    selected = X @ w > threshold
    f = FBeta().value((selected & y).sum(), selected.sum(), y.sum())
    assert -objective(np.append(w, threshold))[0] == pytest.approx(f, abs=1e-9)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("alpha", [0.01, 0.1])
def test_optimum_equals_a_search_over_the_line(beta, alpha):
    X, y = problem(5, n=60, d=1)
    found = fit_soft_f(X, y, beta=beta, alpha=alpha, fit_intercept=False, tol=1e-8)
    grid = np.linspace(-30, 30, 60_001)
    p = 1 / (1 + np.exp(-X @ grid[None, :]))
    f = (1 + beta**2) * (y @ p) / (p.sum(axis=0) + beta**2 * y.sum())
    best = grid[np.argmax(f - alpha / 2 * grid**2)]
    assert found.coef[0] == pytest.approx(best, abs=2e-3)
    assert found.value == pytest.approx(np.interp(found.coef[0], grid, f), abs=1e-7)


@pytest.mark.parametrize("sharpness", [None, 5.0])
def test_no_slope_is_left(sharpness):
    X, y = problem(7, n=200)
    found = fit_soft_f(X, y, alpha=0.01, sharpness=sharpness, tol=1e-7)
    objective = Objective(Scores(X, True), y * 1.0, np.ones(200), alpha=0.01, sharpness=sharpness)
    at = np.r_[found.coef, found.intercept, [] if sharpness is None else found.threshold]
    value, gradient = objective(at)
    assert found.converged
    assert np.abs(gradient).max() < 1e-7
    for step in np.random.default_rng(0).normal(scale=0.01, size=(50, len(at))):
        assert objective(at + step)[0] > value


def test_weights_are_repetitions_and_sparse_is_dense():
    X, y = problem(8, n=80)
    copies = np.random.default_rng(0).integers(0, 4, 80)
    options = {"tol": 1e-10, "sharpness": 6.0}
    weighted = fit_soft_f(X, y, sample_weight=copies, **options)
    repeated = fit_soft_f(np.repeat(X, copies, axis=0), np.repeat(y, copies), **options)
    thin = fit_soft_f(sparse.csr_array(X), y, sample_weight=copies, **options)
    for other in (repeated, thin):
        np.testing.assert_allclose(weighted.coef, other.coef, rtol=1e-5)
        assert weighted.threshold == pytest.approx(other.threshold, rel=1e-5)


def test_penalized_intercept_is_a_column_of_ones():
    X, y = problem(9)
    inside = fit_soft_f(X, y, alpha=0.05, penalize_intercept=True, tol=1e-9)
    dummy = fit_soft_f(np.c_[X, np.ones(40)], y, alpha=0.05, fit_intercept=False, tol=1e-9)
    free = fit_soft_f(X, y, alpha=0.05, tol=1e-9)
    np.testing.assert_allclose([*inside.coef, inside.intercept], dummy.coef, rtol=1e-8)
    assert dummy.intercept == 0.0
    assert free.value - 0.025 * free.coef @ free.coef > inside.value - 0.025 * (
        inside.coef @ inside.coef
    )


def test_one_positive_in_many_is_still_climbed():
    """Soft F starts at 2e-4 there, with slopes below any absolute tolerance one would choose."""
    rng = np.random.default_rng(0)
    X, y = 0.1 * rng.normal(size=(10_000, 5)), np.arange(10_000) == 17
    X[17] = 1.0
    found = fit_soft_f(X, y, alpha=1e-6)
    assert found.value > 0.9
    assert np.argmax(X @ found.coef) == 17


def test_too_few_steps_are_admitted():
    X, y = problem(1)
    assert not fit_soft_f(X, y, max_iter=1).converged
    assert fit_soft_f(X, y, max_iter=1).n_iter == 1


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        ({"alpha": -1}, "alpha must be finite and not negative, got -1"),
        ({"sharpness": 0}, "sharpness must be positive and finite, got 0"),
        ({"tol": "x"}, "tol must be a real number, got 'x'"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1, got 0"),
        ({"beta": -2.0}, "beta must be positive and finite, got -2.0"),
    ],
)
def test_bad_options_are_named(bad, rule):
    X, y = problem(1)
    with pytest.raises(ValueError, match=rule):
        fit_soft_f(X, y, **bad)
