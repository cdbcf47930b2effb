"""Labelled rows of a frame: thresholds tuned on them, and how well predictions fit them.

Rows are read in batches and counted in the bins of their scores (`empirical/bins.py`), then the few
of them between which the best threshold lies are read once more. Up to HELD rows are held instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn, TypeVar

import narwhals as nw
import numpy as np

from argmaxf._base.validation import check_strictly_between, check_zero_division
from argmaxf.constraints import ChanceConstraint, Constraints
from argmaxf.empirical.bins import NotLabelled
from argmaxf.empirical.cuts import CutProblem, counted
from argmaxf.empirical.guarantees import chance_of_each, check_can_be_guaranteed
from argmaxf.empirical.interval import WHY, interval_of_counts
from argmaxf.empirical.labelled_sketch import LabelledSketch, add_rows, best_in, sketch_of_bins
from argmaxf.empirical.threshold import Solution, Threshold, joined, solution, solve_all
from argmaxf.frames.batches import BATCH_ROWS, column_batches, on_partitions
from argmaxf.frames.engines import (
    Dask,
    Frame,
    Spark,
    as_frame,
    engine_of,
    key_of,
    missing,
    unused,
)
from argmaxf.frames.expression_passes import labelled_bins
from argmaxf.frames.solve import HELD
from argmaxf.frames.spill import Part, Spill, by_segment
from argmaxf.frames.table import (
    LABEL,
    SCORE,
    SEGMENT,
    WEIGHT,
    Key,
    Rule,
    Table,
    check_columns,
    names_of,
    number,
    one,
    python_keys,
    refusal,
)
from argmaxf.measures import Interval, MeasureLike, as_measure

T = TypeVar("T")
PART = 1 << 24  # rows of segments that are held at a time: 285 MB with weights
MISSING, WRONG = 2, 3  # labels that are none
Rows = tuple[Any, Any, Any]  # labels as bytes, scores, and weights or None
TEXTS = (nw.String, nw.Categorical, nw.Enum)
WIDE = (nw.Int64, nw.UInt64, nw.Int128, nw.UInt128)  # integers, maybe beyond EXACT
EXACT = 2**53  # from it on, doubles do not hold every integer
COUNTED = tuple(f"argmaxf_{name}" for name in ("true", "predicted", "positives", "rows", "bad"))


@dataclass(frozen=True)
class LabelledTable:
    """A frame with a column of labels, one of scores, and perhaps weights and segments."""

    table: Table
    label: str
    pos_label: Any = None

    @classmethod
    def of(
        cls,
        frame: Any,
        label: str,
        score: str,
        weight: str | None = None,
        by: Any = None,
        nulls: str = "raise",
        pos_label: Any = None,
    ) -> LabelledTable:
        """Check what a user gave."""
        columns = (score,) if weight is None else (score, weight)
        table = Table.of(frame, columns, by, nulls, beside=[label])
        check_label(table.frame, label, pos_label)
        check_exact(table.frame, score)
        return cls(table, label, pos_label)

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return len(self.table.columns) > 1

    @property
    def items(self) -> Frame:
        """Return labels as bytes, scores, weights and the numbers of segments."""
        table, (score, *weight) = self.table, self.table.columns
        is_float = table.frame.collect_schema()[score] in (nw.Float32, nw.Float64)
        columns = [
            label_code(table.frame, self.label, self.pos_label).alias(LABEL),
            (nw.col(score) if is_float else number(score)).alias(SCORE),
            *(number(name).fill_null(-1.0).alias(WEIGHT) for name in weight),
            *([nw.col(table.number).alias(SEGMENT)] if table.number else []),
        ]
        return table.frame.select(*columns)

    def batches(
        self, items: Frame | None = None, *, ordered: bool = True
    ) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Yield labels, scores, weights and numbers of segments, or None for what is not there."""
        items, advance = self.items if items is None else items, None
        if self.table.begin:
            advance = self.table.begin()
        names = items.collect_schema().names()
        for y, score, *rest in column_batches(items, names, ordered=ordered):
            if advance:
                advance(score.size)
            weight = rest.pop(0) if self.is_weighted else None
            yield y.astype(np.int8, copy=False), score, weight, rest[0] if rest else None

    def refuse_no_weight(self, any_weight: Any) -> None:
        """Refuse rows that all have no weight."""
        if not any_weight:
            raise ValueError(f"column {self.table.columns[-1]!r} must not all be zero")

    def refuse_unknown(self, positives: Any) -> None:
        """Refuse a positive label that no row has."""
        if self.pos_label is not None and not positives:
            refuse_absent(self.label, self.pos_label)

    def rows(self) -> Iterator[Rows]:
        """Yield labels, scores and weights."""
        return (batch[:3] for batch in self.batches())

    def between(self, low: float, high: float) -> Iterator[Rows]:
        """Yield the rows with scores in a range."""
        score = nw.col(SCORE)
        rows = self.items.filter((score >= low) & (score <= high))
        return (batch[:3] for batch in self.batches(rows))

    def sketch(self) -> LabelledSketch:
        """Return the sketch of all rows, made where they are; raise NotLabelled if one is none."""
        engine, sketch = engine_of(self.table.frame), LabelledSketch()
        if isinstance(engine, Dask):
            work = partial(_sketch_of_part, self.is_weighted)
            parts = on_partitions(self.items, work, at_once=1 << 20)
            return sum(parts, start=sketch)
        if isinstance(engine, Spark):
            bins = labelled_bins(self.items, weighted=self.is_weighted)
            is_float = self.items.collect_schema()[SCORE] == nw.Float32
            return sketch_of_bins(bins, np.float32 if is_float else np.float64)
        for rows in self.rows():
            add_rows(sketch, *rows)
        return sketch

    def refusing(self, work: Callable[[], T]) -> T:
        """Do some work on the rows; name what is no label, score, weight or segment."""
        with suppress(NotLabelled):
            return work()
        (score, *weight), rules = self.table.columns, []
        for name in weight:
            w, words = number(name), "must be finite and not negative"
            rules.append(Rule(name, words, (w < 0.0) | (w == float("inf"))))
        rules.append(label_rule(self.table.frame, self.label, self.pos_label))
        raise refusal(self.table.frame, [Rule(score), *rules], self.table.number, "score")


