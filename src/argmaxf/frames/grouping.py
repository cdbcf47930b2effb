"""Probabilities put into groups by the engine that holds them, in Narwhals expressions.

The groups are those of windows.py: t = p below 1/2 and 1 - p above, its power of two, and the first
bits of its mantissa. Every step below is exact in double precision on any engine: no logarithm and
no power is asked of it, only sums, products with powers of two, and comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from argmaxf._base.arrays import Floats, Ints
from argmaxf.frames.base import Frame
from argmaxf.frames.engines import engine_of

P, SEGMENT = "argmaxf_p", "argmaxf_segment"
KEY = "argmaxf_key"
T, POWER, PLACE, CELL, Y, Y2 = (
    f"argmaxf_{name}" for name in ("t", "power", "place", "cell", "y", "y2")
)
COUNT, LOWEST, HIGHEST = "argmaxf_count", "argmaxf_lowest", "argmaxf_highest"
SUMS = tuple(f"argmaxf_sum_{j}" for j in range(7))  # Σy in two parts, Σy² … Σy⁶

# A key is the group's smallest t (negative for p ≥ 1/2), or one of these codes.
ZERO, ONE, TINY, MISSING, INVALID = 0.0, 2.0, 3.0, 4.0, 5.0

SPLITTER = 2.0**52 + 1.0
LEAD = 2.0**25  # y is summed in two parts, its first 25 bits apart (see kernels.add_powers)
SLICE = 1 << 20  # rows of an eager frame taken at a time: bounds the memory of the columns below


class GroupedRows(NamedTuple):
    """Groups as they come back from an engine, one row each; rows of one group may repeat."""

    segment: Ints  # its number, 0 where there is one segment only
    key: Floats
    table: Floats  # count, Σy in two parts, Σy² … Σy⁶, as in the sketch
    lowest: Floats
    highest: Floats

    def at(self, where: Any) -> GroupedRows:
        """Return some of the rows."""
        return GroupedRows(*(array[where] for array in self))


def summarized(frame: Frame, by: Sequence[str], bits: int, least: float) -> GroupedRows:
    """Group a frame of `by` and P by the first `bits` bits of t; t below `least` is one group."""
    return collected((_sums(part, by, bits, least) for part in slices(frame)), by)


def counted(frame: Frame, by: Sequence[str]) -> GroupedRows:
    """Group a frame of `by` and P by value."""
    return collected((_counts(part, by) for part in slices(frame)), by)


def sized(frame: Frame, by: Sequence[str]) -> GroupedRows:
    """Count the rows of each segment, and in the second column those that are probabilities."""
    return collected((_sizes(part, by) for part in slices(frame)), by)


def slices(frame: Frame) -> Iterator[Frame]:
    """Yield an eager frame in slices, a lazy one whole."""
    if isinstance(frame, nw.LazyFrame):
        yield frame
        return
    for start in range(0, max(1, len(frame)), SLICE):
        yield frame[start : start + SLICE]


def collected(parts: Iterator[Frame], by: Sequence[str]) -> GroupedRows:
    """Bring groups into this process."""
    frames = [engine_of(part).run(part) for part in parts]
    values = np.concatenate([_numbers(f, [COUNT, *SUMS, LOWEST, HIGHEST, KEY]) for f in frames])
    segment = np.concatenate([_numbers(f, by).sum(axis=1) for f in frames]).astype(np.int64)
    return GroupedRows(segment, values[:, -1], values[:, :8], values[:, 8], values[:, 9])


def _numbers(frame: nw.DataFrame[Any], names: Sequence[str]) -> Floats:
    """Return columns of a frame as a table of doubles."""
    table = np.empty((len(frame), len(names)))
    for j, name in enumerate(names):
        table[:, j] = frame[name].to_numpy()
    return table


def _sums(frame: Frame, by: Sequence[str], bits: int, least: float) -> Frame:
    """Counts, power sums and extremes of each group."""
    lead = (nw.col(Y) * LEAD).floor() / LEAD
    y, y2 = nw.col(Y), nw.col(Y2)
    powers = [lead, y - lead, y2, y2 * y, y2 * y2, y2 * y2 * y, y2 * y2 * y2]
    columns = [power.alias(name) for power, name in zip(powers, SUMS, strict=True)]
    located = _located(frame, bits, least).select(*by, P, KEY, *columns)
    return located.group_by(*by, KEY).agg(
        nw.len().alias(COUNT),
        *(nw.col(name).sum() for name in SUMS),
        nw.col(P).min().alias(LOWEST),
        nw.col(P).max().alias(HIGHEST),
    )


def _located(frame: Frame, bits: int, least: float) -> Frame:
    """Add the key of each item's group and y in [-1, 1), its place there in half-widths."""
    p, t, power, place, cell = (nw.col(name) for name in (P, T, POWER, PLACE, CELL))
    cells = 2.0**bits
    valid = (p >= 0.0) & (p <= 1.0)
    upper = p >= 0.5
    regular = (upper & (p < 1.0)) | (~upper & (p >= least))
    distance = nw.when(upper).then(1.0 - p).otherwise(p)
    # Veltkamp: c - (c - t), c = (2^52 + 1) t, is t rounded to one bit, a power of two.
    product = t * SPLITTER
    rounded = product - (product - t)
    edge = power * (1.0 + cell / cells)
    tiny = nw.when(p == 0.0).then(nw.lit(ZERO)).otherwise(nw.lit(TINY))
    special = nw.when(p == 1.0).then(nw.lit(ONE)).otherwise(tiny)
    wrong = nw.when(p.is_null() | p.is_nan()).then(nw.lit(MISSING)).otherwise(nw.lit(INVALID))
    key = nw.when(regular).then(nw.when(upper).then(-edge).otherwise(edge)).otherwise(special)
    y = 2.0 * (place - cell) - 1.0
    steps = (
        nw.when(valid & regular).then(distance).otherwise(nw.lit(0.5)).alias(T),
        rounded.alias(POWER),
        nw.when(power > t).then(power * 0.5).otherwise(power).alias(POWER),
        ((t / power - 1.0) * cells).alias(PLACE),
        place.floor().alias(CELL),
        nw.when(valid & (p < least)).then(p / least).otherwise(y).alias(Y),
        (nw.col(Y) * nw.col(Y)).alias(Y2),
        nw.when(valid).then(key).otherwise(wrong).alias(KEY),
    )
    for step in steps:  # one at a time: nested, the expression would grow exponentially
        frame = frame.with_columns(step)
    return frame


def _counts(frame: Frame, by: Sequence[str]) -> Frame:
    """How often each value occurs, in the same columns as `_sums`."""
    counts = frame.group_by(*by, P).agg(nw.len().alias(COUNT))
    zeros = [nw.lit(0.0).alias(name) for name in SUMS]
    values = [nw.col(P).alias(name) for name in (LOWEST, HIGHEST, KEY)]
    return counts.with_columns(*zeros, *values)


def _sizes(frame: Frame, by: Sequence[str]) -> Frame:
    """How many rows there are, and how many probabilities, in the same columns as `_sums`."""
    p, valid, *others = nw.col(P), *SUMS
    fine = nw.when((p >= 0.0) & (p <= 1.0)).then(nw.lit(1.0)).otherwise(nw.lit(0.0)).alias(valid)
    rows = frame.with_columns(fine, nw.lit(ZERO).alias(KEY))
    counts = rows.group_by(*by, KEY).agg(nw.len().alias(COUNT), nw.col(valid).sum())
    zeros = [nw.lit(0.0).alias(name) for name in (*others, LOWEST, HIGHEST)]
    return counts.with_columns(*zeros)
