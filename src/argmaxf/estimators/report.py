"""Which method to use, by paired scores on held-out rows, and why, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf.empirical.interval import f_and_pulls
from argmaxf.measures import FBeta

Floats = NDArray[np.float64]

# Of methods too close to tell apart the first of these is taken: expected F needs probabilities it
# can trust, and empirical F does not. The regret that measures this rule is in docs/choosing.md.
TRUSTED = ("ML^E", "F^δ", "ML^δ", "ML^.5")
DOUBTED = ("F^δ", "ML^δ", "ML^E", "ML^.5")
NEAR = 2.0  # standard errors of the paired difference within which methods are too close to tell
DOUBT = 3.0  # standard errors of calibration from which probabilities are doubted
RARE = 0.1


@dataclass(frozen=True)
class Held:
    """A method's F on held-out rows, and its parts that pair with another method's."""

    value: float
    parts: Floats
    spread: float  # what turns the root sum of squared differences of parts into a standard error

    def std_error(self, other: Held) -> float:
        """Return the standard error of the difference between two methods on the same rows."""
        return float(self.spread * np.sqrt(np.sum((self.parts - other.parts) ** 2)))


def rate_rows(truth: Any, guess: Any, beta: float, weight: Any) -> Held:
    """Rate one prediction of all rows: macro F, and each row's pull on it."""
    f, pulls = f_and_pulls(truth, guess, FBeta(beta), weight)
    return Held(float(f.mean()), pulls.mean(axis=1), 1.0)


def rate_sets(truth: Any, guesses: Any, sets: Any, beta: float) -> Held:
    """Rate predictions of many sets of rows: the mean of their macro F.

    The sets overlap; n rows hold no more than n / size independent ones.
    """
    pairs = zip(sets, guesses, strict=True)
    values = np.array([f_and_pulls(truth[rows], g, FBeta(beta))[0].mean() for rows, g in pairs])
    independent = max(len(truth) / len(sets[0]), 1.0)
    return Held(float(values.mean()), values - values.mean(), (len(values) * independent) ** -0.5)


@dataclass(frozen=True)
class Report:
    """How the methods compare on held-out data, and which is used.

    `scores` is each method's F; `behind` how far it is behind the best, `std_error` the standard
    error of that difference, paired over the same rows. `reason` says in words why `chosen` was
    chosen, `notes` what else the data show. `calibration` is how far the out-of-fold probabilities
    are off, in standard errors.
    """

    chosen: str
    scores: dict[str, float]
    behind: dict[str, float]
    std_error: dict[str, float]
    reason: str
    notes: tuple[str, ...] = ()
    calibration: float = float("nan")

    def __str__(self) -> str:
        rows = [
            f"{'*' if name == self.chosen else ' '} {name:<8} F = {score:.4f}   "
            f"behind by {self.behind[name]:.4f} ± {self.std_error[name]:.4f}"
            for name, score in self.scores.items()
        ]
        return "\n".join([*rows, self.reason, *self.notes])


def choose(held: dict[str, Held], truth: NDArray[np.bool_], proba: Floats | None) -> Report:
    """Return the report on methods compared, with the one to use.

    `proba` are out-of-fold probabilities, None where the classifier has none.
    """
    calibration = np.inf if proba is None else _calibration(truth, proba)
    order = TRUSTED if calibration < DOUBT else DOUBTED
    best = max(held, key=lambda name: held[name].value)
    behind = {name: held[best].value - h.value for name, h in held.items()}
    error = {name: h.std_error(held[best]) for name, h in held.items()}
    close = [name for name in held if behind[name] <= NEAR * error[name]]
    chosen = min(close, key=lambda name: _rank(name, order))
    return Report(
        chosen,
        {name: h.value for name, h in held.items()},
        behind,
        error,
        _reason(best, chosen, close, behind, error),
        tuple(_notes(truth, proba, calibration)),
        calibration,
    )


def _rank(name: str, order: tuple[str, ...]) -> int:
    """Return the place in the order of preference; methods the user adds come last."""
    return order.index(name) if name in order else len(order)


def _reason(best: str, chosen: str, close: list[str], behind: Any, error: Any) -> str:
    if behind[chosen] > 0:
        return (
            f"{chosen} is used: {best} scored higher by {behind[chosen]:.4f}, less than two "
            f"standard errors (of {error[chosen]:.4f} each); of methods so close, {chosen} is "
            "the safer one on such data."
        )
    others = [name for name in close if name != chosen]
    if others:
        return f"{chosen} is used: none scored higher, {', '.join(others)} too close to tell apart."
    return f"{chosen} is used: it scored highest, by more than two standard errors."


def _notes(truth: Any, proba: Floats | None, calibration: float) -> Iterator[str]:
    """Say what the data show that bears on the choice: rare labels, bad probabilities."""
    rate = float(truth[:, truth.any(axis=0)].mean(axis=0).min())
    if rate < RARE:
        yield (
            f"The rarest label is positive in {rate:.1%} of rows: a threshold tuned on few "
            "positives varies, and ML^E is the better for it where probabilities are right."
        )
    if proba is None:
        yield "The classifier has no predict_proba, so ML^E was not tried: calibrate it to try."
    elif calibration >= DOUBT:
        yield (
            f"The probabilities are off by {calibration:.1f} standard errors (they expect "
            f"{proba.sum():.0f} positives, there are {truth.sum()}): of methods that score alike, "
            "one that does not rest on them is used. Calibrating the classifier would help ML^E."
        )
    else:
        yield "The probabilities agree with what was held out, so ML^E can rely on them."


def _calibration(truth: NDArray[np.bool_], proba: Floats) -> float:
    """Return the worse z of two tests of calibration: of the total, and Spiegelhalter's (1986)."""
    variance = proba * (1 - proba)
    z = [
        abs(np.sum(a * (truth - proba))) / max(np.sqrt(np.sum(a**2 * variance)), 1e-12)
        for a in (np.ones_like(proba), 1 - 2 * proba)
    ]
    return float(max(z))
