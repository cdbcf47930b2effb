"""Cohen's kappa."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from argmaxf.measures.base import others
from argmaxf.measures.linear import Linear


@dataclass(frozen=True)
class Kappa(Linear):
    """Agreement beyond chance, 2 (n T - k S) / (k (n - S) + S (n - k)).

    0/0 where all are positive and predicted so, or none is; scikit-learn has NaN there.

    Examples
    --------
    >>> round(Kappa().value(tp=3, k=4, s=6, n=20), 4)
    0.4737
    """

    name: ClassVar[str] = "kappa"
    ends: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    @property
    def title(self) -> str:
        """Cohen's kappa."""
        return "Cohen's kappa"

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return observed less chance agreement, and the most it can be, times n²."""
        return 2 * (n * tp - k * s), k * others(s, n) + s * others(k, n)
