r"""The certified optimum: bounds leave few groups, those are looked at more closely, and so on.

At the border of two groups the value of the set is known (`RatioCurve`, `LinearCurve`). Inside of
a group it is bounded, in ranges of sizes; a group whose bounds are below the best value is closed,
others are open. `Search` never looks at items: it says which groups it wants in finer ones
(`wanted`) and is followed by a search with them (`refined`). `decide` gets them from a source.

A curve knows the values f of the sets that end where a group ends, as exact differences to the best
of them, so that neighbouring sets are told apart even where they differ by less than the last digit
of f. Inside of a group sets of `first` to `last` items are bounded by one that has no more false
positives than the first of them, no fewer true positives than the last, and no more positives left
out than the last: items that are taken in count as the most probable one of the group, items that
are left out as the least probable one. That is exact but for the widths of the range and the group.

For a ratio (`RatioCurve`, see groups.py) one more item changes Φ by

    Φ_k - Φ_{k-1} = Φ's scale · [Q_k c π_k + (Q_k - Q_{k-1}) A_{k-1}].

Where f is near 1 its terms hardly differ from set to set, and what it lacks tells more: for c = 1 +
b_in the loss is 1 - f = E[(k - T + b_out R + s1 - s0) / x] = Σ_m e^{-u_m k} Ψ(u_m), with

    Ψ = ω e^{-u s1} Q (Σ_{i in} (1 - π_i) + b_out Σ_{j out} π_j + s1 - s0),   π outside with x_out.

For measures that are linear in true positives (`LinearCurve`) f is known from
`CountDistribution`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.lazy import cached_property
from argmaxf.expected.count_distribution import CountDistribution, needs_values
from argmaxf.expected.counts import refuse_many
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.expected.groups import (
    Groups,
    Integrand,
    Source,
    Tilt,
    group_variances,
    has_loss,
    value_of_nothing,
)
from argmaxf.expected.quadrature import bounds_of_sets
from argmaxf.measures import Linear
from argmaxf.problem import Problem

TIE_PART = 1e-13  # a difference of f below this part of the terms that differ counts as a tie
NEAR_ONE = 0.3  # where f is certainly above this the loss is searched
BOUND_SLACK = 1e-12  # bounds must hold by more than this, relative to their terms
RUN_PIECES = 64  # a run of equal items is cut into at most this many pieces at a time
PARTS = 1, 16, 256  # ranges of sizes that a group is bounded in, first and then
CLOSE = 1e-6  # values nearer to the best than this part of their terms are compared in more digits


class Path(NamedTuple):
    """The values of f along nested sets, those that end at the borders of groups.

    They are minus a reference, the best of them: what sets differ by there may be lost in the last
    digit of f.
    """

    groups: Groups
    k: Floats
    f: Any  # minus the curve's offset and the reference
    reference: float
    terms: float  # the size of the terms that the best value is the sum of
    state: Floats  # sums at the nodes, (borders, …)
    allowed: Bools  # whether a border may be selected

    @property
    def best(self) -> float:
        """The best value at the borders that may be selected."""
        return self.reference + float(self.f.max(where=self.allowed, initial=-math.inf))


class Pieces(NamedTuple):
    """Ranges of sizes inside of groups: the place of the group among some, and its two borders."""

    group: Ints
    first: Floats
    last: Floats


@dataclass(frozen=True)
class RatioCurve(Integrand):
    """The values of a ratio of counts, or what it lacks to 1, with a minus sign."""

    is_loss: bool = False

    @property
    def offset(self) -> float:
        """What f is more than the values of paths."""
        return 1.0 if self.is_loss else 0.0

    def _sums(self, groups: Groups) -> tuple[Floats, ...]:
        """Return what items add to A, or to the loss, inside and outside, and their log Q."""
        log_in, pi = self.inside.sums(groups)
        log_out, pi_out = (log_in, pi) if self.one_tilt else self.outside.sums(groups)
        if not self.is_loss:
            return self.coefficients.c * pi, np.zeros_like(pi), log_in, log_out
        missed = group_variances(groups, self.inside.w, self.inside.x)[1]
        return missed, self.coefficients.b_out * pi_out, log_in, log_out

    def path(self, groups: Groups, rest: Groups, sizes: tuple[float, float]) -> Path:
        """Return the values at the borders; those of sets of certain sizes are exact.

        Sums outside are from below, so that little of them is not lost in much.
        """
        u, sign = self.nodes.u, -1.0 if self.is_loss else 1.0
        c = self.coefficients
        own, other, log_in, log_out = self._sums(groups)
        left: Any = c.s0
        if self.is_loss:
            left = c.b_out * self.outside.sums(rest)[1].sum(axis=0) + c.s1 - c.s0
        inside, outside = _summed(own), _summed(other[::-1])[::-1] + left
        log_ratio = log_in - log_out
        log_q = _summed(log_ratio) + self.log_none
        scale, both = self.scale(log_q), inside + outside
        rise = scale[:-1] * (own - other) + both[1:] * _growth(scale, log_ratio)
        k = np.concatenate([[0.0], np.cumsum(groups.count)])
        size = np.multiply.outer(groups.count, u)
        decay = np.exp(-np.multiply.outer(k, u))
        # With N items more: Σ e^{-u k} [e^{-uN} (Φ_{k+N} - Φ_k) - (1 - e^{-uN}) Φ_k]
        steps = decay[:-1] * (np.exp(-size) * rise + np.expm1(-size) * scale[:-1] * both[:-1])
        values = sign * (decay * scale * both).sum(axis=1)
        allowed = (k >= sizes[0]) & (k <= sizes[1])
        top = _best_of(values, allowed)
        f = _summed_around(top, sign * steps.sum(axis=1))
        state = np.stack([inside, outside, log_q], axis=1)
        return Path(groups, k, f, float(values[top]), abs(float(values[top])), state, allowed)

    def ceilings(self, path: Path, i: Ints, pieces: Pieces) -> Floats:
        """Bound the values of the sets whose sizes are in pieces of some groups.

        With x = (k - T) + (1 + b_in) T + b_out R + s1 the value falls with the false positives
        k - T at fixed T and R, and rises with T if c s1 ≥ (1 + b_in) s0; else it does at fixed k.
        """
        c, groups = self.coefficients, path.groups[i]
        added = 1.0 + c.b_in if c.c * c.s1 >= (1.0 + c.b_in) * c.s0 else c.b_in
        one, at = np.ones(i.size), pieces.group
        high, low = Groups.of_values(groups.high, one), Groups.of_values(groups.low, one)
        own, _, log_in, _ = self._sums(high)
        _, other, _, log_out = self._sums(low)
        log_found, found = Tilt.of(self.nodes, added).sums(high)
        found = c.c * found * (not self.is_loss)
        inside, _, log_q = np.moveaxis(path.state[i], 1, 0)
        outside = path.state[i + 1, 1]
        base = log_q - self.outside.sums(groups)[0]
        taken, more, left = (
            each[:, None]
            for each in (
                pieces.first - path.k[i][at],
                pieces.last - pieces.first,
                path.k[i + 1][at] - pieces.last,
            )
        )
        log_q = base[at] + taken * log_in[at] + more * log_found[at] + left * log_out[at]
        sums = inside[at] + taken * own[at] + more * found[at] + outside[at] + left * other[at]
        log_q -= np.multiply.outer(pieces.first, self.nodes.u)
        value: Floats = (self.scale(log_q) * sums).sum(axis=1)
        return -value if self.is_loss else value

    def spread(self, above: Groups, below: Groups, value: float) -> float:
        """Return the standard deviation of a set."""
        return self.value(above, below).std


@dataclass(frozen=True)
class LinearCurve:
    """The values of a measure that is linear in true positives."""

    counts: CountDistribution
    offset = 0.0

    def path(self, groups: Groups, rest: Groups, sizes: tuple[float, float]) -> Path:
        """Return the values at the borders; those near the best as differences to it."""
        counts, found = self.counts, self.counts.found(groups)
        k = np.concatenate([[0.0], np.cumsum(groups.count)])
        states = _summed(found)
        values = counts.values(k, states)
        allowed = (k >= sizes[0]) & (k <= sizes[1])
        top = _best_of(values, allowed)
        # Of the terms' last digits the more are lost the larger the angles that φ turns by
        angle = float(groups.mass.sum()) * float(counts.theta[-1])
        here = slice(top, top + 1)
        terms = float(counts.scale(k[here], states[here])[0]) * (1.0 + 0.01 * angle)
        f: Any = (values - values[top]).astype(np.longdouble)
        near = np.abs(values - values[top]) <= CLOSE * terms
        steps = _summed_around(top, found)[near]
        f[near] = counts.rises(np.append(k[top], k[near]), states[top], steps)
        return Path(groups, k, f, float(values[top]), terms, states, allowed)

    def ceilings(self, path: Path, i: Ints, pieces: Pieces) -> Floats:
        """Bound the values of the sets whose sizes are in pieces of some groups.

        Of the first items of a group no more can be positive than of as many like the best, or of
        all of them less those like the worst that are left out.
        """
        groups, at, one = path.groups[i], pieces.group, np.ones(i.size)
        best, worst = (
            self.counts.found(Groups.of_values(p, one)) for p in (groups.high, groups.low)
        )
        taken, left = pieces.last - path.k[i][at], path.k[i + 1][at] - pieces.last
        from_above = path.state[i][at] + taken[:, None] * best[at]
        from_below = path.state[i + 1][at] - left[:, None] * worst[at]
        return self.counts.ceilings(pieces.first, pieces.last, from_above, from_below)

    def spread(self, above: Groups, below: Groups, value: float) -> float:
        """Return the standard deviation of a set with this mean."""
        return self.counts.spread(above, value)


def _growth(scale: Floats, log_ratio: Floats) -> Floats:
    """How much the scale grows from border to border: exact where little, finite where much."""
    grown: Floats = scale[1:] - scale[:-1]
    return np.where(log_ratio < 1.0, scale[:-1] * np.expm1(np.minimum(log_ratio, 1.0)), grown)


def _summed(steps: Floats) -> Floats:
    """Return the sums of the first 0, 1, … rows."""
    return np.vstack([np.zeros_like(steps[:1]), steps.cumsum(axis=0)])


def _best_of(values: Any, allowed: Bools) -> int:
    """Return the index of the best value of a set that is allowed, one item at least."""
    return 1 + int(np.argmax(np.where(allowed, values, -np.inf)[1:]))


def _summed_around(top: int, steps: Floats) -> Floats:
    """Sum steps from the best value on to both sides: where they are small, so is their rounding.

    A loss that falls from 1 to 1e-14 would be lost in a sum that starts with the 1. The first value
    is that of the rule for k ≥ 1 at k = 0, not of the empty set.
    """
    above, below = np.cumsum(steps[:top][::-1], axis=0)[::-1], np.cumsum(steps[top:], axis=0)
    return np.concatenate([-above, np.zeros_like(steps[:1]), below])


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
        curve = RatioCurve.of(self.groups, c, reach, least)
        self._curve = replace(curve, is_loss=has_loss(c) and best > NEAR_ONE)
        return int(np.searchsorted(k, reach)) + 1

    def _open_groups(self, path: Path) -> Bools:
        """Mark the groups inside of which a better set may end.

        Inside of a run of equal items none is better than both of its ends, if those may be chosen:
        for linear measures, and others as `Problem` says.
        """
        problem, groups, (least, most) = self.problem, path.groups, self._sizes
        start, stop, best = path.k[:-1], path.k[1:], path.best - BOUND_SLACK * path.terms
        is_open = (groups.count > 1) & (stop > least) & (start < most)
        whole = (start >= problem.least) & (stop <= most)
        if not problem.split_ties:
            is_open &= ~groups.runs
        if problem.ratio is None or problem.peaks_between_levels:
            is_open &= ~(groups.runs & whole)
        if problem.ratio is not None and problem.rises_at_the_top and stop[0] <= most:
            is_open[0] &= not groups.runs[0]
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
        allowed, offset = self.path.allowed, self._curve.offset
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


def decide(source: Source, problem: Problem) -> Search:
    """Search the items of a source."""
    search = Search(source.table(), problem)
    while wanted := search.wanted:
        search = search.refined(source.refine(wanted))
    last = search.optimum.last
    if search.optimum.k and not last.runs[0]:
        below = np.nextafter(last.low, -1.0)
        search.threshold = source.passes.least_above(float(below[0]))
    return search
