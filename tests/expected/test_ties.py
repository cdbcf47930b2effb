"""One rule for ties on every path: exact ties go to the smallest k, near ties are told apart."""

from decimal import Decimal

import mpmath
import numpy as np
import polars as pl
import pytest

from argmaxf import maximize_expected_f
from argmaxf.expected import search as grouped_search
from argmaxf.expected.array_passes import ArrayPasses
from argmaxf.expected.groups import Source
from argmaxf.expected.ties import values_by_quadrature
from argmaxf.files.scored import ScoredFiles
from argmaxf.frames import decisions
from argmaxf.measures import FBeta, Jaccard
from argmaxf.problem import Problem
from tests.judges import best_k, curve_40_digits, definition, fbeta, jaccard, one_more_label, value

ABOVE_HALF = float(np.nextafter(0.5, 1))


def by_frame(p, **options):
    (found,) = decisions(pl.DataFrame({"p": np.array(p, float)}), "p", **options).values()
    return found.k


def by_lazy_segments(p, **options):
    """As one of two segments of a lazy frame, the other much larger."""
    frame = pl.LazyFrame({"p": np.array([*p, 0.5, 0.25], float), "s": [0] * len(p) + [1, 1]})
    return decisions(frame, "p", by="s", **options)[(0,)].k


@pytest.mark.parametrize(
    ("p", "options", "k"),
    [
        ([1, 0.5], {}, 1),  # f_1 = f_2 = 5/6 exactly
        ([1, ABOVE_HALF], {}, 2),
        ([0.5], {"beta": 2, "zero_division": 1.0}, 0),  # f_0 = f_1 = 1/2
        ([ABOVE_HALF], {"beta": 2, "zero_division": 1.0}, 1),
        ([0.5], {"zero_division": 1.0}, 0),
        ([0.0, 0.0], {}, 0),
        ([0.0, 0.0], {"zero_division": 1.0}, 0),
    ],
)
def test_arrays_rows_frames_and_files_agree(p, options, k, tmp_path):
    assert maximize_expected_f(p, **options).k == k
    assert maximize_expected_f([p, p], average="samples", **options).k.tolist() == [k, k]
    assert by_frame(p, **options) == k
    assert by_lazy_segments(p, **options) == k
    pl.DataFrame({"p": np.array(p, float)}).write_parquet(tmp_path / "p.parquet")
    files = ScoredFiles([str(tmp_path / "p.parquet")], "p")
    (found,) = files.decide(Problem.of(**options)).values()
    assert found.k == k


@pytest.mark.parametrize("measure", [FBeta(), Jaccard()], ids=str)
@pytest.mark.parametrize(
    "ones", [1, 299, 300, 301, pytest.param(4_000, marks=pytest.mark.slow), 16_383]
)
def test_exact_ties_and_the_next_number_at_every_size(ones, measure):
    """With p = 1 for m items and 1/2 for one more, taking it or not is the same, exactly."""
    p = np.r_[np.ones(ones), 0.5]
    assert maximize_expected_f(p, measure=measure).k == ones
    assert by_frame(p, measure=measure) == ones
    p[-1] = ABOVE_HALF
    assert maximize_expected_f(p, measure=measure).k == ones + 1
    assert by_frame(p, measure=measure) == ones + 1


@pytest.mark.parametrize("measure", [FBeta(), Jaccard()], ids=str)
def test_above_16384_items_a_difference_in_the_twentieth_digit_is_a_tie(measure):
    for last in (0.5, ABOVE_HALF):
        p = np.r_[np.ones(20_000), last]
        assert maximize_expected_f(p, measure=measure).k == 20_000
        assert by_frame(p, measure=measure) == 20_000


def values_70_digits(descending, sizes, formula):
    """f_k of a few neighbouring k, by the sum over positives inside and outside."""
    p, n = [mpmath.mpf(float(v)) for v in descending], len(descending)
    found = []
    for k in sizes:
        inside, outside = [mpmath.mpf(1)], [mpmath.mpf(1)]
        for v in p[:k]:
            inside = one_more_label(inside, v)
        for v in p[k:]:
            outside = one_more_label(outside, v)
        terms = (
            a * b * value(formula, t, k, t + r, n, 0.0)
            for t, a in enumerate(inside)
            for r, b in enumerate(outside)
            if a * b > mpmath.mpf("1e-45")
        )
        found.append(mpmath.fsum(terms))
    return found


