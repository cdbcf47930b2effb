"""Rules that choose a method by what was held out, and what they lose on the test rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from argmaxf.comparison.methods import MethodScore, choose, score_rows
from argmaxf.measures import FBeta
from benchmarks.choosing.labels import Trial
from benchmarks.choosing.methods import METHODS

SAFE = "blended F"
VOTE = "majority vote"
CHALLENGERS = ("expected F", "trained for F")
SINGLE = ("threshold 0.5", "tuned threshold", "expected F", "trained for F")


@dataclass(frozen=True)
class Seen:
    """A trial as a rule sees it: each method rated on the rows held out; and the test F1."""

    trial: Trial
    rated: dict[str, MethodScore]
    test: dict[str, float]

    @classmethod
    def of(cls, trial: Trial) -> Seen:
        """Rate every method as `AutoFClassifier` does."""
        y = trial.y[:, None]
        held_out = {m: score_rows(y, trial.labels[m][0][:, None], FBeta(), None) for m in METHODS}
        return cls(trial, held_out, {m: trial.test_f1(m) for m in trial.labels})


Rule = Callable[[Seen], str]


def unless_led(safe: str, challengers: Sequence[str], lead: float) -> Rule:
    """Take `safe` unless a challenger leads it by so many standard errors of the difference."""

    def rule(seen: Seen) -> str:
        best = max(challengers, key=lambda m: seen.rated[m].value)
        gain = seen.rated[best].value - seen.rated[safe].value
        return best if gain > lead * seen.rated[best].std_error(seen.rated[safe]) else safe

    return rule


def in_use(seen: Seen) -> str:
    """Take what `AutoFClassifier` takes."""
    standard = {m: r for m, r in seen.rated.items() if m in (SAFE, *SINGLE)}
    return choose(standard).chosen


def always(method: str) -> Rule:
    """Take the same method everywhere."""
    return lambda _: method


RULES: dict[str, Rule] = {
    "the blend, unless another method leads by 2 se (in use)": in_use,
    "the same, by 0": unless_led(SAFE, SINGLE, 0.0),
    "the same, by 1": unless_led(SAFE, SINGLE, 1.0),
    "the same, by 3": unless_led(SAFE, SINGLE, 3.0),
    "the blend, unless expected F or trained for F leads by 2 se":
        unless_led(SAFE, CHALLENGERS, 2.0),
    "the vote, unless expected F or trained for F leads by 1 se":
        unless_led(VOTE, CHALLENGERS, 1.0),
    "the same, by 2": unless_led(VOTE, CHALLENGERS, 2.0),
    "expected F, unless any method leads by 2 se": unless_led("expected F", SINGLE, 2.0),
    "the highest held-out score of a single method": unless_led(SINGLE[0], SINGLE, 0.0),
    **{f"always {method}": always(method) for method in (SAFE, VOTE, *SINGLE)},
}  # fmt: skip
IN_USE = next(iter(RULES))
CONTENDERS = tuple(RULES)[:9]  # among which one is chosen when families are left out


def test_scores(rule: Rule, seen: Sequence[Seen]) -> np.ndarray:
    """Return the test F1 of what the rule takes, trial by trial."""
    return np.array([one.test[rule(one)] for one in seen])
