"""The band's passes as expressions of an engine: what Spark sums up faster than it hands out rows.

Nothing of argmaxf has to be installed on the workers. Every step that finds the bin of an item is
exact in double precision: no logarithm and no power is asked of the engine.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Floats
from argmaxf._base.validation import NotAProbability, Unusable, check_same
from argmaxf.empirical.bins import DROPPED_BITS, FRACTION_BITS, Bins, numbers
from argmaxf.expected.array_passes import ArrayPasses
from argmaxf.expected.band import Around
from argmaxf.expected.pass_kernels import BINS, ONE, POWERS
from argmaxf.frames.engines import Frame, engine_of
from argmaxf.frames.table import LABEL, SCORE, WEIGHT, one

SAMPLED = 1 << 16  # items of a sample
CELLS, LEAST = 1 << FRACTION_BITS, 2.0**-900  # of scores: what is nearer to 0 has its own bin
POWER, CELL, COUNT = "argmaxf_power", "argmaxf_cell", "argmaxf_count"


class ExpressionPasses:
    """The passes over a column of a lazy frame, see `band.Passes`; one that changes is noticed."""

    def __init__(self, frame: Frame, name: str) -> None:
        self.p = p = nw.col(name)
        self.items: Frame = frame.select(p.cast(nw.Float64))
        is_valid = (p >= 0.0) & (p <= 1.0)  # NaN is greater than all numbers in Spark
        self._before: list[float] = []  # how many items there are, and their sum
        (valid,) = self._row(one(is_valid).sum())
        self.n = round(self._before[0])
        if self.n == 0 or valid < self.n:
            raise NotAProbability

    def _row(self, *aggregates: nw.Expr) -> list[float]:
        """Return aggregates of all items; null is 0."""
        terms = enumerate((nw.len(), self.p.sum(), *aggregates))
        query = self.items.select(*(each.alias(f"a{i}") for i, each in terms))
        row = [float(value or 0.0) for value in engine_of(query).run(query).row(0)]
        if self._before:
            check_same(self._before, row[:2], "in all")
        self._before = row[:2]
        return row[2:]

    def _array(self, items: Frame) -> Floats:
        """Bring some items here."""
        found = engine_of(items).run(items)
        values: Floats = found[found.columns[0]].to_numpy()
        return values

    def counts(self, sampled: bool = False) -> NDArray[Any]:
        """Count the items in bins, or a sample of them."""
        if sampled:
            share = min(1.0, SAMPLED / self.n)
            sample = self._array(engine_of(self.items).sample(self.items, share))
            return ArrayPasses(sample).counts() * (self.n / max(sample.size, 1))
        rows = binned(self.items, self.p, 2.0**-64, 16, nw.lit(0.0))
        cell = nw.col(CELL)
        grouped = rows.select(cell).group_by(CELL).agg(nw.len().alias(COUNT))
        found = engine_of(self.items).run(grouped)
        table = np.zeros(BINS, np.int64)
        place = ONE - (found[CELL].to_numpy().astype(np.float64).view(np.int64) >> 48)
        np.add.at(table, np.minimum(place, BINS - 1), found[COUNT].to_numpy())
        return table

    def above(self, cut: float) -> list[float]:
        """Return Σ p, how many items are above a threshold, and their Σ p."""
        is_above = self.p > cut
        terms = one(is_above), one(is_above) * self.p
        sums = self._row(*(term.sum() for term in terms))
        return [self._before[1], *sums]

    def around(self, low: float, high: float, room: int) -> Around:
        """Return the sums around a band, and its items in ascending order."""
        p, inside = self.p, (self.p >= low) & (self.p <= high)
        terms = [one(inside)]
        for is_there in (one(p < low), one(p > high)):
            terms.append(is_there * p)
            term = is_there * (1.0 - p)
            for _ in range(POWERS):
                terms.append(term)
                term = term * p
        size, *sums = self._row(*(term.sum() for term in terms))
        items = np.sort(self._array(self.items.filter(inside))) if size <= room else None
        if items is not None:
            check_same(size, items.size, "rows in a range")
        return Around(np.array(sums).reshape(2, -1), items)

    def least_above(self, cut: float) -> float:
        """Return the least item above a threshold."""
        above = nw.when(self.p > cut).then(self.p)
        return self._row(above.min())[0]


def binned(frame: Frame, p: nw.Expr, least: float, cells: int, small: nw.Expr) -> Frame:
    """Add the lower edge of each number's bin: so many in each power of two from `least` on.

    What is nearer to 0 has another edge.
    """
    power = nw.col(POWER)
    is_binned = (p >= least) & (p <= 1.0 / least)
    t = nw.when(is_binned).then(p).otherwise(nw.lit(1.0))
    # Veltkamp: c - (c - t), c = (2^52 + 1) t, is t rounded to one bit, a power of two.
    product = t * (2.0**52 + 1.0)
    edge = power * (1.0 + ((t / power - 1.0) * cells).floor() / cells)
    rows = frame.with_columns((product - (product - t)).alias(POWER))
    rows = rows.with_columns(nw.when(power > t).then(power * 0.5).otherwise(power).alias(POWER))
    found: Frame = rows.with_columns(nw.when(is_binned).then(edge).otherwise(small).alias(CELL))
    return found


def labelled_bins(items: Frame, *, weighted: bool) -> Bins:
    """Count labelled scores in bins, in one query; raise Unusable if a row cannot be used."""
    s, y, w = nw.col(SCORE), nw.col(LABEL), nw.col(WEIGHT) if weighted else one(nw.col(LABEL) >= 0)
    size = nw.when(s < 0.0).then(-s).otherwise(s).alias("size")
    rows = items.with_columns(
        size,
        (one(y == 1) * w).alias("true"),
        (one(y == 0) * w).alias("false"),
        one((y > 1) | ~(w >= 0.0) | ~(w < float("inf"))).alias("bad"),
    )
    rows = binned(rows.filter(w != 0.0), nw.col("size"), LEAST, CELLS, s)
    turned = nw.when(s < 0.0, s >= -1.0 / LEAST, s <= -LEAST).then(-nw.col(CELL))
    rows = rows.with_columns(turned.otherwise(nw.col(CELL)).alias(CELL))
    query = rows.group_by(CELL).agg(
        s.min().alias("low"),
        s.max().alias("high"),
        nw.col("true").sum(),
        nw.col("false").sum(),
        nw.len().alias("rows"),
        nw.col("bad").sum(),
    )
    found = engine_of(items).run(query)
    columns = (found[name].to_numpy().astype(np.float64) for name in (*Bins._fields, "bad"))
    *sums, bad = columns
    if bad.sum() or np.isnan(sums[0]).any():
        raise Unusable
    bins = Bins(*sums)
    return bins.grouped(numbers(bins.low) >> DROPPED_BITS)
