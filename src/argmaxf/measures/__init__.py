"""The measures and their registry; `measure=` takes a name, an object or a function of counts.

A measure is a value from counts (`Measure`), which is all that thresholds on labelled data need.
How its expectation is computed depends on what is known of it: the coefficients of a `Ratio`, that
a `Linear` is linear in true positives, or nothing but its values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from argmaxf._base.validation import check_beta, check_not_negative, check_positive
from argmaxf.measures.base import (
    Coefficients,
    Interval,
    Linear,
    Measure,
    Ratio,
    UserDefined,
    others,
)

__all__ = [
    "MCC",
    "MEASURES",
    "BalancedAccuracy",
    "Coefficients",
    "Dice",
    "FBeta",
    "FowlkesMallows",
    "GMean",
    "Interval",
    "IoU",
    "Jaccard",
    "Kappa",
    "Linear",
    "Measure",
    "MeasureLike",
    "Ratio",
    "Tversky",
    "UserDefined",
    "as_measure",
]

_CHECKS: dict[str, Callable[[str, float], float]] = {
    "beta": lambda _, beta: check_beta(beta),
    "smooth": check_not_negative,
    "a": check_positive,
    "b": check_not_negative,
}


@dataclass(frozen=True)
class _FromZeroToOne(Ratio, ends=(0.0, 1.0)):
    """A ratio from 0 to 1 with parameters that are checked, and that its label may name."""

    def __post_init__(self) -> None:
        for each in fields(self):
            checked = _CHECKS[each.name](each.name, getattr(self, each.name))
            object.__setattr__(self, each.name, checked)

    @property
    def title(self) -> str:
        """The label with its parameters: F0.5, Tversky(0.3, 0.7), Dice (smooth=1)."""
        smooth = getattr(self, "smooth", 0.0)
        return self.label.format(self) + (f" (smooth={smooth:g})" if smooth else "")


@dataclass(frozen=True)
class FBeta(_FromZeroToOne, name="fbeta", label="F{0.beta:g}"):
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

    beta: float = 1.0
    smooth: float = 0.0

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """c = 1+β², and β² for each positive inside and outside, since S = T + R."""
        b2, s = number(self.beta) ** 2, number(self.smooth)
        return Coefficients(c=1 + b2, b_in=b2, b_out=b2, s0=s, s1=s)


@dataclass(frozen=True)
class Dice(_FromZeroToOne, name="dice", label="Dice"):
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

    smooth: float = 0.0

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """Those of F1 with the same constant."""
        return FBeta(1.0, self.smooth).coefficients(number)


@dataclass(frozen=True)
class IoU(_FromZeroToOne, name="iou", label="IoU"):
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

    smooth: float = 0.0

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """A positive inside is in k already."""
        s = number(self.smooth)
        return Coefficients(c=number(1), b_in=number(0), b_out=number(1), s0=s, s1=s)


@dataclass(frozen=True)
class Jaccard(_FromZeroToOne, name="jaccard", label="Jaccard"):
    """Jaccard = T / (k + R), which is IoU without a smoothing constant.

    Examples
    --------
    >>> Jaccard().value(tp=3, k=4, s=6)
    0.42857142857142855
    """

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """Those of IoU."""
        return IoU().coefficients(number)


@dataclass(frozen=True)
class Tversky(_FromZeroToOne, name="tversky", label="Tversky({0.a:g}, {0.b:g})"):
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

    a: float = 0.5
    b: float = 0.5

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """FP = k - T, so T + a FP + b FN is a times k + (1-a)/a T + b/a R."""
        a, b = number(self.a), number(self.b)
        return Coefficients(c=1 / a, b_in=(1 - a) / a, b_out=b / a)


@dataclass(frozen=True)
class FowlkesMallows(
    Linear, name="fowlkes_mallows", label="Fowlkes–Mallows", ends=(0.0, 1.0), falls_with_k=True
):
    """T / √(k S), the geometric mean of precision and recall.

    0/0 where nothing is predicted, or nothing is there to find.

    Examples
    --------
    >>> round(FowlkesMallows().value(tp=3, k=4, s=6), 4)
    0.6124
    """

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return T and √(k S)."""
        return tp, np.sqrt(k * s)


