r"""The F of a decision before its labels are known, with an interval.

Under calibrated probabilities the true positives T of a decision and the positives it misses, R,
are independent sums of independent labels (Poisson binomial), so the distribution of any measure of
the counts is known exactly: P(T = t) and P(R = r) come from their characteristic functions by one
fast Fourier transform each. The ratio of expected counts, which is often reported instead, is too
high where positives are few: by 20 % for one expected positive.

Labels of a calibration sample add the uncertainty of the calibration itself: draws of its posterior
(`recalibration`) stand in front of the draws of the counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.shown import Shown
from argmaxf._base.validation import (
    as_labels,
    as_probabilities,
    check_strictly_between,
    check_unit_interval,
)
from argmaxf.measures import Interval, Measure, MeasureLike, as_measure
from argmaxf.monitoring.recalibration import DRAWS, CalibrationPosterior

NORMAL_FROM = 25.0  # standard deviation of a count from which it is normal, with its skewness
EXACT_ITEMS = 4096  # more probabilities are put into so many bins first
DEVIATIONS = 9.0  # standard deviations of a count that are kept, and some counts more


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
    sides = probability[chosen], probability[~chosen]
    inside, outside = (np.unique(side, return_counts=True) for side in sides)
    posterior = None
    if calibration is not None:
        if not hasattr(calibration, "__len__") or len(calibration) != 2:
            raise ValueError("calibration must be a tuple of probabilities and labels")
        posterior = learned_calibration(*calibration)
    return predicted_from_counts(inside, outside, posterior, goal, zero_division, level)


def predicted_from_counts(
    inside: tuple[Any, Any],
    outside: tuple[Any, Any],
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
    inside: tuple[Any, Any], outside: tuple[Any, Any], posterior: CalibrationPosterior | None
) -> tuple[Floats, Floats, Floats]:
    """Return true positives and missed positives, with the probability of each pair of them."""
    if posterior is not None:
        rng = np.random.default_rng(0)
        theta = posterior.draw(DRAWS, rng)
        t, r = (posterior.positives(theta, *side, rng) for side in (inside, outside))
        return t, r, np.full(DRAWS, 1.0 / DRAWS)
    hits, missed = Count.of(*inside), Count.of(*outside)
    t, r = np.meshgrid(hits.values, missed.values, indexing="ij")
    return t.ravel(), r.ravel(), np.outer(hits.mass, missed.mass).ravel()


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


def learned_calibration(
    p: ArrayLike, labels: ArrayLike, names: tuple[str, str] = ("calibration[0]", "calibration[1]")
) -> CalibrationPosterior:
    """Learn the calibration from labelled rows."""
    probability = as_probabilities(names[0], p, ndim=1).astype(np.float64)
    positive = as_labels(names[1], labels)
    if positive.shape != probability.shape:
        raise ValueError(
            f"{names[1]} must hold one label for each of {probability.size} probabilities, got "
            f"shape {positive.shape}"
        )
    return CalibrationPosterior.fit(probability, positive)


@dataclass(frozen=True)
class Count:
    """The distribution of the number of positives among independent labels."""

    values: Floats
    mass: Floats

    @classmethod
    def of(cls, p: Any, size: Any) -> Count:
        """Return it from probabilities and how many labels have each, by Fourier transform.

        Numbers of positives with a probability below 1e-16 or so are left out.
        """
        if len(p) > EXACT_ITEMS:  # neighbours in so many bins hardly differ
            which = np.arange(p.size) * EXACT_ITEMS // p.size
            total = np.asarray(np.bincount(which, size), np.float64)
            p, size = np.bincount(which, p * size) / total, total
        mean, spread = float(p @ size), float(np.sqrt((p * (1.0 - p)) @ size))
        if spread > NORMAL_FROM:
            z = np.linspace(-DEVIATIONS, DEVIATIONS, 301)
            skewness = float((p * (1.0 - p) * (1.0 - 2.0 * p)) @ size) / spread**3
            mass = np.exp(-0.5 * z**2) * np.maximum(1.0 + skewness / 6.0 * (z**3 - 3.0 * z), 0.0)
            return cls(mean + spread * z, mass / mass.sum())
        reach = DEVIATIONS * spread + 30.0
        first, last = max(0.0, np.floor(mean - reach)), min(size.sum(), np.ceil(mean + reach))
        turns = int(last - first) + 1
        theta = 2.0 * np.pi * np.arange(turns // 2 + 1) / turns
        log_phi = np.zeros(theta.size, np.complex128)
        with np.errstate(divide="ignore"):
            for block in range(0, p.size, 256):
                here = p[block : block + 256, None]
                log_phi += size[block : block + 256] @ np.log1p(here * np.expm1(1j * theta))
        turned = np.exp(log_phi - 1j * theta * first)
        mass = np.maximum(np.fft.irfft(turned.conj(), turns), 0.0)
        return cls(np.arange(first, last + 1.0), mass / mass.sum())


def _interval(value: Floats, weight: Floats, level: float) -> Interval:
    """Return the mean and the quantiles of a distribution."""
    order = np.argsort(value)
    below = np.cumsum(weight[order])
    tail = (1.0 - level) / 2.0
    ends = np.searchsorted(below, [tail, 1.0 - tail - 1e-12])
    low, high = value[order[np.minimum(ends, order.size - 1)]]
    return Interval(float(low), float(value @ weight), float(high))
