"""The measures and their registry; `measure=` takes a name, an object or a function of counts.

A measure is a value from counts (`Measure`), which is all that thresholds on labelled data need.
How its expectation is computed depends on what is known of it: the coefficients of a `Ratio`, that
a `Linear` is linear in true positives, or nothing but its values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from argmaxf.measures.base import Coefficients, Interval, Linear, Measure, Ratio
from argmaxf.measures.named import (
    MCC,
    BalancedAccuracy,
    Dice,
    FBeta,
    FowlkesMallows,
    GMean,
    IoU,
    Jaccard,
    Kappa,
    Tversky,
)
from argmaxf.measures.user_defined import UserDefined

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
