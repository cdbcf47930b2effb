"""Near ties: which of a few k has the highest expected value, beyond what doubles can tell.

One rule for every path: an exact tie goes to the smallest k. Sets whose values in double precision
are nearer than their error, and the steps between them too (`small_set_kernels.py`), are compared
again:

* up to 300 items that can be positive, by the definition in 80-digit decimals;
* up to 16,384, in numbers of two doubles (32 digits): what agrees to 24 digits is a tie;
* above, where no path sees all items at once, values whose difference is below 1e-13 of the terms
  in which the sets differ count as tied (`search.py`).

Arrays, rows, columns, segments of frames and files of up to 16,384 items are all decided by
`small_sets.py`, and so agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any

import numpy as np

from argmaxf._base.arrays import Floats, contiguous, readonly
from argmaxf.measures import Ratio
from argmaxf.problem import Problem

DIGITS = 80
EXACT_TIE = Decimal(10) ** -50  # two values this close, relative to their size, are an exact tie
MOST_IN_DECIMALS = 300  # items; a value costs some n² operations, tens of milliseconds here
FEW_RIVALS = 20  # rivals, of which two doubles leave fewer
AGREEMENT = Decimal(10) ** -24  # above, two values this close are one

# The trapezoid rule of quadrature.py with a step that gives 31 digits, tail and all.
STEP, FIRST, TAIL = Decimal("0.13"), Decimal("-4.2"), Decimal(75)
LEAST_TILT_IN_DECIMALS = (
    Decimal(10) ** -90
)  # nothing beside other terms, even times β⁴; keeps 0/0 away


def settle(
    inside: Floats, rivals: Iterable[int], problem: Problem, outside: Floats | None = None
) -> int:
    """Return the best of the rivals, sizes of top sets; exact ties go to the smallest.

    Items are given in falling order. They may have other probabilities outside of the set: the ends
    of bands (`worst_case.py`).
    """
    outside = inside if outside is None else outside
    candidates = sorted(rivals)
    positive = int(np.count_nonzero(outside))  # others change nothing but k
    if problem.ratio is not None and (positive > MOST_IN_DECIMALS or len(candidates) > FEW_RIVALS):
        values = values_in_two_doubles(inside, outside, candidates, problem)
        least = max(values) * (1 - AGREEMENT)
        candidates = [k for k, value in zip(candidates, values, strict=True) if value >= least]
        if positive > MOST_IN_DECIMALS:
            return candidates[0]
    best, highest, terms = -1, Decimal(0), Decimal(0)
    with localcontext(prec=DIGITS):
        for k in candidates:
            value, size = _by_definition(inside[:k], outside[k:], problem)
            if best < 0 or value - highest > EXACT_TIE * max(size, terms):
                best, highest, terms = k, value, size
    return best


def _by_definition(chosen: Floats, left: Floats, problem: Problem) -> tuple[Decimal, Decimal]:
    """Return Σ P(T = t) P(R = r) m(t, k, t + r, n), and the mean of |m|, in the context at hand."""
    inside, outside = (
        np.array(label_counts([Decimal(v) for v in part[part > 0].tolist()], Decimal(1)))
        for part in (chosen, left)
    )
    t, r = (np.array([Decimal(i) for i in range(each.size)]) for each in (inside, outside))
    t, s = t[:, None], t[:, None] + r
    k, n = Decimal(chosen.size), Decimal(chosen.size + left.size)
    above, below = np.broadcast_arrays(*problem.measure.fraction(t, k, s, n))
    values = np.full(below.shape, Decimal(problem.zero_division))
    np.divide(above, below, out=values, where=below != 0)
    mass = inside[:, None] * outside
    return (mass * values).sum(), (mass * abs(values)).sum()


def label_counts(p: Iterable[Any], one: Any) -> list[Any]:
    """P(S = 0), P(S = 1), … for independent labels: the coefficients of Π [p x + (1 - p)]."""
    c = [one]
    for p_j in p:
        c = [
            (1 - p_j) * (c[i] if i < len(c) else 0) + p_j * (c[i - 1] if i > 0 else 0)
            for i in range(len(c) + 1)
        ]
    return c


def values_in_two_doubles(
    inside: Floats, outside: Floats, sizes: Sequence[int], problem: Problem
) -> list[Decimal]:
    """Return f_k for each of the sizes, to 24 digits and more; O(n) for each of 150 nodes."""
    from argmaxf.expected import tie_kernels

    items, left = contiguous(inside[::-1]), contiguous(outside[::-1])
    assert isinstance(problem.measure, Ratio)
    with localcontext(prec=40):
        c, b_in, b_out, s0, s1 = problem.measure.coefficients(Decimal)
        by_rule = [k for k in sizes if k > 0 or s1 > 0]
        least = s1 + (1 if min(by_rule, default=1) else 0)
        high = len(items) * (1 + max(b_in, b_out)) + s1
        f = np.empty((2, len(by_rule)))
        if by_rule:
            nodes = _nodes(least, high, b_in, b_out, s1)
            options = b_in == b_out and inside is outside, *_pair(c), float(s0)
            tie_kernels.top_values(items, left, np.array(by_rule), nodes, *options, f)
        values = [Decimal(a) + Decimal(b) for a, b in f.T.tolist()]
        nothing = [_nothing(left, problem)] if len(by_rule) < len(sizes) else []
        return nothing + values


def _nothing(ascending: Floats, problem: Problem) -> Decimal:
    """Return the value of the empty set without smoothing: 0/0 where nothing is positive."""
    missed = ascending.tolist() if problem.coefficients.b_out > 0.0 else []
    return math.prod((1 - Decimal(p) for p in missed), start=Decimal(problem.zero_division))


@lru_cache(maxsize=8)
def _nodes(low: Decimal, high: Decimal, b_in: Any, b_out: Any, s1: Any) -> Floats:
    """Return the nodes for x in [low, high] as top_values takes them, every number in two doubles.

    u = exp(v - e^{-v}) / high for v = FIRST, FIRST + STEP, …, as in quadrature.py.
    """
    size = int(((TAIL * high / low).ln() - FIRST) / STEP) + 2
    rows = []
    for i in range(size):
        v = FIRST + STEP * i
        decay = (-v).exp()
        u = (v - decay).exp() / high
        row = [STEP * u * (1 + decay) * (-u * s1).exp(), (-u).exp()]
        for b in (b_in, b_out):
            x = max((-b * u).exp(), LEAST_TILT_IN_DECIMALS)
            row += [1 - x, x]
        rows.append([part for number in row for part in _pair(number)])
    return readonly(np.array(rows))


def _pair(number: Decimal) -> tuple[float, float]:
    """Split a decimal into two doubles."""
    first = float(number)
    return first, float(number - Decimal(first))
