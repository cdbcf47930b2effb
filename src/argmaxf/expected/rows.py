"""Small sets of items, each sorted and looked at item by item: arrays, rows, columns, segments.

Many sets of any sizes lie one after another in one array, set r from offsets[r] to offsets[r+1];
one compiled kernel decides them all, sets shared out among threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints, readonly
from argmaxf._base.validation import NotAProbability
from argmaxf.expected import drive
from argmaxf.expected.counts.sets import decide_by_counts
from argmaxf.expected.decision import Decision
from argmaxf.expected.sources.array import ArraySource
from argmaxf.expected.threads import in_threads, sets_in_threads, threads_for
from argmaxf.expected.ties import settle
from argmaxf.problem import Problem

SMALL = 1 << 14  # sets of up to so many items are decided here
DECIMALS = 4_000  # operations on decimals that take no longer than a search
WORK = 64  # an item costs about as much as so many in a pass over an array


def sorted_rows(p: Floats) -> Floats:
    """Sort each row of a matrix; raise NotAProbability if a value is none."""
    ascending = np.sort(p, axis=1)
    if not (ascending[:, 0].min() >= 0.0 and ascending[:, -1].max() <= 1.0):
        raise NotAProbability
    return ascending


class Sets(NamedTuple):
    """Sets of probabilities, one after another, each in ascending order."""

    ascending: Floats
    offsets: Ints

    @classmethod
    def of_rows(cls, p: Floats) -> Sets:
        """Sort the rows of a matrix; raise NotAProbability if a value is none."""
        rows, n = p.shape
        return cls(sorted_rows(p).reshape(-1), np.arange(rows + 1) * n)

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
    ties: Ints  # how many of the items equal to the threshold are chosen

    def decision(self, r: int, n: int, beta: float) -> Decision:
        """Return the decision about one set of n items as a record, without labels."""
        k, threshold, expected, std = (array[r].item() for array in self[:4])
        return Decision(None, k, threshold, expected, std, beta, n)


def decide_rows(p: Floats, problem: Problem) -> Decision:
    """Decide each row of a matrix by a measure that is a ratio, rows shared out among threads.

    Raises NotAProbability if a value is none.
    """
    from argmaxf.expected import set_kernels

    rows, n = p.shape
    ascending = readonly(sorted_rows(p))
    if problem.least:
        problem.check_reachable(int(np.count_nonzero(p, axis=1).min()))
    k, rivals = np.empty(rows, np.int64), np.empty(rows, np.int64)
    threshold, expected, std = np.empty(rows), np.empty(rows), np.empty(rows)
    selected, options = np.empty(p.shape, np.bool_), options_of(problem)

    def work(part: slice) -> None:
        results = (each[part] for each in (k, threshold, expected, std, rivals, selected))
        set_kernels.decide_rows(p[part], ascending[part], *options, *results)
        for r in _contested(rivals, part):
            k[r], expected[r], std[r] = settled(ascending[r], problem)
            threshold[r] = set_kernels.mark(p[r], ascending[r], k[r], selected[r])

    in_threads(work, rows, threads_for(WORK * p.size))
    if expected.min() < 0.0:
        raise problem.no_set()
    return Decision(selected, k, threshold, expected, std, problem.beta, n)


def decide_sets(sets: Sets, problem: Problem) -> Decided:
    """Return the best top k of each set, near ties settled; sets must not be empty."""
    from argmaxf.expected import set_kernels

    ascending, offsets = readonly(sets.ascending), readonly(sets.offsets)
    if problem.ratio is None:
        _check_limits(ascending, offsets, problem)
        return _decided(ascending, offsets, *decide_by_counts(ascending, offsets, problem))
    size = offsets.size - 1
    k, rivals = np.empty(size, np.int64), np.empty(size, np.int64)
    expected, std = np.empty(size), np.empty(size)

    def work(part: slice) -> None:
        results = (each[part] for each in (k, expected, std, rivals))
        places = offsets[part.start : part.stop + 1]
        set_kernels.decide_sets(ascending, places, *options_of(problem), *results)
        for r in _contested(rivals, part):
            items = ascending[offsets[r] : offsets[r + 1]]
            k[r], expected[r], std[r] = settled(items, problem)

    _check_limits(ascending, offsets, problem)
    sets_in_threads(work, offsets, threads_for(WORK * ascending.size))
    if size and expected.min() < 0.0:
        raise problem.no_set()
    return _decided(ascending, offsets, k, expected, std)


def _contested(rivals: Ints, part: slice) -> list[int]:
    """Return the sets of a part in which several k look as good."""
    if rivals[part].max(initial=0) <= 1:
        return []
    found: list[int] = (np.flatnonzero(rivals[part] > 1) + part.start).tolist()
    return found


def _check_limits(ascending: Floats, offsets: Ints, problem: Problem) -> None:
    """Refuse to select more items of a set than can be positive."""
    if problem.least > 0 and offsets.size > 1:
        positive = np.add.reduceat((ascending > 0.0).astype(np.int64), offsets[:-1])
        problem.check_reachable(int(positive.min()))


def select_rows(p: Floats, decided: Decided) -> Bools:
    """Mark the chosen items of each row of a matrix; of equal ones the first are chosen."""
    from argmaxf.expected import set_kernels

    rows, n = p.shape
    flat, selected = readonly(p.reshape(-1)), np.empty(p.size, np.bool_)
    offsets = readonly(np.arange(rows + 1) * n)

    def work(part: slice) -> None:
        places = offsets[part.start : part.stop + 1]
        limits = decided.threshold[part], decided.ties[part]
        set_kernels.select_sets(flat, places, *limits, selected)

    in_threads(work, rows, threads_for(p.size))
    return selected.reshape(p.shape)


def _decided(ascending: Floats, offsets: Ints, k: Ints, expected: Floats, std: Floats) -> Decided:
    """Find the lowest chosen item of each set, and how many equal to it are chosen."""
    from argmaxf.expected import set_kernels

    first = np.minimum(offsets[1:] - k, offsets[1:] - 1)  # of the chosen ones, if there are any
    threshold = np.where(k > 0, ascending[first], math.inf)
    ties = np.empty(k.size, np.int64)
    set_kernels.count_ties(ascending, offsets, k, threshold, ties)
    return Decided(k, threshold, expected, std, ties)


def settled(ascending: Floats, problem: Problem) -> tuple[int, float, float]:
    """Decide a set in which several k are nearer than their error.

    Where there are two tilts and decimals of all of them would take long, the search by exact
    differences leaves few; with one tilt the kernel has left few.
    """
    from argmaxf.expected import row_kernels

    f = np.empty(ascending.size + 1)
    options = options_of(problem)
    row_kernels.decide_row(ascending, *options, -1, f)
    rivals = np.flatnonzero(f > -1.0).tolist()
    two_tilts = problem.coefficients.b_in != problem.coefficients.b_out
    if two_tilts and len(rivals) * ascending.size**2 > DECIMALS:
        rivals = drive.decide(ArraySource(ascending), problem)[()].rivals()
    k = settle(ascending[::-1], rivals, problem) if len(rivals) > 1 else rivals[0]
    _, expected, std, _ = row_kernels.decide_row(ascending, *options, k, f)
    return k, expected, std


def options_of(problem: Problem) -> tuple[object, ...]:
    """Return a question as the kernels take it."""
    limits = problem.least, problem.most
    return problem.coefficients, problem.zero_division, problem.split_ties, limits
