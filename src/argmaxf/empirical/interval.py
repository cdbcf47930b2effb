"""Confidence intervals for a measure of given predictions: binary, macro and micro.

Binary intervals meld confidence distributions of recall and specificity, micro ones divide the
counts by a design effect, and macro ones combine those of the labels (MOVER). How and why is
explained in docs/background/interval-coverage.md.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Floats
from argmaxf._base.shared_docs import with_entries_of
from argmaxf._base.validation import (
    as_classes,
    as_labels,
    as_positives,
    check_choice,
    check_strictly_between,
    ones_unless,
    which_are,
)
from argmaxf.empirical.threshold import maximize_empirical_f
from argmaxf.measures import MEASURES, Interval, Measure, MeasureLike, as_measure

WHY = "no interval is certain"
FEWEST_OF_EACH = (
    10  # positives and negatives of a label that the coverage of a macro interval needs
)


@with_entries_of(maximize_empirical_f)
def f_interval(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    average: str | None = None,
    confidence_level: float = 0.95,
    zero_division: float = 0.0,
    pos_label: Any = None,
) -> Interval:
    """Return F_β of predictions with a confidence interval for the F_β of the classifier.

    Rows are assumed to be independent draws. The interval is for the F of the whole population, the
    limit for many rows (eq. 2 of the paper).

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, labels)
        True 0/1 labels. With `average`, a table of 0/1 labels, or class labels of any kind.
    y_pred : array-like of the same shape
        Predicted labels.
    beta, measure : as in `maximize_empirical_f`
    average : {"macro", "micro"}, optional
        `"macro"` is the mean F of the labels or classes, `"micro"` the F of all cells.
    confidence_level : float, default=0.95
        Probability with which the interval contains the true F.
    zero_division : float, default=0.0
        Value of F for a label that has no positives and is never predicted.
    pos_label : scalar, optional
        Without `average`: the positive label, if the labels are not 0 and 1.

    Returns
    -------
    Interval
        The F_β of the predictions and both ends of the interval.

    Notes
    -----
    The result is the same on every call: quantiles are taken over a fixed set of points. Cost: O(n)
    and about 2 ms per label, and O(n labels²) for an average. In simulations the coverage is at
    least the stated one, up to noise (docs/background/interval-coverage.md).

    References
    ----------
    Fay, Proschan and Brittain, "Combining one-sample confidence procedures for inference in the
    two-sample case" (2015). Zou and Donner, "Construction of confidence limits about effect
    measures: a general approach" (2008).

    Examples
    --------
    >>> interval = f_interval([1, 1, 1, 0, 0, 0, 0, 1], [1, 1, 0, 0, 0, 0, 1, 1])
    >>> round(interval.low, 2), interval.value, round(interval.high, 2)
    (0.25, 0.75, 0.95)
    """
    truth, guess = _tables(y_true, y_pred, average, pos_label)
    chosen = as_measure(measure, beta)
    tail = (1.0 - check_strictly_between("confidence_level", confidence_level, WHY)) / 2.0
    counts = _counts(truth, guess)
    if average == "micro":
        counts = counts.sum(axis=1, keepdims=True)
    covariance = np.ones((1, 1)) if average is None else _covariance(truth, guess, counts, chosen)
    design = 1.0
    if average == "micro":  # few rows say little about it: n rows count for at most n² of them
        design = max(float(covariance.sum() / np.trace(covariance)), 1.0 / len(truth))
    if counts.shape[1] == 1:
        return interval_of_counts(counts[:, 0], chosen, zero_division, tail, design)
    labels = [interval_of_counts(each, chosen, zero_division, tail, share=0.0) for each in counts.T]
    low, value, high = np.array([(each.low, each.value, each.high) for each in labels]).T
    scale = np.sqrt(np.diag(covariance))
    known = type(chosen) in MEASURES.values()
    correlation = covariance / np.outer(scale, scale) if known else np.ones_like(covariance)
    below, above = (
        np.sqrt(side @ correlation @ side) / value.size for side in (value - low, high - value)
    )
    enough = bool(np.minimum(counts[2], counts[3] - counts[2]).min() >= FEWEST_OF_EACH)
    mean = value.mean()
    return _around(mean - below, mean, mean + above, chosen, enough)


def interval_of_counts(
    counts: Floats,
    measure: Measure,
    zero_division: float,
    tail: float,
    design: float = 1.0,
    share: float | None = None,
) -> Interval:
    """Return the value at counts T, k, S and n, and the interval that misses by `tail` each way.

    `share` is ¼ for measures that are known and 0, for exact limits of proportions, for others.
    """
    if share is None:
        share = 0.25 if type(measure) in MEASURES.values() else 0.0
    scale = max(1.0, -NormalDist().inv_cdf(tail) / 2.0)
    weight = _points(scale)[1]
    n = counts[3]
    true, predicted, positives, total = counts / design
    negatives = total - positives
    rejected = negatives - predicted + true  # true negatives
    s = n * _proportion(scale, 0, positives, total, 0.5)
    ends = []
    for sign, more in ((1.0, share), (-1.0, 1.0 - share)):
        tp = s * _proportion(scale, 1, true, positives, more)
        alarms = (n - s) * (1.0 - _proportion(scale, 2, rejected, negatives, more))
        values = measure.value(tp, tp + alarms, s, n, zero_division=zero_division)
        order = np.argsort(sign * values)
        passed = np.cumsum(weight[order]) / weight.sum()
        ends.append(values[order[np.searchsorted(passed, tail)]])
    return _around(ends[0], measure.value(*counts, zero_division=zero_division), ends[1], measure)


def f_difference(
    y_true: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    confidence_level: float = 0.95,
) -> Interval:
    """Return F_β of predictions `a` minus that of `b` on the same rows, with its interval.

    Tables are compared by macro F. Paired: what both get right or wrong cancels, so the interval is
    narrower than those of the two F themselves. Normal approximation with each row's influence on
    the difference, and half an error more of each kind (Agresti and Min 2005), so that predictions
    without errors do not seem known to be equal; cost O(n labels). `measure` may be any measure.

    >>> y, a, b = [1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 1], [1, 0, 0, 0, 0, 1]
    >>> round(f_difference(y, a, b).value, 4)
    0.4571
    """
    tables = [as_labels(name, x) for name, x in (("y_true", y_true), ("a", a), ("b", b))]
    truth, first, second = (each.reshape(len(each), -1) for each in tables)
    if not truth.shape == first.shape == second.shape:
        raise ValueError(
            f"y_true, a and b must have one shape, got {truth.shape}, {first.shape}, {second.shape}"
        )
    chosen = as_measure(measure, beta)
    f1, influence1 = f_and_influences(truth, first, chosen)
    f2, influence2 = f_and_influences(truth, second, chosen)
    value = float(np.mean(f1 - f2))
    variance = np.sum((influence1 - influence2).mean(axis=1) ** 2)
    for guess in (first, second):
        variance += 0.5 * np.sum((_one_more_error(_counts(truth, guess), chosen) / f1.size) ** 2)
    tail = (1.0 - check_strictly_between("confidence_level", confidence_level, WHY)) / 2.0
    reach = float(np.sqrt(variance)) * -NormalDist().inv_cdf(tail)
    return Interval(value - reach, value, value + reach)


def f_and_influences(
    truth: Any, guess: Any, measure: Measure, weight: Any = None
) -> tuple[Floats, Floats]:
    """Return each label's F (or other measure), and each cell's influence on it, for booleans.

    The root of the summed squares of influences is the standard error of F; of the difference of
    two predictions' influences, that of the difference in F.
    """
    counts = _counts(truth, guess, weight)
    influence = _influences(truth, guess, counts, measure)
    return measure.value(*counts), influence if weight is None else weight[:, None] * influence


def _around(low: Any, value: Any, high: Any, measure: Measure, reliable: bool = True) -> Interval:
    """Return an interval within the measure's range that holds its value, whatever rounding did."""
    least, most = measure.ends
    low, high = min(max(low, least), value), max(min(high, most), value)
    return Interval(float(low), float(value), float(high), reliable)


