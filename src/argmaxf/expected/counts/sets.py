"""Small sets of items decided for measures that are no ratio of the family, every size looked at.

Ties are those of `ties.py`: of sizes with the same value the smallest is taken, and values nearer
than their error are compared again by the definition in 60-digit decimals, for sets of up to some
hundred items. Where a measure of the user's own has no more digits than doubles, nearer is a tie.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.expected.counts.count import Count
from argmaxf.expected.counts.joint import joint_curve, value_of_counts
from argmaxf.expected.counts.law import Law, law_curve, needs_values
from argmaxf.expected.counts.linear import linear_curve, linear_spread
from argmaxf.expected.decision import ExpectedF
from argmaxf.expected.grouped.groups import Groups
from argmaxf.expected.grouped.sources import ArraySource
from argmaxf.expected.ties import DIGITS, EQUAL, label_counts
from argmaxf.measures import Linear, Measure, UserDefined
from argmaxf.problem import Problem

MANY = 1 << 14  # items beyond which the law of S is taken at few nodes
NEAR = 1e-13  # values nearer than this part of their terms are compared again
DIGITLESS = np.finfo(float).tiny  # and so are those of which doubles lose digits
DECIMALS = 400_000  # values in decimals that take no longer than some seconds


def curve_by_counts(descending: Floats, problem: Problem) -> Floats:
    """Return f_0 … f_n of the top k of sorted items."""
    measure, zero = problem.measure, problem.zero_division
    if not isinstance(measure, Linear):
        return joint_curve(descending, measure, zero)
    if descending.size > MANY:
        groups = ArraySource(descending).table()[()]
        if not needs_values(groups).any():
            return law_curve(descending, Law.of(groups, float(descending.size), measure, zero))
    return linear_curve(descending, measure, zero)


def value_by_counts(chosen: Floats, left: Floats, problem: Problem) -> ExpectedF:
    """Return mean and standard deviation for any chosen items, given those left out too."""
    n = chosen.size + left.size
    options = problem.measure, problem.zero_division
    return ExpectedF(*value_of_counts(Count.of(chosen), Count.of(left), chosen.size, n, *options))


def value_of_groups(chosen: Groups, rest: Groups, problem: Problem) -> ExpectedF:
    """Return mean and standard deviation for a chosen set, given it and the rest in groups.

    Groups are enough for a measure that is linear in true positives; others need single values.
    """
    everything = Groups.joined([chosen, rest])
    measure = problem.measure
    if isinstance(measure, Linear) and not needs_values(everything).any():
        n = float(everything.count.sum())
        law = Law.of(everything, n, measure, problem.zero_division)
        found = law.found(chosen).sum(axis=0, keepdims=True)
        mean = float(law.values(np.array([chosen.count.sum()]), found)[0])
        return ExpectedF(mean, law.spread(chosen, mean))
    if not everything.runs.all():
        raise ValueError(f"{measure} needs the items here, got a summary of them")
    inside, outside = (np.repeat(each.centre, each.count.astype(int)) for each in (chosen, rest))
    return value_by_counts(inside, outside, problem)


def decide_by_counts(
    ascending: Floats, offsets: Ints, problem: Problem
) -> tuple[Ints, Floats, Floats]:
    """Return k, the expected value and its spread for each of some sorted sets."""
    size = offsets.size - 1
    k, expected, std = np.empty(size, np.int64), np.empty(size), np.empty(size)
    for r in range(size):
        descending = ascending[offsets[r] : offsets[r + 1]][::-1].copy()
        f = curve_by_counts(descending, problem)
        allowed = sizes_allowed(descending, problem)
        if not allowed.any():
            raise problem.no_set()
        k[r] = best_size(f, allowed, descending, problem)
        expected[r] = f[k[r]]
        std[r] = _spread(descending, int(k[r]), float(f[k[r]]), problem)
    return k, expected, std


def sizes_allowed(descending: Floats, problem: Problem) -> Bools:
    """Return which k may be taken at all: within the budget, none with p = 0, ties as asked."""
    allowed = np.ones(descending.size + 1, np.bool_)
    if not problem.split_ties:
        allowed[1:-1] = descending[1:] < descending[:-1]
    allowed[: problem.least] = False
    allowed[min(problem.most, int(np.count_nonzero(descending))) + 1 :] = False
    return allowed


def best_size(f: Floats, allowed: Bools, descending: Floats, problem: Problem) -> int:
    """Return the best of the allowed sizes; the smallest of equals."""
    rivals = _rivals(np.where(allowed, f, -np.inf), descending, problem)
    work = rivals.size * np.count_nonzero(descending) ** 2
    if rivals.size == 1 or isinstance(problem.measure, UserDefined) or work > DECIMALS:
        return int(rivals[0])
    try:
        return settle_by_counts(descending, rivals.tolist(), problem)
    except TypeError:  # a class of one's own that takes no decimals
        return int(rivals[0])


def settle_by_counts(descending: Floats, rivals: list[int], problem: Problem) -> int:
    """Return the best of some sizes by the definition in decimals; exact ties go to the first."""
    best, highest, terms = -1, Decimal(0), Decimal(0)
    with localcontext(prec=DIGITS):
        for k in rivals:
            value, size = _in_decimals(descending, k, problem.measure, problem.zero_division)
            if best < 0 or value - highest > EQUAL * max(size, terms):
                best, highest, terms = k, value, size
    return best


def _in_decimals(
    descending: Floats, k: int, measure: Measure, zero_division: float
) -> tuple[Decimal, Decimal]:
    """Return f_k, and the mean of the measure's absolute value, in the context at hand."""
    n = descending.size
    sides = descending[:k], descending[k:]
    inside, outside = (
        np.array(label_counts([Decimal(v) for v in side[side > 0].tolist()], Decimal(1)))
        for side in sides
    )
    t, r = (np.array([Decimal(i) for i in range(each.size)]) for each in (inside, outside))
    t, s = t[:, None], t[:, None] + r
    above, below = np.broadcast_arrays(*measure.fraction(t, Decimal(k), s, Decimal(n)))
    values = np.full(below.shape, Decimal(zero_division))
    np.divide(above, below, out=values, where=below != 0)
    mass = inside[:, None] * outside
    return (mass * values).sum(), (mass * abs(values)).sum()


def _rivals(value: Floats, descending: Floats, problem: Problem) -> Ints:
    """Return the sizes nearer to the best one than the rounding of the terms they are sums of.

    Those of a linear measure have both signs, and may be much larger than their sum: each size has
    its own. They are looked at where sizes are near for terms as large as they can be, some √n.
    """
    measure, zero = problem.measure, problem.zero_division
    best = int(np.argmax(value))

    def near(k: Ints, terms: Any) -> Ints:
        found: Ints = k[value[k] >= value[best] - NEAR * terms - DIGITLESS]
        return found

    every = np.flatnonzero(value > -np.inf)
    if not isinstance(measure, Linear):
        return near(every, np.abs(value[every]).max())
    rivals = near(every, 4.0 * np.sqrt(value.size))
    if rivals.size == 1:
        return rivals
    terms = linear_curve(descending, measure, zero, scale=True)
    return near(rivals, np.maximum(terms[rivals], terms[best]))


def _spread(descending: Floats, k: int, mean: float, problem: Problem) -> float:
    """Return the standard deviation for the top k."""
    chosen, left, measure = descending[:k], descending[k:], problem.measure
    if isinstance(measure, Linear):
        return linear_spread(chosen, left, measure, problem.zero_division, mean)
    return value_by_counts(chosen, left, problem).std