@pytest.mark.parametrize(
    ("measure", "formula"), [(FBeta(1.3), fbeta(1.3)), (Jaccard(), jaccard)], ids=["F1.3", "J"]
)
def test_near_ties_between_301_and_16384_items(measure, formula):
    """The last chosen item is moved to where it just pays: both sides of that are told apart."""
    p = np.sort(np.random.default_rng(2).beta(0.3, 20, 310))[::-1]
    k = maximize_expected_f(p, measure=measure).k
    low, high = p[k], p[k - 1]  # between these p_k can move and keep its rank
    if maximize_expected_f(np.r_[p[: k - 1], low, p[k:]], measure=measure).k == k:
        low = 0.0
    while True:  # bisect down to neighbouring doubles
        middle = (low + high) / 2
        if middle in (low, high):
            break
        pays = maximize_expected_f(np.r_[p[: k - 1], middle, p[k:]], measure=measure).k >= k
        low, high = (low, middle) if pays else (middle, high)
    for last in (low, high):
        moved = np.sort(np.r_[p[: k - 1], last, p[k:]])[::-1]
        sizes = [k - 2, k - 1, k, k + 1]
        truth = values_70_digits(moved, sizes, formula)
        assert maximize_expected_f(moved, measure=measure).k == sizes[best_k(truth)]
        assert by_frame(moved, measure=measure) == sizes[best_k(truth)]


@pytest.mark.parametrize("n", [400, 1_000, pytest.param(15_125, marks=pytest.mark.slow)])
def test_natural_sets_equal_more_digits(n):
    from argmaxf.expected.ties import settle

    for seed in range(4):
        rng = np.random.default_rng([n, seed])
        p = np.sort(rng.beta(*rng.choice([0.2, 0.5, 2, 9], 2), n))[::-1]
        for measure in (FBeta(), Jaccard()):
            k = maximize_expected_f(p, measure=measure).k
            near = range(max(1, k - 2), min(n, k + 2) + 1)
            assert settle(p, near, Problem.of(measure=measure)) == k


