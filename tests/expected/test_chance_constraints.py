"""Chance constraints: exact probabilities, and no set of any kind beats the one returned."""

from itertools import combinations, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argmaxf import expected_f, maximize_expected_f
from argmaxf.constraints import ChanceConstraint, Constraints
from argmaxf.expected.chance import (
    bounds_on_probability,
    feasible_sizes,
    probability_of_parts,
)
from argmaxf.expected.counts import PoissonBinomial
from argmaxf.measures import FBeta

p_values = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]), st.floats(0.8, 1)
)
some_constraints = st.sampled_from(
    [
        *(Constraints(c) for c in (0.0, 0.3, 0.5, 0.9, 1.0)),
        *(Constraints(None, r) for r in (0.3, 0.5, 0.9, 1.0)),
        *(Constraints(c, r) for c in (0.5, 0.75) for r in (0.3, 0.8)),
    ]
)


def probability_of_top(p, k, limits):
    """The probability that the top k of falling items meets the limits."""
    return probability_of_parts(p[:k], p[k:], limits)


def worlds(p):
    """Every vector of labels and its probability."""
    labels = np.array(list(product([0, 1], repeat=len(p))))
    return labels, np.where(labels, p, 1 - np.asarray(p)).prod(axis=1)


def probability_by_definition(labels, weight, chosen, constraints):
    true, positives, k = labels[:, chosen].sum(axis=1), labels.sum(axis=1), len(chosen)
    held = np.ones(len(weight), bool)
    if constraints.min_precision and k:
        held &= true >= constraints.min_precision * k - 1e-9
    if constraints.min_recall:
        held &= true >= constraints.min_recall * positives - 1e-9
    return weight[held].sum()


@given(st.lists(p_values, min_size=1, max_size=7), some_constraints, st.floats(0.05, 0.99))
@settings(max_examples=150, deadline=None)
def test_probabilities_follow_the_definition(p, constraints, level):
    p = np.sort(p)[::-1].copy()
    labels, weight = worlds(p)
    kept = feasible_sizes(p, ChanceConstraint(constraints, level))
    for k in range(len(p) + 1):
        true = probability_by_definition(labels, weight, list(range(k)), constraints)
        assert probability_of_top(p, k, constraints) == pytest.approx(true, abs=1e-13)
        if abs(true - level) > 1e-11:
            assert kept[k] == (true >= level)


@given(st.lists(p_values, min_size=1, max_size=6), some_constraints)
@settings(max_examples=60, deadline=None)
def test_of_all_sets_of_one_size_the_most_probable_items_have_the_highest_probability(
    p, constraints
):
    p = np.sort(p)[::-1].copy()
    labels, weight = worlds(p)
    for k in range(len(p) + 1):
        sets = [list(chosen) for chosen in combinations(range(len(p)), k)]
        each = [probability_by_definition(labels, weight, chosen, constraints) for chosen in sets]
        assert max(each) <= probability_of_top(p, k, constraints) + 1e-13


