"""Checks at the public edge: each rule stated once, each error naming the rule and the value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf._base.arrays import tensors_for

LEAST_BETA, MOST_BETA = 1e-9, 1e9
CHANGED = "the frame must have the same rows each time it is read"


class NotAProbability(Exception):
    """Raised deep inside on a bad value; the public edge answers with `first_bad_probability`."""


class Unusable(Exception):
    """Raised deep inside on a row that cannot be used; where it comes from, its column is named."""


def check_beta(beta: float) -> float:
    """Return β as a float; it must be positive, finite, and such that β² is still a number."""
    value = check_positive("beta", beta)
    if not LEAST_BETA <= value <= MOST_BETA:
        raise ValueError(
            f"beta must lie between {LEAST_BETA:g} and {MOST_BETA:g}, got {value!r}; beyond this "
            "range F equals precision or recall to the last digit"
        )
    return value


def check_strictly_between(name: str, number: float, why: str) -> float:
    """Return a probability that must be neither 0 nor 1, for the reason given."""
    value = check_unit_interval(name, number)
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {number!r}: {why}")
    return value


def _checked(rule: str, least: float, most: float, name: str, number: Any) -> float:
    """Return a real number as a float if it lies in a range."""
    try:
        if isinstance(number, str | bytes):
            raise TypeError("text")
        value = float(number)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a real number, got {number!r}") from None
    except OverflowError:  # whole numbers of hundreds of digits
        value = math.copysign(math.inf, number > 0 or -1)
    if not least <= value <= most:
        raise ValueError(f"{name} must {rule}, got {number!r}")
    return value


# Each takes the name of a number and the number, and returns it as a float.
_LEAST, _MOST = math.nextafter(0.0, 1.0), math.nextafter(math.inf, 0.0)
check_positive = partial(_checked, "be positive and finite", _LEAST, _MOST)
check_not_negative = partial(_checked, "be finite and not negative", 0.0, _MOST)
check_unit_interval = partial(_checked, "lie in [0, 1]", 0.0, 1.0)
check_zero_division = partial(check_unit_interval, "zero_division")


def check_whole(name: str, number: Any, least: int = 0) -> int:
    """Return a whole number that must not be less than `least`."""
    if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {number!r}")
    return int(number)


check_count = partial(check_whole, least=1)


def check_choice(name: str, choice: Any, allowed: Iterable[Any]) -> Any:
    """Return an option that must be one of a few values."""
    allowed = tuple(allowed)
    if choice not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {choice!r}")
    return choice


def as_real_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return anything array-like as a NumPy array of real numbers, without copying where possible.

    This is the one place that says what each type means:

    ================================================  =============================================
    float16, float32, float64, any byte order         taken as they are, computed in float64
    longdouble                                        rounded to float64 first
    bfloat16 and other floats of `ml_dtypes`          converted to float64, which is exact
    integers, booleans                                as numbers: 0 and 1 are certain labels
    Decimal, Fraction, numbers mixed in a list        each rounded to float64
    columns of pandas, polars, Arrow (in chunks too)  their values; null and NA become NaN
    tensors of torch on the CPU                       as they are, gradients ignored
    numpy.ma                                          refused where an entry is masked
    SciPy sparse                                      refused where only dense arrays will do
    None, NA, text in a list                          refused, named with their position
    complex, text, dates, structures, ragged lists    refused by type
    what cannot become an array                       refused with its own reason
    ================================================  =============================================
    """
    if type(values) is np.ndarray and values.dtype.char in "fd":  # the usual: nothing to look into
        return values
    tensors = tensors_for(values)
    try:
        array = np.asarray(values) if tensors is None else tensors.as_array(values)
    except (ValueError, TypeError, RuntimeError) as error:  # ragged lists, tensors elsewhere
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    refuse_masked(name, values)
    if array.dtype.kind == "O":
        _refuse_sparse(name, values)
        array = _real_objects(name, array) if array.ndim else array
    if array.dtype.type.__module__.startswith("ml_dtypes") or array.dtype == np.longdouble:
        return array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must hold real numbers, got {type(values).__name__} of dtype {array.dtype}"
        )
    return array


def refuse_masked(name: str, values: Any) -> None:
    """Refuse masked entries of numpy.ma, which `np.asarray` would take for values."""
    if np.ma.is_masked(values):
        place = _first(np.ma.getmaskarray(values))
        raise ValueError(f"{name} must not be masked, got a masked entry at {place}")


def _refuse_sparse(name: str, values: Any) -> None:
    """Refuse sparse matrices, which NumPy takes for one object."""
    if hasattr(values, "toarray"):
        kind = type(values).__name__
        raise ValueError(f"{name} must be dense here, got a {kind}: give {name}.toarray()")


