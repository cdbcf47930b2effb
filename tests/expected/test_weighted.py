"""Expected F of items with values: the definition, equal weights, bounds, and bad input."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import fbeta_score

from argmaxf import maximize_empirical_f, maximize_expected_f, maximize_expected_weighted_f

BETAS = st.sampled_from([1e-9, 0.3, 1.0, 2.0, 40.0, 1e9])


def moments_of_every_set(p, v, beta, zero_division=0.0):
    """Mean and standard deviation of F for all sets, over all label vectors."""
    labels = np.array(list(itertools.product([0, 1], repeat=len(p))))
    mass = np.prod(np.where(labels, p, 1.0 - np.asarray(p)), axis=1)
    moments = {}
    for chosen in labels:
        numerator = (1.0 + beta**2) * (labels * chosen) @ v
        denominator = chosen @ v + beta**2 * (labels @ v)
        ratio = numerator / np.where(denominator > 0, denominator, 1.0)
        f = np.where(denominator > 0, ratio, zero_division)
        mean = mass @ f
        moments[tuple(chosen)] = mean, np.sqrt(mass @ (f - mean) ** 2)
    return moments


@st.composite
def weighted_sets(draw, most=8):
    n = draw(st.integers(1, most))
    probability = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1e-9, 0.5, 1 - 1e-9, 1.0]))
    p = draw(st.lists(probability, min_size=n, max_size=n))
    v = draw(st.lists(st.floats(1e-6, 1e6), min_size=n, max_size=n))
    return np.array(p), np.array(v)


@settings(max_examples=150, deadline=None)
@given(weighted_sets(), BETAS, st.sampled_from([0.0, 0.5, 1.0]))
def test_small_sets_are_the_best_of_all_by_the_definition(items, beta, zero_division):
    p, v = items
    moments = moments_of_every_set(p, v, beta, zero_division)
    best = max(mean for mean, _ in moments.values())
    decision = maximize_expected_weighted_f(p, v, beta=beta, zero_division=zero_division)
    mean, std = moments[tuple(decision.selected.astype(int))]
    assert decision.expected == pytest.approx(mean, rel=1e-11, abs=1e-13)
    assert mean == pytest.approx(best, rel=1e-11, abs=1e-13)
    assert decision.std == pytest.approx(std, abs=2e-6)  # the root of a difference of squares
    assert decision.gap == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_holds_beyond_the_sets_that_are_tried_one_by_one(seed):
    rng = np.random.default_rng(seed)
    p, v = rng.beta(0.5, 3, 13), rng.lognormal(0, 2, 13)
    beta = float(rng.choice([0.5, 1.0, 3.0]))
    best = max(mean for mean, _ in moments_of_every_set(p, v, beta).values())
    decision = maximize_expected_weighted_f(p, v, beta=beta)
    assert decision.expected <= best * (1 + 1e-11)
    assert decision.bound >= best * (1 - 1e-11)
    assert decision.gap <= 0.01 * best


@pytest.mark.parametrize("n", [1, 5, 300, 4000])
@pytest.mark.parametrize("beta", [0.2, 1.0, 5.0])
def test_equal_weights_give_the_decision_without_weights(n, beta):
    p = np.random.default_rng(n).beta(0.5, 4, n)
    plain = maximize_expected_f(p, beta=beta)
    for weight in (1.0, 1e-7, 1e12):
        decision = maximize_expected_weighted_f(p, np.full(n, weight), beta=beta)
        assert decision.k == plain.k
        np.testing.assert_array_equal(decision.selected, plain.selected)
        assert decision.expected == pytest.approx(plain.expected, rel=1e-12)
        assert decision.std == pytest.approx(plain.std, rel=1e-8)


def test_only_the_ratios_of_weights_matter():
    rng = np.random.default_rng(0)
    p, v = rng.beta(0.5, 4, 500), rng.lognormal(0, 1, 500)
    one, other = (maximize_expected_weighted_f(p, scale * v) for scale in (1.0, 1e-5))
    np.testing.assert_array_equal(one.selected, other.selected)
    assert one.expected == pytest.approx(other.expected, rel=1e-12)
    np.testing.assert_allclose(one.contribution, 1e-5 * other.contribution, rtol=1e-9)


def test_an_item_of_great_value_is_left_out_though_it_is_more_probable():
    p, v = [0.6, 0.6, 0.6, 0.62], [1.0, 1.0, 1.0, 9.0]
    moments = moments_of_every_set(p, np.array(v), 0.2)
    decision = maximize_expected_weighted_f(p, v, beta=0.2)
    assert decision.selected.tolist() == [bool(i) for i in max(moments, key=moments.get)]


def test_certain_labels_are_found():
    rng = np.random.default_rng(3)
    y, v = rng.random(2000) < 0.1, rng.lognormal(0, 1, 2000)
    decision = maximize_expected_weighted_f(y.astype(float), v)
    np.testing.assert_array_equal(decision.selected, y)
    assert decision.expected == pytest.approx(1.0, abs=1e-12)


def test_the_mean_of_weighted_f_over_drawn_labels_is_the_expected_one():
    rng = np.random.default_rng(4)
    p, v = rng.beta(0.5, 3, 400), rng.lognormal(0, 1, 400)
    decision = maximize_expected_weighted_f(p, v, beta=2.0)
    drawn = [
        fbeta_score(rng.random(400) < p, decision.selected, beta=2.0, sample_weight=v)
        for _ in range(500)
    ]
    assert np.mean(drawn) == pytest.approx(decision.expected, abs=5 * decision.std / 500**0.5)
    assert np.std(drawn) == pytest.approx(decision.std, rel=0.2)


def test_the_gap_of_many_items_is_within_the_tolerance():
    rng = np.random.default_rng(5)
    p, v = rng.beta(0.5, 5, 20_000), rng.lognormal(0, 1.5, 20_000)
    decision = maximize_expected_weighted_f(p, v)
    assert decision.gap <= 1e-6 * decision.expected
    by_probability = np.argsort(-p)
    totals, found = np.cumsum(v[by_probability]), np.cumsum((v * p)[by_probability])
    assert decision.expected > np.max(2 * found / (totals + v @ p)) - 1e-3


def test_items_without_value_or_probability_are_not_selected():
    decision = maximize_expected_weighted_f([0.9, 0.9, 0.0], [1.0, 0.0, 2.0])
    assert decision.selected.tolist() == [True, False, False]
    nothing = maximize_expected_weighted_f([0.0, 0.0], [1.0, 2.0], zero_division=1.0)
    assert (nothing.k, nothing.expected, nothing.bound) == (0, 1.0, 1.0)
    assert nothing.contribution.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("p", "weights", "message"),
    [
        ([0.5], [0.0], "weights must not all be zero"),
        ([0.5], [-1.0], "weights must be finite and not negative, got -1.0"),
        ([0.5], [np.nan], "weights must be finite and not negative, got nan"),
        ([0.5, 0.2], [1.0], r"weights must have shape \(2,\), got \(1,\)"),
        ([1.5], [1.0], r"p must be finite and in \[0, 1\], got 1.5 at position 0"),
        ([], [], "p must hold at least one probability"),
        ([1.0, 0.4], [1e-39, 1.0], r"differ by a factor of at most 1e\+24, got 1e-39 and 1"),
    ],
)
def test_bad_input_is_refused(p, weights, message):
    with pytest.raises(ValueError, match=message):
        maximize_expected_weighted_f(p, weights)


def test_weights_are_asked_for():
    with pytest.raises(ValueError, match="weights must be given"):
        maximize_expected_weighted_f([0.5], None)


@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_many_items_agree_with_the_weights_of_labelled_scores(beta):
    """In the limit both choose the items above one probability, whatever their values."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 4, 100_000)
    v = rng.lognormal(p, 1.0)
    decision = maximize_expected_weighted_f(p, v, beta=beta)
    assert decision.gap < 1e-4
    assert p[decision.selected].min() >= p[~decision.selected].max() - 1e-3
    y = rng.random(p.size) < p
    found = maximize_empirical_f(y, p, beta=beta, sample_weight=v)
    assert found.value == pytest.approx(decision.expected, abs=4 * decision.std)
    assert found.threshold == pytest.approx(p[decision.selected].min(), abs=0.02)
    at_decision = fbeta_score(y, decision.selected, beta=beta, sample_weight=v)
    assert found.value - 2 * decision.std < at_decision < found.value + 1e-3


@pytest.mark.slow
def test_twenty_items_by_the_definition():
    """Expected F of the decision over all 2^20 labels; no item added or removed improves it."""
    rng = np.random.default_rng(1)
    p, v = rng.beta(0.5, 2, 20), rng.lognormal(0, 1.5, 20)
    labels = (np.arange(2**20)[:, None] >> np.arange(20)) & 1 > 0
    mass = np.exp(np.where(labels, np.log(p), np.log1p(-p)).sum(axis=1))
    total = labels @ v

    def expected(selected):
        return float(mass @ (2 * (labels[:, selected] @ v[selected]) / (v[selected].sum() + total)))

    decision = maximize_expected_weighted_f(p, v)
    assert decision.expected == pytest.approx(expected(decision.selected), rel=1e-9)
    for i in range(20):
        other = decision.selected ^ (np.arange(20) == i)
        assert expected(other) <= decision.expected + decision.gap + 1e-12
