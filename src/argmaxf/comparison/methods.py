"""The methods that can be compared: one row for each.

A method added here takes part in `compare`, in `AutoFClassifier` and in the command.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

from sklearn.base import clone

from argmaxf._base.validation import check_choice
from argmaxf.constraints import Constraints
from argmaxf.estimators.blend_f import BlendFClassifier, in_place_of_last
from argmaxf.estimators.cost_sensitive_f import CostSensitiveFClassifier
from argmaxf.estimators.expected_f import ExpectedFClassifier
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
