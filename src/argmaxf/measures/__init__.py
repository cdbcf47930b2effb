"""The measures: one file for each, one row in the registry; `measure=` takes a name or an object.

A measure is a value from counts (`Measure`), which is all that the empirical wing needs. How the
decision-theoretic wing gets at its expectation depends on what is known of it: the coefficients of
a `Ratio`, that a `Linear` is linear in true positives, or nothing but its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from argmaxf.measures.balanced_accuracy import BalancedAccuracy
from argmaxf.measures.base import Measure
from argmaxf.measures.dice import Dice
from argmaxf.measures.fbeta import FBeta
from argmaxf.measures.fowlkes_mallows import FowlkesMallows
from argmaxf.measures.gmean import GMean
from argmaxf.measures.iou import IoU
from argmaxf.measures.jaccard import Jaccard
from argmaxf.measures.kappa import Kappa
from argmaxf.measures.linear import Linear
from argmaxf.measures.mcc import MCC
from argmaxf.measures.own import Own
from argmaxf.measures.ratio import Coefficients, Ratio
from argmaxf.measures.tversky import Tversky

__all__ = [
    "MCC",
    "MEASURES",
    "BalancedAccuracy",
    "Coefficients",
    "Dice",
    "FBeta",
    "FowlkesMallows",
    "GMean",
    "IoU",
    "Jaccard",
    "Kappa",
    "Linear",
    "Measure",
    "MeasureLike",
    "Own",
    "Ratio",
    "Tversky",
    "as_measure",
]

RATIOS = (FBeta, Jaccard, Dice, IoU, Tversky)
LINEAR = (FowlkesMallows, MCC, Kappa, BalancedAccuracy)
OTHERS = (GMean,)
MEASURES: dict[str, type[Measure]] = {each.name: each for each in (*RATIOS, *LINEAR, *OTHERS)}
MEASURES["f1"] = FBeta  # F_β without a β


# What `measure=` takes: a name, an object, or a function of the counts tp, k, s, n.
MeasureLike = str | Measure | Callable[[Any, Any, Any, Any], Any]


def as_measure(measure: MeasureLike, beta: float = 1.0) -> Measure:
    """Return the measure that a public function was asked for.

    Parameters
    ----------
    measure : str, Measure or callable
        A name of the registry, an object such as ``FBeta(2)``, or a function of the counts
        ``tp, k, s, n`` (see `Measure`).
    beta : float, default=1.0
        The β of F_β; other measures have none, and an object has its own.

    Returns
    -------
    Measure

    Examples
    --------
    >>> as_measure("fbeta", 0.5)
    FBeta(beta=0.5, smooth=0.0)
    """
    if callable(measure) and not isinstance(measure, Measure | type):
        measure = Own(measure)
    if isinstance(measure, Measure):
        if beta not in (1.0, getattr(measure, "beta", 1.0)):
            raise ValueError(f"measure={measure!r} stands for itself, got beta={beta!r} beside it")
        return measure
    if not isinstance(measure, str) or measure not in MEASURES:
        raise _no_measure(measure, MEASURES)
    if measure == "f1" and beta != 1.0:
        raise ValueError(f"measure='f1' is F_β with β = 1, got {beta=}; use measure='fbeta'")
    kind = MEASURES[measure]
    return _kept(kind, beta) if isinstance(beta, float) else kind.with_beta(beta)


def _no_measure(measure: Any, names: Iterable[str]) -> ValueError:
    """Say what a measure can be, and of a class that it is written with parentheses."""
    kind = isinstance(measure, type)
    got = f"the class {measure.__name__}: write {measure.__name__}()" if kind else repr(measure)
    return ValueError(
        f"measure must be one of {', '.join(map(repr, names))}, an object such as FBeta(2), or a "
        f"function of the counts tp, k, s, n; got {got}"
    )


@lru_cache(maxsize=256)
def _kept(kind: type[Measure], beta: float) -> Measure:
    """Return a measure that is made and checked once, however often it is asked for."""
    return kind.with_beta(beta)
