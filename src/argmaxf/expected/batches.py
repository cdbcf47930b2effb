"""Many sets of any sizes, those of like size side by side as a matrix, filled up with zeros.

A zero changes no decision. The rows of a matrix are sorted by NumPy in one call, which for rows of
a few hundred numbers takes a tenth of the time of sorting them one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from argmaxf._base.arrays import Floats, Ints
from argmaxf.expected.large import decide_large
from argmaxf.expected.rows import SMALL, Decided, Sets, decide_sets
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.problem import Problem

SORTING = 16  # an item costs about as much to sort as so many in a pass over an array
# Widths of the matrices; each is at most a quarter more than the one before, or one more.
WIDTHS = np.unique(np.append(np.ceil(1.25 ** np.arange(44)), SMALL)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Batches:
    """Sets of probabilities: set r from first[r] on, its batch's width long, zeros at the end."""

    values: Floats  # all zero until they are filled in
    first: Ints
    order: Ints  # the sets in the order in which they lie
    width: Ints  # of the sets in that order, ascending

    @classmethod
    def of(cls, sizes: Ints) -> Batches:
        """Make room for sets of these sizes; one of more than SMALL items has just its own."""
        width = WIDTHS[np.minimum(np.searchsorted(WIDTHS, sizes), WIDTHS.size - 1)]
        width = np.maximum(width, sizes)
        order = np.argsort(width, kind="stable")
        ends = np.cumsum(width[order])
        first = np.empty_like(ends)
        first[order] = ends - width[order]
        return cls(np.zeros(ends[-1] if ends.size else 0), first, order, width[order])

    def decide(self, problem: Problem) -> Decided:
        """Return the best top k of each set; the values are sorted where they lie."""
        kinds = (np.int64, np.float64, np.float64, np.float64, np.int64)
        decided = Decided._make(np.empty(self.first.size, kind) for kind in kinds)
        for which, matrix in self._matrices():
            large = matrix.shape[1] > SMALL
            found = _decide_large(matrix, problem) if large else _decide_rows(matrix, problem)
            for target, source in zip(decided, found, strict=True):
                target[which] = source
        return decided

    def _matrices(self) -> Iterator[tuple[Ints, Floats]]:
        """Yield sets of one width, and their values as the rows of a matrix."""
        cuts = np.flatnonzero(np.diff(self.width, prepend=0, append=0))
        for start, stop in pairwise(cuts.tolist()):
            width, begin = int(self.width[start]), int(self.first[self.order[start]])
            end = begin + (stop - start) * width
            yield self.order[start:stop], self.values[begin:end].reshape(-1, width)


def _decide_rows(matrix: Floats, problem: Problem) -> Decided:
    """Decide the rows of a matrix, which are sorted in place."""
    rows, n = matrix.shape
    in_threads(lambda part: matrix[part].sort(axis=1), rows, threads_for(SORTING * matrix.size))
    return decide_sets(Sets(matrix.reshape(-1), np.arange(rows + 1) * n), problem)


def _decide_large(matrix: Floats, problem: Problem) -> list[Any]:
    """Decide sets too large to be sorted, one by one."""
    found = []
    for p in matrix:
        decision = decide_large(p, problem)
        ties = np.count_nonzero(np.asarray(decision.selected) & (p == decision.threshold))
        found.append([decision.k, decision.threshold, decision.expected, decision.std, ties])
    return list(zip(*found, strict=True))
