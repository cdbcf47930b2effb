"""The Fowlkes–Mallows index: the geometric mean of precision and recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from argmaxf.measures.linear import Linear


@dataclass(frozen=True)
class FowlkesMallows(Linear):
    """T / √(k S); 0/0 where nothing is predicted, or nothing is there to find.

    Examples
    --------
    >>> round(FowlkesMallows().value(tp=3, k=4, s=6), 4)
    0.6124
    """

    name: ClassVar[str] = "fowlkes_mallows"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    falls_with_k: ClassVar[bool] = True

    @property
    def title(self) -> str:
        """Fowlkes–Mallows."""
        return "Fowlkes–Mallows"

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return T and √(k S)."""
        return tp, np.sqrt(k * s)
