"""The public functions on frames: the exact decision where the rows are."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from argmaxf.constraints import ChanceConstraint
from argmaxf.expected.decision import Decision
from argmaxf.expected.summary.sketch import ProbabilitySketch
from argmaxf.frames.grouped import checked, sketch_table
from argmaxf.frames.grouping import summarized
from argmaxf.frames.keys import Key
from argmaxf.frames.labels import with_labels
from argmaxf.frames.rates import rate_of
from argmaxf.frames.segments import BITS, LEAST, Answers, decide_segments, splits
from argmaxf.frames.table import Table, names_of
from argmaxf.measures import MeasureLike
from argmaxf.prior import check_fits, check_rate, is_estimated
from argmaxf.problem import Problem

T = TypeVar("T")


def summarize(frame: Any, column: str, *, nulls: str = "raise") -> ProbabilitySketch:
    """Return the mergeable summary of a column of probabilities, made by the frame's engine.

    Parameters
    ----------
    frame : frame
        Any frame Narwhals knows, eager or lazy: pandas, Polars, PyArrow, DuckDB, Dask, PySpark.
    column : str
        Its column of probabilities; decimals and float32 are computed in float64.
    nulls : {"raise", "drop"}, default="raise"
        ``"raise"`` refuses rows without a probability, ``"drop"`` leaves them out.

    Notes
    -----
    One pass, a group-by in the engine; at most 7,364 groups come back.

    Examples
    --------
    >>> import polars as pl
    >>> a = summarize(pl.DataFrame({"p": [0.05, 0.45, 0.1]}), "p")
    >>> b = summarize(pl.LazyFrame({"p": [0.3, 0.4]}), "p")
    >>> (a + b).n
    5
    """
    table = Table.of(frame, column, None, nulls)
    rows = checked(summarized(table.items, (), BITS, LEAST))
    return ProbabilitySketch.from_table(sketch_table(rows))


def decide(
    frame: T,
    column: str | Sequence[str],
    *,
    beta: float = 1.0,
    by: str | Sequence[str] | None = None,
    output: str = "label",
    measure: MeasureLike = "fbeta",
    zero_division: float = 0.0,
    ties: str = "split",
    nulls: str = "raise",
    min_selected: int | None = None,
    max_selected: int | None = None,
    prior: tuple[float, float | str] | None = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    confidence_level: float | None = None,
) -> T:
    """Return the frame with a column of labels added, those with the highest expected F.

    The labels are those of `maximize_expected_f`. The engine of the frame does the work, and a lazy
    frame stays lazy: the threshold is found now, the labels are made when the frame is collected.

    Parameters
    ----------
    frame : frame
        Any frame Narwhals knows, eager or lazy: pandas, Polars, PyArrow, DuckDB, Dask, PySpark.
    column : str or sequence of str
        Its column of probabilities; decimals and float32 are computed in float64. Several columns,
        one for each label of a multilabel problem, are decided each on its own in the same passes.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        What to maximize, as in `maximize_expected_f`; G-mean and functions of your own for at most
        5,000 rows of a segment.
    zero_division : float, default=0.0
        Value of F if nothing is positive nor predicted.
    by : str or sequence of str, optional
        Columns that part the rows into segments, each decided on its own, all in the same passes.
        Segments are what the engine's own group-by makes of them; null and NaN are refused.
    output : str, default="label"
        Name of the column of booleans to add; for several columns ``"{column}_{output}"``. A name
        that the frame has already is refused.
    ties : {"split", "together"}, default="split"
        ``"split"`` may select only the first of several equal probabilities, where a limit or the
        measure needs it; F_β never does. A lazy frame has no fixed order of rows: there they are
        kept together, with a `TiesWarning` where that changes the labels. ``"together"`` gives
        equal probabilities of a segment the same label.
    nulls : {"raise", "drop"}, default="raise"
        ``"raise"`` refuses rows without a probability, ``"drop"`` leaves them out of the result.
    min_selected : int, default=None
        Select at least so many rows of each segment, and column.
    max_selected : int, default=None
        Select at most so many: the best that the budget allows, as exact as without.
    prior : tuple of two floats, default=None
        The rate of positives in training, and the one among these rows: the probabilities are moved
        there first, as in `maximize_expected_f`; thresholds are of moved ones. ``"estimate"`` as
        the second takes the most likely rate of all rows (`estimate_rate`), of each column by
        itself, in one more pass.
    min_precision : float, optional
        The least precision, which holds with probability `confidence_level` under the model: see
        `maximize_expected_f`.
    min_recall : float, optional
        The least recall; both hold at once.
    confidence_level : float, optional
        The probability with which they hold; with `by` in every segment at once, and so overall,
        for which each of s segments has confidence_level^(1/s).
        The probabilities are then brought into this process, each value once with its count, and
        every size of a segment is looked at: up to 200 bytes a row at its peak.

    Notes
    -----
    Two or three passes over the column: a group-by of all rows, then one of a narrow band of
    probabilities, until at most 131,072 items are left to be counted one by one. With `by`, one
    more pass first finds the segments and numbers them; their keys stay in the engine, for DuckDB
    in a temporary table of its connection.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"p": [0.05, 0.45, 0.1, 0.3, 0.4]})
    >>> decide(frame, "p")["label"].to_list()
    [False, True, False, True, True]
    """
    chance = ChanceConstraint.of(min_precision, min_recall, confidence_level)
    problem = Problem.of(beta, measure, zero_division, ties, min_selected, max_selected, chance)
    table = Table.of(frame, column, by, nulls, output, _settled(frame, column, nulls, prior))
    solved = solve(table, problem)
    if solved.kept_together:
        kind = table.frame.implementation.value
        warnings.warn(
            "equal probabilities were kept together, as a lazy frame has no fixed order of rows; "
            f"collect the {kind} frame to split them, or give ties='together'",
            TiesWarning,
            stacklevel=2,
        )
    labelled: T = solved.labelled()
    return labelled


def decisions(
    frame: Any,
    column: str | Sequence[str],
    *,
    beta: float = 1.0,
    by: str | Sequence[str] | None = None,
    measure: MeasureLike = "fbeta",
    zero_division: float = 0.0,
    ties: str = "split",
    nulls: str = "raise",
    min_selected: int | None = None,
    max_selected: int | None = None,
    prior: tuple[float, float | str] | None = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    confidence_level: float | None = None,
) -> Decisions:
    """Return k, threshold, expected F and its spread of each segment, without labels.

    The keys are tuples of the values of `by`, and the column where there are several; without
    either there is one, the empty tuple. With `by` and chance constraints, `overall` of what is
    returned is about all rows together.

    Parameters
    ----------
    frame : frame
        Any frame Narwhals knows, as in `decide`.
    column : str or sequence of str
        Its column of probabilities, or several.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        What to maximize, as in `maximize_expected_f`; G-mean and functions of your own for at most
        5,000 rows of a segment.
    zero_division : float, default=0.0
        Value of F if nothing is positive nor predicted.
    by : str or sequence of str, optional
        Columns that part the rows into segments.
    ties : {"split", "together"}, default="split"
        Whether equal probabilities of a segment may get different labels, as in `decide`.
    nulls : {"raise", "drop"}, default="raise"
        ``"raise"`` refuses rows without a probability, ``"drop"`` leaves them out.
    min_selected : int, default=None
        Select at least so many rows of each segment, and column.
    max_selected : int, default=None
        Select at most so many.
    prior : tuple of two floats, default=None
        The rate of positives in training, and the one among these rows: the probabilities are moved
        there first, as in `maximize_expected_f`; thresholds are of moved ones. ``"estimate"`` as
        the second takes the most likely rate of all rows (`estimate_rate`), of each column by
        itself, in one more pass.
    min_precision : float, optional
        The least precision, which holds with probability `confidence_level` under the model: see
        `maximize_expected_f`.
    min_recall : float, optional
        The least recall; both hold at once.
    confidence_level : float, optional
        The probability with which they hold; with `by` in every segment at once, and so overall,
        for which each of s segments has confidence_level^(1/s).
        The probabilities are then brought into this process, each value once with its count, and
        every size of a segment is looked at: up to 200 bytes a row at its peak.

    Notes
    -----
    Keys are for people: numbers, texts, dates and so on as Python has them; time stamps with a zone
    in UTC, since clocks that are set back show an hour twice; nanoseconds as `numpy.datetime64` and
    `numpy.timedelta64`; what Python cannot hold or tell apart as text, and times of day with
    nanoseconds as their number since midnight.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"p": [0.9, 0.2, 0.3, 0.4], "s": ["a", "a", "b", "b"]})
    >>> {key: d.k for key, d in sorted(decisions(frame, "p", by="s").items())}
    {('a',): 1, ('b',): 2}
    """
    chance = ChanceConstraint.of(min_precision, min_recall, confidence_level)
    problem = Problem.of(beta, measure, zero_division, ties, min_selected, max_selected, chance)
    settled = _settled(frame, column, nulls, prior)
    return solve(Table.of(frame, column, by, nulls, prior=settled), problem).decisions


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


class TiesWarning(UserWarning):
    """Equal probabilities of a lazy frame were kept together where splitting them is better."""


def _settled(frame: Any, column: Any, nulls: str, prior: Any) -> Any:
    """Return both rates, that of the rows estimated if that was asked for."""
    if not is_estimated(prior):
        return prior
    before = check_rate("train_rate", prior[0])
    names = names_of(column)
    check_fits(before, "columns", (len(names),))
    pairs = zip(names, np.broadcast_to(before, len(names)).tolist(), strict=True)
    return prior[0], [rate_of(summarize(frame, n, nulls=nulls), rate).value for n, rate in pairs]


def solve(table: Table, problem: Problem) -> Solved:
    """Find the threshold of each segment; keep ties together where rows have no order."""
    answers = decide_segments(table, problem)
    if not problem.may_split or table.has_order or not splits(table, answers).any():
        return Solved(table, answers, problem)
    together = replace(problem, split_ties=False)
    try:
        answers = decide_segments(table, together)
    except ValueError as error:
        if str(error) != str(together.no_set()):
            raise
        raise ValueError(
            f"no set of {problem.least} to {problem.most} rows keeps equal probabilities together, "
            "and a lazy frame has no fixed order of rows to split them by: collect it first"
        ) from None
    return Solved(table, answers, together, kept_together=True)


@dataclass(frozen=True)
class Solved:
    """The thresholds of a frame's segments, found; labels still to be made."""

    table: Table
    answers: Answers
    problem: Problem
    kept_together: bool = False  # where splitting ties would have been better

    @property
    def decisions(self) -> Decisions:
        """The decision of each segment."""
        found = self.answers.decisions(self.problem.beta)
        overall = dict(zip(self.table.columns, self.answers.overall, strict=False))
        return Decisions(
            zip(self.table.python_keys(), found, strict=True),
            overall=overall if len(overall) > 1 else next(iter(overall.values()), None),
            kept_together=self.kept_together,
        )

    def labelled(self) -> Any:
        """Return the frame with its labels."""
        cuts = self.answers.threshold, self.answers.k
        return with_labels(self.table, *cuts, may_split=self.problem.may_split).to_native()
