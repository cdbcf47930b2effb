"""Sets of few levels, certain items, labels of one half, tiny and huge ones: what sets drawn at
random hardly ever are. The judges are the definition and convolutions of counts."""

import itertools
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from mpmath import mp
from scipy.stats import binom

from argmaxf import (
    ProbabilitySketch,
    expected_f_curve,
    f_interval,
    maximize_empirical_f,
    maximize_expected_f,
    maximize_worst_case_f,
)
from argmaxf.expected import search as grouped_search
from argmaxf.expected.counts import PoissonBinomial
from argmaxf.expected.groups import Groups
from argmaxf.expected.sets import decide_by_search
from argmaxf.expected.ties import settle
from argmaxf.frames import decisions
from argmaxf.measures import MCC, BalancedAccuracy, Dice, FBeta, FowlkesMallows, Kappa, Tversky
from argmaxf.problem import Problem


def counts(p):
    """P(S = s) of independent labels."""
    odds = np.ones(1)
    for each in p:
        odds = np.convolve(odds, [1 - each, each])
    return odds


def value_and_spread(inside, outside, measure):
    """Mean and standard deviation of a measure, by the definition."""
    k, n = len(inside), len(inside) + len(outside)
    t, r = np.arange(k + 1.0)[:, None], np.arange(len(outside) + 1.0)
    odds = counts(inside)[:, None] * counts(outside)
    value = measure.value(t, k, t + r, n)
    mean = float((odds * value).sum())
    return mean, float(np.sqrt((odds * (value - mean) ** 2).sum()))


def top_values(p, measure):
    falling = np.sort(p)[::-1]
    return [value_and_spread(falling[:k], falling[k:], measure)[0] for k in range(p.size + 1)]


@pytest.mark.parametrize("measure", [Tversky(0.3, 100), Tversky(0.9, 30), Tversky(0.1, 5)], ids=str)
@pytest.mark.parametrize("sure", [1.0, 0.999])
def test_certain_items_left_out_at_a_high_price(measure, sure):
    """Each item taken in makes up for much of what was lost without it: nothing may underflow."""
    p = np.concatenate([np.full(30, sure), np.linspace(0.9, 0.1, 20)])
    values = top_values(p, measure)
    np.testing.assert_allclose(expected_f_curve(p, measure=measure), values, rtol=1e-11)
    found = maximize_expected_f(p, measure=measure)
    assert found.k == np.argmax(values)


def test_near_ties_where_certain_items_are_left_out_at_a_high_price():
    """Comparing in more digits, above 20 sizes, must not underflow."""
    p = np.sort(np.concatenate([np.ones(40), np.full(5, 0.5), np.full(20, 1e-4)]))[::-1]
    measure = Tversky(0.5, 90)
    best = int(np.argmax(top_values(p, measure)))
    assert settle(p, range(1, 66), Problem.of(measure=measure)) == best


def test_worst_case_without_a_sure_positive():
    """What may be positive is better inside than outside, if leaving it out costs more."""
    low, high, measure = np.zeros(4), np.array([0.9, 0.9, 0.5, 0.1]), FBeta(3, smooth=1)
    values = [value_and_spread(low[:k], high[k:], measure)[0] for k in range(5)]
    found = maximize_worst_case_f(low, high, measure=measure)
    assert found.k == np.argmax(values) > 0
    assert found.expected == pytest.approx(max(values), rel=1e-12)


def test_worst_case_among_many_near_ties():
    """Values that rise by 1e-14 from size to size are still told apart."""
    low = np.repeat([0.9, 1e-12], [262, 470])
    assert maximize_worst_case_f(low, np.ones(732)).k == 732  # E[2T / (732 + T)] rises with T


def test_bands_out_of_order_by_rounding_alone():
    """The bands of an odds factor, as documented, of neighbouring numbers."""
    p = np.random.default_rng(0).random(2_000)
    p = np.concatenate([p, np.nextafter(p, 1.0)])
    odds = p / (1 - p)
    low, high = odds / 7 / (1 + odds / 7), odds * 7 / (1 + odds * 7)
    assert (np.diff(low[np.lexsort((low, high))]) < 0).any()
    found = maximize_worst_case_f(low, high)
    assert found.k == found.selected.sum() > 0
    with pytest.raises(ValueError, match=r"keep their order, got \[0.3, 0.4\] at 2 inside"):
        maximize_worst_case_f([0.1, 0.2, 0.3], [0.5, 0.8, 0.4])


