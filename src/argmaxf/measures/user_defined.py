"""A measure given by the user: a function of counts, written for arrays or for numbers.

Its value for four plain numbers is the measure. One call with arrays is used instead where it gives
the same: checked at some entries of every kind, since the two ways of writing differ at corners.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from argmaxf.measures.base import Measure

COMMON_COUNTS = 1.0, 3.0, 2.0, 7.0  # tp, k, s, n with some of each kind of item


@dataclass(frozen=True)
class UserDefined(Measure):
    """A measure given as a function of the counts tp, k, s, n; NaN from it is 0/0.

    Parameters
    ----------
    function : callable
        Returns the value from arrays of counts, or from four numbers.

    Examples
    --------
    >>> from argmaxf import maximize_expected_f
    >>> precision = UserDefined(lambda tp, k, s, n: tp / k)
    >>> maximize_expected_f([0.1, 0.6, 0.5], measure=precision).k
    1
    """

    name: ClassVar[str] = "user_defined"
    function: Callable[[Any, Any, Any, Any], Any]

    @property
    def title(self) -> str:
        """The function's name."""
        name = str(getattr(self.function, "__name__", "<object>"))
        return "user-defined measure" if name.startswith("<") else name

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return the function's value, over 1 or over 0."""
        shape = np.broadcast_shapes(*map(np.shape, (tp, k, s, n)))
        counts = np.broadcast_arrays(*map(np.atleast_1d, (tp, k, s, n)))
        with np.errstate(all="ignore"):
            value = self._of_arrays(counts)
            if value is None or not all(
                np.isclose(value[at], self._of_one([each[at] for each in counts]), 1e-9, 0, True)
                for at in _places(counts, value)
            ):
                value = np.vectorize(self._of_numbers, otypes=[float])(*counts)
            if np.isinf(value).any():
                at = tuple(np.argwhere(np.isinf(value))[0])
                raise ValueError(
                    f"measure must be finite, or NaN for 0/0, got {float(value[at])} at "
                    f"{_written([each[at] for each in counts])}"
                )
            undefined = np.isnan(value)
            if undefined.all() and math.isnan(self._of_one(COMMON_COUNTS)):
                raise ValueError(
                    "measure must be a number wherever it is not 0/0, got NaN at the counts asked "
                    f"for and at {_written(COMMON_COUNTS)}"
                )
        value = np.where(undefined, 0.0, value).reshape(shape)
        return value, (~undefined).astype(float).reshape(shape)

    def _of_arrays(self, arrays: Sequence[Any]) -> Any:
        """Return the function's values of arrays as floats; None if they are none for each."""
        try:
            value = np.asarray(self.function(*arrays))
        except Exception:  # written for numbers: `if`, math.sqrt, max, isinstance
            return None
        right = value.shape == arrays[0].shape and value.dtype.kind in "biuf"
        return value.astype(float) if right else None

    def _of_one(self, counts: Sequence[Any]) -> float:
        """Return the value of four numbers; of arrays of one, if only arrays will do."""
        try:
            return self._of_numbers(*counts)
        except ValueError:
            value = self._of_arrays([np.array([float(each)]) for each in counts])
            return math.inf if value is None else float(value[0])

    def _of_numbers(self, *counts: float) -> float:
        """Return the function's value of four numbers; a division by zero is 0/0."""
        counts = tuple(map(float, counts))
        try:
            value = self.function(*counts)
        except ZeroDivisionError:
            return math.nan
        except Exception as error:
            says = " ".join(str(error).split())
            raise ValueError(
                "measure must be a function of the counts tp, k, s, n, got "
                f"{type(error).__name__}{f' ({says})' if says else ''} from it at "
                f"{_written(counts)}"
            ) from error
        single = isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"
        if isinstance(value, Real | Decimal) or single:
            return float(value)
        raise ValueError(
            f"measure must return one real number, got {value!r:.60} at {_written(counts)}"
        )


def _places(counts: Sequence[Any], value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the first and the last place of each kind: which counts are 0, equal, or NaN there."""
    tp, k, s, n = counts
    marks = (tp == 0, k == 0, s == 0, tp == k, tp == s, k == n, s == n, np.isnan(value))
    kind = np.packbits(np.stack([mark.reshape(-1) for mark in marks]), axis=0)[0]
    for each in np.flatnonzero(np.bincount(kind)):
        found = kind == each
        for flat in {int(found.argmax()), value.size - 1 - int(found[::-1].argmax())}:
            yield np.unravel_index(flat, value.shape)


def _written(counts: Sequence[Any]) -> str:
    pairs = zip(("tp", "k", "s", "n"), counts, strict=True)
    return ", ".join(f"{name}={float(count):g}" for name, count in pairs)
