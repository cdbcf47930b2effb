r"""The best of all sizes of a sorted set: for any measure, and for chance constraints.

The value of the top k is computed for every k (`values.top_curve`), and the best of the sizes that
are allowed is taken. For each size the top k has the highest expected value, the highest
probability of reaching any precision, and the highest probability of reaching any recall: so the
best set that meets chance constraints is the top k for some k (`chance.py`).

Ties are those of `ties.py`: of sizes with the same value the smallest is taken, and values nearer
than their error are compared again by the definition in 80-digit decimals, for sets of up to some
hundred items. Where a user-defined measure has no more digits than doubles, nearer is a tie.

G-mean of more items than all counts can be looked at: a very good set, and a proof how good. G-mean
is √(X Y), X = T / S and Y = TN / (n - S) the rates at which positives and negatives are found. For
every set E[√(X Y)] ≤ √(E[X] E[Y]) (Cauchy and Schwarz), and E[X] and E[Y] are sums over items: of
E[y_i / S] over those chosen, of E[(1 - y_i) / (n - S)] over the others. The first grow with p and
the second fall, so that of all sets of k items the top k has the largest of both. The top k for
which the product is highest is chosen; what its G-mean lacks of the bound is about
Var(log X - log Y) / 8 of it, 1 part in 8 times the number of positives or so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.expected.chance import ChanceGuarantee, guarantee_of, require_feasible
from argmaxf.expected.counts import INTERPOLATED, MOST_ITEMS, linear_curve, value_by_counts
from argmaxf.expected.decision import ExpectedF
from argmaxf.expected.ties import settle
from argmaxf.expected.values import recall_shares, top_curve, value_of_selected
from argmaxf.measures import GMean, Linear, UserDefined
from argmaxf.problem import Problem

NEAR = 1e-13  # values nearer than this part of their terms are compared again
DIGITLESS = np.finfo(float).tiny  # and so are those of which doubles lose digits
DECIMALS = 400_000  # values in decimals that take no longer than some seconds
SCARCE = 200.0  # positives or negatives, of which the mean of the root is no root of the means


class BestSize(NamedTuple):
    """The best top k of a set, the mean and spread of its value, and what no set exceeds."""

    k: int
    expected: float
    std: float
    bound: float
    guarantee: ChanceGuarantee | None = None


def decide_sorted(ascending: Floats, problem: Problem) -> BestSize:
    """Return the best size of a sorted set of items that meets limits and chance constraints.

    O(n) for a ratio, O(n √n) for a linear measure, O(n²) for others, once items are sorted.
    """
    n, chance, descending = ascending.size, problem.chance, ascending[::-1].copy()
    allowed = sizes_allowed(descending, problem)
    if not allowed.any():
        raise problem.no_set()
    if isinstance(problem.measure, GMean) and n > MOST_ITEMS and chance is None:
        return best_gmean(descending, np.flatnonzero(allowed), problem)
    f = top_curve(ascending, problem)
    feasible = require_feasible(descending, chance, allowed) if chance else allowed
    k = best_size(f, feasible, descending, problem)
    expected = float(f[k])
    if problem.ratio is None and n <= INTERPOLATED:
        std = value_by_counts(descending[:k], descending[k:], problem, expected).std
    else:
        std = value_of_selected(descending, np.arange(n) < k, problem).std
    cost = max(0.0, float(f.max(where=allowed, initial=0.0)) - expected)
    guarantee = guarantee_of(descending[:k], descending[k:], problem, cost) if chance else None
    return BestSize(k, expected, std, expected, guarantee)


def sizes_allowed(descending: Floats, problem: Problem) -> Bools:
    """Return which k may be taken at all: within the limits, none with p = 0, ties as asked."""
    allowed = np.ones(descending.size + 1, np.bool_)
    if not problem.split_ties:
        allowed[1:-1] = descending[1:] < descending[:-1]
    allowed[: problem.least] = False
    allowed[min(problem.most, int(np.count_nonzero(descending))) + 1 :] = False
    return allowed


def best_size(f: Floats, allowed: Bools, descending: Floats, problem: Problem) -> int:
    """Return the best of the allowed sizes; the smallest of equals."""
    rivals = _rivals(np.where(allowed, f, -np.inf), descending, problem)
    work = rivals.size * np.count_nonzero(descending) ** 2
    is_long = problem.ratio is None and work > DECIMALS
    if rivals.size == 1 or isinstance(problem.measure, UserDefined) or is_long:
        return int(rivals[0])
    try:
        return settle(descending, rivals.tolist(), problem)
    except TypeError:  # a user's own class that takes no decimals
        return int(rivals[0])


def _rivals(value: Floats, descending: Floats, problem: Problem) -> Ints:
    """Return the sizes nearer to the best one than the rounding of the terms they are sums of.

    Those of a linear measure have both signs, and may be much larger than their sum: each size has
    its own. They are looked at where sizes are near for terms as large as they can be, some √n.
    """
    measure, zero = problem.measure, problem.zero_division
    best = int(np.argmax(value))

    def near(k: Ints, terms: Any) -> Ints:
        found: Ints = k[value[k] >= value[best] - NEAR * terms - DIGITLESS]
        return found

    every = np.flatnonzero(value > -np.inf)
    if not isinstance(measure, Linear):
        return near(every, np.abs(value[every]).max())
    rivals = near(every, 4.0 * np.sqrt(value.size))
    if rivals.size == 1:
        return rivals
    terms = linear_curve(descending, measure, zero, scale=True)
    return near(rivals, np.maximum(terms[rivals], terms[best]))


def best_gmean(descending: Floats, sizes: Ints, problem: Problem) -> BestSize:
    """Return the set whose rates have the highest product, its expected G-mean, and the bound."""
    all_alike = np.prod(descending), np.prod(1.0 - descending)  # 0/0, which is neither in x nor y
    shares = recall_shares(descending), recall_shares(1.0 - descending)
    n = descending.size
    found, spared = (each - part / n for each, part in zip(shares, all_alike, strict=True))
    x, y = np.append(0.0, np.cumsum(found)), np.append(np.cumsum(spared[::-1])[::-1], 0.0)
    root = np.sqrt(np.maximum(x * y, 0.0))[sizes]

    def value(k: int) -> ExpectedF:
        return value_by_counts(descending[:k], descending[k:], problem)

    k = int(sizes[np.argmax(root)])
    mean, std = value(k)
    undefined = problem.zero_division * float(sum(all_alike))
    if descending.sum() < SCARCE or (1.0 - descending).sum() < SCARCE:
        k = _highest(lambda k: value(k).mean, sizes[root >= mean - undefined])
        mean, std = value(k)
    return BestSize(k, mean, std, max(float(root.max()) + undefined, mean))


def _highest(value: Callable[[int], float], sizes: Ints) -> int:
    """Return the size for which a function that rises and then falls is highest, by thirds."""
    while sizes.size > 3:
        third = sizes.size // 3
        if value(int(sizes[third])) < value(int(sizes[-third - 1])):
            sizes = sizes[third:]
        else:
            sizes = sizes[: sizes.size - third]
    best: int = max(sizes.tolist(), key=lambda k: (value(k), -k))
    return best
