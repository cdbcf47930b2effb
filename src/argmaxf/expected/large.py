"""Large sets of items: a summary of all, closer looks at a few, no sorting."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf.arrays import contiguous
from argmaxf.expected import drive
from argmaxf.expected.counts.gmean import decide_gmean
from argmaxf.expected.decision import Decision
from argmaxf.expected.sources.array import ArraySource
from argmaxf.expected.sources.base import Cut
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.measures import GMean
from argmaxf.question import Question
from argmaxf.validation import NotAProbability

AT_ONCE = 1 << 20  # so many items are decided by one compiled loop; more are read in chunks
LEAST_B, LARGEST_B = 1e-4, 100.0  # beyond, the whole search has its own care for rounding
BAD = -1  # instead of k: a value that is no probability
NEAR_ONE = 0.98  # beyond, the loss must be searched: differences of f are lost


def decide_large(p: NDArray[Any], question: Question) -> Decision:
    """Decide many items from their summary and closer looks at a few, without sorting."""
    if isinstance(question.measure, GMean):
        return decide_gmean(p, question)
    return decide_at_once(p, question) or decide_by_search(p, question)


def decide_by_search(p: NDArray[Any], question: Question) -> Decision:
    """Decide any question by the search over groups."""
    source = ArraySource(p)
    search = drive.decide(source, question)[()]
    return replace(search.decision(p.size), selected=source.select({(): search.cut}))


def decide_large_rows(p: NDArray[Any], question: Question) -> list[Decision]:
    """Decide each row of a matrix, rows shared out among threads."""
    found: list[Any] = [None] * len(p)

    def work(part: slice) -> None:
        for r in range(part.start, part.stop):
            found[r] = decide_large(p[r], question)

    in_threads(work, len(p), threads_for(p.size) if p.shape[1] <= AT_ONCE else 1)
    return found


def _loop_for(question: Question) -> Any:
    """Return the compiled loop that knows a question, or None.

    There is one for F_β and one for Jaccard: every k, equal items apart, nothing promised.
    """
    if question.ratio is None or question.asked or not (question.is_free and question.split_ties):
        return None
    c, b_in, b_out, s0, s1 = question.ratio
    if s0 == s1 == 0.0 and LEAST_B <= b_in == b_out <= LARGEST_B:
        from argmaxf.expected import large_kernels

        return large_kernels.decide_large
    if (c, b_in, b_out, s0, s1) == (1.0, 0.0, 1.0, 0.0, 0.0):
        from argmaxf.expected import large_jaccard_kernels

        return large_jaccard_kernels.decide_large
    return None


def decide_at_once(p: NDArray[Any], question: Question) -> Decision | None:
    """Decide by the compiled loop; None where it has no answer, or the empty set may be better.

    None too where it would have to be compiled first: the search does without in half the time.
    """
    loop = _loop_for(question) if p.size <= AT_ONCE else None
    if loop is None:
        return None
    items = contiguous(p)  # a copy where they are not of double precision
    if not loop.is_ready(items, question.coefficients):
        return None
    k, threshold, f, std = loop(items, question.coefficients)
    if k == BAD:
        raise NotAProbability
    if k < 0 or f > NEAR_ONE or question.zero_division * math.exp(-float(np.sum(items))) >= 0.5 * f:
        return None
    selected = ArraySource(p).select({(): Cut(threshold, k)})
    values = int(k), float(threshold), float(f), float(std)
    return Decision(selected, *values, question.beta, p.size)
