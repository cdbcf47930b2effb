"""Which side of a threshold an entry lies on, and how far: thresholds, margins, and their scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.validation import as_scores
from argmaxf.empirical.cuts import best_threshold
from argmaxf.measures import Measure, Ratio

TINY = np.finfo(np.float64).tiny  # the margin of an item tied with one decided the other way


def is_constant(column: NDArray[np.bool_]) -> bool:
    """Whether a label has no positives, or nothing else."""
    return bool(column.all() or not column.any())


def tune(
    columns: NDArray[np.bool_], scores: NDArray[np.float64], measure: Measure, weight: Any
) -> NDArray[np.float64]:
    """Return the best threshold of each label; a constant label is always or never predicted."""
    pairs = zip(columns.T, as_scores("score", scores).T, strict=True)
    best = [best_threshold(y, score, weight, measure) for y, score in pairs]
    threshold = np.where(columns.all(axis=0), -np.inf, best)
    return np.where(columns.any(axis=0), threshold, np.inf)


def macro_gain(hits: Any, predicted: Any, positives: Any, measure: Measure) -> Any:
    """Return how much a macro mean gains per unit of probability above a class's threshold.

    One more row of probability p moves V = cT / (k + b_out S + (b_in - b_out) T), as F_β is, by
    a (p - V / a) / (k + b_out S + (b_in - b_out) T), a = c - (b_in - b_out) V; V / a is the best
    threshold, so margins of different classes compare after this multiplication. Measures that are
    no such ratio are left as they are.
    """
    if not isinstance(measure, Ratio):
        return 1.0
    c, b_in, b_out, _, _ = measure.coefficients()
    value = measure.value(hits, predicted, positives)
    size = measure.fraction(hits, predicted, positives, None)[1]
    return (c - (b_in - b_out) * value) / np.maximum(size, 1e-9)


def decided_gain(proba: Any, selected: Any, measure: Measure) -> Any:
    """Return that gain for classes that were decided by their probabilities."""
    hits = (proba * selected).sum(axis=0)
    return macro_gain(hits, selected.sum(axis=0), proba.sum(axis=0), measure)


def margin(scores: NDArray[np.float64], threshold: Any, gain: Any = 1.0) -> NDArray[np.float64]:
    """Return how far scores lie above their thresholds, 0 where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(scores == threshold, 0.0, gain * (scores - threshold))


def boundary(proba: Any, selected: Any, average: str) -> Any:
    """Return the probability midway between the selected and the others of each decision."""
    axis = {"macro": 0, "samples": 1, "micro": None}[average]
    lowest = np.min(np.where(selected, proba, 1.0), axis=axis, keepdims=True)
    highest = np.max(np.where(selected, 0.0, proba), axis=axis, keepdims=True)
    return (lowest + highest) / 2


def signed(margin: Any, selected: Any) -> NDArray[np.float64]:
    """Return margins whose sign is the decision, also for items tied across the boundary."""
    return np.asarray(np.where(selected, np.maximum(margin, TINY), np.minimum(margin, -TINY)))
