"""Ladders: f at the borders of groups, and which groups may hold a better value between them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from argmaxf._base.arrays import Bools, Floats
from argmaxf.expected.climbers import Climber
from argmaxf.expected.summary.groups import Groups
from argmaxf.problem import Problem

SLACK = 1e-12  # bounds must hold by more than this, relative to their terms
PIECES = 64  # a run of equal items is cut into at most this many pieces at a time


class Foot(NamedTuple):
    """Where a ladder stands: the groups to climb, and what is known at their ends."""

    groups: Groups
    k: float  # items above the first border
    f: float | None  # the value there (see `Ladder`), None at the empty set
    ends: tuple[Floats, Floats]  # the states at the first border and at the last
    before: tuple[Groups, ...] = ()  # the items above the first border
    after: tuple[Groups, ...] = ()  # and below the last one
    reference: float = 0.0

    def borders(self) -> Floats:
        """Return how many items lie above each border."""
        return self.k + np.concatenate([[0.0], np.cumsum(self.groups.count)])


@dataclass(frozen=True)
class Ladder:
    """The values of f at the borders of groups.

    They are less a reference, one for all ladders of a search and near the optimum: what sets
    differ by there may be lost in the last digit of f.
    """

    groups: Groups
    k: Floats
    f: Floats  # less the climber's offset and the reference
    state: Floats
    low: Floats  # bounds on Φ inside each group
    high: Floats
    before: tuple[Groups, ...]  # the items above the ladder's first border
    after: tuple[Groups, ...]  # and below its last one
    reference: float = 0.0

    def replace(self, first: int, stop: int, finer: Ladder) -> None:
        """Go by finer groups between two borders, whose sums are the more exact ones."""
        self.f[stop:] += finer.f[-1] - self.f[stop]
        within = slice(first + 1, stop)
        self.f[within][np.isin(self.k[within], finer.k)] = -np.inf


class Stretch(NamedTuple):
    """Neighbouring groups of a ladder that may hold a better value."""

    ladder: Ladder
    first: int
    stop: int

    @property
    def groups(self) -> Groups:
        """The groups."""
        return self.ladder.groups[self.first : self.stop]

    def parts(self) -> list[Groups]:
        """Part the groups into neighbouring runs of equal items, and neighbouring others."""
        groups = self.groups
        edges = [0, *(np.flatnonzero(np.diff(groups.runs)) + 1).tolist(), len(groups)]
        return [groups[first:stop] for first, stop in itertools.pairwise(edges)]

    def joined(self, finer: Iterator[Groups]) -> Groups:
        """Put finer groups in the place of parts; runs are cut by arithmetic."""
        pieces = (part.split_runs(PIECES) if part.runs[0] else next(finer) for part in self.parts())
        return Groups.joined(list(pieces))


def climbed(foot: Foot, climber: Climber, sizes: tuple[float, float]) -> Ladder:
    """Climb the groups of a foot; the values of sets of certain `sizes` are to be exact."""
    u, groups, reference = climber.u, foot.groups, foot.reference
    states, phi, rise, low, high = climber.climb(groups, *foot.ends)
    k = foot.borders()
    kept = np.exp(-np.multiply.outer(groups.count, u))
    lost = -np.expm1(-np.multiply.outer(groups.count, u))
    decay = np.exp(-np.multiply.outer(k, u))
    # g_{i+1} - g_i = Σ e^{-u k_i} [e^{-uN} (Φ_{i+1} - Φ_i) - (1 - e^{-uN}) Φ_i]
    steps = climber.sign * (decay[:-1] * (kept * rise - lost * phi[:-1])).sum(axis=1)
    if foot.f is None:
        values = climber.sign * (decay * phi).sum(axis=1)
        allowed = (k[1:] >= sizes[0]) & (k[1:] <= sizes[1])
        top = 1 + int(np.argmax(np.where(allowed, values[1:], -np.inf)))
        f, reference = _around(top, steps), float(values[top])
    else:
        f = np.cumsum(np.concatenate([[foot.f], steps]))
    return Ladder(groups, k, f, states, low, high, foot.before, foot.after, reference)


def _around(top: int, steps: Floats) -> Floats:
    """Sum steps from the best value on to both sides: where they are small, so is their rounding.

    A loss that falls from 1 to 1e-14 would be lost in a sum that starts with the 1. The first value
    is that of the rule for k ≥ 1 at k = 0, not of the empty set.
    """
    above, below = np.cumsum(steps[:top][::-1])[::-1], np.cumsum(steps[top:])
    return np.concatenate([-above, [0.0], below])


def open_groups(
    ladder: Ladder, climber: Climber, best: float, sizes: tuple[float, float], problem: Problem
) -> Bools:
    """Mark the groups that none of the three bounds closes: they may hold a better value.

    Only sets of certain `sizes` can be the best. A limit on k inside of a group leaves it open
    unless it is too poor: f may be best right there.
    """
    u = climber.u
    fewest, largest = sizes
    is_open = (ladder.groups.count > 1) & (ladder.k[1:] > fewest) & (ladder.k[:-1] < largest)
    limited = (ladder.k[:-1] < problem.least) | (ladder.k[1:] > largest)
    if not problem.split_ties:
        is_open &= ~ladder.groups.runs
    if problem.peaks_between_levels:
        is_open &= ~ladder.groups.runs | limited
    if ladder.k[0] == 0.0 and problem.rises_at_the_top and not (ladder.k[1:2] > largest).any():
        is_open[:1] &= ~ladder.groups.runs[:1]
    if climber.sign > 0.0:
        ceiling = _sum(u, ladder.k[:-1, None] + 1, ladder.high)
    else:
        ceiling = -_sum(u, ladder.k[1:, None], ladder.low)
    is_open &= ceiling > best - SLACK * abs(best)
    is_open &= limited | (ladder.k[:-1] < fewest) | ~_below_chords(ladder, climber, best, is_open)

    i = np.flatnonzero(is_open)
    a, b = ladder.k[i, None], ladder.k[i + 1, None]
    least, most = climber.steps(ladder.groups[i], ladder.state[i], ladder.state[i + 1])
    loss = -np.expm1(-u)
    gain = _sum(u, a + 1, most.clip(min=0.0))
    lost = _sum(u, b - 1, loss * ladder.low[i]) - _sum(u, b, most.clip(max=0.0))
    falls = gain < (1.0 - SLACK) * lost
    gain = _sum(u, b, least.clip(min=0.0))
    lost = _sum(u, a, loss * ladder.high[i]) - _sum(u, a + 1, least.clip(max=0.0))
    rises = gain > (1.0 + SLACK) * lost
    is_open[i] = ~(falls | rises) | limited[i]
    return is_open


def _below_chords(ladder: Ladder, climber: Climber, best: float, chance: Bools) -> Bools:
    """Mark runs of equal items, of those asked for, that hold nothing better than their ends.

    With j of N items taken in, f = P(j) + j R(j): R(j) = E[c y / x] for the label y of one of them,
    P the rest. At every node both are positive and exponential in j, so that they lie below their
    chords, and f below its own by (j/N) (1 - j/N) N (R(0) - R(N)) more at most.
    """
    found = np.zeros(len(ladder.groups), np.bool_)
    i = np.flatnonzero(chance & ladder.groups.runs)
    if not i.size:
        return found
    runs, form, u = ladder.groups[i], climber.form, climber.u
    n = runs.count[:, None]
    log_in, pi = form.inside.sums(runs)
    log_kept = log_in - form.outside.sums(runs)[0] - n * u
    with np.errstate(over="ignore", invalid="ignore"):  # what is not known stays open
        each = climber.scale(ladder.state[i]) * form.coefficients.c * pi  # N times one of them
        bulge = _sum(u, ladder.k[i, None], -np.expm1(log_kept) * each).clip(min=1e-300)
        first, rise = ladder.reference + ladder.f[i], ladder.f[i + 1] - ladder.f[i]
        highest = first + (bulge + rise) ** 2 / (4.0 * bulge)
    slack = SLACK * abs(best)
    found[i] = (np.abs(rise) > (1.0 + SLACK) * bulge + slack) | (highest < best - slack)
    return found


def open_stretches(is_open: Bools) -> Iterator[tuple[int, int]]:
    """Yield the first and one past the last index of each stretch of neighbouring open groups."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_open, [False]])))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _sum(u: Floats, k: Floats, terms: Floats) -> Floats:
    """Σ_m e^{-u_m k} terms_m, for a column of k."""
    total: Floats = (np.exp(-u * k) * terms).sum(axis=1)
    return total
