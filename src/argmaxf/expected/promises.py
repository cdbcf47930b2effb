"""Promises under the model: sets whose precision and recall are high enough, with given odds.

For each size k the top k has the highest expected F, the highest odds of any precision, and the
highest odds of any recall: exchanging an item for a more probable one moves the number of true
positives up and the number of missed ones down. So the best set that keeps a promise is the top k
for some k, and the task is to find the k that keep it. docs/promises.md has the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from argmaxf._base.arrays import Bools, Floats
from argmaxf.constraints import ChanceConstraint, Constraints, priced, sure
from argmaxf.expected.counts.count import Count

WINDOW = 512  # sizes whose odds are found together
SLACK = 1e-12  # the rounding of a tail must not decide whether a promise is kept


@dataclass(frozen=True)
class ModelPromise:
    """What is promised of a chosen set if the probabilities are right.

    Attributes
    ----------
    constraints : Constraints
        The precision and recall the set has at least.
    odds : float
        The probability asked for that all of them hold.
    kept : float
        The probability, under the model, that they hold for the chosen set.
    cost : float
        Expected F, or other measure, given up for the promise.
    measure : str, default="F"
        What is maximized.
    together : float or None
        Of a segment: the odds asked for that all segments keep theirs at once, of which `odds` is
        the part of this one.
    """

    constraints: Constraints
    odds: float
    kept: float
    cost: float
    measure: str = "F"
    together: float | None = None

    def __str__(self) -> str:
        cost = f"{priced(self.cost)} expected {self.measure}"
        kept = sure("odds", float(f"{self.kept:.4g}"), self.together)
        return f"{self.constraints} with {kept}, {cost}"


def kept_sizes(descending: Floats, chance: ChanceConstraint) -> Bools:
    """Return for k = 0 … n whether the top k keeps the promise.

    Selecting nothing keeps any precision, and finding all of nothing is any recall. O(n) time and
    memory: some 0.4 µs an item for a precision, and a pass of 60 n for every window of sizes in
    which a recall, or a precision and a recall together, is in doubt.
    """
    limits = chance.constraints
    least = chance.odds - SLACK
    precise = precision_odds(descending, limits.min_precision, chance.odds)
    kept: Bools = precise >= least
    if not limits.min_recall:
        return kept
    margin = RecallMargin.of(descending, limits.min_recall)
    kept[: _least_k(descending, margin, least)] = False
    if limits.min_precision:
        both = Windows(descending, limits)
        for k in np.flatnonzero(kept & (precise - margin.most_missed() < least)).tolist():
            kept[k] = both.odds(k) >= least
    return kept


def precision_odds(descending: Floats, limit: float | None, odds: float = 0.0) -> Floats:
    """Return P(T_k ≥ limit · k) for k = 0 … n; 1 where there is no limit, and for k = 0.

    Sizes that cannot reach `odds` may be left at 0: the median of a count is within 1 of its mean.
    """
    from argmaxf.expected import count_kernels

    filled = np.ones(descending.size + 1)
    if limit:
        last = descending.size
        if odds > 0.5:
            size = np.arange(1, last + 1)
            possible = np.flatnonzero(np.cumsum(descending) > limit * size - 1.0 - 1e-6)
            last = int(possible[-1]) + 1 if possible.size else 0
        filled[last + 1 :] = 0.0
        count_kernels.precision_odds(descending, limit, last, filled)
    return filled


def odds_of(descending: Floats, k: int, constraints: Constraints) -> float:
    """Return the odds that the top k meets the constraints, under the model."""
    return odds_of_parts(descending[:k], descending[k:], constraints)


def odds_of_parts(chosen: Floats, others: Floats, constraints: Constraints) -> float:
    """Return the odds that choosing some items and not the others meets the constraints."""
    return float(_joint_odds(chosen, chosen[:0], others, constraints)[0])


def _joint_odds(above: Floats, items: Floats, below: Floats, limits: Constraints) -> Floats:
    """Return the odds of choosing what is above and the first j items, for j = 0, 1, …

    P(T ≥ c k, T ≥ r (T + R)) is the sum over T of P(T = t) P(R ≤ t/r - t), T and R independent.
    """
    from argmaxf.expected import count_kernels

    inside = Count.at_once(above)
    outside = Count.at_once(below if limits.min_recall else below[:0])
    odds = np.empty(items.size + 1)
    count_kernels.joint_odds(
        above.size, *inside, items, *outside,
        limits.min_precision or 0.0, limits.min_recall or 0.0, odds,
    )  # fmt: skip
    return odds


class Windows:
    """The odds of neighbouring sizes, found together: they share what is far above and below.

    A window costs two counts of all items, and then some 20 µs for each of its sizes where there
    are a million items.
    """

    def __init__(self, descending: Floats, constraints: Constraints) -> None:
        self._descending = descending
        self._constraints = constraints
        self._found: dict[int, Floats] = {}

    def odds(self, k: int) -> float:
        """Return the odds that the top k meets the constraints."""
        window, place = divmod(k, WINDOW)
        if window not in self._found:
            ends = [window * WINDOW, (window + 1) * WINDOW - 1]
            above, items, below = np.split(self._descending, ends)
            self._found[window] = _joint_odds(above, items, below, self._constraints)
        return float(self._found[window][place])


class RecallMargin(NamedTuple):
    """Of (1-r) T - r R, which must not be negative for a recall of r: mean and variance for each k.

    T are the positives among the top k, R those left out.
    """

    limit: float
    mean: Floats
    variance: Floats

    @classmethod
    def of(cls, descending: Floats, limit: float) -> RecallMargin:
        """Return it for k = 0 … n."""
        mass, spread = (
            np.append(0.0, np.cumsum(each)) for each in (descending, descending * (1 - descending))
        )
        variance = (1.0 - limit) ** 2 * spread + limit**2 * (spread[-1] - spread)
        return cls(limit, mass - limit * mass[-1], variance)

    def guess(self, least: float) -> int:
        """Return about the first k whose odds reach `least`: as if the margin were normal."""
        reach = NormalDist().inv_cdf(min(max(least, 1e-15), 1.0 - 1e-15))
        likely = self.mean >= reach * np.sqrt(self.variance)
        return int(np.argmax(likely)) if likely.any() else likely.size - 1

    def most_missed(self) -> Floats:
        """Return a bound on the probability of a lower recall, by Bernstein's inequality."""
        mean = np.maximum(self.mean, 0.0)
        spread = np.maximum(2.0 * (self.variance + mean / 3.0), 1e-300)
        return np.asarray(np.exp(-mean * mean / spread))


def _least_k(descending: Floats, margin: RecallMargin, least: float) -> int:
    """Return the least k whose odds of a recall reach `least`; they grow with k."""
    windows = Windows(descending, Constraints(min_recall=margin.limit))
    return _first(lambda k: windows.odds(k) >= least, margin.guess(least), descending.size)


def _first(true: Callable[[int], bool], guess: int, last: int) -> int:
    """Return the first k up to `last` that is true, if all later ones are; look near a guess."""
    low, high, step = -1, last, 1  # low is not true, high is taken for it
    k = guess
    while low < k < high:
        if true(k):
            high, k = k, k - step
        else:
            low, k = k, k + step
        step *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if true(middle) else (middle, high)
    return high
