"""What every measure is: a name, a title, and its value from four counts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from argmaxf._base.validation import check_zero_division


class Measure(ABC):
    """A measure of predictions, from counts.

    The counts are tp (true positives), k (items predicted positive), s (positives), and n (all
    items); they may be weighted, and arrays of them broadcast. A measure must rise with tp where k,
    s and n stay as they are: then the best set of k items is the k most probable ones.
    """

    name: ClassVar[str]  # in the registry and as `measure=`
    label: ClassVar[str]  # as people write it, for titles and messages
    # At the same tp, s and n a larger k is never better: only cuts that end at a positive can win.
    falls_with_k: ClassVar[bool] = False
    # The smallest and the largest value; infinite where they are not known.
    ends: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    @property
    def title(self) -> str:
        """The name as people write it, with its parameters: F1, F0.5, Jaccard."""
        return self.label

    def __str__(self) -> str:
        return self.title

    @abstractmethod
    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return numerator and denominator; the denominator is never negative.

        Parameters
        ----------
        tp, k, s, n : ndarray
            True positives, items predicted positive, positives, and all items.

        Returns
        -------
        tuple
        """

    def value(self, tp: Any, k: Any, s: Any, n: Any = None, *, zero_division: float = 0.0) -> Any:
        """Return the value of predictions from their counts; 0/0 is `zero_division`.

        Parameters
        ----------
        tp : array-like
            True positives: items predicted positive that are.
        k : array-like
            Items predicted positive.
        s : array-like
            Items that are positive.
        n : array-like, optional
            All items; measures that take no notice of true negatives need not be told.
        zero_division : float, default=0.0
            The value of 0/0.

        Returns
        -------
        float or ndarray
        """
        return self.quotient(tp, k, s, n, check_zero_division(zero_division))

    def quotient(self, tp: Any, k: Any, s: Any, n: Any = None, zero_division: float = 0.0) -> Any:
        """Return `value` without the check of `zero_division`: for loops.

        Parameters
        ----------
        tp, k, s : array-like
            True positives, items predicted positive, and positives.
        n : array-like, optional
            All items.
        zero_division : float, default=0.0
            The value of 0/0.

        Returns
        -------
        float or ndarray
        """
        counts = (None if each is None else np.asarray(each, float) for each in (tp, k, s, n))
        return divided(*self.fraction(*counts), zero_division)


def others(part: Any, n: Any) -> Any:
    """Return n - part, and 0 where the rest is no more than the rounding of weighted sums."""
    rest = n - part
    return np.where(rest * 10**12 > n, rest, 0 * rest)


def divided(numerator: Any, denominator: Any, zero_division: float) -> Any:
    """Divide, with 0/0 = `zero_division`: the only place where that case is decided."""
    defined = np.asarray(denominator > 0)
    if defined.ndim and defined.all():
        return numerator / denominator
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    kind = np.result_type(numerator, denominator, np.float64)
    out = np.full(denominator.shape, float(zero_division), kind)
    np.divide(numerator, denominator, out=out, where=defined)
    return float(out) if out.ndim == 0 else out
