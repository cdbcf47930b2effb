"""Sketches as bytes (docs/sketch-format.md): versioned, checksummed, all numbers little-endian."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from argmaxf._base.arrays import Floats
from argmaxf.expected.summary.layout import empty_table
from argmaxf.expected.summary.possible import possible

MAGIC = b"argmaxf\n"
VERSION = 1
HEADER = struct.Struct("<8sHHII")  # magic, version, columns, rows of the table, rows that follow
CHECKSUM = struct.Struct("<I")  # CRC-32 of everything before it


def bytes_of_table(table: Floats) -> bytes:
    """Return the table of a sketch as bytes; groups without items are left out."""
    rows = np.flatnonzero(table[:, 0])
    head = HEADER.pack(MAGIC, VERSION, table.shape[1], table.shape[0], rows.size)
    body = head + rows.astype("<u4").tobytes() + table[rows].astype("<f8").tobytes()
    return body + CHECKSUM.pack(zlib.crc32(body))


def table_of_bytes(data: bytes) -> Floats:
    """Return the table that was made into bytes, or say what is wrong with them."""
    rows, values = _parsed(data)
    table = empty_table()
    table[rows] = values
    return table


def _parsed(data: bytes) -> tuple[np.ndarray, Floats]:
    """Check bytes against the format; return the rows and their values."""
    empty = empty_table()
    if len(data) < HEADER.size + CHECKSUM.size or not data.startswith(MAGIC):
        raise ValueError(f"not an argmaxf sketch: {len(data)} bytes that start {data[:8]!r}")
    _, version, columns, table_rows, size = HEADER.unpack_from(data)
    if version != VERSION:
        raise ValueError(f"sketch version must be {VERSION}, got {version}")
    length = HEADER.size + size * (4 + 8 * columns) + CHECKSUM.size
    if len(data) != length:
        raise ValueError(
            f"the sketch is cut short or altered: expected {length} bytes, got {len(data)}"
        )
    if (table_rows, columns) != empty.shape:
        size_of = "{} rows of {} columns".format
        said = f"expected {size_of(*empty.shape)}, got {size_of(table_rows, columns)}"
        raise ValueError(f"the sketch is altered: {said}")
    if CHECKSUM.unpack(data[-CHECKSUM.size :])[0] != zlib.crc32(data[: -CHECKSUM.size]):
        raise ValueError("the sketch is altered: its checksum does not match")
    rows = np.frombuffer(data, "<u4", size, HEADER.size).astype(np.int64)
    numbers = np.frombuffer(data, "<f8", size * columns, HEADER.size + 4 * size)
    values = numbers.reshape(size, columns).astype(np.float64)
    if not possible(rows, values):
        raise ValueError("the sketch is altered: it holds numbers that no probabilities have")
    return rows, values
