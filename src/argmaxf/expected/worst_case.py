"""Bands instead of points: the set with the best worst case, or the least worst regret.

If p_i is only known within [low_i, high_i], the worst that can happen to a chosen set is low inside
and high outside, since every measure of the family rises with a positive inside and falls with one
outside. If the bands keep their order (low_i ≤ low_j where high_i ≤ high_j), then trading an item
of the set for one above it lowers neither end, so the best set is the top k for some k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Floats, Ints, readonly
from argmaxf._base.validation import as_probabilities
from argmaxf.expected.decision import Decision
from argmaxf.expected.groups import groups_of_items, value_of_nothing
from argmaxf.expected.quadrature import plausible_positives
from argmaxf.expected.ties import settle
from argmaxf.expected.values import expected_f_curve, value_of_sets
from argmaxf.measures import MeasureLike
from argmaxf.prior import move_odds
from argmaxf.problem import Problem

DOUBT = 4e-12  # values nearer than this, relative to their size, are compared in decimals
IN_DECIMALS = 1 << 14  # bands, of which near ties are compared in decimals
FACTORS = 33  # odds factors tried between the ends of the bands, for regret
EQUAL = 1e-13  # part of the highest F; losses that differ by no more are equal
OUT_OF_ORDER = 1e-14  # part of a lower end by which bands may be out of order
SAME = 1e-6  # log-odds by which the widths of bands may differ and still be one factor


@dataclass(frozen=True, eq=False, repr=False)
class WorstCase(Decision):
    """A decision by its worst case: `expected` and `std` are of F in the worst case.

    Attributes
    ----------
    regret : float or None
        With ``regret=True``: the maximum loss over the odds factors, in expected F below that of
        the best set for the true factor.

    Examples
    --------
    >>> from argmaxf import maximize_worst_case_f
    >>> maximize_worst_case_f([0.1, 0.4, 0.3], [0.2, 0.6, 0.5])
    WorstCase(k=2, threshold=0.3, expected=0.406533 ± 0.364206, n=3)
    """

    regret: float | None = None


class Bands(NamedTuple):
    """Lower and upper ends in ascending order, and where each item came from."""

    low: Floats
    high: Floats
    order: Ints

    @classmethod
    def of(cls, low: ArrayLike, high: ArrayLike) -> Bands:
        """Check the bands and sort them."""
        ends = {"low": low, "high": high}
        a, b = (as_probabilities(*end, ndim=1).astype(np.float64) for end in ends.items())
        if a.shape != b.shape:
            raise ValueError(f"low and high must have one length, got {a.size} and {b.size}")
        if not a.size:
            raise ValueError("low must hold at least one probability, got none")
        if (a > b).any():
            i = int(np.argmax(a > b))
            raise ValueError(f"low must not be above high, got {a[i]} and {b[i]} at {i}")
        order = _ascending(a, b)
        lowest = np.maximum.accumulate(a[order])  # rounding alone may put them out of order
        wrong = a[order] < lowest * (1.0 - OUT_OF_ORDER)
        if wrong.any():
            j = int(np.argmax(wrong))
            i, j = order[np.argmax(a[order[:j]])], order[j]
            raise ValueError(
                f"bands must keep their order, got [{a[i]}, {b[i]}] at {i} inside "
                f"[{a[j]}, {b[j]}] at {j}"
            )
        return cls(readonly(lowest), readonly(b[order]), order)


def _ascending(low: Floats, high: Floats) -> Ints:
    """Return the order by upper ends, equal ones by lower ends, equal bands as they were given."""
    order: Ints = np.argsort(high)
    ends = high[order]
    return np.lexsort((low, high)) if (ends[1:] == ends[:-1]).any() else order


def maximize_worst_case_f(
    low: ArrayLike,
    high: ArrayLike,
    *,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    zero_division: float = 0.0,
    regret: bool = False,
) -> WorstCase:
    """Return the labels with the best worst case when probabilities are known within bands.

    The worst case of a set has `low` inside and `high` outside. Bands must keep their order: one
    that starts above another must not end below it. A common factor on the odds gives such bands,
    and so do confidence bands of a calibration curve.

    Parameters
    ----------
    low : array-like of float
        The lowest probability that each item may have.
    high : array-like of float
        The highest.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        ``"fbeta"``, ``"jaccard"`` or another ratio of counts.
    zero_division : float, default=0.0
        Value of F when nothing is positive and nothing is predicted.
    regret : bool, default=False
        Assume instead that one unknown factor on the odds is common to all items, so that `high`
        has the same multiple of the odds of `low` everywhere. The loss of a set is its expected F
        below that of the best set for the true factor. Returned is the set with the smallest
        maximum loss over 33 factors between the ends.

    Returns
    -------
    WorstCase
        A `Decision`; `threshold` is the lowest `low` of the set, and `expected` the expected F of
        the worst case (`low` inside, `high` outside), with `regret` too. Exact: near ties of up to
        16,384 items are settled in decimals, and a tie goes to the smaller set. With `regret`,
        losses that differ by 1e-13 of the highest F are a tie.

    Notes
    -----
    O(n log n) for sorting; then every top-k set that may be the best is evaluated, with about 100
    operations each. It holds sorted copies of both ends, and the values of all top-k sets. With
    `regret`, 33 times that.

    Examples
    --------
    Probabilities that may be off by a factor of two in their odds:

    >>> from argmaxf import maximize_expected_f
    >>> p = np.array([0.9, 0.6, 0.4, 0.3, 0.2, 0.1])
    >>> odds = p / (1 - p)
    >>> low, high = odds / 2 / (1 + odds / 2), odds * 2 / (1 + odds * 2)
    >>> decision = maximize_worst_case_f(low, high)
    >>> decision.k, round(decision.expected, 3)
    (3, 0.527)
    >>> round(maximize_expected_f(p).expected, 3)
    0.673
    """
    problem = Problem.of(beta, measure, zero_division)
    bands = Bands.of(low, high)
    if regret:
        k, lost = _least_regret(bands, problem)
    else:
        k, lost = _best_worst(bands, problem), None
    return _decided(bands, k, problem, lost)


def worst_case_curve(bands: Bands, problem: Problem) -> tuple[Floats, Floats, Floats]:
    """Return the worst case of the top 0 … n items, -1 where no set can be the best.

    Also by how much it rises with each item, and the size of what it falls by.
    """
    from argmaxf.expected import node_kernels as tilts
    from argmaxf.expected import small_set_kernels as kernels

    c, n = problem.coefficients, bands.low.size
    f, (steps, falls) = np.full(n + 1, -1.0), np.zeros((2, n))
    f[0] = value_of_nothing(groups_of_items(bands.high), problem).mean
    mean = float(bands.low.sum())
    if mean == 0.0 and c.s0 == 0.0:
        return f, steps, falls
    fewest, most = plausible_positives(mean, n)[0], plausible_positives(bands.high.sum(), n)[1]
    least = 1.0 + c.s1 + min(c.b_in, c.b_out) * fewest
    high = n + c.s1 + max(c.b_in, c.b_out) * most
    rule = tilts.set_rule(np.zeros(tilts.RULE), least, high, c)
    kernels.climb_from_none(bands.low, bands.high, n, rule, c, mean, f, steps, falls)
    return f, steps, falls


def _best_worst(bands: Bands, problem: Problem) -> int:
    """Return the size of the best set, near ties settled by the definition."""
    from argmaxf.expected.node_kernels import tell_apart

    f, steps, falls = worst_case_curve(bands, problem)
    rivals = np.flatnonzero(f >= f.max() * (1.0 - DOUBT))
    if rivals.size > 1 and bands.low.size <= IN_DECIMALS:
        near = np.full(rivals[-1] + 1, -1.0)
        near[rivals] = f[rivals]
        tell_apart(1, rivals[-1], steps, falls, near)
        left = np.flatnonzero(near > -1.0).tolist()
        return settle(bands.low[::-1], left, problem, bands.high[::-1])
    return int(rivals[0])


def _least_regret(bands: Bands, problem: Problem) -> tuple[int, float]:
    """Return the size whose worst loss against the best set is least, and that loss.

    Losses that differ by no more than the rounding of F are equal: the smallest set is taken.
    """
    lost, highest = np.zeros(bands.low.size + 1), 0.0
    for factor in common_factor(bands) ** np.linspace(0.0, 1.0, FACTORS):
        f = expected_f_curve(
            move_odds(bands.low, factor),
            measure=problem.measure,
            zero_division=problem.zero_division,
        )
        lost, highest = np.maximum(lost, f.max() - f), max(highest, float(f.max()))
    k = int(np.argmax(lost <= lost.min() + EQUAL * highest))
    return k, float(lost[k])


def common_factor(bands: Bands) -> float:
    """Return what the odds of `low` are multiplied by to give those of `high`, everywhere."""
    inside = (bands.low > 0.0) & (bands.high < 1.0)
    sure = (bands.low == bands.high) & ~inside  # 0 and 1 have all factors
    if not (inside | sure).all():
        raise ValueError("regret=True needs bands of one odds factor, got ends at 0 or 1")
    if not inside.any():  # nothing is unknown
        return 1.0
    low, high = bands.low[inside], bands.high[inside]
    widths = np.log(high) - np.log1p(-high) - np.log(low) + np.log1p(-low)
    if np.ptp(widths) > SAME:
        least, most = np.exp([widths.min(), widths.max()])
        raise ValueError(
            f"regret=True needs bands of one odds factor, got factors from {least:g} to {most:g}"
        )
    return float(np.exp(widths.mean()))


def _decided(bands: Bands, k: int, problem: Problem, lost: float | None) -> WorstCase:
    """Return the record of the top k."""
    n = bands.low.size
    chosen, rest = bands.low[n - k :], bands.high[: n - k]
    worst: Any = value_of_sets(groups_of_items(chosen), groups_of_items(rest), problem)
    selected = np.zeros(n, dtype=bool)
    selected[bands.order[n - k :]] = True
    threshold = float(chosen[0]) if k else np.inf
    return WorstCase(selected, k, threshold, worst.mean, worst.std, problem.beta, n, regret=lost)
