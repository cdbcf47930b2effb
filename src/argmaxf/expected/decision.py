"""The answer of the decision-theoretic approach, as a small frozen record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools
from argmaxf._base.shown import Shown, html_table, short
from argmaxf.measures.base import Interval


class ExpectedF(NamedTuple):
    """Mean and standard deviation of F (or Jaccard) under the model.

    Attributes
    ----------
    mean : float
        The expected value.
    std : float
        The standard deviation.

    Examples
    --------
    >>> from argmaxf import expected_f
    >>> mean, std = expected_f([0.05, 0.45, 0.4], [False, True, True])
    >>> print(f"{mean:.3f} ± {std:.3f}")
    0.501 ± 0.373
    """

    mean: float
    std: float

    def _repr_html_(self) -> str:
        """Return a table for a notebook."""
        return html_table([("ExpectedF", ""), ("mean", short(self.mean)), ("std", short(self.std))])


@dataclass(frozen=True, eq=False, repr=False)
class Decision(Shown):
    """The labels with the highest expected F, and what to expect of them.

    For two-dimensional input every field but `beta` and `n` is an array, with one entry for each
    row (`average="samples"`) or column (`average="macro"`); with `by`, one for each segment.

    Attributes
    ----------
    selected : ndarray of bool or None
        Boolean labels in the shape of the input; None for a decision made from a summary alone.
    k : int or ndarray
        How many items are selected.
    threshold : float or ndarray
        The smallest selected probability: selected means p ≥ threshold, except that of items equal
        to it only the first ones may be needed (`ties="split"`). Infinite if nothing is selected.
    expected : float or ndarray
        E[F] of the selected set.
    std : float or ndarray
        Standard deviation of F under the model.
    beta : float
        The β of F_β.
    n : int or ndarray
        How many items each decision is about; an array with `by`.
    bracket : tuple of float or None
        For a decision made from a summary: the thresholds between which the exact one lies.
    guarantee : ChanceGuarantee, list or None
        With `confidence_level`, a `ChanceGuarantee`: the least precision and recall, their
        probability and cost; a list of them for two-dimensional input and segments.
    segment : ndarray or None
        With `by`, the segment of each entry, sorted.
    overall : Decision or None
        With `by`, what to expect of all items together: k, the expected F and its spread, and the
        guarantee with the probability it has for all of them; `selected` and `threshold` are None.
    interval : Interval or None
        Of a classifier's decision: where F will be with 95 % probability, with the error of
        estimation.

    Examples
    --------
    >>> from argmaxf import maximize_expected_f
    >>> decision = maximize_expected_f([0.05, 0.45, 0.1, 0.3, 0.4])
    >>> decision
    Decision(k=3, threshold=0.3, expected=0.480288 ± 0.30437, n=5)
    >>> decision.selected
    array([False,  True, False,  True,  True])
    """

    selected: Any
    k: Any
    threshold: Any
    expected: Any
    std: Any
    beta: float
    n: Any
    bracket: tuple[float, float] | None = None
    guarantee: Any = None
    segment: Any = None
    overall: Decision | None = None
    interval: Interval | None = None

    def _parts(self) -> Mapping[str, Any]:
        known = ("selected", "k", "threshold", "expected", "std", "beta", "n")
        value = f"{short(self.expected)} ± {short(self.std)}"
        answer = {"k": self.k, "threshold": self.threshold, "expected": value, "n": self.n}
        return answer | {name: v for name, v in super()._parts().items() if name not in known}

    def only(self) -> Self:
        """Return the decision about a batch of one set as that about the set."""
        return replace(self, **{f.name: _first(getattr(self, f.name)) for f in fields(self)})


@dataclass(frozen=True, eq=False, repr=False)
class BoundedDecision(Decision):
    """A decision whose set is not proven to be the best, and how much better another can be.

    Attributes
    ----------
    bound : float or ndarray
        No set has a higher expected value; one entry for each row or column.
    """

    bound: Any = math.nan


def _first(value: Any) -> Any:
    """Return the first entry of an array or list, or of each of several; others as they are."""
    if isinstance(value, tuple):
        return tuple(map(_first, value))
    if isinstance(value, list):
        return value[0]
    if not (isinstance(value, np.ndarray) and value.ndim):
        return value
    return value[0] if value.ndim > 1 else value[0].item()


def top_items(p: NDArray[Any], threshold: float, k: int) -> Bools:
    """Mark the top k items: those above the threshold, and the first ones equal to it."""
    selected: Bools = np.greater_equal(p, threshold)
    if spare := np.count_nonzero(selected) - k:
        selected[np.flatnonzero(p == threshold)[-spare:]] = False
    return selected
