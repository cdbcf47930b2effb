"""What thresholds on labelled scores are returned as."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Threshold:
    """The best cut: an item is predicted positive where its score is at least `threshold`.

    For `average="macro"` each field is an array with one entry per label, with `by` with one for
    each segment.

    Attributes
    ----------
    threshold : float or ndarray
        Midway between neighbouring scores; above all of them where nothing is selected.
    value : float or ndarray
        F_β of the cut, or the measure asked for.
    precision : float or ndarray
        Its precision.
    recall : float or ndarray
        Its recall.
    k : int or ndarray
        How many of the given items it selects.
    guarantee : Guarantee or ndarray or None
        What holds in the population, with what confidence and at what cost; None without one.
    segment : ndarray or None
        With `by`, the segment of each entry, sorted.
    overall : Threshold or None
        With `by`, all rows together, each cut at its segment's threshold: their value, precision,
        recall, k and guarantee; its `threshold` is None.
    """

    threshold: Any
    value: Any
    precision: Any
    recall: Any
    k: Any
    guarantee: Any = field(default=None, repr=False)
    segment: NDArray[Any] | None = field(default=None, repr=False)
    overall: Threshold | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Curve:
    """Precision, recall and F_β for every cut, from the one that selects nothing downwards.

    Attributes
    ----------
    threshold : ndarray
        An item is selected where its score is at least this.
    precision : ndarray
        Precision of each cut.
    recall : ndarray
        Recall of each cut.
    fbeta : ndarray
        F_β of each cut, or the measure asked for; `value` is the same array.
    """

    threshold: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    fbeta: NDArray[np.float64]

    @property
    def value(self) -> NDArray[np.float64]:
        """The measure of each cut."""
        return self.fbeta
