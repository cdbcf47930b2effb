"""Near ties, settled in 60-digit decimals: which of a few k has the highest expected F."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from typing import Any

from argmaxf.arrays import Floats
from argmaxf.measures import Coefficients
from argmaxf.question import Question

DIGITS = 60
EQUAL = Decimal(10) ** -50  # two values this close, relative to their size, are an exact tie
LARGEST = 300  # items; a decision costs about n² decimal operations, tens of milliseconds here


def settle(descending: Floats, rivals: Iterable[int], question: Question) -> int:
    """Return the best of the rivals; exact ties go to the smallest.

    Above 300 items, rivals agree to 13 digits and the smallest is taken as it is.
    """
    candidates = sorted(rivals)
    if descending.size > LARGEST:
        return candidates[0]
    p = [Decimal(v) for v in descending.tolist()]
    coefficients = question.measure.coefficients(Decimal)
    return settle_values(
        candidates, lambda k: exact_value(p, k, coefficients, question.zero_division)
    )


def settle_values(candidates: Iterable[int], value: Callable[[int], Decimal]) -> int:
    """Return the candidate of highest value in 60 digits, the first of those exactly equal."""
    best, highest = -1, Decimal(-1)
    with localcontext(prec=DIGITS):
        for k in candidates:
            challenger = value(k)
            if challenger - highest > EQUAL * abs(highest):
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
