r"""The set with the highest expected F where items have values: amounts, documents, exposure.

With values v, V(S) the total value of a set S and W = Σ v_i y_i the value of all positives,

    F(S) = (1+β²) Σ_{i in S} v_i y_i / (V(S) + β² W).

For sets of one total value s the expectation is a sum over their members,

    E[F(S)] = Σ_{i in S} v_i Δ_i(s),    Δ_i(s) = (1+β²) E[y_i / (s + β² W)],

and 1/x = Σ_m ω_m e^{-u_m x} (`quadrature`) gives Δ_i(s) = Σ_m B_im e^{-u_m s} with B ≥ 0. The best
set of total value s is a knapsack, and the best ones need not be those of the highest probability.
Filling the knapsack in the order of Δ(s), with a part of the last item, gives at least as much:
the fractional value V(s, s), where V(w, t) fills w in the order of Δ(t). V(w, t) is convex in t and
concave in w, so that its chords in t bound it between two totals (as in `dependent`). The bounds of
all ranges of totals bound every set.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.validation import as_probabilities, as_weights, check_positive
from argmaxf.expected.decision import Decision
from argmaxf.expected.quadrature import reciprocal_nodes
from argmaxf.problem import Problem

CORE = 12  # items at the margin of which every subset is tried
MOST_EVALUATIONS = 300
LEAST_RATIO = 1e-24  # of weights: 1/x has nodes for ratios down to 1e-32, sums included


@dataclass(frozen=True, eq=False, repr=False)
class WeightedDecision(Decision):
    """The best set found for items with values, and how much better another set can be.

    As `Decision`, and:

    Attributes
    ----------
    threshold : float
        The smallest contribution of a selected item; infinite if nothing is selected. Other items
        may contribute as much: the best set need not be given by one threshold.
    bound : float
        No set has a higher expected F.
    contribution : ndarray
        What each item adds to E[F] for each unit of its value.

    Examples
    --------
    >>> from argmaxf import maximize_expected_weighted_f
    >>> decision = maximize_expected_weighted_f([0.2, 0.5, 0.4], [100, 1, 10])
    >>> decision.selected, decision.gap
    (array([False,  True,  True]), 0.0)
    """

    bound: float = np.nan
    contribution: Any = None

    @property
    def gap(self) -> float:
        """How much expected F another set can have at most beyond this one."""
        return float(self.bound - self.expected)


def maximize_expected_weighted_f(
    p: ArrayLike,
    weights: ArrayLike,
    *,
    beta: float = 1.0,
    zero_division: float = 0.0,
    tolerance: float = 1e-6,
) -> WeightedDecision:
    """Return the set with the highest expected F where each item counts by its weight.

    Use it where finding a positive of a high value is worth more: amounts of money, lengths of
    documents, numbers of people. True positives, false positives and false negatives are summed by
    weight, as with `sample_weight` in `sklearn.metrics.fbeta_score`.

    Parameters
    ----------
    p : array-like of shape (n,)
        Probabilities of being positive; labels are independent.
    weights : array-like of shape (n,)
        The value of each item: not negative, and some above 0. Only their ratios matter.
    beta : float, default=1.0
        Weight of recall against precision.
    zero_division : float, default=0.0
        Value of F when nothing is positive and nothing is predicted.
    tolerance : float, default=1e-6
        The search ends when the bound is at most this fraction above the value, or cannot be
        lowered further.

    Returns
    -------
    WeightedDecision
        With `bound` and `gap`: no set has an expected F above `bound`. Up to 12 items the set is
        the best one.

    Notes
    -----
    Near-linear time: some dozen sorts of the items. Memory: 24 to 100 numbers for each item, more
    if the weights differ more.

    The items of the best set are not always those of the highest probability: a single item of
    great value makes the result uncertain. The gap is large for few items of very different
    weights and negligible for many.

    See Also
    --------
    maximize_expected_f : The same with equal weights, exact for any number of items.
    maximize_empirical_f : The best threshold for labelled scores, with `sample_weight`.

    Examples
    --------
    The second transaction is ten times as large as the others and probably no fraud. Selecting it
    would risk a false positive of that size; with equal weights all three are selected.

    >>> decision = maximize_expected_weighted_f([0.8, 0.4, 0.5], [100, 1000, 100])
    >>> decision.selected
    array([ True, False,  True])
    >>> round(decision.expected, 4), round(decision.gap, 4)
    (0.5165, 0.0)
    """
    problem = Problem.of(beta, "fbeta", zero_division)
    probability = as_probabilities("p", p, ndim=1).astype(np.float64)
    value = as_weights(weights, probability.size, "weights")
    if value is None:
        raise ValueError("weights must be given; without them use maximize_expected_f")
    check_positive("tolerance", tolerance)
    useful = (probability > 0.0) & (value > 0.0)
    nothing = problem.zero_division * float(np.prod(1.0 - probability[useful]))
    contribution = np.zeros(probability.size)
    chosen = np.zeros(probability.size, np.bool_)
    if not useful.any():
        return WeightedDecision(
            *(chosen, 0, np.inf, nothing, 0.0, problem.beta, chosen.size),
            bound=nothing,
            contribution=contribution,
        )
    if value[useful].min() < LEAST_RATIO * value.max():
        raise ValueError(
            f"weights above 0 must differ by a factor of at most {1 / LEAST_RATIO:g}, got "
            f"{value[useful].min():g} and {value.max():g}; set the smallest ones to 0"
        )
    items = _Items.of(probability[useful], value[useful] / value.max(), problem.beta)
    best, bound = _search(items, tolerance)
    best = _try_core(items, best)
    if best.value <= nothing:
        best = _Set(np.zeros(items.v.size, np.bool_), nothing)
    chosen[useful] = best.members
    contribution[useful] = items.contributions(float(items.v[best.members].sum())) / value.max()
    exact = items.v.size <= CORE
    return WeightedDecision(
        selected=chosen,
        k=int(chosen.sum()),
        threshold=float(contribution[chosen].min()) if chosen.any() else np.inf,
        expected=best.value,
        std=items.spread(best, problem.zero_division),
        beta=problem.beta,
        n=chosen.size,
        bound=best.value if exact else max(bound, best.value),
        contribution=contribution,
    )


class _Set(NamedTuple):
    members: Bools
    value: float


class _Fill(NamedTuple):
    """V(·, t): totals and values as items are taken in the order of their contribution at t."""

    order: Ints
    total: Floats
    value: Floats

    def at(self, total: Any) -> Any:
        return np.interp(total, self.total, self.value)


@dataclass(frozen=True, eq=False)
class _Items:
    """Items with a probability and a value above 0; the largest value is 1."""

    p: Floats
    v: Floats
    beta2: float
    u: Floats
    b: Floats  # nodes × items
    log_none: Floats  # Σ log E[e^{-β² u v y}] at each node
    scale: Floats  # (1 + β²) ω

    @classmethod
    def of(cls, p: Floats, v: Floats, beta: float) -> _Items:
        beta2 = beta * beta
        mean, deviation = float(p @ v), float(np.sqrt(p @ v**2))
        # Chernoff and Bernstein: W leaves this range with a probability below e^{-30}
        fewest = max(float(v.min()), mean - 9.0 * deviation)
        largest = min(float(v.sum()), mean + 9.0 * deviation + 20.0)
        low, high = float(v.min()) + beta2 * fewest, float(v.sum()) + beta2 * largest
        u, omega = reciprocal_nodes(low, high)
        scale = (1.0 + beta2) * omega
        b, log_none = np.empty((u.size, p.size)), np.empty(u.size)
        for m, node in enumerate(u):
            tilted = p * np.exp(-beta2 * node * v)
            none = (1.0 - p) + tilted
            with np.errstate(divide="ignore", invalid="ignore"):
                log_none[m] = np.log(none).sum()
                share = np.where(none > 0.0, tilted / none, 1.0)
            b[m] = scale[m] * np.exp(log_none[m]) * share
        return cls(p, v, beta2, u, b, log_none, scale)

    def contributions(self, total: float) -> Floats:
        """Return Δ_i(total) of every item."""
        found: Floats = np.exp(-self.u * total) @ self.b
        return found

    def fill(self, t: float) -> _Fill:
        """Take in items in the order of their contribution at t."""
        delta = self.contributions(t)
        order = np.argsort(-delta, kind="stable")
        v = self.v[order]
        total = np.concatenate([[0.0], np.cumsum(v)])
        return _Fill(order, total, np.concatenate([[0.0], np.cumsum(v * delta[order])]))

    def of_order(self, order: Ints, size: int) -> _Set:
        """Return the set of the first items in an order."""
        members = np.zeros(self.v.size, np.bool_)
        members[order[:size]] = True
        return _Set(members, float(np.exp(-self.u * self.v[members].sum()) @ self.sums(members)))

    def sums(self, members: Bools) -> Floats:
        """Return Σ v_i B_im over a set, for each node."""
        found: Floats = self.b @ (self.v * members)
        return found

    def spread(self, best: _Set, zero_division: float) -> float:
        """Return the standard deviation of F of a set."""
        if not best.members.any():
            return float(np.sqrt(max(best.value * (zero_division - best.value), 0.0)))
        v, total = self.v[best.members], self.v[best.members].sum()
        weight = self.scale * np.exp(self.log_none)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(weight[:, None] > 0.0, self.b[:, best.members] / weight[:, None], 0.0)
        second = (share @ v) ** 2 + (share * (1.0 - share)) @ v**2
        square = (1.0 + self.beta2) * float((weight * self.u * np.exp(-self.u * total)) @ second)
        return float(np.sqrt(max(square - best.value**2, 0.0)))


def _search(items: _Items, tolerance: float) -> tuple[_Set, float]:
    """Return the best set found by filling, and a bound on the value of every set."""
    best = _first_guess(items)
    guess = float(items.v[best.members].sum())
    left, right = float(items.v.min()), _last_useful(items, best.value)
    ends = sorted({left, min(max(guess, left), right), right})
    fills = {end: items.fill(end) for end in ends}
    ranges = [_range(fills, a, b) for a, b in pairwise(ends)]
    # Where all sets have one total, or less than the smallest value is left, ends are all there is
    fractional = max(float(fills[end].at(end)) for end in ends)
    heapq.heapify(ranges)
    for _ in range(MOST_EVALUATIONS):
        if not ranges or -ranges[0][0] <= max(best.value, fractional) * (1.0 + tolerance):
            break
        _, middle, a, b = heapq.heappop(ranges)
        fill = fills[middle] = items.fill(middle)
        fractional = max(fractional, float(fill.at(middle)))
        size = int(np.searchsorted(fill.total, middle, side="right")) - 1
        for k in {size, min(size + 1, items.v.size)} - {0}:
            best = max(best, items.of_order(fill.order, k), key=lambda each: each.value)
        for ends_of in ((a, middle), (middle, b)):
            heapq.heappush(ranges, _range(fills, *ends_of))
    bound = max([fractional, *(-each[0] for each in ranges)])
    return best, bound


def _first_guess(items: _Items) -> _Set:
    """Return the set that is best for the ratio of means, in the order of probabilities."""
    order = np.argsort(-items.p, kind="stable")
    v = items.v[order]
    found = np.cumsum(v * items.p[order])
    ratio = found / (np.cumsum(v) + items.beta2 * found[-1])
    return items.of_order(order, int(np.argmax(ratio)) + 1)


def _last_useful(items: _Items, best: float) -> float:
    """Return the largest total at which all items together are worth as much as the best set."""
    everything = items.b @ items.v
    low, high = 0.0, float(items.v.sum())
    for _ in range(60):
        middle = 0.5 * (low + high)
        if everything @ np.exp(-items.u * middle) >= best:
            low = middle
        else:
            high = middle
    return high


def _range(fills: dict[float, _Fill], a: float, b: float) -> tuple[float, float, float, float]:
    """Return minus the bound for totals from a to b, where to divide the range, and its ends.

    Between two totals at which an item is full, the chord of both fills is a quadratic of the
    total: it exceeds its ends by at most a quarter of its bend times the square of the width.
    """
    inside = [f.total[(f.total > a) & (f.total < b)] for f in (fills[a], fills[b])]
    total = np.unique(np.concatenate([[a, b], *inside]))
    share = (total - a) / (b - a)
    one, other = fills[a].at(total), fills[b].at(total)
    chord = (1.0 - share) * one + share * other
    width = np.diff(total)
    bend = np.diff(one - other) / (b - a)
    above = np.maximum(chord[:-1], chord[1:]) + np.maximum(bend * width, 0.0) / 4.0
    highest = int(np.argmax(above))
    middle = 0.5 * (total[highest] + total[highest + 1])
    quarter = 0.25 * (b - a)
    return -float(above[highest]), float(np.clip(middle, a + quarter, b - quarter)), a, b


def _try_core(items: _Items, best: _Set) -> _Set:
    """Try every subset of the items at the margin, until no other one is better."""
    while True:
        delta = items.contributions(float(items.v[best.members].sum()))
        margin = delta[best.members].min(initial=delta.max())
        core = np.argsort(np.abs(delta - margin) * items.v, kind="stable")[:CORE]
        rest = best.members.copy()
        rest[core] = False
        subsets = (np.arange(1 << core.size)[:, None] >> np.arange(core.size)) & 1 == 1
        total = items.v[rest].sum() + subsets @ items.v[core]
        sums = items.sums(rest) + (subsets * items.v[core]) @ items.b[:, core].T
        values = np.einsum("sm,sm->s", np.exp(-np.outer(total, items.u)), sums)
        values[total == 0.0] = 0.0
        top = int(np.argmax(values))
        if values[top] <= best.value * (1.0 + 1e-14):
            return best
        rest[core] = subsets[top]
        best = _Set(rest, float(values[top]))
