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
from scipy.special import expit

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.shared_docs import with_entries_of
from argmaxf._base.shown import Shown
from argmaxf._base.validation import (
    as_classes,
    as_labels,
    as_probabilities,
    check_strictly_between,
    check_unit_interval,
    check_zero_division,
    which_are,
)
from argmaxf.expected.count_distribution import Spectrum
from argmaxf.expected.groups import Groups
from argmaxf.expected.values import expected_f
from argmaxf.measures import Interval, Measure, MeasureLike, as_measure
from argmaxf.monitoring.histogram import Sizes, binned
from argmaxf.monitoring.recalibration import DRAWS, CalibrationPosterior
from argmaxf.prior import move_odds

EXACT_ITEMS = 4096  # more probabilities are put into bins first
MOST_COUNTS = 400  # of true positives and of missed ones; more are taken together in neighbours


@dataclass(frozen=True, repr=False)
class PredictedF(Shown):
    """What a decision is expected to reach on rows whose labels are not known.

    Attributes
    ----------
    f : Interval
        The measure: its expected value, and the ends of the interval. The expected value of a
        skewed distribution may lie outside.
    precision, recall, positives : Interval
        The same of precision, of recall, and of the number of positive rows.
    selected, n : int
        How many rows are selected, and how many there are.

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

    @classmethod
    def of_classifier(
        cls,
        classifier: Any,
        X: Any,
        X_reference: Any = None,
        y_reference: Any = None,
        **options: Any,
    ) -> PredictedF:
        """Predict the F that a fitted binary classifier has on rows without labels.

        Parameters
        ----------
        classifier : classifier
            Fitted, of this package or of scikit-learn, frozen or not. Without `predict_proba` its
            `decision_function` is calibrated by the reference.
        X : array-like
            The rows, without labels.
        X_reference, y_reference : array-like, optional
            Labelled rows the classifier was not trained on. They recalibrate its probabilities, and
            the intervals then also cover the calibration error.
        **options : object
            `measure`, `beta`, `zero_division` and `confidence_level`, as in `predict_f`.

        Returns
        -------
        PredictedF
        """
        calibration: Any = None
        if y_reference is not None or not hasattr(classifier, "predict_proba"):
            calibration = scores_of(classifier, X_reference, y_reference)
        p = scores_of(classifier, X, labelled=False)[0]
        selected = which_are(np.asarray(classifier.predict(X)), classifier.classes_[1])
        return predict_f(p, selected, calibration=calibration, **options)


@with_entries_of(expected_f)
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
    and no method can detect this without labels: label some rows (`plan_labels`). For a fitted
    classifier use `PredictedF.of_classifier`.

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
    beta, measure : as in `expected_f`
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
    if (selected is None) == (threshold is None):
        raise ValueError("pass either selected or threshold, got both or neither")
    if selected is not None:
        chosen = one_each("selected", selected, probability.size)
    else:
        cut: Any = threshold
        if cut != np.inf:  # the threshold of a decision that selects nothing
            cut = check_unit_interval("threshold", cut)
        chosen = np.asarray(probability >= cut)
    posterior = None
    if calibration is not None:
        if not hasattr(calibration, "__len__") or len(calibration) != 2:
            raise ValueError("calibration must be a tuple of probabilities and labels")
        known = as_labelled("calibration[0]", "calibration[1]", *calibration)
        posterior = CalibrationPosterior.fit(*known)
    exact = probability.size <= EXACT_ITEMS and posterior is None
    sides = [
        np.unique(each, return_counts=True) if exact else binned(each)
        for each in (probability[chosen], probability[~chosen])
    ]
    level = check_strictly_between("confidence_level", confidence_level, "no interval is certain")
    zero = check_zero_division(zero_division)
    return predicted_from_sizes(sides, posterior, as_measure(measure, beta), level, zero)


def predicted_from_sizes(
    sides: list[Sizes],
    posterior: CalibrationPosterior | None,
    measure: Measure,
    level: float,
    zero_division: float = 0.0,
    factor: float = 1.0,
) -> PredictedF:
    """Predict from probabilities and how many rows have each, of selected rows and of others.

    `factor` multiplies the odds of all rows, once they are recalibrated.
    """
    if posterior is not None:
        rng, moved = np.random.default_rng(0), posterior.moved(factor)
        theta = moved.draw(rng)
        t, r = (moved.positives(theta, side, rng) for side in sides)
        weight = np.full(DRAWS, 1.0 / DRAWS)
    else:
        moved_sides = [(move_odds(p, factor), size) for p, size in sides]
        (hits, some), (missed, others) = (_few(*count_distribution(side)) for side in moved_sides)
        t, r = (each.ravel() for each in np.meshgrid(hits, missed, indexing="ij"))
        weight = np.outer(some, others).ravel()
    k, others_n = (int(side[1].sum()) for side in sides)
    return predicted_from_counts(t, r, weight, k, k + others_n, measure, level, zero_division)


def predicted_from_counts(
    t: Floats,
    r: Floats,
    weight: Floats,
    k: int,
    n: int,
    measure: Measure,
    level: float,
    zero_division: float,
) -> PredictedF:
    """Predict from true positives and missed ones, how probable each pair is; k of n selected."""
    f = measure.value(t, k, t + r, n, zero_division=zero_division)
    precision = np.full(t.size, zero_division) if k == 0 else t / k
    recall = np.where(t + r > 0, t / np.maximum(t + r, 1.0), zero_division)
    intervals = [_interval(each, weight, level) for each in (f, precision, recall, t + r)]
    return PredictedF(*intervals, selected=k, n=n)  # type: ignore[arg-type, misc]


def count_distribution(sizes: Sizes) -> tuple[Floats, Floats]:
    """Return numbers of positives among independent labels, and the probability of each."""
    found = Spectrum.of(Groups.of_values(*sizes), float(sizes[1].sum()))
    return found.window, found.mass / found.mass.sum()


def _few(values: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Return a distribution with neighbours taken together at their mean, where there are many."""
    if values.size <= MOST_COUNTS:
        return values, mass
    first = np.arange(0, values.size, -(-values.size // MOST_COUNTS))
    total = np.add.reduceat(mass, first)
    return np.add.reduceat(values * mass, first) / np.maximum(total, 1e-300), total


def _interval(value: Floats, weight: Floats, level: float) -> Interval:
    """Return the mean and the quantiles of a distribution."""
    order = np.argsort(value)
    below, tail = np.cumsum(weight[order]), (1.0 - level) / 2.0
    ends = np.searchsorted(below, [tail, 1.0 - tail - 1e-12])
    low, high = value[order[np.minimum(ends, order.size - 1)]]
    return Interval(float(low), float(value @ weight), float(high))


def one_each(name: str, labels: Any, n: int) -> Bools:
    """Check that there is one label for each of n rows."""
    found = as_labels(name, labels)
    if found.shape != (n,):
        raise ValueError(f"{name} must have one entry for each of {n} rows, got {found.shape}")
    return found


def as_labelled(name: str, of_labels: str, p: Any, labels: Any) -> tuple[Floats, Bools]:
    """Check probabilities and a label for each of them."""
    probability = as_probabilities(name, p, ndim=1).astype(np.float64)
    return probability, one_each(of_labels, labels, probability.size)


def scores_of(
    classifier: Any, X: Any, y: Any = None, *, labelled: bool = True
) -> tuple[Floats, Bools | None]:
    """Return the probabilities of a binary classifier, or the sigmoid of its margins.

    And which rows are positive, where there are labels; margins need them to be `labelled`.
    """
    kind, classes = type(classifier).__name__, np.asarray(getattr(classifier, "classes_", None))
    if classes.shape != (2,):
        raise ValueError(
            f"classifier must be fitted to two classes, got {kind} with classes_ {classes}"
        )
    if hasattr(classifier, "predict_proba"):
        scores = np.asarray(classifier.predict_proba(X)[:, 1], np.float64)
    elif y is None and labelled:
        raise ValueError(
            f"y_reference is needed, labels of the reference rows: {kind} has no predict_proba"
        )
    else:
        scores = np.asarray(expit(classifier.decision_function(X)), np.float64)
    if y is None:
        return scores, None
    labels = as_classes("y_reference", y)
    if not np.isin(labels, classes).all():
        raise ValueError(f"y_reference must hold the classes {classes.tolist()}, got others")
    return scores, which_are(labels, classes[1])
