"""The mergeable summary of any number of probabilities, built in one pass."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.mergeable import MOST_COUNTED, Mergeable
from argmaxf._base.validation import (
    NotAProbability,
    as_real_array,
    check_unit_interval,
    first_bad_probability,
    refuse_both_columns,
)
from argmaxf.expected import group_kernels as layout
from argmaxf.expected.array_passes import ArrayPasses
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.expected.groups import Groups, empty_table, groups_of_table, summary
from argmaxf.expected.search import Search
from argmaxf.expected.values import value_of_sets
from argmaxf.measures import MeasureLike
from argmaxf.problem import Problem

POSSIBLE = 1e-9  # of N, for rounding: sums of a billion doubles are better than that


class ProbabilitySketch(Mergeable):
    """A summary of probabilities: fixed size, merges by addition, answers every β.

    Counts and power sums of the probabilities in 64 groups for each power of two. Expected values
    from it are those of the array to about 1e-13; the exact threshold needs a second look at the
    few items near it, which `maximize_expected_f` and `decide` take themselves.

    Examples
    --------
    >>> a = ProbabilitySketch.from_array([0.05, 0.45, 0.1])
    >>> b = ProbabilitySketch.from_array([0.3, 0.4])
    >>> both = a + b
    >>> both.n, round(both.mean_positives, 10)
    (5, 1.3)
    >>> decision = both.decide()
    >>> decision.k, round(decision.expected, 4)
    (3, 0.4803)
    """

    __slots__ = ("_table",)

    _name, _what = b"argmaxf\n", ("an argmaxf sketch", "probabilities")
    _numbers = struct.Struct("<HII")  # columns, rows of the table, rows that follow

    def __init__(self) -> None:
        self._table = empty_table()

    @classmethod
    def from_array(cls, p: ArrayLike) -> Self:
        """Summarize an array of any shape.

        Parameters
        ----------
        p : array-like
            Probabilities of being positive, in any shape; both columns of `predict_proba` are
            refused.

        Returns
        -------
        ProbabilitySketch
            Their summary.
        """
        return cls().update(p)

    def update(self, p: ArrayLike) -> Self:
        """Add probabilities; nothing is added if one of them is none. Return the sketch.

        Parameters
        ----------
        p : array-like
            Probabilities of being positive, in any shape; both columns of `predict_proba` are
            refused.

        Returns
        -------
        ProbabilitySketch
            The sketch itself.
        """
        items = as_real_array("p", p)
        refuse_both_columns("p", items)
        if items.size:
            try:
                self._table += summary(ArrayPasses(items.reshape(-1)))
            except NotAProbability:
                raise first_bad_probability("p", items) from None
        return self

    def _add(self, other: Self) -> None:
        self._table += other._table

    def __repr__(self) -> str:
        return f"ProbabilitySketch(n={self.n}, mean_positives={self.mean_positives:.6g})"

    @property
    def n(self) -> int:
        """How many probabilities are summarized."""
        return int(self._table[:, 0].sum())

    @property
    def mean_positives(self) -> float:
        """μ = Σ p, the expected number of positives."""
        return float(groups_of_table(self._table).mass.sum())

    def decide(
        self,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        zero_division: float = 0.0,
        ties: str = "split",
    ) -> Decision:
        """Return the best decision that cuts between groups, and the bracket of the exact one.

        `selected` is None. `bracket` holds two thresholds between which the threshold with the
        highest expected F lies for certain.

        Parameters
        ----------
        beta : float, default=1.0
            Weight of recall against precision.
        measure : str, Measure or callable, default="fbeta"
            What to maximize: a name, an object of `argmaxf.measures`, or a function of counts.
        zero_division : float, default=0.0
            F of predicting nothing where there is nothing to find.
        ties : {"split", "together"}, default="split"
            Whether equal probabilities may be parted.

        Returns
        -------
        Decision
            What the summary alone can say.
        """
        if self.n == 0:
            raise ValueError("the sketch must hold at least one probability, got none")
        problem = Problem.of(beta, measure, zero_division, ties)
        search = Search(groups_of_sketch(self), problem)
        found = search.optimum
        threshold, bracket = _bracket(search)
        k, f, std = found.k, found.f, found.std
        return Decision(None, k, threshold, f, std, problem.beta, self.n, bracket)

    def expected_f(
        self,
        *,
        k: int | None = None,
        threshold: float | None = None,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        zero_division: float = 0.0,
    ) -> ExpectedF:
        """Return mean and standard deviation of F for the top k, or for p ≥ threshold.

        Where the cut falls inside a group (at most 1/64 of its p wide), the group's items are taken
        to be alike: give `k` or `threshold` of a decision for the value of a cut between groups.

        Parameters
        ----------
        k : int, optional
            How many of the most probable items are selected.
        threshold : float, optional
            Instead of `k`: items with at least this probability are selected.
        beta : float, default=1.0
            Weight of recall against precision.
        measure : str, Measure or callable, default="fbeta"
            What to maximize: a name, an object of `argmaxf.measures`, or a function of counts.
        zero_division : float, default=0.0
            F of predicting nothing where there is nothing to find.

        Returns
        -------
        ExpectedF
            Mean and standard deviation.
        """
        problem = Problem.of(beta, measure, zero_division)
        if (k is None) == (threshold is None):
            raise ValueError(f"give either k or threshold, got k={k!r}, threshold={threshold!r}")
        groups = groups_of_sketch(self)
        if threshold is not None:
            size = _count_above(groups, check_unit_interval("threshold", threshold))
        elif k is not None and 0 <= k <= self.n:
            size = float(k)
        else:
            raise ValueError(f"k must lie between 0 and n = {self.n}, got {k!r}")
        return value_of_sets(*_cut(groups, size), problem)

    def _parts(self) -> tuple[tuple[int, ...], bytes]:
        size, columns = self._table.shape
        rows = np.flatnonzero(self._table[:, 0])  # groups without items are left out
        body = rows.astype("<u4").tobytes() + self._table[rows].astype("<f8").tobytes()
        return (columns, size, rows.size), body

    def _length(self, *numbers: int) -> int:
        columns, size, rows = numbers
        if (size, columns) != self._table.shape:
            size_of = "{} rows of {} columns".format
            said = f"expected {size_of(*self._table.shape)}, got {size_of(size, columns)}"
            raise ValueError(f"the sketch is altered: {said}")
        return rows * (4 + 8 * columns)

    def _read(self, body: bytes, *numbers: int) -> bool:
        columns, _, size = numbers
        rows = np.frombuffer(body, "<u4", size).astype(np.int64)
        values = np.frombuffer(body, "<f8", size * columns, 4 * size).astype(np.float64)
        values = values.reshape(size, columns)
        if not possible(rows, values):
            return False
        self._table[rows] = values
        return True


def sketch_of_table(table: Floats) -> ProbabilitySketch:
    """Return the sketch with a table of counts and power sums, one row for each group."""
    sketch = ProbabilitySketch()
    sketch._table += table
    return sketch


def groups_of_sketch(sketch: ProbabilitySketch) -> Groups:
    """Return the groups by falling probability, the items with p = 0 as the last one."""
    return groups_of_table(sketch._table, zeros=True)


def _bracket(search: Search) -> tuple[float, tuple[float, float]]:
    """The threshold of the best cut between groups, and the range that may hold the exact one."""
    found, unsettled = search.optimum, search.groups[search.is_open]
    threshold = float(found.last.low[0]) if found.k else np.inf
    highest = float(found.last.high[0]) if found.k else np.inf
    low = min([threshold, *unsettled.low.tolist()])
    return threshold, (low, max([highest, *unsettled.high.tolist()]))


def _count_above(groups: Groups, threshold: float) -> float:
    """How many items are at least the threshold; inside a group, in proportion."""
    low = groups.low
    width = np.where(low < groups.high, groups.high - low, 1.0)
    share = np.clip((groups.high - threshold) / width, 0.0, 1.0)
    share = np.where(groups.runs, 0.0, share)
    share[low >= threshold] = 1.0
    return float((share * groups.count).sum())


def _cut(groups: Groups, k: float) -> tuple[Groups, Groups]:
    """Split groups into the top k items and the rest, a group at the cut in proportion."""
    end = np.cumsum(groups.count)
    inside = np.clip(k - (end - groups.count), 0.0, groups.count) / groups.count
    return _scaled(groups, inside), _scaled(groups, 1.0 - inside)


def _scaled(groups: Groups, share: Floats) -> Groups:
    kept = replace(groups, count=groups.count * share, moments=groups.moments * share[:, None])
    return kept[share > 0.0]


def possible(rows: Ints, values: Floats) -> bool:
    """Tell whether numbered rows of a table can be the summary of some probabilities.

    With y_1, …, y_N in [-1, 1] and M_j = Σ y^j, the matrices of M_{i+j} (i, j = 0 … 3) and of
    M_{i+j} - M_{i+j+2} (i, j = 0 … 2), Σ v vᵀ and Σ (1 - y²) v vᵀ with v = (1, y, y², …), have no
    negative eigenvalue; and numbers for which that is so are the sums of some distribution on
    [-1, 1]. |M_1| ≤ N, M_2 ≤ N and Cauchy-Schwarz between any two sums are among it.
    """
    distinct = np.unique(rows).size == rows.size
    in_range = bool(((rows >= 0) & (rows < layout.ROWS)).all())
    if not (distinct and in_range and np.isfinite(values).all()):
        return False
    count = values[:, 0]
    if not ((count >= 1) & (count <= MOST_COUNTED) & (count == np.floor(count))).all():
        return False
    alone = (rows == layout.ONE_ROW) | (rows == layout.ZERO_ROW)  # all items are equal
    tiny = rows == layout.TINY_ROW
    return bool(
        (np.abs(values) <= 2.0 * count[:, None]).all()  # so that no power of one is infinite
        and not values[alone, 1:].any()
        and not values[tiny, 2:].any()
        and ((values[tiny, 1] > 0) & (values[tiny, 1] < count[tiny] * (1 + POSSIBLE))).all()
        and _are_moments(values[~alone & ~tiny]).all()
        and _is_half(values[rows == layout.upper_row(layout.HALF_KEY)]).all()
    )


def _are_moments(values: Floats) -> Bools:
    """Tell which rows hold the power sums of N places in [-1, 1]."""
    count = values[:, 0]
    m = np.column_stack([np.ones(count.size), values[:, 1] + values[:, 2], values[:, 3:]])
    m[:, 1:] /= count[:, None]
    hankel = m[:, np.add.outer(np.arange(4), np.arange(4))]
    beside = (m[:, :-2] - m[:, 2:])[:, np.add.outer(np.arange(3), np.arange(3))]
    least = np.minimum(np.linalg.eigvalsh(hankel)[:, 0], np.linalg.eigvalsh(beside)[:, 0])
    powers = m[:, 1:2] ** np.arange(7)  # of a single item they are all
    single = (np.abs(m - powers) <= POSSIBLE).all(axis=1)
    split = (values[:, 2] >= 0) & (values[:, 2] <= count * 2.0**-25 * (1 + POSSIBLE))
    moments: Bools = (least >= -POSSIBLE) & split & (single | (count > 1))
    return moments


def _is_half(values: Floats) -> Bools:
    """Tell which rows hold items with p = 1/2 only, at the end of their group: y = -1."""
    equal: Bools = values[:, 1] + values[:, 2] == -values[:, 0]
    return equal
