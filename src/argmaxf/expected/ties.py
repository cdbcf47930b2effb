"""Near ties: which of a few k has the highest expected value, beyond what doubles can tell.

One rule for every path: an exact tie goes to the smallest k. Sets whose values in double precision
are nearer than their error, and the steps between them too (`small_set_kernels.py`), are compared
again:

* up to 300 items that can be positive, by the definition in 60-digit decimals;
* up to 16,384, in numbers of two doubles (32 digits): what agrees to 24 digits is a tie;
* above, where no path sees all items at once, values whose difference is below 1e-13 of the terms
  in which the sets differ count as tied (`search.py`).

Arrays, rows, columns, segments of frames and files of up to 16,384 items are all decided by
`small_sets.py`, and so agree.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any

import numpy as np

from argmaxf._base.arrays import Floats, contiguous, readonly
from argmaxf.measures import Coefficients, Measure, Ratio
from argmaxf.problem import Problem

DIGITS = 60
EXACT_TIE = Decimal(10) ** -50  # two values this close, relative to their size, are an exact tie
LARGEST = 300  # items; a value costs about n² decimal operations, tens of milliseconds here
FEW_RIVALS = 20  # rivals, of which two doubles leave fewer
AGREEMENT = Decimal(10) ** -24  # above, two values this close are one

# The trapezoid rule of quadrature.py with a step that gives 31 digits, tail and all.
STEP, FIRST, TAIL = Decimal("0.13"), Decimal("-4.2"), Decimal(75)
LEAST_TILT_IN_DECIMALS = (
    Decimal(10) ** -90
)  # nothing beside other terms, even times β⁴; keeps 0/0 away


def settle(descending: Floats, rivals: Iterable[int], problem: Problem) -> int:
    """Return the best of the rivals; exact ties go to the smallest."""
    candidates = sorted(rivals)
    positive = descending[: int(np.count_nonzero(descending))]  # others change nothing but k
    if positive.size > LARGEST or len(candidates) > FEW_RIVALS:
        values = dict(zip(candidates, _two_doubles(descending, candidates, problem), strict=True))
        best = max(values.values())
        candidates = [k for k in candidates if agrees(values[k], best)]
        if positive.size > LARGEST:
            return candidates[0]
    p = [Decimal(v) for v in positive.tolist()]
    coefficients = exact_coefficients(problem.measure)
    return settle_values(
        candidates, lambda k: exact_value(p, k, coefficients, problem.zero_division)
    )


def exact_coefficients(measure: Measure) -> Coefficients:
    """Return the coefficients of a ratio in decimals."""
    assert isinstance(measure, Ratio)
    with localcontext(prec=DIGITS):
        return measure.coefficients(Decimal)


def agrees(value: Decimal, best: Decimal) -> bool:
    """Whether a value in two doubles is as good as the best: one with it to 24 digits."""
    return value >= best * (1 - AGREEMENT)


def value_in_two_doubles(items: Floats, k: int, problem: Problem) -> Decimal:
    """Return the value of selecting the first k items, in whatever order they are."""
    return _two_doubles(items, [k], problem)[0]


def settle_values(candidates: Iterable[int], value: Callable[[int], Decimal]) -> int:
    """Return the candidate of highest value in 60 digits, the first of those exactly equal."""
    best, highest = -1, Decimal(-1)
    with localcontext(prec=DIGITS):
        for k in candidates:
            challenger = value(k)
            if challenger - highest > EXACT_TIE * abs(highest):
                best, highest = k, challenger
    return best


def exact_value(
    p: list[Decimal], k: int, coefficients: Coefficients, zero_division: float = 0.0
) -> Decimal:
    """f_k by the definition, in the decimal context at hand; p is sorted, the largest first.

    f_k = Σ P(S_{1:k} = t) P(S_{k+1:n} = r) (c t + s0) / (k + b_in t + b_out r + s1).
    """
    c, b_in, b_out, s0, s1 = coefficients
    inside, outside = (label_counts(part, Decimal(1)) for part in (p[:k], p[k:]))
    total = Decimal(0)
    for (t, mass), (r, rest) in itertools.product(enumerate(inside), enumerate(outside)):
        x = k + b_in * t + b_out * r + s1
        value = (c * t + s0) / x if x else Decimal(zero_division)
        total += mass * rest * value
    return total


def label_counts(p: Iterable[Any], one: Any) -> list[Any]:
    """P(S = 0), P(S = 1), … for independent labels: the coefficients of Π [p x + (1 - p)]."""
    c = [one]
    for p_j in p:
        c = [
            (1 - p_j) * (c[i] if i < len(c) else 0) + p_j * (c[i - 1] if i > 0 else 0)
            for i in range(len(c) + 1)
        ]
    return c


def _two_doubles(descending: Floats, sizes: Sequence[int], problem: Problem) -> list[Decimal]:
    """Return f_k for each of the sizes, to 24 digits and more; O(n) for each of 150 nodes."""
    from argmaxf.expected import tie_kernels

    ascending = contiguous(descending[::-1])
    with localcontext(prec=40):
        c, b_in, b_out, s0, s1 = exact_coefficients(problem.measure)
        by_rule = [k for k in sizes if k > 0 or s1 > 0]
        least = s1 + (1 if min(by_rule, default=1) else 0)
        high = len(ascending) * (1 + max(b_in, b_out)) + s1
        f = np.empty((2, len(by_rule)))
        if by_rule:
            nodes = _nodes(least, high, b_in, b_out, s1)
            options = b_in == b_out, *_pair(c), float(s0)
            tie_kernels.top_values(ascending, np.array(by_rule), nodes, *options, f)
        values = [Decimal(a) + Decimal(b) for a, b in f.T.tolist()]
        nothing = [_nothing(ascending, problem)] if len(by_rule) < len(sizes) else []
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
