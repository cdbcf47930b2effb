"""The Matthews correlation coefficient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from argmaxf.measures.base import others
from argmaxf.measures.linear import Linear


@dataclass(frozen=True)
class MCC(Linear):
    """The correlation of truth and prediction, (n T - k S) / √(k S (n - k) (n - S)).

    0/0 where all are predicted alike, or are alike; scikit-learn has 0 there.

    Examples
    --------
    >>> round(MCC().value(tp=3, k=4, s=6, n=20), 4)
    0.491
    """

    name: ClassVar[str] = "mcc"
    ends: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    @property
    def title(self) -> str:
        """MCC."""
        return "MCC"

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return covariance and the product of both spreads."""
        return n * tp - k * s, np.sqrt((k * others(k, n)) * (s * others(s, n)))
