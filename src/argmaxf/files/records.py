"""Text tables: the first row that has not as many fields as the header."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from argmaxf._base.compiled import kernel

CHUNK = 1 << 22  # bytes read at a time
QUOTE, LINE_FEED, RETURN = ord('"'), ord("\n"), ord("\r")


class Ragged(NamedTuple):
    """A row with too few or too many fields; rows are counted from 1, without the header."""

    row: int
    fields: int
    expected: int


def first_ragged(path: Path, separator: str) -> Ragged | None:
    """Return the first row whose number of fields is not the header's, if there is one.

    Polars fills up short rows with nulls and does not say where a long one is.
    """
    # fields of the header, rows so far, separators in this row, inside quotes, bytes in this row
    state = np.zeros(5, np.int64)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            data = np.frombuffer(chunk, np.uint8)
            if scan_records(data, ord(separator), state):
                return _described(state)
    if state[4] and scan_records(np.array([LINE_FEED], np.uint8), ord(separator), state):
        return _described(state)
    return None


def _described(state: np.ndarray) -> Ragged:
    return Ragged(int(state[1]), int(state[2]) + 1, int(state[0]))


@kernel
def scan_records(data, separator, state):
    """Go through bytes; stop and return True at the end of a row with a wrong number of fields."""
    fields, row, separators, quoted, filled = state
    for byte in data:
        if byte == QUOTE:
            quoted = 1 - quoted
            filled += 1
        elif quoted:
            continue
        elif byte == LINE_FEED:
            if fields == 0:
                fields = separators + 1 if filled else 0
            else:  # an empty line is a row, though not a ragged one: Polars counts it
                row += 1
                if filled and separators + 1 != fields:
                    state[:] = (fields, row, separators, quoted, filled)
                    return True
            separators, filled = 0, 0
        elif byte == separator:
            separators += 1
            filled += 1
        elif byte != RETURN:
            filled += 1
    state[:] = (fields, row, separators, quoted, filled)
    return False
