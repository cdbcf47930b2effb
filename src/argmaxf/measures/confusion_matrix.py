r"""Measures of the confusion matrix that are no ratio of counts: MCC, kappa, G-mean and others.

All but G-mean are linear in true positives once k and S are known:

    value = a(k, S) T + b(k, S)

Their expectation needs no more of the labels than E[T; S = s], how many true positives there are
where s labels are positive, for the few s that are likely (`expected/counts.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from argmaxf.measures.base import Measure, divided, others


class Linear(Measure):
    """A measure whose `fraction` is linear in tp once k and s are known, as that of MCC is.

    Beyond that the value must fall as k grows at the same T and S, where it is not 0/0; be smooth
    in S between 0 and n; and be 0/0, if at all, for all T of a k and S at once. And no top set that
    parts a run of equal items may be better than both that do not:

    - Along a run f is, but for a constant, L(k) h(k) with a line L: h = 1 for balanced accuracy,
      1/√k for Fowlkes-Mallows, 1/√(k (n - k)) for MCC. The slope has the sign of a line in k,
      L(n) k - L(0) (n - k) for MCC, which does not go from + to - unless L < 0 at both ends, and so
      always.
    - For kappa the slope is Σ_S P(S) 2 n w(S) / d(k, S)², d the denominator, w = S B - (n - S) A,
      A = Σ (π_i - π) over the items above the run, B = Σ (π - π_i) over those below, where π_i is
      P(y_i = 1 | S). As k grows, larger S weigh more. And B/A grows with S: π_i - π is
      (o_i - o) e(S - 1) / e_all(S), with odds o and symmetric polynomials of them, e that of all
      but the two; the ratio of an e without a low and one without a high item grows. So w goes from
      - to +, and so does the slope.
    """

    def parts(
        self, k: Any, s: Any, n: Any, zero_division: float, *, by_false: bool = False
    ) -> tuple[Any, Any]:
        """Return a and b of a T + b, or of a F + b with F = k - T false positives, for arrays.

        0/0 is a = 0 and b = `zero_division`. Where nearly all are positive, F is the small number.

        Parameters
        ----------
        k, s, n : ndarray
            Items predicted positive, positives, and all items.
        zero_division : float
            The value of 0/0.
        by_false : bool, default=False
            Whether a and b are those of a F + b.

        Returns
        -------
        tuple
        """
        tp = np.stack([0 * k, 0 * k + 1, k] if by_false else [0 * k, 0 * k + 1])
        numerator, denominator = self.fraction(tp, k, s, n)
        slope = numerator[0] - numerator[1] if by_false else numerator[1] - numerator[0]
        start = numerator[2] if by_false else numerator[0]
        return divided(slope, denominator, 0.0), divided(start, denominator, zero_division)


@dataclass(frozen=True)
class FowlkesMallows(Linear):
    """T / √(k S), the geometric mean of precision and recall.

    0/0 where nothing is predicted, or nothing is there to find.

    Examples
    --------
    >>> round(FowlkesMallows().value(tp=3, k=4, s=6), 4)
    0.6124
    """

    name: ClassVar[str] = "fowlkes_mallows"
    label: ClassVar[str] = "Fowlkes–Mallows"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    falls_with_k: ClassVar[bool] = True

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return T and √(k S)."""
        return tp, np.sqrt(k * s)


@dataclass(frozen=True)
class MCC(Linear):
    """Matthews' correlation of truth and prediction, (n T - k S) / √(k S (n - k) (n - S)).

    0/0 where all are predicted alike, or are alike; scikit-learn has 0 there.

    Examples
    --------
    >>> round(MCC().value(tp=3, k=4, s=6, n=20), 4)
    0.491
    """

    name: ClassVar[str] = "mcc"
    label: ClassVar[str] = "MCC"
    ends: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return covariance and the product of both spreads."""
        return n * tp - k * s, np.sqrt((k * others(k, n)) * (s * others(s, n)))


@dataclass(frozen=True)
class Kappa(Linear):
    """Cohen's kappa, agreement beyond chance: 2 (n T - k S) / (k (n - S) + S (n - k)).

    0/0 where all are positive and predicted so, or none is; scikit-learn has NaN there.

    Examples
    --------
    >>> round(Kappa().value(tp=3, k=4, s=6, n=20), 4)
    0.4737
    """

    name: ClassVar[str] = "kappa"
    label: ClassVar[str] = "Cohen's kappa"
    ends: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return observed minus chance agreement, and the most it can be, times n²."""
        return 2 * (n * tp - k * s), k * others(s, n) + s * others(k, n)


@dataclass(frozen=True)
class BalancedAccuracy(Linear):
    """½ (T / S + TN / (n - S)), with TN true negatives: the mean of the recalls of both classes.

    0/0 where one class is absent; scikit-learn leaves that class out.

    Examples
    --------
    >>> round(BalancedAccuracy().value(tp=3, k=4, s=6, n=20), 4)
    0.7143
    """

    name: ClassVar[str] = "balanced_accuracy"
    label: ClassVar[str] = "balanced accuracy"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    falls_with_k: ClassVar[bool] = True

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return the sum of both recalls over one denominator."""
        negatives = others(s, n)
        return tp * negatives + (negatives - (k - tp)) * s, 2 * s * negatives


@dataclass(frozen=True)
class GMean(Measure):
    """√(T / S · TN / (n - S)), with TN true negatives: the geometric mean of both recalls.

    0/0 where one class is absent.

    Examples
    --------
    >>> round(GMean().value(tp=3, k=4, s=6, n=20), 4)
    0.6814
    """

    name: ClassVar[str] = "gmean"
    label: ClassVar[str] = "G-mean"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    falls_with_k: ClassVar[bool] = True

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return the roots of both products."""
        return np.sqrt(tp * others(s + k - tp, n)), np.sqrt(s * others(s, n))
