"""The certified optimum: bounds leave few groups, those are looked at more closely, and so on.

At the border of two groups f is known. Inside a group covering the ranks (a, b], with
g_k = Σ_m e^{-u_m k} Φ_k(u_m) and Φ_k between `low` and `high` (Φ_a and Φ_b where Φ grows),

    Σ e^{-ub} low ≤ g_k ≤ Σ e^{-u(a+1)} high                             (the group is too poor)
    g_k - g_{k-1} ≤ Σ e^{-u(a+1)} most - e^{-u(b-1)} (1 - e^{-u}) low     (g only falls in it)
    g_k - g_{k-1} ≥ Σ e^{-ub} least - e^{-ua} (1 - e^{-u}) high           (g only rises in it)

where `least` and `most` bound Φ_k - Φ_{k-1}; where one is negative, the other end of the range is
the worst for it. A group that none of the three closes is subdivided. g is f, or the loss 1 - f
where f is above one half: there the terms of f hardly differ between sets, and bounds on them are
useless. Values along a path are sums of exact differences, minus a value near the optimum, so that
neighbouring k are told apart even where they differ by less than the last digit of f.

`Search` never looks at items: it says which groups it wants in finer ones (`wanted`) and is told
(`refine`), so that any source can be searched (`run`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from argmaxf._base.arrays import Bools, Floats
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.expected.grouped.group_bounds import (
    RUN_PIECES,
    Interval,
    Path,
    Start,
    evaluated,
    open_groups,
    open_intervals,
)
from argmaxf.expected.grouped.groups import Groups
from argmaxf.expected.grouped.integrand import (
    Integrand,
    has_loss,
    useful_sizes,
    value_at_least,
    value_of_nothing,
)
from argmaxf.expected.grouped.objectives import Gain, Loss, Objective
from argmaxf.expected.grouped.sources import Cut, Key, Source
from argmaxf.problem import Problem

TIE_PART = 1e-13  # a difference of f below this part of the terms that differ counts as a tie
IN_DOUBT = 1e-12  # below this part of them, and a few units of rounding, it is in doubt (ties.py)
VALUE_ROUNDING = 4e-15
NEAR_ONE = 0.5  # above this the loss is searched


SearchT = TypeVar("SearchT", bound="Search")


class BestBorder(NamedTuple):
    """The best border of groups: how many items it takes, their value and its spread."""

    k: int
    f: float
    std: float
    last: Groups  # the one group whose lowest item is the last one chosen; none if k = 0
    ambiguous: bool  # other sizes look as good: a summary alone cannot tell them apart


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
        self._intervals: list[Interval] = []
        self._paths: list[Path] = []
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
        """Evaluate the groups up to the largest k that can be the best."""
        k = np.cumsum(self.groups.count)
        coefficients, limits = self.problem.coefficients, (self.problem.least, self.problem.most)
        best = value_at_least(self.groups, coefficients, *limits)
        least, reach = useful_sizes(self.groups, coefficients, best)
        reach = min(max(reach, self._least), float(k[-1]))
        self._least, self._most = max(self._least, least), min(self._most, reach)
        useful = int(np.searchsorted(k, reach)) + 1
        groups, rest = self.groups[:useful], self.groups[useful:]
        self._integrand = Integrand.of(self.groups, coefficients, reach, self._least)
        near_one = has_loss(coefficients) and best > NEAR_ONE
        self._objective: Objective = Loss(self._integrand) if near_one else Gain(self._integrand)
        path = self._first(groups, rest)
        value = path.reference + self._highest(path)
        if not near_one and value > NEAR_ONE and has_loss(coefficients):
            self._objective = Loss(self._integrand)
            path = self._first(groups, rest)
        self._take_in([path])

    def _first(self, groups: Groups, rest: Groups) -> Path:
        """Evaluate all useful groups from the empty set on."""
        return self._evaluated(Start(groups, 0.0, None, self._objective.start(rest), (), (rest,)))

    def _take_in(self, paths: list[Path]) -> None:
        """Take new paths in; runs of equal items are cut at once, others become intervals."""
        while paths:
            path = paths.pop()
            self._paths.append(path)
            self._best = max(self._best, self._highest(path))
            is_open = self._open(path)
            for first, stop in open_intervals(is_open):
                interval = Interval(path, first, stop)
                if interval.groups.runs.all():
                    paths.append(self._inner(interval, interval.groups.split_runs(RUN_PIECES)))
                else:
                    self._intervals.append(interval)

    def _open(self, path: Path) -> Bools:
        """Mark the groups of a path that may hold a better value."""
        sizes = self._least, self._most
        best = path.reference + self._best
        return open_groups(path, self._objective, best, sizes, self.problem)

    def _allowed(self, k: Floats) -> Bools:
        """Mark the numbers of items that may be selected, the empty set aside."""
        return (k >= self._least) & (k <= self._most)

    def _highest(self, path: Path) -> float:
        """The best value at the borders of a path that may be selected."""
        return float(path.f.max(where=self._allowed(path.k), initial=-math.inf))

    def _inner(self, interval: Interval, finer: Groups) -> Path:
        """Evaluate finer groups in the place of an interval."""
        path, first, stop = interval
        before = (*path.before, path.groups[:first])
        after = (*path.after, path.groups[stop:])
        ends = path.state[first], path.state[stop]
        found = self._evaluated(
            Start(finer, path.k[first], path.f[first], ends, before, after, path.reference)
        )
        path.replace(first, stop, found)
        return found

    def _evaluated(self, start: Start) -> Path:
        """Evaluate groups from a border on at which f and the state are known."""
        return evaluated(start, self._objective, (self._least, self._most))

    def _ask(self) -> None:
        """Say what is wanted next: open intervals, or in the end the lowest item chosen."""
        parts = [part for interval in self._intervals for part in interval.parts()]
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
        intervals, self._intervals = self._intervals, []
        if intervals:
            parts = iter(finer)
            self._take_in([self._inner(each, each.joined(parts)) for each in intervals])
        else:
            self._threshold = float(finer[0].low[-1])
        self._ask()

    @property
    def unsettled(self) -> Groups:
        """The groups that may hold a better border than the best one so far."""
        return Groups.joined([self.groups[:0], *(each.groups for each in self._intervals)])

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
        """Compare the borders of all paths and the empty set, and find the spread at the best."""
        nothing = BestBorder(0, *self.nothing, self.groups[:0], ambiguous=False)
        if not self._paths:
            return nothing
        k, f, allowed, top = self._borders()
        if not allowed.any():
            return self._no_border(nothing)
        tied = allowed & (
            f >= f[top] - TIE_PART * self._differing(k, k[top], self._size_of(f[top]))
        )
        ambiguous = len(self.rivals()) > 1
        value = self._value_of(f[top])
        if self.problem.least == 0 and value - self.nothing.mean <= TIE_PART * self._terms(value):
            return nothing._replace(ambiguous=ambiguous)
        chosen = int(np.flatnonzero(tied)[np.argmin(k[tied])])
        above, below = self._sides(chosen)
        value = self._value_of(f[chosen])
        std = self._spread(above, below, value)
        return BestBorder(int(k[chosen]), value, std, above[-1:], ambiguous)

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

    def rivals(self) -> list[int]:
        """Return the sizes that look as good as the best: a summary cannot tell them apart."""
        if not self._paths:
            return [0]
        k, f, allowed, top = self._borders()
        if not allowed.any():
            return [0]
        size = self._size_of(f[top])
        terms = size if self._offset else self._differing(k, k[top], size)
        near = allowed & (f >= f[top] - IN_DOUBT * terms - VALUE_ROUNDING * size)
        close: list[int] = np.unique(k[near]).astype(int).tolist()
        best = self._value_of(f[top])
        if self.problem.least > 0 or self.nothing.mean < best * (1.0 - IN_DOUBT):
            return close
        return [0, *close] if self.nothing.mean <= best * (1.0 + IN_DOUBT) else [0]

    def _borders(self) -> tuple[Floats, Floats, Bools, int]:
        """Return k and f at the borders of all paths, which are allowed, and the best of them."""
        k = np.concatenate([path.k for path in self._paths])
        f = np.concatenate([path.f for path in self._paths])
        allowed = self._allowed(k)
        return k, f, allowed, int(np.argmax(np.where(allowed, f, -math.inf)))

    def _no_border(self, nothing: BestBorder) -> BestBorder:
        """Return the empty set where no other can be had within the limits, if that is allowed."""
        if self.problem.least > 0:
            raise self.problem.no_set()
        return nothing

    def _size_of(self, f: float) -> float:
        """The size of a value along a path: that of f, or of the loss."""
        return abs(self._paths[0].reference + float(f))

    def _value_of(self, f: float) -> float:
        """The measure of a value along a path."""
        return self._offset + (self._paths[0].reference + float(f))

    def _differing(self, k: Floats, best: float, size: float) -> Floats:
        """The terms of a value that it does not share with the best one: those of other items.

        The loss may hang on a few items alone: then nothing of it is shared.
        """
        part: Floats = np.abs(k - best) / np.maximum(1.0, np.maximum(k, best))
        return np.minimum(part, size) if self._offset else size * part

    def _sides(self, border: int) -> tuple[Groups, Groups]:
        """Return the groups above and below a border, counted over all paths."""
        sizes = np.cumsum([path.k.size for path in self._paths])
        which = int(np.searchsorted(sizes, border, side="right"))
        path = self._paths[which]
        border -= int(sizes[which]) - path.k.size
        above = Groups.joined([*path.before, path.groups[:border]])
        return above, Groups.joined([*path.after, path.groups[border:]])


def _check_same(before: Groups, after: Groups) -> None:
    """Refuse finer groups of other items than those wanted."""
    were, are = before.count.sum(), after.count.sum()
    if were != are:
        low, high = float(before.low.min()), float(before.high.max())
        raise ValueError(
            "the source must have the same rows each time it is read, got "
            f"{were:.0f} and then {are:.0f} between {low!r} and {high!r}"
        )


def run(source: Source[Key], make: Callable[[Groups], SearchT]) -> dict[Key, SearchT]:
    """Search every set of items of a source, all of them in the same passes."""
    searches = {key: make(groups) for key, groups in source.table().items()}
    while wanted := {key: each.wanted for key, each in searches.items() if each.wanted}:
        finer = source.refine(wanted)
        for key in wanted:
            searches[key].refine(finer.get(key, ()))
    return searches
