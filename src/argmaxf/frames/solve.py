"""The exact decision about every column and segment of a table, and its labels.

A frame in memory is decided as arrays are, and so is a column of at most HELD items. Of more items
batches are read, as often as the band needs (`expected/band.py`), once if the first HELD of them
show where it is: Polars, DuckDB and Arrow stream them, Dask has the passes done where its
partitions are, Spark sums by its own expressions (`expression_passes.py`). Segments are held about
PART items at a time; one of more items is decided as a frame of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Ints, contiguous
from argmaxf._base.segments import Segments
from argmaxf._base.validation import NotAProbability, Unusable, check_same
from argmaxf.expected import band, pass_kernels, search
from argmaxf.expected.array_passes import (
    ArrayPasses,
    BatchPasses,
    Near,
    estimated,
    gathered,
    summing_around,
)
from argmaxf.expected.band import Around
from argmaxf.expected.decision import Decision
from argmaxf.expected.groups import Source, summary
from argmaxf.expected.sets import decide_by, decide_each, decide_sets
from argmaxf.expected.sketch import ProbabilitySketch, sketch_of_table
from argmaxf.expected.threads import in_turn, processors
from argmaxf.frames.engines import Dask, Frame, Spark, as_frame, engine_of, unused, with_arrays
from argmaxf.frames.expression_passes import ExpressionPasses
from argmaxf.frames.spill import Spill
from argmaxf.frames.table import SEGMENT, Batch, Begun, Key, P, Rows, Table, check_usable
from argmaxf.problem import Problem

T = TypeVar("T")
NUMBERS = ("k", "threshold", "expected", "std", "n")  # of a decision
PART = 1 << 25  # items of segments that are held at a time: 268 MB
BROUGHT = 1 << 22  # items near the threshold that are held: 34 MB


class Decisions(dict[Key, Decision]):
    """The decision of each segment, by its key.

    Attributes
    ----------
    overall : Decision, dict of str to Decision or None
        With `by` and chance constraints, what to expect of all rows, and the probability that they
        meet them; by column where there are several.
    kept_together : bool
        Whether equal probabilities were kept together although splitting them would be better: the
        rows of a lazy frame have no fixed order.
    """

    def __init__(
        self, found: Any = (), *, overall: Any = None, kept_together: bool = False
    ) -> None:
        super().__init__(found)
        self.overall = overall
        self.kept_together = kept_together


class Answer(NamedTuple):
    """The decision about a column: arrays with one entry for each segment."""

    decision: Decision
    splits: bool  # whether some of several equal items are selected


@dataclass(frozen=True)
class Solved:
    """The thresholds of a frame's segments, found; labels still to be made."""

    table: Table
    answers: list[Answer]  # one for each column
    kept_together: bool = False  # where splitting ties would have been better

    @property
    def decisions(self) -> Decisions:
        """The decision of each segment, and column where there are several."""
        columns, keys, found = self.table.columns, self.table.python_keys(), {}
        overall = {}
        for column, (each, _) in zip(columns, self.answers, strict=True):
            numbers = (getattr(each, name).tolist() for name in NUMBERS)
            guarantees = each.guarantee or [None] * len(keys)
            overall[column] = each.overall
            for key, guarantee, *values in zip(keys, guarantees, *numbers, strict=True):
                named: dict[str, Any] = dict(zip(NUMBERS, values, strict=True))
                decision = Decision(None, beta=each.beta, guarantee=guarantee, **named)
                found[(*key, column) if len(columns) > 1 else key] = decision
        first = overall[columns[0]]
        together = overall if first and len(columns) > 1 else first
        return Decisions(found, overall=together, kept_together=self.kept_together)

    def labelled(self) -> Any:
        """Return the frame with its labels."""
        table, number = self.table, self.table.number
        if table.is_eager:
            labels = (answer.decision.selected for answer in self.answers)
            labelled = with_arrays(table.frame, dict(zip(table.outputs, labels, strict=True)))
        else:
            labelled = self._by_expression()
        return (labelled.drop(number) if number else labelled).to_native()

    def _by_expression(self) -> Frame:
        """Add the labels to a lazy frame; where ties are split, by the numbers of its rows."""
        table, rows, values = self.table, self.table.frame, {}
        m = len(table.outputs)
        wanted = [f"argmaxf_{what}_{j}" for what in ("threshold", "last") for j in range(m)]
        taken = [*rows.collect_schema(), *table.outputs]
        row, *names = unused(taken, ["argmaxf_row", *wanted])
        for j, (decision, splits) in enumerate(self.answers):
            values[names[j]] = decision.threshold
            if splits:
                batches = table.rows(j).batches()
                values[names[m + j]] = last_ties(batches, decision).astype(np.float64)
        if any(answer.splits for answer in self.answers):
            rows = as_frame(rows.to_native().with_row_index(row))
        rows, at = table.look_up(rows, values)
        labels = []
        for j, (column, output) in enumerate(zip(table.columns, table.outputs, strict=True)):
            p, cut = table.p(column), at[names[j]]
            chosen = p >= cut
            if self.answers[j].splits:
                chosen = (p > cut) | ((p == cut) & (nw.col(row) <= at[names[m + j]]))
            labels.append(chosen.alias(output))
        return rows.with_columns(*labels).drop(*values, row, strict=False)


