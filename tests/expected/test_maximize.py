import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.signal import fftconvolve

from argmaxf import expected_f, maximize_expected_f
from argmaxf.expected import array_passes, maximize
from argmaxf.expected import search as grouped_search
from argmaxf.expected.array_passes import ArrayPasses
from argmaxf.expected.decision import top_items
from argmaxf.expected.groups import Source
from argmaxf.expected.sets import decide_by_search, decide_large
from argmaxf.measures import FBeta, Jaccard, Tversky
from argmaxf.problem import Problem
from reproduction.references import ye_2012
from tests.judges import BETAS, best_k, curve_40_digits, families

probabilities = st.one_of(
    st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1 - 1e-12, 1e-12, 1e-300, 0.499, 0.5 - 2**-54]),
    st.floats(0.0, 1.0),
)
small_sets = st.lists(probabilities, min_size=1, max_size=12)
betas = st.floats(0.05, 20.0)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("name", families())
def test_equal_to_40_digit_arithmetic(name, beta):
    p = families()[name]
    truth = curve_40_digits(p, beta)
    decision = maximize_expected_f(p, beta=beta)
    assert decision.k == best_k(truth)
    assert abs(decision.expected / truth[decision.k] - 1) < 1e-12


@given(small_sets, betas, st.sampled_from([0.0, 0.3, 1.0]))
@example(p=[0.5], beta=0.0977792595631519, zero_division=1.0)  # β² has more than 28 digits
@settings(max_examples=300, deadline=None)
def test_no_draw_beats_the_optimum(p, beta, zero_division):
    truth = curve_40_digits(p, beta, zero_division=zero_division)
    decision = maximize_expected_f(p, beta=beta, zero_division=zero_division)
    assert decision.k == best_k(truth)
    assert decision.expected == pytest.approx(float(truth[decision.k]), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("beta_squared", [1, 4, Fraction(1, 4), Fraction(9, 4)])
@pytest.mark.parametrize("n", [1, 2, 17, 100, 500, 3000])
def test_equal_to_algorithm_1(n, beta_squared):
    p = np.random.default_rng(n).beta(0.5, 5, n)
    f = ye_2012(p, beta_squared)
    decision = maximize_expected_f(p, beta=math.sqrt(beta_squared))
    assert decision.k == np.argmax(f)
    assert decision.expected == pytest.approx(f.max(), rel=1e-12)


def test_a_million_items():
    p = np.random.RandomState(0).beta(0.5, 5, 10**6)
    decision = maximize_expected_f(p)
    assert decision.k == 150639
    assert abs(decision.expected - 0.38980022670735) < 1e-12
    assert decision.selected.sum() == decision.k
    assert p[decision.selected].min() == decision.threshold > p[~decision.selected].max()


@given(
    st.lists(probabilities, min_size=1, max_size=60),
    betas,
    st.sampled_from(["split", "together"]),
    st.sampled_from(["fbeta", "jaccard"]),
    st.sampled_from([0.0, 1.0]),
)
@example(p=[0.5, 0.49609375], beta=1.0, ties="split", measure="fbeta", zero=0.0)
@settings(max_examples=300, deadline=None)
def test_the_search_without_sorting_finds_what_sorting_finds(p, beta, ties, measure, zero):
    """The way of millions of items, taken on few, where both can run."""
    p = np.array(p * 3)  # ties
    beta = beta if measure == "fbeta" else 1.0
    options = {"beta": beta, "ties": ties, "measure": measure, "zero_division": zero}
    by_sorting = maximize_expected_f(p, **options)
    problem = maximize.Problem.of(beta, measure, zero, ties)
    for decide in (decide_large, decide_by_search):
        by_search = decide(p, problem)
        assert by_search.expected == pytest.approx(by_sorting.expected, rel=1e-12, abs=1e-290)
        if by_search.k != by_sorting.k:  # only where f agrees to the last digits
            alternative = expected_f(p, by_search.selected, beta=beta, measure=measure)
            assert alternative.mean == pytest.approx(by_sorting.expected, rel=1e-13)
        else:
            np.testing.assert_array_equal(by_search.selected, by_sorting.selected)
            assert by_search.threshold == by_sorting.threshold
            assert by_search.std == pytest.approx(by_sorting.std, rel=1e-8, abs=2e-14)


LARGE = {
    "beta": lambda rng: rng.beta(0.5, 5, 40_000),
    "uniform": lambda rng: rng.random(40_000),
    "two clusters": lambda rng: np.r_[rng.beta(50, 5, 4_000), rng.beta(1, 500, 30_000)],
    "8-bit": lambda rng: rng.integers(0, 256, 40_000) / 255,
    "one value": lambda rng: np.full(40_000, 0.123),
    "few values": lambda rng: rng.choice([0.0, 0.01, 0.3, 0.99, 1.0], 40_000),
    "clusters far apart": lambda rng: (
        rng.choice([0.01, 0.1575, 0.305, 0.4525, 0.6], 20_000) * (1 + 1e-9 * rng.random(20_000))
    ),
    "tiny": lambda rng: rng.random(20_000) * 1e-6,
    "below 2^-64": lambda rng: rng.random(20_000) * 1e-40,
    "near one": lambda rng: 1 - rng.random(20_000) * 1e-9,
    "around one half": lambda rng: 0.5 + rng.uniform(-1e-3, 1e-3, 40_000),
    "rare": lambda rng: rng.dirichlet(np.ones(20_000)) * 0.2,
    "one half and just below": lambda rng: np.r_[
        rng.beta(5, 0.5, 15_000),
        np.full(9, 0.5),
        0.5 - rng.random(9) * 0.007,
        rng.random(3_000) / 3,
    ],
}


@pytest.mark.parametrize("beta", [0.1, 1.0, np.pi])
@pytest.mark.parametrize("name", LARGE)
def test_large_sets_equal_the_whole_curve(name, beta):
    from argmaxf import expected_f_curve

    p = LARGE[name](np.random.default_rng(1))
    for measure in (FBeta(beta), Jaccard()):
        curve = expected_f_curve(p, measure=measure)
        decision = maximize_expected_f(p, measure=measure)
        assert decision.expected == pytest.approx(curve.max(), rel=1e-12)
        assert curve[decision.k] == pytest.approx(curve.max(), rel=2e-14)
        assert decision.selected.sum() == decision.k
        assert p[decision.selected].min() == decision.threshold
        spread = expected_f(p, decision.selected, measure=measure)
        assert spread.mean == pytest.approx(decision.expected, rel=1e-12)
        assert spread.std == pytest.approx(decision.std, rel=1e-8)


def test_clusters_far_apart_take_no_row_for_every_number_between():
    p = LARGE["clusters far apart"](np.random.default_rng(0))
    maximize_expected_f(p, measure="jaccard")  # compiled
    tracemalloc.start()
    decide_by_search(p, Problem.of())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6


def test_exact_ties_go_to_the_smallest_k():
    # f_1 = f_2 = 5/6 exactly
    assert maximize_expected_f([1.0, 0.5]).k == 1
    # a hair more than one half decides for two
    assert maximize_expected_f([1.0, np.nextafter(0.5, 1)]).k == 2
    # all zero: every set has F = 0
    assert maximize_expected_f([0.0, 0.0]).k == 0
    # f_0 = P(S = 0) = f_1 = 1/2
    assert maximize_expected_f([0.5], zero_division=1.0).k == 0
    assert maximize_expected_f([np.nextafter(0.5, 1)], zero_division=1.0).k == 1


def test_nothing_is_selected_where_nothing_pays():
    decision = maximize_expected_f([0.1, 0.05], zero_division=1.0)
    assert decision.k == 0
    assert decision.threshold == math.inf
    assert not decision.selected.any()
    assert decision.expected == pytest.approx(0.9 * 0.95)
    assert decision.std == pytest.approx(math.sqrt(0.855 * 0.145))


@given(small_sets, st.integers(1, 4), betas)
@settings(deadline=None)
def test_ties_together_is_the_best_cut_between_different_values(p, repeats, beta):
    p = np.sort(p * repeats)[::-1]
    cuts = [0, *np.flatnonzero(np.diff(p)) + 1, p.size]
    truth = curve_40_digits(p, beta)
    decision = maximize_expected_f(p, beta=beta, ties="together")
    assert decision.k in cuts
    assert decision.k == cuts[best_k([truth[k] for k in cuts])]


def test_of_equal_items_the_first_are_selected():
    p = np.array([0.2, 0.9, 0.2, 0.1, 0.2])
    selected = top_items(p, threshold=0.2, k=3)
    assert selected.tolist() == [True, True, True, False, False]


@pytest.mark.parametrize("n", [50, 20_000])
def test_order_changes_nothing(n):
    rng = np.random.default_rng(3)
    p = rng.beta(0.5, 5, n).round(3)  # with ties
    decision = maximize_expected_f(p, ties="together")
    shuffle = rng.permutation(n)
    shuffled = maximize_expected_f(p[shuffle], ties="together")
    assert shuffled.k == decision.k
    np.testing.assert_array_equal(shuffled.selected, decision.selected[shuffle])


@pytest.mark.parametrize(("threads", "chunk"), [(1, 1000), (3, 777), (2, 10**6), (8, 64)])
def test_threads_and_chunks_change_nothing(threads, chunk, monkeypatch):
    monkeypatch.setattr(array_passes, "threads_for", lambda n: threads)
    monkeypatch.setattr(array_passes, "CHUNK", chunk)
    p = np.random.default_rng(4).beta(0.5, 5, 30_000)
    problem = maximize.Problem.of(1.0, "fbeta")
    found = grouped_search.decide(Source(ArrayPasses(p)), problem).decision(p.size)
    decision = maximize_expected_f(p)
    assert (found.threshold, found.k) == (decision.threshold, decision.k)


def test_rows_columns_and_cells():
    p = np.random.default_rng(5).beta(0.5, 5, (7, 40))
    rows = maximize_expected_f(p, average="samples")
    columns = maximize_expected_f(p, average="macro")
    cells = maximize_expected_f(p, average="micro")
    for i, row in enumerate(p):
        single = maximize_expected_f(row)
        np.testing.assert_array_equal(rows.selected[i], single.selected)
        assert (rows.k[i], rows.threshold[i]) == (single.k, single.threshold)
        assert (rows.expected[i], rows.std[i]) == (single.expected, single.std)
    transposed = maximize_expected_f(p.T, average="samples")
    np.testing.assert_array_equal(columns.selected, transposed.selected.T)
    np.testing.assert_array_equal(columns.k, transposed.k)
    assert cells.k == maximize_expected_f(p.ravel()).k
    assert cells.selected.shape == p.shape
    assert rows.n == 40
    assert columns.n == 7
    assert cells.n == 280


def test_long_rows_go_the_way_of_long_sets():
    p = np.random.default_rng(6).beta(0.5, 5, (2, 20_000))
    rows = maximize_expected_f(p, average="samples")
    assert rows.k.tolist() == [maximize_expected_f(row).k for row in p]
    assert rows.selected.sum(axis=1).tolist() == rows.k.tolist()


def test_zero_rows_give_empty_answers():
    assert maximize_expected_f(np.empty((0, 4)), average="samples").k.shape == (0,)
    macro = maximize_expected_f(np.empty((0, 4)), average="macro", zero_division=1.0)
    assert macro.selected.shape == (0, 4)
    assert macro.expected.tolist() == [1.0] * 4
    assert maximize_expected_f(np.empty((0, 4)), average="micro").k == 0


def frozen(p):
    p = p.copy()
    p.flags.writeable = False
    return p


CONTAINERS = {
    "list": lambda p: p.tolist(),
    "frozen": frozen,
    "strided": lambda p: np.repeat(p, 2)[::2],
    "reversed view": lambda p: p[::-1].copy()[::-1],
    "pandas": pd.Series,
    "polars": pl.Series,
    "arrow": pa.array,
    "arrow chunks": lambda p: pa.chunked_array([p[:7], p[7:]]),
}


@pytest.mark.parametrize("n", [100, 20_000])
@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_works_and_is_left_alone(name, n):
    p = np.random.default_rng(7).beta(0.5, 5, n)
    container = CONTAINERS[name](p)
    decision = maximize_expected_f(container)
    np.testing.assert_array_equal(decision.selected, maximize_expected_f(p).selected)
    np.testing.assert_array_equal(np.asarray(container), p)


@pytest.mark.parametrize("n", [100, 20_000])
def test_float32_and_memory_maps(tmp_path, n):
    p = np.random.default_rng(8).beta(0.5, 5, n).astype(np.float32)
    wide = maximize_expected_f(p.astype(np.float64))
    narrow = maximize_expected_f(p)
    assert (narrow.k, narrow.threshold, narrow.expected) == (wide.k, wide.threshold, wide.expected)
    np.testing.assert_array_equal(narrow.selected, wide.selected)
    p.tofile(tmp_path / "p.bin")
    mapped = np.memmap(tmp_path / "p.bin", dtype=np.float32, mode="r")
    np.testing.assert_array_equal(maximize_expected_f(mapped).selected, wide.selected)


def test_integers_and_booleans_are_certain_labels():
    assert maximize_expected_f([1, 0, 1]).selected.tolist() == [True, False, True]
    assert maximize_expected_f(np.array([True, False])).expected == pytest.approx(1.0)


@pytest.mark.parametrize("n", [10, 20_000])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1e-9, 1.0000001])
def test_what_is_no_probability_is_named(bad, n):
    p = np.full(n, 0.5)
    p[n - 4 :: 2] = bad
    with pytest.raises(ValueError, match=rf"in \[0, 1\], got {bad!r} at position {n - 4}"):
        maximize_expected_f(p)


