"""SVMperf: the separation step against all labellings, the optimum against other solvers."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.svm import SVC

from argmaxf.empirical.soft_f import Scores
from argmaxf.empirical.svmperf import (
    Planes,
    SeparationOracle,
    Violation,
    fit_margin_f,
    lay_planes,
    solve_simplex_qp,
)
from argmaxf.measures import FBeta

scored_labels = st.lists(
    st.tuples(st.booleans(), st.integers(-6, 6) | st.floats(-50, 50)), min_size=1, max_size=8
).filter(lambda rows: any(label for label, _ in rows))


def f_loss(y, share, weight, beta):
    selected = weight * share
    return 1.0 - FBeta(beta).value(selected @ y, selected.sum(), weight @ y)


def value(y, share, score, weight, beta):
    """Loss minus margin, as the definition has them, of a labelling (shares of each item)."""
    return f_loss(y, share, weight, beta) - (weight * (y - share)) @ score / weight.sum()


@given(scored_labels, st.sampled_from([0.3, 1.0, 2.0, 5.0]), st.sampled_from([0.01, 1.0]))
@settings(deadline=None, max_examples=300)
def test_most_violated_of_all_labellings(rows, beta, scale):
    y, score = np.array([r[0] for r in rows]), scale * np.array([r[1] for r in rows], float)
    n, ones = len(y), np.ones(len(y))
    best = max(value(y, np.array(t), score, ones, beta) for t in product([0, 1], repeat=n))
    found = SeparationOracle(y, ones, beta=beta)(score)
    assert found.over(score) == pytest.approx(best, abs=1e-9)
    share = y - n * found.residual
    assert set(np.round(share, 9)) <= {0.0, 1.0}
    assert found.loss == pytest.approx(f_loss(y, share, ones, beta), abs=1e-12)


@given(scored_labels, st.data(), st.sampled_from([0.5, 1.0, 3.0]))
@settings(deadline=None)
def test_whole_weights_are_repetitions(rows, data, beta):
    y, score = np.array([r[0] for r in rows]), np.array([r[1] for r in rows], float)
    copies = np.array(data.draw(st.lists(st.integers(1, 4), min_size=len(y), max_size=len(y))))
    weighted = SeparationOracle(y, copies * 1.0, beta=beta)(score)
    y2, score2 = np.repeat(y, copies), np.repeat(score, copies)
    repeated = SeparationOracle(y2, np.ones(len(y2)), beta=beta)(score2)
    assert weighted.over(score) == pytest.approx(repeated.over(score2), abs=1e-9)


@given(scored_labels, st.data())
@settings(deadline=None, max_examples=50)
def test_other_weights_may_split_an_item(rows, data):
    y, score = np.array([r[0] for r in rows]), np.array([r[1] for r in rows], float)
    weight = np.array(data.draw(st.lists(st.floats(0.1, 2.9), min_size=len(y), max_size=len(y))))
    weight[0] = 0.55
    found = SeparationOracle(y, weight)(score)
    assert found.over(score) == pytest.approx(
        value(y, y - found.residual * weight.sum() / weight, score, weight, 1.0), abs=1e-9
    )
    rng = np.random.default_rng(0)
    for share in [*rng.random((100, len(y))), *rng.integers(0, 2, (100, len(y)))]:
        assert found.over(score) >= value(y, share, score, weight, 1.0) - 1e-9


def problem(seed, n=60, d=4, rate=0.3):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < rate
    y[:2] = [True, False]
    return rng.normal(size=(n, d)) + y[:, None], y


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_with_error_rate_as_loss_it_is_the_ordinary_svm(C):
    """The same planes, another loss: libsvm must agree."""
    X, y = problem(0)
    X = X - X.mean(axis=0)
    sign, n = np.where(y, 1.0, -1.0), len(y)

    def error_rate(score):
        wrong = sign * score < 1
        return Violation(wrong.mean(), sign * wrong / n)

    best, gap, _ = lay_planes(Scores(X, False), error_rate, budget=C * n, tol=1e-6, max_iter=2000)

    def hinge(w):
        return 0.5 * w @ w + C * np.maximum(0, 1 - sign * (X @ w)).sum()

    assert best.objective == pytest.approx(hinge(best.w), rel=1e-12)
    assert gap <= 1e-6 * best.objective
    # libsvm has a free intercept; mirrored data pin it to 0 and count every item twice
    svm = SVC(kernel="linear", C=C / 2, tol=1e-8).fit(np.r_[X, -X], np.r_[sign, -sign])
    assert abs(svm.intercept_[0]) < 1e-5
    assert best.objective == pytest.approx(hinge(svm.coef_[0]), rel=1e-5)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_optimum_with_every_constraint_written_out(beta):
    """All 2ⁿ constraints in a general solver (n = 7), against planes laid one by one."""
    X, y = problem(3, n=7, d=2)
    labellings = np.array(list(product([0, 1], repeat=7)))
    losses = [f_loss(y, t, np.ones(7), beta) for t in labellings]
    margins = (y - labellings) @ np.c_[X, np.ones(7)] / 7

    def slack(v):
        return margins @ v[:3] + v[3] - losses

    full = minimize(
        lambda v: 0.5 * v[:3] @ v[:3] + 7 * v[3],
        np.array([0.0, 0.0, 0.0, 1.0]),
        jac=lambda v: np.append(v[:3], 7.0),
        constraints={"type": "ineq", "fun": slack, "jac": lambda v: np.c_[margins, np.ones(128)]},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert full.success
    found = fit_margin_f(X, y, beta=beta, tol=1e-7)
    assert found.converged
    assert found.objective == pytest.approx(full.fun, rel=1e-5)
    np.testing.assert_allclose([*found.coef, found.intercept], full.x[:3], atol=2e-3)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_gap_is_a_proof(C):
    """A rough answer's bounds hold for the fine answer."""
    X, y = problem(5, n=300)
    rough, fine = (fit_margin_f(X, y, C=C, tol=tol) for tol in (0.1, 1e-5))
    assert rough.gap <= 0.1 * rough.objective
    assert rough.objective - rough.gap <= fine.objective <= rough.objective * (1 + 1e-9)
    assert rough.n_iter < fine.n_iter


