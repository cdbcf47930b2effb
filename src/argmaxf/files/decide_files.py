"""Files decided in two phases: the column of probabilities is read, then labels are written.

All files together are a lazy frame of Polars, and decided as one. Text is read once, into a
temporary file, 8 bytes a row: parsing it again would take longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from argmaxf._base.atomic_write import refuse_inputs
from argmaxf._base.validation import check_choice, check_unit_interval
from argmaxf.expected.decision import Decision
from argmaxf.expected.sketch import ProbabilitySketch, groups_of_sketch
from argmaxf.expected.values import value_of_sets
from argmaxf.files.column import Column, Progress
from argmaxf.files.inputs import find_inputs
from argmaxf.files.output import Output
from argmaxf.frames.decide import rate_of
from argmaxf.frames.rows import P
from argmaxf.frames.solve import Decisions, sketch_of, solve
from argmaxf.measures import Interval
from argmaxf.prior import factor_of
from argmaxf.problem import Problem


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
    with _opened(names, column, nulls, prior, output, label, by) as (items, sink, frame):
        with items.naming_errors(by):
            table = items.table(frame, progress, by, label if sink else None)
            solved = solve(table, problem or Problem.of())
        if sink:
            sink.write(solved.labelled(), progress)
        return solved.decisions


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
    cut = np.float64(check_unit_interval("threshold", threshold))  # no float32, as floats may be
    problem = problem or Problem.of()
    chosen, rest = ProbabilitySketch(), ProbabilitySketch()
    with _opened(names, column, nulls, prior, output, label) as (items, sink, frame):
        with items.naming_errors():
            for batch in items.table(frame, progress).rows(0).batches():
                values = batch[P]
                chosen.update(values[values >= cut])
                rest.update(values[values < cut])
        n = chosen.n + rest.n
        if not n:
            items.diagnose()
        if sink:
            chosen_rows = pl.col(items.p) >= pl.lit(cut, pl.Float64)
            sink.write(frame.with_columns(chosen_rows.alias(label)), progress)
    value = value_of_sets(groups_of_sketch(chosen), groups_of_sketch(rest), problem)
    return Decision(None, chosen.n, float(cut), value.mean, value.std, problem.beta, n)


def summarize_files(
    names: Sequence[str],
    column: str,
    *,
    nulls: str = "raise",
    output: Path | None = None,
    progress: Progress = False,
) -> ProbabilitySketch:
    """Return the summary of a column of files, in one pass; `output` must be none of them."""
    opened = _opened(names, column, nulls, output=output)
    with opened as (items, _, frame), items.naming_errors():
        return sketch_of(items.table(frame, progress).rows(0))


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
        raise ValueError(
            "estimating the rate needs a pass of its own, and - can be read only once; pass a file"
        )
    return rate_of(summarize_files(names, column, nulls=nulls, progress=progress), train_rate)


@contextmanager
def _opened(
    names: Sequence[str],
    column: str,
    nulls: str,
    prior: Any = None,
    output: Path | None = None,
    label: str | None = None,
    by: Sequence[str] = (),
) -> Iterator[tuple[Column, Output | None, pl.LazyFrame]]:
    """Find the files, and check the column in them; labelled rows go to the output."""
    drop = check_choice("nulls", nulls, ("raise", "drop")) == "drop"
    factor = None if prior is None else float(factor_of(prior))
    with ExitStack() as stack:
        items = Column(find_inputs(names, stack), column, drop, by, factor, label)
        refuse_inputs([output], [source.origin for source in items.inputs])
        sink = Output.checked(output, label, items) if output and label is not None else None
        if column in by:
            raise ValueError(f"--by must not be the column of probabilities, got {column!r}")
        for source in items.inputs:
            items.scan(source, only=by)
        yield items, sink, sink.frame() if sink else items.frame(only=by)