LINEAR = (MCC(), Kappa(), BalancedAccuracy(), FowlkesMallows())


@pytest.mark.parametrize("measure", LINEAR, ids=str)
@pytest.mark.parametrize("rest", [1e-6, 0.02])
def test_labels_of_one_half(measure, rest):
    """One that is turned by π has no probability: 1 - p + p e^{iπ} = 0."""
    p = np.concatenate([[0.5], np.full(60, rest), np.full(5, 0.0)])
    values = top_values(p, measure)
    best = int(np.argmax(values))
    _, spread = value_and_spread(p[:best], p[best:], measure)
    problem = Problem.of(measure=measure)
    for found in (
        maximize_expected_f(p, measure=measure),
        decisions(pl.DataFrame({"p": p}), "p", measure=measure, ties="split")[()],
        decide_by_search(p, problem),
        ProbabilitySketch.from_array(p).decide(measure=measure),
    ):
        assert found.k == best
        assert found.expected == pytest.approx(values[best], rel=1e-10)
        assert found.std == pytest.approx(spread, rel=1e-7)


@pytest.mark.parametrize("measure", [MCC(), Kappa()], ids=str)
def test_equal_items_say_nothing_to_arrays_and_frames_alike(measure):
    """Any set of equal items has the value 0 on average; the smallest is the empty one."""
    p = np.full(14, 0.99998925)
    assert maximize_expected_f(p, measure=measure).k == 0
    assert decisions(pl.DataFrame({"p": p}), "p", measure=measure)[()].k == 0


def test_the_threshold_of_a_sketch_leaves_out_what_is_impossible():
    """Where probabilities below the finest group are selected, those of 0 are not."""
    p = np.array([1e-30, 1e-40, 0.0, 0.0])
    found = ProbabilitySketch.from_array(p).decide()
    assert found.k == np.count_nonzero(p >= found.threshold) == 2


def test_the_threshold_of_a_sketch_leaves_out_a_run_at_the_border_of_a_group():
    """Rounded probabilities often lie at the borders of groups."""
    p = np.repeat([0.751, 0.75, 0.0], [3_000, 500, 10])
    found = ProbabilitySketch.from_array(p).decide(beta=0.01)
    assert found.k == np.count_nonzero(p >= found.threshold) == 3_000


@pytest.mark.parametrize("seed", range(10))
def test_a_sketch_values_its_own_threshold_as_its_decision(seed):
    """Near 1 a group is hardly wider than its last digits."""
    p = 1 - 10.0 ** -np.random.default_rng(seed).uniform(8, 15, 3)
    sketch = ProbabilitySketch.from_array(p)
    found = sketch.decide(ties="together")
    value = sketch.expected_f(threshold=found.threshold)
    assert value.mean == pytest.approx(found.expected, rel=1e-13)


def test_exact_fractions_of_a_price_above_one():
    """Tversky with b > 1 by the definition in fractions."""
    p, measure = [1.0, 1.0, 0.75, 0.5, 0.25], Tversky(0.5, 64)
    best = []
    for k in range(6):
        laws = [[Fraction(1)], [Fraction(1)]]
        for i, each in enumerate(map(Fraction, p)):
            law = laws[i >= k]
            laws[i >= k] = [
                a * (1 - each) + b * each for a, b in zip([*law, 0], [0, *law], strict=True)
            ]
        terms = (
            a * b * Fraction(t) / (t + Fraction(k - t, 2) + 64 * r)
            for t, a in enumerate(laws[0])
            for r, b in enumerate(laws[1])
            if t
        )
        best.append(float(sum(terms)))
    np.testing.assert_allclose(expected_f_curve(p, measure=measure), best, rtol=1e-13)


def test_intervals_end_where_the_measure_does():
    """A smoothed F is never above 1, nor MCC; some lie near."""
    truth, guess = np.arange(8) < 6, np.arange(8) < 5
    for measure in (Dice(1.0), MCC(), "gmean"):
        found = f_interval(truth, guess, measure=measure)
        assert -1.0 <= found.low < found.value < found.high <= 1.0
    assert f_interval(truth, ~truth, measure=MCC()).low == -1.0
    assert f_interval([1, 0, 0, 0], [0, 1, 0, 0], measure=Dice(1e-9)).low >= 0.0


