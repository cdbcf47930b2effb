"""Labelled scores counted in bins.

A bin of a `BinTable` holds all rows whose scores, as doubles, agree in sign, exponent and the first
eight bits of the fraction: 256 bins for each power of two. It knows its lowest and its highest
score, so every cut between bins is an exact one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from argmaxf._base.arrays import Floats, Ints, contiguous
from argmaxf._base.compiled import kernel
from argmaxf._base.validation import Unusable

FRACTION_BITS = 8
DROPPED_BITS = 52 - FRACTION_BITS  # bits of a double that a bin does not look at
MOST_BITS = 64 - DROPPED_BITS
MOST_BINS = 1 << MOST_BITS


class Bins(NamedTuple):
    """Rows counted in disjoint bins, by falling score; a bin of one score has low = high."""

    low: Any
    high: Any
    true: Any  # weight of its positives
    false: Any  # weight of its negatives
    rows: Any

    @property
    def size(self) -> Any:
        """What each bin holds in all."""
        return self.true + self.false

    def running(self) -> Bins:
        """Return these bins with what each and all before it hold: the cuts at their ends."""
        return Bins(self.low, self.high, *(np.cumsum(each) for each in self[2:]))

    def where(self, chosen: Any) -> Bins:
        """Return some of the bins."""
        return Bins(*(column[chosen] for column in self))

    def grouped(self, key: Any) -> Bins:
        """Return bins of equal keys as one."""
        order = np.argsort(-key)
        key = key[order]
        starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: key.size])
        merge = np.minimum, np.maximum, np.add, np.add, np.add
        columns = zip(merge, self, strict=True)
        return Bins(*(f.reduceat(c[order], starts) if c.size else c for f, c in columns))


EMPTY = Bins(*(np.zeros(0) for _ in Bins._fields))


class BinTable:
    """A table of bins in which rows are counted: those of so many bits less, from a first one on.

    Its memory is not touched before it is used.
    """

    def __init__(
        self, first: int = -MOST_BINS // 2, size: int = MOST_BINS, shift: int = DROPPED_BITS
    ) -> None:
        self.first, self.shift = first, shift
        self.table = np.zeros((size, len(EMPTY)))

    @classmethod
    def between(cls, low: float, high: float, bits: int) -> BinTable:
        """Return the finest bins for scores between two numbers, of which there are 2^bits."""
        first, last = numbers(np.array([low, high])).tolist()
        shift = max(0, (last - first).bit_length() - bits + 1)
        return cls(first >> shift, (last >> shift) - (first >> shift) + 1, shift)

    def add(self, y: Any, score: Any, weight: Any) -> None:
        """Count rows, all of them in these bins; raise Unusable if one has no label or score.

        Labels are 0 and 1 in bytes; any other number stands for what cannot be used.
        """
        score = contiguous(score)
        bits, heavy = score.view(np.int64), np.zeros(0) if weight is None else weight
        y = np.ascontiguousarray(y).view(np.uint8)
        if count_labelled(y, score, bits, heavy, self.first, self.shift, self.table):
            raise Unusable

    @property
    def bins(self) -> Bins:
        """The bins that are not empty."""
        rows, true, false, low, high = self.table[np.flatnonzero(self.table[:, 0])[::-1]].T
        return Bins(low, high, true, false, rows)


@kernel
def count_labelled(
    y: Any, score: Any, bits: Any, weight: Any, first: Any, shift: Any, table: Any
) -> Any:
    """Add rows to the bins of a table, or return how many cannot be used. Weights may be none.

    A bin has its rows, the weights of positives and of negatives, the lowest and the highest score.
    The bits of doubles, those of negative numbers but the sign turned round, are ordered as they.
    """
    bad = 0
    for i in range(score.size):
        bad += 1 if (score[i] != score[i]) | (y[i] > 1) else 0
    for i in range(weight.size):
        bad += 0 if (weight[i] >= 0.0) & (weight[i] < np.inf) else 1
    for i in range(score.size if bad == 0 else 0):
        w = weight[i] if weight.size else 1.0
        if w > 0.0:
            s = score[i] + 0.0  # one zero only
            number = bits[i] ^ ((bits[i] >> 63) & 0x7FFFFFFFFFFFFFFF) if s != 0.0 else 0
            r = np.uint64((number >> shift) - first)  # signed, it might count from the end
            if not table[r, 3] <= s <= table[r, 4]:
                table[r, 3] = s if table[r, 0] == 0.0 else min(table[r, 3], s)
                table[r, 4] = s if table[r, 0] == 0.0 else max(table[r, 4], s)
            table[r, 0] += 1.0
            table[r, np.uint64(2 - y[i])] += w
    return bad


def numbers(score: Floats) -> Ints:
    """Return whole numbers in the order of scores."""
    bits = (score + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))
