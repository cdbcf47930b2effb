"""The methods that can be compared: one row for each, with all that is known about it.

A method added here takes part in `compare`, in `AutoFClassifier` and in the command, and its name,
symbol and sentence appear wherever people look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from argmaxf._base.validation import check_choice
from argmaxf.comparison.recipe import Recipe
from argmaxf.estimators.cost_sensitive import CostSensitiveFClassifier
from argmaxf.estimators.expected import ExpectedFClassifier
from argmaxf.estimators.margin import MarginFClassifier
from argmaxf.estimators.plain import PlainClassifier
from argmaxf.estimators.softf import SoftFClassifier
from argmaxf.estimators.threshold import ThresholdFClassifier
from argmaxf.measures import FBeta, Measure, Ratio


@dataclass(frozen=True)
class Method:
    """One way from training rows to predictions.

    Attributes
    ----------
    key : str
        What it is called in code: `compare(methods=["threshold", "expected"])`.
    name : str
        Its plain name.
    symbol : str
        What the paper calls it; empty for methods it does not have.
    about : str
        What it does, in one line.
    rests_on : str
        `"probabilities"` that it takes at their word, `"scores"` of which only the order counts,
        `"rows"` on which it trains a model of its own, or `"others"`: it blends other methods.
    build : callable
        Makes it, not fitted, from a classifier and a `Recipe`.
    standard : bool
        Whether it takes part unless methods are named.
    linear : bool
        Whether it needs plain numbers: it trains a linear model.
    knows : type
        The kind of measures it can be made for.
    members : tuple of str
        Keys of the methods whose probabilities it blends.
    complete : bool
        Whether it brings its own preprocessing, as a classifier added by the user does.
    promises : bool
        Whether it can keep constraints with a given confidence.
    follows : bool
        Whether it can follow a rate of positives that is only seen in the batch to be predicted.
    """

    key: str
    name: str
    symbol: str
    about: str
    rests_on: str
    build: Callable[[Any, Recipe], Any]
    standard: bool = True
    linear: bool = False
    knows: Any = Measure
    members: tuple[str, ...] = ()
    complete: bool = False
    promises: bool = False
    follows: bool = False

    @property
    def wraps(self) -> bool:
        """Whether it decides on the scores of the classifier, and trains no model of its own."""
        return self.rests_on in ("probabilities", "scores")

    def make(self, estimator: Any, recipe: Recipe) -> Any:
        """Return the method for a classifier, not fitted.

        One that trains its own model takes the place of the classifier at the end of a pipeline.
        """
        if self.rests_on != "rows" or self.complete:
            return self.build(estimator, recipe)
        if not isinstance(estimator, Pipeline):
            return _wanting_weights(self.build(estimator, recipe))
        *steps, (name, last) = clone(estimator).steps
        return Pipeline([*steps, (name, _wanting_weights(self.build(last, recipe)))])


def _wanting_weights(classifier: Any) -> Any:
    """Return a classifier that asks for weights, where scikit-learn routes what is asked for."""
    routed = get_config()["enable_metadata_routing"]
    return classifier.set_fit_request(sample_weight=True) if routed else classifier


def _plain(model: Any, recipe: Recipe) -> Any:
    return PlainClassifier(model, pos_label=recipe.pos_label)


def _threshold(model: Any, recipe: Recipe) -> Any:
    promise: dict[str, Any] = {
        **recipe.constraints.given(),
        "confidence_level": recipe.confidence_level,
    }
    rate = {"deploy_rate": recipe.deploy_rate}
    return ThresholdFClassifier(model, **recipe.goal, **recipe.tuning, **promise, **rate)


def _expected(model: Any, recipe: Recipe) -> Any:
    promise: dict[str, Any] = {**recipe.constraints.given()}
    if promise.keys() - {"max_selected_rate"}:  # a rate always holds
        promise["confidence_level"] = recipe.confidence_level
    rate = {"deploy_rate": recipe.deploy_rate}
    return ExpectedFClassifier(model, **recipe.goal, **recipe.tuning, **promise, **rate)


def _uncalibrated(model: Any, recipe: Recipe) -> Any:
    return ExpectedFClassifier(model, calibrate=None, deploy_rate=recipe.deploy_rate, **recipe.goal)


def _blend(model: Any, recipe: Recipe) -> Any:
    from argmaxf.comparison.blend import BlendFClassifier

    rate = {"deploy_rate": recipe.deploy_rate}
    return BlendFClassifier(model, **recipe.goal, **recipe.tuning, **rate)


def _soft(_: Any, recipe: Recipe) -> Any:
    return SoftFClassifier(**recipe.goal)


def _margin(_: Any, recipe: Recipe) -> Any:
    return MarginFClassifier(**recipe.goal)


def _cost(model: Any, recipe: Recipe) -> Any:
    return CostSensitiveFClassifier(model, **recipe.goal, **recipe.tuning)


METHODS = {
    method.key: method
    for method in (
        Method(
            "plain",
            "cut at 0.5",
            "ML^.5",
            "the classifier as it is: probability of at least 0.5",
            "scores",
            _plain,
        ),
        Method(
            "threshold",
            "tuned threshold",
            "ML^δ",
            "threshold tuned on out-of-fold scores",
            "scores",
            _threshold,
            promises=True,
            follows=True,
        ),
        Method(
            "expected",
            "expected F",
            "ML^E",
            "highest expected F of the whole batch, by probabilities calibrated on held-out rows",
            "probabilities",
            _expected,
            promises=True,
            follows=True,
        ),
        Method(
            "soft",
            "trained for F",
            "F^δ",
            "linear model trained for F itself, threshold tuned",
            "rows",
            _soft,
            linear=True,
            knows=Ratio,
        ),
        Method(
            "blend",
            "blended F",
            "",
            "highest expected F by the mean of the classifier's and the linear model's chances",
            "others",
            _blend,
            knows=Ratio,
            members=("expected", "soft"),
        ),
        Method(
            "uncalibrated",
            "expected F, uncalibrated",
            "ML^E",
            "highest expected F by the classifier's probabilities as they are",
            "probabilities",
            _uncalibrated,
            standard=False,
        ),
        Method(
            "margin",
            "trained for F by margin",
            "SVMperf",
            "linear model trained for F by margin, threshold tuned",
            "rows",
            _margin,
            standard=False,
            linear=True,
            knows=FBeta,
        ),
        Method(
            "cost",
            "trained with costs",
            "",
            "classes weighted by cost, best of several costs",
            "rows",
            _cost,
            standard=False,
            knows=FBeta,
        ),
    )
}


def taking_part(
    keys: Iterable[str] | None, candidates: Mapping[str, Any] | None, measure: Measure
) -> list[Method]:
    """Return the methods named, or those that always take part, and what the user adds to them."""
    knowing = [method for method in METHODS.values() if isinstance(measure, method.knows)]
    if keys is None:
        found = [method for method in knowing if method.standard]
    else:
        found = [METHODS[check_choice("methods", key, tuple(METHODS))] for key in keys]
        _check_named(found)
    for method in found:
        if method not in knowing:
            known = ", ".join(repr(each.key) for each in knowing)
            raise ValueError(f"methods for {measure} are {known}; got {method.key!r}")
    return [*found, *(added_method(*each) for each in checked_candidates(candidates).items())]


def _check_named(methods: Sequence[Method]) -> None:
    """Refuse no methods at all, and a blend without what it blends."""
    if not methods:
        raise ValueError(f"methods must name at least one of {', '.join(map(repr, METHODS))}")
    named = {method.key for method in methods}
    for method in methods:
        if not named.issuperset(method.members):
            needs = " and ".join(map(repr, method.members))
            raise ValueError(f"methods must name {needs} beside {method.key!r}, which blends them")


def checked_candidates(candidates: Any) -> Mapping[str, Any]:
    """Return the classifiers that the user adds, by names that no method of ours has."""
    if candidates is None:
        return {}
    named = isinstance(candidates, Mapping) and all(
        isinstance(name, str) and hasattr(added, "fit") for name, added in candidates.items()
    )
    if not named:
        raise ValueError(f"candidates must be a dict of name: classifier, got {candidates!r}")
    taken = {*METHODS, *(method.name for method in METHODS.values())}
    for name in candidates:
        if name in taken:
            raise ValueError(f"candidates must have names of their own, and {name!r} is a method's")
    return dict(candidates)


def added_method(name: str, classifier: Any) -> Method:
    """Return a classifier that the user adds to the comparison, as a method."""
    kind = type(classifier).__name__
    copy = partial(_copy, classifier)
    return Method(name, name, "", f"your {kind}", "rows", copy, complete=True)


def _copy(classifier: Any, *_: Any) -> Any:
    return clone(classifier)
