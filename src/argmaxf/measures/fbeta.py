"""F_β, and Dice, which is F1."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from argmaxf._base.validation import check_beta, check_betas, check_not_negative
from argmaxf.measures.ratio import Coefficients, Ratio


@dataclass(frozen=True)
class FBeta(Ratio):
    r"""F_β = (1+β²) T / (k + β² S), equation 1 of the paper.

    With `smooth` = s, the value is ((1+β²) T + s) / (k + β² S + s), the smoothed Dice of image
    segmentation.

    Parameters
    ----------
    beta : float, default=1.0
        Weight of recall against precision.
    smooth : float, default=0.0
        Added to numerator and denominator.

    Examples
    --------
    >>> FBeta(2).value(tp=3, k=4, s=6)
    0.5357142857142857
    >>> print(FBeta(2))
    F2
    """

    name: ClassVar[str] = "fbeta"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    beta: float = 1.0
    smooth: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", check_beta(self.beta))
        object.__setattr__(self, "smooth", check_not_negative("smooth", self.smooth))

    @classmethod
    def with_beta(cls, beta: float) -> Self:
        """Return F_β for this β."""
        return cls(beta)

    @property
    def title(self) -> str:
        """F1, F0.5, F1 (smooth=1)."""
        return f"F{self.beta:g}" + (f" (smooth={self.smooth:g})" if self.smooth else "")

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """c = 1+β², and β² for each positive inside and outside, since S = T + R."""
        return _coefficients(number(self.beta) ** 2, number(self.smooth))


def coefficients_of_betas(betas: Iterable[float]) -> list[Coefficients]:
    """Return the coefficients of F_β for each of many β."""
    return [_coefficients(beta**2, 0.0) for beta in check_betas(betas)]


def _coefficients(b2: Any, smooth: Any) -> Coefficients:
    return Coefficients(c=1 + b2, b_in=b2, b_out=b2, s0=smooth, s1=smooth)
