"""Margins: how far scores and probabilities lie from the threshold that decides them."""

from __future__ import annotations

from typing import Any

import numpy as np

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.validation import as_scores
from argmaxf.empirical.cuts import best_threshold
from argmaxf.measures import Measure, Ratio


def is_constant(column: Bools) -> bool:
    """Whether a label has positives only or negatives only."""
    return bool(column.all() or not column.any())


def best_thresholds(columns: Bools, scores: Floats, measure: Measure, weight: Any) -> Floats:
    """Return the best threshold of each label; a constant label is always or never predicted."""
    pairs = zip(columns.T, as_scores("score", scores).T, strict=True)
    best = [best_threshold(y, score, weight, measure) for y, score in pairs]
    threshold = np.where(columns.all(axis=0), -np.inf, best)
    return np.where(columns.any(axis=0), threshold, np.inf)


def macro_gain(hits: Any, predicted: Any, positives: Any, measure: Measure) -> Any:
    """Return how much a macro mean gains per unit of probability above a class's threshold.

    One more row of probability p moves V = cT / (k + b_out S + (b_in - b_out) T), as F_β is, by
    a (p - V / a) / (k + b_out S + (b_in - b_out) T), a = c - (b_in - b_out) V; V / a is the best
    threshold, so margins of different classes compare after this multiplication. The gain of
    measures that are no such ratio is 1.
    """
    if not isinstance(measure, Ratio):
        return 1.0
    c, b_in, b_out, _, _ = measure.coefficients()
    value = measure.value(hits, predicted, positives)
    size = measure.fraction(hits, predicted, positives, None)[1]
    return (c - (b_in - b_out) * value) / np.maximum(size, 1e-9)


def decided_gain(proba: Floats, selected: Bools, measure: Measure) -> Any:
    """Return the gain of classes that were decided by their probabilities."""
    hits = (proba * selected).sum(axis=0)
    return macro_gain(hits, selected.sum(axis=0), proba.sum(axis=0), measure)


def margin(scores: Floats, threshold: Any, gain: Any = 1.0) -> Floats:
    """Return how far scores lie above their thresholds, 0 where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(scores == threshold, 0.0, gain * (scores - threshold))


def midpoint(proba: Floats, selected: Bools, average: str) -> Floats:
    """Return the probability midway between selected and other items of each decision."""
    axis = {"macro": 0, "samples": 1, "micro": None}[average]
    lowest = np.min(np.where(selected, proba, 1.0), axis=axis, keepdims=True)
    highest = np.max(np.where(selected, 0.0, proba), axis=axis, keepdims=True)
    return np.asarray((lowest + highest) / 2)


def signed(margin: Floats, selected: Bools) -> Floats:
    """Return margins whose sign is the decision, also for items tied with the threshold."""
    tiny = np.finfo(np.float64).tiny
    return np.asarray(np.where(selected, np.maximum(margin, tiny), np.minimum(margin, -tiny)))
