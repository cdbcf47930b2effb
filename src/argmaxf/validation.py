"""Checks at the public edge: each rule stated once, each error naming the rule and the value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def check_beta(beta: float) -> float:
    """Return β as a float; it must be positive and finite."""
    value = _check_real("beta", beta)
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"beta must be positive and finite, got {beta!r}")
    return value


def check_unit_interval(name: str, number: float) -> float:
    """Return a number that must lie in [0, 1] as a float."""
    value = _check_real(name, number)
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {number!r}")
    return value


def check_zero_division(zero_division: float) -> float:
    """Return the value of 0/0; it must lie in [0, 1]."""
    return check_unit_interval("zero_division", zero_division)


def check_choice(name: str, choice: Any, allowed: Iterable[Any]) -> Any:
    """Return an option that must be one of a few values."""
    allowed = tuple(allowed)
    if choice not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {choice!r}")
    return choice


def as_real_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return anything array-like as a NumPy array of real numbers, without copying where possible.

    Lists, NumPy arrays, and the columns of pandas, polars and Arrow all come in through here.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:  # ragged lists
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must hold real numbers, got {type(values).__name__} of dtype {array.dtype}"
        )
    return array


def first_bad_probability(name: str, array: NDArray[Any]) -> ValueError:
    """Describe the first value that is not a probability; call it once one is known to exist."""
    bad = ~((array >= 0.0) & (array <= 1.0))
    position = tuple(int(i) for i in np.argwhere(bad)[0])
    where = position[0] if len(position) == 1 else position
    return ValueError(
        f"{name} must be finite and in [0, 1], got {float(array[position])!r} at position {where}"
    )


def _check_real(name: str, number: Any) -> float:
    if isinstance(number, str | bytes):
        raise ValueError(f"{name} must be a real number, got {number!r}")
    try:
        return float(number)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a real number, got {number!r}") from None