FAMILIES = {
    "blurred": lambda rng: rng.beta(2, 1, 200),
    "sharp": lambda rng: rng.beta(0.2, 0.2, 200),
    "rare": lambda rng: rng.beta(0.1, 5, 200),
    "equal": lambda rng: np.full(200, 0.9),
    "certain": lambda rng: np.r_[np.ones(100), np.full(100, 0.5)],
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("limit", [0.5, 0.9, 1.0])
def test_tails_have_thirteen_digits(family, limit):
    p = np.sort(FAMILIES[family](np.random.default_rng(0)))[::-1].copy()
    with mpmath.workdps(40):
        mass = [mpmath.mpf(1)]
        for k in range(1, 201):
            q = mpmath.mpf(float(p[k - 1]))
            mass = [(1 - q) * a + q * b for a, b in zip([*mass, 0], [0, *mass], strict=True)]
            if k % 20 == 0 or k < 10:
                least = int(np.ceil(limit * k * (1 - 1e-12)))
                found = probability_of_top(p, k, Constraints(limit))
                assert abs(sum(mass[least:]) - found) < 1e-13


@pytest.mark.parametrize("most", [0, 5000])  # labels that are counted one by one
def test_a_count_of_equal_items_is_binomial(most):
    from scipy.stats import binom

    count = PoissonBinomial.of(np.full(5000, 0.3), most)
    assert np.allclose(count.mass, binom.pmf(count.values, 5000, 0.3), rtol=0, atol=1e-14)
    assert count.mass.sum() == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize("n", [700, 1200])
def test_neighbouring_sizes_have_the_probability_that_each_has_alone(n):
    """Across the borders of windows, and where a precision and a recall must hold at once."""
    p = np.sort(np.random.default_rng(n).beta(0.6, 0.5, n))[::-1].copy()
    limits = Constraints(0.8, 0.7)
    chance = ChanceConstraint(limits, 0.9)
    kept = feasible_sizes(p, chance)
    each = [probability_of_top(p, k, limits) for k in range(n + 1)]
    assert np.array_equal(kept, np.array(each) >= 0.9 - 1e-12)
    assert 10 < kept.sum() < n - 10


def test_a_precision_and_a_recall_are_joint_and_not_two():
    """Twenty equal items: T and R are binomial, and their joint probability a double sum."""
    from scipy.stats import binom

    for k in range(21):
        t, r = np.meshgrid(np.arange(k + 1), np.arange(21 - k), indexing="ij")
        mass = binom.pmf(t, k, 0.6) * binom.pmf(r, 20 - k, 0.6)
        held = (t >= 0.5 * k) & (t >= 0.75 * (t + r))
        assert probability_of_top(np.full(20, 0.6), k, Constraints(0.5, 0.75)) == pytest.approx(
            mass[held].sum(), abs=1e-13
        )


@pytest.mark.parametrize("limits", [(0.9, None), (None, 0.6), (0.5, 0.5)], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_bounds_on_the_probability_hold_and_leave_little_open(family, limits):
    draw = np.random.default_rng(1)
    p = np.sort(np.concatenate([FAMILIES[family](draw) for _ in range(5)]))[::-1].copy()
    low, high = bounds_on_probability(p, Constraints(*limits))
    for k in range(0, p.size + 1, 7):
        assert low[k] - 1e-12 <= probability_of_top(p, k, Constraints(*limits)) <= high[k] + 1e-12
    if family == "blurred":
        assert np.mean((low < 0.95) & (high >= 0.95)) < 0.3


def test_a_recall_is_reached_at_the_least_size():
    p = np.sort(np.random.default_rng(2).beta(0.5, 3, 5000))[::-1].copy()
    constraints = Constraints(None, 0.8)
    k = int(np.argmax(feasible_sizes(p, ChanceConstraint(constraints, 0.95))))
    assert probability_of_top(p, k, constraints) >= 0.95 > probability_of_top(p, k - 1, constraints)


@pytest.mark.parametrize("limits", [(0.9, None), (None, 0.6)], ids=str)
def test_many_items_are_decided_by_their_probabilities(limits):
    p = np.sort(np.random.default_rng(3).beta(3, 0.5, 200_000))[::-1].copy()
    kept = feasible_sizes(p, ChanceConstraint(Constraints(*limits), 0.95))
    changes = np.flatnonzero(np.diff(kept)).tolist()
    assert changes
    for k in {1_000, 50_000, 123_457, 199_999, *changes[-3:], *(k + 1 for k in changes[-3:])}:
        assert kept[k] == (probability_of_top(p, k, Constraints(*limits)) >= 0.95 - 1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((0.9, None, None), "min_precision=0.9 needs confidence_level"),
        ((None, None, 0.9), "confidence_level=0.9 needs min_precision or min_recall"),
        ((1.5, None, 0.9), r"min_precision must lie in \[0, 1\], got 1.5"),
        ((0.9, None, 1.0), "confidence_level must lie strictly between 0 and 1, got 1.0"),
        ((0.9, None, 0), "got 0: 0 guarantees nothing"),
        ((0.9, None, float("nan")), r"confidence_level must lie in \[0, 1\], got nan"),
    ],
)
def test_bad_promises_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ChanceConstraint.of(*options)
    assert ChanceConstraint.of(None, None, None) is None


def test_a_free_promise_is_said_to_cost_nothing():
    promise = maximize_expected_f([0.1, 0.2], min_recall=0.5, confidence_level=0.5).guarantee
    assert str(promise).endswith("costs no expected F")


def test_a_set_that_must_be_large_is_not_said_to_keep_a_recall():
    with pytest.raises(ValueError, match=r"the smallest allowed set has 4 items and"):
        maximize_expected_f([0.1] * 5, min_precision=0.9, min_selected=4, confidence_level=0.5)


@given(
    st.lists(p_values, min_size=1, max_size=6),
    some_constraints,
    st.sampled_from([0.2, 0.5, 0.8, 0.95]),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.sampled_from([0.0, 1.0]),
)
@settings(max_examples=100, deadline=None)
def test_no_feasible_set_has_a_higher_expected_f(p, constraints, level, beta, zero):
    """Every subset is tried, not only those of the most probable items."""
    labels, weight = worlds(p)
    best = -1.0
    for k in range(len(p) + 1):
        for chosen in map(list, combinations(range(len(p)), k)):
            if probability_by_definition(labels, weight, chosen, constraints) >= level - 1e-12:
                true, positives = labels[:, chosen].sum(axis=1), labels.sum(axis=1)
                f = FBeta(beta).value(true, k, positives, zero_division=zero)
                best = max(best, float(weight @ f))
    options = {"min_precision": constraints.min_precision, "min_recall": constraints.min_recall}
    if best < 0:
        with pytest.raises(ValueError, match="cannot be met at confidence level"):
            maximize_expected_f(p, beta=beta, zero_division=zero, confidence_level=level, **options)
        return
    found = maximize_expected_f(p, beta=beta, zero_division=zero, confidence_level=level, **options)
    assert found.expected == pytest.approx(best, abs=1e-12)
    assert found.guarantee.probability >= level - 1e-12
    assert expected_f(p, found.selected, beta=beta, zero_division=zero).mean == pytest.approx(
        found.expected, abs=1e-12
    )
    free = maximize_expected_f(p, beta=beta, zero_division=zero).expected
    assert found.guarantee.cost == pytest.approx(free - best, abs=1e-12)


def test_rows_and_columns_keep_their_own_promise():
    p = np.random.default_rng(0).beta(2, 1, (5, 30))
    options = {"min_precision": 0.8, "confidence_level": 0.9}
    rows = maximize_expected_f(p, average="samples", **options)
    columns = maximize_expected_f(p.T, average="macro", **options)
    for i, row in enumerate(p):
        alone = maximize_expected_f(row, **options)
        assert rows.k[i] == columns.k[i] == alone.k
        assert rows.guarantee[i] == alone.guarantee
        assert np.array_equal(rows.selected[i], alone.selected)
    assert np.array_equal(columns.selected, rows.selected.T)
    cells = maximize_expected_f(p, average="micro", **options)
    assert cells.k == maximize_expected_f(p.ravel(), **options).k


def test_equal_items_stay_together_where_asked():
    p = [0.9] * 5 + [0.8] * 4
    split = maximize_expected_f(p, min_precision=0.8, confidence_level=0.7)
    together = maximize_expected_f(p, min_precision=0.8, confidence_level=0.7, ties="together")
    assert 5 < split.k < 9
    assert together.k in (5, 9)


def test_nothing_is_selected_where_no_set_keeps_the_precision():
    found = maximize_expected_f([0.3, 0.2], min_precision=0.9, confidence_level=0.9)
    assert (found.k, found.expected, found.guarantee.probability) == (0, 0.0, 1.0)


def test_probabilities_hold_in_draws_from_the_model():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 1, 2000)
    found = maximize_expected_f(p, min_precision=0.85, confidence_level=0.9)
    labels = rng.random((4000, found.k)) < p[found.selected]
    held = (labels.mean(axis=1) >= 0.85).mean()
    assert held == pytest.approx(found.guarantee.probability, abs=3 * np.sqrt(0.09 / 4000))
    assert 0.9 <= found.guarantee.probability < 0.96


