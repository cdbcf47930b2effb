"""A confidence interval for the F of given predictions: binary, macro and micro.

With T true positives and E = FP + β² FN errors, the odds of F are F / (1 - F) = (1+β²) T / E. The
same holds for c T / (c T + FP + b FN), any ratio of counts that is 1 where there are no errors and
has no constants: Jaccard has c = b = 1. In what follows β² stands for b.

Binary: for β = 1, T of T + E is binomial, and Wilson's score interval for its proportion (the
Jaccard index) gives one for F; Lam (2024) compares it with others. For other β an error weighs 1 or
β²; E stands for E / w plain errors, w = (FP + β⁴ FN) / (FP + β² FN), the effective count of Fay and
Feuer (1997), with half a count added to both kinds so that none is taken for impossible.

Micro: the same from all cells, their number divided by the design effect, the ratio of the variance
over rows to that of independent cells: labels of one row hang together.

Macro: the labels' own intervals combined by their distances from the estimates (MOVER, Zou and
Donner 2008), which keeps them asymmetric, with the labels' correlation over rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Floats
from argmaxf._base.validation import (
    as_classes,
    as_positives,
    check_choice,
    check_unit_interval,
    ones_unless,
    which_are,
)
from argmaxf.measures import Measure, MeasureLike, Ratio, as_measure

STEP = 1e-4  # part of a count by which it is moved to see how a measure moves


@dataclass(frozen=True)
class Interval:
    """A confidence interval around a value.

    Attributes
    ----------
    low : float
        Lower end.
    value : float
        The value itself: the F_β of the predictions.
    high : float
        Upper end.
    """

    low: float
    value: float
    high: float


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

    Rows are taken for independent draws; the interval is for the F they would have in the long run
    (eq. 2 of the paper).

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, labels)
        True 0/1 labels; with `average` a table of them, or class labels of any kind.
    y_pred : array-like of the same shape
        Predicted labels.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        Any measure of counts. A ratio that is 1 without errors and has no smoothing constants, as
        F and Jaccard, has Wilson's limits; another one those of the normal distribution around it,
        cut off where the measure ends.
    average : {"macro", "micro"}, optional
        `"macro"` is the mean F of the labels or classes, `"micro"` the F of all cells.
    confidence_level : float, default=0.95
        How often the interval shall hold the true F.
    zero_division : float, default=0.0
        F of a label that is neither there nor predicted.
    pos_label : scalar, optional
        Without `average`, the label that counts as positive where they are not 0 and 1.

    Returns
    -------
    Interval
        The F_β of the predictions and both ends.

    Notes
    -----
    Cost: O(n) per label, and O(n labels²) for `"macro"`. In simulations with n = 500 and 5,000 and
    positive rates .05 and .5, 95 % intervals held the true F in 93 to 97 % of draws, for β of 0.5,
    1 and 2.

    References
    ----------
    Lam, "Confidence intervals for the F1 score: a comparison of four methods" (2024). Fay and
    Feuer, "Confidence intervals for directly standardized rates" (1997). Zou and Donner,
    "Construction of confidence limits about effect measures: a general approach" (2008).

    Examples
    --------
    >>> interval = f_interval([1, 1, 1, 0, 0, 0, 0, 1], [1, 1, 0, 0, 0, 0, 1, 1])
    >>> round(interval.low, 2), interval.value, round(interval.high, 2)
    (0.37, 0.75, 0.94)
    """
    if pos_label is not None:
        y_true, y_pred = _one_against_rest(y_true, y_pred, average, pos_label)
    truth, guess = _columns(y_true, y_pred, average)
    chance = as_measure(measure, beta)
    z = standard_errors(confidence_level)
    counts = _Counts.of(truth, guess)
    pooled = counts.pooled() if average == "micro" else counts
    f = chance.value(*pooled.four, zero_division=zero_division)
    pull = _pull(truth, guess, np.asarray(f), pooled, chance)
    ratio = _plain_ratio(chance)
    if ratio is None:
        return _normal_interval(f, pull, z, chance.ends)
    design = _design_effect(pull) if average == "micro" else 1.0
    low, high = _limits(pooled, ratio, z, design)
    if average == "macro":
        return _mean_interval(f, low, high, _correlation(pull))
    return _around(float(low[0]), float(f[0]), float(high[0]))