def last_ties(batches: Iterable[Batch], decision: Decision) -> Ints:
    """Return the row of the last item to select at each segment's threshold, -1 for none.

    Of the items of a segment that are equal to its threshold the first ones in the order of rows
    are selected, as many as k leaves to those above it.
    """
    threshold, k = decision.threshold, decision.k
    size, above, start = k.size, np.zeros(k.size, np.int64), 0
    ties: list[tuple[Ints, Ints]] = []  # rows and segments of the items at the threshold
    for batch in batches:
        p = batch[P]
        which = batch.get(SEGMENT, np.zeros(p.size, np.int64))
        above += np.bincount(which[p > threshold[which]], minlength=size)
        equal = np.flatnonzero(p == threshold[which])
        ties.append((start + equal, which[equal]))
        start += p.size
    row, which = map(np.concatenate, zip(*ties, strict=True))
    parted = Segments.of_numbers(which, size)
    wanted = k - above
    last = np.full(size, -1)
    some = np.flatnonzero(wanted > 0)
    last[some] = parted.sorted(row)[parted.offsets[some] + wanted[some] - 1]
    return last


def solve(table: Table, problem: Problem) -> Solved:
    """Find the threshold of each segment; keep ties together where rows have no order."""
    answers = _decide_columns(table, problem)
    if table.has_order or not any(answer.splits for answer in answers):
        return Solved(table, answers)
    together = replace(problem, split_ties=False)
    try:
        return Solved(table, _decide_columns(table, together), kept_together=True)
    except ValueError as error:
        if str(error) != str(together.no_set()):
            raise
        raise ValueError(
            f"no set of {problem.least} to {problem.most} rows keeps equal probabilities together, "
            "and a lazy frame has no fixed order of rows to split them by: collect it first"
        ) from None


def _decide_columns(table: Table, problem: Problem) -> list[Answer]:
    """Decide the segments of every column; name what is no probability, or has no segment."""
    decide = _decide_set if table.sizes is None else partial(_decide_segments, sizes=table.sizes)
    rows = map(table.rows, range(len(table.columns)))
    return [each.refusing(partial(decide, each, problem)) for each in rows]


def _decide_segments(rows: Rows, problem: Problem, sizes: Ints) -> Answer:
    """Decide the segments of a column, those of a lazy frame about PART items at a time.

    Chance constraints, which all segments share, need all items.
    """
    called, most = rows.name_of_segment, int(sizes.sum()) if problem.chance else PART
    if rows.table.is_eager:
        held = rows.begin(all_=True).columns()
        segments = Segments.of_numbers(held[SEGMENT], sizes.size)
        return _decide_held(held[P], segments, problem, called)
    found: dict[str, Any] = {name: np.empty(sizes.size) for name in NUMBERS[1:4]}
    found["k"], splits = np.empty(sizes.size, np.int64), False
    for first, offsets, columns in rows.parts(most):
        if isinstance(columns, Rows):
            answer = _decide_set(columns, problem)
            check_same(np.diff(offsets), answer.decision.n)
        else:
            segments = Segments(np.arange(offsets.size - 1), None, offsets)
            answer = _decide_held(columns[P], segments, problem, lambda i: called(first + i))  # noqa: B023
        if problem.chance:
            return answer
        splits |= answer.splits
        for name, array in found.items():
            array[first : first + offsets.size - 1] = getattr(answer.decision, name)
    return Answer(Decision(None, beta=problem.beta, n=sizes, **found), splits)


def _decide_held(
    p: NDArray[Any], segments: Segments, problem: Problem, called: Callable[[int], Any]
) -> Answer:
    """Decide segments whose items are in memory."""
    decision = (decide_by if problem.chance else decide_each)(p, problem, segments, called)
    reached = segments.sorted(p) >= np.repeat(decision.threshold, np.diff(segments.offsets))
    return _answer(decision, np.count_nonzero(reached), problem)


def _decide_set(rows: Rows, problem: Problem) -> Answer:
    """Decide all items of a column as one set: where they are, in arrays, or in a file."""
    needs_all = bool(rows.table.is_eager or problem.chance or problem.needs_items)
    by_band = band.knows(problem) and not needs_all and rows.table.reads_again
    if by_band and isinstance(engine_of(rows.items), Spark):
        expressions = ExpressionPasses(rows.items, P)
        if expressions.n > rows.HELD and (answer := _decide_passes(expressions, problem)):
            return answer
        by_band = False
    begun = rows.begin(all_=needs_all)
    if begun.rest is None:
        return _decide_array(begun.columns()[P], problem)
    if by_band:
        if answer := _decide_passes(ColumnPasses(rows, begun, problem), problem):
            return answer
        begun = rows.begin()
    with closing(Spill()) as spill:
        for batch in begun.batches():
            check_usable(batch)
            spill.append(batch[P])
        passes = BatchPasses(spill.batches)
        passes.n = spill.size
        answer = _decide_passes(passes, problem) if band.knows(problem) else None
        if answer is None:
            found = search.decide(Source(passes), problem).decision(spill.size)
            answer = _of_passes(passes, found, problem)
        return answer


