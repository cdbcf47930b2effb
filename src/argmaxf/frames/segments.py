"""The exact decision for every segment of a frame at once, in two or three passes over it.

One pass groups all items coarsely. The bounds of search.py leave a narrow band of probabilities in
each segment; the next pass groups the items of all bands again more finely, or brings them here
once they are few.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from argmaxf.arrays import Floats
from argmaxf.expected.decision import Decision
from argmaxf.expected.groups import Groups
from argmaxf.expected.optimum import find_optimum, tiny_group
from argmaxf.expected.search import Optimum
from argmaxf.expected.windows import table_groups
from argmaxf.frames.engines import CHANGED, Frame
from argmaxf.frames.grouping import (
    INVALID,
    MISSING,
    ONE,
    TINY,
    ZERO,
    Rows,
    counted,
    summarized,
)
from argmaxf.frames.lookup import within
from argmaxf.question import Question

BITS = 6  # of the mantissa, in the first pass: the groups of the sketch
LEAST = 2.0**-64  # probabilities below are one group, in the first pass
LEAST_FINER = 2.0**-960  # and in the later ones
FINEST = 40  # beyond so many bits, values are counted one by one
GATHER = 1 << 17  # so many items are counted one by one
ANSWER = 1 << 20  # an engine should not return more groups than about this


class Band(NamedTuple):
    """The probabilities of a segment that need a closer look."""

    low: float
    high: float


@dataclass
class Segment:
    """The items of one segment in groups, and the best decision so far."""

    groups: Groups  # by falling probability; items with p = 0 are in none
    zeros: float
    found: Optimum = field(init=False)

    @property
    def n(self) -> int:
        """How many items there are."""
        return int(self.groups.count.sum() + self.zeros)

    def look(self, question: Question) -> Band | None:
        """Find the optimum as far as the groups allow; return what needs a closer look."""
        self.found = find_optimum(self.groups, question, None)
        vague = Groups.joined([self.found.unsettled, self.found.last])
        vague = vague[~vague.runs]
        if len(vague) == 0:
            return None
        return Band(float(vague.low.min()), float(vague.high.max()))

    def in_band(self, band: Band) -> Any:
        """Mark the groups of a band; it ends where groups end."""
        return (self.groups.low >= band.low) & (self.groups.high <= band.high)

    def refine(self, band: Band, finer: Groups) -> None:
        """Put finer groups in the place of those of a band."""
        inside = np.flatnonzero(self.in_band(band))
        above, below = self.groups[: inside[0]], self.groups[inside[-1] + 1 :]
        before, after = self.groups[inside].count.sum(), finer.count.sum()
        if before != after:
            raise ValueError(
                f"{CHANGED}, got {before:.0f} and then {after:.0f} "
                f"between {band.low!r} and {band.high!r}"
            )
        self.groups = Groups.joined([above, finer, below])

    def decision(self, question: Question) -> Decision:
        """Return the decision once nothing needs a closer look."""
        k, f, std = self.found.k, self.found.f, self.found.std
        return Decision(None, k, self.limits()[0], f, std, question.beta, self.n)

    def limits(self) -> tuple[float, float]:
        """Return the threshold, and how many of the items equal to it are selected."""
        if self.found.k == 0:
            return math.inf, 0.0
        threshold = float(self.found.last.low[0])
        return threshold, self.found.k - float(self.groups.count[self.groups.low > threshold].sum())


def decide_segments(frame: Frame, by: Sequence[str], question: Question) -> dict[int, Segment]:
    """Decide every segment of a frame of `by` and P, all of them in the same passes."""
    segments = first_pass(frame, by)
    if not segments:
        raise ValueError("the frame must hold at least one probability, got none")
    waiting, bits = segments, BITS
    while True:
        looks = ((i, segment.look(question)) for i, segment in waiting.items())
        bands = {i: band for i, band in looks if band is not None}
        if not bands:
            return segments
        waiting = {i: segments[i] for i in bands}
        look, bits = _closer(waiting, bands, by, bits)
        low, high = np.full(len(segments), np.inf), np.full(len(segments), -np.inf)
        for i, band in bands.items():
            low[i], high[i] = band
        rows = look(within(frame, low, high, segmented=bool(by)))
        found, none = by_segment(rows), rows.at(slice(0))
        for i, band in bands.items():
            finer = groups_of_rows(found.get(i, none), bits, LEAST_FINER)
            waiting[i].refine(band, finer)


def first_pass(frame: Frame, by: Sequence[str]) -> dict[int, Segment]:
    """Group all items as the sketch does."""
    return {
        i: Segment(groups_of_rows(rows, BITS, LEAST), _count(rows, ZERO))
        for i, rows in by_segment(checked(summarized(frame, by, BITS, LEAST))).items()
    }


def _closer(
    segments: dict[int, Segment], bands: dict[int, Band], by: Sequence[str], bits: int
) -> tuple[Callable[[Frame], Rows], int]:
    """Return the next, closer look at the bands, and the bits of the mantissa it tells apart."""
    inside = [segment.groups[segment.in_band(bands[key])] for key, segment in segments.items()]
    items = sum(float(groups.count.sum()) for groups in inside)
    room = ANSWER // sum(len(groups) for groups in inside)
    bits += min(max(room.bit_length() - 1, 1), 10)
    if items <= GATHER or bits > FINEST:
        return lambda frame: counted(frame, by), bits
    return lambda frame: summarized(frame, by, bits, LEAST_FINER), bits


def checked(rows: Rows) -> Rows:
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
        count = _count(rows, INVALID)
        raise ValueError(f"probabilities must be in [0, 1], got {bad!r} ({count:.0f} such rows)")
    nameless = rows.table[rows.segment < 0, 0].sum()
    if nameless:
        raise ValueError(f"by must not be null or NaN, got {nameless:.0f} such rows")
    return rows


def by_segment(rows: Rows) -> dict[int, Rows]:
    """Part the rows by segment."""
    rows = rows.at(np.argsort(rows.segment, kind="stable"))
    numbers, starts = np.unique(rows.segment, return_index=True)
    parts = [slice(a, b) for a, b in itertools.pairwise([*starts.tolist(), rows.key.size])]
    return {i: rows.at(part) for i, part in zip(numbers.tolist(), parts, strict=True)}


def groups_of_rows(rows: Rows, bits: int, least: float) -> Groups:
    """Turn rows into groups by falling probability, with tight bounds."""
    rows = added(rows)
    values = rows.lowest == rows.highest
    valued = values & (rows.key != ZERO)
    apart = Groups.of_values(rows.lowest[valued], rows.table[valued, 0])
    tiny = ~values & (rows.key == TINY)
    regular = ~values & ~tiny
    upper = rows.key[regular] < 0.0
    keys = np.abs(rows.key[regular]).view(np.int64) >> (52 - bits)
    extremes = (rows.lowest[regular], rows.highest[regular])
    grouped = table_groups(upper, 52 - bits, keys, rows.table[regular], extremes)
    parts = [apart, grouped, *(_tiny(rows, i, least) for i in np.flatnonzero(tiny).tolist())]
    groups = Groups.joined(parts)
    return groups[np.argsort(-groups.low, kind="stable")]


def _tiny(rows: Rows, i: int, least: float) -> Groups:
    row = np.zeros(rows.table.shape[1])
    row[0], row[1] = rows.table[i, 0], rows.table[i, 1] + rows.table[i, 2]
    groups = tiny_group(row, least)
    groups.low[:], groups.high[:] = rows.lowest[i], rows.highest[i]
    return groups


def added(rows: Rows) -> Rows:
    """Add up the rows that share a key."""
    key, where = np.unique(rows.key, return_inverse=True)
    table = np.zeros((key.size, rows.table.shape[1]))
    np.add.at(table, where, rows.table)
    lowest, highest = np.full(key.size, np.inf), np.full(key.size, -np.inf)
    np.minimum.at(lowest, where, rows.lowest)
    np.maximum.at(highest, where, rows.highest)
    return Rows(np.zeros(key.size, np.int64), key, table, lowest, highest)


def sketch_table(rows: Rows) -> Floats:
    """Return the rows of a first pass as the table of a sketch (see kernels)."""
    from argmaxf.expected import kernels

    rows = added(rows)
    key = np.abs(rows.key).view(np.int64) >> kernels.SHIFT
    upper = 1 + key - kernels.HIGH_BASE
    place = np.where(rows.key < 0.0, upper, kernels.HIGH_ROWS + kernels.HALF_KEY - key)
    codes = {ONE: 0, TINY: kernels.TINY_ROW, ZERO: kernels.ZERO_ROW}
    special = np.isin(rows.key, list(codes))
    place[special] = [codes[float(code)] for code in rows.key[special]]
    table = np.zeros((kernels.ROWS, kernels.COLUMNS))
    table[place] = rows.table
    table[kernels.TINY_ROW, 1] += table[kernels.TINY_ROW, 2]
    table[kernels.TINY_ROW, 2:] = 0.0
    table[[0, kernels.ZERO_ROW], 1:] = 0.0
    return table


def _count(rows: Rows, code: float) -> float:
    return float(rows.table[rows.key == code, 0].sum())
