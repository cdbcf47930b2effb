"""Dice, the name of F1 in image segmentation, with its smoothing constant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from argmaxf.measures.ratio import Coefficients, Ratio
from argmaxf.validation import check_not_negative


@dataclass(frozen=True)
class Dice(Ratio):
    """Dice = (2 T + s) / (k + S + s), which is F1 for s = 0.

    Parameters
    ----------
    smooth : float, default=0.0
        The s added to numerator and denominator; above 0, nothing there and nothing found is 1.

    Examples
    --------
    >>> Dice(smooth=1).value(tp=3, k=4, s=6)
    0.6363636363636364
    """

    name: ClassVar[str] = "dice"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    smooth: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "smooth", check_not_negative("smooth", self.smooth))

    @property
    def title(self) -> str:
        """Dice, or Dice (smooth=1)."""
        return f"Dice (smooth={self.smooth:g})" if self.smooth else "Dice"

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """Those of F1, and the constant."""
        smooth = number(self.smooth)
        return Coefficients(c=number(2), b_in=number(1), b_out=number(1), s0=smooth, s1=smooth)
