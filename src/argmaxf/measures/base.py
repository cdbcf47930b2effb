r"""What every measure is, the two families whose expectations are known, and user-defined measures.

A measure is a value from four counts. Of a `Ratio` the coefficients are known, and of a `Linear`
that it is linear in true positives; any other has nothing but its values. One given by the user is
a function of counts, written for arrays or for numbers: its value for four plain numbers is the
measure. One call with arrays is used instead where it gives the same, which is checked at some
entries of every kind, since the two ways of writing differ at corners.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from argmaxf._base.shown import Shown
from argmaxf._base.validation import check_zero_division

MOST_SPAN = 1e20  # b_out over s1, up to which the quadrature of an empty set has all its digits
COMMON_COUNTS = 1.0, 3.0, 2.0, 7.0  # tp, k, s, n with some of each kind of item


class Measure(ABC):
    """A measure of predictions, from counts.

    The counts are tp (true positives), k (items predicted positive), s (positives), and n (all
    items); they may be weighted, and arrays of them broadcast. A measure must rise with tp where k,
    s and n stay as they are: then the best set of k items is the k most probable ones.

    Examples
    --------
    >>> from argmaxf.measures import FBeta
    >>> measure: Measure = FBeta(2)
    >>> round(measure.value(tp=3, k=4, s=6), 3)
    0.536
    """

    name: ClassVar[str]  # in the registry and as `measure=`
    label: ClassVar[str]  # as people write it, for titles and messages
    # At the same tp, s and n a larger k is never better: only cuts that end at a positive can win.
    falls_with_k: ClassVar[bool] = False
    # The smallest and the largest value; infinite where they are not known.
    ends: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def __init_subclass__(cls, **attributes: Any) -> None:
        """Take attributes from the head of a class: `class MCC(Linear, name="mcc")`."""
        super().__init_subclass__()
        for name, value in attributes.items():
            setattr(cls, name, value)

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
        check_zero_division(zero_division)
        counts = (None if each is None else np.asarray(each, float) for each in (tp, k, s, n))
        return divided(*self.fraction(*counts), zero_division)


class Coefficients(NamedTuple):
    """The five numbers of a `Ratio`: floats, or decimals where digits beyond them are asked for.

    Attributes
    ----------
    c, b_in, b_out, s0, s1 : float
        As in (c T + s0) / (k + b_in T + b_out R + s1).

    Examples
    --------
    >>> from argmaxf.measures import Jaccard
    >>> Jaccard().coefficients()
    Coefficients(c=1.0, b_in=0.0, b_out=1.0, s0=0.0, s1=0.0)
    """

    c: Any
    b_in: Any
    b_out: Any
    s0: Any = 0
    s1: Any = 0


class Ratio(Measure, falls_with_k=True):
    """A measure (c T + s0) / (k + b_in T + b_out R + s1), given by its `coefficients`.

    T are true positives, k items predicted positive, and R = S - T the positives left out.

    Examples
    --------
    >>> from argmaxf import maximize_expected_f
    >>> class MissesThreefold(Ratio):
    ...     name = label = "misses_threefold"
    ...     def coefficients(self, number=float):
    ...         return Coefficients(*map(number, (1, 0, 3, 0, 0)))
    >>> MissesThreefold().value(tp=3, k=4, s=5)
    0.3
    >>> maximize_expected_f([0.05, 0.45, 0.1, 0.3, 0.4], measure=MissesThreefold()).k
    3
    """

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


class Linear(Measure):
    """A measure whose `fraction` is linear in tp once k and s are known, as that of MCC is.

    Its expectation needs no more of the labels than E[T; S = s], how many true positives there are
    where s labels are positive, for the few s that are likely (`expected/counts.py`).

    Beyond that the value must fall as k grows at the same T and S, where it is not 0/0; be smooth
    in S between 0 and n; and be 0/0, if at all, for all T of a k and S at once. And no top set that
    parts a run of equal items may be better than both that do not (proof for the measures here in
    docs/background/algorithm.md, section 7).

    Examples
    --------
    >>> from argmaxf import maximize_expected_f
    >>> class Informedness(Linear):
    ...     name = label = "informedness"
    ...     def fraction(self, tp, k, s, n):
    ...         return tp * (n - s) - (k - tp) * s, s * (n - s)
    >>> maximize_expected_f([0.05, 0.45, 0.1, 0.3, 0.4], measure=Informedness()).k
    3
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


@dataclass(frozen=True, repr=False)
class Interval(Shown):
    """A confidence interval around a value.

    Attributes
    ----------
    low : float
        Lower end.
    value : float
        The value itself: the F_β of the predictions.
    high : float
        Upper end.
    reliable : bool
        False where the interval may hold the true value less often than stated, as for a macro
        average with a label of fewer than 10 positives or negatives. Text says so.

    Examples
    --------
    >>> from argmaxf import f_interval
    >>> print(f"{f_interval([0, 1, 1, 0, 1], [0, 1, 1, 1, 0]):.2f}")
    0.67 [0.14, 0.95]
    >>> print(Interval(0.25, 0.5, 0.75, reliable=False))
    0.5 [0.25, 0.75] (may be too narrow)
    """

    low: float
    value: float
    high: float
    reliable: bool = True

    @property
    def caveat(self) -> str:
        """What stands behind an interval that is not reliable; empty for others."""
        return "" if self.reliable else " (may be too narrow)"

    def __format__(self, form: str) -> str:
        value, low, high = (format(x, form or ".6g") for x in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]{self.caveat}"

    def __str__(self) -> str:
        return format(self)


def others(part: Any, n: Any) -> Any:
    """Return n - part, and 0 where the rest is no more than the rounding of weighted sums."""
    rest = n - part
    return np.where(rest * 10**12 > n, rest, 0 * rest)


def divided(numerator: Any, denominator: Any, zero_division: float) -> Any:
    """Divide, with 0/0 = `zero_division`."""
    defined = np.asarray(denominator > 0)
    if defined.ndim and defined.all():
        return numerator / denominator
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    kind = np.result_type(numerator, denominator, np.float64)
    out = np.full(denominator.shape, float(zero_division), kind)
    np.divide(numerator, denominator, out=out, where=defined)
    return float(out) if out.ndim == 0 else out


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
