"""Decisions about sparse matrices: each column, each row, or all cells; nothing is made dense.

Cells that are not stored have p = 0. They are never selected, since one more item that cannot be
positive lowers F, and they change no expectation: a column is decided from its stored cells alone.
For the same reason columns of like size may lie side by side as a small dense matrix, filled up
with zeros (`small_sets.Batches`).
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from argmaxf._base.arrays import Bools, Ints
from argmaxf.expected.decision import Decision
from argmaxf.expected.small_sets import Batches, Decided
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.measures import Measure, Ratio
from argmaxf.problem import Problem

SCATTERED = 4  # an item put where its column is costs about as much as so many in a plain pass


def decide_sparse(matrix: Any, problem: Problem, average: str) -> Decision:
    """Decide the columns, rows or all cells of a sparse matrix; the labels are a CSR too.

    Holds the stored values a second time, with up to a quarter more, and one mark for each.
    """
    if problem.ratio is None:
        raise _refused(problem.measure)
    csr = as_csr("proba", matrix)
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
        f"sparse proba is for ratios (F, Jaccard, …), got {measure}, {why}; give a dense proba"
    )


def _columns(csr: Any, problem: Problem) -> tuple[Bools, Decision]:
    """Decide each column: values are put column by column, their rows are never needed."""
    from argmaxf.expected import sparse_kernels

    decided = _by_columns(csr).decide(problem)
    threshold, chosen = decided.threshold, np.empty(csr.data.size, np.bool_)

    def mark(part: slice) -> None:
        sparse_kernels.mark_from(csr.indices[part], csr.data[part], threshold, chosen[part])

    in_threads(mark, chosen.size, threads_for(SCATTERED * chosen.size))
    if np.count_nonzero(chosen) > decided.k.sum():  # some columns split equal values
        sparse_kernels.mark_columns(csr.indices, csr.data, threshold, decided.ties, chosen)
    return chosen, _decision(decided, problem, csr.shape[0])


def _by_columns(csr: Any) -> Batches:
    """Put the stored values where their columns are, the cells shared out among threads.

    Each thread first counts its part of the cells, so that it knows where in each column to write.
    """
    from argmaxf.expected import sparse_kernels

    cells, columns = csr.indices.size, csr.shape[1]
    parts = max(1, min(threads_for(SCATTERED * cells), cells // max(columns, 1)))
    cuts = np.linspace(0, cells, parts + 1).astype(int)
    place = np.empty((parts + 1, columns), np.int64)

    def count(part: slice) -> None:
        here = slice(cuts[part.start], cuts[part.stop])
        sparse_kernels.count_columns(csr.indices[here], place[part.stop])

    def put(part: slice) -> None:
        here = slice(cuts[part.start], cuts[part.stop])
        sparse_kernels.put_values(csr.indices[here], csr.data[here], place[part.start], values)

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
    from argmaxf.expected import small_set_kernels, sparse_kernels

    batches = Batches.of(np.diff(first))
    sparse_kernels.copy_sets(csr.data, first, batches.first, batches.values)
    decided = batches.decide(problem)
    chosen = np.empty(csr.data.size, np.bool_)
    small_set_kernels.select_sets(csr.data, first, decided.threshold, decided.ties, chosen)
    return chosen, decided


def _decision(decided: Decided, problem: Problem, n: int) -> Decision:
    """Return the decisions about many sets of n items as a record, without labels."""
    k, threshold, expected, std, _ = decided
    return Decision(None, k, threshold, expected, std, problem.beta, n)


def is_sparse(values: Any) -> bool:
    """Whether something is a SciPy sparse matrix or array; SciPy is not imported to find out."""
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(values))


def as_csr(name: str, matrix: Any) -> Any:
    """Return a sparse matrix of probabilities as a CSR array of float64 without stored zeros.

    Duplicates are added up, as SciPy does wherever it looks at a matrix; what was given is left as
    it is. Holds one copy of the cells.
    """
    from scipy import sparse

    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {matrix.dtype}")
    csr = sparse.csr_array(matrix, dtype=np.float64)
    if not csr.has_canonical_format:
        csr = csr.copy() if np.shares_memory(csr.data, _stored(matrix)) else csr
        csr.sum_duplicates()
    _check_range(name, csr)
    if csr.data.size and not csr.data.all():
        csr = csr.copy() if np.shares_memory(csr.data, _stored(matrix)) else csr
        csr.eliminate_zeros()
    return csr


def _stored(matrix: Any) -> Any:
    """Return the stored numbers of a matrix, where its format has them in one array."""
    data = getattr(matrix, "data", None)
    return data if isinstance(data, np.ndarray) and data.dtype.kind != "O" else np.empty(0)


def _check_range(name: str, csr: Any) -> None:
    """Refuse what is no probability, naming the first in row order."""
    data = csr.data
    if data.size == 0 or (data.min() >= 0.0 and data.max() <= 1.0):
        return
    first = int(np.flatnonzero(~((data >= 0.0) & (data <= 1.0)))[0])
    row = int(np.searchsorted(csr.indptr, first, side="right")) - 1
    where = (row, int(csr.indices[first]))
    raise ValueError(
        f"{name} must be finite and in [0, 1], got {float(data[first])!r} at position {where}"
    )


def selected_cells(csr: Any, chosen: Bools, like: Any) -> Any:
    """Return the chosen ones of the stored cells as a CSR of booleans, array or matrix as given."""
    from scipy import sparse

    from argmaxf.expected import sparse_kernels

    kept = int(np.count_nonzero(chosen))
    indptr, indices = np.empty_like(csr.indptr), np.empty(kept + 1, csr.indices.dtype)
    sparse_kernels.keep_cells(csr.indptr, csr.indices, chosen, indptr, indices)
    content = (np.ones(kept, np.bool_), indices[:kept], indptr)
    make = sparse.csr_array if isinstance(like, sparse.sparray) else sparse.csr_matrix
    return make(content, shape=csr.shape)
