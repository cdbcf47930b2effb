"""Which method to use, by paired scores on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from argmaxf.arrays import Bools, Floats
from argmaxf.comparison.contest import Rated
from argmaxf.comparison.methods import METHODS

# What is used unless another method leads it clearly: the blend, or expected F without one.
SAFE = (METHODS["blend"].name, METHODS["expected"].name)
OURS = tuple(method.name for method in METHODS.values())
CLEAR = 2.0  # standard errors of the paired difference by which a method must lead
YOURS = 1.0  # the same for a method that the user added: it is there for a reason
DOUBT = 3.0  # standard errors of calibration from which probabilities are doubted


@dataclass(frozen=True)
class Choice:
    """The method to use, and what it was chosen by.

    `behind` is how far each method is behind the best, `std_error` the standard error of that
    difference, paired over the same rows, and `close` those too close to the best to tell apart.
    `calibration` is how far the held-out probabilities are off, in standard errors.
    """

    chosen: str
    best: str
    behind: dict[str, float]
    std_error: dict[str, float]
    close: tuple[str, ...]
    calibration: float

    @property
    def trusted(self) -> bool:
        """Whether the classifier's own probabilities agree with what was held out."""
        return self.calibration < DOUBT


def choose(rated: Mapping[str, Rated], truth: Bools, proba: Floats | None) -> Choice:
    """Return the choice among methods rated on the same rows.

    The blend is used unless another method leads it by more than two standard errors, or one that
    the user added by more than one; without a blend, expected F in the same way; without both, the
    method with the highest score. The regret that measures this rule is in docs/choosing.md.
    `proba` are the classifier's held-out probabilities, None where it has none.
    """
    best = max(rated, key=lambda name: rated[name].value)
    behind = {name: rated[best].value - r.value for name, r in rated.items()}
    error = {name: r.std_error(rated[best]) for name, r in rated.items()}
    close = tuple(name for name in rated if behind[name] <= CLEAR * error[name])
    calibration = np.inf if proba is None else calibration_error(truth, proba)
    safe = next((name for name in SAFE if name in rated), None)
    chosen = best if safe is None else _unless_led(rated, safe)
    return Choice(chosen, best, behind, error, close, float(calibration))


def _unless_led(rated: Mapping[str, Rated], safe: str) -> str:
    """Return the safe method, or the best of those that lead it clearly."""

    def leads(name: str) -> bool:
        clear = CLEAR if name in OURS else YOURS
        lead = rated[name].value - rated[safe].value
        return lead > clear * rated[name].std_error(rated[safe])

    return max(filter(leads, rated), key=lambda name: rated[name].value, default=safe)


def calibration_error(truth: Bools, proba: Floats) -> float:
    """Return the worse z of two tests of calibration: of the total, and Spiegelhalter's (1986)."""
    return max(total_error(truth, proba), _z(truth, proba, 1 - 2 * proba))


def total_error(truth: Bools, proba: Floats) -> float:
    """Return how far the number of positives is from the one expected, in standard errors."""
    return _z(truth, proba, np.ones_like(proba))


def _z(truth: Bools, proba: Floats, a: Floats) -> float:
    """Return how far a weighted sum of truth - p is from 0, in standard errors."""
    error = np.sqrt(np.sum(a**2 * proba * (1 - proba)))
    return float(abs(np.sum(a * (truth - proba))) / max(error, 1e-12))
