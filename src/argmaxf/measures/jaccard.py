"""The Jaccard index, in images the intersection over union."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from argmaxf.measures.ratio import Coefficients, Ratio


@dataclass(frozen=True)
class Jaccard(Ratio):
    """Jaccard = T / (k + R), intersection over union: R are the positives left out.

    Examples
    --------
    >>> Jaccard().value(tp=3, k=4, s=6)
    0.42857142857142855
    """

    name: ClassVar[str] = "jaccard"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)

    @property
    def title(self) -> str:
        """Jaccard."""
        return "Jaccard"

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """A positive inside is in k already."""
        return Coefficients(c=number(1), b_in=number(0), b_out=number(1))
