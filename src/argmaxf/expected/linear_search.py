r"""The certified optimum of measures linear in true positives, and G-mean within a bound.

*Linear measures.* At the border of two groups f is known from `CountDistribution`. Inside a group
that covers the ranks (a, b] no set is better than a + 1 items among which are all true positives of
the top b: the measure rises with true positives and falls with k. What that leaves open is bounded
again, in ranges of sizes and by the best and worst items of the group. A group whose bounds are
below the best value is closed, others are looked at more finely, as `grouped/search.py` does it for
ratios. Near the optimum f differs from one k to the next in its tenth digit or later: see
`CountDistribution.rises`.

*G-mean* of more items than all counts can be looked at: a very good set, and a proof how good. It
is √(X Y) with X = T/S and Y = TN/(n-S). For any c > 0, √(X Y) ≤ (X/c + c Y) / 2, and that is a
measure that is linear in true positives, whose optimum over all sets is found exactly. So every c
bounds the expected G-mean of every set. At c = √(E[X] / E[Y]) of its own best set the bound is
least, √(E[X] E[Y]); what that set's E[√(X Y)] lacks of it is about Var(log X - log Y) / 8 of it,
1 part in 8 times the number of positives or so. Linear measures never part equal items, G-mean
does: where the best set jumps from one to another as c grows, a size between them is the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.expected.count_distribution import CountDistribution, needs_values
from argmaxf.expected.counts import value_by_counts
from argmaxf.expected.decision import BoundedDecision, ExpectedF, top_items
from argmaxf.expected.grouped.groups import Groups
from argmaxf.expected.grouped.search import (
    BOUND_SLACK,
    BestBorder,
    Cut,
    Path,
    Search,
    best_of,
    run,
    summed_around,
)
from argmaxf.expected.grouped.sources import ArraySource
from argmaxf.measures import Linear
from argmaxf.measures.base import others
from argmaxf.problem import Problem

NEAR = 1e-6  # values nearer to the best than this part of their terms are compared in more digits
PARTS = 4, 64  # ranges of sizes that a group is bounded in, first and then
FAINT = 1e-4  # of smaller values the rounding of waves, 1e-16 or so, is a part that may matter
ROUNDS = 8  # c settles in three or four
SETTLED = 1e-5  # the bound is off by the square of that
FAR = 30.0  # log c at which one rate alone counts
SCARCE = 200.0  # positives or negatives; of fewer the sizes between two sets are looked at


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
        near = np.abs(values - values[top]) <= NEAR * self._size
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

    @cached_property
    def optimum(self) -> BestBorder:
        """The best of all borders, which is in doubt where it is small."""
        found = super().optimum
        return found._replace(ambiguous=found.ambiguous or abs(found.f) < FAINT)

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

    def chosen(self) -> Floats:
        """What the best set finds: E[T ℓ_j(S)] in one row."""
        if self.path is None:
            return np.zeros((1, self._distribution.nodes.size))
        return np.asarray(self.path.state[self.path.k == self.optimum.k][:1])

    def _spread(self, above: Groups, below: Groups, value: float) -> float:
        return self._distribution.spread(above, value)


@dataclass(frozen=True)
class Rates(Linear):
    """(X/c + c Y) / 2 for the rates X and Y at which positives and negatives are found."""

    name: ClassVar[str] = "rates"
    c: float = 1.0

    @property
    def title(self) -> str:
        """Both rates, weighed."""
        return "mean of rates"

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return both rates over one denominator."""
        negatives = others(s, n)
        missed = negatives - (k - tp)
        return tp * negatives / self.c + self.c * missed * s, 2 * s * negatives


class _Best(NamedTuple):
    """The best set for one c: its size, its rates E[X] and E[Y], and what bounds every set."""

    k: int
    x: float
    y: float
    bound: float
    cut: Cut

    @property
    def balance(self) -> float:
        """log √(E[X] / E[Y])."""
        return 0.5 * math.log(max(self.x, 1e-300) / max(self.y, 1e-300))


@dataclass
class _Relaxed:
    """Some items and a question, asked for (X/c + c Y) / 2 instead."""

    source: ArraySource
    problem: Problem
    bound: float = math.inf

    def at(self, log_c: float) -> _Best:
        """Return the best set for one c; keep the least bound."""
        rates = replace(self.problem, measure=Rates(math.exp(log_c)))
        search = run(self.source, partial(LinearSearch, problem=rates))[()]
        best = _Best(search.optimum.k, *_rates(search), float(search.optimum.f), search.cut)
        self.bound = min(self.bound, best.bound)
        return best