def f_and_pulls(
    truth: Any, guess: Any, measure: Measure, weight: Any = None
) -> tuple[Floats, Floats]:
    """Return each label's F (or other measure), and each cell's pull on it, for tables of booleans.

    The root of the summed squares of pulls is the standard error of F; of the difference of two
    predictions' pulls, that of the difference in F.
    """
    counts = _Counts.of(truth, guess, weight)
    f = measure.value(*counts.four)
    pull = _pull(truth, guess, f, counts, measure)
    return f, pull if weight is None else weight[:, None] * pull


@dataclass(frozen=True)
class _Counts:
    """T, k, S and n of each label."""

    true: Floats
    predicted: Floats
    positives: Floats
    items: Floats

    @classmethod
    def of(cls, truth: Any, guess: Any, weight: Any = None) -> _Counts:
        weight = ones_unless(weight, len(truth))
        everything = np.ones_like(truth)
        return cls(*(weight @ a for a in (truth & guess, guess, truth, everything)))

    @property
    def four(self) -> tuple[Floats, ...]:
        """T, k, S and n, as measures take them."""
        return self.true, self.predicted, self.positives, self.items

    def pooled(self) -> _Counts:
        return _Counts(*(a.sum(keepdims=True) for a in vars(self).values()))


def _one_against_rest(y_true: Any, y_pred: Any, average: Any, pos_label: Any) -> tuple[Any, Any]:
    """Return which labels are the positive one; it must be there, but need not be predicted."""
    if average is not None:
        raise ValueError(f"pos_label is for labels without average, got average={average!r}")
    truth, guess = _labels(y_true, y_pred)
    return as_positives("y_true", truth, pos_label), which_are(guess, pos_label)


def _columns(y_true: Any, y_pred: Any, average: str | None) -> tuple[Any, Any]:
    """Return truth and predictions as boolean tables of one shape, one column per label."""
    truth, guess = _labels(y_true, y_pred)
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


