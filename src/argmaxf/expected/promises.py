"""Promises under the model: sets whose precision and recall are high enough, with given odds.

For each size k the top k has the highest expected F, the highest odds of any precision, and the
highest odds of any recall: exchanging an item for a more probable one moves the number of true
positives up and the number of missed ones down. So the best set that keeps a promise is the top k
for some k, and the task is to find the k that keep it. docs/promises.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from argmaxf.arrays import Bools, Floats
from argmaxf.constraints import Asked, Constraints

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
        Expected F given up for the promise.
    """

    constraints: Constraints
    odds: float
    kept: float
    cost: float

    def __str__(self) -> str:
        return f"{self.constraints} with odds {self.kept:.4g}, at {self.cost:.4g} of expected F"


def kept_sizes(descending: Floats, asked: Asked) -> Bools:
    """Return for k = 0 … n whether the top k keeps the promise.

    Selecting nothing keeps any precision, and finding all of nothing is any recall. O(n) time and
    memory: about 100 ns an item for a precision, some 10 passes for a recall. A precision and a
    recall together take a pass more for each k where the odds of one alone do not tell.
    """
    limits = asked.constraints
    least = asked.odds - SLACK
    precise = precision_odds(descending, limits.min_precision, asked.odds)
    kept: Bools = precise >= least
    if limits.min_recall:
        kept[: _least_k(descending, limits.min_recall, least)] = False
    if limits.min_recall and limits.min_precision:
        for k in _open(descending, limits.min_recall, precise, kept, least):
            kept[k] = odds_of(descending, k, limits) >= least
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
    """Return the odds that the top k meets the constraints, under the model.

    P(T ≥ c k, T ≥ r (T + R)) is the sum over T of P(T = t) P(R ≤ t/r - t), T and R independent.
    """
    from argmaxf.expected import count_kernels

    inside = Count.of(descending[:k])
    t = inside.values
    mass = inside.mass
    if constraints.min_precision and k:
        mass = np.where(t >= count_kernels.least_true(constraints.min_precision, k), mass, 0.0)
    if constraints.min_recall:
        least = constraints.min_recall * (1.0 - count_kernels.LESS)
        mass = mass * Count.of(descending[k:]).at_most(np.floor(t / least - t))
    return float(min(1.0, mass.sum()))


class Count(NamedTuple):
    """The distribution of a count of independent labels, where its odds are above e^{-37}."""

    first: int
    mass: Floats

    @classmethod
    def of(cls, p: Floats) -> Count:
        """Return it from its characteristic function: O(60 n), and one FFT of the few values."""
        from argmaxf.expected import count_kernels

        mean, variance = float(p.sum()), float((p * (1.0 - p)).sum())
        stray = count_kernels.reach(variance)
        first, last = max(0, math.floor(mean - stray)), min(p.size, math.ceil(mean + stray))
        width = last - first + 1
        theta = 2.0 * math.pi * np.arange(width // 2 + 1) / width
        theta = theta[variance * (1.0 - np.cos(theta)) <= count_kernels.NATS + 4.0]
        real, imaginary = np.empty(theta.size), np.empty(theta.size)
        count_kernels.characteristic(p, theta, real, imaginary)
        wave = np.zeros(width // 2 + 1, np.complex128)
        wave[: theta.size] = (real - 1j * imaginary) * np.exp(1j * theta * first)
        return cls(first, np.maximum(np.fft.irfft(wave, width), 0.0))

    @property
    def values(self) -> NDArray[np.int64]:
        """The values it may take."""
        return np.arange(self.first, self.first + self.mass.size)

    def at_most(self, number: Floats) -> Floats:
        """Return P(count ≤ number)."""
        below = np.append(0.0, np.cumsum(self.mass))
        place: Floats = np.clip(number - self.first + 1, 0, self.mass.size)
        return np.asarray(np.minimum(below[place.astype(np.int64)], 1.0))


def _least_k(descending: Floats, limit: float, least: float) -> int:
    """Return the least k whose odds of a recall of `limit` reach `least`; they grow with k."""
    constraints = Constraints(min_recall=limit)

    def enough(k: int) -> bool:
        return odds_of(descending, k, constraints) >= least

    return _first(enough, _guess(descending, limit, least), descending.size)


def _guess(descending: Floats, limit: float, least: float) -> int:
    """Return about the k wanted: (1-r) T - r R taken for normal."""
    mass, spread = np.cumsum(descending), np.cumsum(descending * (1.0 - descending))
    mean = mass - limit * mass[-1]
    variance = (1.0 - limit) ** 2 * spread + limit**2 * (spread[-1] - spread)
    likely = ndtr(mean / np.sqrt(np.maximum(variance, 1e-300))) >= least
    return int(np.argmax(likely)) if likely.any() else descending.size


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


def _open(
    descending: Floats, limit: float, precise: Floats, kept: Bools, least: float
) -> Iterable[int]:
    """Return the sizes for which the odds of precision and of recall do not tell those of both.

    Both hold with odds of at least precise + recall - 1, and recall's odds grow with k.
    """
    sure: Bools = np.zeros(kept.size, np.bool_)
    for part in (0.5, 0.1, 0.01):
        recall = 1.0 - part * (1.0 - least)
        k = _least_k(descending, limit, recall)
        sure[k:] |= precise[k:] + recall - 1.0 >= least
    return np.flatnonzero(kept & ~sure).tolist()
