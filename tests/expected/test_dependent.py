"""Dependent labels: the definition over all 2ⁿ label vectors judges all three sources."""

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from argmaxf import (
    expected_f,
    maximize_expected_f,
    maximize_expected_f_from_joint,
    maximize_expected_f_from_mixture,
    maximize_expected_f_from_samples,
)
from reproduction.references import dembczynski_2011, label_counts
from tests.judges import BETAS, all_label_vectors, every_set, families, joint_parameters


def place(selected):
    """The row of `all_label_vectors` that is this set."""
    return int("".join(map(str, np.asarray(selected, int))), 2)


def is_best(decision, states, mass, beta, zero_division):
    """Assert that no set is better, and that the result says what the definition says."""
    mean, std = every_set(states, mass, beta, zero_division)
    chosen = place(decision.selected)
    assert mean[chosen] == pytest.approx(mean.max(), rel=1e-13)
    assert decision.expected == pytest.approx(mean.max(), rel=1e-13)
    assert decision.k == decision.selected.sum()
    low, high = decision.std_bounds
    assert low - 1e-9 <= std[chosen] <= high + 1e-9
    if not math.isnan(decision.std):
        assert decision.std == pytest.approx(std[chosen], abs=1e-9)
    p = mass @ states
    alone = maximize_expected_f(p.clip(0, 1), beta=beta, zero_division=zero_division)
    assert decision.independent_expected == pytest.approx(mean[place(alone.selected)], rel=1e-12)
    assert decision.gain > -1e-14


@pytest.mark.parametrize("zero_division", [0.0, 1.0])
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 10])
def test_no_set_is_better_under_any_joint_distribution(n, beta, zero_division):
    rng = np.random.default_rng(n)
    states = all_label_vectors(n)
    for concentration in (0.002, 0.02, 0.2, 1.0):
        mass = rng.dirichlet(np.full(len(states), concentration))
        options = {"beta": beta, "zero_division": zero_division}
        by_parameters = maximize_expected_f_from_joint(*joint_parameters(states, mass), **options)
        is_best(by_parameters, states, mass, beta, zero_division)
        by_draws = maximize_expected_f_from_samples(states, weights=mass, **options)
        is_best(by_draws, states, mass, beta, zero_division)
        assert not math.isnan(by_draws.std)


@pytest.mark.parametrize("zero_division", [0.0, 1.0])
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_no_set_is_better_under_a_mixture(n, beta, zero_division):
    rng = np.random.default_rng(n)
    states = all_label_vectors(n)
    for models in (1, 2, 5):
        proba = rng.choice([0.0, 0.02, 0.1, 0.5, 0.9, 1.0], (models, n)) * rng.random((models, n))
        weights = rng.random(models)
        given_model = np.prod(np.where(states[:, None] == 1, proba, 1 - proba), axis=2)
        mass = given_model @ (weights / weights.sum())
        decision = maximize_expected_f_from_mixture(
            proba, weights=weights, beta=beta, zero_division=zero_division
        )
        is_best(decision, states, mass, beta, zero_division)
        assert not math.isnan(decision.std)


def exact_values(draws, beta_squared, zero_division):
    """E[F] of each of the 2ⁿ sets as fractions, with its size."""
    for chosen in all_label_vectors(len(draws[0])).tolist():
        k, total = sum(chosen), Fraction(0)
        for y in draws:
            true, x = sum(a * b for a, b in zip(y, chosen, strict=True)), k + beta_squared * sum(y)
            total += (1 + beta_squared) * true / Fraction(x) if x else Fraction(zero_division)
        yield total, k


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(0, 1), min_size=n, max_size=n), min_size=1, max_size=7
        )
    ),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.sampled_from([0, 1]),
)
@settings(max_examples=400, deadline=None)
def test_exact_ties_go_to_the_smallest_set(draws, beta, zero_division):
    """Few draws give many exact ties; fractions tell them from near ones."""
    values = list(exact_values(draws, Fraction(beta) ** 2, zero_division))
    best = max(value for value, _ in values)
    smallest = min(k for value, k in values if value == best)
    decision = maximize_expected_f_from_samples(draws, beta=beta, zero_division=zero_division)
    assert decision.k == smallest
    assert decision.expected == pytest.approx(float(best) / len(draws), rel=1e-14)
    P, p0 = joint_parameters(np.array(draws), np.full(len(draws), 1.0))
    m = len(draws)
    if m & (m - 1) == 0:  # dividing by a power of two keeps the ties
        joint = maximize_expected_f_from_joint(
            P / m, p0 / m, beta=beta, zero_division=zero_division
        )
        assert joint.k == smallest


