r"""G-mean of more items than all counts can be looked at: a very good set, and a proof how good.

G-mean is √(X Y) with X = T/S and Y = TN/(n-S). For any c > 0, √(X Y) ≤ (X/c + c Y) / 2, and that is
a measure that is linear in true positives, whose optimum over all sets is found exactly. So every c
bounds the expected G-mean of every set. At c = √(E[X] / E[Y]) of its own best set the bound is
least, √(E[X] E[Y]); what that set's E[√(X Y)] lacks of it is about Var(log X - log Y) / 8 of it,
1 part in 8 times the number of positives or so. Linear measures never part equal items, G-mean
does: where the best set jumps from one to another as c grows, a size between them is the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools
from argmaxf.expected import refine
from argmaxf.expected.counts.search import LinearSearch
from argmaxf.expected.counts.sets import value_by_counts
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.expected.grouped.sources import ArraySource, Cut
from argmaxf.measures import Linear
from argmaxf.measures.base import others
from argmaxf.problem import Problem

ROUNDS = 8  # c settles in three or four
SETTLED = 1e-5  # the bound is off by the square of that
FAR = 30.0  # log c at which one rate alone counts
SCARCE = 200.0  # positives or negatives; of fewer the sizes between two sets are looked at
LEAST = 1e-300


@dataclass(frozen=True, eq=False, repr=False)
class BoundedDecision(Decision):
    """A decision whose set is not proven to be the best, and how much better another can be.

    Attributes
    ----------
    bound : float or ndarray
        No set has a higher expected value; one entry for each row or column.
    """

    bound: Any = math.nan


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
        return 0.5 * math.log(max(self.x, LEAST) / max(self.y, LEAST))


@dataclass
class _Relaxed:
    """Some items and a question, asked for (X/c + c Y) / 2 instead."""

    source: ArraySource
    problem: Problem
    bound: float = math.inf

    def at(self, log_c: float) -> _Best:
        """Return the best set for one c; keep the least bound."""
        rates = replace(self.problem, measure=Rates(math.exp(log_c)))
        search = refine.decide(self.source, rates)[()]
        best = _Best(search.optimum.k, *_rates(search), float(search.optimum.f), search.cut)
        self.bound = min(self.bound, best.bound)
        return best


def decide_gmean(p: NDArray[Any], problem: Problem) -> BoundedDecision:
    """Return the set that the bound is best for, its expected G-mean, and the bound."""
    relaxed = _Relaxed(ArraySource(p), problem)
    best = _settled(relaxed)
    if best is None:
        best = _between(p, *_neighbours(relaxed), problem)
    selected = relaxed.source.select({(): best})
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


def _rates(search: Any) -> tuple[float, float]:
    """Return E[X] and E[Y] of the best set; (X/c + c Y) / 2 of two c tells both."""
    assert isinstance(search, LinearSearch)
    k = np.array([float(search.optimum.k)])
    found = search.chosen() if k else np.zeros((1, search.law.nodes.size))
    one, two = (
        float(replace(search.law, measure=Rates(c), zero_division=0.0).values(k, found)[0])
        for c in (1.0, 2.0)
    )
    y = (4.0 * two - 2.0 * one) / 3.0  # X + Y = 2 one, X/4 + Y = two
    return 2.0 * one - y, y
