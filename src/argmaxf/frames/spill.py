"""Numbers in temporary files, where there are more of them than are held in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Floats
from argmaxf.expected.threads import CHUNK


class Spill:
    """Numbers in a temporary file without a name, which vanishes with the process."""

    def __init__(self) -> None:
        self.file: IO[bytes] = TemporaryFile(prefix="argmaxf-", buffering=0)  # noqa: SIM115
        self.size = 0

    def close(self) -> None:
        """Give the file back."""
        self.file.close()

    def append(self, values: NDArray[Any]) -> None:
        """Add numbers at the end."""
        with spilling():
            write_all(self.file, np.ascontiguousarray(values, np.float64).view(np.uint8).data)
        self.size += values.size

    def batches(self) -> Iterator[Floats]:
        """Yield all numbers in order."""
        for start in range(0, self.size, CHUNK):
            values = np.empty(min(CHUNK, self.size - start))
            os.preadv(self.file.fileno(), [values.view(np.uint8).data], 8 * start)
            yield values


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