def check_label(frame: Frame, label: str, pos_label: Any) -> None:
    """Refuse a column that cannot hold 0 and 1, or the positive label."""
    kind = frame.collect_schema()[label]
    if pos_label is None and not (kind.is_numeric() or kind == nw.Boolean):
        raise ValueError(
            f"column {label!r} must hold 0 and 1, got {kind}; pass the positive label as pos_label"
        )
    if pos_label is not None and isinstance(pos_label, str) != (kind in TEXTS):
        raise ValueError(
            f"pos_label must be a value of column {label!r} ({kind}), got {pos_label!r}"
        )


def check_exact(frame: Frame, score: str) -> None:
    """Refuse whole numbers that floats may not equal: different scores would become one."""
    if frame.collect_schema()[score] not in WIDE:
        return
    ends = frame.select(nw.col(score).min().alias("low"), nw.col(score).max().alias("high"))
    found: Any = engine_of(frame).run(ends).row(0)
    for end in found:
        # Dask has floats where a partition is empty
        if isinstance(end, int | float) and abs(end) >= EXACT:
            raise ValueError(
                f"column {score!r} must hold numbers that a float holds exactly, got {end}; "
                "subtract a common offset, or pass ranks"
            )


def refuse_absent(label: str, pos_label: Any) -> NoReturn:
    """Refuse a positive label that no row has."""
    raise ValueError(
        f"pos_label must be one of the labels, got {pos_label!r}, which column {label!r} never has"
    )


def label_rule(frame: Frame, label: str, pos_label: Any) -> Rule:
    """Return what labels must be."""
    if pos_label is not None or frame.collect_schema()[label] == nw.Boolean:
        return Rule(label)
    y = nw.col(label)
    return Rule(label, "must hold 0 and 1", ~((y == 0) | (y == 1)))


def label_code(frame: Frame, label: str, pos_label: Any) -> nw.Expr:
    """Return labels as 0 and 1, MISSING and WRONG."""
    y = nw.col(label)
    if pos_label is not None:
        code = (y == pos_label).cast(nw.Int8)
    elif frame.collect_schema()[label] == nw.Boolean:
        code = y.cast(nw.Int8)
    else:
        wrong = ((y != 0) & (y != 1)).cast(nw.Int8)
        code = (y == 1).cast(nw.Int8) + wrong * WRONG
    return nw.when(missing(frame, [label])).then(nw.lit(MISSING)).otherwise(code).cast(nw.Int8)


def _sketch_of_part(weighted: bool, part: Any) -> LabelledSketch:
    """Return the sketch of a partition of Dask, where it is."""
    sketch, names = LabelledSketch(), [LABEL, SCORE, *([WEIGHT] if weighted else [])]
    for y, score, *weight in column_batches(as_frame(part), names):
        add_rows(sketch, y, score, weight[0] if weighted else None)
    return sketch


