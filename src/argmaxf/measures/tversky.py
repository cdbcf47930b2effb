"""Tversky's index: Jaccard with a weight for each of the two kinds of errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from argmaxf._base.validation import check_not_negative, check_positive
from argmaxf.measures.ratio import Coefficients, Ratio


@dataclass(frozen=True)
class Tversky(Ratio):
    """T / (T + a FP + b FN): a weighs false positives, b the positives left out.

    Tversky(1, 1) is Jaccard, Tversky(.5, .5) F1, and F_β has a = 1 / (1+β²), b = β² / (1+β²).

    Parameters
    ----------
    a : float, default=0.5
        Weight of false positives, above 0. Up to 1 its expectation is exact for any number of
        items; above, where a false positive costs more than a hit is worth, for some thousands.
    b : float, default=0.5
        Weight of positives left out.

    Examples
    --------
    >>> round(Tversky(0.3, 0.7).value(tp=3, k=4, s=6), 4)
    0.5556
    """

    name: ClassVar[str] = "tversky"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    a: float = 0.5
    b: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", check_positive("a", self.a))
        object.__setattr__(self, "b", check_not_negative("b", self.b))

    @property
    def title(self) -> str:
        """Tversky(0.3, 0.7)."""
        return f"Tversky({self.a:g}, {self.b:g})"

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """FP = k - T, so T + a FP + b FN is a times k + (1-a)/a T + b/a R."""
        a, b = number(self.a), number(self.b)
        return Coefficients(c=1 / a, b_in=(1 - a) / a, b_out=b / a)
