"""Rows parted into segments: by their numbers, in linear time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf._base.arrays import Ints
from argmaxf._base.validation import as_classes


class Segments(NamedTuple):
    """The segments of n rows: segment i has the rows order[offsets[i] : offsets[i + 1]]."""

    names: NDArray[Any]  # sorted
    order: Ints | None  # None where the rows lie so already
    offsets: Ints

    @classmethod
    def of(cls, by: ArrayLike, n: int) -> Segments:
        """Read the segment of each row; missing ones are refused. Cost: a sort."""
        values = as_classes("by", by, "a segment")
        if values.shape != (n,):
            raise ValueError(f"by must hold the segment of each of {n} rows, got {values.shape}")
        try:
            names, which = np.unique(values, return_inverse=True)
        except TypeError:
            raise ValueError("by must hold values that can be sorted, got several types") from None
        return cls.of_numbers(which, names.size)._replace(names=names)

    @classmethod
    def of_numbers(cls, numbers: Ints, count: int) -> Segments:
        """Part rows by the numbers of their segments, from 0 to `count` - 1; some may be empty."""
        offsets = np.append(0, np.cumsum(np.bincount(numbers, minlength=count)))
        # NumPy has a radix sort for two bytes.
        order = np.argsort(numbers.astype(np.uint16), kind="stable")
        if count > 1 << 16:
            order = order[np.argsort((numbers[order] >> 16).astype(np.uint16), kind="stable")]
        return cls(np.arange(count), order, offsets)

    def sorted(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of rows with those of each segment one after another."""
        return values if self.order is None else values[self.order]

    def unsorted(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return what `sorted` has changed as it was."""
        if self.order is None:
            return values
        found = np.empty_like(values)
        found[self.order] = values
        return found

    def slices(self) -> Iterator[slice]:
        """Yield where each segment is in sorted rows."""
        yield from map(slice, self.offsets[:-1].tolist(), self.offsets[1:].tolist())