def exact_mixture_values(quarters, weights, beta_squared):
    """E[F] of each of the 2ⁿ sets under a mixture, as fractions, with its size."""
    states = all_label_vectors(len(quarters[0])).tolist()
    masses = [
        sum(
            weight
            * math.prod(Fraction(q if yi else 4 - q, 4) for q, yi in zip(model, y, strict=True))
            for model, weight in zip(quarters, weights, strict=True)
        )
        for y in states
    ]
    for chosen in states:
        k = sum(chosen)
        true = [sum(a * b for a, b in zip(y, chosen, strict=True)) for y in states]
        yield (
            sum(
                m * (1 + beta_squared) * t / (k + beta_squared * sum(y))
                for m, t, y in zip(masses, true, states, strict=True)
                if t
            ),
            k,
        )


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 3)).flatmap(
        lambda shape: st.lists(
            st.lists(st.integers(0, 4), min_size=shape[0], max_size=shape[0]),
            min_size=shape[1],
            max_size=shape[1],
        )
    ),
    st.lists(st.integers(1, 3), min_size=3, max_size=3),
    st.sampled_from([0.5, 1.0, 2.0]),
)
@settings(max_examples=200, deadline=None)
def test_exact_ties_of_mixtures_go_to_the_smallest_set(quarters, weights, beta):
    """Probabilities in quarters give exact ties, which fractions tell from near ones."""
    weights = weights[: len(quarters)]
    values = list(exact_mixture_values(quarters, weights, Fraction(beta) ** 2))
    best = max(value for value, _ in values)
    decision = maximize_expected_f_from_mixture(np.array(quarters) / 4, weights=weights, beta=beta)
    assert decision.k == min(k for value, k in values if value == best)
    assert decision.expected == pytest.approx(float(best) / sum(weights), rel=1e-13)


# --- the independent case is the foundation's decision ---


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("name", families())
def test_a_mixture_of_one_is_the_independent_decision(name, beta):
    p = families()[name]
    for zero_division in (0.0, 1.0):
        options = {"beta": beta, "zero_division": zero_division}
        want = maximize_expected_f(p, **options)
        for proba in (p[None], np.stack([p, p, p])):
            decision = maximize_expected_f_from_mixture(proba, **options)
            assert decision.k == want.k
            np.testing.assert_array_equal(decision.selected, want.selected)
            assert decision.expected == pytest.approx(want.expected, rel=1e-12)
            assert decision.std == pytest.approx(want.std, rel=1e-6, abs=2e-14)
            assert decision.gain == 0.0


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_parameters_and_draws_of_independent_labels(beta):
    for seed in range(5):
        p = np.random.default_rng(seed).beta(0.5, 2, 9)
        want = maximize_expected_f(p, beta=beta)
        others = [label_counts(np.delete(p, i), 1.0) for i in range(p.size)]
        P = p[:, None] * np.array(others)
        joint = maximize_expected_f_from_joint(P, np.prod(1 - p), beta=beta)
        states = all_label_vectors(p.size)
        mass = np.prod(np.where(states == 1, p, 1 - p), axis=1)
        draws = maximize_expected_f_from_samples(states, weights=mass, beta=beta)
        for decision in (joint, draws):
            np.testing.assert_array_equal(decision.selected, want.selected)
            assert decision.expected == pytest.approx(want.expected, rel=1e-12)
            assert decision.gain == pytest.approx(0.0, abs=1e-15)
        assert draws.std == pytest.approx(want.std, rel=1e-9)
        low, high = joint.std_bounds
        assert low - 1e-12 <= want.std <= high + 1e-12


def test_sizes_that_agree_to_13_digits_are_a_tie():
    assert maximize_expected_f_from_mixture([[1.0, 0.5]]).k == 1
    assert maximize_expected_f_from_mixture([[1.0, np.nextafter(0.5, 1)]]).k == 1
    assert maximize_expected_f_from_mixture([[1.0, 0.5 + 1e-11]]).k == 2
    assert maximize_expected_f_from_mixture([[0.0, 0.0]]).k == 0
    assert maximize_expected_f_from_mixture([[0.5]], zero_division=1.0).k == 0


