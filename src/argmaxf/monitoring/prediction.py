r"""The F of a decision before its labels are known, with an interval.

Under calibrated probabilities the true positives T of a decision and the positives it misses, R,
are independent sums of independent labels (Poisson binomial), so the distribution of any measure of
the counts is known exactly: P(T = t) and P(R = r) come from their characteristic functions. The
ratio of expected counts, which is often reported instead, is too high where positives are few: by
20 % for one expected positive.

Labels of a calibration sample add the uncertainty of the calibration itself: draws of its posterior
(`recalibration`) stand in front of the draws of the counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.shown import Shown
from argmaxf._base.validation import (
    as_labels,
    as_probabilities,
    check_strictly_between,
    check_unit_interval,
)
from argmaxf.expected.count_distribution import Spectrum
from argmaxf.expected.grouped.groups import Groups
from argmaxf.expected.sketch import ProbabilitySketch, groups_of_sketch
from argmaxf.measures import Interval, Measure, MeasureLike, as_measure
from argmaxf.monitoring.recalibration import DRAWS, CalibrationPosterior

EXACT_ITEMS = 4096  # more probabilities are put into the groups of a sketch first
MOST_COUNTS = 400  # of true positives and of missed ones; more are taken together in neighbours

Sizes = tuple[Floats, Ints]  # probabilities, and how many rows have each


@dataclass(frozen=True, repr=False)
class PredictedF(Shown):
    """What a decision is expected to reach on rows whose labels are not known.

    Attributes
    ----------
    f : Interval
        The measure: its expected value, and the ends of the interval. The expected value of a
        skewed distribution may lie outside.
    precision, recall : Interval
        The same of precision and recall.
    positives : Interval
        The number of positive rows.
    selected : int
        How many rows are selected.
    n : int
        How many rows there are.

    Examples
    --------
    >>> from argmaxf import predict_f
    >>> predicted = predict_f([0.9, 0.8, 0.4, 0.1], threshold=0.4)
    >>> round(predicted.precision.value, 2), round(predicted.positives.value, 2)
    (0.7, 2.2)
    """

    f: Interval
    precision: Interval
    recall: Interval
    positives: Interval
    selected: int
    n: int


def predict_f(
    p: ArrayLike,
    selected: ArrayLike | None = None,
    *,
    threshold: float | None = None,
    calibration: tuple[ArrayLike, ArrayLike] | None = None,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    zero_division: float = 0.0,
    confidence_level: float = 0.95,
) -> PredictedF:
    """Predict the F of a decision on rows without labels, with an interval.

    If the relation between scores and labels has changed since training, the prediction is wrong,
    and no method can detect this without labels: label some rows (`plan_labels`).

    Parameters
    ----------
    p : array-like of shape (n,)
        Probabilities of being positive.
    selected : array-like of shape (n,), optional
        Which rows are selected, 0/1 or booleans.
    threshold : float, optional
        Instead of `selected`: select the rows with ``p >= threshold``.
    calibration : tuple of two array-like, optional
        ``(p, labels)`` of labelled rows the model was not trained on. They recalibrate the
        probabilities, and the interval then also covers the calibration error. Without them the
        probabilities are assumed to be calibrated, and the interval covers the randomness of the
        labels only.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        The measure to predict.
    zero_division : float, default=0.0
        Value of 0/0, also for precision and recall.
    confidence_level : float, default=0.95
        Probability that the measure lies in its interval.

    Returns
    -------
    PredictedF

    Notes
    -----
    O(n log n) time; besides the input it holds some million numbers.

    Examples
    --------
    >>> p = [0.9, 0.8, 0.4, 0.1, 0.05, 0.05]
    >>> predicted = predict_f(p, threshold=0.4)
    >>> print(f"{predicted.f.value:.3f} [{predicted.f.low:.3f}, {predicted.f.high:.3f}]")
    0.773 [0.400, 1.000]
    """
    probability = as_probabilities("p", p, ndim=1).astype(np.float64)
    chosen = _chosen(probability, selected, threshold)
    goal = as_measure(measure, beta)
    level = check_strictly_between("confidence_level", confidence_level, "no interval is certain")
    posterior = None if calibration is None else _learned(calibration)
    inside, outside = (_sizes(side) for side in (probability[chosen], probability[~chosen]))
    return predicted_from_sizes(inside, outside, posterior, goal, zero_division, level)


def predicted_from_sizes(
    inside: Sizes,
    outside: Sizes,
    posterior: CalibrationPosterior | None,
    measure: Measure,
    zero_division: float,
    level: float,
) -> PredictedF:
    """Predict from probabilities and how many rows have each, of selected rows and of others."""
    k = int(np.sum(inside[1]))
    n = k + int(np.sum(outside[1]))
    t, r, weight = _counts(inside, outside, posterior)
    f = measure.value(t, k, t + r, n, zero_division=zero_division)
    precision = np.full(t.size, zero_division) if k == 0 else t / k
    recall = np.where(t + r > 0, t / np.maximum(t + r, 1.0), zero_division)
    intervals = [_interval(each, weight, level) for each in (f, precision, recall, t + r)]
    return PredictedF(*intervals, selected=k, n=n)  # type: ignore[arg-type, misc]


def _counts(
    inside: Sizes, outside: Sizes, posterior: CalibrationPosterior | None
) -> tuple[Floats, Floats, Floats]:
    """Return true positives and missed positives, with the probability of each pair of them."""
    if posterior is not None:
        rng = np.random.default_rng(0)
        theta = posterior.draw(DRAWS, rng)
        t, r = (posterior.positives(theta, *side, rng) for side in (inside, outside))
        return t, r, np.full(DRAWS, 1.0 / DRAWS)
    (hits, some), (missed, others) = (_few(*count_distribution(*s)) for s in (inside, outside))
    t, r = np.meshgrid(hits, missed, indexing="ij")
    return t.ravel(), r.ravel(), np.outer(some, others).ravel()


def count_distribution(p: Floats, size: Ints) -> tuple[Floats, Floats]:
    """Return numbers of positives among independent labels, and the probability of each."""
    found = Spectrum.of(Groups.of_values(p, size), float(np.sum(size)))
    return found.window, found.mass / found.mass.sum()


def _few(values: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Return a distribution with neighbours taken together at their mean, where there are many."""
    if values.size <= MOST_COUNTS:
        return values, mass
    first = np.arange(0, values.size, -(-values.size // MOST_COUNTS))
    total = np.add.reduceat(mass, first)
    return np.add.reduceat(values * mass, first) / np.maximum(total, 1e-300), total


def _chosen(p: Floats, selected: ArrayLike | None, threshold: float | None) -> Bools:
    """Return which rows are selected."""
    if selected is None and threshold is not None:
        if threshold != np.inf:  # the threshold of a decision that selects nothing
            check_unit_interval("threshold", threshold)
        return np.asarray(p >= threshold)
    if selected is None or threshold is not None:
        raise ValueError("pass either selected or threshold, got both or neither")
    chosen = as_labels("selected", selected)
    if chosen.shape != p.shape:
        raise ValueError(
            f"selected must have one entry for each of {p.size} rows, got {chosen.shape}"
        )
    return chosen


def _learned(calibration: Any) -> CalibrationPosterior:
    """Learn the calibration from a tuple of probabilities and labels."""
    if not hasattr(calibration, "__len__") or len(calibration) != 2:
        raise ValueError("calibration must be a tuple of probabilities and labels")
    p, positive = as_labelled("calibration[0]", "calibration[1]", *calibration)
    return CalibrationPosterior.fit(p, positive)


def as_labelled(name: str, of_labels: str, p: Any, labels: Any) -> tuple[Floats, Bools]:
    """Check probabilities and a label for each of them."""
    probability = as_probabilities(name, p, ndim=1).astype(np.float64)
    positive = as_labels(of_labels, labels)
    if positive.shape != probability.shape:
        raise ValueError(
            f"{of_labels} must hold one label for each of {probability.size} rows, got shape "
            f"{positive.shape}"
        )
    return probability, positive


def _sizes(p: Floats) -> Sizes:
    """Return the probabilities that rows have, and how many have each."""
    if p.size > EXACT_ITEMS:
        return sizes_of_sketch(ProbabilitySketch.from_array(p))
    return np.unique(p, return_counts=True)


def sizes_of_sketch(sketch: ProbabilitySketch) -> Sizes:
    """Return the mean probability of each group of a sketch and its number of rows."""
    groups = groups_of_sketch(sketch)
    return groups.mass / groups.count, groups.count.astype(np.int64)


def _interval(value: Floats, weight: Floats, level: float) -> Interval:
    """Return the mean and the quantiles of a distribution."""
    order = np.argsort(value)
    below = np.cumsum(weight[order])
    tail = (1.0 - level) / 2.0
    ends = np.searchsorted(below, [tail, 1.0 - tail - 1e-12])
    low, high = value[order[np.minimum(ends, order.size - 1)]]
    return Interval(float(low), float(value @ weight), float(high))
