"""The exact decision for every segment of a frame at once, in two or three passes over it.

One pass groups all items coarsely. The bounds of the search leave a narrow band of probabilities in
each segment; the next pass groups the items of all bands again more finely, or brings them here
once they are few. A frame in memory is decided as arrays are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.expected import refine
from argmaxf.expected.by_segment import decide_by
from argmaxf.expected.chance import ChanceGuarantee
from argmaxf.expected.decision import Decision
from argmaxf.expected.grouped import group_kernels as layout
from argmaxf.expected.grouped.groups import Groups
from argmaxf.expected.maximize import decide_one
from argmaxf.expected.small_sets import SMALL, decide_sets
from argmaxf.frames.engines import CHANGED, Frame
from argmaxf.frames.grouping import (
    GroupedRows,
    by_segment,
    checked,
    counted,
    groups_of_rows,
    refuse_bad,
    sized,
    summarized,
    zeros_of,
)
from argmaxf.frames.table import Table
from argmaxf.problem import Problem

BITS, LEAST = layout.BITS, layout.LEAST_KEYED  # of the first pass: the groups of the sketch
LEAST_FINER = 2.0**-960  # probabilities below are one group, in the later passes
FINEST = 40  # beyond so many bits, values are counted one by one
GATHER = 1 << 17  # so many items are counted one by one
ANSWER = 1 << 20  # an engine should not return more groups than about this
ROOM = 1 << 22  # items of small segments brought here: some 200 MB while they are sorted
NO_ROWS = "the frame must hold at least one probability, got none"


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

    @classmethod
    def of(cls, decision: Decision) -> Answers:
        """Return the decision about one segment."""
        answers = cls.room_for(1)
        answers.note(0, *cls.values(decision))
        return answers

    @classmethod
    def values(cls, decision: Decision) -> Iterator[Any]:
        """Return k, threshold, expected value, its spread and n of a decision."""
        return (getattr(decision, name) for name in cls._fields[:5])

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

    def __init__(self, table: Table, others: Bools) -> None:
        self._table, self.by, self.segments = table, table.by, table.segments
        self.n = np.zeros(self.segments, np.int64)
        self.bits = BITS
        self.frame = _items_of(table, ~others)

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
        found = by_segment(look(self._table.within(low, high)))
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


def _items_of(table: Table, which: Bools) -> Frame:
    """Return the items of some segments."""
    high = np.where(which, np.inf, -np.inf)
    return table.items if which.all() else table.within(-high, high)


def _brought(table: Table, which: Bools) -> tuple[Floats, Ints]:
    """Bring the items of some segments into this process, each value once with its count."""
    rows = counted(_items_of(table, which), table.by)
    place = np.cumsum(which) - 1
    known = (rows.segment >= 0) & (rows.segment < table.segments)
    which_set, count = place[rows.segment[known]], rows.table[known, 0].astype(np.int64)
    sizes = np.bincount(which_set, weights=count, minlength=int(which.sum())).astype(np.int64)
    order = np.argsort(which_set, kind="stable")
    values = np.repeat(rows.key[known][order], count[order])
    return values, np.concatenate([[0], np.cumsum(sizes)])


def decide_segments(table: Table, problem: Problem) -> Answers:
    """Decide every segment, small ones item by item, the others in passes that all of them share.

    Segments of up to 16,384 items are brought here and decided as rows are, up to 4 million items
    in all; of the others those that a summary leaves in doubt. A frame of one segment is brought
    here where the measure needs its items.
    """
    if isinstance(table.frame, nw.DataFrame):
        return _decide_in_memory(table, problem)
    if not table.segments:
        checked(summarized(table.items, table.by, BITS, LEAST))  # every key is missing
        raise ValueError(NO_ROWS)
    if problem.chance:
        return _decide_constrained(table, problem)
    answers = Answers.room_for(table.segments)
    small = np.zeros(table.segments, np.bool_)
    if table.segments > 1 or problem.needs_items:
        small = _worth_bringing(segment_sizes(table))
    _decide_small(answers, table, small, problem)
    if not small.all():
        source = FrameSource(table, small)
        searches = refine.decide(source, problem)
        for i, search in searches.items():
            k, f, std, _, _ = search.optimum
            answers.note(i, k, search.cut.threshold, f, std, source.n[i])
        answers.n[~small] = source.n[~small]
        contested = np.zeros(table.segments, np.bool_)
        contested[[i for i, search in searches.items() if search.optimum.ambiguous]] = True
        _decide_small(answers, table, contested & (answers.n <= SMALL), problem)
    _check_all_there(answers.n)
    return answers


def _decide_in_memory(table: Table, problem: Problem) -> Answers:
    """Decide the columns of a frame in memory as arrays are."""
    columns = []
    for j in range(len(table.columns)):
        parts = zip((np.empty(0), np.empty(0, np.int64)), *table.batches(j), strict=True)
        p, segment = map(np.concatenate, parts)
        no_segment = int(np.count_nonzero(segment < 0))
        refuse_bad(int(np.isnan(p).sum()), p[(p < 0.0) | (p > 1.0)], no_segment=no_segment)
        if p.size == 0:
            raise ValueError(NO_ROWS)
        columns.append((p, segment))
    return _decide_arrays(table, problem, columns)


def _decide_constrained(table: Table, problem: Problem) -> Answers:
    """Bring all items here and decide each segment; the constraints hold in all at once."""
    checked(summarized(table.items, table.by, BITS, LEAST))
    values, offsets = _brought(table, np.ones(table.segments, np.bool_))
    sizes, m = np.diff(offsets), len(table.columns)
    _check_all_there(sizes)
    parts = np.split(values, offsets[1:-1])
    numbers = np.arange(table.segments // m)
    columns = [(np.concatenate(parts[j::m]), np.repeat(numbers, sizes[j::m])) for j in range(m)]
    return _decide_arrays(table, problem, columns)


def _decide_arrays(
    table: Table, problem: Problem, columns: Sequence[tuple[Floats, Ints]]
) -> Answers:
    """Decide each column, given as its items and the numbers of their segments."""
    answers, m, found = Answers.room_for(table.segments), len(columns), []
    for j, (p, segment) in enumerate(columns):
        if table.number is None:
            decision = decide_one(p, problem)
            decision = replace(decision, guarantee=[decision.guarantee])
        else:
            decision = decide_by(p, problem, segment, partial(_key, table, j))
        answers.note(slice(j, None, m), *Answers.values(decision))
        found.append(decision)
    if not problem.chance:
        return answers
    return answers._replace(
        guarantees=tuple(found[i % m].guarantee[i // m] for i in range(table.segments)),
        overall=tuple(d.overall for d in found if d.overall is not None),
    )


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


def _decide_small(answers: Answers, table: Table, which: Bools, problem: Problem) -> None:
    """Bring some segments here, decide them item by item and note the answers."""
    if not which.any():
        return
    values, offsets = _brought(table, which)
    sizes = np.diff(offsets)
    if sizes.min() == 0:
        raise ValueError(f"{CHANGED}, got none of a segment's rows the second time")
    found = decide_sets(values, offsets, problem)
    answers.note(which, found.k, found.threshold, found.expected, found.std, sizes)


def _check_all_there(sizes: Ints) -> None:
    if not sizes.any():
        raise ValueError(NO_ROWS)
    if not sizes.all():
        there = int(np.count_nonzero(sizes))
        raise ValueError(f"{CHANGED}, got {sizes.size} segments and then {there}")


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


def items_above(table: Table, low: Floats) -> Ints:
    """Count the items of each segment that are at least so large."""
    low = np.minimum(low, 2.0)  # no probability is infinite either
    rows = sized(table.within(low, np.full(low.size, 2.0)), table.by)
    found = np.zeros(table.segments, np.int64)
    np.add.at(found, rows.segment, rows.table[:, 0].astype(np.int64))
    return found


def _parted(finer: Groups, parts: Sequence[Groups]) -> list[Groups]:
    """Part finer groups by those they were wanted for; all groups of frames have tight bounds."""
    return [
        finer[(finer.low >= part.low.min()) & (finer.high <= part.high.max())] for part in parts
    ]