def _decide_array(p: NDArray[Any], problem: Problem) -> Answer:
    """Decide one set of items."""
    if not p.size:
        raise Unusable
    decision = decide_sets(p, np.array([0, p.size]), problem)
    return _answer(decision, np.count_nonzero(p >= decision.threshold), problem)


def _decide_passes(passes: BatchPasses | ExpressionPasses, problem: Problem) -> Answer | None:
    """Decide items by the band, unless it has no answer."""
    found = band.decide(passes, problem)
    return found and _of_passes(passes, found, problem)


def _of_passes(passes: BatchPasses | ExpressionPasses, found: Any, problem: Problem) -> Answer:
    """Return what was found for one set of items as arrays."""
    numbers: Any = {name: np.array([getattr(found, name)]) for name in NUMBERS[:4]}
    decision = Decision(None, beta=problem.beta, n=np.array([passes.n]), **numbers)
    below = float(np.nextafter(found.threshold, -1.0))
    reached = passes.above(below)[1] if problem.may_split else 0
    return _answer(decision, reached, problem)


def _answer(decision: Decision, reached: Any, problem: Problem) -> Answer:
    """Return a decision, given how many items are not below their threshold."""
    return Answer(decision, bool(problem.may_split and reached != np.sum(decision.k)))


class ColumnPasses(BatchPasses):
    """The band's passes over a column of a lazy frame, which is read again for each.

    Dask has them done where its partitions are. Elsewhere the first pass goes on where reading has
    begun, and brings the items near the threshold of the first ones: that is the only pass where
    these are like the others. A frame that changes between passes is noticed.
    """

    def __init__(
        self, rows: Rows, begun: Begun | None = None, problem: Problem | None = None
    ) -> None:
        super().__init__(tuple)
        self._rows, self._begun, self._total = rows, begun, np.nan
        self._expected: tuple[float, float] | None = None  # where the threshold is thought to be
        self._near: Near | None = None
        if begun and problem and not isinstance(engine_of(rows.items), Dask):
            first = ArrayPasses(begun.columns()[P])
            self._expected = band.near_threshold(first, problem.coefficients)

    def counts(self, sampled: bool = False) -> NDArray[Any]:
        """Count items in bins, or a sample of each batch; bring those near the threshold."""
        if not sampled or not self._expected:
            return super().counts(sampled)
        bring = summing_around(*self._expected, BROUGHT)
        counts, parts = zip(*self.each(lambda p: (estimated(p), bring(p))), strict=True)
        sums, items = gathered(parts, BROUGHT)
        if items is not None and items.size:
            self._near = Near(*self._expected, ArrayPasses(items), sums)
        return np.asarray(np.sum(counts, axis=0))

    def above(self, cut: float) -> list[float]:
        """Return Σ p, how many items are above a threshold, and their Σ p."""
        near = self._near
        return near.above(cut) if near and near.has(cut, cut) else super().above(cut)

    def around(self, low: float, high: float, room: int) -> Around:
        """Return the sums around a band, and its items in ascending order."""
        near = self._near
        if near and near.has(low, high):
            return near.around(low, high, room)
        return super().around(low, high, room)

    def results(self, work: Callable[[NDArray[Any]], T]) -> Iterator[T]:
        """Yield what some work on each batch gives; compare their sum with the last pass's."""
        n, total, begun = 0, 0.0, self._begun
        self._begun = None
        for result, size, mass in self._rows.each(partial(_with_sum, work), begun):
            n, total = n + size, total + mass
            yield result
        if self._total == self._total:
            check_same([self.n, self._total], [n, total], "in all")
        self.n, self._total = n, total


def _with_sum(
    work: Callable[[NDArray[Any]], T], batches: Iterable[Batch]
) -> Iterator[tuple[T, int, float]]:
    """Yield what some work on batches gives, the number of their items, and the sum of these."""

    def both(batch: Batch) -> tuple[T, int, float]:
        p = contiguous(batch[P])
        bad, total, *_ = pass_kernels.tally.compiled(p, 1.0)
        if bad:
            raise NotAProbability
        return work(p), p.size, total

    yield from in_turn(both, batches, processors())


def sketch_of(rows: Rows) -> ProbabilitySketch:
    """Summarize probabilities; raise Unusable if a value is none."""
    return sketch_of_table(summary(ColumnPasses(rows)))
