"""Summaries of data that merge by addition, and their bytes (docs/background/sketch-format.md).

All numbers are little-endian: the name of the format and its version, numbers from which the length
of the body follows, the body, and the CRC-32 of all that.
"""

from __future__ import annotations

import struct
import zlib
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from argmaxf._base.shown import html_table

START = struct.Struct("<8sH")  # name and version
FORMAT_VERSION = 1
CHECKSUM = struct.Struct("<I")
MOST_COUNTED = 2.0**53  # beyond, a count of doubles is no longer exact


class Mergeable(ABC):
    """A summary of data that merges by addition."""

    __slots__ = ()

    _name: ClassVar[bytes]  # eight bytes
    _what: ClassVar[tuple[str, str]]  # the kind of sketch and what it summarizes, for messages
    _numbers: ClassVar[struct.Struct]  # of the numbers before the body

    @abstractmethod
    def _add(self, other: Self) -> None:
        """Add what another sketch summarizes."""

    @abstractmethod
    def _parts(self) -> tuple[tuple[int, ...], bytes]:
        """Return the numbers before the body, and the body."""

    @abstractmethod
    def _length(self, *numbers: int) -> int:
        """Return how many bytes a body has, or say which of the numbers is wrong."""

    @abstractmethod
    def _read(self, body: bytes, *numbers: int) -> bool:
        """Take a body in; tell whether it can be the summary of some data."""

    def merge(self, other: Self) -> Self:
        """Add what another sketch summarizes. Return the sketch.

        Parameters
        ----------
        other : Sketch
            Another sketch of the same kind.

        Returns
        -------
        Sketch
            The sketch itself.
        """
        if not isinstance(other, type(self)):
            raise TypeError(
                f"only a {type(self).__name__} can be merged, got {type(other).__name__}; update "
                "adds data"
            )
        self._add(other)
        return self

    def __add__(self, other: object) -> Self:
        if not isinstance(other, type(self)):
            return NotImplemented
        return type(self)().merge(self).merge(other)

    def __reduce__(self) -> Any:
        return type(self).from_bytes, (self.to_bytes(),)

    def _repr_html_(self) -> str:
        """Return a table for a notebook."""
        return html_table([(repr(self),)])

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes, with a version and a checksum."""
        numbers, body = self._parts()
        data = START.pack(self._name, FORMAT_VERSION) + self._numbers.pack(*numbers) + body
        return data + CHECKSUM.pack(zlib.crc32(data))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a sketch back; bytes cut short, altered or of another version are refused.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.

        Returns
        -------
        Sketch
            The sketch.
        """
        data, sketch, (kind, items) = bytes(data), cls(), cls._what
        first, last = START.size + cls._numbers.size, len(data) - CHECKSUM.size
        if last < first or not data.startswith(cls._name):
            raise ValueError(f"not {kind}: {len(data)} bytes that start {data[:8]!r}")
        version = START.unpack_from(data)[1]
        if version != FORMAT_VERSION:
            raise ValueError(f"sketch version must be {FORMAT_VERSION}, got {version}")
        numbers = cls._numbers.unpack_from(data, START.size)
        length = first + sketch._length(*numbers) + CHECKSUM.size
        if len(data) != length:
            raise ValueError(
                f"the sketch is truncated or altered: expected {length} bytes, got {len(data)}"
            )
        if CHECKSUM.unpack_from(data, last)[0] != zlib.crc32(data[:last]):
            raise ValueError("the sketch is altered: its checksum does not match")
        if not sketch._read(data[first:last], *numbers):
            raise ValueError(f"the sketch is altered: it holds numbers that no {items} have")
        return sketch
