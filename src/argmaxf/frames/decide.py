"""The public functions on frames: the exact decision where the rows are."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import narwhals as nw
import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.constraints import ChanceConstraint
from argmaxf.expected.decision import Decision
from argmaxf.expected.sketch import ProbabilitySketch, groups_of_sketch, sketch_of_table
from argmaxf.frames.engine_passes import BITS, LEAST, Answers, decide_segments, items_above
from argmaxf.frames.engines import Frame, as_frame, engine_of, with_arrays
from argmaxf.frames.grouping import checked, refuse_bad, sketch_table, summarized
from argmaxf.frames.table import Key, Table, names_of, unused
from argmaxf.measures import Interval, MeasureLike
from argmaxf.prior import check_fits, check_rate, is_estimated, most_likely_rate
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
    if not isinstance(table.frame, nw.DataFrame):
        rows = checked(summarized(table.items, (), BITS, LEAST))
        return sketch_of_table(sketch_table(rows))
    sketch = ProbabilitySketch()
    for p, _ in table.batches(0):
        refuse_bad(int(np.isnan(p).sum()), p[(p < 0.0) | (p > 1.0)])
        sketch.update(p)
    return sketch


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

    The parameters are those of `decide`, without `output`. The keys are tuples of the values of
    `by`, and the column where there are several; without either there is one, the empty tuple.

    Returns
    -------
    Decisions
        A dictionary of `Decision` by key. With `by` and chance constraints, its `overall` is about
        all rows together; `kept_together` says that ties of a lazy frame were not split.

    Notes
    -----
    Keys are for people: numbers, texts, dates and so on as Python has them; time stamps with a zone
    in UTC, since clocks that are set back show an hour twice; nanoseconds as `numpy.datetime64` and
    `numpy.timedelta64`, with a zone as text; what Python cannot hold or tell apart as text, and
    times of day with nanoseconds as their number since midnight.

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


def rate_of(sketch: ProbabilitySketch, train_rate: float) -> Interval:
    """Return the most likely rate of positives, as `estimate_rate` gives it for the items.

    Items of a group count as their mean. Within a group p, and 1 - p, vary by a sixty-fourth, so
    each likelihood is right to a few millionths.
    """
    if not sketch.n:
        raise ValueError("the rate must be estimated from at least one probability, got none")
    groups = groups_of_sketch(sketch)
    before = float(check_rate("train_rate", train_rate))
    return most_likely_rate(groups.mass / groups.count, groups.count, before)


def solve(table: Table, problem: Problem) -> Solved:
    """Find the threshold of each segment; keep ties together where rows have no order."""
    answers = decide_segments(table, problem)
    if not problem.may_split or table.has_order:
        return Solved(table, answers, problem)
    if (items_above(table, answers.threshold) == answers.k).all():  # no ties are split
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
        table, number = self.table, self.table.number
        if isinstance(table.frame, nw.DataFrame):
            m = len(table.outputs)
            labels = {out: self._array(j, m) for j, out in enumerate(table.outputs)}
            labelled = with_arrays(table.frame, labels)
        else:
            labelled = self._by_expression()
        return (labelled.drop(number) if number else labelled).to_native()

    def _array(self, j: int, m: int) -> Bools:
        """Return the labels of column j of m of a frame in memory."""
        threshold, k = self.answers.threshold[j::m], self.answers.k[j::m]
        p, segment = (np.concatenate(parts) for parts in zip(*self.table.batches(j), strict=True))
        cut = threshold[segment]
        selected: Bools = p > cut
        wanted = k - np.bincount(segment[selected], minlength=k.size)
        last = last_ties([(p, segment)], threshold, wanted)
        selected |= (p == cut) & (np.arange(p.size) <= last[segment])
        return selected

    def _by_expression(self) -> Frame:
        """Add the labels to a lazy frame; where ties are split, by the numbers of its rows."""
        table, m = self.table, len(self.table.outputs)
        split = self.problem.may_split and table.has_order
        wanted = [f"argmaxf_{what}_{j}" for what in ("threshold", "last") for j in range(m)]
        taken = [*table.frame.collect_schema(), *table.outputs]
        row, *names = unused(taken, ["argmaxf_row", *wanted])
        cuts, lasts = names[:m], names[m:]
        values = {name: self.answers.threshold[j::m] for j, name in enumerate(cuts)}
        rows = table.frame
        if split:
            rows = as_frame(rows.to_native().with_row_index(row))
            above = items_above(table, np.nextafter(self.answers.threshold, np.inf))
            for j, name in enumerate(lasts):
                missing = (self.answers.k - above)[j::m]
                last = last_ties(self.table.batches(j), values[cuts[j]], missing)
                values[name] = last.astype(np.float64)
        if table.number:
            rows = engine_of(rows).look_up(rows, table.number, values)
        labels = []
        for j, (column, output) in enumerate(zip(table.columns, table.outputs, strict=True)):
            at = {n: nw.col(n) if table.number else float(v[0]) for n, v in values.items()}
            p, cut = table.p(column), at[cuts[j]]
            chosen = p >= cut
            if split:
                chosen = (p > cut) | ((p == cut) & (nw.col(row) <= at[lasts[j]]))
            labels.append(chosen.alias(output))
        helpers = [*(values if table.number else ()), *([row] if split else ())]
        return rows.with_columns(*labels).drop(*helpers)


def last_ties(batches: Iterable[tuple[Floats, Ints]], threshold: Floats, wanted: Ints) -> Ints:
    """Return the row of the last item to select at each segment's threshold, -1 for none.

    Of the items of a segment that are equal to its threshold, so many as `wanted` are selected,
    the first ones in the order of rows.
    """
    last, seen, start = np.full(wanted.size, -1), np.zeros(wanted.size, np.int64), 0
    for p, segment in batches:
        equal = np.flatnonzero(p == threshold[segment])
        equal = equal[np.argsort(segment[equal], kind="stable")]
        found, first, of = np.unique(segment[equal], return_index=True, return_inverse=True)
        rank = np.arange(equal.size) - first[of] + seen[segment[equal]] + 1
        ends = equal[rank == wanted[segment[equal]]]
        last[segment[ends]] = start + ends
        seen[found] += np.diff(np.append(first, equal.size))
        start += p.size
    return last
