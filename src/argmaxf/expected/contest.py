"""Near ties, settled in 60-digit decimals: which of a few k has the highest expected F."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext

from argmaxf.expected.groups import Floats
from argmaxf.expected.references import expected_f_by_counts, label_counts

DIGITS = 60
EQUAL = Decimal(10) ** -50  # two values this close, relative to their size, are an exact tie
LARGEST = 300  # items; a decision costs about n² decimal operations, tens of milliseconds here


def settle(
    descending: Floats, rivals: Iterable[int], *, beta: float, jaccard: bool, zero_division: float
) -> int:
    """Return the best of the rivals; exact ties go to the smallest.

    Above 300 items, rivals agree to 13 digits and the smallest is taken as it is.
    """
    candidates = sorted(rivals)
    if descending.size > LARGEST:
        return candidates[0]
    p = [Decimal(v) for v in descending.tolist()]

    def value(k: int) -> Decimal:
        return _value(p, k, Decimal(beta) ** 2, jaccard, Decimal(zero_division))

    return settle_values(candidates, value)


def settle_values(candidates: Iterable[int], value: Callable[[int], Decimal]) -> int:
    """Return the candidate of highest value in 60 digits, the first of those exactly equal."""
    best, highest = -1, Decimal(-1)
    with localcontext(prec=DIGITS):
        for k in candidates:
            challenger = value(k)
            if challenger - highest > EQUAL * abs(highest):
                best, highest = k, challenger
    return best


def _value(p: list[Decimal], k: int, b2: Decimal, jaccard: bool, zero: Decimal) -> Decimal:
    """f_k by the definition, in the decimal context at hand."""
    one = Decimal(1)
    if k == 0:
        none: Decimal = label_counts(p, one)[0]
        return zero * none
    if not jaccard:
        value: Decimal = expected_f_by_counts(p, k, b2)
        return value
    outside = label_counts(p[k:], one)
    shares = (mass / (k + left) for left, mass in enumerate(outside))
    return sum(p[:k], Decimal(0)) * sum(shares, Decimal(0))
