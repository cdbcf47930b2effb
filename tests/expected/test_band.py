"""The band: the best set is found without sorting, and nothing outside of the band is better."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argmaxf import expected_f_curve, maximize_expected_f
from argmaxf.expected import array_passes, band
from argmaxf.expected.array_passes import ArrayPasses
from argmaxf.expected.sets import decide_by_search
from argmaxf.measures import Dice, FBeta, IoU, Jaccard, Tversky
from argmaxf.problem import Problem
from tests.judges import near_sets_of_many, values_of_runs

MEASURES = (
    FBeta(1),
    FBeta(0.4),
    FBeta(5),
    FBeta(1e4),
    Jaccard(),
    Tversky(0.3, 1.5),
    Dice(50.0),
    IoU(1.0),
)


def decide(p, measure, wide=True, **options):
    """Decide an array by the band alone."""
    return band.decide(ArrayPasses(p), Problem.of(measure=measure, **options), wide)


def spread_out(rng, n):
    return {
        "beta": rng.beta(0.5, 5, n),
        "likely": rng.beta(5, 2, n),
        "logits": 1 / (1 + np.exp(3 - 4 * rng.standard_normal(n))),
        "two camps": np.where(rng.random(n) < 0.3, rng.uniform(0.7, 1, n), rng.uniform(0, 0.1, n)),
        "near certain": np.where(
            rng.random(n) < 0.3, 1 - 10 ** rng.uniform(-12, -1, n), 10 ** rng.uniform(-12, -1, n)
        ),
        "ones among others": np.where(rng.random(n) < 0.2, 1.0, rng.beta(0.5, 3, n)),
        "8 bits": np.round(255 * rng.beta(0.6, 2, n)) / 255,
        "single precision": rng.beta(0.6, 3, n).astype(np.float32),
    }


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("kind", spread_out(np.random.default_rng(0), 10))
def test_the_same_set_as_by_the_search(kind, measure):
    for seed, n in enumerate((12_000, 30_000, 150_000)):
        p = spread_out(np.random.default_rng(seed), n)[kind]
        found = decide(p, measure)
        truth = decide_by_search(p, Problem.of(measure=measure))
        assert found is not None
        assert found[:2] == (truth.k, truth.threshold)
        np.testing.assert_allclose(found[2:], (truth.expected, truth.std), rtol=1e-12)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(MEASURES),
    st.floats(-1.5, 1.0),
    st.floats(-1.5, 1.5),
)
def test_no_set_of_any_size_is_better(seed, measure, a, b):
    """Few positives or many: an answer is the best of all sizes, or there is none."""
    p = np.random.default_rng(seed).beta(10**a, 10**b, 2_500)
    found = decide(p, measure)
    if found is not None:
        curve = expected_f_curve(p, measure=measure)
        assert curve[found[0]] >= curve.max() * (1 - 1e-13)
        assert found[2] == pytest.approx(curve[found[0]], rel=1e-12)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
def test_neighbours_are_told_apart_in_the_order_of_many_digits(measure, seed):
    """Runs of equal items, and some that are near the best cut, as 45-digit integrals rank them."""
    rng, c = np.random.default_rng(seed), measure.coefficients()
    values, count = np.sort(rng.beta(0.4, 2, 20))[::-1], rng.integers(1, 9_000, 20)
    k, mass = np.cumsum(count), np.cumsum(count * values)
    f = (c.c * mass + c.s0) / (k + c.b_in * mass + c.b_out * (mass[-1] - mass) + c.s1)
    top = int(np.argmax(f))
    cut = f[top] / (c.c - (c.b_in - c.b_out) * f[top])
    near = cut * (1 + 1e-7 * (np.arange(30.0) - 15 + rng.random(30)))[::-1]
    values = np.concatenate([values[: top + 1], near, values[top + 1 :]])
    count = np.concatenate([count[: top + 1], np.ones(30, int), count[top + 1 :]])
    sizes = np.cumsum(count)[top : top + 31].tolist()
    truth = values_of_runs(sizes, values, count, c)
    best = max(range(31), key=truth.__getitem__)
    p = rng.permutation(np.repeat(values, count))
    found = decide(p, measure)
    assert found is not None
    assert found[0] == sizes[best]
    assert found[2] == pytest.approx(float(truth[best]), rel=1e-13)


@pytest.mark.parametrize("measure", [*MEASURES[:3], *MEASURES[4:]], ids=str)
@pytest.mark.parametrize("move", [0.8, 0.97, 1.03, 1.25])
def test_a_band_that_is_elsewhere_proves_nothing(measure, move):
    """Exact sums around the wrong threshold: some set outside of the band is better."""
    passes = ArrayPasses(np.random.default_rng(1).beta(0.5, 4, 100_000))
    problem = Problem.of(measure=measure)
    cut = maximize_expected_f(passes.p, measure=measure).threshold

    def decided(centre):
        around = band.Band(centre * 0.998, centre * 1.001, centre * 1.002, -1.0)
        sums, items = passes.around(around.low, around.high, 50_000)
        return band.best_end(items, sums, around, passes.n, problem)

    assert decided(cut).k > 0
    assert decided(cut * move) is False


def test_no_item_is_near_the_cut():
    p = np.repeat([0.9, 0.01], [2_000, 8_000])
    found = decide(p, FBeta(1))
    assert found is not None
    assert found[:2] == (2_000, 0.9)


FEW = {
    "absent": lambda rng, n: np.exp(rng.normal(size=n) - 9),
    "some stand out": lambda rng, n: np.where(np.arange(n) < 300, rng.random(n), 1e-7),
    "certain ones": lambda rng, n: np.where(np.arange(n) < 100, 1.0, rng.random(n) * 1e-3),
    "two certain ones": lambda rng, n: np.where(np.arange(n) < 2, 1.0, rng.random(n) * 1e-4),
    "tiny": lambda rng, n: 10 ** -rng.uniform(3, 12, n),
    "hundreds": lambda rng, n: np.minimum(rng.gamma(0.2, 1, n) * 2e3 / n, 1),
}


@pytest.mark.parametrize("measure", [*MEASURES, FBeta(1e-3), Tversky(0.7, 0.3)], ids=str)
@pytest.mark.parametrize("kind", FEW)
def test_few_positives_are_decided_by_a_band_from_the_top(kind, measure):
    decided = 0
    for seed, n in enumerate((9_000, 30_000, 200_000)):
        p = FEW[kind](np.random.default_rng(seed), n)
        for zero_division in (0.0, 0.4):
            found = decide(p, measure, zero_division=zero_division)
            if found is not None:
                problem = Problem.of(measure=measure, zero_division=zero_division)
                truth = decide_by_search(p, problem)
                assert found[:2] == (truth.k, truth.threshold)
                np.testing.assert_allclose(found[2:], (truth.expected, truth.std), rtol=1e-11)
                decided += 1
    assert decided >= 2


@pytest.mark.parametrize("measure", [FBeta(1), Jaccard(), Dice(3.0)], ids=str)
@pytest.mark.parametrize("kind", ["beta", "8 bits", "ones among others"])
def test_equal_items_stay_together(kind, measure):
    p = np.round(spread_out(np.random.default_rng(2), 40_000)[kind], 2)
    found = decide(p, measure, ties="together")
    truth = decide_by_search(p, Problem.of(measure=measure, ties="together"))
    assert found[:2] == (truth.k, truth.threshold)
    assert np.count_nonzero(p >= found.threshold) == found.k


def test_limits_that_exclude_the_best_set_are_left_to_the_search():
    p = np.random.default_rng(0).beta(0.5, 5, 30_000)
    k = decide(p, FBeta(1)).k
    assert decide(p, FBeta(1), max_selected=k, min_selected=k).k == k
    assert decide(p, FBeta(1), max_selected=k - 1) is None
    assert decide(p, FBeta(1), min_selected=k + 1) is None
    assert maximize_expected_f(p, max_selected=k - 1).k == k - 1


def test_many_items_that_look_alike_are_left_to_the_search():
    p = 3e-4 + 1e-9 * np.random.default_rng(0).random(600_000)
    assert decide(p, FBeta(1)) is None


@pytest.mark.parametrize("measure", [FBeta(1), Jaccard()], ids=str)
@pytest.mark.parametrize("kind", ["beta", "two camps", "8 bits", "single precision"])
def test_chunks_give_the_same_answer_as_all_at_once(monkeypatch, kind, measure):
    p = spread_out(np.random.default_rng(3), 700_000)[kind][::2]
    whole = decide(p, measure)
    monkeypatch.setattr(array_passes, "CHUNK", 1 << 14)
    monkeypatch.setattr(array_passes, "threads_for", lambda n: 3)
    parts = decide(p, measure)
    assert parts[:2] == whole[:2]
    np.testing.assert_allclose(parts[2:], whole[2:], rtol=1e-13)


@pytest.mark.parametrize("beta", [1.0, 200.0])
def test_half_precision_in_chunks(beta):
    """The least item above the band is nearer to it than numbers of its type are to each other."""
    p = (np.random.default_rng(0).random((1 << 20) + 1) ** 4).astype(np.float16)
    found = maximize_expected_f(p, beta=beta, zero_division=1.0)
    truth = decide_by_search(p, Problem.of(beta))
    assert (found.k, found.threshold) == (truth.k, truth.threshold)
    assert np.count_nonzero(found.selected) == found.k


def test_rounding_in_a_long_band_does_not_decide():
    """One item less is better by 6e-19, as integrals of 45 digits say."""
    values = [0.6782611319781284, 0.32891714481658296, 0.3289108773379833, 0.01968214234218009]
    count, tversky = [390_299, 32_089, 1, 55_394], Tversky(1.0, 1.5)
    sizes = [390_299, 422_388, 422_389]
    truth = values_of_runs(sizes, values, count, tversky.coefficients())
    assert 0 < truth[1] - truth[2] < 1e-18
    assert truth[0] < truth[1]
    assert maximize_expected_f(np.repeat(values, count), measure=tversky).k == 422_388


@pytest.mark.parametrize("n", [30_000, 1_200_000])
@pytest.mark.parametrize("wrong", [np.nan, -1e-9, 1.5])
def test_what_is_no_probability_is_named(n, wrong):
    p = np.random.default_rng(0).beta(0.5, 5, n)
    p[n - 7] = wrong
    with pytest.raises(ValueError, match=f"position {n - 7}"):
        maximize_expected_f(p)


@pytest.mark.parametrize("measure", [FBeta(1), FBeta(0.5), Jaccard()], ids=str)
@pytest.mark.parametrize("kind", ["likely", "rare"])
@pytest.mark.parametrize("seed", range(2))
def test_neighbours_among_very_many_items_are_told_apart(measure, kind, seed):
    """Values of f that differ in their seventeenth digit, as neighbours, among 10⁸ items."""
    p, count, k, f = near_sets_of_many(measure.coefficients(), kind, seed)
    near = int(np.argmax(count == 1))

    def powers(part):
        values, times = p[part], count[part].astype(float)
        return [times @ values, *(times @ (values**j * (1 - values)) for j in range(8))]

    sums = np.array([powers(slice(near + 40, None)), powers(slice(near))])
    items = np.sort(p[near : near + 40])
    low, high = items[0], items[-1]
    around = band.Band(low, (low + high) / 2, high, 0.0)  # no proof is asked for
    found = band.best_end(items, sums, around, int(count.sum()), Problem.of(measure=measure))
    assert found.k == k
    assert found.expected == pytest.approx(f, rel=1e-11)
