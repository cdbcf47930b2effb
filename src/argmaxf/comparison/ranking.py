"""Ranking: the F of every method on the same held-out rows, and the method to use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.validation import how_many
from argmaxf.comparison.methods import OWN_NAMES, SAFE
from argmaxf.empirical.interval import f_and_influences
from argmaxf.measures import Measure

# Standard errors to each side of a 95 % interval. The tables show that interval for each
# difference, and a method leads clearly where it lies above 0.
CLEAR_LEAD = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class MethodScore:
    """A method's F on held-out rows, and its parts that pair with another method's."""

    value: float
    parts: Floats
    spread: float  # the standard error is this times the root sum of squared differences of parts

    def std_error(self, other: MethodScore | None = None) -> float:
        """Return the standard error of F, or of its difference to another method's."""
        parts = self.parts if other is None else self.parts - other.parts
        return float(self.spread * np.sqrt(np.sum(parts**2)))


def score_rows(truth: Any, predicted: Any, measure: Measure, weight: Any) -> MethodScore:
    """Score one prediction of all rows: macro F, or another measure, and each row's influence."""
    f, pulls = f_and_influences(truth, predicted, measure, weight)
    return MethodScore(float(f.mean()), pulls.mean(axis=1), 1.0)


def score_sets(truth: Any, predicted: Any, sets: Any, measure: Measure) -> MethodScore:
    """Score predictions of many sets of rows: the mean of their macro F.

    The sets overlap; n rows hold no more than n / size independent ones.
    """
    pairs = zip(sets, predicted, strict=True)
    values = np.array([f_and_influences(truth[rows], p, measure)[0].mean() for rows, p in pairs])
    independent = max(len(truth) / len(sets[0]), 1.0)
    spread = (len(values) * independent) ** -0.5
    return MethodScore(float(values.mean()), values - values.mean(), spread)


class Choice(NamedTuple):
    """The method to use, why, and those that cannot be told apart from it.

    The 95 % interval of the paired difference of `close` methods contains 0.
    """

    chosen: str
    reason: str
    close: tuple[str, ...]


def choose(scores: Mapping[str, MethodScore], guarantees: str | None = None) -> Choice:
    """Return the choice among methods scored on the same rows.

    The blend is used unless another method leads it by more than 1.96 standard errors (one that the
    user added by more than one), and is not led in turn. Without a blend it is expected F that must
    be led; without both, a method with one model and one threshold that is not led is used.
    docs/background/method-study.md measures the regret of this rule. The method that `guarantees`
    what was asked for is used wherever it takes part.
    """
    best = max(scores, key=lambda name: scores[name].value)
    safe = next((name for name in SAFE if name in scores), None)
    simple = [name for name in _simple(scores) if not _leads(scores, best, name)]
    chosen = safe or next(iter(simple), best)
    while safe and (leaders := [name for name in scores if _leads(scores, name, chosen)]):
        # A method that the user added needs a smaller lead, so it may be led in turn.
        chosen = max(leaders, key=lambda name: scores[name].value)
    if guarantees is not None and guarantees in scores:
        chosen = guarantees
    close = tuple(
        name
        for name, score in scores.items()
        if abs(score.value - scores[chosen].value) <= CLEAR_LEAD * score.std_error(scores[chosen])
    )
    reason = f"{chosen} is used: its guarantee needs no calibrated probabilities."
    if chosen != guarantees:
        reason = _reason(scores, chosen, best, safe, close)
    return Choice(chosen, sentence(reason), close)


def _simple(scores: Mapping[str, MethodScore]) -> list[str]:
    """Return the methods with one model and one threshold, those with the highest score first."""
    found = [n for n in scores if n in OWN_NAMES and OWN_NAMES[n].rests_on == "scores"]
    return sorted(found, key=lambda name: -scores[name].value)


def _leads(scores: Mapping[str, MethodScore], name: str, other: str) -> bool:
    """Whether a method leads another one clearly; one that the user added needs a smaller lead."""
    clear = CLEAR_LEAD if name in OWN_NAMES else 1.0
    lead = scores[name].value - scores[other].value
    return lead > clear * scores[name].std_error(scores[other])


def _reason(
    scores: Mapping[str, MethodScore], chosen: str, best: str, safe: str | None, close: Any
) -> str:
    """Return why the method was chosen, and which of those as good is the simplest to deploy."""
    behind = scores[best].value - scores[chosen].value
    error = scores[chosen].std_error(scores[best])
    clearly = f"than {CLEAR_LEAD:.2f} standard errors"
    lead = f"{best} scored higher by {behind:.4f}, no more {clearly} ({error:.4f} each)"
    if chosen == best:
        lead = f"{chosen} scored highest, {'but by no' if len(close) > 1 else 'by'} more {clearly}"
    elif f"{behind:.4f}" == "0.0000":
        lead = f"{best} and {chosen} scored equal to four digits"
    why = ""
    if chosen not in OWN_NAMES:
        why = "" if chosen == best else f"; {chosen}, which you added, leads our own choice"
    elif len(close) > 1 and chosen == safe:
        known = [OWN_NAMES[name] for name in close if name in OWN_NAMES]
        lost = ", ".join(f"{m.name} {m.regret:.1f}" for m in known if m.regret is not None)
        why = (
            f"; among methods this close, {chosen} lost least on the 116 real data sets of "
            "docs/background/method-study.md (mean points of F1 behind the best single method: "
            f"{lost})"
        )
    elif chosen != best:
        why = f"; {chosen} leads {safe}, our usual choice"
        if safe is None:
            why = f"; among methods this close, {chosen} is the simplest to deploy"
    simple = [name for name in _simple(scores) if name in close]
    simplest = ""
    if simple and chosen not in simple:
        simplest = f" The simplest of them to deploy is {simple[0]}: one model, one threshold."
    return f"{lead}{why}.{simplest}"


def sentence(text: str) -> str:
    """Return text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def miscalibration(truth: Bools, proba: Floats) -> str:
    """Return how probabilities are wrong: in the number of positives, or for single rows.

    The text is empty where two tests see nothing: of the total, and Spiegelhalter's (1986).
    """
    error, variance = truth - proba, proba * (1 - proba)

    def far(a: Any) -> bool:
        """Whether the sum of a (truth - p) is three standard errors or more from 0."""
        return bool(abs(np.sum(a * error)) >= 3.0 * max(np.sqrt(np.sum(a**2 * variance)), 1e-12))

    expected, there = how_many(round(proba.sum()), "positive"), how_many(truth.sum(), "positive")
    if far(1.0) and expected != there:
        return f"they predict {expected}, but there are {truth.sum():,}"
    if not far(1.0) and not far(1 - 2 * proba):
        return ""
    squares = f"their mean squared error is {np.mean(error**2):.4g}"
    return f"{squares}, and would be {variance.mean():.4g} if they were right"
