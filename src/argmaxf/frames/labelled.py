"""Labelled rows of a frame: thresholds tuned on them, and how well predictions fit them.

Rows are read in batches and counted in the bins of their scores (`empirical/bins.py`), then the few
of them between which the best threshold lies are counted in finer bins: they are held where the
first rows show which they are, else read again. Up to HELD rows are held instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np

from argmaxf._base.shared_docs import with_entries_of
from argmaxf._base.validation import Unusable, check_strictly_between, check_zero_division
from argmaxf.empirical.cuts import CutProblem
from argmaxf.empirical.guarantees import chance_of_each
from argmaxf.empirical.interval import WHY, interval_of_counts
from argmaxf.empirical.labelled_sketch import (
    LabelledSketch,
    add_rows,
    best_in,
    scores_near_best,
    sketch_of_bins,
)
from argmaxf.empirical.threshold import (
    Solution,
    Threshold,
    joined,
    maximize_empirical_f,
    solution,
    solve_all,
)
from argmaxf.expected.threads import deal_out, processors
from argmaxf.frames.engines import Dask, Frame, Spark, engine_of, missing
from argmaxf.frames.expression_passes import labelled_bins
from argmaxf.frames.table import (
    LABEL,
    SCORE,
    SEGMENT,
    WEIGHT,
    Batch,
    Begun,
    Key,
    Rows,
    Rule,
    Table,
    number,
    plain,
    sorted_by_key,
)
from argmaxf.measures import Interval, MeasureLike, as_measure

PART = 1 << 24  # rows of segments that are held at a time: 285 MB with weights
MISSING, WRONG = 2, 3  # labels that are none
PREDICTED, COUNT = "argmaxf_predicted", "argmaxf_count"
TEXTS = (nw.String, nw.Categorical, nw.Enum)
WIDE = (nw.Int64, nw.UInt64, nw.Int128, nw.UInt128)  # integers, maybe beyond EXACT
EXACT = 2**53  # from it on, doubles do not hold every integer


@dataclass(frozen=True)
class LabelledRows(Rows):
    """Rows with labels as bytes, scores, and perhaps weights and the numbers of segments."""

    label: str = ""
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
        **options: Any,
    ) -> LabelledRows:
        """Check what a user gave; `options` are those of `Table.of`."""
        weights = [] if weight is None else [weight]
        table = Table.of(frame, (score, *weights), by, nulls, beside=[label], **options)
        given = table.frame
        rule, code = label_of(given, label, pos_label)
        check_exact(given, score)
        is_float = given.collect_schema()[score] in (nw.Float32, nw.Float64)
        rules = [Rule(score), rule]
        for name in weights:
            w, words = number(name), "must be finite and not negative"
            rules.insert(1, Rule(name, words, (w < 0.0) | (w == float("inf"))))
        items = given.select(
            code.alias(LABEL),
            (nw.col(score) if is_float else number(score)).alias(SCORE),
            *(number(name).fill_null(-1.0).alias(WEIGHT) for name in weights),
            *table.segment,
        )
        return cls(table, items, tuple(rules), "score", label, pos_label)

    def between(self, low: float, high: float) -> Iterator[Any]:
        """Yield the labels, scores and weights of the rows with scores in a range."""
        score = nw.col(SCORE)
        rows = replace(self, items=self.items.filter((score >= low) & (score <= high)))
        return map(columns_of, rows.batches(checked=False))

    def sketch(self, begun: Begun | None = None, near: Near | None = None) -> LabelledSketch:
        """Return the sketch of all rows, of which there must be some, made where they are.

        Elsewhere than on Dask and Spark reading may have begun, and rows near a score are kept.
        """
        sketch = self.refusing(partial(self._sketch, begun, near))
        if not sketch.n:
            self.refusing(self.begin)
            self.refuse_unknown(any_weight=False)
        return sketch

    def _sketch(self, begun: Begun | None, near: Near | None) -> LabelledSketch:
        engine = engine_of(self.items)
        if not isinstance(engine, Spark):
            threads = 1 if isinstance(engine, Dask) else processors()  # of each partition
            sketches = partial(_sketches, threads=threads, near=near)
            return sum(self.each(sketches, begun), start=LabelledSketch())
        schema = self.items.collect_schema()
        bins = labelled_bins(self.items, weighted=WEIGHT in schema)
        return sketch_of_bins(bins, np.float32 if schema[SCORE] == nw.Float32 else np.float64)

    def refuse_unknown(self, positives: Any = True, *, any_weight: Any = True) -> None:
        """Refuse a positive label that no row has, and rows that all have no weight."""
        if not any_weight:
            raise ValueError(f"column {self.table.columns[-1]!r} must not all be zero")
        if self.pos_label is not None and not positives:
            raise ValueError(
                f"pos_label must be one of the labels, got {self.pos_label!r}, which column "
                f"{self.label!r} never has"
            )


def columns_of(batch: Batch) -> tuple[Any, Any, Any]:
    """Return labels, scores, and weights or None."""
    return batch[LABEL], batch[SCORE], batch.get(WEIGHT)


def _sketches(
    batches: Iterable[Batch], threads: int = 1, near: Near | None = None
) -> Iterator[LabelledSketch]:
    """Yield the sketch of each thread's batches; raise Unusable if a row cannot be used."""
    sketches = [LabelledSketch() for _ in range(threads)]

    def add(sketch: LabelledSketch, numbered: tuple[int, Batch]) -> None:
        i, columns = numbered[0], columns_of(numbered[1])
        add_rows(sketch, *columns)
        if near:
            near.keep(i, *columns)

    deal_out(add, sketches, enumerate(batches))
    yield from sketches