@lru_cache(maxsize=8)
def _points(scale: float) -> tuple[Floats, Floats]:
    """Return evenly spread points of three normal variables, and their weights.

    They are Roberts' generalization of the golden ratio to three dimensions. A scale above 1, with
    weights, places points in tails that would have none.
    """
    ratio = 1.2207440846057596  # the root of x⁴ = x + 1
    steps = np.arange(4096) / ratio ** np.arange(1, 4)[:, None]
    normal = np.vectorize(NormalDist().inv_cdf)((0.5 + steps) % 1.0)
    weight = np.exp(-((scale**2 - 1.0) / 2.0) * (normal**2).sum(axis=0))
    return scale * normal, weight


@lru_cache(maxsize=256)
def _proportion(scale: float, axis: int, hits: float, of: float, more: float) -> Floats:
    """Return a proportion of hits at one variable of the points: Beta(hits + more, misses + rest).

    Interpolated between exact quantiles. For the lower end (`more` below ½) a proportion without
    hits is 0, for the upper end one without misses is 1.
    """
    from scipy.special import betaincinv, ndtr

    z = _points(scale)[0][axis]
    if (hits <= 0.0 and more < 0.5) or (hits >= of and more > 0.5):
        return np.full(z.shape, float(more > 0.5))
    nodes = np.linspace(-8.2, 8.2, 257)
    quantiles = betaincinv(hits + more, of - hits + 1.0 - more, ndtr(nodes))
    return np.asarray(np.interp(z, nodes, quantiles))


