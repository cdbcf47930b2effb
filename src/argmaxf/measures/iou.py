"""IoU, the name of the Jaccard index in image segmentation, with its smoothing constant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from argmaxf.measures.ratio import Coefficients
from argmaxf.measures.smoothed import Smoothed


@dataclass(frozen=True)
class IoU(Smoothed):
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
    label: ClassVar[str] = "IoU"

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """Those of Jaccard, and the constant."""
        s = number(self.smooth)
        return Coefficients(c=number(1), b_in=number(0), b_out=number(1), s0=s, s1=s)
