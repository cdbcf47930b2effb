"""The public functions on frames: the exact decision where the rows are."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar, overload

import numpy as np

from argmaxf._base.shared_docs import with_entries_of
from argmaxf.constraints import ChanceConstraint
from argmaxf.empirical.labelled_sketch import LabelledSketch
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.sketch import ProbabilitySketch, groups_of_sketch
from argmaxf.frames.labelled import LabelledRows, tune
from argmaxf.frames.solve import Decisions, sketch_of, solve
from argmaxf.frames.table import Table, names_of
from argmaxf.measures import Interval, MeasureLike
from argmaxf.prior import check_fits, check_rate, is_estimated, most_likely_rate
from argmaxf.problem import Problem

T = TypeVar("T")


@overload
def summarize(frame: Any, column: str, *, nulls: str = ...) -> ProbabilitySketch: ...


@overload
def summarize(
    frame: Any,
    column: str,
    *,
    nulls: str = ...,
    label: str,
    weight: str | None = ...,
    pos_label: Any = ...,
) -> LabelledSketch: ...


@with_entries_of(tune)
def summarize(
    frame: Any,
    column: str,
    *,
    nulls: str = "raise",
    label: str | None = None,
    weight: str | None = None,
    pos_label: Any = None,
) -> ProbabilitySketch | LabelledSketch:
    """Return the mergeable summary of a column of probabilities, or of labelled scores.

    Parameters
    ----------
    frame : as in `tune`
    column : str
        Its column of probabilities, or of scores; decimals and float32 are computed in float64.
    nulls : {"raise", "drop"}, default="raise"
        ``"raise"`` refuses rows without a value, ``"drop"`` leaves them out.
    label : str, optional
        The column of true labels: booleans, or 0 and 1; any others with `pos_label`. With it, the
        summary is a `LabelledSketch`, from which thresholds are tuned.
    weight : str, optional
        With `label`: the column of weights of the rows.
    pos_label : as in `tune`

    Returns
    -------
    ProbabilitySketch or LabelledSketch

    Notes
    -----
    One pass over the column in batches, one of which is held at a time; Dask summarizes its
    partitions where they are.

    Examples
    --------
    >>> import polars as pl
    >>> a = summarize(pl.DataFrame({"p": [0.05, 0.45, 0.1]}), "p")
    >>> b = summarize(pl.LazyFrame({"p": [0.3, 0.4]}), "p")
    >>> (a + b).n
    5
    """
    if label is not None:
        return LabelledRows.of(frame, label, column, weight, None, nulls, pos_label).sketch()
    if weight is not None or pos_label is not None:
        raise ValueError("weight and pos_label are for labelled scores: give label too")
    rows = Table.of(frame, column, None, nulls).rows(0)
    return rows.refusing(partial(sketch_of, rows))


@with_entries_of(maximize_expected_f, tune)
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
    """Return the frame with a column of labels that have the highest expected F.

    The labels are those of `maximize_expected_f`. Only the probabilities are read, and a lazy frame
    stays lazy: the threshold is computed immediately, and the labels when the frame is collected.

    Parameters
    ----------
    frame : as in `tune`
    column : str or sequence of str
        The column of probabilities; decimals and float32 are computed in float64. Several columns,
        one for each label of a multilabel problem, are decided separately in the same passes.
    beta : as in `maximize_expected_f`
    measure : str, Measure or callable, default="fbeta"
        What to maximize, as in `maximize_expected_f`. A user-defined function takes at most 5,000
        rows in a segment; so does G-mean with `by`.
    zero_division : as in `maximize_expected_f`
    by : str or sequence of str, optional
        Columns whose values define segments. Each segment is decided separately, all in the same
        passes. The engine's own group-by decides which values are equal; null and NaN are refused.
    output : str, default="label"
        Name of the column of booleans to add; for several columns ``"{column}_{output}"``. A name
        that the frame has already is refused.
    ties : {"split", "together"}, default="split"
        ``"split"`` may select only the first of several equal probabilities, where a limit or the
        measure needs it; F_β never does. A lazy frame has no fixed order of rows: its equal
        probabilities are kept together, with a `TiesWarning` if that changes the labels.
        ``"together"`` gives equal probabilities of a segment the same label.
    nulls : {"raise", "drop"}, default="raise"
        ``"raise"`` refuses rows without a probability, ``"drop"`` leaves them out of the result.
    min_selected : int, default=None
        Select at least this many rows of each segment and column.
    max_selected : int, default=None
        Select at most this many rows of each segment and column. The optimum within the limits is
        exact.
    prior : tuple of two floats, default=None
        The rate of positives in training, and the rate among these rows. The probabilities are
        first corrected to the second rate (`shift_prior`), and thresholds apply to the corrected
        ones. ``"estimate"`` as the second rate takes the most likely rate of all rows
        (`estimate_rate`), for each column separately, in one more pass.
    min_precision : float, optional
        The minimum precision, which holds with probability `confidence_level` under the model: see
        `maximize_expected_f`.
    min_recall : float, optional
        The minimum recall; both hold at once.
    confidence_level : float, optional
        The probability with which they hold. With `by` they hold in all s segments at once, and so
        overall: each segment is decided at confidence_level^(1/s). The probabilities are then read
        into this process, each value once with its count, and every number of selected rows is
        evaluated: up to 200 bytes per row in memory.

    Notes
    -----
    A lazy frame is read in batches, and memory does not grow with the number of rows. Polars and
    DuckDB read the column once if its first 4 million rows are like the others, and three to five
    times if they are not (because rows are sorted by `column`, for instance), or if very few of
    them are positive. Dask works on its partitions and Spark uses its own expressions, three to
    five times. For limits, and for measures that are not ratios, the column is read once and
    written to a temporary file in TMPDIR with 8 bytes per row.

    With `by`, a first query finds the segments and numbers them; their keys stay in the engine, for
    DuckDB in a temporary table of its connection. The frame is then read once for every 33 million
    rows, and once to five times for each segment of more rows.

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
            f"collect the {kind} frame to split them, or pass ties='together' to accept this",
            TiesWarning,
            stacklevel=2,
        )
    labelled: T = solved.labelled()
    return labelled


def decisions(
    frame: Any,
    column: str | Sequence[str],
    *,
    by: str | Sequence[str] | None = None,
    nulls: str = "raise",
    prior: tuple[float, float | str] | None = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    confidence_level: float | None = None,
    **options: Any,
) -> Decisions:
    """Return k, threshold, expected F and its spread of each segment, without labels.

    The parameters and further `options` are those of `decide`, without `output`. The keys are
    tuples of the values of `by`, and the column where there are several; without either there is
    one, the empty tuple.

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
    table = Table.of(frame, column, by, nulls, prior=_settled(frame, column, nulls, prior))
    return solve(table, Problem.of(**options, chance=chance)).decisions


class TiesWarning(UserWarning):
    """Equal probabilities of a lazy frame were kept together where splitting them is better.

    Examples
    --------
    >>> import warnings
    >>> from argmaxf import TiesWarning
    >>> warnings.simplefilter("error", TiesWarning)
    """


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
