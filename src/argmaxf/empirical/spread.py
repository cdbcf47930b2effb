"""How far a tuned threshold would move on other data of the same size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from argmaxf.empirical.cuts import best_threshold
from argmaxf.measures import FBeta, Measure

PARTS = 10  # disjoint parts; fewer where positives or negatives are scarce
FEWEST = 5  # positives, and negatives, in each part


def threshold_std(
    y: NDArray[np.bool_],
    score: NDArray[np.float64],
    rng: np.random.Generator,
    *,
    measure: Measure = FBeta(),  # noqa: B008  frozen
    weight: NDArray[np.float64] | None = None,
) -> float:
    """Return the standard deviation of the best threshold, or NaN where data are too few to say.

    The best threshold is found on each of m disjoint parts of the data. A maximizer over cuts
    converges at the rate n^(-1/3) (Kim and Pollard 1990), so the spread between parts shrinks by
    m^(-1/3) for all of the data. This is subsampling (Politis and Romano 1994), which is consistent
    at that rate, where the bootstrap is not (Abrevaya and Huang 2005). Cost: one more sort.
    """
    positives = int(y.sum())
    parts = min(PARTS, positives // FEWEST, (y.size - positives) // FEWEST)
    if parts < 2:
        return float("nan")
    found = [
        best_threshold(y[rows], score[rows], None if weight is None else weight[rows], measure)
        for rows in _deal(y, parts, rng)
        if weight is None or weight[rows].any()
    ]
    return float(np.std(found, ddof=1) * parts ** (-1 / 3)) if len(found) > 1 else float("nan")


def _deal(y: NDArray[np.bool_], parts: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Deal the rows out, positives and negatives apart, so that no part lacks either."""
    sides = [rng.permutation(np.flatnonzero(side)) for side in (y, ~y)]
    return [np.concatenate([side[i::parts] for side in sides]) for i in range(parts)]
