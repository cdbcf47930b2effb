"""Numbers in temporary files, where there are more of them than are held in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Ints
from argmaxf._base.segments import Segments, place
from argmaxf.expected.threads import CHUNK
from argmaxf.frames.engines import CHANGED


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
    """Some segments, one after another: segment first + i has the rows from offsets[i] on."""

    first: int
    offsets: Ints
    columns: dict[str, Any]  # arrays; temporary files of a segment of more rows than are held


@contextmanager
def by_segment(
    sizes: Ints, kinds: Mapping[str, Any], read: Iterable[tuple[Any, ...]], most: int
) -> Iterator[Iterator[Part]]:
    """Part rows by segment, about `most` at a time; more wait in temporary files.

    `sizes` are those of the segments, `kinds` the types of the columns; batches hold these, and
    the numbers of the segments.
    """
    if sizes.sum() <= most:
        yield iter([gathered(0, sizes, kinds, read)])
        return
    ends, large = np.cumsum(sizes), sizes > most
    begins = (np.diff(ends // most, prepend=-1) > 0) | large | np.append(False, large[:-1])
    part_of, firsts = np.cumsum(begins) - 1, np.flatnonzero(begins)
    with ExitStack() as stack:
        files = [
            [stack.enter_context(closing(Spill(kind))) for kind in (*kinds.values(), np.int32)]
            for _ in firsts
        ]
        for batch in read:
            check_numbers(batch[-1], sizes.size)
            parts = Segments.of_numbers(part_of[batch[-1]], firsts.size)
            for j, values in enumerate(map(parts.sorted, batch)):
                for columns, rows in zip(files, parts.slices(), strict=True):
                    columns[j].append(values[rows])
        yield map(partial(_from_files, kinds), firsts.tolist(), np.split(sizes, firsts[1:]), files)


def _from_files(kinds: Mapping[str, Any], first: int, sizes: Ints, files: list[Spill]) -> Part:
    """Return the part whose rows are in files; a single segment stays there."""
    *columns, numbers = files
    if sizes.size == 1:
        check_sizes(sizes, np.array([numbers.size]))
        return Part(first, np.append(0, sizes), dict(zip(kinds, columns, strict=True)))
    batches = zip(*(file.batches() for file in columns), numbers.batches(), strict=True)
    rows = ((*values, each.astype(np.int64) - first) for *values, each in batches)
    return gathered(first, sizes, kinds, rows)


def gathered(
    first: int, sizes: Ints, kinds: Mapping[str, Any], read: Iterable[tuple[Any, ...]]
) -> Part:
    """Return rows of batches in memory, those of each segment one after another."""
    offsets = np.append(0, np.cumsum(sizes))
    columns = {name: np.empty(int(offsets[-1]), kind) for name, kind in kinds.items()}
    following = offsets[:-1].copy()
    for *values, numbers in read:
        check_numbers(numbers, sizes.size)
        ends = following + np.bincount(numbers, minlength=sizes.size)
        if (ends > offsets[1:]).any():
            check_sizes(sizes, ends - offsets[:-1])
        for out, array in zip(columns.values(), values, strict=True):
            place(array, numbers, following.copy(), out)
        following = ends
    check_sizes(sizes, following - offsets[:-1])
    return Part(first, offsets, columns)


def check_numbers(numbers: Ints, count: int) -> None:
    """Refuse the numbers of segments that were not there before."""
    if numbers.size and numbers.max() >= count:
        raise ValueError(f"{CHANGED}, got {count} segments and then more")


def check_sizes(before: Ints, after: Ints) -> None:
    """Refuse a frame of whose segments one has not as many rows as before."""
    if not np.array_equal(before, after):
        i = int((before != after).argmax())
        raise ValueError(f"{CHANGED}, got {before[i]} rows in a segment and then {after[i]}")


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
