"""Expected F of any set, and of every top-k set."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from argmaxf import expected_f, expected_f_curve, maximize_expected_f
from argmaxf.expected.quadrature import reciprocal_nodes
from tests.judges import BETAS, curve_40_digits, definition, families

probabilities = st.one_of(
    st.sampled_from([0.0, 0.5, 1.0, 1 - 1e-12, 1e-12, 1e-6]), st.floats(0.0, 1.0)
)
sets = st.lists(st.tuples(probabilities, st.booleans()), min_size=1, max_size=7)


@given(st.floats(1e-3, 1e9), st.floats(1.0, 1e9), st.floats(0.0, 1.0))
def test_nodes_give_the_reciprocal_and_its_square(low, ratio, place):
    u, weight = reciprocal_nodes(low, low * ratio)
    x = low * ratio**place
    assert abs(x * math.fsum(weight * np.exp(-u * x)) - 1) < 2e-14
    assert abs(x * x * math.fsum(weight * u * np.exp(-u * x)) - 1) < 4e-12


@given(
    sets,
    st.sampled_from(BETAS),
    st.sampled_from([0.0, 0.5, 1.0]),
)
@settings(max_examples=150, deadline=None)
def test_equal_to_the_sum_over_all_label_vectors(pairs, beta, zero_division):
    p, selected = zip(*pairs, strict=True)
    mean, std = definition(p, selected, beta, zero_division=zero_division)
    ours = expected_f(p, selected, beta=beta, zero_division=zero_division)
    assert ours.mean == pytest.approx(float(mean), rel=1e-12, abs=1e-300)
    # F itself is known to 1e-14, and so is a spread of zero
    assert ours.std == pytest.approx(float(std), rel=1e-9, abs=2e-14)


@pytest.mark.parametrize("beta", [1e-9, 1e-6, 1e-3, 1e3, 1e5, 1e6, 1e9])
@pytest.mark.parametrize("p", [[0.9, 0.2, 0.55, 0.3], [1.0, 0.5, 1e-3], [1 - 1e-9, 1.0, 0.7]])
def test_extreme_beta_is_as_exact(p, beta):
    for selected in ([True] * len(p), [True] + [False] * (len(p) - 1)):
        mean, std = definition(p, selected, beta)
        ours = expected_f(p, selected, beta=beta)
        assert abs(ours.mean / mean - 1) < 1e-12
        assert ours.std == pytest.approx(float(std), rel=1e-9, abs=2e-14)
    truth = curve_40_digits(p, beta)
    decision = maximize_expected_f(p, beta=beta)
    assert truth[decision.k] == max(truth)
    assert abs(decision.expected / max(truth) - 1) < 1e-12
    std = float(definition(p, decision.selected, beta)[1])
    assert decision.std == pytest.approx(std, rel=1e-9, abs=2e-14)


def test_beta_beyond_double_precision_is_refused():
    with pytest.raises(
        ValueError, match=r"beta must lie between 1e-09 and 1e\+09, got 1000000000000.0"
    ):
        expected_f([0.5], [True], beta=1e12)


@pytest.mark.parametrize("beta", BETAS)
def test_spread_of_the_optimum_equals_the_definition_at_n_12(beta):
    p = np.random.default_rng(0).beta(0.5, 2, 12)
    decision = maximize_expected_f(p, beta=beta)
    mean, std = definition(p, decision.selected, beta)
    assert abs(decision.expected / mean - 1) < 1e-12
    assert abs(decision.std / std - 1) < 1e-9


@pytest.mark.parametrize("beta", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", families())
def test_whole_curve_equals_40_digits(name, beta):
    p = families()[name]
    truth = curve_40_digits(p, beta, zero_division=0.5)
    curve = expected_f_curve(p, beta=beta, zero_division=0.5)
    worst = max(abs(float(c) - t) / t for c, t in zip(curve, truth, strict=True) if t > 1e-300)
    assert worst < 1e-12


def test_equal_probabilities_are_binomial():
    """A closed form at a size no sum over states reaches: all n selected, F = (1+β²)S/(n+β²S)."""
    n, p, beta = 50_000, 0.037, 1.7
    s = np.arange(n + 1)
    f = (1 + beta**2) * s / (n + beta**2 * s)
    mass = binom.pmf(s, n, p)
    mean = math.fsum(mass * f)
    std = math.sqrt(math.fsum(mass * (f - mean) ** 2))
    ours = expected_f(np.full(n, p), np.ones(n, bool), beta=beta)
    assert ours.mean == pytest.approx(mean, rel=1e-12)
    assert ours.std == pytest.approx(std, rel=1e-9)
    assert expected_f_curve(np.full(n, p), beta=beta)[-1] == pytest.approx(mean, rel=1e-12)


def test_large_sets_agree_with_small_ones_by_simulation_free_means():
    """Beside any set, items that cannot be positive and are not selected change nothing."""
    rng = np.random.default_rng(2)
    p, selected = rng.random(30), rng.random(30) < 0.5
    few = expected_f(p, selected, beta=1.5)
    many = expected_f(np.r_[p, np.zeros(20_000)], np.r_[selected, np.zeros(20_000, bool)], beta=1.5)
    assert many == pytest.approx(few, rel=1e-12)


def test_selecting_impossible_items_costs():
    p = np.r_[np.full(10, 0.5), np.zeros(10_000)]
    some = expected_f(p, p > 0).mean
    all_ = expected_f(p, np.ones(p.size)).mean
    assert all_ == pytest.approx(float(definition_of_all(10, 0.5, p.size)), rel=1e-12)
    assert all_ < some


def definition_of_all(n, p, k):
    s = np.arange(n + 1)
    return math.fsum(binom.pmf(s, n, p) * 2 * s / (k + s))


def test_curve_of_a_million_stays_in_memory():
    import tracemalloc

    p = np.random.default_rng(3).beta(0.5, 5, 10**6)
    expected_f_curve(p[:100])  # compile
    tracemalloc.start()
    try:
        curve = expected_f_curve(p)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200e6
    decision = maximize_expected_f(p)
    assert curve[decision.k] == pytest.approx(curve.max(), rel=1e-13)


@pytest.mark.parametrize(
    ("selected", "message"),
    [
        ([True], r"shape of p, \(2,\), got \(1,\)"),
        ([0.3, 1], "selected must be booleans, got .*0.3.* at position 0"),
        (["a", "b"], "selected must hold real numbers"),
    ],
)
def test_bad_selections_are_named(selected, message):
    with pytest.raises(ValueError, match=message):
        expected_f([0.1, 0.2], selected)


def test_bad_probabilities_are_named():
    with pytest.raises(ValueError, match=r"in \[0, 1\], got 1.5 at position 1"):
        expected_f([0.1, 1.5], [True, True])
    with pytest.raises(ValueError, match="one dimension, got 2"):
        expected_f_curve([[0.1]])
    with pytest.raises(ValueError, match="at least one"):
        expected_f_curve([])