def _real_objects(name: str, array: NDArray[Any]) -> NDArray[np.float64]:
    """Return Python objects that are real numbers as floats; name the first that is none."""
    known = np.reshape([isinstance(each, Real | Decimal) for each in array.flat], array.shape)
    if not known.all():
        place = _first(~known)
        raise ValueError(f"{name} must hold real numbers, got {array[place]!r} at position {place}")
    try:
        rounded = array.astype(np.float64)
    except OverflowError:
        raise ValueError(f"{name} must hold numbers up to 1.8e308, got a larger one") from None
    whole = np.reshape([isinstance(each, Integral) for each in array.flat], array.shape)
    _refuse_rounded(name, array, whole & (array != rounded))
    return rounded


def as_probabilities(name: str, values: ArrayLike, *, ndim: int | None = None) -> NDArray[Any]:
    """Return an array of probabilities, every one of them checked; with `ndim` not empty.

    The array is not copied; where work follows in double precision, convert it there.
    """
    p = as_real_array(name, values)
    if ndim is not None and p.ndim != ndim:
        dimensions = "one dimension" if ndim == 1 else "two dimensions"
        raise ValueError(f"{name} must have {dimensions}, got {p.ndim}{second_column(name, p)}")
    if ndim is not None and p.size == 0:
        raise ValueError(f"{name} must hold at least one probability, got none")
    if p.size and not (p.min() >= 0.0 and p.max() <= 1.0):
        raise first_bad_probability(name, p)
    return p


def second_column(name: str, array: NDArray[Any]) -> str:
    """Return what to give where one column or both of `predict_proba` were given, for a message."""
    if array.ndim != 2 or array.shape[1] not in (1, 2):
        return ""
    if array.shape[1] == 1:
        return f"; for a single column give {name}[:, 0]"
    return f"; for the two columns of a classifier give {name}[:, 1]"


def refuse_both_columns(name: str, array: NDArray[Any]) -> None:
    """Refuse the probabilities of both classes, where any shape would do."""
    pairs = array.ndim == 2 and array.shape[1] == 2 and len(array) > 1
    if pairs and np.allclose(array.sum(axis=1), 1.0):
        raise ValueError(f"{name} has rows that sum to 1{second_column(name, array)}")


def as_labels(name: str, values: ArrayLike) -> NDArray[np.bool_]:
    """Return 0/1 labels as booleans; anything else is named."""
    array = as_real_array(name, values)
    if array.dtype == bool:
        return array
    labels = np.asarray(array == 1)
    if not np.array_equal(labels, array):
        bad = array[(array != 0) & ~labels].flat[0]
        raise ValueError(f"{name} must hold 0 and 1 (or booleans), got {bad.item()!r}")
    return labels


def as_positives(name: str, values: ArrayLike, pos_label: Any = None) -> NDArray[np.bool_]:
    """Return which labels are `pos_label`; without one they must be 0 and 1."""
    if pos_label is None:
        try:
            return as_labels(name, values)
        except ValueError as error:
            raise _two_values(name, values) or error from None
    labels = as_classes(name, values)
    positive = which_are(labels, pos_label)
    if not positive.any():
        some = ", ".join(repr(label) for label in dict.fromkeys(labels.flat[:100].tolist()))
        raise ValueError(
            f"pos_label must be one of the labels, got {pos_label!r}; the labels are {some}"
        )
    return positive


def as_classes(name: str, values: Any, what: str = "a label") -> NDArray[Any]:
    """Return labels of any kind as an array; sparse, ragged and missing ones are refused."""
    refuse_masked(name, values)
    _refuse_sparse(name, values)
    try:
        labels = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of labels: {error}") from None
    if labels.ndim and np.any(missing := _missing(labels)):
        place = _first(missing)
        raise ValueError(
            f"{name} must hold {what} everywhere, got {labels[place]} at position {place}"
        )
    return labels


def refuse_missing(name: str, values: Any) -> None:
    """Refuse None and NA among labels that are objects; scikit-learn fails when it compares them.

    What is no array is left to scikit-learn: sparse and ragged tables.
    """
    if not hasattr(values, "toarray"):
        with suppress(ValueError):
            values = np.asarray(values)
        if isinstance(values, np.ndarray) and values.dtype.kind == "O":
            as_classes(name, values)


def _missing(labels: NDArray[Any]) -> Any:
    """Mark None and what is not equal to itself: NaN, NaT, NA."""
    if labels.dtype.kind != "O":
        return labels != labels if labels.dtype.kind in "fcmM" else False
    if {str, int, bool}.issuperset(map(type, labels.flat)):
        return False

    def is_missing(value: Any) -> bool:
        try:
            return value is None or bool(value != value)
        except TypeError:  # NA is neither equal to itself nor not
            return True

    return np.reshape([is_missing(each) for each in labels.flat], labels.shape)


