"""Differences between two methods on the same problems, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

RESAMPLES = 10_000


@dataclass(frozen=True)
class Difference:
    """A mean difference and its 95 % interval."""

    value: float
    low: float
    high: float

    def as_tuple(self) -> tuple[float, float, float]:
        """Return value, low, high."""
        return self.value, self.low, self.high


def paired_difference(a: Sequence[float], b: Sequence[float]) -> Difference:
    """Return the mean of a - b, and a percentile bootstrap interval over the problems."""
    gaps = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    draws = np.random.default_rng(0).integers(0, len(gaps), (RESAMPLES, len(gaps)))
    low, high = np.quantile(gaps[draws].mean(axis=1), [0.025, 0.975])
    return Difference(float(gaps.mean()), float(low), float(high))


def t_interval(values: Sequence[float]) -> Difference:
    """Return a mean and Student's 95 % interval for it."""
    x = np.asarray(values, dtype=np.float64)
    half = student.ppf(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x))
    return Difference(float(x.mean()), float(x.mean() - half), float(x.mean() + half))
