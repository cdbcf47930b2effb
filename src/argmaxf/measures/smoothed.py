"""What Dice and IoU share: a smoothing constant in numerator and denominator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from argmaxf._base.validation import check_not_negative
from argmaxf.measures.ratio import Ratio


@dataclass(frozen=True)
class Smoothed(Ratio):
    """A ratio from 0 to 1; with a constant above 0, nothing there and nothing found is 1."""

    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    label: ClassVar[str]
    smooth: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "smooth", check_not_negative("smooth", self.smooth))

    @property
    def title(self) -> str:
        """The label, and the constant where there is one: Dice (smooth=1)."""
        return f"{self.label} (smooth={self.smooth:g})" if self.smooth else self.label
