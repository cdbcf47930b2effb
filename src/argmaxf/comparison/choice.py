"""Which method to use, by paired scores on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from argmaxf._base.arrays import Bools, Floats
from argmaxf.comparison.contest import Rated
from argmaxf.comparison.methods import METHODS

# What is used unless another method leads it clearly: the blend, or expected F without one.
SAFE = (METHODS["blend"].name, METHODS["expected"].name)
OURS = tuple(method.name for method in METHODS.values())
REACH = NormalDist().inv_cdf(0.975)  # standard errors to each side of a 95 % interval: the tables
# show it for each difference, and a method leads clearly where that interval lies above 0
YOURS = 1.0  # the same for a method that the user added: it is there for a reason
DOUBT = 3.0  # standard errors of calibration from which probabilities are doubted


@dataclass(frozen=True)
class Choice:
    """The method to use, and what it was chosen by.

    `safe` is the method that is used unless another leads it clearly, None where there is none.
    `behind` is how far each method is behind the best, `std_error` the standard error of that
    difference, paired over the same rows. `close` are those that cannot be told apart from the one
    chosen: the 95 % interval of the difference, as the tables show it, holds 0. `calibration` is
    how far the held-out probabilities are off, in standard errors.
    """

    chosen: str
    best: str
    safe: str | None
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

    The blend is used unless another method leads it clearly, by more than REACH standard errors, or
    one that the user added by more than YOURS, if that is not led in turn. Without a blend it is
    expected F that must be led; without both, the method with the highest score is used. The regret
    that measures this rule is in docs/choosing.md.
    `proba` are the classifier's held-out probabilities, None where it has none.
    """
    best = max(rated, key=lambda name: rated[name].value)
    behind = {name: rated[best].value - r.value for name, r in rated.items()}
    error = {name: r.std_error(rated[best]) for name, r in rated.items()}
    calibration = np.inf if proba is None else calibration_error(truth, proba)
    safe = next((name for name in SAFE if name in rated), None)
    chosen = best if safe is None else _unless_led(rated, safe)
    close = tuple(name for name in rated if _cannot_be_told(rated[name], rated[chosen]))
    return Choice(chosen, best, safe, behind, error, close, float(calibration))


def _cannot_be_told(one: Rated, other: Rated) -> bool:
    """Whether the 95 % interval of their difference holds 0."""
    return abs(one.value - other.value) <= REACH * one.std_error(other)


def _unless_led(rated: Mapping[str, Rated], safe: str) -> str:
    """Return the safe method, or the best of those that lead it clearly, unless that is led too.

    Only a method of the user can be, which needs a smaller lead: two clear leads add up to one.
    """

    def leads(name: str) -> bool:
        clear = REACH if name in OURS else YOURS
        lead = rated[name].value - rated[safe].value
        return lead > clear * rated[name].std_error(rated[safe])

    leaders = list(filter(leads, rated))
    if not leaders:
        return safe
    return _unless_led(rated, max(leaders, key=lambda name: rated[name].value))


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
