"""The mergeable summary of any number of probabilities, built in one pass, and its bytes.

The format of the bytes (docs/background/sketch-format.md) is versioned and checksummed, all numbers
are little-endian.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.validation import (
    NotAProbability,
    as_real_array,
    check_unit_interval,
    first_bad_probability,
    refuse_both_columns,
)
from argmaxf.expected import refine
from argmaxf.expected.array_passes import ArrayPasses
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.expected.grouped import group_kernels as layout
from argmaxf.expected.grouped.groups import Groups, empty_table, groups_of_table
from argmaxf.expected.grouped.search import Search
from argmaxf.expected.grouped.sources import summary
from argmaxf.expected.values import value_of_sets
from argmaxf.measures import MeasureLike
from argmaxf.problem import Problem

MAGIC = b"argmaxf\n"
VERSION = 1
HEADER = struct.Struct("<8sHHII")  # magic, version, columns, rows of the table, rows that follow
CHECKSUM = struct.Struct("<I")  # CRC-32 of everything before it
POSSIBLE = 1e-9  # of N, for rounding: sums of a billion doubles are better than that
MOST_COUNTED = 2.0**53  # beyond, a count of doubles is no longer exact


class ProbabilitySketch:
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

    def merge(self, other: ProbabilitySketch) -> Self:
        """Add the items of another sketch. Return the sketch.

        Parameters
        ----------
        other : ProbabilitySketch
            Another sketch.

        Returns
        -------
        ProbabilitySketch
            The sketch itself.
        """
        if not isinstance(other, ProbabilitySketch):
            raise TypeError(
                f"only a sketch can be merged, got {type(other).__name__}; add probabilities "
                "with update"
            )
        self._table += other._table
        return self

    def __add__(self, other: object) -> ProbabilitySketch:
        if not isinstance(other, ProbabilitySketch):
            return NotImplemented
        return type(self)().merge(self).merge(other)

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
        search = refine.search(groups_of_sketch(self), problem)
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

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes: versioned, checksummed, at most half a megabyte."""
        return bytes_of_table(self._table)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a sketch back; bytes cut short, altered or of another version are refused.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.

        Returns
        -------
        ProbabilitySketch
            The sketch.
        """
        sketch = cls()
        sketch._table += table_of_bytes(bytes(data))
        return sketch


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


def bytes_of_table(table: Floats) -> bytes:
    """Return the table of a sketch as bytes; groups without items are left out."""
    rows = np.flatnonzero(table[:, 0])
    head = HEADER.pack(MAGIC, VERSION, table.shape[1], table.shape[0], rows.size)
    body = head + rows.astype("<u4").tobytes() + table[rows].astype("<f8").tobytes()
    return body + CHECKSUM.pack(zlib.crc32(body))


def table_of_bytes(data: bytes) -> Floats:
    """Return the table that was made into bytes, or say what is wrong with them."""
    rows, values = _parsed(data)
    table = empty_table()
    table[rows] = values
    return table


def _parsed(data: bytes) -> tuple[np.ndarray, Floats]:
    """Check bytes against the format; return the rows and their values."""
    empty = empty_table()
    if len(data) < HEADER.size + CHECKSUM.size or not data.startswith(MAGIC):
        raise ValueError(f"not an argmaxf sketch: {len(data)} bytes that start {data[:8]!r}")
    _, version, columns, table_rows, size = HEADER.unpack_from(data)
    if version != VERSION:
        raise ValueError(f"sketch version must be {VERSION}, got {version}")
    length = HEADER.size + size * (4 + 8 * columns) + CHECKSUM.size
    if len(data) != length:
        raise ValueError(
            f"the sketch is truncated or altered: expected {length} bytes, got {len(data)}"
        )
    if (table_rows, columns) != empty.shape:
        size_of = "{} rows of {} columns".format
        said = f"expected {size_of(*empty.shape)}, got {size_of(table_rows, columns)}"
        raise ValueError(f"the sketch is altered: {said}")
    if CHECKSUM.unpack(data[-CHECKSUM.size :])[0] != zlib.crc32(data[: -CHECKSUM.size]):
        raise ValueError("the sketch is altered: its checksum does not match")
    rows = np.frombuffer(data, "<u4", size, HEADER.size).astype(np.int64)
    numbers = np.frombuffer(data, "<f8", size * columns, HEADER.size + 4 * size)
    values = numbers.reshape(size, columns).astype(np.float64)
    if not possible(rows, values):
        raise ValueError("the sketch is altered: it holds numbers that no probabilities have")
    return rows, values


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
        not values[alone, 1:].any()
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
