"""Attacks on decisions with sets that have structure: few levels, long runs, certain items."""

from __future__ import annotations

import numpy as np
import polars as pl

import argmaxf
from argmaxf.expected.sets import decide_by_search
from argmaxf.frames import decisions
from argmaxf.measures import MEASURES, Dice, FBeta, Jaccard, Linear, Tversky
from argmaxf.problem import Problem
from fuzz import draw
from fuzz.asking import error_of

STEP = 0.22  # of the trapezoid rule in log u: 1/x = ∫ e^{-ux} du to 16 digits
VALUE = 1e-10  # part by which values may differ
BEST = 1e-11  # part by which a set may be poorer than the best: more is another k


def levels(rng, folder):
    """k is the best one, and its value right, as an array, in a frame and by the search."""
    p, measure = draw.structured(rng, int(10 ** rng.uniform(0, 4.3))), ratio(rng)
    falling, zero = np.sort(p)[::-1], float(rng.choice([0.0, 0.0, 1.0]))
    f = all_values(falling, falling, measure.coefficients(), zero)
    limits, ties = limits_of(rng, p), str(rng.choice(["split", "together"]))
    options = {"measure": measure, "zero_division": zero, "ties": ties, **limits}
    k = np.arange(f.size)
    allowed = np.append(True, falling > 0.0) & (k >= limits.get("min_selected", 0))
    allowed &= k <= limits.get("max_selected", p.size)
    if ties == "together":
        allowed[1:-1] &= falling[1:] < falling[:-1]
    if not allowed.any() or f.max(where=allowed, initial=0.0) < 1e-250:
        return
    problem = Problem.of(**options)
    for found in (
        argmaxf.maximize_expected_f(p, **options),
        decisions(pl.DataFrame({"p": p}), "p", **options)[()],
        decide_by_search(p, problem),
    ):
        assert allowed[found.k], (options, found)
        check(f, found, np.where(allowed, f, -1.0).max(), (options, p.size))
    curve = argmaxf.expected_f_curve(p, measure=measure, zero_division=zero)
    np.testing.assert_allclose(curve, f, rtol=VALUE, atol=1e-280, err_msg=str(options))


def bands(rng, folder):
    """The best worst case, where each end of the bands has structure."""
    n = int(10 ** rng.uniform(0, 3.3))
    ends = np.sort([draw.structured(rng, n), draw.structured(rng, n)], axis=1)
    low, high = ends.min(axis=0), ends.max(axis=0)
    if rng.random() < 0.3:
        low = np.zeros(n)
    measure = ratio(rng)
    f = all_values(low[::-1], high[::-1], measure.coefficients(), 0.0)
    if f.max() > 1e-250:
        found = argmaxf.maximize_worst_case_f(low, high, measure=measure)
        check(f, found, f.max(), (measure, n))


def summaries(rng, folder):
    """A sketch in two parts, a frame and an array agree on measures that counts decide."""
    p = draw.structured(rng, int(10 ** rng.uniform(0.3, 3.7)))
    measure = [each() for each in MEASURES.values() if issubclass(each, Linear)][rng.integers(4)]
    f = argmaxf.expected_f_curve(p, measure=measure)
    parts = np.split(p, [int(rng.integers(p.size + 1))])
    sketch = sum(map(argmaxf.ProbabilitySketch.from_array, parts[1:]), start=_sketch(parts[0]))
    frame = decisions(pl.DataFrame({"p": p}), "p", measure=measure, ties="split")[()]
    for found in (argmaxf.maximize_expected_f(p, measure=measure), frame):
        assert f[found.k] >= f[np.append(True, np.sort(p)[::-1] > 0)].max() - 1e-12, (found, p.size)
    said = error_of(lambda: sketch.decide(measure=measure))
    if said is not None and "cannot be computed from a sketch" in said:
        return
    drawn = sketch.decide(measure=measure)
    assert abs(drawn.expected - f[drawn.k]) < 1e-9, (drawn, f[drawn.k])
    low, high = drawn.bracket
    assert drawn.k == np.count_nonzero(p >= drawn.threshold) or low == high, drawn


def _sketch(p):
    return argmaxf.ProbabilitySketch.from_array(p)


def check(f, found, best, context):
    """See that a decision is the best, and worth what it says."""
    assert f[found.k] >= best * (1 - BEST), (context, found.k, f[found.k], best)
    assert abs(found.expected - f[found.k]) <= VALUE * f[found.k], (context, found, f[found.k])
    assert found.selected is None or found.selected.sum() == found.k, (context, found)


def ratio(rng):
    """Return a measure of the family, any weights."""
    kinds = (
        lambda: FBeta(10 ** rng.uniform(-2, 2)),
        lambda: FBeta(10 ** rng.uniform(-1, 1), smooth=10 ** rng.uniform(-2, 2)),
        lambda: Dice(10 ** rng.uniform(-3, 2)),
        Jaccard,
        lambda: Tversky(rng.uniform(0.05, 1), 10 ** rng.uniform(-2, 2)),
    )
    return kinds[rng.integers(len(kinds))]()


def limits_of(rng, p):
    """Return limits that some set keeps, or none."""
    positive = np.count_nonzero(p)
    if not positive or rng.random() < 0.6:
        return {}
    least, most = sorted(int(each) for each in rng.integers(1, positive + 1, 2))
    return {"min_selected": least} if rng.random() < 0.5 else {"max_selected": most}


def all_values(inside, outside, coefficients, zero):
    """f_0 … f_n of falling items, each with one probability in the set and one outside of it.

    At nodes for every size and every number of positives, in plain NumPy.
    """
    c, b_in, b_out, s0, s1 = map(float, coefficients)
    n = inside.size
    f = np.zeros(n + 1)
    ends = np.log(1e-19 / (n * (1 + max(b_in, b_out)) + s1 + 1)), np.log(60 / min(1.0, s1 or 1.0))
    for u in np.exp(np.arange(*ends, STEP)):
        log_in, log_out = log_factor(inside, b_in * u), log_factor(outside, b_out * u)
        log_q = np.append(0.0, log_in.cumsum()) + np.append(log_out[::-1].cumsum()[::-1], 0.0)
        pi = np.append(0.0, (inside * np.exp(-b_in * u - log_in)).cumsum())
        f += STEP * u * np.exp(log_q - u * (np.arange(n + 1) + s1)) * (c * pi + s0)
    if s1 == 0.0:
        f[0] = zero * np.prod(1.0 - outside)
    return f


def log_factor(p, t):
    """log(1 - p (1 - e^{-t}))."""
    w = -np.expm1(-t)
    with np.errstate(divide="ignore"):  # e^{-t} underflows long after it counts
        upper = np.maximum(np.log((1 - p) * w + np.exp(-t)), -t)
    return np.where(p < 0.5, np.log1p(-np.minimum(p, 0.5) * w), upper)
