"""Bounds: which groups may hold a better value than the best one at the borders of groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from argmaxf._base.arrays import Bools, Floats
from argmaxf.expected.grouped.groups import Groups
from argmaxf.expected.grouped.objectives import Objective
from argmaxf.problem import Problem

BOUND_SLACK = 1e-12  # bounds must hold by more than this, relative to their terms
RUN_PIECES = 64  # a run of equal items is cut into at most this many pieces at a time


class Start(NamedTuple):
    """Where a path begins: the groups along it, and what is known at their ends."""

    groups: Groups
    k: float  # items above the first border
    f: float | None  # the value there (see `Path`), None at the empty set
    ends: tuple[Floats, Floats]  # the states at the first border and at the last
    before: tuple[Groups, ...] = ()  # the items above the first border
    after: tuple[Groups, ...] = ()  # and below the last one
    reference: float = 0.0

    def borders(self) -> Floats:
        """Return how many items lie above each border."""
        return self.k + np.concatenate([[0.0], np.cumsum(self.groups.count)])


@dataclass(frozen=True)
class Path:
    """The values of f along a path of nested sets, those that end at the borders of groups.

    They are minus a reference, one for all paths of a search and near the optimum: what sets
    differ by there may be lost in the last digit of f.
    """

    groups: Groups
    k: Floats
    f: Floats  # minus the objective's offset and the reference
    state: Floats
    low: Floats  # bounds on Φ inside each group
    high: Floats
    before: tuple[Groups, ...]  # the items above the path's first border
    after: tuple[Groups, ...]  # and below its last one
    reference: float = 0.0

    def replace(self, first: int, stop: int, finer: Path) -> None:
        """Go by finer groups between two borders, whose sums are the more exact ones."""
        self.f[stop:] += finer.f[-1] - self.f[stop]
        within = slice(first + 1, stop)
        self.f[within][np.isin(self.k[within], finer.k)] = -np.inf


class Interval(NamedTuple):
    """Neighbouring groups of a path that may hold a better value."""

    path: Path
    first: int
    stop: int

    @property
    def groups(self) -> Groups:
        """The groups."""
        return self.path.groups[self.first : self.stop]

    def parts(self) -> list[Groups]:
        """Part the groups into neighbouring runs of equal items, and neighbouring others."""
        groups = self.groups
        edges = [0, *(np.flatnonzero(np.diff(groups.runs)) + 1).tolist(), len(groups)]
        return [groups[first:stop] for first, stop in itertools.pairwise(edges)]

    def joined(self, finer: Iterator[Groups]) -> Groups:
        """Put finer groups in the place of parts; runs are cut by arithmetic."""
        pieces = (
            part.split_runs(RUN_PIECES) if part.runs[0] else next(finer) for part in self.parts()
        )
        return Groups.joined(list(pieces))


def evaluated(start: Start, objective: Objective, sizes: tuple[float, float]) -> Path:
    """Return the values along a path; those of sets of certain `sizes` are to be exact."""
    u, groups, reference = objective.u, start.groups, start.reference
    states, phi, rise, low, high = objective.along(groups, *start.ends)
    k = start.borders()
    kept = np.exp(-np.multiply.outer(groups.count, u))
    lost = -np.expm1(-np.multiply.outer(groups.count, u))
    decay = np.exp(-np.multiply.outer(k, u))
    # g_{i+1} - g_i = Σ e^{-u k_i} [e^{-uN} (Φ_{i+1} - Φ_i) - (1 - e^{-uN}) Φ_i]
    steps = objective.sign * (decay[:-1] * (kept * rise - lost * phi[:-1])).sum(axis=1)
    if start.f is None:
        values = objective.sign * (decay * phi).sum(axis=1)
        allowed = (k[1:] >= sizes[0]) & (k[1:] <= sizes[1])
        top = 1 + int(np.argmax(np.where(allowed, values[1:], -np.inf)))
        f, reference = _around(top, steps), float(values[top])
    else:
        f = np.cumsum(np.concatenate([[start.f], steps]))
    return Path(groups, k, f, states, low, high, start.before, start.after, reference)


def _around(top: int, steps: Floats) -> Floats:
    """Sum steps from the best value on to both sides: where they are small, so is their rounding.

    A loss that falls from 1 to 1e-14 would be lost in a sum that starts with the 1. The first value
    is that of the rule for k ≥ 1 at k = 0, not of the empty set.
    """
    above, below = np.cumsum(steps[:top][::-1])[::-1], np.cumsum(steps[top:])
    return np.concatenate([-above, [0.0], below])


def open_groups(
    path: Path, objective: Objective, best: float, sizes: tuple[float, float], problem: Problem
) -> Bools:
    """Mark the groups that none of the three bounds closes: they may hold a better value.

    Only sets of certain `sizes` can be the best. A limit on k inside of a group leaves it open
    unless it is too poor: f may be best right there.
    """
    u = objective.u
    fewest, largest = sizes
    is_open = (path.groups.count > 1) & (path.k[1:] > fewest) & (path.k[:-1] < largest)
    limited = (path.k[:-1] < problem.least) | (path.k[1:] > largest)
    if not problem.split_ties:
        is_open &= ~path.groups.runs
    if problem.peaks_between_levels:
        is_open &= ~path.groups.runs | limited
    if path.k[0] == 0.0 and problem.rises_at_the_top and not (path.k[1:2] > largest).any():
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


def open_intervals(is_open: Bools) -> Iterator[tuple[int, int]]:
    """Yield the first and one past the last index of each interval of neighbouring open groups."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_open, [False]])))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _sum(u: Floats, k: Floats, terms: Floats) -> Floats:
    """Σ_m e^{-u_m k} terms_m, for a column of k."""
    total: Floats = (np.exp(-u * k) * terms).sum(axis=1)
    return total
