"""Files decided in two passes: one over the column of probabilities, one to write the labels.

The column is kept in a temporary file, 8 bytes a row, which takes a fraction of the time that
reading text or Parquet again would.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
import polars as pl

from argmaxf._base.arrays import Floats
from argmaxf._base.atomic_write import refuse_inputs
from argmaxf._base.validation import check_choice, check_unit_interval
from argmaxf.expected import band, refine
from argmaxf.expected.array_passes import BatchPasses
from argmaxf.expected.decision import Decision
from argmaxf.expected.grouped.sources import ArraySource
from argmaxf.expected.maximize import decide_one
from argmaxf.expected.sketch import ProbabilitySketch, groups_of_sketch
from argmaxf.expected.small_sets import SMALL
from argmaxf.expected.threads import CHUNK
from argmaxf.expected.values import value_of_sets
from argmaxf.files.column import Column, Progress, phase
from argmaxf.files.inputs import BROKEN, find_inputs, first_line, spilling, write_all
from argmaxf.files.output import Output
from argmaxf.frames.decide import Decisions, Solved, rate_of, solve
from argmaxf.frames.engine_passes import Answers
from argmaxf.frames.engines import is_polars_pattern
from argmaxf.frames.table import Table
from argmaxf.measures import Interval
from argmaxf.prior import factor_of
from argmaxf.problem import Problem

HELD = 1 << 23  # items kept in memory by the search: 64 MB, however many rows there are


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
    """Read the column once and keep it in a temporary file; decide it from there.

    So few items as an array would sort are decided as an array; so are those that a measure or
    chance constraints need all at once.
    """
    with closing(Spill()) as spill:
        for values in items.batches(phase(progress, "reading", items.rows())):
            spill.append(values)
        n = _refuse_none(spill.size)
        if n <= SMALL or problem.chance or problem.needs_items:
            return replace(decide_one(spill[:], problem), selected=None)
        if band.knows(problem):
            (found,) = band.decide(BatchPasses(spill.batches), problem)
            if found is not None:
                return Decision(None, *found, problem.beta, n)
        return refine.decide(ArraySource(spill, most_held=HELD), problem)[()].decision(n)


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

    def batches(self) -> Iterator[Floats]:
        """Yield all numbers in order."""
        for start in range(0, self.size, CHUNK):
            yield self[start : start + CHUNK]
