"""How many labelled rows a guarantee would take, where those at hand cannot make it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argmaxf.constraints import Constraints
from argmaxf.empirical.ladder import KEPT, TOP, Ints, Steps, least_rows, rungs, tail

MOST_GROWTH = 1e3  # sample sizes beyond this many times the present one are not spelled out
LOOKED_AT = 500  # cuts considered when the rows needed are estimated
WIDE, NEARNESS = 0.3, 0.05  # that estimate is found to the second part of itself, by the first
LUCK = 0.6  # a cut that a precision just too low reaches more often than this says nothing,
CHANCE = 0.05  # nor does one that labels without regard to the scores reach more often than this


def rows_needed(steps: Steps, constraints: Constraints, share: float) -> float:
    """Return about how many rows like these would let a cut qualify, or infinity.

    Every count is multiplied until the walk would find a cut, there and at any larger multiple, and
    some cut would pass its tests. One row of the precision asked for is added to each cut, so that
    a few lucky rows at the top do not guarantee too much.
    """
    if not steps.true.size:
        return math.inf
    some = np.unique(np.linspace(0, steps.true.size - 1, LOOKED_AT).astype(np.int64))
    true, false = steps.true[some], steps.false[some]
    walked = _Walked.of(steps, constraints.min_precision, share)

    def enough(growth: float) -> bool:
        passed = _some_pass(steps, true * growth, false * growth, growth, constraints, share)
        return passed and walked.finds(growth)

    return _least(enough) * steps.n


def _least(enough: Callable[[float], bool]) -> float:
    """Return the least growth from which on every larger one is enough, or infinity.

    Growths are looked at downwards, first far apart and then close below the last that is enough.
    """
    least, high, low = math.inf, MOST_GROWTH, 1.0
    for apart in (WIDE, NEARNESS):
        for growth in np.geomspace(high, low, math.ceil(math.log(high / low) / apart) + 1).tolist():
            if not enough(growth):
                break
            least = growth
        if not math.isfinite(least):
            break
        high, low = least, max(1.0, least * math.exp(-WIDE))
    return least


def _lucky(true: Ints, false: Ints, chance: float) -> NDArray[np.bool_]:
    """Return which cuts may have their precision by luck: the last of them holds all rows."""
    lucky = tail(true, false, chance) > LUCK
    rate = true[-1] / (true[-1] + false[-1])
    if rate < chance:
        lucky |= tail(true, false, rate) > CHANCE
    return np.asarray(lucky)


def _lifted(precision: NDArray[np.float64], true: Ints, false: Ints) -> NDArray[np.float64]:
    """Return for each cut the best precision of it and larger ones, unless its rows speak against.

    A few rows at the top say little by themselves; they are taken to be like the cut around them.
    """
    best = np.maximum.accumulate(precision[::-1])[::-1]
    as_few = 1.0 - tail(true + 1, np.maximum(false - 1, 0), best)  # P(Bin(k, best) ≤ true)
    plausible = (false == 0) | (as_few > CHANCE)
    return np.where(plausible, best, precision)


class _Walked(NamedTuple):
    """The walk's starts, on a sample of the same scores with every count multiplied."""

    limit: float
    alpha: float
    size: Ints  # rows of each distinct score's cut, from the highest score down
    precision: NDArray[np.float64]  # of those cuts; 0 where it may be luck all the way down

    @classmethod
    def of(cls, steps: Steps, limit: float | None, alpha: float) -> _Walked:
        """Count the cuts, and shrink their precision by one row of that asked for."""
        score = np.unique(np.concatenate([steps.edge, steps.negative]))[::-1]
        false = steps.negative.size - np.searchsorted(steps.negative, score)
        passed = steps.edge.size - np.searchsorted(steps.edge[::-1], score)
        true, chance = np.append(0, steps.true)[passed], limit or 0.0
        precision = (true + chance) / (true + false + 1)
        if chance and steps.n >= least_rows(chance, alpha):  # fewer rows could not tell
            precision[_lucky(true, false, chance)] = 0.0
        return cls(chance, alpha, true + false, _lifted(precision, true, false))

    def finds(self, growth: float) -> bool:
        """Return whether some start would pass, and the first cut that holds it: a cut is found.

        A start among rows of one score has its part of their positives. A row alone at the top is
        not taken to share its score.
        """
        if not self.limit:
            return True
        size, true = self.size * growth, self.precision * self.size * growth
        ranks = rungs(self.limit, self.alpha * (1 - TOP), int(size[-1]))
        rank, level = np.array(list(ranks)).T
        held = np.interp(rank, np.append(0, size), np.append(0, true))
        cut = np.searchsorted(size, rank)
        passed = self._passes(held, rank, level) & self._passes(true[cut], size[cut], level)
        shared = self.size[0] > 1 and self._passes(true[0], size[0], self.alpha * TOP)
        return bool(passed.any() or shared)

    def _passes(self, true: Any, size: Any, level: Any) -> Any:
        """Return whether so many positives among so many rows pass at a level."""
        return tail(true, size - true, self.limit) <= level


def _some_pass(
    steps: Steps, true: Any, false: Any, growth: float, constraints: Constraints, share: float
) -> bool:
    """Return whether some cut would pass every test if all counts were `growth` times as large."""
    n, positives = steps.n * growth, steps.true[-1] * growth
    passed = np.ones(true.size, np.bool_)
    if limit := constraints.min_precision:
        precision = (true / growth + limit) / ((true + false) / growth + 1)
        size = true + false
        level = share * (1.0 - KEPT)
        passed &= tail(precision * size, size - precision * size, limit) <= level
    if limit := constraints.min_recall:
        passed &= tail(true, positives - true, limit) <= share
    if (limit := constraints.max_selected_rate) is not None:
        out = n - true - false
        passed &= tail(out, n - out, 1.0 - limit) <= share
    return bool(passed.any())