def decide_gmean(p: NDArray[Any], problem: Problem) -> BoundedDecision:
    """Return the set that the bound is best for, its expected G-mean, and the bound."""
    relaxed = _Relaxed(ArraySource(p), problem)
    best = _settled(relaxed)
    if best is None:
        best = _between(p, *_neighbours(relaxed), problem)
    selected = top_items(p, *best)
    mean, std = _value(p, selected, problem)
    empty = np.zeros_like(selected)
    if problem.least == 0 and mean <= (nothing := _value(p, empty, problem)).mean:
        best, selected, (mean, std) = Cut(math.inf, 0), empty, nothing
    fields = selected, best.k, best.threshold, mean, std, problem.beta, p.size
    return BoundedDecision(*fields, bound=max(relaxed.bound, mean))


def _settled(relaxed: _Relaxed) -> Cut | None:
    """Return the set whose own c is that which it is the best for; None where c jumps over it."""
    x, last = 0.0, (math.nan, math.nan)
    for _ in range(ROUNDS):  # x = log c, by secants
        best = relaxed.at(x)
        away = best.balance - x
        if abs(away) < SETTLED:
            return best.cut
        steep = (away - last[1]) / (x - last[0])
        last = x, away
        x -= away / (steep if steep < 0.0 else -1.0)
        if x == last[0] or abs(x) > FAR:
            break
    return None


def _neighbours(relaxed: _Relaxed) -> tuple[_Best, _Best]:
    """Return the two sets that are the best for the c at which the bound is least.

    One has too many items for it, one too few. Where two sets are worth the same a third may be
    better than both, and takes the place of one. Where none is, no c has a lower bound but their
    own: with a budget the best set may have as many items as it allows.
    """
    many, few = relaxed.at(-FAR), relaxed.at(FAR)
    while many.k > few.k and many.x > few.x and few.y > many.y:
        log_c = 0.5 * math.log((many.x - few.x) / (few.y - many.y))
        found = relaxed.at(log_c)
        if not few.k < found.k < many.k:
            break
        many, few = (found, few) if found.balance > log_c else (many, found)
    for each in (many, few):
        if abs(each.balance) < FAR:
            relaxed.at(each.balance)
    return many, few


def _between(p: NDArray[Any], many: _Best, few: _Best, problem: Problem) -> Cut:
    """Return the best of two sets and those between them, where equal items are parted.

    There E[X] and E[Y] are straight lines, and their product is highest where its slope is 0. Where
    positives are few the mean of the root is not the root of the means: it is looked at then.
    """
    ends = {each.k: each.cut for each in (many, few)}
    descending = np.sort(p.astype(np.float64, copy=False))[::-1]

    def value(k: int) -> float:
        return value_by_counts(descending[:k], descending[k:], problem).mean

    grown, shrunk = many.x - few.x, few.y - many.y
    if not problem.split_ties or many.k - few.k < 2 or not grown * shrunk > 0.0:
        return ends[max(ends, key=lambda k: (value(k), -k))]
    part = (grown * few.y - shrunk * few.x) / (2.0 * grown * shrunk)
    k = few.k + round(min(max(part, 0.0), 1.0) * (many.k - few.k))
    if descending.sum() < SCARCE or (1.0 - descending).sum() < SCARCE:
        k = _highest(value, few.k, many.k)
    return Cut(float(descending[k - 1]), k) if k else Cut(math.inf, 0)


def _highest(value: Callable[[int], float], low: int, high: int) -> int:
    """Return where a function that rises and then falls is highest, by thirds."""
    while high - low > 2:
        third = max(1, (high - low) // 3)
        if value(low + third) < value(high - third):
            low += third
        else:
            high -= third
    return max(range(low, high + 1), key=lambda k: (value(k), -k))


def _value(p: NDArray[Any], selected: Bools, problem: Problem) -> ExpectedF:
    chosen, rest = (p[each].astype(np.float64) for each in (selected, ~selected))
    return value_by_counts(chosen, rest, problem)


def _rates(search: LinearSearch) -> tuple[float, float]:
    """Return E[X] and E[Y] of the best set; (X/c + c Y) / 2 of two c tells both."""
    k, found, counts = np.array([float(search.optimum.k)]), search.chosen(), search.counts
    assert counts is not None
    one, two = (
        float(replace(counts, measure=Rates(c), zero_division=0.0).values(k, found)[0])
        for c in (1.0, 2.0)
    )
    y = (4.0 * two - 2.0 * one) / 3.0  # X + Y = 2 one, X/4 + Y = two
    return 2.0 * one - y, y
