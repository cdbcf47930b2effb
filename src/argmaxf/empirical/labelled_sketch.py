"""The mergeable summary of labelled scores, and the search for the best cut of what it counts.

A cut inside a bin has at most all positives of the bin and at least none of its negatives, and
measures rise with true and fall with false positives. That bounds what refining the bin can find;
bins that cannot hold the best cut stay as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.lazy import cached_property
from argmaxf._base.mergeable import MOST_COUNTED, Mergeable
from argmaxf._base.shared_docs import with_entries_of
from argmaxf._base.validation import as_positives, as_scores, as_weights, check_same
from argmaxf.empirical.bins import DROPPED_BITS, EMPTY, MOST_BITS, Bins, BinTable, numbers
from argmaxf.empirical.cuts import ROUNDING_ERROR, CutProblem, Cuts
from argmaxf.empirical.threshold import (
    Curve,
    Solution,
    Threshold,
    curve_of,
    maximize_empirical_f,
    solution_at,
)
from argmaxf.measures import MCC, FBeta, MeasureLike

LABELLED = b"argmaxl\n"  # how its bytes begin
# So few rows may be held by who reads them; a small table is quicker to fill, and filled again.
FEW_ROWS, FEW_BITS = 1 << 24, 15


@with_entries_of(maximize_empirical_f)
class LabelledSketch(Mergeable):
    """A summary of labelled scores: merges by addition, tunes thresholds without the rows.

    Counts and weights of positives and negatives, and the lowest and highest score, in 256 bins for
    each power of two. Each threshold it returns has its exact value, precision and recall on all
    rows; a better one may lie inside a bin, and `Threshold.gap` bounds how much better.

    Examples
    --------
    >>> monday = LabelledSketch.from_arrays([0, 0, 1], [0.1, 0.2, 0.3])
    >>> tuesday = LabelledSketch.from_arrays([1, 0, 1], [0.5, 0.6, 0.9])
    >>> best = (monday + tuesday).tune()
    >>> best.threshold, round(best.value, 4), best.k, best.gap
    (0.25, 0.8571, 4, 0.0)
    """

    __slots__ = ("_bins", "_kind", "_table")

    _name, _what = LABELLED, ("a labelled sketch", "labelled rows")
    _numbers = struct.Struct("<HI")  # bytes of a score, bins that follow

    def __init__(self) -> None:
        self._bins = EMPTY
        self._table: BinTable | None = None  # of rows that were added since
        self._kind: Any = np.dtype(np.float16)  # of the scores

    @classmethod
    def from_arrays(
        cls,
        y_true: ArrayLike,
        score: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        pos_label: Any = None,
    ) -> Self:
        """Summarize labelled scores.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True 0/1 labels, or other labels with `pos_label`.
        score : array-like of shape (n,)
            Scores, larger meaning more positive.
        sample_weight, pos_label : as in `maximize_empirical_f`

        Returns
        -------
        LabelledSketch
            Their summary.
        """
        return cls().update(y_true, score, sample_weight, pos_label=pos_label)

    def update(
        self,
        y_true: ArrayLike,
        score: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        pos_label: Any = None,
    ) -> Self:
        """Add labelled scores; nothing is added if one cannot be used. Return the sketch.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True 0/1 labels, or other labels with `pos_label`.
        score : array-like of shape (n,)
            Scores, larger meaning more positive.
        sample_weight, pos_label : as in `maximize_empirical_f`

        Returns
        -------
        LabelledSketch
            The sketch itself.
        """
        y, s = as_positives("y_true", y_true, pos_label), as_scores("score", score)
        if y.shape != s.shape or y.ndim != 1:
            raise ValueError(
                f"y_true and score must be vectors of one length, got {y.shape} and {s.shape}"
            )
        if y.size:
            add_rows(self, y, s, as_weights(sample_weight, y.size))
        return self

    @property
    def bins(self) -> Bins:
        """The bins that hold rows, by falling score."""
        if self._table is not None:
            self._add_bins(self._table.bins)
            self._table = None
        return self._bins

    def _add_bins(self, bins: Bins) -> None:
        both = Bins(*map(np.append, self._bins, bins))
        self._bins = both.grouped(numbers(both.low) >> DROPPED_BITS)

    def _add(self, other: Self) -> None:
        self._add_bins(other.bins)
        self._kind = np.promote_types(self._kind, other._kind)

    def __repr__(self) -> str:
        return f"LabelledSketch(n={self.n}, positives={self.positives:.6g})"

    @property
    def n(self) -> int:
        """How many rows are summarized; rows of weight 0 do not count."""
        return int(self.bins.rows.sum())

    @property
    def positives(self) -> float:
        """The weight of the positive rows: without weights, how many there are."""
        return float(self.bins.true.sum())

    def tune(
        self,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        zero_division: float = 0.0,
        min_precision: float | None = None,
        min_recall: float | None = None,
        max_selected_rate: float | None = None,
    ) -> Threshold:
        """Return the best threshold between bins, and how far it can be from the exact best.

        Parameters
        ----------
        beta : as in `maximize_empirical_f`
        measure : str or Measure, default="fbeta"
            A name or an object of `argmaxf.measures`, or a `Ratio`; other measures have no bound
            inside a bin and need the rows.
        zero_division, min_precision, min_recall, max_selected_rate : as in `maximize_empirical_f`

        Returns
        -------
        Threshold
            Its value, precision, recall and k are exact; the value of the exact best threshold is
            at most `value` + `gap`. Where `gap` is 0, it is the exact best.
        """
        limits = min_precision, min_recall, max_selected_rate
        return best_in(self, CutProblem.of(beta, measure, zero_division, *limits)).best

    def curve(
        self,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        zero_division: float = 0.0,
        resolution: int = 256,
    ) -> Curve:
        """Return precision, recall and F_β for the thresholds between bins, from high to low.

        Parameters
        ----------
        beta, measure, zero_division : as in `maximize_empirical_f`
        resolution : int, default=256
            How many thresholds there are for each power of two of the scores: 1, 2, 4, … or 256.

        Returns
        -------
        Curve
            As that of `empirical_f_curve`, with one threshold for each bin that holds rows.
        """
        powers = [2**bits for bits in range(9)]
        if resolution not in powers:
            raise ValueError(f"resolution must be one of {powers}, got {resolution!r}")
        if not self.n:
            raise ValueError("the sketch must hold at least one row, got none")
        problem = CutProblem.of(beta, measure, zero_division)
        unseen = DROPPED_BITS + 8 - powers.index(resolution)
        bins = self.bins.grouped(numbers(self.bins.low) >> unseen)
        return curve_of(BinSearch(problem, bins, self._kind).cuts)

    def _parts(self) -> tuple[tuple[int, ...], bytes]:
        bins = self.bins
        return (self._kind.itemsize, bins.low.size), np.array(bins, "<f8").tobytes()

    def _length(self, *numbers: int) -> int:
        return 8 * len(EMPTY) * numbers[1]

    def _read(self, body: bytes, *numbers: int) -> bool:
        kind, size = numbers
        table = np.frombuffer(body, "<f8").astype(np.float64)
        self._bins = Bins(*table.reshape(len(EMPTY), size))
        if kind not in (2, 4, 8) or not possible(self._bins):
            return False
        self._kind = np.dtype(f"f{kind}")
        return True


# The rows with scores from one number to another: labels, scores, and weights or None.
Between = Callable[[float, float], Iterable[tuple[Any, Any, Any]]]


@dataclass(frozen=True)
class BinSearch:
    """The search for the best cut of rows that are counted in bins."""

    problem: CutProblem
    bins: Bins
    kind: Any = np.float64  # of the scores

    @cached_property
    def cuts(self) -> Cuts:
        """The cuts at the ends of the bins, and the empty one; scores have their own type."""
        low, high = (each.astype(self.kind) for each in self.bins[:2])
        return self.problem.rated(self.bins.running()._replace(low=low, high=high))

    @cached_property
    def summed(self) -> float:
        """How many weights the counts are sums of: 0 if all weights are 1."""
        bins = self.bins
        whole = np.array_equal(bins.size, bins.rows)
        return 0.0 if whole else float(bins.rows.sum())

    def best(self) -> Solution:
        """Return the best cut between bins."""
        return solution_at(self.cuts, self.problem.best(self.cuts, self.summed))

    def bounds(self) -> Floats:
        """Return the most that a cut inside each bin can reach, -inf where none can be the best."""
        bins, ends = self.bins, self.bins.running()
        recall, precision, rate, slack = self.problem.limits(self.cuts, self.summed)
        s, n = ends.true[-1], ends.size[-1]
        true, false = ends.true - bins.true, ends.false - bins.false  # before each bin
        before, full = (self.problem.rates(t, t + false, s, n)[0] for t in (true, ends.true))
        most = np.maximum(before, full)
        falls = np.ones(most.size, np.bool_)
        if isinstance(self.problem.measure, MCC):  # it rises and falls so where it is not negative
            falls, most = most >= 0.0, np.maximum(most, 0.0)
        full_size = np.maximum(ends.true + false, np.finfo(float).tiny)
        possible = (bins.low < bins.high) & ((true + false) / n <= rate + slack)
        possible &= (ends.true >= (recall - slack) * s) & (
            ends.true / full_size >= precision - slack
        )
        possible &= ~(falls & (bins.true == 0.0))  # the cut before is better
        at_end = (bins.false == 0.0) & (full > before) & (ends.size / n <= rate - slack)
        possible &= ~(falls & at_end)  # the cut at the end is better
        return np.where(possible, most, -np.inf)

    def open(self) -> Bools:
        """Return which bins can hold a cut that is better than all between bins, or as good."""
        least = -np.inf
        with suppress(ValueError):  # a cut inside a bin may meet the constraints
            least = self.best().best.value
        bounds = self.bounds()
        return (bounds > -np.inf) & (bounds >= least - ROUNDING_ERROR * max(1.0, abs(least)))

    def settled(self, between: Between) -> BinSearch:
        """Refine bins until none can hold a better cut than those between them."""
        search = self
        while (unsettled := search.open()).any():
            search = replace(search, bins=refined(search.bins, unsettled, between))
        return search

    def exact(self, between: Between) -> Solution:
        """Return the best of all cuts, or say what constraints can be reached."""
        search = self.settled(between)
        with suppress(ValueError):
            return search.best()
        for without, measure in (
            ({"min_recall": None, "min_precision": None}, FBeta(1e6)),  # the highest recall
            ({"min_precision": None}, FBeta(1e-9)),  # the highest precision
        ):
            asked = replace(self.problem.constraints, **without)
            eased = replace(self.problem, measure=measure, constraints=asked)
            search = replace(search, problem=eased).settled(between)
        return replace(search, problem=self.problem).best()


def refined(bins: Bins, chosen: Bools, between: Between) -> Bins:
    """Return the bins with the chosen ones divided by one more look at the rows between them."""
    wanted = bins.where(chosen)
    low, high = float(wanted.low[-1]), float(wanted.high[0])
    bits = FEW_BITS if wanted.rows.sum() <= FEW_ROWS else MOST_BITS
    table, span = BinTable.between(low, high, bits), numbers(wanted.high) - numbers(wanted.low)
    if wanted.rows[span >> table.shift > 0].sum() < wanted.rows.sum() / 2:
        most = int(np.argmax(wanted.rows))  # the bins are far apart
        low, high = float(wanted.low[most]), float(wanted.high[most])
        table = BinTable.between(low, high, bits)
    for rows in between(low, high):
        table.add(*rows)
    found, divided = table.bins, (bins.low >= low) & (bins.high <= high)
    for before, after in zip(bins.where(divided)[2:], found[2:], strict=True):
        check_same(before.sum(), after.sum(), "in a range of scores")
    both = Bins(*map(np.append, bins.where(~divided), found))
    return both.where(np.argsort(-both.low))


def sketch_of_bins(bins: Bins, kind: Any) -> LabelledSketch:
    """Return the sketch with such bins of scores of a type."""
    sketch = LabelledSketch()
    sketch._bins, sketch._kind = bins, np.dtype(kind)
    return sketch


def add_rows(sketch: LabelledSketch, y: Any, score: Any, weight: Any) -> None:
    """Add rows to a sketch, or raise Unusable."""
    sketch._kind = np.promote_types(sketch._kind, score.dtype)
    sketch._table = sketch._table or BinTable()
    sketch._table.add(y, score, weight)


def best_in(sketch: LabelledSketch, problem: CutProblem, rows: Between | None = None) -> Solution:
    """Return the best threshold: between bins, or of all, given what reads rows again."""
    if not problem.is_bounded:
        raise ValueError(
            f"measure {problem.measure} needs the rows, got a sketch; pass the frame or files"
        )
    if not sketch.n:
        raise ValueError("the sketch must hold at least one row, got none")
    search = BinSearch(problem, sketch.bins, sketch._kind)
    if rows is not None:
        return search.exact(rows)
    found = search.best()
    gap = max(0.0, float(search.bounds().max()) - found.best.value)
    return found._replace(best=replace(found.best, gap=gap))


def scores_near_best(sketch: LabelledSketch, problem: CutProblem) -> tuple[float, float]:
    """Return the range of scores around the best cut between bins, empty if there is none.

    Of the k rows that it selects it has a tenth on each side, for the bins that are refined, and
    4 k^(2/3), as the best cut of a sample varies with that power.
    """
    bins, k = sketch.bins, 0
    with suppress(ValueError):
        k = BinSearch(problem, bins, sketch._kind).best().best.k
    if k == 0:
        return np.inf, -np.inf
    width, ends = k / 10.0 + 4.0 * k ** (2 / 3), bins.running().rows
    some = bins.where((ends >= k - width) & (ends - bins.rows <= k + width))
    return float(some.low[-1]), float(some.high[0])


def possible(bins: Bins) -> bool:
    """Tell whether bins can be the summary of some rows."""
    weights = np.array([bins.true, bins.false])
    with np.errstate(over="ignore", invalid="ignore"):  # a NaN that signals is no number either
        is_finite = np.isfinite(weights.sum())
        key = numbers(bins.low) >> DROPPED_BITS
    return bool(
        is_finite
        and (weights >= 0.0).all()
        and (weights.sum(axis=0) > 0.0).all()
        and ((bins.rows >= 1) & (bins.rows <= MOST_COUNTED)).all()
        and (bins.rows == np.floor(bins.rows)).all()
        and (bins.low <= bins.high).all()
        and ((bins.rows > 1) | (bins.low == bins.high)).all()
        and (key == numbers(bins.high) >> DROPPED_BITS).all()
        and (key[1:] < key[:-1]).all()
    )
