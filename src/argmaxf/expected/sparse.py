"""Decisions about sparse matrices: each column, each row, or all cells; nothing is made dense.

Cells that are not stored have p = 0. They are never selected, since one more item that cannot be
positive lowers F, and they change no expectation: a column is decided from its stored cells alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from argmaxf._base.arrays import Bools, as_csr
from argmaxf.expected.decision import Decision
from argmaxf.expected.small_sets import decide_sets
from argmaxf.measures import Measure, Ratio
from argmaxf.problem import Problem


def decide_sparse(matrix: Any, problem: Problem, average: str) -> Decision:
    """Decide the columns, rows or all cells of a sparse matrix; the labels are a CSR too.

    Holds the stored values a second time, for columns with their rows, and one mark for each.
    """
    if problem.ratio is None:
        raise _refused(problem.measure)
    csr = as_csr("p", matrix)
    if average == "macro":
        columns = csr.tocsc()
        decision = decide_sets(columns.data, columns.indptr.astype(np.int64), problem)
        columns.data = decision.selected.astype(np.float64)
        chosen, n = columns.tocsr().data > 0.0, csr.shape[0]
    else:
        ends = csr.indptr if average == "samples" else np.array([0, csr.data.size])
        decision = decide_sets(csr.data, ends.astype(np.int64), problem)
        chosen, n = decision.selected, csr.shape[1]
    decision = replace(decision, selected=selected_cells(csr, chosen, matrix), n=n)
    if average != "micro":
        return decision
    names = ("k", "threshold", "expected", "std")
    one = {name: getattr(decision, name)[0].item() for name in names}
    return replace(decision, n=math.prod(csr.shape), **one)


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


def selected_cells(csr: Any, chosen: Bools, like: Any) -> Any:
    """Return the chosen ones of the stored cells as a CSR of booleans, array or matrix as given."""
    from scipy import sparse

    ends = np.concatenate([[0], np.cumsum(chosen)])[csr.indptr].astype(csr.indptr.dtype)
    content = (np.ones(int(ends[-1]), np.bool_), csr.indices[chosen], ends)
    make = sparse.csr_array if isinstance(like, sparse.sparray) else sparse.csr_matrix
    return make(content, shape=csr.shape)
