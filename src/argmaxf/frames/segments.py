"""The exact decision for every segment of a frame at once, in two or three passes over it.

One pass groups all items coarsely. The bounds of search.py leave a narrow band of probabilities in
each segment; the next pass groups the items of all bands again more finely, or brings them here
once they are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.expected import drive
from argmaxf.expected.chance import ChanceGuarantee, decide_constrained
from argmaxf.expected.decision import Decision
from argmaxf.expected.segments import decide_by
from argmaxf.expected.small_sets import SMALL, Sets, decide_sets
from argmaxf.expected.summary import layout
from argmaxf.expected.summary.groups import Groups
from argmaxf.frames.base import CHANGED, Frame
from argmaxf.frames.grouped import by_segment, checked, groups_of_rows, zeros_of
from argmaxf.frames.grouping import (
    GroupedRows,
    counted,
    sized,
    summarized,
)
from argmaxf.frames.lookup import within
from argmaxf.frames.table import Table
from argmaxf.problem import Problem

BITS, LEAST = layout.BITS, layout.TINY  # of the first pass: the groups of the sketch
LEAST_FINER = 2.0**-960  # probabilities below are one group, in the later passes
FINEST = 40  # beyond so many bits, values are counted one by one
GATHER = 1 << 17  # so many items are counted one by one
ANSWER = 1 << 20  # an engine should not return more groups than about this
ROOM = 1 << 22  # items of small segments brought here: some 200 MB while they are sorted


class Answers(NamedTuple):
    """The decision about each segment, and how many items it has."""

    k: Ints
    threshold: Floats
    expected: Floats
    std: Floats
    n: Ints
    guarantees: tuple[ChanceGuarantee, ...] = ()  # one for each segment, with chance constraints
    overall: tuple[Decision, ...] = ()  # with constraints: all segments of each column together

    @classmethod
    def room_for(cls, segments: int) -> Answers:
        """Return arrays to be filled."""
        f, n = np.zeros(segments), np.zeros(segments, np.int64)
        return cls(n, f, f.copy(), f.copy(), n.copy())

    def note(self, where: Any, *values: Any) -> None:
        """Note k, threshold, expected value, its spread and n of some segments."""
        arrays: tuple[Any, ...] = self[:5]
        for array, value in zip(arrays, values, strict=True):
            array[where] = value

    def decisions(self, beta: float) -> Iterator[Decision]:
        """Yield each decision as a record."""
        columns = (array.tolist() for array in self[:5])
        guarantees = self.guarantees or (None,) * self.k.size
        for (k, threshold, expected, std, n), guarantee in zip(
            zip(*columns, strict=True), guarantees, strict=True
        ):
            yield Decision(None, k, threshold, expected, std, beta, n, guarantee=guarantee)


class FrameSource:
    """Segments of a frame as the search sees them: a pass of the engine looks at all of them.

    Holds the frame's query, no rows. `others` are segments decided elsewhere, left out here.
    """

    def __init__(self, table: Table, others: Bools | None = None) -> None:
        self.frame, self.by, self.segments = table.items, table.by, table.segments
        self.n = np.zeros(self.segments, np.int64)
        self.bits = BITS
        if others is not None and others.any():
            high = np.where(others, -np.inf, np.inf)
            self.frame = within(self.frame, -high, high, segmented=True)

    def table(self) -> dict[int, Groups]:
        """Group all items as the sketch does."""
        found = by_segment(checked(summarized(self.frame, self.by, BITS, LEAST)))
        if found and max(found) >= self.segments:
            raise ValueError(f"{CHANGED}, got {self.segments} segments and then {max(found) + 1}")
        for i, rows in found.items():
            self.n[i] = rows.table[:, 0].sum()
        return {
            i: Groups.joined([groups_of_rows(rows, BITS, LEAST), zeros_of(rows)])
            for i, rows in found.items()
        }

    def refine(self, wanted: Mapping[int, Sequence[Groups]]) -> dict[int, list[Groups]]:
        """Group the items of every segment's band again more finely, or count them by value."""
        low, high = np.full(self.segments, np.inf), np.full(self.segments, -np.inf)
        for i, parts in wanted.items():
            low[i] = min(part.low.min() for part in parts)
            high[i] = max(part.high.max() for part in parts)
        inside = [part for parts in wanted.values() for part in parts]
        look = self._closer(inside)
        found = by_segment(look(within(self.frame, low, high, segmented=bool(self.by))))
        return {
            i: _parted(groups_of_rows(rows, self.bits, LEAST_FINER), wanted[i])
            for i, rows in found.items()
            if i in wanted
        }

    def _closer(self, inside: list[Groups]) -> Callable[[Frame], GroupedRows]:
        """Return the next, closer look, once the mantissa's bits that it tells apart are known."""
        items = sum(float(groups.count.sum()) for groups in inside)
        room = ANSWER // sum(len(groups) for groups in inside)
        self.bits = min(self.bits + min(max(room.bit_length() - 1, 1), 10), layout.MANTISSA)
        if items <= GATHER or self.bits > FINEST:
            return lambda frame: counted(frame, self.by)
        return lambda frame: summarized(frame, self.by, self.bits, LEAST_FINER)

    def bring(self, which: Bools) -> tuple[Ints, Sets]:
        """Bring the items of some segments into this process; return their numbers and the sets."""
        frame = self.frame
        if not which.all():
            high = np.where(which, np.inf, -np.inf)
            frame = within(frame, -high, high, segmented=bool(self.by))
        rows = counted(frame, self.by)
        numbers = np.flatnonzero(which)
        place = np.cumsum(which) - 1
        known = (rows.segment >= 0) & (rows.segment < self.segments)
        sets = Sets.of_values(
            numbers.size,
            place[rows.segment[known]],
            rows.key[known],
            rows.table[known, 0].astype(np.int64),
        )
        return numbers, sets


