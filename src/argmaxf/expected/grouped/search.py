"""The certified optimum: bounds leave few groups, those are looked at more closely, and so on.

At the border of two groups f is known. Inside a group covering the ranks (a, b], with
g_k = Σ_m e^{-u_m k} Φ_k(u_m) and Φ_k between `low` and `high` (Φ_a and Φ_b where Φ grows),

    Σ e^{-ub} low ≤ g_k ≤ Σ e^{-u(a+1)} high                             (the group is too poor)
    g_k - g_{k-1} ≤ Σ e^{-u(a+1)} most - e^{-u(b-1)} (1 - e^{-u}) low     (g only falls in it)
    g_k - g_{k-1} ≥ Σ e^{-ub} least - e^{-ua} (1 - e^{-u}) high           (g only rises in it)

where `least` and `most` bound Φ_k - Φ_{k-1}; where one is negative, the other end of the range is
the worst for it. A group that none of the three closes is open. g is f, or the loss 1 - f where f
is above one half: there the terms of f hardly differ between sets, and bounds on them are useless.
Values are sums of exact differences from the best one on, so that neighbouring k are told apart
even where they differ by less than the last digit of f.

`Search` never looks at items: it says which groups it wants in finer ones (`wanted`) and is
followed by a search with them (`refined`). `run` gets them from an array.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from argmaxf._base.arrays import Bools, Floats
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.expected.grouped.groups import Groups
from argmaxf.expected.grouped.integrand import (
    Integrand,
    Objective,
    has_loss,
    useful_sizes,
    value_of_nothing,
)
from argmaxf.expected.grouped.sources import Source
from argmaxf.problem import Problem

TIE_PART = 1e-13  # a difference of f below this part of the terms that differ counts as a tie
NEAR_ONE = 0.5  # above this the loss is searched
BOUND_SLACK = 1e-12  # bounds must hold by more than this, relative to their terms
RUN_PIECES = 64  # a run of equal items is cut into at most this many pieces at a time

SearchT = TypeVar("SearchT", bound="Search")


class Cut(NamedTuple):
    """A decision as it is needed to mark items: the top k, the lowest one at `threshold`."""

    threshold: float
    k: int


class BestBorder(NamedTuple):
    """The best border of groups: how many items it takes, their value and its spread."""

    k: int
    f: float
    std: float
    last: Groups  # the one group whose lowest item is the last one chosen; none if k = 0


class Path(NamedTuple):
    """The values of f along nested sets, those that end at the borders of groups.

    They are minus a reference, the best of them: what sets differ by there may be lost in the last
    digit of f.
    """

    groups: Groups
    k: Floats
    f: Any  # minus the objective's offset and the reference
    reference: float
    state: Floats
    low: Floats  # bounds on Φ inside each group
    high: Floats


class Search:
    """The search for the best set among items given in groups by falling probability.

    `wanted` are the neighbouring groups that must be seen more finely; once there are none,
    `optimum` is exact. Items with p = 0 are in no group.
    """

    def __init__(self, groups: Groups, problem: Problem) -> None:
        problem.check_reachable(int(groups.count[groups.high > 0.0].sum()))
        self.problem = problem
        self.groups = groups[groups.high > 0.0]
        self.n = float(groups.count.sum())
        self.threshold: float | None = None
        self.path: Path | None = None
        # Items of a set that may be the best; nodes are for such sets, and sums at them for others
        # are below the truth, so that a loss would look like none.
        self._least, self._most = max(1.0, problem.least), float(problem.most)
        self.is_open = self._evaluate()
        while self.is_open.any() and not self.wanted:
            self.groups = self._replaced(iter(()))
            self.is_open = self._evaluate()

    @cached_property
    def nothing(self) -> ExpectedF:
        """The value of the empty set."""
        return value_of_nothing(self.groups, self.problem)

    def _evaluate(self) -> Bools:
        """Evaluate the groups up to the largest k that can be the best; mark those left open."""
        is_open = np.zeros(len(self.groups), np.bool_)
        if not len(self.groups):
            return is_open
        k = np.cumsum(self.groups.count)
        coefficients = self.problem.coefficients
        best, least, reach = useful_sizes(self.groups, self.problem)
        reach = min(max(reach, self._least), float(k[-1]))
        self._least, self._most = max(self._least, least), min(self._most, reach)
        useful = int(np.searchsorted(k, reach)) + 1
        parts, sizes = (self.groups[:useful], self.groups[useful:]), (self._least, self._most)
        self._integrand = Integrand.of(self.groups, coefficients, reach, self._least)
        near_one = has_loss(coefficients) and best > NEAR_ONE
        self._objective = Objective(self._integrand, near_one)
        path = evaluated(*parts, self._objective, sizes)
        if not near_one and path.reference > NEAR_ONE and has_loss(coefficients):
            self._objective = Objective(self._integrand, is_loss=True)
            path = evaluated(*parts, self._objective, sizes)
        self.path = path
        best = self._best(path)
        is_open[:useful] = open_groups(path, self._objective, best, sizes, self.problem)
        return is_open

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
        return self._again(self._replaced(iter(finer)))

    def _again(self, groups: Groups) -> Self:
        """Return the search of the same items in other groups."""
        return type(self)(groups, self.problem)

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

    @property
    def cut(self) -> Cut:
        """The decision, once nothing is wanted."""
        k, last = self.optimum.k, self.optimum.last
        if k == 0:
            return Cut(math.inf, 0)
        return Cut(float(last.low[0]) if self.threshold is None else self.threshold, k)

    def decision(self, n: int) -> Decision:
        """The decision about n items as a record, without labels."""
        k, f, std, _ = self.optimum
        return Decision(None, k, self.cut.threshold, f, std, self.problem.beta, n)

    @cached_property
    def optimum(self) -> BestBorder:
        """The best of all borders and the empty set, and the spread there."""
        nothing = BestBorder(0, *self.nothing, self.groups[:0])
        if self.path is None:
            return nothing
        k, f, allowed, top = self._borders(self.path)
        if not allowed.any():
            if self.problem.least > 0:
                raise self.problem.no_set()
            return nothing
        tied = allowed & (f >= f[top] - TIE_PART * self._differing(k, k[top]))
        value = self._value_of(f[top])
        if self.problem.least == 0 and value - self.nothing.mean <= TIE_PART * self._terms(value):
            return nothing
        chosen = int(np.flatnonzero(tied)[0])
        above, value = self.groups[:chosen], self._value_of(f[chosen])
        std = self._spread(above, self.groups[chosen:], value)
        return BestBorder(int(k[chosen]), value, std, above[-1:])

    @property
    def _offset(self) -> float:
        """What f is more than the values of paths: 1 where the loss is minimized."""
        return self._objective.offset

    def _terms(self, value: float) -> float:
        """The size of the terms that the best value is the sum of."""
        return value

    def _spread(self, above: Groups, below: Groups, value: float) -> float:
        """The standard deviation of a set with this mean."""
        return self._integrand.value(above, below).std

    def _borders(self, path: Path) -> tuple[Floats, Any, Bools, int]:
        """Return k and f at the borders, which may be selected, and the best of them."""
        allowed = (path.k >= self._least) & (path.k <= self._most)
        return path.k, path.f, allowed, int(np.argmax(np.where(allowed, path.f, -math.inf)))

    def _best(self, path: Path) -> float:
        """The best value at the borders that may be selected."""
        _, _, allowed, top = self._borders(path)
        return path.reference + float(path.f[top]) if allowed.any() else -math.inf

    def _value_of(self, f: float) -> float:
        """The measure of a value along the path."""
        assert self.path is not None
        return self._offset + (self.path.reference + float(f))

    def _differing(self, k: Floats, best: float) -> Floats:
        """The terms of a value that it does not share with the best one: those of other items.

        The loss may hang on a few items alone: then nothing of it is shared.
        """
        assert self.path is not None
        size = abs(self.path.reference)
        part: Floats = np.abs(k - best) / np.maximum(1.0, np.maximum(k, best))
        return np.minimum(part, size) if self._offset else size * part


def evaluated(
    groups: Groups, rest: Groups, objective: Objective, sizes: tuple[float, float]
) -> Path:
    """Return the values at the borders of groups; those of sets of certain `sizes` are exact."""
    u = objective.u
    state, phi, rise, low, high = objective.along(groups, rest)
    k = np.concatenate([[0.0], np.cumsum(groups.count)])
    kept = np.exp(-np.multiply.outer(groups.count, u))
    lost = -np.expm1(-np.multiply.outer(groups.count, u))
    decay = np.exp(-np.multiply.outer(k, u))
    # g_{i+1} - g_i = Σ e^{-u k_i} [e^{-uN} (Φ_{i+1} - Φ_i) - (1 - e^{-uN}) Φ_i]
    steps = objective.sign * (decay[:-1] * (kept * rise - lost * phi[:-1])).sum(axis=1)
    values = objective.sign * (decay * phi).sum(axis=1)
    top = best_of(values, k, sizes)
    return Path(groups, k, summed_around(top, steps), float(values[top]), state, low, high)


def best_of(values: Any, k: Floats, sizes: tuple[float, float]) -> int:
    """Return the index of the best value of a set of certain sizes, one item at least."""
    allowed = (k >= sizes[0]) & (k <= sizes[1])
    return 1 + int(np.argmax(np.where(allowed, values, -np.inf)[1:]))


def summed_around(top: int, steps: Floats) -> Floats:
    """Sum steps from the best value on to both sides: where they are small, so is their rounding.

    A loss that falls from 1 to 1e-14 would be lost in a sum that starts with the 1. The first value
    is that of the rule for k ≥ 1 at k = 0, not of the empty set.
    """
    above, below = np.cumsum(steps[:top][::-1], axis=0)[::-1], np.cumsum(steps[top:], axis=0)
    return np.concatenate([-above, np.zeros_like(steps[:1]), below])


def open_groups(
    path: Path, objective: Objective, best: float, sizes: tuple[float, float], problem: Problem
) -> Bools:
    """Mark the groups that none of the three bounds closes: they may hold a better value.

    Only sets of certain `sizes` can be the best. A limit on k inside of a group leaves it open
    unless it is too poor: f may be best right there.
    """
    u, (fewest, largest) = objective.u, sizes
    is_open = (path.groups.count > 1) & (path.k[1:] > fewest) & (path.k[:-1] < largest)
    limited = (path.k[:-1] < problem.least) | (path.k[1:] > largest)
    if not problem.split_ties:
        is_open &= ~path.groups.runs
    if problem.peaks_between_levels:
        is_open &= ~path.groups.runs | limited
    if problem.rises_at_the_top and not (path.k[1:2] > largest).any():
        is_open[:1] &= ~path.groups.runs[:1]
    if objective.sign > 0.0:
        ceiling = _sum(u, path.k[:-1, None] + 1, path.high)
    else:
        ceiling = -_sum(u, path.k[1:, None], path.low)
    is_open &= ceiling > best - BOUND_SLACK * abs(best)
    is_open &= limited | (path.k[:-1] < fewest) | ~_below_chords(path, objective, best, is_open)

    i = np.flatnonzero(is_open)
    a, b = path.k[i, None], path.k[i + 1, None]
    least, most = objective.steps(path.groups[i], path.state[i], path.state[i + 1])
    loss = -np.expm1(-u)
    gain = _sum(u, a + 1, most.clip(min=0.0))
    lost = _sum(u, b - 1, loss * path.low[i]) - _sum(u, b, most.clip(max=0.0))
    falls = gain < (1.0 - BOUND_SLACK) * lost
    gain = _sum(u, b, least.clip(min=0.0))
    lost = _sum(u, a, loss * path.high[i]) - _sum(u, a + 1, least.clip(max=0.0))
    rises = gain > (1.0 + BOUND_SLACK) * lost
    is_open[i] = ~(falls | rises) | limited[i]
    return is_open


def _below_chords(path: Path, objective: Objective, best: float, chance: Bools) -> Bools:
    """Mark runs of equal items, of those asked for, that hold nothing better than their ends.

    With j of N items taken in, f = P(j) + j R(j): R(j) = E[c y / x] for the label y of one of them,
    P the rest. At every node both are positive and exponential in j, so that they lie below their
    chords, and f below its own by (j/N) (1 - j/N) N (R(0) - R(N)) more at most.
    """
    found = np.zeros(len(path.groups), np.bool_)
    i = np.flatnonzero(chance & path.groups.runs)
    if not i.size:
        return found
    runs, integrand, u = path.groups[i], objective.integrand, objective.u
    n = runs.count[:, None]
    log_in, pi = integrand.inside.sums(runs)
    log_kept = log_in - integrand.outside.sums(runs)[0] - n * u
    with np.errstate(over="ignore", invalid="ignore"):  # what is not known stays open
        each = objective.scale(path.state[i]) * integrand.coefficients.c * pi  # N times one of them
        bulge = _sum(u, path.k[i, None], -np.expm1(log_kept) * each).clip(min=1e-300)
        first, rise = path.reference + path.f[i], path.f[i + 1] - path.f[i]
        highest = first + (bulge + rise) ** 2 / (4.0 * bulge)
    slack = BOUND_SLACK * abs(best)
    found[i] = (np.abs(rise) > (1.0 + BOUND_SLACK) * bulge + slack) | (highest < best - slack)
    return found


def _sum(u: Floats, k: Floats, terms: Floats) -> Floats:
    """Σ_m e^{-u_m k} terms_m, for a column of k."""
    total: Floats = (np.exp(-u * k) * terms).sum(axis=1)
    return total


def run(source: Source, search: SearchT) -> SearchT:
    """Search the items of a source, given the search that begins with their summary."""
    while wanted := search.wanted:
        search = search.refined(source.refine(wanted))
    last = search.optimum.last
    if search.optimum.k and not last.runs[0]:
        below = np.nextafter(last.low, -1.0)
        search.threshold = float(source.passes.least_above(below)[0])
    return search