def test_objective_bounds_the_training_loss():
    X, y = problem(6, n=200)
    found = fit_margin_f(X, y)
    selected = X @ found.coef + found.intercept > 0
    slack = (found.objective - 0.5 * (found.coef @ found.coef + found.intercept**2)) / 200
    assert f_loss(y, selected, np.ones(200), 1.0) <= slack + 1e-12


def test_weights_are_repetitions_and_sparse_is_dense():
    X, y = problem(8, n=80)
    copies = np.random.default_rng(0).integers(1, 4, 80)
    weighted = fit_margin_f(X, y, sample_weight=copies, tol=1e-6)
    repeated = fit_margin_f(np.repeat(X, copies, axis=0), np.repeat(y, copies), tol=1e-6)
    thin = fit_margin_f(sparse.csr_matrix(X), y, sample_weight=copies, tol=1e-6)
    for other in (repeated, thin):
        assert weighted.objective == pytest.approx(other.objective, rel=2e-6)
        np.testing.assert_allclose(weighted.coef, other.coef, atol=1e-2)


def test_real_weights_train():
    X, y = problem(9, n=100)
    weight = np.random.default_rng(0).uniform(0.1, 2, 100)
    found = fit_margin_f(X, y, sample_weight=weight)
    assert found.converged
    scaled = fit_margin_f(X, y, sample_weight=2 * weight, C=0.5)
    assert scaled.objective == pytest.approx(found.objective, rel=2e-3)


def test_small_programs_by_hand():
    # one plane: a = min(1, gain / gram); a dependent second plane changes nothing
    assert solve_simplex_qp(np.array([[2.0]]), np.array([1.0])) == pytest.approx([0.5], abs=1e-6)
    assert solve_simplex_qp(np.array([[0.5]]), np.array([1.0])) == pytest.approx([1.0], abs=1e-6)
    a = solve_simplex_qp(np.full((2, 2), 2.0), np.array([1.0, 1.0]))
    assert a.sum() == pytest.approx(0.5, abs=1e-6)
    assert (a >= 0).all()


def test_the_higher_of_two_parallel_planes_counts():
    planes = Planes(budget=10.0)
    for loss in (0.5, 0.5, 1.0, 0.7):
        planes.add(np.array([1.0, 0.0]), loss)
    assert planes.losses == [0.5, 1.0]
    w, bound = planes.minimum()
    np.testing.assert_allclose(w, [1.0, 0.0], atol=1e-6)  # ½‖w‖² where w·g = 1
    assert bound == pytest.approx(0.5, abs=1e-6)


def test_too_few_planes_are_admitted_and_progress_is_said(capsys):
    X, y = problem(2, n=300, d=40)
    assert not fit_margin_f(X, y, max_iter=2).converged
    fit_margin_f(X, y, C=100.0, tol=1e-12, max_iter=50, verbose=True)
    assert "50 planes: objective" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        ({"C": 0}, "C must be positive and finite, got 0"),
        ({"tol": -1.0}, "tol must be positive and finite, got -1.0"),
        ({"max_iter": 1.5}, "max_iter must be a whole number of at least 1, got 1.5"),
    ],
)
def test_bad_options_are_named(bad, rule):
    X, y = problem(1)
    with pytest.raises(ValueError, match=rule):
        fit_margin_f(X, y, **bad)
