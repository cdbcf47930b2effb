"""Expected precision and recall of a chosen set, under the model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.validation import as_probabilities, as_real_array
from argmaxf.expected.quadrature import reciprocal_nodes
from argmaxf.measures.base import divided

BLOCK = 1 << 14  # items taken at a time: memory stays small


class OperatingPoint(NamedTuple):
    """E[precision] and E[recall] of a chosen set."""

    precision: float
    recall: float


def operating_point(
    proba: ArrayLike, selected: ArrayLike, *, shares: Floats | None = None
) -> OperatingPoint:
    """Return expected precision E[T/k] and expected recall E[T/S], for independent labels.

    Both are 0 where 0/0. Cost: O(n), 100 operations an item; `shares`, as `recall_shares` gives
    them, save it for further sets of the same items.

    >>> point = operating_point([0.9, 0.4, 0.1], [True, True, False])
    >>> round(point.precision, 4), round(point.recall, 4)
    (0.65, 0.899)
    """
    p, chosen = as_real_array("proba", proba), np.asarray(selected, dtype=bool)
    shares = recall_shares(p) if shares is None else shares
    precision = divided(float(p[chosen].sum()), int(chosen.sum()), 0.0)
    return OperatingPoint(precision, float(shares[chosen].sum()))


def recall_shares(proba: ArrayLike) -> Floats:
    r"""Return E[y_i / S] of each item: the expected recall of a set is the sum over its items.

    With 1/S = Σ ω e^{-uS} it is Σ ω G(u) π_i(u), G(u) = Π (1 - p_j w), w = 1 - e^{-u}, and
    π_i = p_i e^{-u} / (1 - p_i w).

    >>> recall_shares([0.5, 0.5])
    array([0.375, 0.375])
    """
    p = as_probabilities("proba", proba).astype(np.float64)
    u, weight = reciprocal_nodes(1.0, max(1.0, float(p.size)))
    w, x = -np.expm1(-u), np.exp(-u)
    blocks = [p[i : i + BLOCK, None] for i in range(0, p.size, BLOCK)]
    g = np.exp(sum(np.log(_factor(block, w, x)).sum(axis=0) for block in blocks))
    shares = [(block * x / _factor(block, w, x)) @ (weight * g) for block in blocks]
    return np.concatenate([np.zeros(0), *shares])


class TopSets:
    """Expected and found counts of every top-k set of items in falling order."""

    def __init__(self, falling: Floats, truth: Bools | None = None) -> None:
        truth = np.zeros(falling.size, np.bool_) if truth is None else truth
        self.mass = np.concatenate([[0.0], np.cumsum(falling)])
        self.recall = np.concatenate([[0.0], np.cumsum(recall_shares(falling))])
        self.found = np.concatenate([[0], np.cumsum(truth)])

    def at(self, sizes: Ints) -> list[dict[str, Any]]:
        """Return k, expected precision and recall, expected and found true positives of each."""
        columns = {
            "k": sizes,
            "precision": self.mass[sizes] / np.maximum(sizes, 1),
            "recall": self.recall[sizes],
            "mass": self.mass[sizes],
            "tp": self.found[sizes],
        }
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]


def _factor(p: Floats, w: Floats, x: Floats) -> Floats:
    """1 - p w, without cancellation."""
    return np.where(p < 0.5, 1.0 - p * w, x + (1.0 - p) * w)