def test_bad_probabilities_are_named_under_a_promise_too():
    with pytest.raises(ValueError, match=r"got 1.5 at position 1"):
        maximize_expected_f([0.5, 1.5], min_precision=0.5, confidence_level=0.5)
    with pytest.raises(ValueError, match=r"got nan at position 0"):
        maximize_expected_f([np.nan, 0.5], min_precision=0.5, confidence_level=0.5)


def test_a_promise_keeps_the_budget():
    p = np.random.default_rng(0).beta(2, 1, 300)
    options = {"min_precision": 0.7, "confidence_level": 0.9}
    free = maximize_expected_f(p, **options)
    assert maximize_expected_f(p, max_selected=free.k - 7, **options).k <= free.k - 7
    with pytest.raises(
        ValueError, match=r"cannot be met at confidence level 0.9: the smallest allowed set"
    ):
        maximize_expected_f(p, min_selected=299, **options)
    with pytest.raises(
        ValueError, match=r"min_recall=0.9 cannot be met: max_selected allows too few"
    ):
        maximize_expected_f(p, max_selected=5, min_recall=0.9, confidence_level=0.9)


BY = np.array(["a", "b", "c"])[np.random.default_rng(5).integers(0, 3, 900)]
P = np.random.default_rng(6).beta(2, 1, 900).round(3)