def decide_segments(table: Table, problem: Problem) -> Answers:
    """Decide every segment, small ones item by item, the others in passes that all of them share.

    Segments of up to 16,384 items are brought here and decided as rows are, up to 4 million items
    in all; of the others those that a summary leaves in doubt. A frame of one segment is brought
    here where the measure needs its items.
    """
    if problem.chance:
        return _constrained_segments(table, problem)
    answers = Answers.room_for(table.segments)
    small = np.zeros(table.segments, np.bool_)
    if table.segments > 1 or problem.needs_items:
        small = _worth_bringing(segment_sizes(table))
    if small.any():
        _fill(answers, *FrameSource(table).bring(small), problem)
    if not small.all():
        source = FrameSource(table, small)
        searches = drive.decide(source, problem)
        for i, search in searches.items():
            k, f, std, _, _ = search.optimum
            answers.note(i, k, search.cut.threshold, f, std, source.n[i])
        answers.n[~small] = source.n[~small]
        doubtful = np.zeros(table.segments, np.bool_)
        doubtful[[i for i, search in searches.items() if search.optimum.contested]] = True
        doubtful &= answers.n <= SMALL
        if doubtful.any():
            _fill(answers, *source.bring(doubtful), problem)
    _check_all_there(answers)
    return answers


def _constrained_segments(table: Table, problem: Problem) -> Answers:
    """Bring all items here and decide each segment; the constraints hold in all at once."""
    checked(summarized(table.items, table.by, BITS, LEAST))
    _, sets = FrameSource(table).bring(np.ones(table.segments, np.bool_))
    answers, m = Answers.room_for(table.segments), len(table.columns)
    answers.n[:] = np.diff(sets.offsets)
    _check_all_there(answers)
    parts = np.split(sets.ascending, sets.offsets[1:-1])
    found = [_constrained_column(table, j, parts[j::m], problem) for j in range(m)]
    for j, d in enumerate(found):
        answers.note(slice(j, None, m), d.k, d.threshold, d.expected, d.std, d.n)
    return answers._replace(
        guarantees=tuple(found[i % m].guarantee[i // m] for i in range(table.segments)),
        overall=tuple(d.overall for d in found if d.overall is not None),
    )


def _constrained_column(
    table: Table, j: int, parts: Sequence[Floats], problem: Problem
) -> Decision:
    """Decide all segments of one column, as those of an array are decided."""
    if table.number is None:
        found = decide_constrained(parts[0], problem)
        return replace(found, guarantee=[found.guarantee])
    which = np.repeat(np.arange(len(parts)), [part.size for part in parts])
    return decide_by(np.concatenate(parts), problem, which, partial(_key, table, j))


def _key(table: Table, j: int, segment: int) -> Any:
    """Return what a segment of the j-th column is called: a value, or several."""
    key = table.python_keys()[segment * len(table.columns) + j]
    return key[0] if len(key) == 1 else key


def _worth_bringing(sizes: Ints) -> Bools:
    """Mark the segments to bring here: the smallest ones, as many as there is room for."""
    order = np.argsort(sizes, kind="stable")
    small = np.zeros(sizes.size, np.bool_)
    small[order] = (np.cumsum(sizes[order]) <= ROOM) & (sizes[order] <= SMALL) & (sizes[order] > 0)
    return small


def _fill(answers: Answers, numbers: Ints, sets: Sets, problem: Problem) -> None:
    """Decide sets item by item and note the answers."""
    sizes = np.diff(sets.offsets)
    if sizes.min() == 0:
        raise ValueError(f"{CHANGED}, got none of a segment's rows the second time")
    found = decide_sets(sets, problem)
    answers.note(numbers, found.k, found.threshold, found.expected, found.std, sizes)


def _check_all_there(answers: Answers) -> None:
    if not answers.n.any():
        raise ValueError("the frame must hold at least one probability, got none")
    if not answers.n.all():
        there = int(np.count_nonzero(answers.n))
        raise ValueError(f"{CHANGED}, got {answers.n.size} segments and then {there}")


def segment_sizes(table: Table) -> Ints:
    """Count the items of each segment; values that are no probabilities raise their error."""
    if not table.by:
        return np.array([checked(summarized(table.items, (), BITS, LEAST)).table[:, 0].sum()], int)
    rows = sized(table.items, table.by)
    if rows.table[:, 1].sum() != rows.table[:, 0].sum() or (rows.segment < 0).any():
        checked(summarized(table.items, table.by, BITS, LEAST))
    sizes = np.zeros(table.segments, np.int64)
    known = (rows.segment >= 0) & (rows.segment < table.segments)
    np.add.at(sizes, rows.segment[known], rows.table[known, 0].astype(np.int64))
    return sizes


def splits(table: Table, answers: Answers) -> Bools:
    """Mark the segments of which only some of the items at the threshold are selected."""
    rows = items_above(table, answers.threshold)
    return rows > answers.k


def items_above(table: Table, low: Floats) -> Ints:
    """Count the items of each segment that are at least so large."""
    low = np.minimum(low, 2.0)  # no probability is infinite either
    band = within(table.items, low, np.full(low.size, 2.0), segmented=bool(table.by))
    rows, found = sized(band, table.by), np.zeros(table.segments, np.int64)
    np.add.at(found, rows.segment, rows.table[:, 0].astype(np.int64))
    return found


def _parted(finer: Groups, parts: Sequence[Groups]) -> list[Groups]:
    """Part finer groups by those they were wanted for; all groups of frames have tight bounds."""
    return [
        finer[(finer.low >= part.low.min()) & (finer.high <= part.high.max())] for part in parts
    ]
