"""Dice, the name of F1 in image segmentation, with its smoothing constant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from argmaxf.measures.ratio import Coefficients
from argmaxf.measures.smoothed import Smoothed


@dataclass(frozen=True)
class Dice(Smoothed):
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
    label: ClassVar[str] = "Dice"

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """Those of F1, and the constant."""
        smooth = number(self.smooth)
        return Coefficients(c=number(2), b_in=number(1), b_out=number(1), s0=smooth, s1=smooth)
