"""The certified optimum: bounds leave few groups, those are looked at more closely, and so on.

At the border of two groups the value of the set is known (`curves.py`). Inside of a group it is
bounded, in ranges of sizes; a group whose bounds are below the best value is closed, others are
open. `Search` never looks at items: it says which groups it wants in finer ones (`wanted`) and is
followed by a search with them (`refined`). `decide` gets them from a source.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.lazy import cached_property
from argmaxf.expected.count_distribution import CountDistribution, needs_values
from argmaxf.expected.counts import refuse_many
from argmaxf.expected.curves import LinearCurve, Path, Pieces, RatioCurve
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.expected.grouped.groups import Groups
from argmaxf.expected.grouped.integrand import Integrand, has_loss, value_of_nothing
from argmaxf.expected.grouped.sources import Source
from argmaxf.expected.quadrature import bounds_of_sets
from argmaxf.measures import Linear
from argmaxf.problem import Problem

TIE_PART = 1e-13  # a difference of f below this part of the terms that differ counts as a tie
NEAR_ONE = 0.3  # where f is certainly above this the loss is searched
BOUND_SLACK = 1e-12  # bounds must hold by more than this, relative to their terms
RUN_PIECES = 64  # a run of equal items is cut into at most this many pieces at a time
PARTS = 1, 16, 256  # ranges of sizes that a group is bounded in, first and then


class BestBorder(NamedTuple):
    """The best border of groups: how many items it takes, their value and its spread."""

    k: int
    f: float
    std: float
    last: Groups  # the one group whose lowest item is the last one chosen; none if k = 0


class Search:
    """The search for the best set among items given in groups by falling probability.

    `wanted` are the neighbouring groups that must be seen more finely; once there are none,
    `optimum` is exact. Items with p = 0 are in the last group, or in none where they change nothing
    (ratios).
    """

    def __init__(
        self, groups: Groups, problem: Problem, counts: CountDistribution | None = None
    ) -> None:
        problem.check_reachable(int(groups.count[groups.high > 0.0].sum()))
        if problem.needs_items:
            refuse_many(int(groups.count.sum()), problem.measure)
            raise ValueError(
                f"the expectation of {problem.measure} cannot be computed from a sketch; pass the "
                "probabilities"
            )
        self.problem, self.counts = problem, counts  # of a linear measure
        self.groups = groups[groups.high > 0.0]
        self.n = float(groups.count.sum())
        self.threshold: float | None = None
        self.path: Path | None = None
        # Sizes of sets that may be the best: nodes are for these, and sums at them for others
        # are below the truth, so that a loss would look like none.
        self._sizes = max(1.0, problem.least), float(problem.most)
        self.is_open = self._evaluate()
        while self.is_open.any() and not self.wanted:
            self.groups = self._replaced(iter(()))
            self.is_open = self._evaluate()

    @cached_property
    def nothing(self) -> ExpectedF:
        """The value of the empty set."""
        if self.problem.ratio is not None:
            return value_of_nothing(self.groups, self.problem)
        if self.counts is None:
            raise ValueError(
                f"{self.problem.measure} cannot be computed from a sketch with so few uncertain "
                "items; pass the probabilities"
            )
        none = np.zeros((1, self.counts.nodes.size))
        mean = float(self.counts.values(np.zeros(1), none)[0])
        return ExpectedF(mean, self.counts.spread(self.groups[:0], mean))

    def _evaluate(self) -> Bools:
        """Evaluate the groups up to the largest k that can be the best; mark those left open.

        Where the number of positives is too narrow for groups (linear measures), those near one
        half are open.
        """
        problem, groups = self.problem, self.groups
        is_open, useful = np.zeros(len(groups), np.bool_), len(groups)
        if problem.ratio is None:
            measure = problem.measure
            assert isinstance(measure, Linear)
            if (blurred := needs_values(groups)).any():
                return blurred
            if self.counts is None:
                zero = problem.zero_division
                self.counts = CountDistribution.of(groups, self.n, measure, zero)
            self._curve: RatioCurve | LinearCurve = LinearCurve(self.counts)
        elif useful:
            useful = self._prepare_ratio()
        if not useful:
            return is_open
        self.path = self._curve.path(groups[:useful], groups[useful:], self._sizes)
        is_open[:useful] = self._open_groups(self.path)
        return is_open

    def _prepare_ratio(self) -> int:
        """Prepare a ratio for the sizes that can be the best; return how many groups these take."""
        problem, c, count = self.problem, self.problem.coefficients, self.groups.count
        k, mass = np.cumsum(count), self.groups.mass
        worth, bound = bounds_of_sets(count, mass, mass, c)
        allowed = (k >= problem.least) & (k <= problem.most)
        best = float(worth.max(where=allowed, initial=0.0))
        first, last = np.flatnonzero(bound >= best * (1.0 - BOUND_SLACK))[[0, -1]]
        least, most = self._sizes
        least, reach = max(least, k[first] - count[first] + 1.0), min(max(k[last], least), k[-1])
        self._sizes = least, min(most, reach)
        form = Integrand.of(self.groups, c, reach, least)
        self._curve = RatioCurve(form, is_loss=has_loss(c) and best > NEAR_ONE)
        return int(np.searchsorted(k, reach)) + 1

    def _open_groups(self, path: Path) -> Bools:
        """Mark the groups inside of which a better set may end.

        Inside of a run of equal items none is better than both of its ends, if those may be chosen:
        for linear measures, and others as `Problem` says.
        """
        problem, groups, (least, most) = self.problem, path.groups, self._sizes
        start, stop, best = path.k[:-1], path.k[1:], self._best(path) - BOUND_SLACK * path.terms
        is_open = (groups.count > 1) & (stop > least) & (start < most)
        whole = (start >= problem.least) & (stop <= most)
        if not problem.split_ties:
            is_open &= ~groups.runs
        if problem.ratio is None or problem.peaks_between_levels:
            is_open &= ~(groups.runs & whole)
        if problem.ratio is not None and problem.rises_at_the_top and stop[0] <= most:
            is_open[0] &= not groups.runs[0]
        i = np.flatnonzero(is_open & groups.runs & whole & (start >= least))
        if isinstance(self._curve, RatioCurve) and i.size:
            is_open[i] = self._curve.above_chords(path, i) > best
        for parts in PARTS:
            i = np.flatnonzero(is_open)
            if i.size:
                is_open[i] = self._highest_inside(path, i, parts) > best
        return is_open

    def _highest_inside(self, path: Path, i: Ints, parts: int) -> Floats:
        """Bound the values of sets that end inside of some groups, in so many ranges of sizes."""
        least, most = self._sizes
        before = np.maximum(path.k[i, None], least - 1.0)
        last = np.minimum(path.k[i + 1, None] - 1.0, most)
        edges = before + np.floor(np.maximum(last - before, 0.0) * np.arange(parts + 1) / parts)
        group, piece = np.nonzero(edges[:, 1:] > edges[:, :-1])
        pieces = Pieces(group, edges[group, piece] + 1.0, edges[group, piece + 1])
        highest = np.full(i.size, -math.inf)
        np.maximum.at(highest, group, self._curve.ceilings(path, i, pieces))
        return highest

    def _parts(self) -> Iterator[slice]:
        """Yield neighbouring open groups: runs of equal items, or others."""
        kind = np.where(self.is_open, 1 + self.groups.runs, 0)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], kind, [0]])))
        for first, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            if kind[first]:
                yield slice(first, stop)

    @property
    def wanted(self) -> list[Groups]:
        """The groups that must be seen more finely, those that are neighbours together."""
        return [self.groups[at] for at in self._parts() if not self.groups.runs[at.start]]

    def refined(self, finer: Sequence[Groups]) -> Self:
        """Return the search with finer groups in the place of what was wanted, part by part."""
        return type(self)(self._replaced(iter(finer)), self.problem, self.counts)

    def _replaced(self, finer: Iterator[Groups]) -> Groups:
        """Put finer groups in the place of open ones; runs are cut by arithmetic."""
        pieces, done = [], 0
        for at in self._parts():
            part = self.groups[at]
            pieces += [
                self.groups[done : at.start],
                part.split_runs(RUN_PIECES) if part.runs[0] else next(finer),
            ]
            done = at.stop
        zeros = self.n - float(self.groups.count.sum())
        none = Groups.of_values(np.zeros(1), np.array([zeros]))[: int(zeros > 0)]
        return Groups.joined([*pieces, self.groups[done:], none])

    def decision(self, n: int) -> Decision:
        """The decision about n items as a record, without labels, once nothing is wanted."""
        k, f, std, last = self.optimum
        threshold = float(last.low[0]) if k else math.inf
        threshold = threshold if self.threshold is None else self.threshold
        return Decision(None, k, threshold, f, std, self.problem.beta, n)

    @cached_property
    def optimum(self) -> BestBorder:
        """The best of all borders and the empty set, and the spread there.

        Values that differ by a small part of the terms that the sets do not share are a tie. The
        loss may hang on a few items alone: then nothing of it is shared.
        """
        nothing = BestBorder(0, *self.nothing, self.groups[:0])
        if self.path is None:
            return nothing
        k, f, reference = self.path.k, self.path.f, self.path.reference
        allowed, offset = self._allowed(self.path), self._curve.offset
        if not allowed.any():
            if self.problem.least > 0:
                raise self.problem.no_set()
            return nothing
        top = int(np.argmax(np.where(allowed, f, -math.inf)))
        part, size = np.abs(k - k[top]) / np.maximum(1.0, np.maximum(k, k[top])), abs(reference)
        differing = np.minimum(part, size) if offset else size * part
        tied = allowed & (f >= f[top] - TIE_PART * differing)
        value = offset + (reference + float(f[top]))
        terms = max(value, self.path.terms)
        if self.problem.least == 0 and value - self.nothing.mean <= TIE_PART * terms:
            return nothing
        chosen = int(np.flatnonzero(tied)[0])
        above, value = self.groups[:chosen], offset + (reference + float(f[chosen]))
        std = self._curve.spread(above, self.groups[chosen:], value)
        return BestBorder(int(k[chosen]), value, std, above[-1:])

    def _allowed(self, path: Path) -> Bools:
        """Mark the borders that may be selected, of those that may be the best."""
        least, most = self._sizes
        allowed: Bools = (path.k >= least) & (path.k <= most)
        return allowed

    def _best(self, path: Path) -> float:
        """The best value at the borders that may be selected."""
        allowed = self._allowed(path)
        return path.reference + float(path.f[allowed].max()) if allowed.any() else -math.inf


def decide(source: Source, problem: Problem) -> Search:
    """Search the items of a source."""
    search = Search(source.table(), problem)
    while wanted := search.wanted:
        search = search.refined(source.refine(wanted))
    last = search.optimum.last
    if search.optimum.k and not last.runs[0]:
        below = np.nextafter(last.low, -1.0)
        search.threshold = float(source.passes.least_above(below)[0])
    return search
