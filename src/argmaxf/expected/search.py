"""The certified optimum: bounds leave few groups, those are looked at more closely, and so on.

At the border of two groups f is known. Inside a group covering the ranks (a, b], with
g_k = Σ_m e^{-u_m k} Φ_k(u_m) and Φ_k between `low` and `high` (Φ_a and Φ_b where Φ grows),

    Σ e^{-ub} low ≤ g_k ≤ Σ e^{-u(a+1)} high                             (the group is too poor)
    g_k - g_{k-1} ≤ Σ e^{-u(a+1)} most - e^{-u(b-1)} (1 - e^{-u}) low     (g only falls in it)
    g_k - g_{k-1} ≥ Σ e^{-ub} least - e^{-ua} (1 - e^{-u}) high           (g only rises in it)

where `least` and `most` bound Φ_k - Φ_{k-1}; where one is negative, the other end of the range is
the worst for it. A group that none of the three closes is subdivided. g is f, or the loss 1 - f
where f is above one half: there the terms of f hardly differ between sets, and bounds on them are
useless. Values along a ladder are sums of exact differences, less a value near the optimum, so that
neighbouring k are told apart even where they differ by less than the last digit of f.

`Search` never looks at items: it says which groups it wants in finer ones (`wanted`) and is told
(`refine`), so that any source can drive it (`drive.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from argmaxf._base.arrays import Bools, Floats
from argmaxf.expected.climbers import Climber, Gain, Loss
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.expected.form import Form, has_loss, useful_sizes, value_at_least
from argmaxf.expected.ladders import (
    PIECES,
    Foot,
    Ladder,
    Stretch,
    climbed,
    open_groups,
    open_stretches,
)
from argmaxf.expected.sources.base import Cut
from argmaxf.expected.summary.groups import Groups, group_sums
from argmaxf.problem import Problem

CONTEST = 1e-13  # a difference of f below this part of the terms that differ counts as a tie
DOUBT = 1e-12  # below this part of them, and a few units of rounding, it is in doubt (rows.py)
ROUNDING = 4e-15
NEAR_ONE = 0.5  # above this the loss is searched


class BestBorder(NamedTuple):
    """The best border of groups: how many items it takes, their value and its spread."""

    k: int
    f: float
    std: float
    last: Groups  # the one group whose lowest item is the last one chosen; none if k = 0
    contested: bool  # other sizes look as good: a summary alone cannot tell them apart


class Search:
    """The search for the best set among items given in groups by falling probability.

    Ask `wanted` for the neighbouring groups that must be seen more finely, tell `refine` what they
    are; once nothing is wanted, `cut` and `optimum` are exact. Items with p = 0 are in no group.
    """

    def __init__(self, groups: Groups, problem: Problem) -> None:
        problem.check_reachable(int(groups.count[groups.high > 0.0].sum()))
        self.problem = problem
        self.groups = groups[groups.high > 0.0]
        self.nothing = self._value_of_nothing()
        self.wanted: list[Groups] = []
        self._stretches: list[Stretch] = []
        self._ladders: list[Ladder] = []
        self._best = -math.inf
        # Items of a set that may be the best; nodes are for such sets, and sums at them for others
        # are below the truth, so that a loss would look like none.
        self._least, self._most = max(1.0, problem.least), float(problem.most)
        self._threshold: float | None = None
        if len(self.groups):
            self._start()
        self._ask()

    def _value_of_nothing(self) -> ExpectedF:
        return value_of_nothing(self.groups, self.problem)

    def _start(self) -> None:
        """Climb the groups up to the largest k that can be the best."""
        k = np.cumsum(self.groups.count)
        coefficients, limits = self.problem.coefficients, (self.problem.least, self.problem.most)
        best = value_at_least(self.groups, coefficients, *limits)
        least, reach = useful_sizes(self.groups, coefficients, best)
        reach = min(max(reach, self._least), float(k[-1]))
        self._least, self._most = max(self._least, least), min(self._most, reach)
        useful = int(np.searchsorted(k, reach)) + 1
        groups, rest = self.groups[:useful], self.groups[useful:]
        self._form = Form.of(self.groups, coefficients, reach, self._least)
        near_one = has_loss(coefficients) and best > NEAR_ONE
        self._climber: Climber = Loss(self._form) if near_one else Gain(self._form)
        ladder = self._first(groups, rest)
        value = ladder.reference + self._highest(ladder)
        if not near_one and value > NEAR_ONE and has_loss(coefficients):
            self._climber = Loss(self._form)
            ladder = self._first(groups, rest)
        self._climb([ladder])

    def _first(self, groups: Groups, rest: Groups) -> Ladder:
        """Climb all useful groups from the empty set."""
        return self._climbed(Foot(groups, 0.0, None, self._climber.start(rest), (), (rest,)))

    def _climb(self, ladders: list[Ladder]) -> None:
        """Take new ladders in; runs of equal items are cut at once, others become stretches."""
        while ladders:
            ladder = ladders.pop()
            self._ladders.append(ladder)
            self._best = max(self._best, self._highest(ladder))
            is_open = self._open(ladder)
            for first, stop in open_stretches(is_open):
                stretch = Stretch(ladder, first, stop)
                if stretch.groups.runs.all():
                    ladders.append(self._inner(stretch, stretch.groups.split_runs(PIECES)))
                else:
                    self._stretches.append(stretch)

    def _open(self, ladder: Ladder) -> Bools:
        """Mark the groups of a ladder that may hold a better value."""
        sizes = self._least, self._most
        best = ladder.reference + self._best
        return open_groups(ladder, self._climber, best, sizes, self.problem)

    def _allowed(self, k: Floats) -> Bools:
        """Mark the numbers of items that may be selected, the empty set aside."""
        return (k >= self._least) & (k <= self._most)

    def _highest(self, ladder: Ladder) -> float:
        """The best value at the borders of a ladder that may be selected."""
        return float(ladder.f.max(where=self._allowed(ladder.k), initial=-math.inf))

    def _inner(self, stretch: Stretch, finer: Groups) -> Ladder:
        """Climb finer groups in the place of a stretch."""
        ladder, first, stop = stretch
        before = (*ladder.before, ladder.groups[:first])
        after = (*ladder.after, ladder.groups[stop:])
        ends = ladder.state[first], ladder.state[stop]
        found = self._climbed(
            Foot(finer, ladder.k[first], ladder.f[first], ends, before, after, ladder.reference)
        )
        ladder.replace(first, stop, found)
        return found

    def _climbed(self, foot: Foot) -> Ladder:
        """Climb groups from a border at which f and the state are known."""
        return climbed(foot, self._climber, (self._least, self._most))

    def _ask(self) -> None:
        """Say what is wanted next: open stretches, or in the end the lowest item chosen."""
        parts = [part for stretch in self._stretches for part in stretch.parts()]
        self.wanted = [part for part in parts if not part.runs[0]]
        if self.wanted:
            return
        self.optimum = self.best_border()
        if self.optimum.k and not self.optimum.last.runs[0] and self._threshold is None:
            self.wanted = [self.optimum.last]

    def refine(self, finer: Sequence[Groups]) -> None:
        """Take in the items of what was wanted in finer groups, part by part."""
        finer = list(finer) or [each[:0] for each in self.wanted]
        for before, after in zip(self.wanted, finer, strict=True):
            _check_same(before, after)
        stretches, self._stretches = self._stretches, []
        if stretches:
            parts = iter(finer)
            self._climb([self._inner(each, each.joined(parts)) for each in stretches])
        else:
            self._threshold = float(finer[0].low[-1])
        self._ask()

    @property
    def unsettled(self) -> Groups:
        """The groups that may hold a better border than the best one so far."""
        return Groups.joined([self.groups[:0], *(each.groups for each in self._stretches)])

    @property
    def cut(self) -> Cut:
        """The decision, once nothing is wanted."""
        k, last = self.optimum.k, self.optimum.last
        if k == 0:
            return Cut(math.inf, 0)
        return Cut(float(last.centre[0]) if self._threshold is None else self._threshold, k)

    def decision(self, n: int) -> Decision:
        """The decision about n items as a record, without labels."""
        k, f, std, _, _ = self.optimum
        return Decision(None, k, self.cut.threshold, f, std, self.problem.beta, n)

    def best_border(self) -> BestBorder:
        """Compare the borders of all ladders and the empty set, and find the spread at the best."""
        nothing = BestBorder(0, *self.nothing, self.groups[:0], contested=False)
        if not self._ladders:
            return nothing
        k, f, allowed, top = self._borders()
        if not allowed.any():
            return self._no_border(nothing)
        tied = allowed & (f >= f[top] - CONTEST * self._differing(k, k[top], self._size_of(f[top])))
        contested = len(self.rivals()) > 1
        value = self._value_of(f[top])
        if self.problem.least == 0 and value - self.nothing.mean <= CONTEST * self._terms(value):
            return nothing._replace(contested=contested)
        chosen = int(np.flatnonzero(tied)[np.argmin(k[tied])])
        above, below = self._sides(chosen)
        value = self._value_of(f[chosen])
        std = self._spread(above, below, value)
        return BestBorder(int(k[chosen]), value, std, above[-1:], contested)

    @property
    def _offset(self) -> float:
        """What the values of ladders are less than f: 1 where the loss is climbed."""
        return self._climber.offset

    def _terms(self, value: float) -> float:
        """The size of the terms that the best value is the sum of."""
        return value

    def _spread(self, above: Groups, below: Groups, value: float) -> float:
        """The standard deviation of a set with this mean."""
        return self._form.spread(above, below, value)

    def rivals(self) -> list[int]:
        """Return the sizes that look as good as the best: a summary cannot tell them apart."""
        if not self._ladders:
            return [0]
        k, f, allowed, top = self._borders()
        if not allowed.any():
            return [0]
        size = self._size_of(f[top])
        terms = size if self._offset else self._differing(k, k[top], size)
        near = allowed & (f >= f[top] - DOUBT * terms - ROUNDING * size)
        close: list[int] = np.unique(k[near]).astype(int).tolist()
        best = self._value_of(f[top])
        if self.problem.least > 0 or self.nothing.mean < best * (1.0 - DOUBT):
            return close
        return [0, *close] if self.nothing.mean <= best * (1.0 + DOUBT) else [0]

    def _borders(self) -> tuple[Floats, Floats, Bools, int]:
        """Return k and f at the borders of all ladders, which are allowed, and the best of them."""
        k = np.concatenate([ladder.k for ladder in self._ladders])
        f = np.concatenate([ladder.f for ladder in self._ladders])
        allowed = self._allowed(k)
        return k, f, allowed, int(np.argmax(np.where(allowed, f, -math.inf)))

    def _no_border(self, nothing: BestBorder) -> BestBorder:
        """Return the empty set where no other can be had within the limits, if that is allowed."""
        if self.problem.least > 0:
            raise self.problem.no_set()
        return nothing

    def _size_of(self, f: float) -> float:
        """The size of a value along a ladder: that of f, or of the loss."""
        return abs(self._ladders[0].reference + float(f))

    def _value_of(self, f: float) -> float:
        """The measure of a value along a ladder."""
        return self._offset + (self._ladders[0].reference + float(f))

    def _differing(self, k: Floats, best: float, size: float) -> Floats:
        """The terms of a value that it does not share with the best one: those of other items.

        The loss may hang on a few items alone: then nothing of it is shared.
        """
        part: Floats = np.abs(k - best) / np.maximum(1.0, np.maximum(k, best))
        return np.minimum(part, size) if self._offset else size * part

    def _sides(self, border: int) -> tuple[Groups, Groups]:
        """Return the groups above and below a border, counted over all ladders."""
        sizes = np.cumsum([ladder.k.size for ladder in self._ladders])
        which = int(np.searchsorted(sizes, border, side="right"))
        ladder = self._ladders[which]
        border -= int(sizes[which]) - ladder.k.size
        above = Groups.joined([*ladder.before, ladder.groups[:border]])
        return above, Groups.joined([*ladder.after, ladder.groups[border:]])


def value_of_nothing(groups: Groups, problem: Problem) -> ExpectedF:
    """Mean and standard deviation of the measure if nothing is selected.

    With s1 = 0 it is 0/0 where nothing is positive, or always if positives left out do not count.
    P(S = 0) = Π (1 - p); the spread of an indicator is √(P (1 - P)).
    """
    _, _, b_out, s0, s1 = problem.coefficients
    if s1 > 0.0:
        form = Form.of(groups, problem.coefficients, 0.0)
        mean = s0 * float(form.nodes.weight @ np.exp(form.log_none - form.nodes.u * s1))
        return ExpectedF(mean, form.spread(groups[:0], groups, mean))
    log_none = 0.0
    if len(groups) and b_out > 0.0:
        certain = groups.centre[0] == 1.0
        sums = None if certain else group_sums(groups, np.ones(1), np.zeros(1))
        log_none = -math.inf if sums is None else float(sums[0].sum())
    zero = problem.zero_division
    spread = math.sqrt(math.exp(log_none) * abs(math.expm1(log_none)))
    return ExpectedF(zero * math.exp(log_none), zero * spread)


def _check_same(before: Groups, after: Groups) -> None:
    """Refuse finer groups of other items than those wanted."""
    were, are = before.count.sum(), after.count.sum()
    if were != are:
        low, high = float(before.low.min()), float(before.high.max())
        raise ValueError(
            "the source must have the same rows each time it is read, got "
            f"{were:.0f} and then {are:.0f} between {low!r} and {high!r}"
        )