@dataclass(frozen=True)
class MCC(Linear, name="mcc", label="MCC", ends=(-1.0, 1.0)):
    """Matthews' correlation of truth and prediction, (n T - k S) / √(k S (n - k) (n - S)).

    0/0 where all are predicted alike, or are alike; scikit-learn has 0 there.

    Examples
    --------
    >>> round(MCC().value(tp=3, k=4, s=6, n=20), 4)
    0.491
    """

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return covariance and the product of both spreads."""
        return n * tp - k * s, np.sqrt((k * others(k, n)) * (s * others(s, n)))


@dataclass(frozen=True)
class Kappa(Linear, name="kappa", label="Cohen's kappa", ends=(-1.0, 1.0)):
    """Cohen's kappa, agreement beyond chance: 2 (n T - k S) / (k (n - S) + S (n - k)).

    0/0 where all are positive and predicted so, or none is; scikit-learn has NaN there.

    Examples
    --------
    >>> round(Kappa().value(tp=3, k=4, s=6, n=20), 4)
    0.4737
    """

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return observed minus chance agreement, and the most it can be, times n²."""
        return 2 * (n * tp - k * s), k * others(s, n) + s * others(k, n)


@dataclass(frozen=True)
class BalancedAccuracy(
    Linear, name="balanced_accuracy", label="balanced accuracy", ends=(0.0, 1.0), falls_with_k=True
):
    """½ (T / S + TN / (n - S)), with TN true negatives: the mean of the recalls of both classes.

    0/0 where one class is absent; scikit-learn leaves that class out.

    Examples
    --------
    >>> round(BalancedAccuracy().value(tp=3, k=4, s=6, n=20), 4)
    0.7143
    """

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return the sum of both recalls over one denominator."""
        negatives = others(s, n)
        return tp * negatives + (negatives - (k - tp)) * s, 2 * s * negatives


@dataclass(frozen=True)
class GMean(Measure, name="gmean", label="G-mean", ends=(0.0, 1.0), falls_with_k=True):
    """√(T / S · TN / (n - S)), with TN true negatives: the geometric mean of both recalls.

    0/0 where one class is absent.

    Examples
    --------
    >>> round(GMean().value(tp=3, k=4, s=6, n=20), 4)
    0.6814
    """

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return the roots of both products."""
        return np.sqrt(tp * others(s + k - tp, n)), np.sqrt(s * others(s, n))


_ALL = FBeta, Jaccard, Dice, IoU, Tversky, FowlkesMallows, MCC, Kappa, BalancedAccuracy, GMean
MEASURES: dict[str, type[Measure]] = {"f1": FBeta} | {measure.name: measure for measure in _ALL}

# What `measure=` takes: a name, an object, or a function of the counts tp, k, s, n.
MeasureLike = str | Measure | Callable[[Any, Any, Any, Any], Any]


def as_measure(measure: MeasureLike, beta: float = 1.0) -> Measure:
    """Return the measure that a public function was asked for.

    Parameters
    ----------
    measure : str, Measure or callable
        A name of the registry, ``"f2"`` or ``"f0.5"`` for other β, an object such as ``FBeta(2)``,
        or a function of the counts ``tp, k, s, n`` (see `Measure`).
    beta : float, default=1.0
        The β of ``"fbeta"``; other measures have none, and an object has its own.

    Returns
    -------
    Measure

    Examples
    --------
    >>> as_measure("fbeta", 0.5)
    FBeta(beta=0.5, smooth=0.0)
    """
    if callable(measure) and not isinstance(measure, Measure | type):
        measure = UserDefined(measure)
    if isinstance(measure, Measure):
        if beta not in (1.0, getattr(measure, "beta", 1.0)):
            raise ValueError(
                f"pass beta inside the measure or as beta=, not both; got measure={measure!r} and "
                f"beta={beta!r}"
            )
        return measure
    if isinstance(measure, str) and re.fullmatch(r"f\d+(\.\d*)?(e[+-]?\d+)?", measure):
        return FBeta(float(measure[1:])) if beta == 1.0 else _named(measure, beta)
    if not isinstance(measure, str) or measure not in MEASURES:
        name = measure.__name__ if isinstance(measure, type) else ""
        got = f"the class {name}: write {name}()" if name else repr(measure)
        raise ValueError(
            f"measure must be one of {', '.join(map(repr, MEASURES))}, an object such as FBeta(2), "
            f"or a function of the counts tp, k, s, n; got {got}"
        )
    return _named_once(measure, beta) if isinstance(beta, float) else _named(measure, beta)


def _named(name: str, beta: float) -> Measure:
    if name == "fbeta":
        return FBeta(beta)
    if beta != 1.0:
        raise ValueError(f"measure={name!r} has no beta, got beta={beta!r}; leave it out")
    return MEASURES[name]()


_named_once = lru_cache(maxsize=256)(_named)  # made and checked once, however often it is asked for


def measure_as_data(measure: Measure) -> dict[str, Any]:
    """Return a measure as JSON can hold it: its name and parameters."""
    if type(measure) not in MEASURES.values():
        raise ValueError(f"measure must be one of argmaxf.measures to be saved, got {measure}")
    return {"name": measure.name, **vars(measure)}


def measure_of_data(data: dict[str, Any]) -> Measure:
    """Return the measure that was saved."""
    settings = dict(data)
    return MEASURES[settings.pop("name")](**settings)
