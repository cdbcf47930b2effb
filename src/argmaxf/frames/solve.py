"""The exact decision about every column and segment of a table, and its labels.

A frame in memory is decided as arrays are, and so is a column of at most HELD items. Of more items
batches are read, as often as the band needs (`expected/band.py`): Polars, DuckDB and Arrow stream
them, Dask has the passes done where its partitions are, Spark sums by its own expressions
(`expression_passes.py`). Segments of more items are parted into temporary files first.
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

from argmaxf._base.arrays import Floats, Ints, contiguous
from argmaxf._base.segments import Segments
from argmaxf.expected import band, pass_kernels, search
from argmaxf.expected.array_passes import BatchPasses, counted
from argmaxf.expected.by_segment import decide_by, decide_each
from argmaxf.expected.decision import Decision
from argmaxf.expected.grouped.sources import Source, summary
from argmaxf.expected.maximize import decide_one
from argmaxf.expected.sketch import ProbabilitySketch, sketch_of_table
from argmaxf.frames.engines import CHANGED, Frame, Spark, as_frame, engine_of, unused, with_arrays
from argmaxf.frames.expression_passes import ExpressionPasses
from argmaxf.frames.rows import SEGMENT, Batch, P, Rows
from argmaxf.frames.spill import Spill
from argmaxf.frames.table import Key, Table
from argmaxf.problem import Problem

T = TypeVar("T")
NUMBERS = ("k", "threshold", "expected", "std", "n")  # of a decision
PART = 1 << 25  # items of segments that are held at a time: 268 MB


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
    splits: bool = False  # whether some of several equal items are selected


@dataclass(frozen=True)
class Solved:
    """The thresholds of a frame's segments, found; labels still to be made."""

    table: Table
    answers: tuple[Answer, ...]  # one for each column
    kept_together: bool = False  # where splitting ties would have been better

    @property
    def decisions(self) -> Decisions:
        """The decision of each segment, and column where there are several."""
        columns, keys, found = self.table.columns, self.table.python_keys(), {}
        several = len(columns) > 1
        for column, (each, _) in zip(columns, self.answers, strict=True):
            numbers = (getattr(each, name).tolist() for name in NUMBERS)
            guarantees = each.guarantee or [None] * len(keys)
            for key, guarantee, *values in zip(keys, guarantees, *numbers, strict=True):
                named: dict[str, Any] = dict(zip(NUMBERS, values, strict=True))
                decision = Decision(None, beta=each.beta, guarantee=guarantee, **named)
                found[(*key, column) if several else key] = decision
        overall: Any = [answer.decision.overall for answer in self.answers]
        if not several or None in overall:
            overall = overall[0]
        else:
            overall = dict(zip(columns, overall, strict=True))
        return Decisions(found, overall=overall, kept_together=self.kept_together)

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
        table, m = self.table, len(self.table.outputs)
        wanted = [f"argmaxf_{what}_{j}" for what in ("threshold", "last") for j in range(m)]
        taken = [*table.frame.collect_schema(), *table.outputs]
        row, *names = unused(taken, ["argmaxf_row", *wanted])
        rows, values = table.frame, {}
        for j, (decision, splits) in enumerate(self.answers):
            values[names[j]] = decision.threshold
            if splits:
                batches = table.rows(j).batches()
                values[names[m + j]] = last_ties(batches, decision).astype(np.float64)
        if any(answer.splits for answer in self.answers):
            rows = as_frame(rows.to_native().with_row_index(row))
        if table.number:
            rows = engine_of(rows).look_up(rows, table.number, values)
        at = {n: nw.col(n) if table.number else float(v[0]) for n, v in values.items()}
        labels = []
        for j, (column, output) in enumerate(zip(table.columns, table.outputs, strict=True)):
            p, cut = table.p(column), at[names[j]]
            chosen = p >= cut
            if self.answers[j].splits:
                chosen = (p > cut) | ((p == cut) & (nw.col(row) <= at[names[m + j]]))
            labels.append(chosen.alias(output))
        helpers = [*(values if table.number else ()), row]
        return rows.with_columns(*labels).drop(*helpers, strict=False)


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
    answers = decide_columns(table, problem)
    if table.has_order or not any(answer.splits for answer in answers):
        return Solved(table, answers)
    together = replace(problem, split_ties=False)
    try:
        return Solved(table, decide_columns(table, together), kept_together=True)
    except ValueError as error:
        if str(error) != str(together.no_set()):
            raise
        raise ValueError(
            f"no set of {problem.least} to {problem.most} rows keeps equal probabilities together, "
            "and a lazy frame has no fixed order of rows to split them by: collect it first"
        ) from None


