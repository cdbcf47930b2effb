"""The rate of positives among rows that stay where they are, from the summary of them."""

from __future__ import annotations

from argmaxf.empirical.interval import Interval
from argmaxf.expected.summary.sketch import ProbabilitySketch
from argmaxf.prior import check_rate


def rate_of(sketch: ProbabilitySketch, train_rate: float) -> Interval:
    """Return the most likely rate, as `estimate_rate` gives it for the items themselves.

    Items of a group count as their mean. Within a group p, and 1 - p, vary by a sixty-fourth, so
    each likelihood is right to a few millionths.
    """
    from argmaxf.empirical.rates import most_likely_rate  # loads scipy.optimize, .3 s

    if not sketch.n:
        raise ValueError("the rate must be estimated from at least one probability, got none")
    groups = sketch.groups_with_zeros()
    before = float(check_rate("train_rate", train_rate))
    return most_likely_rate(groups.mass / groups.count, groups.count, before)