def summarize_labelled(rows: LabelledTable) -> LabelledSketch:
    """Return the sketch of labelled rows, of which there must be some."""

    sketch = rows.refusing(rows.sketch)
    if not sketch.n:
        rows.refusing(partial(_held, rows.batches(), 0))
        rows.refuse_no_weight(False)
    return sketch


@dataclass(frozen=True)
class Search:
    """The search for thresholds on labelled rows."""

    rows: LabelledTable
    problem: CutProblem
    confidence_level: float | None = None

    @property
    def needs_all(self) -> bool:
        """Whether all rows must be held: a guarantee tests every score."""
        return self.confidence_level is not None or not self.problem.is_bounded

    def threshold(self) -> Threshold:
        """Return the best threshold, or those of the segments."""
        return self.rows.refusing(self._segments if self.rows.table.number else self._whole)

    def _whole(self) -> Threshold:
        engine = engine_of(self.rows.table.frame)
        if self.needs_all or not isinstance(engine, Dask | Spark):
            held = _held(self.rows.batches(), None if self.needs_all else HELD)
            if held is not None:
                self.rows.refuse_no_weight(held[2] is None or held[2].any())
                self.rows.refuse_unknown((held[0] == 1).any())
                return self._solution(held[:3], self._chance(1, held[2])).best
        sketch = summarize_labelled(self.rows)
        self.rows.refuse_unknown(sketch.positives)
        return best_in(sketch, self.problem, self.rows.between).best

    def _chance(self, segments: int, weight: Any) -> ChanceConstraint | None:
        """Return what each segment must guarantee."""
        level, constraints = self.confidence_level, self.problem.constraints
        if level is not None:
            counted_weight = None if weight is None else weight[weight > 0.0]
            check_can_be_guaranteed(constraints, None, counted_weight, level)
        return chance_of_each(constraints, level, segments)

    def _solution(self, columns: Any, chance: ChanceConstraint | None) -> Solution:
        y, score, weight = columns
        return solution(*counted(y == 1, score, weight), self.problem, chance)

    def _segments(self) -> Threshold:
        """Solve segments one after the other, in memory or in temporary files."""
        rows, sizes, names = self.rows, self.rows.table.sizes, self.rows.table.python_keys()
        names = [key[0] if len(key) == 1 else key for key in names]
        if sizes is None or not sizes.any():
            raise NotLabelled
        most = PART if self.confidence_level is None else int(sizes.sum())
        score, order = rows.items.collect_schema()[SCORE], []
        kinds = [np.int8, np.float32 if score == nw.Float32 else np.float64]
        kinds += [np.float64] if rows.is_weighted else []
        read = (tuple(c for c in b if c is not None) for b in _checked(rows.batches(ordered=False)))

        def works(parts: Iterator[Part]) -> Iterator[tuple[Any, Callable[[], Solution]]]:
            for first, offsets, columns in parts:
                every: Any = (*columns, None)[:3]
                chance = self._chance(sizes.size, None)
                if chance is not None and every[2] is not None:  # of all rows, as they are held
                    some = np.add.reduceat(every[2] > 0.0, offsets[:-1])
                    chance = self._chance(int(np.count_nonzero(some)), every[2])
                for i, (start, stop) in enumerate(pairwise(offsets.tolist()), first):
                    here = every
                    if not isinstance(columns[0], Spill):
                        here = [None if each is None else each[start:stop] for each in every]
                        if here[2] is not None and not here[2].any():
                            continue
                    order.append(i)
                    yield names[i], partial(self._solved, here, chance)

        with by_segment(sizes, kinds, read, most) as parts:
            found = solve_all("segment", works(parts))
        rows.refuse_no_weight(order)
        rows.refuse_unknown(sum(each.counts[2] for each in found))
        with suppress(TypeError):  # values of several types stay as they are
            pairs = sorted(zip(order, found, strict=True), key=lambda pair: names[pair[0]])
            order, found = map(list, zip(*pairs, strict=True))
        segments = np.empty(len(order), object)
        segments[:] = [names[i] for i in order]
        if not any(isinstance(name, tuple) for name in names):
            segments = np.array(segments.tolist())
        return joined(segments, found, self.problem, self.confidence_level)

    def _solved(self, columns: Any, chance: ChanceConstraint | None) -> Solution:
        """Return the best threshold of a segment in memory, or in temporary files."""
        if not isinstance(columns[0], Spill):
            return self._solution(columns, chance)
        if self.needs_all:
            return self._solution([c if c is None else c[:] for c in columns], chance)

        def batches() -> Iterator[Any]:
            for start in range(0, columns[0].size, BATCH_ROWS):
                stop = start + BATCH_ROWS
                yield [None if each is None else each[start:stop] for each in columns]

        def between(low: float, high: float) -> Iterator[Any]:
            for rows in batches():
                inside = (rows[1] >= low) & (rows[1] <= high)
                yield [None if each is None else each[inside] for each in rows]

        sketch = LabelledSketch()
        for rows in batches():
            add_rows(sketch, *rows)
        return best_in(sketch, self.problem, between)


