"""What grouped rows of an engine mean: the groups of a search, a sketch's table, or an error."""

from __future__ import annotations

import itertools

import numpy as np

from argmaxf._base.arrays import Floats
from argmaxf._base.messages import how_many
from argmaxf.expected.summary import layout
from argmaxf.expected.summary.groups import Groups
from argmaxf.expected.summary.tables import table_groups, tiny_group
from argmaxf.frames.grouping import (
    INVALID,
    MISSING,
    ONE,
    TINY,
    ZERO,
    GroupedRows,
)


def checked(rows: GroupedRows) -> GroupedRows:
    """Return the rows if every item is a probability in a segment; say what is wrong otherwise."""
    missing = _count(rows, MISSING)
    if missing:
        raise ValueError(
            f"every row needs a probability, got {missing:.0f} null or NaN; "
            "nulls='drop' leaves such rows out"
        )
    wrong = rows.key == INVALID
    if wrong.any():
        lowest, highest = float(rows.lowest[wrong].min()), float(rows.highest[wrong].max())
        bad = lowest if lowest < 0.0 else highest
        such = how_many(_count(rows, INVALID), "such row")
        raise ValueError(f"probabilities must be in [0, 1], got {bad!r} ({such})")
    nameless = rows.table[rows.segment < 0, 0].sum()
    if nameless:
        raise ValueError(f"by must not be null or NaN, got {how_many(nameless, 'such row')}")
    return rows


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
    place = np.where(rows.key < 0.0, layout.upper_row(key), layout.lower_row(key))
    codes = {ONE: layout.ONE_ROW, TINY: layout.TINY_ROW, ZERO: layout.ZERO_ROW}
    special = np.isin(rows.key, list(codes))
    place[special] = [codes[float(code)] for code in rows.key[special]]
    table = layout.empty_table()
    table[place] = rows.table
    table[layout.TINY_ROW, 1] += table[layout.TINY_ROW, 2]
    table[layout.TINY_ROW, 2:] = 0.0
    table[[layout.ONE_ROW, layout.ZERO_ROW], 1:] = 0.0
    return table


def _count(rows: GroupedRows, code: float) -> float:
    return float(rows.table[rows.key == code, 0].sum())
