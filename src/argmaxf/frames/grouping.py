"""Probabilities put into groups by the engine that holds them, and what the groups mean here.

The groups are those of the sketch: t = p below 1/2 and 1 - p above, its power of two, and the first
bits of its mantissa. Every step in the engine is exact in double precision: no logarithm and no
power is asked of it, only sums, products with powers of two, and comparisons.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from argmaxf._base.arrays import Floats, Ints
from argmaxf._base.validation import how_many
from argmaxf.expected.grouped import group_kernels as layout
from argmaxf.expected.grouped.groups import Groups, empty_table, table_groups, tiny_group
from argmaxf.frames.engines import Frame, engine_of

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
    return _collected(_sums(frame, by, bits, least), by)


def counted(frame: Frame, by: Sequence[str]) -> GroupedRows:
    """Group a frame of `by` and P by value."""
    return _collected(_counts(frame, by), by)


def sized(frame: Frame, by: Sequence[str]) -> GroupedRows:
    """Count the rows of each segment, and in the second column those that are probabilities."""
    return _collected(_sizes(frame, by), by)


def _collected(query: Frame, by: Sequence[str]) -> GroupedRows:
    """Bring groups into this process."""
    frame = engine_of(query).run(query)
    values = _numbers(frame, [COUNT, *SUMS, LOWEST, HIGHEST, KEY])
    segment = _numbers(frame, by).sum(axis=1).astype(np.int64)
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


def checked(rows: GroupedRows) -> GroupedRows:
    """Return the rows if every item is a probability in a segment; say what is wrong otherwise."""
    wrong = rows.key == INVALID
    extremes = np.append(rows.lowest[wrong], rows.highest[wrong])
    no_segment = int(rows.table[rows.segment < 0, 0].sum())
    refuse_bad(_count(rows, MISSING), extremes, _count(rows, INVALID), no_segment)
    return rows


def refuse_bad(missing: int, wrong: Floats, count: int | None = None, no_segment: int = 0) -> None:
    """Refuse rows without a probability, with a wrong one (some or all of them), or no segment."""
    if missing:
        raise ValueError(
            f"every row needs a probability, got {missing} null or NaN; "
            "nulls='drop' leaves such rows out"
        )
    if wrong.size:
        bad = float(wrong.min() if wrong.min() < 0.0 else wrong.max())
        such = how_many(wrong.size if count is None else count, "such row")
        raise ValueError(f"probabilities must be in [0, 1], got {bad!r} ({such})")
    if no_segment:
        raise ValueError(f"by must not be null or NaN, got {how_many(no_segment, 'such row')}")


def by_segment(rows: GroupedRows) -> dict[int, GroupedRows]:
    """Part the rows by segment."""
    rows = rows.at(np.argsort(rows.segment, kind="stable"))
    numbers, starts = np.unique(rows.segment, return_index=True)
    parts = [slice(a, b) for a, b in itertools.pairwise([*starts.tolist(), rows.key.size])]
    return {i: rows.at(part) for i, part in zip(numbers.tolist(), parts, strict=True)}


def groups_of_rows(rows: GroupedRows, bits: int, least: float) -> Groups:
    """Turn rows into groups by falling probability, with tight bounds."""
    rows = added(rows)
    values = rows.lowest == rows.highest
    valued = values & (rows.key != ZERO)
    apart = Groups.of_values(rows.lowest[valued], rows.table[valued, 0])
    tiny = ~values & (rows.key == TINY)
    regular = ~values & ~tiny
    upper = rows.key[regular] < 0.0
    keys = np.abs(rows.key[regular]).view(np.int64) >> (layout.MANTISSA - bits)
    extremes = (rows.lowest[regular], rows.highest[regular])
    grouped = table_groups(upper, layout.MANTISSA - bits, keys, rows.table[regular], extremes)
    parts = [apart, grouped, *(_tiny(rows, i, least) for i in np.flatnonzero(tiny).tolist())]
    groups = Groups.joined(parts)
    return groups[np.argsort(-groups.low, kind="stable")]


def zeros_of(rows: GroupedRows) -> Groups:
    """Return the items with p = 0 as a group, if there are any."""
    zeros = _count(rows, ZERO)
    return Groups.of_values(np.zeros(1), np.array([zeros]))[: int(zeros > 0)]


def _tiny(rows: GroupedRows, i: int, least: float) -> Groups:
    row = np.zeros(rows.table.shape[1])
    row[0], row[1] = rows.table[i, 0], rows.table[i, 1] + rows.table[i, 2]
    groups = tiny_group(row, least)
    groups.low[:], groups.high[:] = rows.lowest[i], rows.highest[i]
    return groups


def added(rows: GroupedRows) -> GroupedRows:
    """Add up the rows that share a key."""
    key, where = np.unique(rows.key, return_inverse=True)
    table = np.zeros((key.size, rows.table.shape[1]))
    np.add.at(table, where, rows.table)
    lowest, highest = np.full(key.size, np.inf), np.full(key.size, -np.inf)
    np.minimum.at(lowest, where, rows.lowest)
    np.maximum.at(highest, where, rows.highest)
    return GroupedRows(np.zeros(key.size, np.int64), key, table, lowest, highest)


def sketch_table(rows: GroupedRows) -> Floats:
    """Return the rows of a first pass as the table of a sketch."""
    rows = added(rows)
    key = np.abs(rows.key).view(np.int64) >> layout.SHIFT
    place = np.where(rows.key < 0.0, layout.upper_row.py_func(key), layout.lower_row.py_func(key))
    codes = {ONE: layout.ONE_ROW, TINY: layout.TINY_ROW, ZERO: layout.ZERO_ROW}
    special = np.isin(rows.key, list(codes))
    place[special] = [codes[float(code)] for code in rows.key[special]]
    table = empty_table()
    table[place] = rows.table
    table[layout.TINY_ROW, 1] += table[layout.TINY_ROW, 2]
    table[layout.TINY_ROW, 2:] = 0.0
    table[[layout.ONE_ROW, layout.ZERO_ROW], 1:] = 0.0
    return table


def _count(rows: GroupedRows, code: float) -> int:
    return int(rows.table[rows.key == code, 0].sum())
