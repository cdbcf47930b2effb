"""The methods that can be compared, one row for each, and the rule that chooses one of them.

A method added here takes part in `compare`, in `AutoFClassifier` and in the command.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.validation import check_choice, how_many
from argmaxf.constraints import Constraints
from argmaxf.empirical.interval import f_and_influences
from argmaxf.estimators.cost_sensitive_f import CostSensitiveFClassifier
from argmaxf.estimators.expected_f import BlendFClassifier, ExpectedFClassifier, in_place_of_last
from argmaxf.estimators.linear_f import MarginFClassifier, SoftFClassifier
from argmaxf.estimators.meta import PlainClassifier
from argmaxf.estimators.scores import last_step
from argmaxf.estimators.threshold_f import ThresholdFClassifier
from argmaxf.measures import FBeta, Measure, Ratio


@dataclass(frozen=True)
class Method:
    """One way from training rows to predictions.

    Attributes
    ----------
    key : str
        Its name in code: `compare(methods=["threshold", "expected"])`.
    name : str
        Its display name.
    symbol : str
        Its name in the paper; empty for methods that are not in it.
    about : str
        What it does, in one line.
    rests_on : str
        `"probabilities"`, `"scores"` of which only the order counts, `"rows"` on which it trains a
        model of its own, or `"others"`: it blends other methods.
    build : callable
        The class of the classifier, or of an added method the classifier itself.
    standard : bool
        Whether it takes part unless methods are named.
    linear : bool
        Whether it trains a linear model, which needs numeric features.
    measures : type
        The kind of measures it can be made for.
    members : tuple of str
        Keys of the methods whose probabilities it blends.
    added : bool
        Whether the user added it; it then brings its own preprocessing.
    adapts : bool
        Whether it takes constraints with a confidence level, and rates estimated from a batch.
    regret : float or None
        Points of F1 that it lost on average to the best single method of each data set, over the
        116 real data sets of docs/background/method-study.md.
    """

    key: str
    name: str
    symbol: str
    about: str
    rests_on: str
    build: Any
    standard: bool = True
    linear: bool = False
    measures: Any = Measure
    members: tuple[str, ...] = ()
    added: bool = False
    adapts: bool = False
    regret: float | None = None

    @property
    def wraps(self) -> bool:
        """Whether it decides by held-out scores, and trains no model of its own."""
        return self.rests_on != "rows"

    @property
    def joint(self) -> bool:
        """Whether it decides the rows of a batch jointly, by probabilities."""
        return self.rests_on in ("probabilities", "others")

    def make(self, auto: Any) -> Any:
        """Return the method for the classifier of an `AutoFClassifier`, not fitted.

        One that trains its own model takes the place of the classifier at the end of a pipeline.
        """
        if self.added:
            return clone(self.build)
        taken, limits = signature(self.build).parameters, Constraints.of(auto.constraints).given()
        rate = limits.get("max_selected_rate")
        most = None if rate is None else float(rate)  # a whole number would be that many rows
        given = auto.get_params(deep=False) | limits
        given |= {"constraints": limits or None, "max_selected": most}
        estimator = given.pop("estimator")
        if self.joint and not {"min_precision", "min_recall"} & limits.keys():
            given["confidence_level"] = None  # a rate always holds in a batch
        options = {name: value for name, value in given.items() if name in taken}
        if self.wraps:
            return self.build(estimator, **options)
        own = [last_step(estimator)] if "estimator" in taken else []
        return in_place_of_last(estimator, self.build(*own, **options))


# fmt: off
METHODS = {method.key: method for method in (  # the simplest to deploy come first
    Method("plain", "threshold 0.5", "ML^.5",
           "the classifier as it is: probability of at least 0.5",
           "scores", PlainClassifier, regret=10.3),
    Method("threshold", "tuned threshold", "ML^δ", "threshold tuned on out-of-fold scores",
           "scores", ThresholdFClassifier, adapts=True, regret=4.1),
    Method("expected", "expected F", "ML^E",
           "highest expected F of the whole batch, by probabilities calibrated on held-out rows",
           "probabilities", ExpectedFClassifier, adapts=True, regret=3.1),
    Method("soft", "trained for F", "F^δ", "linear model trained for F itself, threshold tuned",
           "rows", SoftFClassifier, linear=True, measures=Ratio, regret=3.6),
    Method("blend", "blended F", "",
           "highest expected F by the mean probability of the classifier and the linear model",
           "others", BlendFClassifier, measures=Ratio, members=("expected", "soft"), regret=0.6),
    Method("uncalibrated", "expected F, uncalibrated", "ML^E",
           "highest expected F by the classifier's probabilities as they are",
           "probabilities", partial(ExpectedFClassifier, calibration=None), standard=False,
           adapts=True),
    Method("margin", "trained for F by margin", "SVMperf",
           "linear model trained for F by margin, threshold tuned",
           "rows", MarginFClassifier, standard=False, linear=True, measures=FBeta),
    Method("cost", "trained with costs", "", "classes weighted by cost, best of several costs",
           "rows", CostSensitiveFClassifier, standard=False, measures=FBeta),
)}
# fmt: on
OWN_NAMES = {method.name: method for method in METHODS.values()}
# Used unless another method leads it clearly: the blend, or expected F without one.
SAFE = (METHODS["blend"].name, METHODS["expected"].name)


def methods_for(methods: Any, measure: Measure) -> list[Method]:
    """Return the methods to compare: those named, and classifiers of the user.

    `methods` is a list of keys and of (name, classifier) pairs, or a dict of classifiers that are
    compared beside the standard methods.
    """
    able = [method for method in METHODS.values() if isinstance(measure, method.measures)]
    standard = [method.key for method in able if method.standard]
    if methods is None or isinstance(methods, Mapping):
        methods = [*standard, *dict(methods or {}).items()]
    if not isinstance(methods, Iterable) or isinstance(methods, str):
        raise ValueError(f"methods must be a list or a dict, got {methods!r}")
    found = [_method(each) for each in methods]
    if not found:
        raise ValueError(f"methods must name at least one of {', '.join(map(repr, METHODS))}")
    keys = {method.key for method in found}
    for method in found:
        if not method.added and method not in able:
            known = ", ".join(repr(each.key) for each in able)
            raise ValueError(f"methods for {measure} are {known}; got {method.key!r}")
        if not keys.issuperset(method.members):
            needs = " and ".join(map(repr, method.members))
            raise ValueError(f"methods must also name {needs}, which {method.key!r} blends")
    return found


def _method(given: Any) -> Method:
    """Return the method of a key, or of a (name, classifier) pair."""
    if isinstance(given, str):
        return METHODS[check_choice("methods", given, tuple(METHODS))]
    if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str)):
        raise ValueError(f"methods must hold names and (name, classifier) pairs, got {given!r}")
    name, classifier = given
    if not hasattr(classifier, "fit"):
        raise ValueError(f"methods must have a classifier for {name!r}, got {classifier!r}")
    if name in METHODS or name in OWN_NAMES:
        raise ValueError(f"methods must have other names than argmaxf's own, got {name!r}")
    about = f"your {type(classifier).__name__}"
    return Method(name, name, "", about, "rows", classifier, added=True)


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
        lost = ", ".join(f"{m.regret:.1f} for {m.name}" for m in known if m.regret is not None)
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