# --- where independence loses ---


# The largest q, cut after its last digit, and one unit of that digit.
WORST = {
    2: (0.651, 0.001), 3: (0.720, 0.001), 5: (0.791, 0.001), 10: (0.862, 0.001),
    100: (0.971, 0.001), 1000: (0.9953, 0.0001),
}  # fmt: skip


def everything_if_independent(n, q):
    """E[F] of predicting all of n independent labels, each positive with probability 1 - q."""
    return sum(
        math.exp(
            math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
            + (n - i) * math.log(q) + i * math.log1p(-q)
        ) * 2 * i / (n + i)
        for i in range(1, n + 1)
    )  # fmt: skip


@pytest.mark.parametrize("n", WORST)
def test_the_worst_case_of_the_literature(n):
    """All labels or none, with 0/0 = 1: independence predicts everything and gets 1 - q, not q.

    Dembczyński et al. (2011). The independent E[F] of predicting all n labels is a binomial sum.
    """
    q, step = WORST[n]
    assert everything_if_independent(n, q) > q**n  # so independence does not predict nothing
    draws, weights = np.repeat([[0], [1]], n, axis=1), [q, 1 - q]
    decision = maximize_expected_f_from_samples(draws, weights=weights, zero_division=1.0)
    assert decision.k == 0
    assert decision.expected == pytest.approx(q)
    assert decision.independent_expected == pytest.approx(1 - q)
    P = np.zeros((n, n))
    P[:, -1] = 1 - q
    joint = maximize_expected_f_from_joint(P, q, zero_division=1.0)
    assert joint.gain == pytest.approx(2 * q - 1)
    # The numbers of docs/background/dependent-labels.md: one step further there is no loss any
    # more.
    q += step
    assert everything_if_independent(n, q) < q**n
    beyond = maximize_expected_f_from_samples(draws, weights=[q, 1 - q], zero_division=1.0)
    assert beyond.gain == 0.0


@pytest.mark.parametrize(("n", "others"), [(11, 4), (101, 45)])
def test_a_loss_without_the_convention(n, others):
    """0/0 = 0: rarely, a first label and just under half of the others; otherwise nothing.

    Independence takes the first label for alone when it is there; it never is.
    """
    window = np.arange(n - 1) < others
    rotations = np.array([np.roll(window, shift) for shift in range(n - 1)])
    draws = np.vstack([np.zeros(n), np.column_stack([np.ones(n - 1), rotations])])
    rare = 1e-3
    weights = np.append(1 - rare, np.full(n - 1, rare / (n - 1)))
    decision = maximize_expected_f_from_samples(draws, weights=weights)
    assert decision.k == n
    assert decision.expected == pytest.approx(rare * 2 * (1 + others) / (n + 1 + others))
    assert decision.independent_expected == pytest.approx(rare * 2 / (2 + others))


# --- the optimizer ---


def dependent_draws(seed, m, n):
    """Draws from a few very different groups of labels, some of them empty."""
    rng = np.random.default_rng(seed)
    groups = rng.beta(0.3, 1.5, (4, n)) * rng.choice([0.05, 0.5, 1.0], (4, 1))
    return rng.random((m, n)) < groups[rng.integers(0, 4, m)]


