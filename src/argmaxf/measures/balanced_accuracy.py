"""Balanced accuracy: the mean of the rates at which positives and negatives are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from argmaxf.measures.base import others
from argmaxf.measures.linear import Linear


@dataclass(frozen=True)
class BalancedAccuracy(Linear):
    """½ (T / S + TN / (n - S)), with TN true negatives.

    0/0 where one class is absent; scikit-learn leaves that class out.

    Examples
    --------
    >>> round(BalancedAccuracy().value(tp=3, k=4, s=6, n=20), 4)
    0.7143
    """

    name: ClassVar[str] = "balanced_accuracy"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    falls_with_k: ClassVar[bool] = True

    @property
    def title(self) -> str:
        """Balanced accuracy."""
        return "balanced accuracy"

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return the sum of both rates over one denominator."""
        negatives = others(s, n)
        return tp * negatives + (negatives - (k - tp)) * s, 2 * s * negatives
