"""Labelled scores counted in bins, and the search for the best cut in bins that can be refined.

A bin holds all rows whose scores, as doubles, agree in sign, exponent and the first eight bits of
the fraction: 256 bins for each power of two. It knows its lowest and its highest score, so every
cut between bins is an exact one. A cut inside a bin has at most all positives of the bin and at
least none of its negatives, and measures rise with true and fall with false positives. That bounds
what refining the bin can find; bins that cannot hold the best cut stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints, contiguous
from argmaxf._base.compiled import kernel
from argmaxf.empirical.cuts import ROUNDING_ERROR, Counts, CutProblem, Cuts, thresholds
from argmaxf.empirical.threshold import Solution, solution_at
from argmaxf.measures import MCC, FBeta

FRACTION_BITS = 8
DROPPED_BITS = 52 - FRACTION_BITS  # bits of a double that a bin does not look at
MOST_BINS = 1 << (64 - DROPPED_BITS)


class NotLabelled(Exception):
    """A row without a label, a score or a weight that can be used."""


class Bins(NamedTuple):
    """Disjoint bins by falling score; a bin of one score has low = high."""

    low: Floats
    high: Floats
    true: Floats  # weight of its positives
    false: Floats  # weight of its negatives
    rows: Floats

    def where(self, chosen: Any) -> Bins:
        """Return some of the bins."""
        return Bins(*(column[chosen] for column in self))

    @property
    def counts(self) -> Counts:
        """What the cut at the end of each bin holds."""
        return Counts(self.low, np.cumsum(self.true), np.cumsum(self.false))

    def grouped(self, key: Any) -> Bins:
        """Return bins of equal keys as one."""
        order = np.argsort(-key)
        key = key[order]
        starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: key.size])
        merge = np.minimum, np.maximum, np.add, np.add, np.add
        columns = zip(merge, self, strict=True)
        return Bins(*(f.reduceat(c[order], starts) if c.size else c for f, c in columns))


EMPTY = Bins(*(np.zeros(0) for _ in Bins._fields))


class Zoom(NamedTuple):
    """Which bins rows are counted in: those of so many bits less, from the first one on."""

    first: int = -MOST_BINS // 2
    size: int = MOST_BINS
    shift: int = DROPPED_BITS

    @classmethod
    def into(cls, low: float, high: float) -> Zoom:
        """Return the finest bins for scores between two numbers."""
        first, last = numbers(np.array([low, high])).tolist()
        shift = max(0, (last - first).bit_length() - (64 - DROPPED_BITS) + 1)
        return cls(first >> shift, (last >> shift) - (first >> shift) + 1, shift)

    def table(self) -> Floats:
        """Return a table of empty bins, whose memory is not touched before it is used."""
        return np.zeros((self.size, len(EMPTY)))

    def add(self, table: Floats, y: Any, score: Any, weight: Any) -> None:
        """Count rows, all of them in these bins; raise NotLabelled if one has no label or score.

        Labels are 0 and 1 in bytes; any other number stands for what cannot be used.
        """
        score = contiguous(score)
        bits, heavy = score.view(np.int64), np.zeros(0) if weight is None else weight
        y = np.ascontiguousarray(y).view(np.uint8)
        if count_labelled(y, score, bits, heavy, self.first, self.shift, table):
            raise NotLabelled

    def bins(self, table: Floats) -> Bins:
        """Return the bins of a table that are not empty."""
        rows, true, false, low, high = table[np.flatnonzero(table[:, 0])[::-1]].T
        return Bins(low, high, true, false, rows)


@kernel
def count_labelled(
    y: Any, score: Any, bits: Any, weight: Any, first: Any, shift: Any, table: Any
) -> Any:
    """Add rows to the bins of a table; return how many cannot be used. Weights may be none.

    A bin has its rows, the weights of positives and of negatives, the lowest and the highest score.
    The bits of doubles, those of negative numbers but the sign turned round, are ordered as they.
    """
    bad = 0
    for i in range(score.size):
        s = score[i] + 0.0  # one zero only
        w = weight[i] if weight.size else 1.0
        if s != s or y[i] > 1 or not (0.0 <= w < np.inf):
            bad += 1
        elif w > 0.0:
            number = bits[i] ^ ((bits[i] >> 63) & 0x7FFFFFFFFFFFFFFF) if s != 0.0 else 0
            row = table[(number >> shift) - first]
            row[3] = s if row[0] == 0.0 else min(row[3], s)
            row[4] = s if row[0] == 0.0 else max(row[4], s)
            row[0] += 1.0
            row[1 if y[i] else 2] += w
    return bad


def numbers(score: Floats) -> Ints:
    """Return whole numbers in the order of scores."""
    bits = (score + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))


# The rows with scores from one number to another: labels, scores, and weights or None.
Between = Callable[[float, float], Iterable[tuple[Any, Any, Any]]]


@dataclass(frozen=True)
class BinSearch:
    """The search for the best cut of rows that are counted in bins."""

    problem: CutProblem
    bins: Bins

    @cached_property
    def cuts(self) -> Cuts:
        """The cuts at the ends of the bins, after the empty one."""
        return self.problem.rated_to_all(self.bins.counts)

    @cached_property
    def summed(self) -> float:
        """How many weights the counts are sums of: 0 if all weights are 1."""
        bins = self.bins
        whole = np.array_equal(bins.true + bins.false, bins.rows)
        return 0.0 if whole else float(bins.rows.sum())

    def best(self, kind: Any = np.float64) -> Solution:
        """Return the best cut between bins; its threshold has the type of the scores."""
        bins, cuts = self.bins, self.cuts
        i = self.problem.best(cuts, self.summed)
        beside = (each[max(i - 1, 0) : i + 1].astype(kind) for each in (bins.low, bins.high))
        return solution_at(cuts, i, thresholds(*beside)[min(i, 1)], bins.rows[:i].sum())

    def bounds(self) -> Floats:
        """Return the most that a cut inside each bin can reach, -inf where none can be the best."""
        bins, ends = self.bins, self.bins.counts
        recall, precision, rate, slack = self.problem.limits(self.cuts, self.summed)
        s, n = ends.true[-1], ends.size[-1]
        true, false = ends.true - bins.true, ends.false - bins.false  # before each bin
        before, full = (self.problem.value(t, t + false, s, n) for t in (true, ends.true))
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

    def exact(self, between: Between, kind: Any = np.float64) -> Solution:
        """Return the best of all cuts, or say what constraints can be reached."""
        search = self.settled(between)
        with suppress(ValueError):
            return search.best(kind)
        for without, measure in (
            ({"min_recall": None, "min_precision": None}, FBeta(1e6)),  # the highest recall
            ({"min_precision": None}, FBeta(1e-9)),  # the highest precision
        ):
            asked = replace(self.problem.constraints, **without)
            eased = replace(self.problem, measure=measure, constraints=asked)
            search = replace(search, problem=eased).settled(between)
        return replace(search, problem=self.problem).best(kind)


def refined(bins: Bins, chosen: Bools, between: Between) -> Bins:
    """Return the bins with the chosen ones divided by one more look at the rows between them."""
    wanted = bins.where(chosen)
    low, high = float(wanted.low[-1]), float(wanted.high[0])
    zoom, span = Zoom.into(low, high), numbers(wanted.high) - numbers(wanted.low)
    if wanted.rows[span >> zoom.shift > 0].sum() < wanted.rows.sum() / 2:
        most = int(np.argmax(wanted.rows))  # the bins are far apart
        low, high = float(wanted.low[most]), float(wanted.high[most])
        zoom = Zoom.into(low, high)
    table = zoom.table()
    for rows in between(low, high):
        zoom.add(table, *rows)
    found, divided = zoom.bins(table), (bins.low >= low) & (bins.high <= high)
    check_same(bins.where(divided), found)
    both = Bins(*map(np.append, bins.where(~divided), found))
    return both.where(np.argsort(-both.low))


def check_same(before: Bins, after: Bins) -> None:
    """Refuse rows that are not those that were counted before."""
    for name in ("rows", "true", "false"):
        first, second = (float(getattr(bins, name).sum()) for bins in (before, after))
        if abs(first - second) > 1e-9 * first:
            raise ValueError(
                "the frame must have the same rows each time it is read, got "
                f"{first!r} in a range of scores and then {second!r}"
            )