def coarse_segments(count, seed):
    """Small segments of coarse probabilities, in which ties are common."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, count)
    steps = rng.choice([2, 4, 5, 10, 20], count)
    segment = np.repeat(np.arange(count), sizes)
    return segment, rng.integers(0, steps[segment] + 1) / steps[segment]


OPTIONS = [
    {},
    {"beta": 2.0},
    {"beta": 0.5, "zero_division": 1.0},
    {"measure": "jaccard"},
    {"zero_division": 0.5},
]


def compare_coarse(count, seed, options):
    segment, p = coarse_segments(count, seed)
    frame = pl.DataFrame({"s": segment, "p": p})
    found = decisions(frame.lazy(), "p", by="s", **options)
    parts = np.split(p, np.flatnonzero(np.diff(segment)) + 1)
    formula = jaccard if "measure" in options else fbeta(options.get("beta", 1.0))
    zero = options.get("zero_division", 0.0)
    wrong = []
    for i, part in enumerate(parts):
        alone = maximize_expected_f(part, ties="together", **options).k
        if found[(i,)].k != alone:
            wrong.append(part)
        elif i % 50 == 0:  # 40 digits for some of them
            truth = curve_40_digits(part, formula=formula, zero_division=zero)
            ranked = np.sort(part)[::-1]
            cuts = [0, *np.flatnonzero(np.diff(ranked)) + 1, part.size]
            if alone != cuts[best_k([truth[k] for k in cuts])]:
                wrong.append(part)
    assert wrong == []


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_coarse_segments_are_decided_as_arrays(options):
    compare_coarse(1_500, 0, options)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_many_coarse_segments_are_decided_as_arrays(options):
    compare_coarse(15_000, 1, options)


def as_good(p, k, problem):
    """The value of the top k in 32 digits."""
    falling = np.sort(p)[::-1]
    return values_by_quadrature(falling, falling, [k], problem)[0]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_search_errs_by_less_than_doubles_tell(options):
    """A set that the search prefers is as good as the best one to twelve digits."""
    segment, p = coarse_segments(400, 3)
    problem = Problem.of(ties="together", **options)
    for part in np.split(p, np.flatnonzero(np.diff(segment)) + 1):
        exact = maximize_expected_f(part, ties="together", **options).k
        search = grouped_search.decide(Source(ArrayPasses(part)), problem)
        best, found = (as_good(part, k, problem) for k in (exact, search.optimum.k))
        assert found >= best * (1 - Decimal("1e-12"))


SPREADS = {
    "near one": lambda rng, n: 1 - 10.0 ** -rng.uniform(1, 17, n),
    "logits of spread 10": lambda rng, n: 1 / (1 + np.exp(-rng.normal(0, 10, n))),
    "both ends": lambda rng, n: np.where(
        rng.random(n) < 0.5, 1 - 10.0 ** -rng.uniform(1, 17, n), 10.0 ** -rng.uniform(1, 17, n)
    ),
    "near zero": lambda rng, n: 10.0 ** -rng.uniform(1, 17, n),
}


@pytest.mark.parametrize("beta", [1e-9, 1e-3, 0.1, 1.0, 30.0, 1e5, 1e9])
@pytest.mark.parametrize("name", SPREADS)
def test_the_search_errs_by_less_than_doubles_tell_for_extreme_beta(name, beta):
    """Where f is near 1 the loss is searched: in 32 digits it finds the same optimum."""
    from argmaxf.expected.ties import settle

    p = SPREADS[name](np.random.default_rng(7), 1_000)
    problem = Problem.of(beta)
    search = grouped_search.decide(Source(ArrayPasses(p)), problem)
    exact = maximize_expected_f(p, beta=beta).k
    best, found = (as_good(p, k, problem) for k in (exact, search.optimum.k))
    assert found >= best * (1 - Decimal("1e-12"))
    near = {k for at in (search.optimum.k, exact) for k in range(at - 3, at + 4) if 1 <= k <= 1_000}
    assert settle(np.sort(p)[::-1], near, problem) == exact


EXTREME = [1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9]
SMALL_SETS = SPREADS | {
    "two digits": lambda rng, n: np.round(rng.random(n), 2),
    "one value": lambda rng, n: np.full(n, 0.3),
    "one value and another": lambda rng, n: np.r_[np.full(n - 1, 0.999), 0.1],
    "saturated logits": lambda rng, n: 1 / (1 + np.exp(-rng.normal(0, 30, n))),
    "a few above many": lambda rng, n: np.where(np.arange(n) < 3, 0.7, 0.7 - 1e-13 * rng.random(n)),
}


@pytest.mark.parametrize("beta", EXTREME)
@pytest.mark.parametrize("name", SMALL_SETS)
def test_extreme_beta_is_exact_in_70_digits(name, beta):
    """Values of f agree in more digits than doubles have: the steps between sets do not."""
    for n in (2, 9, 22):
        p = SMALL_SETS[name](np.random.default_rng([n, 1]), n)
        assert maximize_expected_f(p, beta=beta).k == best_k(curve_40_digits(p, beta))


@pytest.mark.parametrize("beta", EXTREME)
@pytest.mark.parametrize("name", SMALL_SETS)
def test_extreme_beta_needs_few_digits_more(name, beta, monkeypatch):
    """The number of sets that are left to more digits does not grow with those that are near."""
    from argmaxf.expected import sets

    p = SMALL_SETS[name](np.random.default_rng(5), 3_000)
    left = []
    monkeypatch.setattr(sets, "settle", lambda p, rivals, problem: left.append(rivals) or 1)
    maximize_expected_f(p, beta=beta)
    assert left == []


@pytest.mark.parametrize("beta", [1e-9, 1e-3, 30.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("p", [[0.3, 1e-3, 2e-5], [1e-9, 1e-12, 0.0], [1.0, 0.5, 1e-7, 1e-16]])
def test_the_spread_counts_that_nothing_may_be_positive(p, beta):
    found = maximize_expected_f(p, beta=beta)
    mean, std = definition(p, found.selected, beta)
    assert found.expected == pytest.approx(float(mean), rel=1e-12)
    assert found.std == pytest.approx(float(std), rel=1e-9)


@pytest.mark.parametrize("beta", [1e-9, 1e-3, 1.0])
def test_many_equal_items_at_the_top_are_all_taken_without_a_closer_look(beta):
    """Among them f rises, if by less than doubles can tell: E[F] = (1+β²) E[k y / (k + β² S)]."""
    p = np.r_[np.full(20_000, 0.75), 0.01]
    search = grouped_search.decide(Source(ArrayPasses(p)), Problem.of(beta))
    assert search.optimum.k == 20_000
    assert search.path.k.size < 10_000
