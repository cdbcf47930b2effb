r"""The family of ratios that are linear in the counts, F_β and Jaccard among them.

    value = (c T + s0) / (k + b_in T + b_out R + s1)

with T true positives, k items predicted positive and R positives left out. A member says what its
coefficients are; everything else is written once for the family: its value here, its expectation,
spread, bounds and optimum in `argmaxf.expected`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

from argmaxf.measures.base import Measure


class Coefficients(NamedTuple):
    """The five numbers of a `Ratio`: floats, or decimals where digits beyond them are asked for."""

    c: Any
    b_in: Any
    b_out: Any
    s0: Any = 0
    s1: Any = 0


class Ratio(Measure):
    """A measure (c T + s0) / (k + b_in T + b_out R + s1), said by its `coefficients`.

    T are true positives, k items predicted positive, and R = S - T the positives left out.
    """

    falls_with_k: ClassVar[bool] = True

    @abstractmethod
    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """Return the coefficients, computed with numbers of a given type (float, Decimal, mpf)."""

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return c T + s0 and k + b_in T + b_out R + s1, where R = s - T."""
        c, b_in, b_out, s0, s1 = self.coefficients(Decimal if isinstance(k, Decimal) else float)
        return c * tp + s0, k + b_out * s + (b_in - b_out) * tp + s1

    @property
    def tilts_up(self) -> bool:
        """Whether a true positive lowers the denominator, as in Tversky's index with a > 1."""
        return bool(-1.0 < self.coefficients().b_in < 0.0)

    def checked(self) -> Coefficients:
        """Return the coefficients as floats if expectations can be had for them.

        They must not be negative; c > 0; s1 > 0 where s0 > 0; and the value must rise with T.
        """
        c, b_in, b_out, s0, s1 = found = Coefficients(*map(float, self.coefficients()))
        if not (0.0 < c < float("inf") and min(b_in, b_out, s0, s1) >= 0.0 and max(found) < 1e300):
            raise ValueError(
                f"{self!r} must have c > 0 and all coefficients from 0 to 1e300, got {found}"
            )
        if (s0 > 0.0 and s1 == 0.0) or b_in * s0 > c * (1.0 + s1):
            raise ValueError(f"{self!r} must rise with true positives for every k, got {found}")
        return found
