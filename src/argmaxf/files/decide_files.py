"""Files decided in two passes: one over the column of probabilities, one to write the labels.

After the first million rows a summary tells about where the threshold will be; from then on only
items in a wide band around it are kept, in a temporary file. Should the rows have misled (sorted
ones do), the search asks for items outside of the band, and the column is read once more.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

import numpy as np
import polars as pl

from argmaxf._base.arrays import Floats, contiguous
from argmaxf._base.atomic_write import refuse_inputs
from argmaxf._base.validation import check_choice, check_unit_interval
from argmaxf.empirical.interval import Interval
from argmaxf.expected import refine
from argmaxf.expected.chance import decide_constrained
from argmaxf.expected.decision import Decision
from argmaxf.expected.grouped.groups import Groups, empty_table, groups_of_table, windows
from argmaxf.expected.grouped.sources import ArraySource, add_items
from argmaxf.expected.maximize import decide_one
from argmaxf.expected.sketch import ProbabilitySketch, groups_of_sketch
from argmaxf.expected.small_sets import SMALL
from argmaxf.expected.values import value_of_sets
from argmaxf.files.column import Column, Progress, phase
from argmaxf.files.inputs import BROKEN, find_inputs, first_line, spilling, write_all
from argmaxf.files.output import Output
from argmaxf.frames.decide import Decisions, Solved, rate_of, solve
from argmaxf.frames.engines import is_polars_pattern
from argmaxf.frames.segments import Answers
from argmaxf.frames.table import Table
from argmaxf.prior import factor_of
from argmaxf.problem import Problem

SAMPLE = 1 << 20  # rows before the band is chosen
MARGIN = 1.25  # how much wider than the bracket of the sample it is
HELD = 1 << 23  # items of a narrow band kept in memory: 64 MB, however many rows there are


def decide_files(
    names: Sequence[str],
    column: str,
    problem: Problem | None = None,
    *,
    by: Sequence[str] = (),
    nulls: str = "raise",
    prior: tuple[float, Any] | None = None,
    output: Path | None = None,
    label: str = "label",
    progress: Progress = False,
) -> Decisions:
    """Decide the rows of files, folders, patterns or "-"; write them with labels to `output`.

    Memory does not grow with the number of rows. Returns one decision for each segment of `by`,
    or a single one under the empty tuple; with chance constraints `overall` is of all segments.
    `prior` has the rates of positives in training and in these rows. `progress` is False, True or
    a function of the phase, the rows so far and those in all, None if unknown.
    """
    problem = problem or Problem.of()
    with ExitStack() as stack:
        items = _column(names, column, stack, nulls, prior, label, by)
        sink = Output.checked(output, label, items) if output else None
        if by:
            return _decide_segments(items, problem, by, sink, progress)
        decision = _decide(items, problem, progress)
        if sink:
            table = Table.of(sink.frame(), items.p, output=label, has_order=True)
            answers = Answers.of(decision)
            sink.write(Solved(table, answers, problem).labelled(), progress)
    return Decisions({(): decision})


def label_files(
    names: Sequence[str],
    column: str,
    threshold: float,
    problem: Problem | None = None,
    *,
    nulls: str = "raise",
    prior: tuple[float, Any] | None = None,
    output: Path | None = None,
    label: str = "label",
    progress: Progress = False,
) -> Decision:
    """Label rows by a threshold decided elsewhere: p ≥ threshold is selected."""
    cut = check_unit_interval("threshold", threshold)
    problem = problem or Problem.of()
    with ExitStack() as stack:
        items = _column(names, column, stack, nulls, prior, label)
        sink = Output.checked(output, label, items) if output else None
        chosen, rest = ProbabilitySketch(), ProbabilitySketch()
        for values in items.batches(phase(progress, "reading", items.rows())):
            chosen.update(values[values >= cut])
            rest.update(values[values < cut])
        n = _refuse_none(chosen.n + rest.n)
        if sink:
            sink.write(sink.frame().with_columns((pl.col(items.p) >= cut).alias(label)), progress)
    value = value_of_sets(groups_of_sketch(chosen), groups_of_sketch(rest), problem)
    return Decision(None, chosen.n, cut, value.mean, value.std, problem.beta, n)


def summarize_files(
    names: Sequence[str],
    column: str,
    *,
    nulls: str = "raise",
    output: Path | None = None,
    progress: Progress = False,
) -> ProbabilitySketch:
    """Return the summary of a column of files, in one pass; `output` must be none of them."""
    sketch = ProbabilitySketch()
    with ExitStack() as stack:
        items = _column(names, column, stack, nulls)
        refuse_inputs([output], [source.origin for source in items.inputs])
        for values in items.batches(phase(progress, "reading", items.rows())):
            sketch.update(values)
    return sketch


def estimate_files(
    names: Sequence[str],
    column: str,
    train_rate: float,
    *,
    nulls: str = "raise",
    progress: Progress = False,
) -> Interval:
    """Return the most likely rate of positives in files, in one pass, with its 95 % interval."""
    if "-" in names:
        raise ValueError("a rate is estimated in a pass of its own, and - can be read only once")
    return rate_of(summarize_files(names, column, nulls=nulls, progress=progress), train_rate)


def _column(
    names: Sequence[str],
    column: str,
    stack: ExitStack,
    nulls: str,
    prior: Any = None,
    label: str | None = None,
    by: Sequence[str] = (),
) -> Column:
    """Find the files, and the column of probabilities in them."""
    drop = check_choice("nulls", nulls, ("raise", "drop")) == "drop"
    factor = None if prior is None else float(factor_of(prior))
    return Column(find_inputs(names, stack), column, drop, by, factor, label)


def _decide(items: Column, problem: Problem, progress: Progress) -> Decision:
    """Decide in one pass over the column, or two if the first rows mislead."""
    if not problem.chance:  # which needs every item
        with closing(Spill()) as spill:
            table, band = _read(items, spill, problem, progress)
            try:
                return _decide_kept(spill, band, table, problem)
            except OutsideBand:
                pass
    with closing(Spill()) as spill:
        table, band = _read(items, spill, None, progress)
        return _decide_kept(spill, band, table, problem)


def _read(
    items: Column, spill: Spill, problem: Problem | None, progress: Progress
) -> tuple[Floats, Band]:
    """Read the column: return its summary; keep what may be asked for, everything by default."""
    band, n, table = Band(), 0, empty_table()
    for values in items.batches(phase(progress, "reading", items.rows())):
        add_items(table, contiguous(values))
        if problem and problem.is_free and n < SAMPLE <= n + values.size:
            band = Band.likely(table, problem)
        n += values.size
        spill.append(band.of(values))
    _refuse_none(n)
    return table, band


def _decide_kept(spill: Spill, band: Band, table: Floats, problem: Problem) -> Decision:
    """Find the optimum; so few items as an array would sort are decided as an array."""
    n = int(table[:, 0].sum())
    if problem.chance:
        return replace(decide_constrained(spill[:], problem), selected=None)
    if n <= SMALL:
        return replace(decide_one(spill[:], problem), selected=None)
    return refine.decide(BandSource(spill, band, table), problem)[()].decision(n)


def _decide_segments(
    items: Column, problem: Problem, by: Sequence[str], sink: Output | None, progress: Progress
) -> Decisions:
    """Decide each segment, in the passes of frames."""
    _check_by(items, by)
    for _ in items.batches(phase(progress, "checking", items.rows()), by):
        pass  # text that is no number would pass for null below
    frame = sink.frame() if sink else items.frame(only=by)
    phase(progress, "deciding")
    try:
        label = sink.label if sink else None
        table = Table.of(frame, items.p, by, output=label, has_order=True)
        solved = solve(table, problem)
    except (ValueError, *BROKEN) as error:
        raise ValueError(first_line(error)) from error
    if sink:
        sink.write(solved.labelled(), progress)
    return solved.decisions


def _check_by(items: Column, by: Sequence[str]) -> None:
    """Refuse columns of segments that are not in every file, or hold the probabilities."""
    if items.name in by:
        raise ValueError(f"--by must not be the column of probabilities, got {items.name!r}")
    for name in filter(is_polars_pattern, by):
        raise ValueError(f"--by {name!r} must have another name: Polars takes this for a pattern")
    for source in items.inputs:
        there = items.scan(source).collect_schema()
        for name in by:
            if name not in there:
                raise ValueError(f"{source.name}: no column {name!r}")


def _refuse_none(rows: int) -> int:
    if rows == 0:
        raise ValueError("the files must hold at least one probability, got none")
    return rows


class Band(NamedTuple):
    """The probabilities that are kept."""

    low: float = 0.0
    high: float = 1.0

    @classmethod
    def likely(cls, table: Floats, problem: Problem) -> Band:
        """Return a wide band around the threshold of the items seen so far."""
        search = refine.search(groups_of_table(table, zeros=True), problem)
        near = Groups.joined([search.best_border().last, search.unsettled])
        if len(near) == 0:
            return cls()
        return cls(float(near.low.min()) / MARGIN, min(1.0, float(near.high.max()) * MARGIN))

    def of(self, values: Floats) -> Floats:
        """Return the values in the band."""
        if self == Band():
            return values
        return values[(values >= self.low) & (values <= self.high)]


class Spill:
    """Numbers in a temporary file without a name, which vanishes with the process.

    Sliced like an array; every slice is read from the file.
    """

    def __init__(self) -> None:
        self.file: IO[bytes] = TemporaryFile(prefix="argmaxf-", buffering=0)  # noqa: SIM115
        self.size = 0

    def close(self) -> None:
        """Give the file back."""
        self.file.close()

    def append(self, values: Floats) -> None:
        """Add numbers at the end."""
        data = memoryview(np.ascontiguousarray(values, np.float64).view(np.uint8).data)
        with spilling():
            write_all(self.file, data)
        self.size += values.size

    def __getitem__(self, where: slice) -> Floats:
        start, stop, _ = where.indices(self.size)
        data = os.pread(self.file.fileno(), 8 * (stop - start), 8 * start)
        return np.frombuffer(data, np.float64)


class OutsideBand(Exception):
    """Raised when the search needs items that were not kept."""


class BandSource(ArraySource):
    """The items of a band, as the search sees them; the table of all items was made before."""

    def __init__(self, spill: Spill, band: Band, table: Floats) -> None:
        super().__init__(spill, most_held=HELD)
        self.band = band
        self._table = table

    def sums(self) -> Floats:
        """Return the table of the summary, of all items."""
        return self._table

    def subdivide(self, groups: Groups) -> Groups:
        """Return the same items in finer groups; raise OutsideBand if some were not kept."""
        for window, _ in windows(groups):
            low, high = window.bounds
            if self.band != Band() and (low < self.band.low or high > self.band.high):
                raise OutsideBand
        return super().subdivide(groups)
