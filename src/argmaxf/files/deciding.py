"""Files decided in two passes: one over the column of probabilities, one to write the labels."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from argmaxf._base.arrays import Floats, contiguous
from argmaxf._base.atomic_write import refuse_inputs
from argmaxf._base.validation import check_choice, check_unit_interval
from argmaxf.constraints import ChanceConstraint
from argmaxf.empirical.interval import Interval
from argmaxf.expected import refine
from argmaxf.expected.chance import decide_constrained
from argmaxf.expected.decision import Decision
from argmaxf.expected.grouped.groups import empty_table
from argmaxf.expected.grouped.sources import add_items
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.sketch import ProbabilitySketch
from argmaxf.expected.small_sets import SMALL
from argmaxf.expected.values import value_of_sets
from argmaxf.files.column import BROKEN, Column, first_line
from argmaxf.files.formats import find_inputs
from argmaxf.files.progress import Progress, Silent
from argmaxf.files.spill import SAMPLE, Band, BandSource, OutsideBand, Spill
from argmaxf.files.writing import Output
from argmaxf.frames.decide import Decisions, rate_of, solve
from argmaxf.frames.engines import is_polars_pattern
from argmaxf.frames.table import Table
from argmaxf.measures import MeasureLike
from argmaxf.prior import factor_of
from argmaxf.problem import Problem


@dataclass(frozen=True)
class Options:
    """What to decide, and how rows without a probability and equal ones are treated."""

    beta: float = 1.0
    measure: MeasureLike = "fbeta"
    zero_division: float = 0.0
    ties: str = "split"
    nulls: str = "raise"
    min_selected: int | None = None
    max_selected: int | None = None
    prior: tuple[float, Any] | None = None  # rates of positives, in training and in these rows
    chance: ChanceConstraint | None = None

    @property
    def factor(self) -> float | None:
        """What the odds of all probabilities are multiplied by."""
        return None if self.prior is None else float(factor_of(self.prior))

    @property
    def problem(self) -> Problem:
        """The question to the search, checked."""
        check_choice("nulls", self.nulls, ("raise", "drop"))
        limits = self.min_selected, self.max_selected
        options = self.beta, self.measure, self.zero_division, self.ties
        return Problem.of(*options, *limits, self.chance)


def decide_files(
    names: Sequence[str],
    column: str,
    options: Options | None = None,
    *,
    by: Sequence[str] = (),
    output: Path | None = None,
    label: str = "label",
    progress: Progress | None = None,
) -> Decisions:
    """Decide the rows of files, folders, patterns or "-"; write them with labels to `output`.

    Memory does not grow with the number of rows. Returns one decision for each segment of `by`,
    or a single one under the empty tuple; with chance constraints `overall` is of all segments.
    """
    options = options or Options()
    problem = options.problem
    with ExitStack() as stack:
        inputs = find_inputs(names, stack)
        items = Column(inputs, column, options.nulls == "drop", by, options.factor, label)
        sink = Output.checked(output, label, items) if output else None
        shown = progress or Silent()
        if by:
            return _decide_segments(items, options, by, sink, shown)
        spill = stack.enter_context(closing(Spill()))
        decision = _decide(items, spill, problem, shown)
        if sink:
            sink.write(sink.frame().with_columns(_label(items, decision, problem, label)), shown)
    return Decisions({(): decision})


def label_files(
    names: Sequence[str],
    column: str,
    threshold: float,
    options: Options | None = None,
    *,
    output: Path | None = None,
    label: str = "label",
    progress: Progress | None = None,
) -> Decision:
    """Label rows by a threshold decided elsewhere: p ≥ threshold is selected."""
    options = options or Options()
    problem, cut = options.problem, check_unit_interval("threshold", threshold)
    with ExitStack() as stack:
        inputs = find_inputs(names, stack)
        drop, factor = options.nulls == "drop", options.factor
        items = Column(inputs, column, drop, factor=factor, label=label)
        sink = Output.checked(output, label, items) if output else None
        shown = progress or Silent()
        chosen, rest = ProbabilitySketch(), ProbabilitySketch()
        with shown.phase("reading", items.rows()) as advance:
            for values in items.batches(advance):
                chosen.update(values[values >= cut])
                rest.update(values[values < cut])
        _refuse_none(chosen.n + rest.n)
        if sink:
            sink.write(sink.frame().with_columns((pl.col(items.p) >= cut).alias(label)), shown)
    value = value_of_sets(chosen.groups_with_zeros(), rest.groups_with_zeros(), problem)
    n = chosen.n + rest.n
    return Decision(None, chosen.n, cut, value.mean, value.std, problem.beta, n)


def summarize_files(
    names: Sequence[str],
    column: str,
    *,
    nulls: str = "raise",
    output: Path | None = None,
    progress: Progress | None = None,
) -> ProbabilitySketch:
    """Return the summary of a column of files, in one pass; `output` must be none of them."""
    drop = check_choice("nulls", nulls, ("raise", "drop")) == "drop"
    sketch = ProbabilitySketch()
    with ExitStack() as stack:
        items = Column(find_inputs(names, stack), column, drop)
        refuse_inputs([output], [source.origin for source in items.inputs])
        with (progress or Silent()).phase("reading", items.rows()) as advance:
            for values in items.batches(advance):
                sketch.update(values)
    return sketch


def estimate_files(
    names: Sequence[str],
    column: str,
    train_rate: float,
    *,
    nulls: str = "raise",
    progress: Progress | None = None,
) -> Interval:
    """Return the most likely rate of positives in files, in one pass, with its 95 % interval."""
    if "-" in names:
        raise ValueError("a rate is estimated in a pass of its own, and - can be read only once")
    return rate_of(summarize_files(names, column, nulls=nulls, progress=progress), train_rate)


def _decide(items: Column, spill: Spill, problem: Problem, progress: Progress) -> Decision:
    """Decide in one pass over the column, or two if the first rows mislead."""
    with closing(Spill()) as kept:
        if not problem.chance:  # which needs every item
            table, band = _read(items, kept, problem, progress)
            try:
                return _decide_kept(kept, band, table, problem)
            except OutsideBand:
                pass
    table, band = _read(items, spill, None, progress)
    return _decide_kept(spill, band, table, problem)


def _read(
    items: Column, spill: Spill, problem: Problem | None, progress: Progress
) -> tuple[Floats, Band]:
    """Read the column: return its summary; keep what may be asked for, everything by default."""
    band, n, table = Band(), 0, empty_table()
    with progress.phase("reading", items.rows()) as advance:
        for values in items.batches(advance):
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
        decision = maximize_expected_f(
            spill[:],
            measure=problem.measure,
            zero_division=problem.zero_division,
            ties="split" if problem.split_ties else "together",
            min_selected=problem.least,
            max_selected=problem.most,
        )
        return replace(decision, selected=None)
    return refine.decide(BandSource(spill, band, table), problem)[()].decision(n)


def _label(items: Column, decision: Decision, problem: Problem, label: str) -> pl.Expr:
    """Return the expression of the labels; split ties go to the first rows."""
    p, threshold = pl.col(items.p), decision.threshold
    selected: pl.Expr = p >= threshold
    if problem.may_split:
        row = pl.int_range(pl.len(), dtype=pl.Int64)
        selected = (p > threshold) | ((p == threshold) & (row <= _last_selected(items, decision)))
    return selected.alias(label)


def _last_selected(items: Column, decision: Decision) -> int:
    """Return the row of the last selected item, of those equal to the threshold."""
    cut, start = decision.threshold, 0
    wanted = decision.k - sum(int((p > cut).sum()) for p in items.batches(_silent))
    for p in items.batches(_silent):
        equal = np.flatnonzero(p == cut)
        if equal.size >= wanted > 0:
            return start + int(equal[wanted - 1])
        wanted, start = wanted - equal.size, start + p.size
    return -1


def _silent(rows: int) -> None:
    """Show no progress."""


def _decide_segments(
    items: Column, options: Options, by: Sequence[str], sink: Output | None, progress: Progress
) -> Decisions:
    """Decide each segment, in the passes of frames."""
    _check_by(items, by)
    items.check(progress, by)  # text that is no number would pass for null below
    frame = sink.frame() if sink else items.frame(only=by)
    try:
        with progress.phase("deciding", None):
            label = sink.label if sink else None
            table = Table.of(frame, items.p, by, options.nulls, label, has_order=True)
            solved = solve(table, options.problem)
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


def _refuse_none(rows: int) -> None:
    if rows == 0:
        raise ValueError("the files must hold at least one probability, got none")
