"""The certified optimum: bounds leave few groups, those are looked at more closely, and so on.

At the border of two groups f is known. Inside a group covering the ranks (a, b], with
f_k = Σ_m e^{-u_m k} Φ_k(u_m) and Φ_k between `low` and `high` (Φ_a and Φ_b where Φ grows),

    f_k ≤ Σ e^{-u(a+1)} high                                             (the group is too poor)
    f_k - f_{k-1} ≤ Σ e^{-u(a+1)} most - e^{-u(b-1)} (1 - e^{-u}) low     (f only falls in it)
    f_k - f_{k-1} ≥ Σ e^{-ub} least - e^{-ua} (1 - e^{-u}) high           (f only rises in it)

where `least` and `most` bound Φ_k - Φ_{k-1}; where one is negative, the other end of the range is
the worst for it. A group that none of the three closes is subdivided.
Values of f along a ladder are sums of exact differences, so that neighbouring k are told apart
even where f differs in its fifteenth digit only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from argmaxf.arrays import Bools, Floats
from argmaxf.expected.form import Form
from argmaxf.expected.groups import Groups

SLACK = 1e-12  # bounds must hold by more than this, relative to their terms
CONTEST = 1e-13  # a difference of f below this part of the terms that differ counts as a tie
PIECES = 64  # a run of equal items is cut into at most this many pieces at a time


class Source(Protocol):
    """Where the items are: an array, a file, a frame."""

    def subdivide(self, groups: Groups) -> Groups:
        """Return the same items in finer groups, in the end one for each distinct value."""
        ...


@dataclass(frozen=True)
class Ladder:
    """The values of f at the borders of groups."""

    groups: Groups
    k: Floats
    f: Floats
    state: Floats
    low: Floats  # bounds on Φ inside each group
    high: Floats
    before: tuple[Groups, ...]  # the items above the ladder's first border
    after: tuple[Groups, ...]  # and below its last one


class Optimum(NamedTuple):
    """The best k, its value and spread, and what a summary alone could not settle."""

    k: int
    f: float
    std: float
    last: Groups  # the one group whose lowest item is the last one chosen
    unsettled: Groups  # groups that may hold a better border


def search(
    groups: Groups, rest: Groups, form: Form, source: Source | None, *, split_ties: bool
) -> Optimum:
    """Return the k ≥ 1 with the highest f; exact ties go to the smallest k.

    The best set ends in `groups`; `rest` are the items below them. Without a `source` of single
    items, return the best border and the groups that stay open.
    """
    ladders: list[Ladder] = []
    unsettled: list[Groups] = []
    # The rule is for k ≥ 1: its value at k = 0, which steps are added to, is not that of the set.
    bottom = float(form.climb(groups[:0], form.start).phi.sum())
    waiting = [_climb(groups, form, 0.0, bottom, form.start, (), (rest,))]
    best = 0.0
    while waiting:
        ladder = waiting.pop()
        ladders.append(ladder)
        best = max(best, float(ladder.f[1:].max()))
        for first, stop in _stretches(_open(ladder, form, best, split_ties)):
            inner = ladder.groups[first:stop]
            if source is None and not inner.runs.all():
                unsettled.append(inner)
                continue
            before = (*ladder.before, ladder.groups[:first])
            after = (*ladder.after, ladder.groups[stop:])
            k, f, state = ladder.k[first], ladder.f[first], ladder.state[first]
            finer = _finer(inner, source)
            waiting.append(_climb(finer, form, k, f, state, before, after))
    return _best(ladders, form, unsettled)


def _climb(
    groups: Groups,
    form: Form,
    k0: float,
    f0: float,
    state: Floats,
    before: tuple[Groups, ...],
    after: tuple[Groups, ...],
) -> Ladder:
    """Climb the groups from the border at k0, where f and the form's state are known."""
    u = form.nodes.u
    states, phi, rise, low, high = form.climb(groups, state)
    k = k0 + np.concatenate([[0.0], np.cumsum(groups.count)])
    kept = np.exp(-np.multiply.outer(groups.count, u))
    lost = -np.expm1(-np.multiply.outer(groups.count, u))
    # f_{i+1} - f_i = Σ e^{-u k_i} [e^{-uN} (Φ_{i+1} - Φ_i) - (1 - e^{-uN}) Φ_i]
    steps = np.exp(-np.multiply.outer(k[:-1], u)) * (kept * rise - lost * phi[:-1])
    f = f0 + np.concatenate([[0.0], np.cumsum(steps.sum(axis=1))])
    return Ladder(groups, k, f, states, low, high, before, after)


