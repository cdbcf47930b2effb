"""Which method to use, by paired scores on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from argmaxf.comparison.contest import Rated
from argmaxf.comparison.methods import METHODS
from argmaxf.comparison.trial import Bools, Floats

# What is used unless a challenger leads it clearly: the vote, or expected F where there is none.
SAFE = (METHODS["vote"].name, METHODS["expected"].name)
# A lead of these on held-out rows was not worth following on new ones (docs/choosing.md).
NO_CHALLENGE = (METHODS["plain"].name, METHODS["threshold"].name)
CLEAR = 1.0  # standard errors of the paired difference by which a method must lead
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

    The vote between the approaches is used unless expected F, a model trained for F or a method
    that the user added leads it by more than one standard error; without a vote, expected F in the
    same way; without both, the method with the highest score. The regret that measures this rule is
    in docs/choosing.md. `proba` are the classifier's held-out probabilities, None where it has
    none.
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
    """Return the safe method, or the challenger that leads it clearly."""
    challengers = [name for name in rated if name not in (*NO_CHALLENGE, safe)]
    best = max(challengers, key=lambda name: rated[name].value, default=safe)
    lead = rated[best].value - rated[safe].value
    return best if lead > CLEAR * rated[best].std_error(rated[safe]) else safe


def calibration_error(truth: Bools, proba: Floats) -> float:
    """Return the worse z of two tests of calibration: of the total, and Spiegelhalter's (1986)."""
    variance = proba * (1 - proba)
    z = [
        abs(np.sum(a * (truth - proba))) / max(np.sqrt(np.sum(a**2 * variance)), 1e-12)
        for a in (np.ones_like(proba), 1 - 2 * proba)
    ]
    return float(max(z))