def _checked(batches: Iterable[Any]) -> Iterator[Any]:
    """Raise NotLabelled at a row that cannot be used, or is in no segment."""
    for y, score, weight, segment in batches:
        fine = y.max(initial=0) <= 1 and not np.isnan(score).any()
        fine &= weight is None or bool(np.all((weight >= 0.0) & (weight < np.inf)))
        if not fine or (segment is not None and segment.min(initial=0) < 0):
            raise NotLabelled
        yield y, score, weight, segment


def _held(batches: Iterable[Any], most: int | None) -> Any:
    """Return labels, scores, weights and segments of all rows, or None if there are too many."""
    parts, size = [], 0
    for batch in _checked(batches):
        size += batch[0].size
        if most is not None and size > most:
            return None
        parts.append(batch)
    if not size:
        raise NotLabelled
    columns = zip(*parts, strict=True)
    return [None if each[0] is None else np.concatenate(each) for each in columns]


def tune(
    frame: Any,
    *,
    label: str,
    score: str,
    weight: str | None = None,
    by: str | Sequence[str] | None = None,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    zero_division: float = 0.0,
    min_precision: float | None = None,
    min_recall: float | None = None,
    max_selected_rate: float | None = None,
    confidence_level: float | None = None,
    pos_label: Any = None,
    nulls: str = "raise",
) -> Threshold:
    """Return the threshold with the highest F_β on the labelled scores of a frame.

    The answer is that of `maximize_empirical_f` on the columns as arrays: exact over all
    thresholds.

    Parameters
    ----------
    frame : frame
        Any frame Narwhals knows, eager or lazy: pandas, Polars, PyArrow, DuckDB, Dask, PySpark.
    label : str
        The column of true labels: booleans, or 0 and 1; any others with `pos_label`.
    score : str
        The column of scores, larger meaning more positive.
    weight : str, optional
        The column of weights of the rows.
    by : str or sequence of str, optional
        Columns whose values define segments. Each segment gets its own threshold, and the
        constraints hold in each; null and NaN are refused.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        A name, an object of `argmaxf.measures`, or a function of the counts tp, k, s, n.
    zero_division : float, default=0.0
        Value of F when nothing is positive and nothing is predicted.
    min_precision : float, optional
        Consider only thresholds with at least this precision.
    min_recall : float, optional
        Consider only thresholds with at least this recall.
    max_selected_rate : float, optional
        Consider only thresholds that select at most this share of the rows.
    confidence_level : float, optional
        The probability, over draws of the labelled rows, that all constraints hold in the
        population, as in `maximize_empirical_f`.
    pos_label : scalar, optional
        The positive label, if the labels are not 0 and 1; all others are negative.
    nulls : {"raise", "drop"}, default="raise"
        ``"raise"`` refuses rows without a label, score or weight, ``"drop"`` leaves them out.

    Returns
    -------
    Threshold
        With `by`, its fields are arrays with one entry for each segment, `segment` has their
        values (tuples for several columns), and `overall` all rows together.

    Notes
    -----
    Up to 4 million rows of a lazy frame are held and read once. More rows are read two to four
    times in batches: all of them are counted in bins of the scores (a `LabelledSketch`), then the
    few rows in the bins that can hold the best threshold are read again and sorted. Memory does not
    grow with the number of rows. All rows are held with `confidence_level` and for user-defined
    measures: up to 60 bytes each. With `by`, more than 16 million rows are divided into temporary
    files in TMPDIR, with 13 to 21 bytes per row.

    Examples
    --------
    >>> import polars as pl
    >>> y, score = [0, 0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.5, 0.6, 0.9]
    >>> frame = pl.DataFrame({"y": y, "score": score})
    >>> best = tune(frame, label="y", score="score")
    >>> best.threshold, round(best.value, 4), best.k
    (0.25, 0.8571, 4)
    >>> tune(frame, label="y", score="score", min_precision=0.9).threshold
    0.75
    """
    rows = LabelledTable.of(frame, label, score, weight, by, nulls, pos_label)
    constraints = Constraints(min_precision, min_recall, max_selected_rate)
    zero = check_zero_division(zero_division)
    problem = CutProblem(as_measure(measure, beta), zero, constraints)
    return Search(rows, problem, confidence_level).threshold()