def test_a_bad_cell_is_named_by_row_and_column():
    with pytest.raises(ValueError, match=r"got 2.0 at position \(1, 0\)"):
        maximize_expected_f([[0.1, 0.2], [2.0, 0.3]], average="samples")


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([], "at least one probability"),
        ([["a"]], "real numbers, got list of dtype"),
        (["0.5"], "real numbers"),
        ([None, 0.5], "real numbers, got None at position 0"),
        ([[0.5], [0.5, 0.1]], "array of numbers"),
        ([1j], "real numbers"),
        (0.5, "one or two dimensions, got 0"),
        (np.zeros((2, 2, 2)), "one or two dimensions, got 3"),
        ([[0.5]], "needs average"),
    ],
)
def test_what_is_no_array_is_refused(p, message):
    with pytest.raises(ValueError, match=message):
        maximize_expected_f(p)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": 0}, "beta must be positive and finite, got 0"),
        ({"beta": math.nan}, "beta must be positive and finite, got nan"),
        ({"measure": "auc"}, "measure must be one of 'f1', 'fbeta'.*; got 'auc'"),
        ({"measure": "jaccard", "beta": 2}, "measure='jaccard' has no beta, got beta=2"),
        ({"measure": FBeta(2), "beta": 3}, "not both; got .* and beta=3"),
        ({"ties": "random"}, "ties must be one of 'split', 'together'"),
        ({"zero_division": 2}, r"zero_division must lie in \[0, 1\], got 2"),
        ({"average": "macro"}, "average is for two-dimensional p"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        maximize_expected_f([0.5], **options)


def test_memory_stays_small_beside_the_input():
    p = np.random.default_rng(9).beta(0.5, 5, 4_000_000)
    maximize_expected_f(p)  # compile
    tracemalloc.start()
    try:
        decision = maximize_expected_f(p)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak - decision.selected.nbytes < 0.25 * p.nbytes


MANY = {
    "beta": lambda rng, n: rng.beta(0.5, 5, n),
    "logits": lambda rng, n: 1 / (1 + np.exp(5 - 3 * rng.standard_normal(n))),
    "uniform": lambda rng, n: rng.random(n),
    "tiny ones, too": lambda rng, n: np.exp(-rng.exponential(30, n)),
    "sharp": lambda rng, n: rng.beta(0.05, 0.05, n),
    "8-bit": lambda rng, n: rng.integers(0, 256, n) / 255,
    "zeros and ones": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "nothing": lambda rng, n: np.zeros(n),
}


ASKED = {
    "F.5": {"beta": 0.5},
    "F1, 0/0 = 1": {"beta": 1.0, "zero_division": 1.0},
    "F3": {"beta": 3.0},
    "F.001": {"beta": 1e-3},
    "F1000": {"beta": 1e3},
    "F1e9": {"beta": 1e9},
    "Jaccard": {"measure": "jaccard"},
    "Jaccard, 0/0 = 1": {"measure": "jaccard", "zero_division": 1.0},
    "Tversky": {"measure": Tversky(0.3, 2.0)},
    "Tversky, far apart": {"measure": Tversky(0.01, 500.0)},
}


@pytest.mark.parametrize("chance", ASKED)
@pytest.mark.parametrize("name", MANY)
def test_large_sets_are_decided_as_by_the_grouped_search(name, chance):
    rng = np.random.default_rng(3)
    problem = maximize.Problem.of(**ASKED[chance])
    for p in (MANY[name](rng, 20_000), MANY[name](rng, 40_000).astype(np.float32)):
        found, truth = decide_large(p, problem), decide_by_search(p, problem)
        assert (found.k, found.threshold) == (truth.k, truth.threshold)
        np.testing.assert_array_equal(found.selected, truth.selected)
        assert found.expected == pytest.approx(truth.expected, rel=1e-11)
        assert found.std == pytest.approx(truth.std, rel=1e-9, abs=1e-15)


def test_one_item_at_the_top_is_not_passed_over():
    """Precision counts, nearly alone: one item in a group of its own is better than five."""
    p = np.concatenate([[0.98], np.full(4, 0.93), np.linspace(0.9, 0.0, 20_000)])
    for beta in (1e-3, 1e-6):
        found = decide_large(p, maximize.Problem.of(beta))
        assert (found.k, found.threshold) == (1, 0.98)


def count_law(p):
    """P(S = s) by multiplying polynomials in pairs."""
    laws = [np.array([1 - each, each]) for each in p]
    while len(laws) > 1:
        pairs = zip(laws[::2], [*laws[1::2], np.ones(1)][: len(laws[::2])], strict=True)
        laws = [
            fftconvolve(a, b) if min(a.size, b.size) > 64 else np.convolve(a, b) for a, b in pairs
        ]
    return np.abs(laws[0])


@pytest.mark.parametrize(("seed", "beta"), [(5, 2e8), (9, 1e7), (10, 1e6)])
@pytest.mark.parametrize("decide", [decide_large, decide_by_search])
def test_the_loss_is_known_where_f_is_one_to_fourteen_digits(decide, seed, beta):
    """Positives that are left out have odds of 1e-14: the loss is a sum over T with few of them."""
    p = np.sort(1 / (1 + np.exp(-np.random.RandomState(seed).normal(0, 30, 24_000))))[::-1]
    k = decide(p, maximize.Problem.of(beta)).k
    b, near = np.longdouble(beta) ** 2, range(k - 4, k + 5)
    some = (p < 1 - 1e-16) & (p > 1e-9)
    law, ones = count_law(p[some]), np.count_nonzero(p >= 1 - 1e-16)
    t = (np.flatnonzero(law > 1e-25) + ones).astype(np.longdouble)
    law = law[law > 1e-25].astype(np.longdouble)

    def loss(size):
        few, left = p[:size][p[:size] <= 1e-9].sum(), p[size:].astype(np.longdouble).sum()
        inside = (1 - few) * (size - t) / (size + b * t) + few * (size - t - 1) / (
            size + b * (t + 1)
        )
        return law @ ((1 - left) * inside + left * (size - t + b) / (size + b * (t + 1)))

    assert p[k - 5] <= 1e-9  # so that the items around the cut are among the few
    assert min(near, key=loss) == k


@pytest.mark.parametrize("p", [0.06, 0.3])
@pytest.mark.parametrize("n", [8_200, 32_000])
def test_a_long_band_does_not_drift(n, p):
    """T / (k + R / 2 - T / 2), all alike: Tversky(1, .5) of everything is p."""
    found = decide_large(np.full(n, p), maximize.Problem.of(measure=Tversky(1.0, 0.5)))
    assert found.k == n
    assert found.expected == pytest.approx(p, rel=2e-13)


@pytest.mark.parametrize("a", [0.002, 0.3, 0.9])
def test_a_scale_that_grows_by_more_than_any_number(a):
    """Tversky's index far from Dice, items near one: a group's factor of Q is e^{thousands}."""
    p = 1 - 10.0 ** -np.random.default_rng(0).uniform(1, 17, 20_000)
    found = maximize_expected_f(p, measure=Tversky(a, 500.0))
    assert found.k == 20_000
    assert 0.99 < found.expected < 1.0


def test_large_rows_are_decided_each_alone():
    rng = np.random.default_rng(4)
    p = rng.beta(0.5, 5, (3, 20_000))
    found = maximize_expected_f(p, average="samples")
    for r in range(3):
        alone = maximize_expected_f(p[r])
        assert found.k[r] == alone.k
        np.testing.assert_array_equal(found.selected[r], alone.selected)
    p[1, 7] = np.nan
    with pytest.raises(ValueError, match=r"got nan at position \(1, 7\)"):
        maximize_expected_f(p, average="samples")
