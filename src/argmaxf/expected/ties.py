"""Near ties: which of a few k has the highest expected value, beyond what doubles can tell.

One rule for every path: an exact tie goes to the smallest k. Sets whose values in double precision
are nearer than their error, and the steps between them too (`small_set_kernels.py`), are compared
again:

* up to 300 items that can be positive, by the definition in 80-digit decimals;
* up to 16,384, by the quadrature in 40-digit decimals: what agrees to 24 digits is a tie;
* above, where no path sees all items at once, values whose difference is below 1e-13 of the terms
  in which the sets differ count as tied (`search.py`).

Arrays, rows, columns, segments of frames and files of up to 16,384 items are all decided by
`sets.py`, and so agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from argmaxf._base.arrays import Floats
from argmaxf.measures import Ratio
from argmaxf.problem import Problem

DIGITS = 80
EXACT_TIE = Decimal(10) ** -50  # two values this close, relative to their size, are an exact tie
MOST_IN_DECIMALS = 300  # items; a value costs some n² operations, tens of milliseconds here
FEW_RIVALS = 20  # rivals, of which the quadrature leaves fewer
AGREEMENT = Decimal(10) ** -24  # above, two values this close are one

# The trapezoid rule of quadrature.py with a step that gives 31 digits, tail and all.
STEP, FIRST, TAIL = Decimal("0.13"), Decimal("-4.2"), Decimal(75)
LEAST_DECAY = Decimal(10) ** -90  # nothing beside other terms, even times β⁴; keeps 0/0 away


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
        values = values_by_quadrature(inside, outside, candidates, problem)
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


def values_by_quadrature(
    inside: Floats, outside: Floats, sizes: Sequence[int], problem: Problem
) -> list[Decimal]:
    """Return f_k for each of the sizes, to 24 digits and more.

    f_k = Σ_m ω e^{-u(k+s1)} Q_k A_k, A_k = c Σ_{i≤k} π_i + s0 (groups.py), with every quantity
    an array over some 150 nodes. Equal items are taken together: a tenth of a millisecond or two
    for each value that differs from others, however many items have it.
    """
    assert isinstance(problem.measure, Ratio)

    def power(factors: Any, count: int) -> Any:
        return factors if count == 1 else factors**count  # decimals take long for powers

    with localcontext(prec=DIGITS // 2, Emin=MIN_EMIN, Emax=MAX_EMAX):
        c, b_in, b_out, s0, s1 = problem.measure.coefficients(Decimal)
        by_rule = [k for k in sizes if k > 0 or s1 > 0]
        nothing = [_nothing(outside, problem)] if len(by_rule) < len(sizes) else []
        if not by_rule:
            return nothing
        high = len(inside) * (1 + max(b_in, b_out)) + s1
        nodes = _nodes(s1 + (1 if by_rule[0] else 0), high, b_in, b_out, s1)
        q, decay, x_in, x_out = np.array(nodes).T
        ends = np.flatnonzero((np.diff(inside) != 0) | (np.diff(outside) != 0)) + 1
        edges = sorted({0, *ends.tolist(), *by_rule, len(inside)})
        runs = [(b, b - a, Decimal(inside[a]), Decimal(outside[a])) for a, b in pairwise(edges)]
        a, first = s0, by_rule[0]
        for stop, count, p, out in runs:
            tilted, x = (p, x_in) if stop <= first else (out, x_out)
            factor = (1 - tilted) + tilted * x
            q = q * power(factor, count)
            a = a + c * count * p * x / factor if stop <= first else a
        values = [(q * decay**first * a).sum()]
        for stop, count, p, out in runs:
            if first < stop <= by_rule[-1]:
                factor = (1 - p) + p * x_in
                a = a + c * count * p * x_in / factor
                q = q * power(factor / ((1 - out) + out * x_out), count)
                if stop in by_rule:
                    values.append((q * decay**stop * a).sum())
        return nothing + values


def _nothing(missed: Floats, problem: Problem) -> Decimal:
    """Return the value of the empty set without smoothing: 0/0 where nothing is positive."""
    items = missed.tolist() if problem.coefficients.b_out > 0.0 else []
    return math.prod((1 - Decimal(p) for p in items), start=Decimal(problem.zero_division))


@lru_cache(maxsize=8)
def _nodes(low: Decimal, high: Decimal, b_in: Any, b_out: Any, s1: Any) -> list[list[Decimal]]:
    """Return ω e^{-u s1}, e^{-u}, and x inside and outside, at each node for x in [low, high].

    u = exp(v - e^{-v}) / high for v = FIRST, FIRST + STEP, …, as in quadrature.py.
    """
    rows = []
    for i in range(int(((TAIL * high / low).ln() - FIRST) / STEP) + 2):
        v = FIRST + STEP * i
        decay = (-v).exp()
        u = (v - decay).exp() / high
        tilts = (max((-b * u).exp(), LEAST_DECAY) for b in (b_in, b_out))
        rows.append([STEP * u * (1 + decay) * (-u * s1).exp(), (-u).exp(), *tilts])
    return rows
