r"""G-mean of more items than all counts can be looked at: a very good set, and a proof how good.

G-mean is √(X Y), X = T / S and Y = TN / (n - S) the rates at which positives and negatives are
found. For every set E[√(X Y)] ≤ √(E[X] E[Y]) (Cauchy and Schwarz), and E[X] and E[Y] are sums over
items: of E[y_i / S] over those chosen, of E[(1 - y_i) / (n - S)] over the others. The first grow
with p and the second fall, so that of all sets of k items the top k has the largest of both. The
top k for which the product is highest is chosen; what its G-mean lacks of the bound is about
Var(log X - log Y) / 8 of it, 1 part in 8 times the number of positives or so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf._base.arrays import Floats, Ints, contiguous
from argmaxf._base.validation import NotAProbability, as_probabilities
from argmaxf.expected.counts import sizes_allowed, value_by_counts
from argmaxf.expected.decision import BoundedDecision, ExpectedF, top_items
from argmaxf.expected.grouped.groups import group_sums
from argmaxf.expected.grouped.integrand import Tilt
from argmaxf.expected.grouped.sources import groups_of_items
from argmaxf.expected.quadrature import Nodes, plausible_positives, reciprocal_nodes
from argmaxf.problem import Problem

SCARCE = 200.0  # positives or negatives, of which the mean of the root is no root of the means


def recall_shares(p: ArrayLike) -> Floats:
    r"""Return E[y_i / S] of each item: the expected recall of a set is the sum over its items.

    With 1/S = Σ ω e^{-uS} it is Σ ω G(u) π_i(u), G(u) = Π (1 - p_j w), w = 1 - e^{-u}, and
    π_i = p_i e^{-u} / (1 - p_i w).

    >>> recall_shares([0.5, 0.5])
    array([0.375, 0.375])
    """
    from argmaxf.expected import dependent_kernels

    items = contiguous(as_probabilities("p", p))
    fewest, most = plausible_positives(float(items.sum()), float(items.size))
    nodes = Nodes(*reciprocal_nodes(max(1.0, fewest), max(1.0, most)))
    _, w, x = Tilt.of(nodes, 1.0)
    log_g = group_sums(groups_of_items(items), w, x)[0].sum(axis=0)
    share = np.empty(items.size)
    dependent_kernels.reciprocals(items, nodes.weight * x * np.exp(log_g), w, x, share)
    return share * items


def decide_gmean(p: NDArray[Any], problem: Problem) -> BoundedDecision:
    """Return the set whose rates have the highest product, its expected G-mean, and the bound."""
    descending = np.sort(p.astype(np.float64, copy=False))[::-1].copy()
    if not (descending[-1] >= 0.0 and descending[0] <= 1.0):
        raise NotAProbability
    problem.check_reachable(int(np.count_nonzero(descending)))
    allowed = np.flatnonzero(sizes_allowed(descending, problem))
    if not allowed.size:
        raise problem.no_set()
    all_alike = np.prod(descending), np.prod(1.0 - descending)  # 0/0, which is neither in x nor y
    shares = recall_shares(descending), recall_shares(1.0 - descending)
    found, spared = (each - part / p.size for each, part in zip(shares, all_alike, strict=True))
    x, y = np.append(0.0, np.cumsum(found)), np.append(np.cumsum(spared[::-1])[::-1], 0.0)
    root = np.sqrt(np.maximum(x * y, 0.0))[allowed]

    def value(k: int) -> ExpectedF:
        return value_by_counts(descending[:k], descending[k:], problem)

    k = int(allowed[np.argmax(root)])
    mean, std = value(k)
    undefined = problem.zero_division * float(sum(all_alike))
    if descending.sum() < SCARCE or (1.0 - descending).sum() < SCARCE:
        k = _highest(lambda k: value(k).mean, allowed[root >= mean - undefined])
        mean, std = value(k)
    threshold = float(descending[k - 1]) if k else math.inf
    fields = top_items(p, threshold, k), k, threshold, mean, std, problem.beta, p.size
    return BoundedDecision(*fields, bound=max(float(root.max()) + undefined, mean))


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
