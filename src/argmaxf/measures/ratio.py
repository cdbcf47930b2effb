r"""Ratios that are linear in the counts: F_β, Dice, Jaccard, IoU, Tversky's index.

    value = (c T + s0) / (k + b_in T + b_out R + s1)

with T true positives, k items predicted positive and R positives left out. A member says what its
coefficients are; everything else is written once for the family: its value here, its expectation,
spread, bounds and optimum in `argmaxf.expected`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

from argmaxf._base.validation import (
    check_beta,
    check_not_negative,
    check_positive,
)
from argmaxf.measures.base import Measure

MOST_SPAN = 1e20  # b_out over s1, up to which the quadrature of an empty set has all its digits


class Coefficients(NamedTuple):
    """The five numbers of a `Ratio`: floats, or decimals where digits beyond them are asked for.

    Attributes
    ----------
    c, b_in, b_out, s0, s1 : float
        As in (c T + s0) / (k + b_in T + b_out R + s1).
    """

    c: Any
    b_in: Any
    b_out: Any
    s0: Any = 0
    s1: Any = 0


class Ratio(Measure):
    """A measure (c T + s0) / (k + b_in T + b_out R + s1), given by its `coefficients`.

    T are true positives, k items predicted positive, and R = S - T the positives left out.
    """

    falls_with_k: ClassVar[bool] = True

    @abstractmethod
    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """Return the coefficients, computed with numbers of a given type.

        Parameters
        ----------
        number : callable, default=float
            Makes a number of that type from a float: float, Decimal, mpf.

        Returns
        -------
        Coefficients
        """

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return c T + s0 and k + b_in T + b_out R + s1, where R = s - T."""
        c, b_in, b_out, s0, s1 = self.coefficients(Decimal if isinstance(k, Decimal) else float)
        return c * tp + s0, k + b_out * s + (b_in - b_out) * tp + s1

    @property
    def tilts_up(self) -> bool:
        """Whether a true positive lowers the denominator, as in Tversky's index with a > 1."""
        return bool(-1.0 < self.coefficients().b_in < 0.0)

    def checked(self) -> Coefficients:
        """Return the coefficients as floats if expectations can be computed for them.

        They must not be negative; c > 0; s1 > 0 where s0 > 0; and the value must rise with T.
        """
        c, b_in, b_out, s0, s1 = found = Coefficients(*map(float, self.coefficients()))
        if not (0.0 < c < float("inf") and min(b_in, b_out, s0, s1) >= 0.0 and max(found) < 1e300):
            raise ValueError(
                f"{self!r} must have c > 0 and all coefficients from 0 to 1e300, got {found}"
            )
        if (s0 > 0.0 and s1 == 0.0) or b_in * s0 > c * (1.0 + s1):
            raise ValueError(f"{self!r} must rise with true positives for every k, got {found}")
        if s1 > 0.0 and b_out > MOST_SPAN * s1:
            raise ValueError(
                f"{self!r} must have a smoothing constant of 0, or of at least {1 / MOST_SPAN:g} "
                f"of the weight of a missed positive, which is {b_out:g}; got {s1:g}: expectations "
                "would lose their digits"
            )
        return found


@dataclass(frozen=True)
class _Smoothed(Ratio):
    """A ratio from 0 to 1 with a smoothing constant in numerator and denominator."""

    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    smooth: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "smooth", check_not_negative("smooth", self.smooth))

    @property
    def title(self) -> str:
        """The label, and the smoothing constant where there is one: Dice (smooth=1)."""
        return self.label + _said(self.smooth)


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

    @property
    def title(self) -> str:
        """F1, F0.5, F1 (smooth=1)."""
        return f"F{self.beta:g}" + _said(self.smooth)

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """c = 1+β², and β² for each positive inside and outside, since S = T + R."""
        return _of_squared_beta(number(self.beta) ** 2, number(self.smooth))


@dataclass(frozen=True)
class Dice(_Smoothed):
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
        return _of_squared_beta(number(1), number(self.smooth))


@dataclass(frozen=True)
class IoU(_Smoothed):
    """IoU = (T + s) / (k + R + s), intersection over union: R are the positives left out.

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
        """A positive inside is in k already."""
        s = number(self.smooth)
        return Coefficients(c=number(1), b_in=number(0), b_out=number(1), s0=s, s1=s)


@dataclass(frozen=True)
class Jaccard(Ratio):
    """Jaccard = T / (k + R), which is IoU without a smoothing constant.

    Examples
    --------
    >>> Jaccard().value(tp=3, k=4, s=6)
    0.42857142857142855
    """

    name: ClassVar[str] = "jaccard"
    label: ClassVar[str] = "Jaccard"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """Those of IoU."""
        return Coefficients(c=number(1), b_in=number(0), b_out=number(1))


@dataclass(frozen=True)
class Tversky(Ratio):
    """T / (T + a FP + b FN): a weighs false positives, b the positives left out.

    Tversky(1, 1) is Jaccard, Tversky(.5, .5) F1, and F_β has a = 1 / (1+β²), b = β² / (1+β²).

    Parameters
    ----------
    a : float, default=0.5
        Weight of false positives, above 0. Up to 1 its expectation is exact for any number of
        items; above, where a false positive costs more than a hit is worth, for some thousands.
    b : float, default=0.5
        Weight of positives left out.

    Examples
    --------
    >>> round(Tversky(0.3, 0.7).value(tp=3, k=4, s=6), 4)
    0.5556
    """

    name: ClassVar[str] = "tversky"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    a: float = 0.5
    b: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", check_positive("a", self.a))
        object.__setattr__(self, "b", check_not_negative("b", self.b))

    @property
    def title(self) -> str:
        """Tversky(0.3, 0.7)."""
        return f"Tversky({self.a:g}, {self.b:g})"

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """FP = k - T, so T + a FP + b FN is a times k + (1-a)/a T + b/a R."""
        a, b = number(self.a), number(self.b)
        return Coefficients(c=1 / a, b_in=(1 - a) / a, b_out=b / a)


def _of_squared_beta(b2: Any, smooth: Any) -> Coefficients:
    return Coefficients(c=1 + b2, b_in=b2, b_out=b2, s0=smooth, s1=smooth)


def _said(smooth: float) -> str:
    return f" (smooth={smooth:g})" if smooth else ""