def which_are(labels: NDArray[Any], pos_label: Any) -> NDArray[np.bool_]:
    """Return which labels are `pos_label`, which is one label."""
    if np.ndim(pos_label):
        raise ValueError(f"pos_label must be one label, got {pos_label!r}")
    found = np.asarray(labels == pos_label, dtype=np.bool_)
    return found if found.shape == labels.shape else np.zeros(labels.shape, np.bool_)


def _two_values(name: str, values: Any) -> ValueError | None:
    """Say of labels that are text, or two other numbers, that pos_label is missing."""
    with suppress(ValueError, TypeError):  # what is no array has no values
        found = [*dict.fromkeys(np.ravel(values)[:100_000].tolist())]
        numbers = len(found) == 2 and set(map(type, found)) <= {int, float}
        if isinstance(next(iter(found), None), str) or (numbers and math.isfinite(sum(found))):
            wrong = next(each for each in found if each not in (0, 1))
            return ValueError(
                f"{name} must hold 0 and 1, got {wrong!r}; pass the positive label as pos_label"
            )
    return None


def as_scores(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return scores as floating-point numbers; infinite ones are allowed, NaN is not."""
    array = as_real_array(name, values)
    if array.dtype.kind != "f":
        _refuse_inexact(name, array)
        return array.astype(np.float64)
    if np.isnan(array).any():
        place = _first(np.isnan(array))
        raise ValueError(f"{name} must not hold NaN, got one at position {place}")
    return array


def _refuse_inexact(name: str, array: NDArray[Any]) -> None:
    """Refuse whole numbers that no float equals: different ones would become one."""
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        rounded, top = array.astype(np.float64), float(np.iinfo(array.dtype).max)
        back = np.minimum(rounded, np.nextafter(top, 0.0)).astype(array.dtype)
        _refuse_rounded(name, array, (back != array) | (rounded >= top))


def _refuse_rounded(name: str, array: NDArray[Any], rounded: NDArray[np.bool_]) -> None:
    if rounded.any():
        place = _first(rounded)
        raise ValueError(
            f"{name} must be numbers that a float holds exactly, got {int(array[place])} at "
            f"position {place}; subtract a common offset, or pass ranks"
        )


def as_weights(
    sample_weight: ArrayLike | None, n: int, name: str = "sample_weight"
) -> NDArray[np.float64] | None:
    """Return one non-negative finite weight per row, or None."""
    if sample_weight is None:
        return None
    weight = as_real_array(name, sample_weight).astype(np.float64)
    if weight.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {weight.shape}")
    if (bad := ~(np.isfinite(weight) & (weight >= 0))).any():
        raise ValueError(f"{name} must be finite and not negative, got {float(weight[bad][0])!r}")
    if not weight.any():
        raise ValueError(f"{name} must not all be zero, got {n} of them")
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if not math.isfinite(total):
        raise ValueError(f"{name} must have a finite sum, got up to {float(weight.max())!r}")
    return weight


def ones_unless(weight: NDArray[np.float64] | None, n: int) -> NDArray[np.float64]:
    """Return the weights, or a weight of one for each of n rows where none are given."""
    return np.ones(n) if weight is None else weight


def first_bad_probability(name: str, array: NDArray[Any]) -> ValueError:
    """Describe the first value that is not a probability; call it once one is known to exist."""
    place = _first(~((array >= 0.0) & (array <= 1.0)))
    where = f" at position {place}" if array.ndim else ""
    value = float(array[place])
    return ValueError(f"{name} must be finite and in [0, 1], got {value!r}{where}{_scaled(array)}")


def _scaled(array: NDArray[Any]) -> str:
    """Return how to turn numbers on another scale into probabilities, for a message."""
    if array.dtype == np.uint8:
        return "; divide an 8-bit map by 255 first"
    low, high = float(np.min(array)), float(np.max(array))
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    if low < -0.5:
        return "; apply a sigmoid to logits first"
    return "; divide percentages by 100 first" if 1.5 < high <= 100.0 and low >= 0.0 else ""


def how_many(count: float, what: str) -> str:
    """Write a number of things: the noun of one thing has no s.

    >>> how_many(1, "row"), how_many(2_000, "labelled row")
    ('1 row', '2,000 labelled rows')
    """
    return f"{count:,.0f} {what}{'' if count == 1 else 's'}"


def check_same(before: Any, after: Any, what: str = "rows in a segment") -> None:
    """Refuse a frame of which some numbers are not as they were when it was read before."""
    before, after = np.atleast_1d(before), np.atleast_1d(after)
    differ = ~(np.abs(after - before) <= 1e-9 * before)
    if differ.any():
        i = int(differ.argmax())
        raise ValueError(f"{CHANGED}, got {before[i]!s} {what} and then {after[i]!s}")


def _first(marked: NDArray[np.bool_]) -> Any:
    """Return the first marked position: a number in a vector, else a tuple."""
    place = tuple(np.argwhere(marked)[0].tolist())
    return place[0] if len(place) == 1 else place
