"""Which method to use, by paired scores on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from argmaxf.comparison.contest import Rated
from argmaxf.comparison.methods import METHODS
from argmaxf.comparison.trial import Bools, Floats

# Of methods too close to tell apart the first of these is taken: expected F needs probabilities it
# can trust, and empirical F does not. The regret that measures this rule is in docs/choosing.md.
TRUSTED = tuple(METHODS[key].name for key in ("expected", "soft", "threshold", "plain"))
DOUBTED = tuple(METHODS[key].name for key in ("soft", "threshold", "expected", "plain"))
NEAR = 2.0  # standard errors of the paired difference within which methods are too close to tell
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
        """Whether the probabilities agree with what was held out."""
        return self.calibration < DOUBT


def choose(rated: Mapping[str, Rated], truth: Bools, proba: Floats | None) -> Choice:
    """Return the choice among methods rated on the same rows.

    `proba` are held-out probabilities, None where the classifier has none.
    """
    best = max(rated, key=lambda name: rated[name].value)
    behind = {name: rated[best].value - r.value for name, r in rated.items()}
    error = {name: r.std_error(rated[best]) for name, r in rated.items()}
    close = tuple(name for name in rated if behind[name] <= NEAR * error[name])
    calibration = np.inf if proba is None else calibration_error(truth, proba)
    order = TRUSTED if calibration < DOUBT else DOUBTED
    chosen = min(close, key=lambda name: _rank(name, order))
    return Choice(chosen, best, behind, error, close, float(calibration))


def _rank(name: str, order: tuple[str, ...]) -> int:
    """Return the place in the order of preference; methods the user adds come last."""
    return order.index(name) if name in order else len(order)


def calibration_error(truth: Bools, proba: Floats) -> float:
    """Return the worse z of two tests of calibration: of the total, and Spiegelhalter's (1986)."""
    variance = proba * (1 - proba)
    z = [
        abs(np.sum(a * (truth - proba))) / max(np.sqrt(np.sum(a**2 * variance)), 1e-12)
        for a in (np.ones_like(proba), 1 - 2 * proba)
    ]
    return float(max(z))
