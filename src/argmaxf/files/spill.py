"""What the first pass keeps for closer looks: the items near the threshold, in a temporary file.

After the first million rows a summary tells about where the threshold will be; from then on only
items in a wide band around it are kept. Should the rows have misled (sorted ones do), the search
asks for items outside of the band, and the column is read once more.
"""

from __future__ import annotations

import os
from tempfile import TemporaryFile
from typing import IO, NamedTuple

import numpy as np

from argmaxf._base.arrays import Floats
from argmaxf.expected import refine
from argmaxf.expected.grouped.groups import Groups, groups_of_table, windows
from argmaxf.expected.grouped.sources import ArraySource
from argmaxf.files.formats import spilling, write_all
from argmaxf.problem import Problem

SAMPLE = 1 << 20  # rows before the band is chosen
MARGIN = 1.25  # how much wider than the bracket of the sample it is
HELD = 1 << 23  # items of a narrow band kept in memory: 64 MB, however many rows there are


class Band(NamedTuple):
    """The probabilities that are kept."""

    low: float = 0.0
    high: float = 1.0

    @classmethod
    def likely(cls, table: Floats, problem: Problem) -> Band:
        """Return a wide band around the threshold of the items seen so far."""
        search = refine.search(groups_of_table(table, zeros=True), problem)
        near = Groups.joined([search.best_border().last, search.unsettled])
        if len(near) == 0:
            return cls()
        return cls(float(near.low.min()) / MARGIN, min(1.0, float(near.high.max()) * MARGIN))

    def of(self, values: Floats) -> Floats:
        """Return the values in the band."""
        if self == Band():
            return values
        return values[(values >= self.low) & (values <= self.high)]


class Spill:
    """Numbers in a temporary file without a name, which vanishes with the process.

    Sliced like an array; every slice is read from the file.
    """

    def __init__(self) -> None:
        self.file: IO[bytes] = TemporaryFile(prefix="argmaxf-", buffering=0)  # noqa: SIM115
        self.size = 0

    def close(self) -> None:
        """Give the file back."""
        self.file.close()

    def append(self, values: Floats) -> None:
        """Add numbers at the end."""
        data = memoryview(np.ascontiguousarray(values, np.float64).view(np.uint8).data)
        with spilling():
            write_all(self.file, data)
        self.size += values.size

    def __getitem__(self, where: slice) -> Floats:
        start, stop, _ = where.indices(self.size)
        data = os.pread(self.file.fileno(), 8 * (stop - start), 8 * start)
        return np.frombuffer(data, np.float64)


class OutsideBand(Exception):
    """Raised when the search needs items that were not kept."""


class BandSource(ArraySource):
    """The items of a band, as the search sees them; the table of all items was made before."""

    def __init__(self, spill: Spill, band: Band, table: Floats) -> None:
        super().__init__(spill, most_held=HELD)
        self.band = band
        self._table = table

    def sums(self) -> Floats:
        """Return the table of the summary, of all items."""
        return self._table

    def subdivide(self, groups: Groups) -> Groups:
        """Return the same items in finer groups; raise OutsideBand if some were not kept."""
        for window, _ in windows(groups):
            low, high = window.bounds
            if self.band != Band() and (low < self.band.low or high > self.band.high):
                raise OutsideBand
        return super().subdivide(groups)
