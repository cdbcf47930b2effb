"""Tables of counts and power sums turned into groups."""

from __future__ import annotations

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.expected.summary import layout
from argmaxf.expected.summary.groups import MOMENTS, Groups


def groups_of_table(table: Floats, *, zeros: bool = False) -> Groups:
    """Turn the table of a summary into groups; with `zeros`, items with p = 0 are the last."""
    rows = np.arange(1, layout.TINY_ROW)
    kept = rows[table[1 : layout.TINY_ROW, 0] > 0]
    upper, key = layout.key_of(kept)
    groups = table_groups(upper, layout.SHIFT, key, table[kept], None)
    ones, tiny = table[layout.ONE_ROW, 0], table[layout.TINY_ROW]
    if ones:
        groups = Groups.joined([Groups.of_values(np.ones(1), np.array([ones])), groups])
    if tiny[0]:
        groups = Groups.joined([groups, tiny_group(tiny, layout.TINY)])
    none = table[layout.ZERO_ROW, :1]
    if zeros and none[0]:
        groups = Groups.joined([groups, Groups.of_values(np.zeros(1), none)])
    return groups


def tiny_group(row: Floats, bound: float) -> Groups:
    """The items below a tiny bound, in one group: their sum is all that counts."""
    moments = np.zeros((1, MOMENTS))
    moments[0, 0] = row[1]
    one = np.ones(1)
    return Groups(
        count=row[:1],
        centre=0.0 * one,
        rest=one,
        half=bound * one,
        moments=moments,
        low=0.0 * one,
        high=bound * one,
        upper=np.zeros(1, np.bool_),
        shift=np.array([layout.SHIFT]),
        first=np.zeros(1, np.int64),
        keys=np.array([layout.LOW_BASE]),
    )


def table_groups(
    upper: Bools, shift: int, key: Ints, table: Floats, extremes: tuple[Floats, Floats] | None
) -> Groups:
    """Turn rows of a table (count, Σy in two parts, Σy² …) into groups by falling p.

    With the `extremes` of each row, bounds are tight and rows of equal items become runs.
    """
    t_low, t_high, t = (
        _number(key << shift),
        _number((key + 1) << shift),
        _number((key << shift) + ((1 << shift) >> 1)),
    )
    centre, rest = np.where(upper, 1.0 - t, t), np.where(upper, t, 1.0 - t)
    half = np.where(upper, t_low - t, t - t_low)
    moments = np.column_stack([table[:, 1] + table[:, 2], table[:, 3:]])
    # On the upper side t is at most 1/2: the key of 1/2 holds that one number.
    low = np.where(upper, np.maximum(1.0 - t_high, 0.5), t_low)
    high = np.where(upper, 1.0 - t_low, t_high)
    if extremes is not None:
        low, high = extremes
    run = low == high
    centre, rest = np.where(run, low, centre), np.where(run, 1.0 - low, rest)
    half, moments = np.where(run, 0.0, half), np.where(run[:, None], 0.0, moments)
    size = len(key)
    groups = Groups(
        count=table[:, 0],
        centre=centre,
        rest=rest,
        half=half,
        moments=moments,
        low=low,
        high=high,
        upper=upper,
        shift=np.full(size, shift),
        first=key,
        keys=np.ones(size, np.int64),
    )
    return groups[np.lexsort([np.where(upper, key, -key), ~upper])]


def _number(bits: Ints) -> Floats:
    return np.ascontiguousarray(bits).view(np.float64)