def decide_columns(table: Table, problem: Problem) -> tuple[Answer, ...]:
    """Decide the segments of every column; name what is no probability, or has no segment."""
    return tuple(
        rows.refusing(partial(_decide_column, table, j, rows, problem))
        for j, rows in enumerate(map(table.rows, range(len(table.columns))))
    )


def _decide_column(table: Table, j: int, rows: Rows, problem: Problem) -> Answer:
    """Decide the segments of a column where its items are, or in arrays."""
    if table.sizes is not None and not table.is_eager:
        return _decide_segments(table, j, rows, problem, table.sizes)
    needs_all = bool(table.is_eager or problem.chance or problem.needs_items)
    by_band = table.reads_again and table.number is None and band.knows(problem)
    passes: BatchPasses | ExpressionPasses = ColumnPasses(rows)
    if by_band and not needs_all and isinstance(engine_of(table.frame), Spark):
        passes = ExpressionPasses(rows.items, P)
    if passes.n <= rows.HELD and (table.reads_again or needs_all):
        held = rows.held(all_=needs_all)
        if held is not None:
            return _decide_arrays(table, j, held, problem)
    if by_band:
        (found,) = band.decide(passes, problem)
        if found is not None:
            decision = _in_arrays(Decision(None, *found, problem.beta, passes.n))
            if not problem.may_split:
                return Answer(decision)
            reached = passes.above(np.nextafter(decision.threshold, -1.0))[0, 1]
            return Answer(decision, reached != found.k)
    with closing(Spill()) as spill:
        for batch in rows.batches():
            spill.append(batch[P])
        if spill.size <= rows.HELD:
            return _decide_arrays(table, j, {P: spill[:]}, problem)
        decision, splits = decide_spill(spill, problem)
    return Answer(_in_arrays(decision), splits)


def _decide_arrays(table: Table, j: int, held: Batch, problem: Problem) -> Answer:
    """Decide the items of a column as arrays."""
    p = held[P]
    if table.sizes is not None:
        segments = Segments.of_numbers(held[SEGMENT], table.sizes.size)
        return _decide_in_memory(table, j, problem, p, segments)
    decision = _in_arrays(decide_one(p, problem))
    splits = problem.may_split and np.count_nonzero(p >= decision.threshold) != decision.k
    return Answer(decision, bool(splits))


def _decide_in_memory(
    table: Table, j: int, problem: Problem, p: NDArray[Any], segments: Segments, first: int = 0
) -> Answer:
    """Decide segments from the first one on, whose items are in memory."""
    decide = decide_by if problem.chance else decide_each
    decision = decide(p, problem, segments, lambda i: _key(table, j, first + i))
    if not problem.may_split:
        return Answer(decision)
    reached = segments.sorted(p) >= np.repeat(decision.threshold, np.diff(segments.offsets))
    return Answer(decision, bool(np.count_nonzero(reached) != decision.k.sum()))


def _decide_segments(table: Table, j: int, rows: Rows, problem: Problem, sizes: Ints) -> Answer:
    """Decide the segments of a lazy frame, about PART items at a time.

    Chance constraints, which all segments share, need all items.
    """
    most = int(sizes.sum()) if problem.chance else PART
    found: dict[str, Any] = {name: np.empty(sizes.size) for name in NUMBERS[1:4]}
    found["k"], splits = np.empty(sizes.size, np.int64), False
    with rows.by_segment(sizes, most) as parts:
        for first, offsets, columns in parts:
            items = columns[P]
            own = slice(first, first + offsets.size - 1)
            if isinstance(items, Spill):
                answer = Answer(*decide_spill(items, problem))
            else:
                segments = Segments(np.arange(offsets.size - 1), None, offsets)
                answer = _decide_in_memory(table, j, problem, items, segments, first)
            if problem.chance:
                return answer
            splits |= answer.splits
            for name, array in found.items():
                array[own] = getattr(answer.decision, name)
    return Answer(Decision(None, beta=problem.beta, n=sizes, **found), splits)


