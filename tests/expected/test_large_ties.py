"""Many equal items: a rest that all models give the same low score, maps of few levels."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from argmaxf import expected_f_curve, maximize_expected_f
from argmaxf.expected.groups import Groups
from argmaxf.expected.search import Search
from argmaxf.expected.sets import decide_by_search
from argmaxf.frames import decisions
from argmaxf.measures import Dice, FBeta, Jaccard, Tversky
from argmaxf.problem import Problem
from tests.judges import near_sets_of_many


def f1_of_the_first(sizes, dots, rest, chance):
    """E F1 of the top k: some items above `rest` more of equal chance, by convolution."""
    values = []
    for k in sizes:
        taken = max(0, k - len(dots))
        inside = binom.pmf(np.arange(min(taken, 40) + 1), taken, chance)
        outside = binom.pmf(np.arange(60), rest - taken, chance)
        for p in dots[:k]:
            inside = np.convolve(inside, [1 - p, p])
        for p in dots[k:]:
            outside = np.convolve(outside, [1 - p, p])
        t, r = np.arange(inside.size)[:, None], np.arange(outside.size)
        values.append(float(inside @ (2 * t / (k + t + r)) @ outside))
    return values


def by_array(p):
    found = maximize_expected_f(p)
    return found.k, found.expected


def by_frame(p):
    found = decisions(pl.DataFrame({"p": p}), "p")[()]
    return found.k, found.expected


@pytest.mark.parametrize("decide", [by_array, by_frame])
@pytest.mark.parametrize("n", [30_000, 200_000, 1_200_000])
def test_a_few_items_above_a_flat_rest(n, decide):
    """Larger sets than those looked at are poorer: F1 of k items is at most 2 μ / (k + μ)."""
    dots = np.sort(np.random.default_rng(0).random(20))[::-1]
    p = np.full(n, 2.0 / n)
    p[:: n // 20][:20] = dots
    values = f1_of_the_first(range(1, 60), dots, n - 20, 2.0 / n)
    assert max(values) > 2 * p.sum() / (60 + p.sum())
    k, expected = decide(p)
    assert k == 1 + int(np.argmax(values))
    assert expected == pytest.approx(max(values), rel=1e-10)


MEASURES = (FBeta(1), FBeta(0.1), FBeta(4), Jaccard(), Tversky(0.3, 0.7), Dice(1.0))


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_few_levels_equal_the_whole_curve(measure, seed):
    """Within limits or not, equal items apart or together; the curve looks at every k."""
    rng = np.random.default_rng(seed)
    for n in (300, 4_000, 18_000):
        levels = 10 ** rng.uniform(-6, 0, rng.integers(1, 5))
        p = rng.choice(levels, n, p=rng.dirichlet(np.full(levels.size, 0.3)))
        p[rng.permutation(n)[:40]] = rng.random(40)
        falling = np.sort(p)[::-1]
        curve = expected_f_curve(p, measure=measure)
        ends = np.append(falling[1:] < falling[:-1], True)
        least, most = np.sort(rng.integers(1, n, 2)).tolist()
        for limits in ({}, {"min_selected": least}, {"max_selected": most}):
            for ties in ("split", "together"):
                allowed = np.full(n + 1, True)
                allowed[1:] &= ends | (ties == "split")
                allowed[: limits.get("min_selected", 0)] = False
                allowed[limits.get("max_selected", n) + 1 :] = False
                best = curve.max(where=allowed, initial=-1.0)
                problem = Problem.of(measure=measure, ties=ties, **limits)
                for found in (
                    maximize_expected_f(p, measure=measure, ties=ties, **limits),
                    decide_by_search(p, problem),
                ):
                    assert allowed[found.k]
                    assert curve[found.k] == pytest.approx(best, rel=1e-12)
                    assert found.expected == pytest.approx(best, rel=1e-11)


def test_all_equal_items_together_where_one_at_least_is_asked_for():
    """A smoothed measure is best with few of them, but they cannot be had."""
    found = maximize_expected_f([0.1] * 10, measure=Dice(1.0), ties="together", min_selected=1)
    assert found.k == 10


@pytest.mark.parametrize("measure", [FBeta(1), FBeta(0.5), Jaccard()], ids=str)
@pytest.mark.parametrize("kind", ["likely", "rare"])
@pytest.mark.parametrize("seed", range(2))
def test_neighbours_among_many_items_are_told_apart(measure, kind, seed):
    """Values of f that differ in their seventeenth digit, above one half or below."""
    values, count, k, f = near_sets_of_many(measure.coefficients(), kind, seed)
    search = Search(Groups.of_values(values, count), Problem.of(measure=measure))
    assert not search.wanted
    assert search.optimum.k == k
    assert search.optimum.f == pytest.approx(f, rel=1e-12)