@pytest.mark.parametrize("beta", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("n", [4, 30, 120])
def test_equal_to_the_published_algorithm(n, beta):
    for seed in range(8):
        draws = dependent_draws(seed, 200, n)
        P, p0 = joint_parameters(draws.astype(int), np.full(200, 1 / 200))
        f = dembczynski_2011(P, beta)
        joint = maximize_expected_f_from_joint(P, p0, beta=beta)
        by_draws = maximize_expected_f_from_samples(draws, beta=beta)
        for decision in (joint, by_draws):
            assert decision.expected == pytest.approx(f.max(), rel=1e-13)
            assert f[decision.k] == pytest.approx(f.max(), rel=1e-13)
        np.testing.assert_array_equal(joint.selected, by_draws.selected)
        low, high = joint.std_bounds
        assert low - 1e-12 <= by_draws.std <= high + 1e-12


def test_every_size_can_win():
    """Draws whose best set has any wanted size, in a search over 400."""
    for k in (1, 2, 3, 7, 50, 199, 200, 201, 399, 400):
        decision = maximize_expected_f_from_samples((np.arange(400) < k)[None])
        assert decision.k == k
        assert decision.expected == 1.0


def test_nothing_positive_anywhere():
    for zero_division in (0.0, 1.0):
        options = {"zero_division": zero_division}
        decisions = [
            maximize_expected_f_from_samples(np.zeros((3, 100_000), bool), **options),
            maximize_expected_f_from_mixture(np.zeros((2, 100_000)), **options),
            maximize_expected_f_from_joint(np.zeros((50, 50)), 1.0, **options),
        ]
        for decision in decisions:
            assert decision.k == 0
            assert decision.expected == zero_division
            assert decision.std == 0.0


def test_large_mixture_of_one_equals_the_search_without_sorting():
    p = np.random.default_rng(0).beta(0.5, 5, 30_000)
    want = maximize_expected_f(p, beta=1.7)
    decision = maximize_expected_f_from_mixture(p[None], beta=1.7)
    assert decision.k == want.k
    np.testing.assert_array_equal(decision.selected, want.selected)
    assert decision.expected == pytest.approx(want.expected, rel=1e-13)


def test_large_mixture_equals_the_best_of_every_size():
    """The published algorithm, with the P of each model by convolution."""
    rng = np.random.default_rng(0)
    proba = np.sort(rng.beta(0.5, 5, (3, 400)), axis=1) * [[1.0], [0.2], [3.0]]
    proba = np.stack([rng.permutation(p) for p in proba.clip(0, 1)])
    P = sum(
        p[:, None] * np.array([label_counts_fast(np.delete(p, i)) for i in range(p.size)])
        for p in proba
    )
    f = dembczynski_2011(P / 3)
    decision = maximize_expected_f_from_mixture(proba)
    assert decision.k == np.argmax(f)
    assert decision.expected == pytest.approx(f.max(), rel=1e-12)
    by_models = [expected_f(p, decision.selected).mean for p in proba]
    assert decision.expected == pytest.approx(np.mean(by_models), rel=1e-13)


def label_counts_fast(p):
    """P(S = s) by convolution."""
    counts = np.ones(1)
    for v in p:
        counts = np.convolve(counts, [1 - v, v])
    return counts


def test_a_batch_is_its_instances():
    distributions = [dependent_draws(seed, 100, 12).astype(int) for seed in range(40)]
    parameters = [joint_parameters(draws, np.full(100, 0.01)) for draws in distributions]
    P, p0 = np.array([P for P, _ in parameters]), np.array([p0 for _, p0 in parameters])
    for zero_division in (0.0, 1.0):
        batch = maximize_expected_f_from_joint(P, p0, zero_division=zero_division)
        assert batch.selected.shape == (40, 12)
        for r in range(40):
            one = maximize_expected_f_from_joint(P[r], p0[r], zero_division=zero_division)
            np.testing.assert_array_equal(batch.selected[r], one.selected)
            assert batch.k[r] == one.k
            for field in ("expected", "independent_expected", "threshold", "gain"):
                assert getattr(batch, field)[r] == pytest.approx(getattr(one, field), rel=1e-13)
    empty = maximize_expected_f_from_joint(np.zeros((0, 3, 3)), np.zeros(0))
    assert empty.selected.shape == (0, 3)
    assert empty.k.shape == empty.expected.shape == (0,)


def test_columns_beyond_the_largest_count_may_be_left_out():
    draws = (np.random.default_rng(0).random((50, 9)) < 0.15).astype(int)
    P, p0 = joint_parameters(draws, np.full(50, 0.02))
    most = draws.sum(axis=1).max()
    short, whole = (maximize_expected_f_from_joint(Q, p0) for Q in (P[:, :most], P))
    np.testing.assert_array_equal(short.selected, whole.selected)
    assert short.expected == pytest.approx(whole.expected, rel=1e-14)


def test_contributions_explain_the_set():
    decision = maximize_expected_f_from_samples(dependent_draws(3, 300, 40))
    chosen = decision.contribution[decision.selected]
    assert chosen.sum() == pytest.approx(decision.expected, rel=1e-13)
    assert chosen.min() == decision.threshold >= decision.contribution[~decision.selected].max()
    nothing = maximize_expected_f_from_samples([[0, 0], [0, 0], [0, 1]], zero_division=1.0)
    assert nothing.k == 0
    assert nothing.threshold == math.inf


# --- what goes in ---


def test_every_form_of_draws_gives_the_same():
    draws = dependent_draws(1, 80, 30)
    want = maximize_expected_f_from_samples(draws)
    duplicated = sparse.coo_array((np.ones(3), ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    forms = [
        draws.astype(float), draws.astype(np.int8), draws.tolist(), np.asfortranarray(draws),
        sparse.csr_matrix(draws), sparse.csc_array(draws.astype(float)), sparse.coo_array(draws),
    ]  # fmt: skip
    for form in forms:
        decision = maximize_expected_f_from_samples(form)
        np.testing.assert_array_equal(decision.selected, want.selected)
        assert decision.expected == pytest.approx(want.expected, rel=1e-14)
        assert decision.std == pytest.approx(want.std, rel=1e-13)
    with pytest.raises(ValueError, match=r"samples must hold 0 and 1 \(or booleans\), got 2"):
        maximize_expected_f_from_samples(duplicated)
    stored_zero = sparse.csr_array(draws.astype(float))
    stored_zero.data[:5] = 0.0
    np.testing.assert_array_equal(
        maximize_expected_f_from_samples(stored_zero).contribution,
        maximize_expected_f_from_samples(stored_zero.toarray()).contribution,
    )


def test_weights_count_draws():
    draws = dependent_draws(2, 30, 15)
    times = np.random.default_rng(0).integers(0, 4, 30)
    repeated = maximize_expected_f_from_samples(draws.repeat(times, axis=0))
    for scale in (1, 0.25):
        weighted = maximize_expected_f_from_samples(draws, weights=scale * times)
        np.testing.assert_array_equal(weighted.selected, repeated.selected)
        assert weighted.expected == pytest.approx(repeated.expected, rel=1e-13)
        assert weighted.std == pytest.approx(repeated.std, rel=1e-12)


def test_order_does_not_matter():
    draws = dependent_draws(4, 60, 25)
    want = maximize_expected_f_from_samples(draws)
    rng = np.random.default_rng(0)
    columns, rows = rng.permutation(25), rng.permutation(60)
    moved = maximize_expected_f_from_samples(draws[rows][:, columns])
    np.testing.assert_array_equal(moved.selected, want.selected[columns])
    assert moved.k == want.k


def test_of_equal_labels_the_first_are_taken():
    draws = np.zeros((6, 6), int)
    draws[np.arange(6), np.arange(6)] = 1
    for source in (draws, sparse.csr_array(draws)):
        decision = maximize_expected_f_from_samples(source, beta=0.1)
        assert decision.selected.tolist() == [i < decision.k for i in range(6)]
    P, p0 = joint_parameters(draws, np.full(6, 1 / 6))
    decision = maximize_expected_f_from_joint(P, p0, beta=0.1)
    assert decision.selected.tolist() == [i < decision.k for i in range(6)]


def test_memory_stays_within_twice_the_draws():
    draws = np.random.default_rng(0).random((600, 20_000), dtype=np.float32) < 0.05
    maximize_expected_f_from_samples(draws[:, :100])  # compile
    tracemalloc.start()
    maximize_expected_f_from_samples(draws)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * draws.nbytes


@pytest.mark.slow
def test_a_thousand_draws_of_a_hundred_thousand_labels():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 5, 100_000).astype(np.float32)
    draws = np.stack([rng.random(p.size, dtype=np.float32) < p for _ in range(1000)])
    tracemalloc.start()
    decision = maximize_expected_f_from_samples(draws)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * draws.nbytes
    chosen = np.flatnonzero(decision.selected)
    hits, positives = draws[:, chosen].sum(axis=1), draws.sum(axis=1)
    f = 2 * hits / (chosen.size + positives)
    assert decision.expected == pytest.approx(f.mean(), rel=1e-12)
    for other in (decision.k - 1, decision.k + 1):  # neighbouring sizes at their best
        delta = (draws * (2 / (other + positives))[:, None]).mean(axis=0)
        assert np.sort(delta)[-other:].sum() <= decision.expected * (1 + 1e-12)


GOOD = np.array([[0.5, 0.0], [0.0, 0.5], [0.0, 0.5]])


@pytest.mark.parametrize(
    ("P", "p0", "reason"),
    [
        (-GOOD, 0.0, r"P must be finite and in \[0, 1\], got -0.5 at position \(0, 0\)"),
        (GOOD * np.nan, 0.0, "P must be finite and in"),
        (GOOD, -0.1, r"p0 must be finite and in \[0, 1\], got -0.1$"),
        (GOOD, 0.2, "must add up to 1, got 1.2"),
        (GOOD / 2, 0.2, "must add up to 1, got 0.7"),
        (
            [[0.3, 0.4], [0.3, 0.0]],
            0.2,
            r"must not exceed P\(S = s\).*got 0.4 at position \(0, 1\) against 0.2",
        ),
        (np.full((2, 3), 0.1), 0.0, "at most 2 columns, got 3"),
        (np.zeros((2, 0)), 1.0, r"P must hold at least one label and one column, got \(2, 0\)"),
        ([0.5], 0.0, "P must have two dimensions, or three for a batch, got 1"),
        (GOOD[None], 0.0, r"p0 must have shape \(1,\) to go with P, got \(\)"),
        (GOOD[None], [1.5], r"p0 must be finite and in \[0, 1\], got 1.5 at position 0"),
        (np.stack([GOOD, GOOD]), [0.0, 0.3], "got 1.3 in instance 1"),
        ([["a"]], 0.0, "P must hold real numbers"),
    ],
)
def test_parameters_that_no_distribution_has_are_refused(P, p0, reason):
    with pytest.raises(ValueError, match=reason):
        maximize_expected_f_from_joint(P, p0)


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_parameters_of_a_distribution_are_not_refused(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    states = all_label_vectors(n)
    mass = rng.dirichlet(np.full(len(states), rng.choice([0.01, 0.1, 1.0])))
    P, p0 = joint_parameters(states, mass)
    rounded = maximize_expected_f_from_joint(P.astype(np.float32), p0)
    exact = maximize_expected_f_from_joint(P, p0)
    assert rounded.expected == pytest.approx(exact.expected, rel=1e-5, abs=1e-6)


def test_rounding_is_not_refused():
    for p0 in (1.0000000000000002, 1 - 1e-9):
        assert maximize_expected_f_from_joint(np.zeros((3, 3)), p0).k == 0
    decision = maximize_expected_f_from_joint([[1.0000000000000002]], -1e-17)
    assert decision.expected == pytest.approx(1.0)
    decision = maximize_expected_f_from_joint(GOOD - 1e-17, 0.0)
    assert decision.expected == maximize_expected_f_from_joint(GOOD, 0.0).expected


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: maximize_expected_f_from_samples([1, 0]), "samples must have two dimensions"),
        (lambda: maximize_expected_f_from_samples(np.zeros((0, 3))), "at least one draw"),
        (lambda: maximize_expected_f_from_samples([[0.5]]), "samples must hold 0 and 1"),
        (
            lambda: maximize_expected_f_from_samples([[1]], weights=[-1]),
            "weights must be finite and not negative, got -1.0",
        ),
        (
            lambda: maximize_expected_f_from_samples([[1]], weights=[1, 2]),
            r"weights must have shape \(1,\), got \(2,\)",
        ),
        (lambda: maximize_expected_f_from_samples([[1]], beta=0), "beta must be positive"),
        (lambda: maximize_expected_f_from_mixture([0.5]), "p must have two dimensions"),
        (
            lambda: maximize_expected_f_from_mixture([[0.5, 1.5]]),
            r"p must be finite and in \[0, 1\], got 1.5 at position \(0, 1\)",
        ),
        (
            lambda: maximize_expected_f_from_mixture([[0.5]], weights=[0]),
            "weights must not all be zero, got",
        ),
        (
            lambda: maximize_expected_f_from_mixture([[0.5]], zero_division=2),
            r"zero_division must lie in \[0, 1\], got 2",
        ),
    ],
)
def test_bad_input_is_named(call, reason):
    with pytest.raises(ValueError, match=reason):
        call()