def _key(table: Table, j: int, segment: int) -> Any:
    """Return what a segment of the j-th column is called: a value, or several."""
    key = table.python_keys()[segment]
    key = (*key, table.columns[j]) if len(table.columns) > 1 else key
    return key[0] if len(key) == 1 else key


def _in_arrays(decision: Decision) -> Decision:
    """Return the decision about one set as that of one segment."""
    arrays: dict[str, Any] = {name: np.array([getattr(decision, name)]) for name in NUMBERS}
    guarantee = None if decision.guarantee is None else [decision.guarantee]
    return Decision(decision.selected, beta=decision.beta, guarantee=guarantee, **arrays)


def decide_spill(spill: Spill, problem: Problem) -> tuple[Decision, bool]:
    """Decide many items in a temporary file; say whether ties are split."""
    if band.knows(problem):
        (found,) = band.decide(BatchPasses(spill.batches), problem)
        decision = Decision(None, *found, problem.beta, spill.size) if found else None
    if not band.knows(problem) or decision is None:
        source = Source(BatchPasses(spill.batches))
        decision = search.decide(source, problem).decision(spill.size)
    if not problem.may_split:
        return decision, False
    reached = sum(np.count_nonzero(p >= decision.threshold) for p in spill.batches())
    return decision, reached != decision.k


class ColumnPasses(BatchPasses):
    """The band's passes over a column of a lazy frame, which is read again for each.

    Dask has them done where its partitions are. A frame that changes between passes is noticed.
    """

    def __init__(self, rows: Rows) -> None:
        super().__init__(lambda: (batch[P] for batch in rows.batches(checked=False)))
        self._rows, self._total = rows, np.nan

    def results(self, work: Callable[[NDArray[Any]], T]) -> Iterator[T]:
        """Yield what some work on each batch gives."""
        return self._rows.each(lambda batches: (work(batch[P]) for batch in batches))

    def counts(self, sampled: bool = False) -> band.Counts:
        """Count the items in bins; of all items Σ p is taken as well, for other passes to meet."""
        if sampled:
            return super().counts(sampled)
        tables, totals = zip(*self.each(lambda p: (counted(p), _sum(p))), strict=True)
        self._same(float(np.sum(totals)))
        table = np.sum(tables, axis=0)
        self.n = int(table.sum())
        return band.Counts(table[None], 1.0)

    def above(self, cut: Floats) -> Floats:
        """Return Σ p, how many items are above a threshold, and their Σ p."""
        sums = super().above(cut)
        self._same(float(sums[0, 0]))
        return sums

    def around(self, low: Floats, high: Floats, room: int) -> band.Around:
        """Return the sums around a band, and its items in ascending order."""
        found = super().around(low, high, room)
        (sums,), (items,) = found
        if items is not None:
            check_same(self.n, round(sums[:, :2].sum()) + items.size)
            self._same(float(sums[:, 0].sum() + items.sum()))
        return found

    def least_above(self, cut: Floats) -> Floats:
        """Return the least item above a threshold."""
        least_above, high = pass_kernels.least_above.compiled, float(cut[0])
        found = self.each(lambda p: (least_above(contiguous(p), high), _sum(p)))
        least, totals = np.transpose(found)
        self._same(float(totals.sum()))
        return np.array([least.min()])

    def _same(self, total: float) -> None:
        """Refuse items whose sum is another one than in the pass before."""
        check_same(self._total, total)
        self._total = total


def check_same(before: float, after: float) -> None:
    """Refuse a frame of which numbers are not the same as in the pass before, if there was one."""
    if abs(after - before) > 1e-9 * before:
        raise ValueError(f"{CHANGED}, got {before!r} in all and then {after!r}")


def _sum(p: NDArray[Any]) -> float:
    return float(p.sum(dtype=np.float64))


def sketch_of(rows: Rows) -> ProbabilitySketch:
    """Summarize probabilities; raise NotAProbability if a value is none."""
    return sketch_of_table(summary(ColumnPasses(rows)))
