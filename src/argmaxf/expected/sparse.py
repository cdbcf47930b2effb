"""Decisions about sparse matrices: each column, each row, or all cells; nothing is made dense.

Cells that are not stored have p = 0. They are never selected, since one more item that cannot be
positive lowers F, and they change no expectation: a column is decided from its stored cells alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from argmaxf.arrays import Bools, Floats, Ints
from argmaxf.expected.decision import Decision
from argmaxf.expected.large import decide_large
from argmaxf.expected.rows import SMALL, Decided, Sets, decide_sets
from argmaxf.expected.sources.sparse import as_csr, selected_cells
from argmaxf.expected.threads import sets_in_threads, threads_for
from argmaxf.question import Question

SORTING = 16  # an item costs about as much to sort as so many in a pass over an array


def decide_sparse(matrix: Any, question: Question, average: str) -> Decision:
    """Decide the columns, rows or all cells of a sparse matrix; the labels are a CSR too.

    Holds two copies of the stored values, and one mark for each.
    """
    csr = as_csr("proba", matrix)
    ways = {"macro": _columns, "samples": _rows, "micro": _all_cells}
    chosen, decision = ways[average](csr, question)
    return replace(decision, selected=selected_cells(csr, chosen, matrix))


def _columns(csr: Any, question: Question) -> tuple[Bools, Decision]:
    """Decide each column: values are put column by column, their rows are never needed."""
    from argmaxf.expected import sparse_kernels

    first = np.empty(csr.shape[1] + 1, np.int64)
    values, chosen = np.empty(csr.data.size), np.empty(csr.data.size, np.bool_)
    sparse_kernels.values_by_column(csr.indices, csr.data, first, values)
    decided = _decide_sets(values, first, question)
    sparse_kernels.mark_columns(csr.indices, csr.data, decided.threshold, decided.ties, chosen)
    return chosen, _decision(decided, question, csr.shape[0])


def _rows(csr: Any, question: Question) -> tuple[Bools, Decision]:
    """Decide each row."""
    chosen, decided = _stored_sets(csr, csr.indptr.astype(np.int64), question)
    return chosen, _decision(decided, question, csr.shape[1])


def _all_cells(csr: Any, question: Question) -> tuple[Bools, Decision]:
    """Decide all cells as one set."""
    chosen, decided = _stored_sets(csr, np.array([0, csr.data.size]), question)
    return chosen, decided.decision(0, math.prod(csr.shape), question.beta)


def _stored_sets(csr: Any, first: Ints, question: Question) -> tuple[Bools, Decided]:
    """Decide sets of cells that are stored one after another."""
    from argmaxf.expected import row_kernels

    decided = _decide_sets(csr.data.copy(), first, question)
    chosen = np.empty(csr.data.size, np.bool_)
    row_kernels.select_sets(csr.data, first, decided.threshold, decided.ties, chosen)
    return chosen, decided


def _decision(decided: Decided, question: Question, n: int) -> Decision:
    """Return the decisions about many sets of n items as a record, without labels."""
    k, threshold, expected, std, _ = decided
    return Decision(None, k, threshold, expected, std, question.beta, n)


def _decide_sets(values: Floats, first: Ints, question: Question) -> Decided:
    """Decide sets of any sizes that lie one after another; they may be sorted where they lie."""
    sizes = np.diff(first)
    empty = np.flatnonzero(sizes == 0)
    decided = Decided._make(np.empty(sizes.size, kind) for kind in (int, float, float, float, int))
    if empty.size:  # as one item that cannot be positive
        _put(decided, empty, decide_sets(Sets(np.zeros(1), np.array([0, 1])), question))
    small = np.flatnonzero((sizes > 0) & (sizes <= SMALL))
    if small.size:
        _put(decided, small, decide_sets(_sorted_sets(values, first, small), question))
    for r in np.flatnonzero(sizes > SMALL):
        _put(decided, r, _decide_one(values[first[r] : first[r + 1]], question))
    return decided


def _put(decided: Decided, where: Any, found: tuple[Any, ...]) -> None:
    """Fill in what was found about some of the sets."""
    for target, source in zip(decided, found, strict=True):
        target[where] = source


def _sorted_sets(values: Floats, first: Ints, wanted: Ints) -> Sets:
    """Return some of the sets in ascending order: copied, unless they are all."""
    from argmaxf.expected import sparse_kernels

    offsets = first
    if wanted.size < first.size - 1:
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(first)[wanted])])
        kept = np.empty(offsets[-1])
        sparse_kernels.gather_sets(values, first, wanted, offsets, kept)
        values = kept

    def work(part: slice) -> None:
        sparse_kernels.sort_sets(values, offsets[part.start : part.stop + 1])

    sets_in_threads(work, offsets, threads_for(SORTING * values.size))
    return Sets(values, offsets)


def _decide_one(p: Floats, question: Question) -> tuple[Any, ...]:
    """Decide one large set: k, threshold, expectation, spread, and the ties that are chosen."""
    decision = decide_large(p, question)
    ties = np.count_nonzero(np.asarray(decision.selected) & (p == decision.threshold))
    return decision.k, decision.threshold, decision.expected, decision.std, ties