def test_segments_of_an_array_keep_it_at_once_and_overall():
    found = maximize_expected_f(P, by=BY, min_precision=0.8, confidence_level=0.9)
    assert found.segment.tolist() == ["a", "b", "c"]
    kept = 1.0
    for i, name in enumerate(found.segment):
        rows = name == BY
        alone = maximize_expected_f(P[rows], min_precision=0.8, confidence_level=0.9 ** (1 / 3))
        assert np.array_equal(found.selected[rows], alone.selected)
        assert (found.k[i], found.threshold[i], found.n[i]) == (alone.k, alone.threshold, alone.n)
        probability = alone.guarantee.probability
        assert found.guarantee[i].probability == pytest.approx(probability, abs=1e-13)
        kept *= probability
    overall = found.overall
    assert overall.guarantee.probability >= kept >= 0.9
    alone = expected_f(P, found.selected)
    assert (overall.expected, overall.std) == pytest.approx((alone.mean, alone.std), abs=1e-12)
    assert overall.k == found.selected.sum()
    labels = np.random.default_rng(0).random((4000, overall.k)) < P[found.selected]
    held = (labels.mean(axis=1) >= 0.8).mean()
    assert held == pytest.approx(overall.guarantee.probability, abs=0.02)
    free = maximize_expected_f(P, by=BY)
    assert overall.guarantee.cost == pytest.approx(
        free.overall.expected - overall.expected, abs=1e-12
    )


def test_segments_of_an_array_are_those_of_a_frame():
    import polars as pl

    from argmaxf.frames import decisions

    for more in ({}, {"max_selected": 40}, {"min_recall": 0.7, "confidence_level": 0.8}):
        found = maximize_expected_f(P, by=BY, ties="together", **more)
        framed = decisions(pl.DataFrame({"p": P, "by": BY}), "p", by="by", **more)
        assert [framed[name,].k for name in found.segment] == found.k.tolist()
        assert [framed[name,].guarantee for name in found.segment] == list(
            found.guarantee or [None] * 3
        )


def test_segments_of_any_size_are_decided_as_alone():
    rng = np.random.default_rng(7)
    p = np.round(rng.beta(0.5, 2, 40_000), 2)
    by = np.minimum(rng.geometric(0.4, p.size), 9) - 1  # one is large, some are small; many ties
    by[0] = 99
    found = maximize_expected_f(p, by=by, beta=2)
    for i, name in enumerate(found.segment):
        alone = maximize_expected_f(p[by == name], beta=2)
        assert np.array_equal(found.selected[by == name], alone.selected)
        assert (found.k[i], found.expected[i]) == (
            alone.k,
            pytest.approx(alone.expected, rel=1e-12),
        )
    assert found.overall.guarantee is None


def test_what_segments_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"by is for one-dimensional p, got 2 dimensions"):
        maximize_expected_f(P.reshape(3, -1), average="macro", by=BY)
    with pytest.raises(ValueError, match=r"by must hold the segment of each of 900 rows, got"):
        maximize_expected_f(P, by=BY[1:])
    with pytest.raises(ValueError, match=r"average is for two-dimensional p"):
        maximize_expected_f(P, by=BY, average="macro")
    with pytest.raises(ValueError, match=r"got nan at position 899"):
        maximize_expected_f(np.append(P[:-1], np.nan), by=BY)
