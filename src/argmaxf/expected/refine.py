"""The grouped search for any measure: for ratios, and for measures linear in true positives.

For the latter f is known at the border of two groups from `CountDistribution`. Inside a group that
covers the ranks (a, b] no set is better than a + 1 items among which are all true positives of
the top b: the measure rises with true positives and falls with k. What that leaves open is bounded
again, in ranges of sizes and by the best and worst items of the group. A group whose bounds are
below the best value is closed, others are looked at more finely, as `grouped/search.py` does it for
ratios. Near the optimum f differs from one k to the next in its tenth digit or later: see
`CountDistribution.rises`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.expected.count_distribution import CountDistribution, needs_values
from argmaxf.expected.counts import refuse_many
from argmaxf.expected.decision import ExpectedF
from argmaxf.expected.grouped.groups import Groups
from argmaxf.expected.grouped.search import (
    BOUND_SLACK,
    Path,
    Search,
    best_of,
    run,
    summed_around,
)
from argmaxf.expected.grouped.sources import Source
from argmaxf.measures import Linear
from argmaxf.problem import Problem

CLOSE = 1e-6  # values nearer to the best than this part of their terms are compared in more digits
PARTS = 4, 64  # ranges of sizes that a group is bounded in, first and then


class LinearSearch(Search):
    """The search for the best set, for a `Linear` measure; the last group are items with p = 0."""

    def __init__(
        self, groups: Groups, problem: Problem, counts: CountDistribution | None = None
    ) -> None:
        self.counts = counts
        super().__init__(groups, problem)

    def _again(self, groups: Groups) -> Self:
        return type(self)(groups, self.problem, self.counts)

    @cached_property
    def nothing(self) -> ExpectedF:
        """The value of the empty set, which is a set like others."""
        none = np.zeros((1, self._distribution.nodes.size))
        mean = float(self._distribution.values(np.zeros(1), none)[0])
        return ExpectedF(mean, self._distribution.spread(self.groups[:0], mean))

    @property
    def _distribution(self) -> CountDistribution:
        """The distribution of S; a summary must be sharp enough for it."""
        if self.counts is None:
            raise ValueError(
                f"{self.problem.measure} cannot be computed from a sketch with so few uncertain "
                "items; pass the probabilities"
            )
        return self.counts

    def _evaluate(self) -> Bools:
        """Evaluate all groups; where S is too narrow for groups, those near one half are open."""
        measure, problem = self.problem.measure, self.problem
        assert isinstance(measure, Linear)
        blurred = needs_values(self.groups)
        if blurred.any():
            return blurred
        if self.counts is None:
            self.counts = CountDistribution.of(self.groups, self.n, measure, problem.zero_division)
        if not len(self.groups):
            return blurred
        path = self._evaluated(self.counts)
        self.path = path
        least = self._best(path) - BOUND_SLACK * self._size
        is_open = (path.groups.count > 1) & (path.high > least)
        is_open &= (path.k[1:] > problem.least) & (path.k[:-1] < problem.most)
        # Nothing inside of a run of equal items is better than both its ends, if those may be.
        settled = (path.k[:-1] >= problem.least) & (path.k[1:] <= problem.most)
        is_open &= ~(path.groups.runs & (settled | (not problem.split_ties)))
        for parts in PARTS:
            i = np.flatnonzero(is_open)
            if i.size:
                is_open[i] = self._within(path, i, parts) > least
        return is_open

    def _evaluated(self, counts: CountDistribution) -> Path:
        """Return the values at the borders; those near the best as differences to it."""
        found = counts.found(self.groups)
        k = np.concatenate([[0.0], np.cumsum(self.groups.count)])
        states = np.vstack([np.zeros_like(found[:1]), found.cumsum(axis=0)])
        values = counts.values(k, states)
        top = best_of(values, k, (self._least, self._most))
        self._size = self._terms_at(counts, k[top : top + 1], states[top : top + 1])
        f: Any = (values - values[top]).astype(np.longdouble)
        near = np.abs(values - values[top]) <= CLOSE * self._size
        steps = summed_around(top, found)[near]
        f[near] = counts.rises(np.append(k[top], k[near]), states[top], steps)
        bound = counts.ceilings(np.minimum(k[:-1] + 1.0, k[1:]), k[1:], states[1:])
        return Path(self.groups, k, f, float(values[top]), states, bound, bound)

    def _terms_at(self, counts: CountDistribution, k: Floats, state: Floats) -> float:
        """The size of the terms that the best value is the sum of.

        Sums of both signs may be much smaller. The larger the angles that φ turns by, the more of
        their last digits are lost.
        """
        angle = float(self.groups.mass.sum()) * float(counts.theta[-1])
        return float(counts.scale(k, state)[0]) * (1.0 + 0.01 * angle)

    def _within(self, path: Path, i: Ints, parts: int) -> Floats:
        """Bound the values inside of each of some groups, in so many ranges of sizes.

        The items of a group are no better than its `high` and no worse than its `low`: of its first
        m items no more can be positive than of m like the best, or of all less those like the worst
        that are left out. That is exact in k, so that only the width of a range is lost.
        """
        groups, counts = path.groups[i], self._distribution
        a, b = path.k[i, None], path.k[i + 1, None]
        edges = a + np.floor((b - a) * np.arange(parts + 1) / parts)
        which, piece = np.nonzero(edges[:, 1:] > edges[:, :-1])
        first, last = edges[which, piece] + 1.0, edges[which, piece + 1]
        one = np.ones(i.size)
        best, worst = (counts.found(Groups.of_values(p, one)) for p in (groups.high, groups.low))
        from_above = path.state[i][which] + (last[:, None] - a[which]) * best[which]
        from_below = path.state[i + 1][which] - (b[which] - last[:, None]) * worst[which]
        bounds = counts.ceilings(first, last, from_above, from_below)
        return np.maximum.reduceat(bounds, np.searchsorted(which, np.arange(i.size)))

    @property
    def _offset(self) -> float:
        return 0.0

    def _terms(self, value: float) -> float:
        return self._size

    def _spread(self, above: Groups, below: Groups, value: float) -> float:
        return self._distribution.spread(above, value)


def search(groups: Groups, problem: Problem) -> Search:
    """Begin the search that suits the measure; those with p = 0 are the last group."""
    if problem.ratio is not None:
        return Search(groups, problem)
    if problem.is_linear:
        return LinearSearch(groups, problem)
    refuse_many(int(groups.count.sum()), problem.measure)
    raise ValueError(
        f"the expectation of {problem.measure} cannot be computed from a sketch; pass the "
        "probabilities"
    )


def decide(source: Source, problem: Problem) -> Search:
    """Search the items of a source."""
    return run(source, search(source.table(), problem))
