"""Chance constraints: sets whose precision and recall hold at a confidence level under the model.

For each size k the top k has the highest expected F, the highest probability of reaching any
precision, and the highest probability of reaching any recall: exchanging an item for a more
probable one moves the number of true positives up and the number of missed ones down. So the best
set that meets the constraints is the top k for some k, and the task is to find the k that meet
them. docs/background/guarantee-proofs.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools, Floats, contiguous
from argmaxf._base.validation import NotAProbability, how_many
from argmaxf.constraints import ChanceConstraint, Constraints, format_cost, format_level
from argmaxf.expected.counts import PoissonBinomial, best_size, sizes_allowed
from argmaxf.expected.decision import Decision, top_items
from argmaxf.expected.ties import settle
from argmaxf.expected.values import top_curve, value_of_selected
from argmaxf.problem import Problem

COUNTED = 1 << 10  # labels of which a count is found one by one
WINDOW = 512  # sizes whose probabilities are found together
SLACK = 1e-12  # the rounding of a tail must not decide whether a constraint is met
NEAR = 1e-13  # values of f nearer than this part of themselves are told apart in decimals


@dataclass(frozen=True)
class ChanceGuarantee:
    """The precision and recall that a chosen set has if the probabilities are right.

    Attributes
    ----------
    constraints : Constraints
        The least precision and recall.
    confidence_level : float
        The probability asked for that all of them hold.
    probability : float
        The probability, under the model, that they hold for the chosen set.
    cost : float
        Expected F, or other measure, given up for the constraints.
    measure : str, default="F"
        What is maximized.
    joint_confidence_level : float or None
        For a segment: the confidence level of all segments at once, from which `confidence_level`
        of this segment follows.
    """

    constraints: Constraints
    confidence_level: float
    probability: float
    cost: float
    measure: str = "F"
    joint_confidence_level: float | None = None

    def __str__(self) -> str:
        cost = format_cost(self.cost, f"expected {self.measure}")
        shown = float(f"{self.probability:.4g}")
        probability = format_level("probability", shown, self.joint_confidence_level)
        return f"{self.constraints} with {probability}; {cost}"


def decide_constrained(p: NDArray[Any], problem: Problem) -> Decision:
    """Return the top k with the highest expected F among the k that meet the chance constraint.

    O(n log n) time: all items are sorted, and every k is looked at.
    """
    chance = problem.chance
    assert chance is not None
    ascending = np.sort(p.astype(np.float64, copy=False))
    if not (ascending[0] >= 0.0 and ascending[-1] <= 1.0):
        raise NotAProbability
    problem.check_reachable(int(np.count_nonzero(ascending)))
    descending = np.ascontiguousarray(ascending[::-1])
    f = top_curve(contiguous(ascending), problem)
    allowed = sizes_allowed(descending, problem)
    feasible = feasible_sizes(descending, chance) & allowed
    if not feasible.any():
        raise _infeasible(descending, chance, allowed)
    k = _best(f, feasible, descending, problem)
    threshold = float(descending[k - 1]) if k else math.inf
    selected = top_items(p, threshold, k)
    value = value_of_selected(p, selected, problem)
    guarantee = ChanceGuarantee(
        chance.constraints,
        chance.confidence_level,
        probability_of_top(descending, k, chance.constraints),
        max(0.0, float(f[allowed].max() - f[k])),
        problem.word,
        chance.joint_confidence_level,
    )
    return Decision(
        selected, k, threshold, float(f[k]), value.std, problem.beta, p.size, guarantee=guarantee
    )


def _best(f: Floats, feasible: Bools, descending: Floats, problem: Problem) -> int:
    """Return the best feasible size; the smallest of equals."""
    if problem.ratio is None:
        return best_size(f, feasible, descending, problem)
    value = np.where(feasible, f, -1.0)
    best = int(np.argmax(value))
    rivals = np.flatnonzero(value >= value[best] * (1.0 - NEAR)).tolist()
    return best if len(rivals) == 1 else settle(descending, rivals, problem)


def _infeasible(descending: Floats, chance: ChanceConstraint, allowed: Bools) -> ValueError:
    """Say that no set meets the constraints, and how near the smallest allowed set comes."""
    recall = chance._replace(constraints=Constraints(None, chance.constraints.min_recall))
    enough = feasible_sizes(descending, recall) & allowed
    if not enough.any():
        return ValueError(f"{recall.constraints} cannot be met: max_selected allows too few items")
    k = int(np.argmax(enough))
    probability = probability_of_top(descending, k, chance.constraints)
    with_recall = " that meets the recall" if chance.constraints.min_recall else ""
    level = format_level("confidence level", chance.confidence_level, chance.joint_confidence_level)
    return ValueError(
        f"{chance.constraints} cannot be met at {level}: the smallest allowed set{with_recall} "
        f"has {how_many(k, 'item')} and meets it with probability {probability:.4g}"
    )


def feasible_sizes(descending: Floats, chance: ChanceConstraint) -> Bools:
    """Return for k = 0 … n whether the top k meets the chance constraint.

    Selecting nothing has any precision, and finding all of nothing is any recall. O(n) time and
    memory: some 0.4 µs an item for a precision, and a pass of 60 n for every window of sizes in
    which a recall, or a precision and a recall together, must be computed.
    """
    limits = chance.constraints
    least = chance.confidence_level - SLACK
    precise = precision_probabilities(descending, limits.min_precision, chance.confidence_level)
    feasible: Bools = precise >= least
    if not limits.min_recall:
        return feasible
    margin = RecallMargin.of(descending, limits.min_recall)
    feasible[: _least_k(descending, margin, least)] = False
    if limits.min_precision:
        both = Windows(descending, limits)
        for k in np.flatnonzero(feasible & (precise - margin.most_missed() < least)).tolist():
            feasible[k] = both.probability(k) >= least
    return feasible


def precision_probabilities(descending: Floats, limit: float | None, least: float = 0.0) -> Floats:
    """Return P(T_k ≥ limit · k) for k = 0 … n; 1 where there is no limit, and for k = 0.

    Sizes that cannot reach `least` may be left at 0: the median of a count is within 1 of its mean.
    """
    from argmaxf.expected import count_kernels

    filled = np.ones(descending.size + 1)
    if limit:
        last = descending.size
        if least > 0.5:
            size = np.arange(1, last + 1)
            possible = np.flatnonzero(np.cumsum(descending) > limit * size - 1.0 - 1e-6)
            last = int(possible[-1]) + 1 if possible.size else 0
        filled[last + 1 :] = 0.0
        count_kernels.precision_probabilities(descending, limit, last, filled)
    return filled


def probability_of_top(descending: Floats, k: int, constraints: Constraints) -> float:
    """Return the probability that the top k meets the constraints, under the model."""
    return probability_of_parts(descending[:k], descending[k:], constraints)


def probability_of_parts(chosen: Floats, others: Floats, constraints: Constraints) -> float:
    """Return the probability that choosing some items and not the others meets the constraints."""
    return float(_joint_probabilities(chosen, chosen[:0], others, constraints)[0])


def _joint_probabilities(
    above: Floats, items: Floats, below: Floats, limits: Constraints
) -> Floats:
    """Return the probability for choosing what is above and the first j items, for j = 0, 1, …

    P(T ≥ c k, T ≥ r (T + R)) is the sum over T of P(T = t) P(R ≤ t/r - t), T and R independent.
    """
    from argmaxf.expected import count_kernels

    inside = PoissonBinomial.of(above, COUNTED)
    outside = PoissonBinomial.of(below if limits.min_recall else below[:0], COUNTED)
    filled = np.empty(items.size + 1)
    count_kernels.joint_probabilities(
        above.size, *inside, items, *outside,
        limits.min_precision or 0.0, limits.min_recall or 0.0, filled,
    )  # fmt: skip
    return filled


class Windows:
    """The probabilities of neighbouring sizes, found together: they share what is far away.

    A window costs two counts of all items, and then some 20 µs for each of its sizes where there
    are a million items.
    """

    def __init__(self, descending: Floats, constraints: Constraints) -> None:
        self._descending = descending
        self._constraints = constraints
        self._found: dict[int, Floats] = {}

    def probability(self, k: int) -> float:
        """Return the probability that the top k meets the constraints."""
        window, place = divmod(k, WINDOW)
        if window not in self._found:
            ends = [window * WINDOW, (window + 1) * WINDOW - 1]
            above, items, below = np.split(self._descending, ends)
            self._found[window] = _joint_probabilities(above, items, below, self._constraints)
        return float(self._found[window][place])


class RecallMargin(NamedTuple):
    """Mean and variance, for each k, of (1-r) T - r R: not negative where the recall is at least r.

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
        """Return about the first k whose probability reaches `least`: as if it were normal."""
        reach = NormalDist().inv_cdf(min(max(least, 1e-15), 1.0 - 1e-15))
        likely = self.mean >= reach * np.sqrt(self.variance)
        return int(np.argmax(likely)) if likely.any() else likely.size - 1

    def most_missed(self) -> Floats:
        """Return a bound on the probability of a lower recall, by Bernstein's inequality."""
        mean = np.maximum(self.mean, 0.0)
        spread = np.maximum(2.0 * (self.variance + mean / 3.0), 1e-300)
        return np.asarray(np.exp(-mean * mean / spread))


def _least_k(descending: Floats, margin: RecallMargin, least: float) -> int:
    """Return the least k whose probability of the recall reaches `least`; it grows with k."""
    windows = Windows(descending, Constraints(min_recall=margin.limit))
    return _first(lambda k: windows.probability(k) >= least, margin.guess(least), descending.size)


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