def test_what_rounding_leaves_of_nothing_is_nothing_to_the_gmean():
    """Where all are selected no negative is found, whatever the weights add up to."""
    truth, score, weight = np.arange(30) % 2, np.full(30, 0.5), 0.1 + np.arange(30) / 7
    found = maximize_empirical_f(truth, score, measure="gmean", sample_weight=weight)
    assert found.value == 0.0


def test_all_of_a_flat_rest_where_so_many_are_asked_for():
    """Sets that are not allowed do not decide how those that are get evaluated."""
    dots, rest, chance = np.linspace(0.95, 0.6, 16), 150_000, 3e-8
    odds = np.convolve(counts(dots), binom.pmf(np.arange(30), rest, chance))
    t, n = np.arange(odds.size), rest + dots.size
    p = np.concatenate([dots, np.full(rest, chance)])
    found = maximize_expected_f(p, min_selected=50, ties="together")
    assert found.k == n
    assert found.expected == pytest.approx(odds @ (2 * t / (n + t)), rel=2e-12, abs=0)


@pytest.mark.parametrize("seed", range(24))
def test_no_set_that_parts_equal_items_is_better_than_both_that_do_not(seed):
    """Searches take it for granted (`Problem.peaks_between_levels`, `Linear`)."""
    rng = np.random.default_rng(seed)
    ratios = FBeta(10 ** rng.uniform(-2, 2)), Dice(10 ** rng.uniform(-2, 2))
    measure = [*ratios, MCC(), FowlkesMallows(), BalancedAccuracy(), Kappa()][seed % 6]
    levels = np.sort(rng.choice([rng.random(4), 10 ** -rng.uniform(0, 5, 4)]))[::-1]
    sizes = 1 + rng.multinomial(120, rng.dirichlet(np.full(4, 0.5)))
    f = np.array(top_values(np.repeat(levels, sizes), measure))
    for first, last in itertools.pairwise([0, *np.cumsum(sizes).tolist()]):
        assert f[first : last + 1].max() <= max(f[first], f[last]) + 1e-14


@pytest.mark.parametrize("measure", [Tversky(0.43, 0.025), Tversky(0.7, 0.3), FBeta(0.01)], ids=str)
def test_long_runs_are_not_looked_at_item_by_item(measure):
    """f hardly changes along a run: its curvature does even less, which closes it."""
    values, sizes = np.array([0.9, 1.7e-5, 1e-9]), np.array([1.0, 1e6, 1e6])
    for top in (0, 1):
        problem = Problem.of(measure=measure, min_selected=700)
        search = grouped_search.Search(Groups.of_values(values[top:], sizes[top:]), problem)
        assert not search.wanted
        assert search.path.k.size < 10_000


@pytest.mark.parametrize("measure", [MCC(), BalancedAccuracy(), FowlkesMallows(), Kappa()], ids=str)
def test_one_value_is_not_looked_at_item_by_item_either(measure):
    """All sets of a model that tells nothing apart are as good, or all items are the best."""
    groups = Groups.of_values(np.array([1e-3]), np.array([1e6]))
    search = grouped_search.Search(groups, Problem.of(measure=measure))
    assert search.optimum.k in (0, 1_000_000)
    assert search.path.k.size == 2


@pytest.mark.parametrize("chance", [4.7e-7, 1e-5, 1e-3])
def test_the_count_of_many_equal_labels_is_binomial(chance):
    """Equal factors round equally, and hundreds of thousands of them add up."""
    n = 342_440
    first, mass = PoissonBinomial.of(np.full(n, chance))
    with mp.workdps(40):
        p = mp.mpf(chance)
        exact = [
            float(mp.binomial(n, k) * p**k * (1 - p) ** (n - k))
            for k in range(first, first + mass.size)
        ]
    np.testing.assert_allclose(mass, exact, atol=1e-15, rtol=0)


@pytest.mark.parametrize("measure", ["kappa", "fbeta"])
def test_a_frame_of_numbers_next_to_each_other(measure):
    """Looking ever closer ends at single numbers, of 52 bits."""
    half = np.nextafter(0.75, [0.0, 1.0])
    levels = [0.63, half[0], 0.75, half[1], 0.76171875]
    p = np.repeat(levels, [1_215, 6_396, 475_066, 2_556, 84])
    frame = decisions(pl.DataFrame({"p": p}), "p", measure=measure)[()]
    found = maximize_expected_f(p, measure=measure, ties="together")
    assert (frame.k, frame.threshold) == (found.k, found.threshold)
    assert frame.expected == pytest.approx(found.expected, rel=1e-11)
