"""Every measure beside its formula, written down on its own: what the tests of measures share."""

import mpmath
import numpy as np

from argmaxf.measures import (
    MCC,
    BalancedAccuracy,
    Coefficients,
    Dice,
    FBeta,
    FowlkesMallows,
    GMean,
    IoU,
    Jaccard,
    Kappa,
    Linear,
    Measure,
    Ratio,
    Tversky,
    UserDefined,
)
from tests.judges import fbeta, jaccard


class Skewed(Ratio):
    """A member with five different coefficients, below 1 even where there are no errors."""

    name = "skewed"
    title = "Skewed"

    def __repr__(self):
        return "Skewed()"  # the same in every process, so that tests can be shared out

    def coefficients(self, number=float):
        return Coefficients(number(1.5), number(2), number(0.5), number(0.25), number(0.75))


class Worse(Measure):
    """Neither a ratio of the family nor linear: the worse of both rates."""

    name = "worse"
    title = "worse rate"

    def __repr__(self):
        return "Worse()"

    def fraction(self, tp, k, s, n):
        return np.minimum(tp * (n - s), (n - k - s + tp) * s), s * (n - s)


def smoothed(beta, smooth):
    b2 = beta**2
    return lambda t, k, s, n: ((1 + b2) * t + smooth, k + b2 * s + smooth)


def tversky(a, b):
    return lambda t, k, s, n: (t, t + a * (k - t) + b * (s - t))


def in_many_digits(formula):
    """The formula with a numerator of many digits, also where counts are integers."""

    def exact(t, k, s, n):
        above, below = formula(t, k, s, n)
        return mpmath.mpf(above), below

    return exact


# Each measure beside its formula, written down here on its own.
FORMULAS = {
    FBeta(1): fbeta(1),
    FBeta(0.3): fbeta(0.3),
    FBeta(4): fbeta(4),
    FBeta(1, smooth=1): smoothed(1, 1),
    FBeta(2, smooth=0.01): smoothed(2, 0.01),
    Jaccard(): jaccard,
    Dice(): fbeta(1),
    Dice(0.5): smoothed(1, 0.5),
    IoU(0.5): lambda t, k, s, n: (t + mpmath.mpf(0.5), k + s - t + mpmath.mpf(0.5)),
    Tversky(0.3, 0.7): tversky(0.3, 0.7),
    Tversky(0.1, 0.2): tversky(0.1, 0.2),  # Φ does not grow with k
    Tversky(0.7, 3.0): tversky(0.7, 3.0),
    Tversky(0.5, 0.0): tversky(0.5, 0.0),  # 0/0 wherever nothing is selected
    Tversky(1.0, 0.0): tversky(1.0, 0.0),  # precision
    Skewed(): lambda t, k, s, n: (1.5 * t + 0.25, k + 2 * t + 0.5 * (s - t) + 0.75),
}
# Their expectation comes from the distributions of counts (expected/counts).
COUNTED = {
    FowlkesMallows(): lambda t, k, s, n: (t, mpmath.sqrt(k * s)),
    MCC(): lambda t, k, s, n: (n * t - k * s, mpmath.sqrt(k * s * (n - k) * (n - s))),
    Kappa(): lambda t, k, s, n: (
        n * (n - k - s + 2 * t) - chance(k, s, n),
        n * n - chance(k, s, n),
    ),
    BalancedAccuracy(): lambda t, k, s, n: (
        t * (n - s) + (n - k - s + t) * s,
        2 * s * (n - s),
    ),
    GMean(): lambda t, k, s, n: (mpmath.sqrt(t * (n - k - s + t)), mpmath.sqrt(s * (n - s))),
    Tversky(2.0, 1.0): tversky(2.0, 1.0),  # a false positive costs more than a hit is worth
    Worse(): lambda t, k, s, n: (min(t * (n - s), (n - k - s + t) * s), s * (n - s)),
    UserDefined(lambda tp, k, s, n: tp / np.maximum(k, s)): lambda t, k, s, n: (t, max(k, s)),
}
COUNTED = {measure: in_many_digits(formula) for measure, formula in COUNTED.items()}
LINEAR = [measure for measure in COUNTED if isinstance(measure, Linear)]


def chance(k, s, n):
    """How often truth and prediction agree by chance, times n²."""
    return k * s + (n - k) * (n - s)


ALL = {**FORMULAS, **COUNTED}