def _labels(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Return two arrays of labels, of one shape and one kind."""
    truth, guess = as_classes("y_true", y_true), as_classes("y_pred", y_pred)
    if truth.shape != guess.shape:
        raise ValueError(
            f"y_true and y_pred must have one shape, got {truth.shape} and {guess.shape}"
        )
    some = (each if each.dtype == object else each.ravel()[:1] for each in (truth, guess))
    kinds = {isinstance(label, str): label for each in some for label in each.ravel().tolist()}
    if len(kinds) > 1:
        raise ValueError(
            f"y_true and y_pred must hold labels of one kind, got {kinds[False]!r} and "
            f"{kinds[True]!r}"
        )
    return truth, guess


def _around(low: float, value: float, high: float) -> Interval:
    """Return an interval that holds its value, which rounding may have put beside it."""
    return Interval(min(low, value), value, max(high, value))


def standard_errors(confidence_level: float) -> float:
    """Return how many standard errors to each side hold the truth that often."""
    return -NormalDist().inv_cdf((1.0 - _check_level(confidence_level)) / 2.0)


def _check_level(confidence_level: float) -> float:
    level = check_unit_interval("confidence_level", confidence_level)
    if level in (0.0, 1.0):
        raise ValueError(f"confidence_level must lie strictly between 0 and 1, got {level!r}")
    return level


def _plain_ratio(measure: Measure) -> Ratio | None:
    """Return a measure of the form c T / (c T + FP + b FN), which Wilson's limits are for."""
    if not isinstance(measure, Ratio):
        return None
    c, b_in, _, s0, s1 = measure.coefficients()
    return None if s0 or s1 or abs(c - b_in - 1.0) > 1e-12 * c else measure


def _normal_interval(f: Floats, pull: Floats, z: float, ends: tuple[float, float]) -> Interval:
    """Return the mean of the labels' values, and z standard errors of it on both sides."""
    value = float(np.mean(f))
    reach = z * float(np.sqrt(np.sum((pull.sum(axis=1) / len(f)) ** 2)))
    least, most = ends
    return _around(max(value - reach, least), value, min(value + reach, most))


def wilson(share: Any, count: Any, z: float) -> tuple[Floats, Floats]:
    """Return Wilson's score limits for a share of `count` draws, z being the normal quantile."""
    centre = count * share + z**2 / 2
    half = z * np.sqrt(count * share * (1 - share) + z**2 / 4)
    low, high = (np.clip((centre + sign * half) / (count + z**2), 0, 1) for sign in (-1, 1))
    return low, high


def _limits(counts: _Counts, ratio: Ratio, z: float, design: float) -> tuple[Floats, Floats]:
    """Return Wilson's limits for T of T + E / w, turned into limits for F."""
    c, _, b, _, _ = ratio.coefficients()
    false, missed = counts.predicted - counts.true, counts.positives - counts.true
    w = (false + 0.5 + b**2 * (missed + 0.5)) / (false + 0.5 + b * (missed + 0.5))
    errors = (false + b * missed) / w
    m = (counts.true + errors) / design
    share = np.divide(counts.true, counts.true + errors, out=np.zeros_like(m), where=m > 0)
    low, high = (c * j / (c * j + w * (1 - j)) for j in wilson(share, m, z))
    return low, high


def _pull(truth: Any, guess: Any, f: Floats, counts: _Counts, measure: Measure) -> Floats:
    """Return each cell's pull on F: the derivative of numerator / denominator at the counts."""
    if not isinstance(measure, Ratio):
        return _slopes(truth, guess, counts, measure)
    ratio = measure
    c, b_in, b_out, _, _ = ratio.coefficients()
    _, denominator = ratio.fraction(counts.true, counts.predicted, counts.positives, None)
    denominator = np.where(denominator > 0, denominator, 1.0)
    hit = truth & guess
    grown = guess + b_out * truth + (b_in - b_out) * hit
    return np.asarray((c * hit - f * grown) / denominator)


def _slopes(truth: Any, guess: Any, counts: _Counts, measure: Measure) -> Floats:
    """Return each cell's pull on any measure: how the value moves with more cells of its kind.

    Hits, false positives, positives left out and the rest each add to T, k, S and n in their own
    way; central differences at a part of how many there are. The mean pull is taken off, so that
    the number of rows itself does not count.
    """
    t, k, s, n = counts.four
    kinds = [
        (truth & guess, t, (1, 1, 1, 1)),
        (~truth & guess, k - t, (0, 1, 0, 1)),
        (truth & ~guess, s - t, (0, 0, 1, 1)),
        (~truth & ~guess, n - k - s + t, (0, 0, 0, 1)),
    ]
    pull, mean = np.zeros(truth.shape), np.zeros_like(n, dtype=float)
    for cells, size, move in kinds:
        step = STEP * np.maximum(size, 0.0)
        up, down = (
            measure.value(
                *(each + sign * step * by for each, by in zip(counts.four, move, strict=True))
            )
            for sign in (1.0, -1.0)
        )
        slope = np.divide(up - down, 2.0 * step, out=np.zeros_like(mean), where=step > 0)
        pull += cells * slope
        mean += slope * size / n
    return np.asarray(pull - mean)


def _design_effect(pull: Floats) -> float:
    """Return how much more F varies over rows than if all cells were independent.

    Few rows say little about it, and one row nothing: n rows count for at most n² of them.
    """
    cells = np.sum(pull**2)
    found = float(np.sum(pull.sum(axis=1) ** 2) / cells) if cells > 0 else 1.0
    return max(found, 1.0 / len(pull))


def _correlation(pull: Floats) -> Floats:
    """Return the correlation of the labels' F; a label that cannot vary has none."""
    covariance = pull.T @ pull
    scale = np.sqrt(np.diag(covariance))
    scale[scale == 0] = 1.0
    correlation = covariance / np.outer(scale, scale)
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)


def _mean_interval(f: Floats, low: Floats, high: Floats, correlation: Floats) -> Interval:
    """Return the interval for the mean of labels from their own intervals (MOVER)."""
    mean = float(f.mean())
    below, above = (
        float(np.sqrt(side @ correlation @ side)) / len(f) for side in (f - low, high - f)
    )
    return _around(mean - below, mean, mean + above)