def _counts(truth: Any, guess: Any, weight: Any = None) -> Floats:
    """Return T, k, S and n of each label, one row each."""
    weight = ones_unless(weight, len(truth))
    return np.array([weight @ a for a in (truth & guess, guess, truth, np.ones_like(truth))])


# How much one more hit, false positive, miss and true negative add to T, k, S and n.
_KINDS = np.array([(1, 1, 1, 1), (0, 1, 0, 1), (0, 0, 1, 1), (0, 0, 0, 1)], float)


def _influences(truth: Any, guess: Any, counts: Floats, measure: Measure) -> Floats:
    """Return each cell's influence on a measure: how the value moves with more cells of its kind.

    Central differences at a part of how many there are. The mean is taken off, so that the number
    of rows itself does not count.
    """
    t, k, s, n = counts
    cells = truth & guess, ~truth & guess, truth & ~guess, ~truth & ~guess
    influence, mean = np.zeros(truth.shape), np.zeros(n.shape)
    for kind, size, move in zip(cells, (t, k - t, s - t, n - k - s + t), _KINDS, strict=True):
        step = 1e-4 * np.maximum(size, 0.0)
        up, down = (measure.value(*(counts + sign * np.outer(move, step))) for sign in (1.0, -1.0))
        slope = np.divide(up - down, 2.0 * step, out=np.zeros_like(mean), where=step > 0)
        influence += kind * slope
        mean += slope * size / n
    return influence - mean


def _one_more_error(counts: Floats, measure: Measure) -> Floats:
    """Return how far one more false positive and one more miss would move each label's value."""
    value = np.asarray(measure.value(*counts))
    moved = [measure.value(*(counts + move[:, None])) - value for move in _KINDS[1:3]]
    return np.asarray(np.sqrt(np.sum(np.square(moved), axis=0)))


def _covariance(truth: Any, guess: Any, counts: Floats, measure: Measure) -> Floats:
    """Return the covariance of the labels' values over rows.

    One more error of each kind is counted as well, correlated as far as the true labels are.
    """
    influence = _influences(truth, guess, counts, measure)
    scale = np.broadcast_to(_one_more_error(counts, measure), truth.shape[1:])
    away = truth - truth.mean(axis=0)
    spread = np.sqrt((away**2).sum(axis=0))
    spread[spread == 0.0] = np.inf
    alike = np.maximum((away / spread).T @ (away / spread), 0.0)
    np.fill_diagonal(alike, 1.0)
    scale = np.maximum(scale, np.finfo(float).tiny ** 0.5)
    return np.asarray(influence.T @ influence + alike * np.outer(scale, scale))


def _tables(y_true: Any, y_pred: Any, average: str | None, pos_label: Any) -> tuple[Any, Any]:
    """Return truth and predictions as boolean tables of one shape, one column per label."""
    truth, guess = as_classes("y_true", y_true), as_classes("y_pred", y_pred)
    if truth.shape != guess.shape:
        raise ValueError(
            f"y_true and y_pred must have one shape, got {truth.shape} and {guess.shape}"
        )
    some = (each if each.dtype == object else each.ravel()[:1] for each in (truth, guess))
    kinds = {isinstance(label, str): label for each in some for label in each.ravel().tolist()}
    if len(kinds) > 1:  # numbers and text are never equal
        raise ValueError(
            f"y_true and y_pred must hold labels of one kind, got {kinds[False]!r} and "
            f"{kinds[True]!r}"
        )
    if pos_label is not None:  # it must be there, but need not be predicted
        if average is not None:
            raise ValueError(f"pos_label is for labels without average, got average={average!r}")
        truth, guess = as_positives("y_true", truth, pos_label), which_are(guess, pos_label)
    if truth.size == 0 or truth.ndim not in (1, 2):
        raise ValueError(f"y_true must be a non-empty vector or table, got shape {truth.shape}")
    if truth.ndim == 1 and average is not None:
        check_choice("average", average, (None, "macro", "micro"))
        classes = np.unique(np.concatenate([truth, guess]))
        return truth[:, None] == classes, guess[:, None] == classes
    if truth.ndim == 2 and average not in ("macro", "micro"):
        raise ValueError(
            f"a table of labels needs average='macro' or 'micro', got average={average!r} and "
            f"shape {truth.shape}"
        )
    tables = as_positives("y_true", truth), as_positives("y_pred", guess)
    return tables[0].reshape(len(truth), -1), tables[1].reshape(len(truth), -1)
