"""Small sets of items, each sorted and looked at item by item: arrays, rows, columns, segments.

Many sets of any sizes lie one after another in one array, set r from offsets[r] to offsets[r+1];
one compiled kernel decides them all, sets shared out among threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from argmaxf._base.arrays import Floats, Ints, readonly
from argmaxf._base.validation import NotAProbability
from argmaxf.expected import refine
from argmaxf.expected.counts import decide_by_counts
from argmaxf.expected.decision import Decision
from argmaxf.expected.grouped.sources import ArraySource
from argmaxf.expected.threads import in_threads, sets_in_threads, threads_for
from argmaxf.expected.ties import settle
from argmaxf.problem import Problem

SMALL = 1 << 14  # sets of up to so many items are decided here
DECIMALS = 4_000  # operations on decimals that take no longer than a search
WORK = 32  # an item costs about as much as so many in a pass over an array
CACHED = 1 << 17  # items sorted and decided together, while they are in the cache


class Sets(NamedTuple):
    """Sets of probabilities, one after another, each in ascending order."""

    ascending: Floats
    offsets: Ints

    @classmethod
    def of_rows(cls, p: Floats) -> Sets:
        """Sort the rows of a matrix; raise NotAProbability if a value is none."""
        rows, n = p.shape
        ascending = np.sort(p, axis=1)
        if not (ascending[:, 0].min() >= 0.0 and ascending[:, -1].max() <= 1.0):
            raise NotAProbability
        return cls(readonly(ascending.reshape(-1)), readonly(np.arange(rows + 1) * n))

    @classmethod
    def of_values(cls, sets: int, which: Ints, values: Floats, counts: Ints) -> Sets:
        """Put together sets from how often each value occurs in which of them."""
        order = np.lexsort([values, which])
        counts = counts[order]
        sizes = np.bincount(which[order], weights=counts, minlength=sets).astype(np.int64)
        ascending = np.repeat(values[order], counts)
        return cls(ascending, np.concatenate([[0], np.cumsum(sizes)]))


class Decided(NamedTuple):
    """The decisions about many sets: one entry of each array for each set."""

    k: Ints
    threshold: Floats
    expected: Floats
    std: Floats
    ties: Ints  # how many of the items equal to the threshold are chosen, if not all of them

    def decision(self, r: int, n: int, beta: float) -> Decision:
        """Return the decision about one set of n items as a record, without labels."""
        k, threshold, expected, std = (array[r].item() for array in self[:4])
        return Decision(None, k, threshold, expected, std, beta, n)


def decide_rows(p: Floats, problem: Problem) -> Decision:
    """Decide each row of a matrix, rows shared out among threads; of equal items the first.

    Raises NotAProbability if a value is none.
    """
    from argmaxf.expected import marking_kernels

    rows, n = p.shape
    if problem.least:
        problem.check_reachable(int(np.count_nonzero(p > 0.0, axis=1).min()))
    k, ties = np.empty(rows, np.int64), np.empty(rows, np.int64)
    selected = np.empty(p.shape, np.bool_)
    threshold, expected, std = np.empty(rows), np.empty(rows), np.empty(rows)
    step = max(1, CACHED // n)

    def work(part: slice) -> None:
        for start in range(part.start, part.stop, step):
            here = slice(start, min(start + step, part.stop))
            sets = Sets.of_rows(p[here])
            k[here], expected[here], std[here] = _best_sizes(sets, problem)
            marking_kernels.thresholds(*sets, k[here], threshold[here], ties[here])
            np.greater_equal(p[here], threshold[here, None], out=selected[here])
            if (ties[here] < n).any():
                flat, marks = readonly(p[here].reshape(-1)), selected[here].reshape(-1)
                marking_kernels.select_sets(flat, sets.offsets, threshold[here], ties[here], marks)

    in_threads(work, rows, threads_for(WORK * p.size))
    return Decision(selected, k, threshold, expected, std, problem.beta, n)


def decide_sets(sets: Sets, problem: Problem) -> Decided:
    """Return the best top k of each set, near ties settled; sets must not be empty."""
    from argmaxf.expected import marking_kernels

    ascending, offsets = readonly(sets.ascending), readonly(sets.offsets)
    if problem.least > 0 and offsets.size > 1:
        positive = np.add.reduceat((ascending > 0.0).astype(np.int64), offsets[:-1])
        problem.check_reachable(int(positive.min()))
    size = offsets.size - 1
    k, expected, std = np.empty(size, np.int64), np.empty(size), np.empty(size)

    def work(part: slice) -> None:
        places = offsets[part.start : part.stop + 1]
        k[part], expected[part], std[part] = _best_sizes(Sets(ascending, places), problem)

    sets_in_threads(work, offsets, threads_for(WORK * ascending.size))
    threshold, ties = np.empty(size), np.empty(size, np.int64)
    marking_kernels.thresholds(ascending, offsets, k, threshold, ties)
    return Decided(k, threshold, expected, std, ties)


def _best_sizes(sets: Sets, problem: Problem) -> tuple[Ints, Floats, Floats]:
    """Return k, the expected value and its spread of each set, near ties settled."""
    from argmaxf.expected import small_set_kernels

    ascending, offsets = sets
    if problem.ratio is None:
        return decide_by_counts(ascending, offsets, problem)
    size = offsets.size - 1
    k, rivals = np.empty(size, np.int64), np.empty(size, np.int64)
    expected, std = np.empty(size), np.empty(size)
    results = k, expected, std, rivals
    small_set_kernels.decide_sets(ascending, offsets, *options_of(problem), *results)
    if size and expected.min() < 0.0:
        raise problem.no_set()
    for r in np.flatnonzero(rivals > 1).tolist():
        k[r], expected[r], std[r] = settled(ascending[offsets[r] : offsets[r + 1]], problem)
    return k, expected, std


def settled(ascending: Floats, problem: Problem) -> tuple[int, float, float]:
    """Decide a set in which several k are nearer than their error.

    Where there are two tilts and decimals of all of them would take long, the search by exact
    differences leaves few; with one tilt the kernel has left few.
    """
    from argmaxf.expected import small_set_kernels as kernels
    from argmaxf.expected import tilt_kernels as tilts

    f, rule, work = np.empty(ascending.size + 1), np.zeros(tilts.RULE), np.empty(kernels.ROOM)
    kernels.decide_set(ascending, *options_of(problem), rule, work, f)
    rivals = np.flatnonzero(f > -1.0).tolist()
    c, zero = problem.coefficients, problem.zero_division
    if c.b_in != c.b_out and len(rivals) * ascending.size**2 > DECIMALS:
        rivals = refine.decide(ArraySource(ascending), problem)[()].rivals()
    k = settle(ascending[::-1], rivals, problem) if len(rivals) > 1 else rivals[0]
    if k == 0:
        mean, std = kernels.nothing_selected(ascending, ascending.sum(), c, zero, work)
        return 0, mean, std
    deviation = np.empty(1)
    kernels.spreads(ascending, c, zero, np.array([k]), f, deviation)
    return k, f[k], deviation[0]


def options_of(problem: Problem) -> tuple[object, ...]:
    """Return a problem as the kernels take it."""
    limits = problem.least, problem.most
    return problem.coefficients, problem.zero_division, problem.split_ties, limits
