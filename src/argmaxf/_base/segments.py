"""Rows parted into segments: which rows each has, in the order given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf._base.arrays import Ints
from argmaxf._base.validation import refuse_masked


class Segments(NamedTuple):
    """The segments of n rows: segment i has the rows order[offsets[i] : offsets[i + 1]]."""

    names: NDArray[Any]  # sorted
    order: Ints
    offsets: Ints

    @classmethod
    def of(cls, by: ArrayLike, n: int) -> Segments:
        """Read the segment of each row; missing ones are refused. Cost: two sorts."""
        refuse_masked("by", by)
        values = np.asarray(by)
        if values.shape != (n,):
            raise ValueError(f"by must hold the segment of each of {n} rows, got {values.shape}")
        _refuse_missing(values)
        try:
            names, which, sizes = np.unique(values, return_inverse=True, return_counts=True)
        except TypeError:
            raise ValueError("by must hold values that can be sorted, got several types") from None
        return cls(names, np.argsort(which, kind="stable"), np.append(0, np.cumsum(sizes)))

    def rows(self) -> Iterator[Ints]:
        """Yield the rows of each segment."""
        for first, last in zip(self.offsets, self.offsets[1:], strict=False):
            yield self.order[first:last]


def _refuse_missing(values: NDArray[Any]) -> None:
    """Refuse None and what is not equal to itself: NaN, NaT, NA."""
    if values.dtype.kind == "O":
        missing = np.array([_is_missing(value) for value in values], np.bool_)
    else:
        missing = np.asarray(values != values)  # NaN and NaT
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"by must name a segment for every row, got {values[row]} at row {row}")


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA is neither equal to itself nor not
        return True
