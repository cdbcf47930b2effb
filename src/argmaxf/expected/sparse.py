"""Decisions about sparse matrices: each column, each row, or all cells; nothing is made dense.

Cells that are not stored have p = 0. They are never selected, since one more item that cannot be
positive lowers F, and they change no expectation: a column is decided from its stored cells alone.
For the same reason columns of like size may lie side by side as a small dense matrix, filled up
with zeros (`Batches`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints, as_csr
from argmaxf.expected.decision import Decision
from argmaxf.expected.route import decide_large
from argmaxf.expected.small_sets import SMALL, WORK, Decided, Sets, decide_sets
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.measures import Measure, Ratio
from argmaxf.problem import Problem

# Widths of batches; each is at most a quarter more than the one before, or one more.
WIDTHS = np.unique(np.append(np.ceil(1.25 ** np.arange(44)), SMALL)).astype(np.int64)
SCATTERED = 4  # an item put where its column is costs about as much as so many in a plain pass


def decide_sparse(matrix: Any, problem: Problem, average: str) -> Decision:
    """Decide the columns, rows or all cells of a sparse matrix; the labels are a CSR too.

    Holds the stored values a second time, with up to a quarter more, and one mark for each.
    """
    if problem.ratio is None:
        raise _refused(problem.measure)
    csr = as_csr("p", matrix)
    ways = {"macro": _columns, "samples": _rows, "micro": _all_cells}
    chosen, decision = ways[average](csr, problem)
    return replace(decision, selected=selected_cells(csr, chosen, matrix))


def _refused(measure: Measure) -> ValueError:
    """Say why a measure cannot be had for a sparse matrix."""
    why = (
        "a ratio whose denominator falls with true positives, found from all counts of the items"
        if isinstance(measure, Ratio)
        else "for which cells that are not stored count too"
    )
    return ValueError(
        f"sparse p is for ratios (F, Jaccard, …), got {measure}, {why}; give a dense p"
    )


def _columns(csr: Any, problem: Problem) -> tuple[Bools, Decision]:
    """Decide each column: values are put column by column, their rows are never needed."""
    from argmaxf.expected import marking_kernels

    decided = _by_columns(csr).decide(problem)
    threshold, chosen = decided.threshold, np.empty(csr.data.size, np.bool_)

    def mark(part: slice) -> None:
        marking_kernels.mark_from(csr.indices[part], csr.data[part], threshold, chosen[part])

    in_threads(mark, chosen.size, threads_for(SCATTERED * chosen.size))
    if np.count_nonzero(chosen) > decided.k.sum():  # some columns split equal values
        marking_kernels.mark_columns(csr.indices, csr.data, threshold, decided.ties, chosen)
    return chosen, _decision(decided, problem, csr.shape[0])


def _by_columns(csr: Any) -> Batches:
    """Put the stored values where their columns are, the cells shared out among threads.

    Each thread first counts its part of the cells, so that it knows where in each column to write.
    """
    from argmaxf.expected import marking_kernels

    cells, columns = csr.indices.size, csr.shape[1]
    parts = max(1, min(threads_for(SCATTERED * cells), cells // max(columns, 1)))
    cuts = np.linspace(0, cells, parts + 1).astype(int)
    place = np.empty((parts + 1, columns), np.int64)

    def count(part: slice) -> None:
        here = slice(cuts[part.start], cuts[part.stop])
        marking_kernels.count_columns(csr.indices[here], place[part.stop])

    def put(part: slice) -> None:
        here = slice(cuts[part.start], cuts[part.stop])
        marking_kernels.put_values(csr.indices[here], csr.data[here], place[part.start], values)

    in_threads(count, parts, parts)
    batches = Batches.of(place[1:].sum(axis=0))
    values = batches.values
    place[0] = batches.first
    np.cumsum(place, axis=0, out=place)
    in_threads(put, parts, parts)
    return batches


def _rows(csr: Any, problem: Problem) -> tuple[Bools, Decision]:
    """Decide each row."""
    chosen, decided = _stored_sets(csr, csr.indptr.astype(np.int64), problem)
    return chosen, _decision(decided, problem, csr.shape[1])


def _all_cells(csr: Any, problem: Problem) -> tuple[Bools, Decision]:
    """Decide all cells as one set."""
    chosen, decided = _stored_sets(csr, np.array([0, csr.data.size]), problem)
    return chosen, decided.decision(0, math.prod(csr.shape), problem.beta)


def _stored_sets(csr: Any, first: Ints, problem: Problem) -> tuple[Bools, Decided]:
    """Decide sets of cells that are stored one after another."""
    from argmaxf.expected import marking_kernels

    batches = Batches.of(np.diff(first))
    marking_kernels.copy_sets(csr.data, first, batches.first, batches.values)
    decided = batches.decide(problem)
    chosen = np.empty(csr.data.size, np.bool_)
    marking_kernels.select_sets(csr.data, first, decided.threshold, decided.ties, chosen)
    return chosen, decided


def _decision(decided: Decided, problem: Problem, n: int) -> Decision:
    """Return the decisions about many sets of n items as a record, without labels."""
    k, threshold, expected, std, _ = decided
    return Decision(None, k, threshold, expected, std, problem.beta, n)


def selected_cells(csr: Any, chosen: Bools, like: Any) -> Any:
    """Return the chosen ones of the stored cells as a CSR of booleans, array or matrix as given."""
    from scipy import sparse

    from argmaxf.expected import marking_kernels

    kept = int(np.count_nonzero(chosen))
    indptr, indices = np.empty_like(csr.indptr), np.empty(kept + 1, csr.indices.dtype)
    marking_kernels.keep_cells(csr.indptr, csr.indices, chosen, indptr, indices)
    content = (np.ones(kept, np.bool_), indices[:kept], indptr)
    make = sparse.csr_array if isinstance(like, sparse.sparray) else sparse.csr_matrix
    return make(content, shape=csr.shape)


@dataclass(frozen=True, eq=False)
class Batches:
    """Sets of any sizes, those of like size side by side as a matrix, filled up with zeros.

    A zero changes no decision. Set r lies from first[r] on, its batch's width long. The rows of a
    matrix are sorted by NumPy in one call, which for rows of a few hundred numbers takes a tenth of
    the time of sorting them one by one.
    """

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
    in_threads(lambda part: matrix[part].sort(axis=1), rows, threads_for(WORK * matrix.size))
    return decide_sets(Sets(matrix.reshape(-1), np.arange(rows + 1) * n), problem)


def _decide_large(matrix: Floats, problem: Problem) -> list[Any]:
    """Decide sets too large to be sorted, one by one."""
    found = []
    for p in matrix:
        decision = decide_large(p, problem)
        ties = np.count_nonzero(np.asarray(decision.selected) & (p == decision.threshold))
        found.append([decision.k, decision.threshold, decision.expected, decision.std, ties])
    return list(zip(*found, strict=True))
