"""G-mean: the geometric mean of the rates at which positives and negatives are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from argmaxf.measures.base import Measure, others


@dataclass(frozen=True)
class GMean(Measure):
    """√(T / S · TN / (n - S)), with TN true negatives; 0/0 where one class is absent.

    Examples
    --------
    >>> round(GMean().value(tp=3, k=4, s=6, n=20), 4)
    0.6814
    """

    name: ClassVar[str] = "gmean"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    falls_with_k: ClassVar[bool] = True

    @property
    def title(self) -> str:
        """G-mean."""
        return "G-mean"

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return the roots of both products."""
        return np.sqrt(tp * others(s + k - tp, n)), np.sqrt(s * others(s, n))