class Near:
    """Rows with scores in a range, held if they are not too many; others are read again."""

    def __init__(self, rows: LabelledRows, low: float = np.inf, high: float = -np.inf) -> None:
        self._rows = rows
        self._hold(low, high)

    def _hold(self, low: float, high: float) -> None:
        self._low, self._high, self._size = low, high, 0
        self._parts: dict[int, tuple[Any, ...]] = {}

    def keep(self, i: int, *columns: Any) -> None:
        """Hold the rows in the range of the i-th batch: labels, scores, and weights or None."""
        if self._size <= PART:
            self._parts[i] = in_range(columns, self._low, self._high)
            self._size += self._parts[i][0].size
        else:
            self._parts = {}

    def between(self, low: float, high: float) -> Iterator[Any]:
        """Yield the rows with scores in a range; hold them if they are not there yet."""
        if self._size <= PART and self._low <= low <= high <= self._high:
            yield from (in_range(self._parts[i], low, high) for i in sorted(self._parts))
            return
        self._hold(low, high)
        for i, columns in enumerate(self._rows.between(low, high)):
            self.keep(i, *columns)
            yield columns


def in_range(columns: Sequence[Any], low: float, high: float) -> tuple[Any, ...]:
    """Return the rows with scores in a range."""
    score = columns[1]
    inside = np.flatnonzero((score >= low) & (score <= high))
    return tuple(each if each is None else each[inside] for each in columns)


def label_of(frame: Frame, label: str, pos_label: Any) -> tuple[Rule, nw.Expr]:
    """Return what a column must hold, and its labels as 0 and 1, MISSING and WRONG.

    A column that cannot hold 0 and 1, or the positive label, is refused.
    """
    kind, y, rule = frame.collect_schema()[label], nw.col(label), Rule(label)
    if pos_label is None and not (kind.is_numeric() or kind == nw.Boolean):
        raise ValueError(
            f"column {label!r} must hold 0 and 1, got {kind}; pass the positive label as pos_label"
        )
    if pos_label is not None and isinstance(pos_label, str) != (kind in TEXTS):
        raise ValueError(
            f"pos_label must be a value of column {label!r} ({kind}), got {pos_label!r}"
        )
    code = (y if pos_label is None else y == pos_label).cast(nw.Int8)
    if pos_label is None and kind != nw.Boolean:
        wrong = (y != 0) & (y != 1)
        code = (y == 1).cast(nw.Int8) + wrong.cast(nw.Int8) * WRONG
        rule = Rule(label, "must hold 0 and 1", wrong)
    absent = missing(frame, [label])
    return rule, nw.when(absent).then(nw.lit(MISSING)).otherwise(code).cast(nw.Int8)


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


def best_thresholds(rows: LabelledRows, problem: CutProblem) -> Threshold:
    """Return the best threshold on labelled rows, or those of their segments."""
    if rows.table.number:
        return rows.refusing(partial(_best_in_segments, rows, problem))
    return rows.refusing(partial(_best_in_all, rows, problem)).best


def _best_in_all(rows: LabelledRows, problem: CutProblem) -> Solution:
    """Search one set of rows; a guarantee tests every score, and so needs all of them."""
    needs_all = problem.confidence_level is not None or not problem.is_bounded
    begun, near = None, Near(rows)
    if needs_all or not isinstance(engine_of(rows.items), Dask | Spark):
        begun = rows.begin(all_=needs_all)
        if begun.rest is None:
            y, score, weight = columns_of(begun.columns())
            rows.refuse_unknown(y.any(), any_weight=weight is None or weight.any())
            return solution(y == 1, score, weight, problem, chance_of_each(problem, 1, weight))
        near = _near_best(rows, begun, problem)
    sketch = rows.sketch(begun, near)
    rows.refuse_unknown(sketch.positives)
    return best_in(sketch, problem, near.between)


def _near_best(rows: LabelledRows, begun: Begun, problem: CutProblem) -> Near:
    """Return what keeps rows near the best threshold of those in memory."""
    sketch = LabelledSketch()
    for batch in begun.first:
        add_rows(sketch, *columns_of(batch))
    return Near(rows, *scores_near_best(sketch, problem))


