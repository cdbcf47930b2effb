"""Decisions about the columns and segments of a frame, and its labels.

A frame in memory is decided as arrays are, and so is a column of at most HELD items. Of more items
batches are read, as often as the band needs (`expected/band.py`), once if the first HELD of them
show where it is: Polars, DuckDB and Arrow stream them, Dask has the passes done where its
partitions are, Spark sums by its own expressions (`expression_passes.py`). Segments are held about
PART items at a time; one of more items is decided as a frame of its own.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple, TypeVar, overload

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Floats, Ints, contiguous
from argmaxf._base.atomic_write import spilling, write_all
from argmaxf._base.segments import Segments
from argmaxf._base.shared_docs import with_entries_of
from argmaxf._base.validation import NotAProbability, Unusable, check_same
from argmaxf.constraints import ChanceConstraint
from argmaxf.empirical.labelled_sketch import LabelledSketch
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
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.sets import decide_by, decide_each, decide_sets
from argmaxf.expected.sketch import ProbabilitySketch, groups_of_sketch, sketch_of_table
from argmaxf.expected.threads import CHUNK, in_turn, processors
from argmaxf.frames.engines import Dask, Frame, Spark, as_frame, engine_of, unused, with_arrays
from argmaxf.frames.expression_passes import ExpressionPasses
from argmaxf.frames.labelled import LabelledRows, tune
from argmaxf.frames.table import SEGMENT, Batch, Begun, Key, P, Rows, Table, check_usable, names_of
from argmaxf.measures import Interval, MeasureLike
from argmaxf.prior import check_fits, check_rate, is_estimated, most_likely_rate
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
        overall: each segment is decided at confidence_level^(1/s). All distinct probabilities and
        their counts are then held in memory, up to 200 bytes per row, and every number of selected
        rows is evaluated.

    Notes
    -----
    A lazy frame is read in batches, and memory does not grow with the number of rows. Polars and
    DuckDB read the column once if its first 4 million rows are like the others, and three to five
    times if they are not (because rows are sorted by `column`, for instance), or if very few of
    them are positive. Dask and Spark read it three to five times, on their workers. For limits,
    and for measures that are not ratios, the column is read once and written to a temporary file in
    TMPDIR with 8 bytes per row.

    With `by`, a first query finds the segments and numbers them; their keys stay in the engine, for
    DuckDB in a temporary table of its connection. The frame is then read once for every 33 million
    rows, and each segment of more rows is read one to five times.

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
    Keys are Python objects: numbers, strings, dates and so on. Time stamps with a zone are in UTC.
    Time stamps and durations in nanoseconds are `numpy.datetime64` and `numpy.timedelta64`; with a
    zone they are strings. Times of day with nanoseconds are integers: nanoseconds since midnight.
    Values that Python cannot represent, or cannot distinguish, are strings.

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
            overall[column] = each.overall
            numbers = (getattr(each, name).tolist() for name in NUMBERS)
            guarantees = each.guarantee or [None] * len(keys)
            rows = zip(keys, guarantees, *numbers, strict=True)
            for key, guarantee, k, threshold, mean, std, n in rows:
                found[(*key, column) if len(columns) > 1 else key] = Decision(
                    None, k, threshold, mean, std, each.beta, n, guarantee=guarantee
                )
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
    answers = [_decide_column(table.rows(j), problem) for j in range(len(table.columns))]
    if table.has_order or not any(answer.splits for answer in answers):
        return Solved(table, answers)
    together = replace(problem, split_ties=False)
    try:
        kept = [_decide_column(table.rows(j), together) for j in range(len(table.columns))]
        return Solved(table, kept, kept_together=True)
    except ValueError as error:
        if str(error) != str(together.no_set()):
            raise
        raise ValueError(
            f"no set of {problem.least} to {problem.most} rows keeps equal probabilities together, "
            "and a lazy frame has no fixed order of rows to split them by: collect it first"
        ) from None


def _decide_column(rows: Rows, problem: Problem) -> Answer:
    """Decide the segments of a column; name what is no probability, or has no segment."""
    decide_rows = _decide_set if rows.table.sizes is None else _decide_segments
    return rows.refusing(partial(decide_rows, rows, problem))


def _decide_segments(rows: Rows, problem: Problem) -> Answer:
    """Decide the segments of a column, those of a lazy frame about PART items at a time.

    Chance constraints, which all segments share, need all items.
    """
    sizes: Any = rows.table.sizes
    called, answers = rows.name_of_segment, []
    if rows.table.is_eager:
        held = rows.begin(all_=True).columns()
        segments = Segments.of_numbers(held[SEGMENT], sizes.size)
        return _decide_held(held[P], segments, problem, called)
    for first, offsets, columns in rows.parts(int(sizes.sum()) if problem.chance else PART):
        if isinstance(columns, Rows):
            answers.append(_decide_set(columns, problem))
            check_same(np.diff(offsets), answers[-1].decision.n)
        else:
            segments = Segments(np.arange(offsets.size - 1), None, offsets)
            name = lambda i, first=first: called(first + i)  # noqa: E731
            answers.append(_decide_held(columns[P], segments, problem, name))
    if problem.chance:
        return answers[0]
    parts = [[getattr(each.decision, name) for each in answers] for name in NUMBERS]
    numbers: Any = dict(zip(NUMBERS, map(np.concatenate, parts), strict=True))
    decision = Decision(None, beta=problem.beta, **numbers)
    return Answer(decision, any(each.splits for each in answers))


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
        if expressions.n > rows.HELD and (found := band.decide(expressions, problem)):
            return _of_passes(expressions, found, problem)
        by_band = False
    begun = rows.begin(all_=needs_all)
    if begun.rest is None:
        return _decide_array(begun.columns()[P], problem)
    if by_band:
        columns = ColumnPasses(rows, begun, problem)
        if found := band.decide(columns, problem):
            return _of_passes(columns, found, problem)
        begun = rows.begin()
    with closing(Spill()) as spill:
        for batch in begun.batches():
            check_usable(batch)
            spill.append(batch[P])
        passes = BatchPasses(spill.batches)
        passes.n = spill.size
        best: Any = band.decide(passes, problem) if band.knows(problem) else None
        if best is None:
            best = search.decide(Source(passes), problem).decision(spill.size)
        return _of_passes(passes, best, problem)


def _decide_array(p: NDArray[Any], problem: Problem) -> Answer:
    """Decide one set of items."""
    if not p.size:
        raise Unusable
    decision = decide_sets(p, np.array([0, p.size]), problem)
    return _answer(decision, np.count_nonzero(p >= decision.threshold), problem)


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


class Spill:
    """Numbers in a temporary file without a name, which vanishes with the process."""

    def __init__(self) -> None:
        self.file: IO[bytes] = TemporaryFile(prefix="argmaxf-", buffering=0)  # noqa: SIM115
        self.size = 0

    def close(self) -> None:
        """Give the file back."""
        self.file.close()

    def append(self, values: NDArray[Any]) -> None:
        """Add numbers at the end."""
        with spilling():
            write_all(self.file, np.ascontiguousarray(values, np.float64).view(np.uint8).data)
        self.size += values.size

    def batches(self) -> Iterator[Floats]:
        """Yield all numbers in order."""
        for start in range(0, self.size, CHUNK):
            values = np.empty(min(CHUNK, self.size - start))
            os.preadv(self.file.fileno(), [values.view(np.uint8).data], 8 * start)
            yield values
