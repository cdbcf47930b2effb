"""Bands instead of points: the best worst case, the least worst regret, and their display."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from argmaxf import (
    expected_f,
    expected_f_curve,
    maximize_expected_f,
    maximize_worst_case_f,
)
from argmaxf.displays import WorstCaseDisplay
from argmaxf.expected.worst_case import _ascending
from argmaxf.measures import FBeta
from argmaxf.prior import move_odds
from tests.judges import all_label_vectors, every_set


def by_definition(p, selected, beta, zero_division=0.0):
    """E[F] as a sum over all label vectors, in 40 digits."""
    total = mpmath.mpf(0)
    with mpmath.workdps(40):
        b2 = mpmath.mpf(beta) ** 2
        for labels in itertools.product((0, 1), repeat=len(p)):
            chance = mpmath.mpf(1)
            for label, q in zip(labels, p, strict=True):
                chance *= mpmath.mpf(float(q)) if label else 1 - mpmath.mpf(float(q))
            tp = sum(a and b for a, b in zip(labels, selected, strict=True))
            x = sum(selected) + b2 * sum(labels)
            total += chance * ((1 + b2) * tp / x if x else mpmath.mpf(zero_division))
    return total


def worst_over_corners(low, high, selected, beta):
    """The lowest E[F] when each probability is at either end of its band."""
    corners = itertools.product(*zip(low, high, strict=True))
    return min(expected_f(list(p), list(selected), beta=beta).mean for p in corners)


@st.composite
def ordered_bands(draw, most=6):
    n = draw(st.integers(1, most))
    ends = [sorted(draw(st.lists(st.floats(0, 1), min_size=n, max_size=n))) for _ in range(2)]
    low, high = np.minimum(*ends), np.maximum(*ends)
    order = draw(st.permutations(range(n)))
    return low[order], high[order]


@settings(max_examples=40)
@given(ordered_bands(most=4), st.sampled_from([0.5, 1.0, 2.0]))
def test_brute_force_over_all_sets_and_all_corners(bands, beta):
    low, high = bands
    decision = maximize_worst_case_f(low, high, beta=beta)
    sets = itertools.product((False, True), repeat=len(low))
    best = max(worst_over_corners(low, high, chosen, beta) for chosen in sets)
    assert decision.expected == pytest.approx(best, abs=1e-12)
    assert worst_over_corners(low, high, decision.selected, beta) == pytest.approx(best, abs=1e-12)


@settings(max_examples=60)
@given(ordered_bands(most=8), st.sampled_from([0.3, 1.0, 3.0]), st.sampled_from([0.0, 1.0]))
def test_the_value_is_the_definition_with_low_inside_and_high_outside(bands, beta, zero):
    low, high = bands
    decision = maximize_worst_case_f(low, high, beta=beta, zero_division=zero)
    worst = np.where(decision.selected, low, high)
    want = by_definition(worst, decision.selected.tolist(), beta, zero)
    assert decision.expected == pytest.approx(float(want), abs=1e-12)
    assert decision.k == decision.selected.sum()
    assert decision.threshold == (low[decision.selected].min() if decision.k else np.inf)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.sampled_from([0.5, 1.0, 2.0]))
def test_bands_without_width_are_the_decision_itself(p, beta):
    got, want = maximize_worst_case_f(p, p, beta=beta), maximize_expected_f(p, beta=beta)
    assert got.k == want.k
    assert got.expected == pytest.approx(want.expected, rel=1e-12)
    assert got.std == pytest.approx(want.std, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("measure", ["fbeta", "jaccard", FBeta(2.0)])
@pytest.mark.parametrize("n", [100, 5000, 60_000])
def test_large_sets_against_the_value_of_every_other_size_nearby(n, measure):
    rng = np.random.default_rng(n)
    p = rng.beta(0.4, 4.0, n)
    low, high = move_odds(p, 1 / 1.5), move_odds(p, 1.5)
    decision = maximize_worst_case_f(low, high, measure=measure)
    order = np.argsort(-p, kind="stable")
    for k in {max(1, decision.k + step) for step in (-200, -20, -1, 0, 1, 20, 200)}:
        chosen = np.zeros(n, dtype=bool)
        chosen[order[:k]] = True
        value = expected_f(np.where(chosen, low, high), chosen, measure=measure).mean
        assert value <= decision.expected * (1 + 1e-12)
        if k == decision.k:
            assert np.array_equal(chosen, decision.selected)
            assert value == pytest.approx(decision.expected, rel=1e-11)


def test_exact_ties_go_to_the_smaller_set():
    """Two items that are certain in both ends, and one whose band decides nothing either way."""
    decision = maximize_worst_case_f([0.5, 0.5], [0.5, 0.5])
    assert decision.k == maximize_expected_f([0.5, 0.5]).k
    assert maximize_worst_case_f([0.0, 0.0], [0.0, 0.0]).k == 0
    assert maximize_worst_case_f([0.0, 0.0], [0.3, 0.9]).expected == 0.0


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(0.02, 0.98), min_size=1, max_size=6),
    st.floats(1.1, 8.0),
    st.sampled_from([0.5, 1.0, 2.0]),
)
def test_least_worst_regret_by_brute_force_over_all_sets(p, factor, beta):
    low, high = move_odds(np.array(p), 1 / factor), move_odds(np.array(p), factor)
    decision = maximize_worst_case_f(low, high, beta=beta, regret=True)
    labels = sets = all_label_vectors(len(p))
    worlds = [move_odds(low, factor ** (2 * s)) for s in np.linspace(0, 1, 33)]
    chances = [np.where(labels, world, 1 - world).prod(axis=1) for world in worlds]
    values = np.array([every_set(labels, chance, beta)[0] for chance in chances])
    lost = (values.max(axis=1, keepdims=True) - values).max(axis=0)  # by each set, at worst
    assert decision.regret == pytest.approx(lost.min(), abs=1e-9)
    assert lost[(sets == decision.selected).all(axis=1)] == pytest.approx(lost.min(), abs=1e-9)


def test_more_factors_find_no_larger_regret():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 3, 300)
    low, high = move_odds(p, 0.5), move_odds(p, 2.0)
    decision = maximize_worst_case_f(low, high, regret=True)
    plain = maximize_expected_f(p)
    worst = {decision.k: 0.0, plain.k: 0.0}
    for factor in np.geomspace(0.5, 2.0, 1001):
        f = expected_f_curve(move_odds(p, factor))
        worst = {k: max(lost, f.max() - f[k]) for k, lost in worst.items()}
    assert worst[decision.k] == pytest.approx(decision.regret, abs=1e-6)
    assert decision.regret <= worst[plain.k]


def test_bad_bands_are_named():
    with pytest.raises(ValueError, match=r"low must not be above high, got .*0.6.* at 1"):
        maximize_worst_case_f([0.1, 0.6], [0.2, 0.5])
    with pytest.raises(ValueError, match=r"bands must keep their order, got \[0.3, 0.4\] at 0 ins"):
        maximize_worst_case_f([0.3, 0.1], [0.4, 0.5])
    with pytest.raises(ValueError, match="low and high must have one length, got 2 and 1"):
        maximize_worst_case_f([0.1, 0.2], [0.3])
    with pytest.raises(ValueError, match="at least one probability"):
        maximize_worst_case_f([], [])
    with pytest.raises(ValueError, match="one odds factor, got factors from"):
        maximize_worst_case_f([0.1, 0.2], [0.2, 0.9], regret=True)
    with pytest.raises(ValueError, match="got ends at 0 or 1"):
        maximize_worst_case_f([0.0, 0.2], [0.2, 0.9], regret=True)


def test_the_display_shows_expected_and_worst_case_over_the_width():
    pytest.importorskip("matplotlib").use("Agg")
    p = np.random.default_rng(0).beta(0.5, 3, 200)
    shown = WorstCaseDisplay.from_predictions(p, factors=[1.0, 1.5, 3.0])
    plain = maximize_expected_f(p)
    assert shown.expected == plain.expected
    assert shown.best_worst[0] == pytest.approx(plain.expected)
    assert shown.worst[0] == pytest.approx(plain.expected)
    assert np.all(np.diff(shown.best_worst) < 0)
    assert np.all(shown.best_worst >= shown.worst - 1e-12)
    low, high = move_odds(p, 1 / 3), move_odds(p, 3.0)
    assert shown.best_worst[2] == maximize_worst_case_f(low, high).expected
    assert len(shown.lines_) == 2
    assert "expected" in shown.ax_.get_legend_handles_labels()[1][-1]
    with pytest.raises(ValueError, match=r"factors must be at least 1, got 0.5"):
        WorstCaseDisplay.from_predictions(p, factors=[0.5], ax=False)


@pytest.mark.parametrize("digits", [1, 3, 17])
def test_the_order_of_many_bands_is_counted_as_it_is_sorted(digits):
    rng = np.random.default_rng(digits)
    low = np.sort(rng.random(6000) ** 4).round(digits)
    high = np.minimum(1.0, low + np.sort(rng.random(6000)).round(digits) / 3)
    low[:3], high[:3] = [0.0, -0.0, 0.0], [-0.0, 0.0, 0.0]
    mixed = rng.permutation(6000)
    low, high = low[mixed], high[mixed]
    order = _ascending(low, high)
    assert np.array_equal(np.sort(order), np.arange(6000))
    assert np.array_equal(order, np.lexsort((low, high)))  # equal bands stay in their order


def nearly_tied(steps):
    """Bands for which the top 1 and the top 2 differ by next to nothing: p₂ moved by ulps."""
    low, high = np.array([0.6, 0.3, 0.1]), np.array([0.7, 0.4, 0.2])

    def lead(p):
        worst = [
            by_definition([*low[:k], *high[k:]], [True] * k + [False] * (3 - k), 1.0)
            for low in [np.array([0.6, p, 0.1])]
            for k in (1, 2)
        ]
        return worst[1] - worst[0]

    a, b = 0.0, 0.4
    for _ in range(80):  # the p at which both are worth the same
        middle = (a + b) / 2
        a, b = (a, middle) if lead(middle) > 0 else (middle, b)
    low[1] = b + steps * np.spacing(b)
    return low, high, 2 if lead(low[1]) > 0 else 1


@pytest.mark.parametrize("steps", [-3, -1, 0, 1, 3])
@pytest.mark.parametrize("zeros", [0, 400, 5000])
def test_near_ties_are_settled_at_every_size(steps, zeros):
    """Items that cannot be positive change nothing, but take the other paths."""
    low, high, best = nearly_tied(steps)
    padded = [np.concatenate([end, np.zeros(zeros)]) for end in (low, high)]
    assert maximize_worst_case_f(*padded).k == best


def test_words_and_numbers_are_plain():
    with pytest.raises(ValueError, match=r"low must not be above high, got 0\.5 and 0\.4 at 0"):
        maximize_worst_case_f([0.5], [0.4])
    assert math.copysign(1.0, maximize_worst_case_f([0.0], [0.0]).std) == 1.0
    assert math.copysign(1.0, maximize_expected_f([0.0]).std) == 1.0


@given(st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]), min_size=1, max_size=5))
@example([0.25, 0.5])  # F1 of both is that of the second alone
@example([1e-15])  # faint, but more than nothing
def test_without_doubt_the_least_regret_is_the_decision_itself(p):
    assert maximize_worst_case_f(p, p, regret=True).k == maximize_expected_f(p).k


def test_there_is_nothing_to_regret_where_all_is_certain():
    sure = maximize_worst_case_f([0.0, 1.0, 1.0], [0.0, 1.0, 1.0], regret=True)
    assert sure.selected.tolist() == [False, True, True]
    assert sure.regret == 0.0


def test_a_hundred_sets_that_agree_to_twelve_digits_are_told_apart():
    """Every item adds a little where β is tiny: E[k y / (k + β² S)] rises with k."""
    low, high = np.full(100, 0.15), np.full(100, 0.3)
    assert maximize_worst_case_f(low, high, beta=1e-9).k == 100
