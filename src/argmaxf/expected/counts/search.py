"""The certified optimum of a measure that is linear in true positives, among any number of items.

At the border of two groups f is known from `Law`. Inside a group that covers the ranks (a, b] no
set is better than a + 1 items among which are all true positives of the top b: the measure rises
with true positives and falls with k. What that leaves open is bounded again, in ranges of sizes
and by the best and worst items of the group. A group whose bounds are below the best value is
closed, others are looked at more finely, as `grouped/search.py` does it for ratios. Near the
optimum f differs from one k to the next in its tenth digit or later: see `Law.rises`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.expected.counts.law import Law, needs_values
from argmaxf.expected.decision import ExpectedF
from argmaxf.expected.grouped.bounds import BOUND_SLACK, Interval, Path, Start
from argmaxf.expected.grouped.groups import Groups
from argmaxf.expected.grouped.search import BestBorder, Search
from argmaxf.measures import Linear
from argmaxf.problem import Problem

PARTS = 4, 64  # ranges of sizes that a group is bounded in, first and then
FAINT = 1e-4  # of smaller values the rounding of waves, 1e-16 or so, is a part that may matter


class LinearSearch(Search):
    """The search for the best set, for a `Linear` measure; the last group are items with p = 0."""

    def __init__(self, groups: Groups, problem: Problem) -> None:
        self.n = float(groups.count.sum())
        self._sharp = False
        super().__init__(groups, problem)

    def _value_of_nothing(self) -> ExpectedF:
        """Prepare the law of S, which everything hangs on; the empty set is a set like others."""
        measure = self.problem.measure
        assert isinstance(measure, Linear)
        if needs_values(self.groups).any():
            return ExpectedF(0.0, 0.0)  # not known before the items near one half are
        self._sharp = True
        self.law = Law.of(self.groups, self.n, measure, self.problem.zero_division)
        none = np.zeros((1, self.law.nodes.size))
        mean = float(self.law.values(np.zeros(1), none)[0])
        return ExpectedF(mean, self.law.spread(self.groups[:0], mean))

    def _start(self) -> None:
        """Evaluate all groups; ask for items near one half where S is too narrow for groups."""
        if not self._sharp:
            self._intervals = [self._blurred()]
            return
        start = np.zeros(self.law.nodes.size)
        self._take_in([self._evaluated(Start(self.groups, 0.0, None, (start, start)))])

    def _blurred(self) -> Interval:
        """Return the groups that must be seen as single values, and what lies between them."""
        which = np.flatnonzero(needs_values(self.groups))
        nothing = np.zeros((len(self.groups) + 1, 0))
        k = Start(self.groups, 0.0, None, (nothing, nothing)).borders()
        path = Path(self.groups, k, 0.0 * k, nothing, nothing, nothing, (), ())
        return Interval(path, int(which[0]), int(which[-1]) + 1)

    def refine(self, finer: Sequence[Groups]) -> None:
        """Take in the items of what was wanted in finer groups, part by part."""
        if self._sharp:
            super().refine(finer)
            return
        (interval,), self._intervals = self._intervals, []
        parts = iter(list(finer) or [each[:0] for each in self.wanted])
        whole = interval.path.groups
        found = interval.joined(parts)
        self.groups = Groups.joined([whole[: interval.first], found, whole[interval.stop :]])
        self.nothing = self._value_of_nothing()
        self._start()
        self._ask()

    def best_border(self) -> BestBorder:
        """Compare all borders; a summary must be sharp enough for that."""
        if not self._sharp:
            raise ValueError(
                f"{self.problem.measure} of so few uncertain items needs the items, got a summary"
            )
        found = super().best_border()
        return found._replace(ambiguous=found.ambiguous or abs(found.f) < FAINT)

    def _evaluated(self, start: Start) -> Path:
        """Evaluate groups from a border on at which f is known, as is the state there."""
        first, k = start.ends[0], start.borders()
        steps = self.law.found(start.groups).cumsum(axis=0)
        states = first + np.vstack([np.zeros_like(first), steps])
        f: Any  # in extended precision
        if start.f is None:
            f = self.law.values(k, states).astype(np.longdouble)
        else:
            f = np.concatenate([[start.f], start.f + self.law.rises(k, first, steps)])
        bound = self.law.ceilings(np.minimum(k[:-1] + 1.0, k[1:]), k[1:], states[1:])
        return Path(start.groups, k, f, states, bound, bound, start.before, start.after)

    def _open(self, path: Path) -> Bools:
        """Mark the groups that the bounds do not close: they may hold a better value."""
        self._note_best(path)
        problem, k = self.problem, path.k
        least = self._best - BOUND_SLACK * self._size
        is_open = (path.groups.count > 1) & (path.high > least)
        is_open &= (k[1:] > problem.least) & (k[:-1] < problem.most)
        # Nothing inside of a run of equal items is better than both its ends, if those may be.
        settled = (k[:-1] >= problem.least) & (k[1:] <= problem.most) | (not problem.split_ties)
        is_open &= ~(path.groups.runs & settled)
        for parts in PARTS:
            i = np.flatnonzero(is_open)
            if i.size:
                is_open[i] = self._within(path, i, parts) > least
        return is_open

    def _within(self, path: Path, i: Ints, parts: int) -> Floats:
        """Bound the values inside of each of some groups, in so many ranges of sizes.

        The items of a group are no better than its `high` and no worse than its `low`: of its first
        m items no more can be positive than of m like the best, or of all less those like the worst
        that are left out. That is exact in k, so that only the width of a interval is lost.
        """
        groups, law = path.groups[i], self.law
        a, b = path.k[i, None], path.k[i + 1, None]
        edges = a + np.floor((b - a) * np.arange(parts + 1) / parts)
        which, piece = np.nonzero(edges[:, 1:] > edges[:, :-1])
        first, last = edges[which, piece] + 1.0, edges[which, piece + 1]
        one = np.ones(i.size)
        best, worst = (law.found(Groups.of_values(p, one)) for p in (groups.high, groups.low))
        from_above = path.state[i][which] + (last[:, None] - a[which]) * best[which]
        from_below = path.state[i + 1][which] - (b[which] - last[:, None]) * worst[which]
        bounds = law.ceilings(first, last, from_above, from_below)
        return np.maximum.reduceat(bounds, np.searchsorted(which, np.arange(i.size)))

    def _note_best(self, path: Path) -> None:
        """Note the size of the terms that the best value so far is the sum of.

        Sums of both signs may be much smaller. The larger the angles that φ turns by, the more of
        their last digits are lost.
        """
        top = int(np.argmax(path.f[1:])) + 1
        if self._paths[0] is path or path.f[top] >= self._best:
            size = self.law.scale(path.k[top : top + 1], path.state[top : top + 1])[0]
            angle = float(self.groups.mass.sum()) * float(self.law.theta[-1])
            self._size = float(size) * (1.0 + 0.01 * angle)

    @property
    def _offset(self) -> float:
        return 0.0

    def _terms(self, value: float) -> float:
        return self._size

    def chosen(self) -> Floats:
        """What the best set finds: E[T ℓ_j(S)] in one row."""
        k = np.concatenate([path.k for path in self._paths])
        state = np.concatenate([path.state for path in self._paths])
        return np.asarray(state[k == self.optimum.k][:1])

    def _spread(self, above: Groups, below: Groups, value: float) -> float:
        return self.law.spread(above, value)
