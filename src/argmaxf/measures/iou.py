"""IoU, the name of the Jaccard index in image segmentation, with its smoothing constant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from argmaxf.measures.ratio import Coefficients, Ratio
from argmaxf.validation import check_not_negative


@dataclass(frozen=True)
class IoU(Ratio):
    """IoU = (T + s) / (k + R + s), which is Jaccard for s = 0: R are the positives left out.

    Parameters
    ----------
    smooth : float, default=0.0
        The s added to numerator and denominator; above 0, nothing there and nothing found is 1.

    Examples
    --------
    >>> IoU(smooth=1).value(tp=3, k=4, s=6)
    0.5
    """

    name: ClassVar[str] = "iou"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    smooth: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "smooth", check_not_negative("smooth", self.smooth))

    @property
    def title(self) -> str:
        """IoU, or IoU (smooth=1)."""
        return f"IoU (smooth={self.smooth:g})" if self.smooth else "IoU"

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """Those of Jaccard, and the constant."""
        s = number(self.smooth)
        return Coefficients(c=number(1), b_in=number(0), b_out=number(1), s0=s, s1=s)