def _open(ladder: Ladder, form: Form, best: float, split_ties: bool) -> Bools:
    """Mark the groups that none of the three bounds closes: they may hold a better value."""
    u = form.nodes.u
    is_open = ladder.groups.count > 1
    if not split_ties:
        is_open &= ~ladder.groups.runs
    ceiling = _sum(u, ladder.k[:-1, None] + 1, ladder.high)
    is_open &= ceiling > (1.0 - SLACK) * best

    i = np.flatnonzero(is_open)
    a, b = ladder.k[i, None], ladder.k[i + 1, None]
    least, most = form.steps(ladder.groups[i], ladder.state[i], ladder.state[i + 1])
    loss = -np.expm1(-u)
    gain = _sum(u, a + 1, most.clip(min=0.0))
    lost = _sum(u, b - 1, loss * ladder.low[i]) - _sum(u, b, most.clip(max=0.0))
    falls = gain < (1.0 - SLACK) * lost
    gain = _sum(u, b, least.clip(min=0.0))
    lost = _sum(u, a, loss * ladder.high[i]) - _sum(u, a + 1, least.clip(max=0.0))
    rises = gain > (1.0 + SLACK) * lost
    is_open[i] = ~(falls | rises)
    return is_open


def _sum(u: Floats, k: Floats, terms: Floats) -> Floats:
    """Σ_m e^{-u_m k} terms_m, for a column of k."""
    total: Floats = (np.exp(-u * k) * terms).sum(axis=1)
    return total


def _stretches(is_open: Bools) -> Iterator[tuple[int, int]]:
    """Yield the first and one past the last index of each stretch of neighbouring open groups."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_open, [False]])))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _finer(groups: Groups, source: Source | None) -> Groups:
    """Subdivide a stretch: runs of equal items by arithmetic, others by looking at the items."""
    runs = groups.runs
    edges = [0, *(np.flatnonzero(np.diff(runs)) + 1).tolist(), len(groups)]
    parts = []
    for first, stop in itertools.pairwise(edges):
        part = groups[first:stop]
        if runs[first]:
            parts.append(part.split_runs(PIECES))
        else:
            assert source is not None
            parts.append(source.subdivide(part))
    return Groups.joined(parts)


def _best(ladders: list[Ladder], form: Form, unsettled: list[Groups]) -> Optimum:
    """Compare the borders of all ladders, and evaluate the spread at the best one."""
    k = np.concatenate([ladder.k for ladder in ladders])
    f = np.concatenate([ladder.f for ladder in ladders])
    top = int(np.argmax(np.where(k >= 1, f, -1.0)))
    # Two values of f share the terms of the items they share: only the others can differ.
    unshared = np.abs(k - k[top]) / np.maximum(1.0, np.maximum(k, k[top]))
    tied = (k >= 1) & (f >= f[top] * (1.0 - CONTEST * unshared))
    chosen = int(np.flatnonzero(tied)[np.argmin(k[tied])])
    sizes = np.cumsum([ladder.k.size for ladder in ladders])
    which = int(np.searchsorted(sizes, chosen, side="right"))
    ladder, border = ladders[which], chosen - int(sizes[which]) + ladders[which].k.size
    above = Groups.joined([*ladder.before, ladder.groups[:border]])
    below = Groups.joined([*ladder.after, ladder.groups[border:]])
    std = form.spread(above, below, float(f[chosen]))
    stays_open = Groups.joined([ladder.groups[:0], *unsettled])
    return Optimum(int(k[chosen]), float(f[chosen]), std, above[-1:], stays_open)
