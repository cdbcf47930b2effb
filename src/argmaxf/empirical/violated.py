"""The labelling that a score rules out least well: the separation step of SVMperf, exact.

Among all labellings of the n training items, the most violated one maximizes

    1 - F_β(labelling) - margin of the true labels over it.

F depends on a labelling only through its contingency table: A, the mass of positives it keeps, and
B, the mass of negatives it takes. Given A and B the best labelling keeps the positives and takes
the negatives with the highest scores (Joachims 2005, section 4). For fixed A the rest is concave in
B, so a bisection finds the best B, for every A at once: O(n log n) instead of one try per table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from argmaxf.empirical.linear import Vector
from argmaxf.measures import FBeta


@dataclass(frozen=True)
class Violation:
    """A labelling: its loss 1 - F, and `residual`, by which `residual @ score` is its margin."""

    loss: float
    residual: Vector

    def over(self, score: Vector) -> float:
        """Return by how much the scores fail to rule the labelling out."""
        return self.loss - float(self.residual @ score)


class MostViolated:
    """The most violated labelling for given scores.

    A weight is a number of copies of its item. Where all weights are whole numbers copies are not
    split, so that a weight of 2 is the same as the item given twice; otherwise they may be.
    """

    def __init__(self, y: NDArray[np.bool_], weight: Vector, *, beta: float = 1.0) -> None:
        self.positives, self.negatives = np.flatnonzero(y), np.flatnonzero(~y)
        self.weight = weight
        self.total = float(weight.sum())
        self.beta = beta
        self.measure = FBeta(beta)
        self.whole = bool((weight == np.rint(weight)).all())

    def __call__(self, score: Vector) -> Violation:
        """Return the labelling that maximizes loss minus margin."""
        kept, taken = (
            _Ranked(part, score, self.weight) for part in (self.positives, self.negatives)
        )
        take = self._best_take(kept.mass, taken)
        tries = np.array([np.floor(take), np.ceil(take)] if self.whole else [take])
        loss = 1.0 - self._f(kept.mass, tries)
        missed = kept.gain[-1] - kept.gain
        value = loss + (taken.gain_of(tries) - missed) / self.total
        best = np.unravel_index(np.argmax(value), value.shape)
        residual = np.zeros(len(score))
        residual[kept.items] = kept.weight * (1.0 - kept.share(kept.mass[best[1]]))
        residual[taken.items] = -taken.weight * taken.share(tries[best])
        return Violation(float(loss[best]), residual / self.total)

    def _f(self, kept: Vector, take: Vector) -> Vector:
        f = self.measure.value(kept, kept + take, kept[-1])
        return np.asarray(f, dtype=np.float64)

    def _best_take(self, kept: Vector, taken: _Ranked) -> Vector:
        """Return the B with the highest value for each A, where B may split an item.

        In B the value has slope (1+β²) A / (A + B + β² S)² + score / n, which falls as B grows.
        Bisection finds the last item worth starting, and the slope's zero says how much of it.
        """
        if not len(taken.items):
            return np.zeros(len(kept))
        b2, size = self.beta**2, kept + self.beta**2 * kept[-1]
        pull = (1.0 + b2) * kept * self.total

        def worth_starting(item: NDArray[np.intp]) -> NDArray[np.bool_]:
            return np.asarray(pull + taken.score[item] * (size + taken.mass[item]) ** 2 > 0)

        started = _bisect(worth_starting, len(kept), len(taken.items))
        last = np.maximum(started - 1, 0)
        falls = taken.score[last] < 0
        fall = np.where(falls, -taken.score[last], 1.0)
        zero = np.where(falls, np.sqrt(pull) / np.sqrt(fall) - size, np.inf)
        inside = np.clip(zero, taken.mass[last], taken.mass[last + 1])
        return np.where(started > 0, inside, 0.0)


class _Ranked:
    """One class's items by falling score: the mass and the summed score of the first so many."""

    def __init__(self, items: NDArray[np.intp], score: Vector, weight: Vector) -> None:
        self.items = items[np.argsort(-score[items], kind="stable")]
        self.score, self.weight = score[self.items], weight[self.items]
        self.mass = np.concatenate([[0.0], np.cumsum(self.weight)])
        self.gain = np.concatenate([[0.0], np.cumsum(self.weight * self.score)])

    def gain_of(self, mass: Vector) -> Vector:
        """Return the summed score of the top `mass`."""
        return np.asarray(np.interp(mass, self.mass, self.gain))

    def share(self, mass: float) -> Vector:
        """Return how much of each item belongs to the top `mass`: 1, then a part, then 0."""
        return np.clip((mass - self.mass[:-1]) / self.weight, 0.0, 1.0)


def _bisect(
    true_before: Callable[[NDArray[np.intp]], NDArray[np.bool_]], columns: int, n: int
) -> NDArray[np.intp]:
    """Return, for each column, how many of the first n indices come before the first false one."""
    low, high = np.zeros(columns, dtype=np.intp), np.full(columns, n, dtype=np.intp)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        true = true_before(np.minimum(middle, n - 1))
        low, high = np.where(open_ & true, middle + 1, low), np.where(open_ & ~true, middle, high)
    return low