def evaluate(
    frame: Any,
    *,
    label: str,
    predicted: str,
    by: str | Sequence[str] | None = None,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    confidence_level: float = 0.95,
    zero_division: float = 0.0,
    pos_label: Any = None,
    nulls: str = "raise",
) -> Interval | dict[Key, Interval]:
    """Return F_β of the predictions in a frame, with a confidence interval, also by segment.

    The interval is that of `f_interval` on the columns as arrays.

    Parameters
    ----------
    frame : frame
        Any frame Narwhals knows, eager or lazy: pandas, Polars, PyArrow, DuckDB, Dask, PySpark.
    label : str
        The column of true labels: booleans, or 0 and 1; any others with `pos_label`.
    predicted : str
        The column of predicted labels.
    by : str or sequence of str, optional
        Columns whose values define segments; null and NaN are refused.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        A name, an object of `argmaxf.measures`, or a function of the counts tp, k, s, n.
    confidence_level : float, default=0.95
        Probability with which each interval contains the true F.
    zero_division : float, default=0.0
        Value of F where nothing is positive and nothing is predicted.
    pos_label : scalar, optional
        The positive label, if the labels are not 0 and 1.
    nulls : {"raise", "drop"}, default="raise"
        ``"raise"`` refuses rows without a label or prediction, ``"drop"`` leaves them out.

    Returns
    -------
    Interval or dict of Interval
        With `by`, the interval of each segment by its key, a tuple of the values of `by`.

    Notes
    -----
    One query counts true positives, predictions and positives inside the engine. The cost after it
    is about 2 ms for each segment.

    Examples
    --------
    >>> import polars as pl
    >>> y, label = [1, 1, 1, 0, 0, 0, 0, 1], [1, 1, 0, 0, 0, 0, 1, 1]
    >>> found = evaluate(pl.DataFrame({"y": y, "label": label}), label="y", predicted="label")
    >>> round(found.low, 2), found.value, round(found.high, 2)
    (0.25, 0.75, 0.95)
    """
    chosen, zero = as_measure(measure, beta), check_zero_division(zero_division)
    tail = (1.0 - check_strictly_between("confidence_level", confidence_level, WHY)) / 2.0
    table = Table.of(frame, (), None, nulls, beside=[label, predicted])
    rows, names = table.frame, names_of(by)
    check_columns(rows, (), names, [label, predicted])
    for column in (label, predicted):
        check_label(rows, column, pos_label)
    y, guess = (label_code(rows, column, pos_label) for column in (label, predicted))
    t, k, s, n, bad = COUNTED
    coded = rows.select(
        *(key_of(rows, name) for name in names),
        one((y == 1) & (guess == 1)).alias(t),
        one(guess == 1).alias(k),
        one(y == 1).alias(s),
        one((y > 1) | (guess > 1)).alias(bad),
    )
    sums = [*(nw.col(each).sum() for each in (t, k, s, bad)), nw.len().alias(n)]
    query = coded.group_by(*names).agg(*sums) if names else coded.select(*sums)
    found = engine_of(query).run(query)
    absent = found.filter(missing(found, names)) if names else found.head(0)
    if not len(found) or not found[n].sum() or found[bad].sum() or len(absent):
        rules = [label_rule(rows, column, pos_label) for column in (label, predicted)]
        outside = int(absent[n].sum()) if len(absent) else 0
        raise refusal(rows, rules, outside, "label")
    if pos_label is not None and not found[s].sum():
        refuse_absent(label, pos_label)
    counts = found.select(t, k, s, n).to_numpy().astype(np.float64)
    intervals = [interval_of_counts(each, chosen, zero, tail) for each in counts]
    if not names:
        return intervals[0]
    (row,) = unused(names, ["argmaxf_row"])
    keys = python_keys(nw.maybe_reset_index(found.select(*names)).with_row_index(row), row)
    found_by_key = list(zip(keys, intervals, strict=True))
    with suppress(TypeError):  # values of several types stay as they are
        found_by_key.sort(key=lambda pair: pair[0])
    return dict(found_by_key)
