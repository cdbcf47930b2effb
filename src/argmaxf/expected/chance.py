"""Chance constraints: sets whose precision and recall hold at a confidence level under the model.

For each size k the top k has the highest expected F, the highest probability of reaching any
precision, and the highest probability of reaching any recall: exchanging an item for a more
probable one moves the number of true positives up and the number of missed ones down. So the best
set that meets the constraints is the top k for some k, and the task here is to find the k that meet
them. docs/background/guarantee-proofs.md has the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.shown import Shown
from argmaxf._base.validation import how_many
from argmaxf.constraints import ChanceConstraint, Constraints, format_cost, format_level
from argmaxf.expected.count_kernels import LESS
from argmaxf.expected.counts import PoissonBinomial
from argmaxf.problem import Problem

COUNTED_ONE_BY_ONE = 1 << 10  # labels of which a count is found one by one
WINDOW = 128  # sizes whose probabilities are found together
SUM_ROUNDING = 1e-9  # of a probability, for the rounding of sums
TAIL_SLACK = 1e-12  # the rounding of a tail must not decide whether a constraint is met


@dataclass(frozen=True, repr=False)
class ChanceGuarantee(Shown):
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

    Examples
    --------
    >>> from argmaxf import maximize_expected_f
    >>> p = [0.95] * 60 + [0.5] * 40
    >>> decision = maximize_expected_f(p, min_precision=0.8, confidence_level=0.9)
    >>> decision.k, round(decision.guarantee.probability, 3)
    (78, 0.9)
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


def require_feasible(descending: Floats, chance: ChanceConstraint, allowed: Bools) -> Bools:
    """Return which of the allowed k = 0 … n meet the chance constraint; refuse where none does."""
    feasible: Bools = feasible_sizes(descending, chance) & allowed
    if not feasible.any():
        raise _infeasible(descending, chance, allowed)
    return feasible


def guarantee_of(chosen: Floats, others: Floats, problem: Problem, cost: float) -> ChanceGuarantee:
    """Return what chosen items guarantee, and others left out, at a cost of the measure."""
    chance = problem.chance
    assert chance is not None
    probability = probability_of_parts(chosen, others, chance.constraints)
    joint, level = chance.joint_confidence_level, chance.confidence_level
    return ChanceGuarantee(chance.constraints, level, probability, cost, problem.word, joint)


def _infeasible(descending: Floats, chance: ChanceConstraint, allowed: Bools) -> ValueError:
    """Say that no set meets the constraints, and how near the smallest allowed set comes."""
    recall = chance._replace(constraints=Constraints(None, chance.constraints.min_recall))
    enough = feasible_sizes(descending, recall) & allowed
    if not enough.any():
        return ValueError(f"{recall.constraints} cannot be met: max_selected allows too few items")
    k = int(np.argmax(enough))
    probability = probability_of_parts(descending[:k], descending[k:], chance.constraints)
    with_recall = " that meets the recall" if chance.constraints.min_recall else ""
    level = format_level("confidence level", chance.confidence_level, chance.joint_confidence_level)
    return ValueError(
        f"{chance.constraints} cannot be met at {level}: the smallest allowed set{with_recall} "
        f"has {how_many(k, 'item')} and meets it with probability {probability:.4g}"
    )


def feasible_sizes(descending: Floats, chance: ChanceConstraint) -> Bools:
    """Return for k = 0 … n whether the top k meets the chance constraint.

    Selecting nothing has any precision, and finding all of nothing is any recall. Bounds on the
    probability decide most sizes, O(n) for all of them. Others are looked at in windows of
    neighbours, which share what is far away: a window costs two counts of all items, and then some
    20 µs for each of its sizes where there are a million items.
    """
    least = chance.confidence_level - TAIL_SLACK
    low, high = bounds_on_probability(descending, chance.constraints)
    feasible: Bools = low >= least
    unsure = np.flatnonzero(~feasible & (high >= least))
    while unsure.size:
        first = int(unsure[0])
        above, items, below = np.split(descending, [first, first + WINDOW - 1])
        found = _joint_probabilities(above, items, below, chance.constraints)
        here, unsure = np.split(unsure, [int(np.searchsorted(unsure, first + found.size))])
        feasible[here] = found[here - first] >= least
    return feasible


def bounds_on_probability(descending: Floats, constraints: Constraints) -> tuple[Floats, Floats]:
    """Bound the probability that the top k meets the constraints, for k = 0 … n.

    A precision of at least c is T ≥ m, m the least whole number from c k on, and a recall of at
    least r is (1 - r) T ≥ r R, T the positives among the top k, R those left out: in both cases a
    sum of independent terms is not negative. Both hold with a probability of at least the sum of
    theirs less 1.
    """
    p, limits = descending, constraints
    mass, spread = (np.append(0.0, np.cumsum(each)) for each in (p, p * (1.0 - p)))
    low, high = np.ones(p.size + 1), np.ones(p.size + 1)
    sums = []
    if limits.min_precision:
        least = np.ceil(limits.min_precision * np.arange(p.size + 1) * (1.0 - LESS))
        sums.append((mass - least + 0.5, spread, spread))  # T > m - 1/2 as well
    if r := limits.min_recall:
        left = spread[-1] - spread
        second, third = ((1.0 - r) ** j * spread + r**j * left for j in (2, 3))
        sums.append((mass - r * mass[-1], second, third))
    for terms in sums:
        below, above = _not_negative(*terms)
        low, high = low + (below - 1.0), np.minimum(high, above)
    return low, high


def _not_negative(mean: Floats, variance: Floats, third: Floats) -> tuple[Floats, Floats]:
    """Bound the probability that a sum of independent terms is not negative.

    By the inequalities of Bernstein, for terms at most 1 from their mean, and of Berry and Esseen
    (.56 is a constant for terms of any distribution; Shevtsova 2010): `third` is at least the sum
    of their third absolute moments, which are E|y - p|³ ≤ p (1 - p) for labels.
    """
    from scipy.special import ndtr

    tail = np.exp(np.maximum(-mean * mean / (2.0 * variance + np.abs(mean) + 1e-300), -99.0))
    low, high = np.where(mean > 0.0, 1.0 - tail, 0.0), np.where(mean < 0.0, tail, 1.0)
    near = np.flatnonzero((variance > 1.0) & (mean * mean < 25.0 * variance))
    spread = np.sqrt(variance[near])
    normal, error = ndtr(mean[near] / spread), 0.56 * third[near] / spread**3 + SUM_ROUNDING
    low[near] = np.maximum(low[near], normal - error)
    high[near] = np.minimum(high[near], normal + error)
    return low, high


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

    inside = PoissonBinomial.of(above, COUNTED_ONE_BY_ONE)
    outside = PoissonBinomial.of(below if limits.min_recall else below[:0], COUNTED_ONE_BY_ONE)
    filled = np.empty(items.size + 1)
    count_kernels.joint_probabilities(
        above.size, *inside, items, *outside,
        limits.min_precision or 0.0, limits.min_recall or 0.0, filled,
    )  # fmt: skip
    return filled
