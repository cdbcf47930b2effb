"""Numbers in temporary files, where there are more of them than are held in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Ints
from argmaxf._base.validation import Segments
from argmaxf.expected.threads import CHUNK


class Spill:
    """Numbers in a temporary file without a name, which vanishes with the process.

    Sliced like an array; every slice is read from the file.
    """

    def __init__(self, kind: Any = np.float64) -> None:
        self.file: IO[bytes] = TemporaryFile(prefix="argmaxf-", buffering=0)  # noqa: SIM115
        self.kind, self.size = np.dtype(kind), 0

    def close(self) -> None:
        """Give the file back."""
        self.file.close()

    def append(self, values: NDArray[Any]) -> None:
        """Add numbers at the end."""
        data = np.ascontiguousarray(values, self.kind).view(np.uint8).data
        with spilling():
            write_all(self.file, memoryview(data))
        self.size += values.size

    def __getitem__(self, where: slice) -> NDArray[Any]:
        start, stop, _ = where.indices(self.size)
        values = np.empty(stop - start, self.kind)
        rest, place = memoryview(values.view(np.uint8).data), start * self.kind.itemsize
        while rest.nbytes:  # one call reads two gigabytes at most
            read = os.preadv(self.file.fileno(), [rest], place)
            rest, place = rest[read:], place + read
        return values

    def batches(self) -> Iterator[NDArray[Any]]:
        """Yield all numbers in order."""
        for start in range(0, self.size, CHUNK):
            yield self[start : start + CHUNK]


class Part(NamedTuple):
    """Some segments whose rows lie in temporary files, one for each column."""

    segments: Ints
    is_large: bool  # a single segment, of more rows than are held
    columns: tuple[Spill, ...]
    numbers: Spill

    def places(self) -> Ints:
        """Return for each row the place of its segment among `segments`."""
        places: Ints = np.searchsorted(self.segments, self.numbers[:])
        return places


@contextmanager
def parted(
    sizes: Ints, kinds: Sequence[Any], read: Iterable[tuple[Any, ...]], most: int
) -> Iterator[Iterator[Part]]:
    """Part rows by segment into temporary files of at most so many rows, where segments fit.

    `sizes` are those of the segments; batches hold the columns and the numbers of the segments.
    """
    large = sizes > most
    part = np.cumsum(np.where(large, 0, sizes)) // most
    part[large] = part.max() + 1 + np.arange(np.count_nonzero(large))
    with ExitStack() as stack:
        files = [
            [stack.enter_context(closing(Spill(kind))) for kind in (*kinds, np.int32)]
            for _ in range(part.max() + 1)
        ]
        for batch in read:
            rows_of = Segments.of_numbers(part[batch[-1]], len(files)).rows()
            for columns, rows in zip(files, rows_of, strict=True):
                for file, values in zip(columns, batch, strict=True):
                    file.append(values[rows])
        own = (np.flatnonzero(part == i) for i in range(len(files)))
        yield (
            Part(segments, bool(large[segments[0]]), tuple(columns), numbers)
            for segments, (*columns, numbers) in zip(own, files, strict=True)
            if segments.size
        )


def write_all(file: IO[bytes], data: bytes | memoryview) -> None:
    """Write some bytes to an unbuffered file, which may take them in parts."""
    rest = memoryview(data)
    while rest.nbytes:
        rest = rest[file.write(rest) :]


@contextmanager
def spilling() -> Iterator[None]:
    """Say which disk is full when a temporary file does not fit."""
    try:
        yield
    except OSError as error:
        raise OSError(
            f"{gettempdir()}: no room for a temporary file: {error.strerror}; "
            "TMPDIR names another folder"
        ) from error