def _best_in_segments(rows: LabelledRows, problem: CutProblem) -> Threshold:
    """Search segments one after the other; those without weight have no threshold."""
    names, order = [plain(key) for key in rows.table.python_keys()], []
    sizes: Any = rows.table.sizes
    most = PART if problem.confidence_level is None else int(sizes.sum())

    def works() -> Iterator[tuple[Any, Callable[[], Solution]]]:
        for first, offsets, columns in rows.parts(most):
            if not isinstance(columns, dict):  # one segment
                order.append(first)
                alone = replace(columns, pos_label=None)
                yield names[first], partial(_best_in_all, alone, problem)
                continue
            y, score, weight = columns_of(columns)
            some = np.ones(offsets.size - 1, np.bool_)
            if weight is not None:
                some = np.add.reduceat(weight > 0.0, offsets[:-1])
            # Of all segments: with a guarantee all rows are held
            chance = chance_of_each(problem, int(np.count_nonzero(some)), weight)
            for i, ends in enumerate(pairwise(offsets.tolist())):
                if some[i]:
                    order.append(first + i)
                    part = slice(*ends)
                    own = None if weight is None else weight[part]
                    held = y[part] == 1, score[part], own, problem, chance
                    yield names[first + i], partial(solution, *held)

    found = solve_all("segment", works())
    rows.refuse_unknown(sum(each.counts[2] for each in found), any_weight=order)
    pairs = sorted_by_key([names[i] for i in order], found)
    segments = np.empty(len(pairs), object)
    segments[:] = [name for name, _ in pairs]
    if not any(isinstance(name, tuple) for name in names):
        segments = np.array(segments.tolist())
    return joined(segments, [each for _, each in pairs], problem)


@with_entries_of(maximize_empirical_f)
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
    beta, measure, zero_division : as in `maximize_empirical_f`
    min_precision, min_recall, max_selected_rate : as in `maximize_empirical_f`
    confidence_level : float, optional
        The probability, over draws of the labelled rows, that all constraints hold in the
        population, as in `maximize_empirical_f`.
    pos_label : as in `maximize_empirical_f`
    nulls : {"raise", "drop"}, default="raise"
        ``"raise"`` refuses rows without a label, score or weight, ``"drop"`` leaves them out.

    Returns
    -------
    Threshold
        With `by`, its fields are arrays with one entry for each segment, `segment` has their
        values (tuples for several columns), and `overall` all rows together.

    Notes
    -----
    A lazy frame of up to 4 million rows is held in memory. The rows of a larger one are counted in
    bins of their scores (a `LabelledSketch`), in batches. The few rows in the bins that can hold
    the best threshold are then counted in finer bins. If the first 4 million rows are like the
    others, these few rows are kept during the first pass, and the frame is read once; otherwise it
    is read two to four times. Memory does not grow with the number of rows, except with
    `confidence_level` and for user-defined measures: all rows are then held, up to 60 bytes each.
    With `by`, the frame is read once for every 16 million rows, and each segment of more rows is
    read one to four times.

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
    rows = LabelledRows.of(frame, label, score, weight, by, nulls, pos_label)
    limits = min_precision, min_recall, max_selected_rate, confidence_level
    return best_thresholds(rows, CutProblem.of(beta, measure, zero_division, *limits))


@with_entries_of(maximize_empirical_f, tune)
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
    frame, label : as in `tune`
    predicted : str
        The column of predicted labels.
    by : str or sequence of str, optional
        Columns whose values define segments; null and NaN are refused.
    beta, measure : as in `maximize_empirical_f`
    confidence_level : float, default=0.95
        Probability with which each interval contains the true F.
    zero_division, pos_label : as in `maximize_empirical_f`
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
    table = Table.of(frame, (), by, nulls, beside=[label, predicted])
    rule, code = label_of(table.frame, label, pos_label)
    other, guess = label_of(table.frame, predicted, pos_label)
    segment = table.segment or [nw.lit(0).alias(SEGMENT)]
    items = table.frame.select(*segment, code.alias(LABEL), guess.alias(PREDICTED))
    rows = LabelledRows(table, items, (rule, other), "label", label, pos_label)

    def count() -> Any:
        names = SEGMENT, LABEL, PREDICTED
        query = items.group_by(*names).agg(nw.len().alias(COUNT))
        found = engine_of(query).run(query)
        which, y, guess, n = (found[name].to_numpy().astype(np.int64) for name in (*names, COUNT))
        known = (which >= 0) & (which < table.segments) & (y <= 1) & (guess <= 1)
        if not n.size or not known.all():
            raise Unusable
        counts = np.zeros((table.segments, 4))
        np.add.at(counts, which, n[:, None] * np.stack([y & guess, guess, y, y >= 0], axis=1))
        return counts

    found = rows.refusing(count)
    rows.refuse_unknown(found[:, 2].any())
    intervals = [interval_of_counts(each, chosen, zero, tail) for each in found]
    if not table.number:
        return intervals[0]
    return dict(sorted_by_key(table.python_keys(), intervals))
