"""The certified optimum of a measure that is linear in true positives, among any number of items.

At the border of two groups f is known from `Law`. Inside a group that covers the ranks (a, b] no
set is better than a + 1 items among which are all true positives of the top b: the measure rises
with true positives and falls with k. A group whose bound is below the best value is closed, others
are looked at more finely, as `expected/search.py` does it for ratios. Near the optimum f differs
from one k to the next in its tenth digit or later; differences are taken in extended precision.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argmaxf.arrays import Bools, Floats
from argmaxf.expected.counts.law import Law, needs_values
from argmaxf.expected.decision import ExpectedF
from argmaxf.expected.search import SLACK, Ladder, Optimum, Search, Stretch
from argmaxf.expected.summary.groups import Groups
from argmaxf.measures import Linear
from argmaxf.question import Question


class LinearSearch(Search):
    """The search for the best set, for a `Linear` measure; the last group are items with p = 0."""

    def __init__(self, groups: Groups, question: Question) -> None:
        self.n = float(groups.count.sum())
        self._sharp = False
        super().__init__(groups, question)

    def _value_of_nothing(self) -> ExpectedF:
        """Prepare the law of S, which everything hangs on; the empty set is a set like others."""
        measure = self.question.measure
        assert isinstance(measure, Linear)
        if needs_values(self.groups).any():
            return ExpectedF(0.0, 0.0)  # not known before the items near one half are
        self._sharp = True
        self.law = Law.of(self.groups, self.n, measure, self.question.zero_division)
        none = np.zeros((1, self.law.nodes.size))
        mean = float(self.law.values(np.zeros(1), none)[0])
        return ExpectedF(mean, self.law.spread(self.groups[:0], mean))

    def _start(self) -> None:
        """Climb all groups; where S is too narrow for groups near one half, ask for their items."""
        if not self._sharp:
            self._stretches = [self._blurred()]
            return
        start = np.zeros(self.law.nodes.size)
        self._climb([self._climbed(self.groups, 0.0, None, (start, start), (), ())])

    def _blurred(self) -> Stretch:
        """Return the groups that must be seen as single values, and what lies between them."""
        which = np.flatnonzero(needs_values(self.groups))
        nothing = np.zeros((len(self.groups) + 1, 0))
        k = np.concatenate([[0.0], np.cumsum(self.groups.count)])
        ladder = Ladder(self.groups, k, 0.0 * k, nothing, nothing, nothing, (), ())
        return Stretch(ladder, int(which[0]), int(which[-1]) + 1)

    def refine(self, finer: Sequence[Groups]) -> None:
        """Take in the items of what was wanted in finer groups, part by part."""
        if self._sharp:
            super().refine(finer)
            return
        (stretch,), self._stretches = self._stretches, []
        parts = iter(list(finer) or [each[:0] for each in self.wanted])
        whole = stretch.ladder.groups
        found = stretch.joined(parts)
        self.groups = Groups.joined([whole[: stretch.first], found, whole[stretch.stop :]])
        self.nothing = self._value_of_nothing()
        self._start()
        self._ask()

    def best_border(self) -> Optimum:
        """Compare all borders; a summary must be sharp enough for that."""
        if not self._sharp:
            raise ValueError(
                f"{self.question.measure} of so few uncertain items needs the items, got a summary"
            )
        return super().best_border()

    def _climbed(
        self,
        groups: Groups,
        k0: float,
        f0: float | None,
        ends: tuple[Floats, Floats],
        before: tuple[Groups, ...],
        after: tuple[Groups, ...],
    ) -> Ladder:
        """Climb the groups from the border at k0, where f is known, as is the state there."""
        steps = self.law.found(groups).cumsum(axis=0)
        states = ends[0] + np.vstack([np.zeros_like(ends[0]), steps])
        k = k0 + np.concatenate([[0.0], np.cumsum(groups.count)])
        if f0 is None:
            f = self.law.values(k, states)
        else:
            a, b = self.law.parts(k)
            inside = a[1:] * steps + (a[1:] - a[0]) * ends[0] + (b[1:] - b[0]) * self.law.mass
            f = np.concatenate([[f0], f0 + inside.sum(axis=1)])
        bound = self.law.ceilings(np.minimum(k[:-1] + 1.0, k[1:]), k[1:], states[1:])
        return Ladder(groups, k, f, states, bound, bound, before, after)

    def _open(self, ladder: Ladder) -> Bools:
        """Mark the groups whose bound does not close them."""
        question, k = self.question, ladder.k
        slack = SLACK * self._terms(self._best)
        is_open = (ladder.groups.count > 1) & (ladder.high > self._best - slack)
        is_open &= (k[1:] > question.least) & (k[:-1] < question.most)
        return is_open if question.split_ties else is_open & ~ladder.groups.runs

    @property
    def _offset(self) -> float:
        return 0.0

    def _terms(self, value: float) -> float:
        """The size of the terms at the best border: sums of both signs may be much smaller.

        The larger the angles that φ turns by, the more of their last digits are lost.
        """
        best = max(self._ladders, key=lambda ladder: float(ladder.f[1:].max()))
        top = int(np.argmax(best.f[1:])) + 1
        size = float(self.law.scale(best.k[top : top + 1], best.state[top : top + 1])[0])
        return size * (1.0 + 0.01 * float(self.groups.mass.sum()) * float(self.law.theta[-1]))

    def _spread(self, above: Groups, below: Groups, value: float) -> float:
        return self.law.spread(above, value)
