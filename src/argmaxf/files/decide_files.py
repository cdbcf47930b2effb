"""Files decided in two phases: the column of probabilities is read, then labels are written.

All files together are a lazy frame of Polars, and decided as one. Text is read once, into a
temporary file, 8 bytes a row: parsing it again would take longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from argmaxf._base.atomic_write import refuse_inputs
from argmaxf._base.validation import check_choice, check_unit_interval
from argmaxf.expected.decision import Decision
from argmaxf.expected.sketch import ProbabilitySketch, groups_of_sketch
from argmaxf.expected.values import value_of_sets
from argmaxf.files.column import Column, Progress, Rule, refuse_absent
from argmaxf.files.inputs import find_inputs
from argmaxf.files.output import Output
from argmaxf.frames.decide import rate_of
from argmaxf.frames.solve import Decisions, sketch_of, solve
from argmaxf.frames.table import P
from argmaxf.measures import Interval
from argmaxf.prior import factor_of
from argmaxf.problem import Problem


@dataclass(frozen=True)
class ScoredFiles:
    """Files, folders, patterns or "-" with a column of scores, and where labelled rows go.

    `prior` has the rates of positives in training and in these rows. `progress` is False, or a
    function of the phase, the rows so far and those in all, None if unknown.
    """

    names: Sequence[str]
    column: str
    by: Sequence[str] = ()
    nulls: str = "raise"
    prior: tuple[float, Any] | None = None
    output: Path | None = None
    added: str | None = "label"  # the column of labels to write; None for an output without rows
    progress: Progress = False

    @contextmanager
    def opened(self) -> Iterator[tuple[Column, Output | None]]:
        """Find the files, and check the column in them; `output` must be none of them."""
        drop = check_choice("nulls", self.nulls, ("raise", "drop")) == "drop"
        factor = None if self.prior is None else float(factor_of(self.prior))
        with ExitStack() as stack:
            inputs = find_inputs(self.names, stack)
            refuse_inputs([self.output], [source.origin for source in inputs])
            if self.column in self.by:
                raise ValueError(f"--by must not be the column of scores, got {self.column!r}")
            for source in inputs:
                refuse_absent(source, self.column, *self.rules, *self.by)
            items = Column(
                inputs, self.column, drop, self.by, factor, self.added, self.rules, self.progress
            )
            if self.output and self.added:
                yield items, Output.checked(self.output, self.added, items)
            else:
                yield items, None

    @property
    def rules(self) -> dict[str, Rule]:
        """What the columns must hold; without rules, probabilities."""
        return {}


def decide_files(files: ScoredFiles, problem: Problem | None = None) -> Decisions:
    """Decide the rows of files; write them with labels if there is an output.

    Memory does not grow with the number of rows. Returns one decision for each segment of `by`,
    or a single one under the empty tuple; with chance constraints `overall` is of all segments.
    """
    with files.opened() as (items, sink):
        frame = sink.frame() if sink else items.frame(only=files.by)
        with items.naming_errors(files.by):
            table = items.table(frame, files.by, files.added if sink else None)
            solved = solve(table, problem or Problem.of())
        if sink:
            sink.write(solved.labelled())
        return solved.decisions


def label_files(files: ScoredFiles, threshold: float, problem: Problem | None = None) -> Decision:
    """Label rows by a threshold decided elsewhere: p ≥ threshold is selected."""
    cut = np.float64(check_unit_interval("threshold", threshold))  # no float32, as floats may be
    problem = problem or Problem.of()
    chosen, rest = ProbabilitySketch(), ProbabilitySketch()
    with files.opened() as (items, sink):
        frame = sink.frame() if sink else items.frame(only=())
        with items.naming_errors():
            for batch in items.table(frame).rows(0).batches():
                chosen.update(batch[P][batch[P] >= cut])
                rest.update(batch[P][batch[P] < cut])
        n = chosen.n + rest.n
        if not n:
            items.diagnose()
        if sink:
            chosen_rows = pl.col(items.p) >= pl.lit(cut, pl.Float64)
            sink.write(frame.with_columns(chosen_rows.alias(sink.label)))
    value = value_of_sets(groups_of_sketch(chosen), groups_of_sketch(rest), problem)
    return Decision(None, chosen.n, float(cut), value.mean, value.std, problem.beta, n)


def summarize_files(files: ScoredFiles) -> ProbabilitySketch:
    """Return the summary of a column of files, in one pass."""
    with files.opened() as (items, _), items.naming_errors():
        return sketch_of(items.table(items.frame(only=())).rows(0))


def estimate_files(files: ScoredFiles, train_rate: float) -> Interval:
    """Return the most likely rate of positives in files, in one pass, with its 95 % interval."""
    if "-" in files.names:
        raise ValueError(
            "estimating the rate needs a pass of its own, and - can be read only once; pass a file"
        )
    return rate_of(summarize_files(files), train_rate)
