"""Methods that train no model of their own, made from held-out scores of the one they share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from argmaxf._base.arrays import Ints
from argmaxf.comparison.fits import LINEAR, without_advice
from argmaxf.comparison.methods import METHODS, Method
from argmaxf.comparison.trial import Trial
from argmaxf.estimators.calibration import settled
from argmaxf.estimators.heldout import HeldOut
from argmaxf.estimators.labels import constants_said
from argmaxf.estimators.scores import GivenScores


def learned(trial: Trial, method: Method, rows: Any) -> Any:
    """Return a method that trains no model, learned from held-out scores of some rows."""
    if method.members:
        parts = [_member(trial, trial.method_of(key), rows) for key in method.members]
        return method.make(trial.estimator, trial.recipe)._of(trial.labels, parts)
    given = GivenScores(trial.labels, trial.kinds, settled(trial.estimator))
    return _learn(trial, method, given, rows)


def _member(trial: Trial, method: Method, rows: Any) -> Any:
    """Return a method that is blended: expected F by its own scores, calibrated."""
    if method.wraps:
        return learned(trial, method, rows)
    given = GivenScores(trial.labels, LINEAR, settled=False, first=len(trial.kinds))
    return _learn(trial, METHODS["expected"], given, rows)


def _learn(trial: Trial, method: Method, given: GivenScores, rows: Any) -> Any:
    """Return a method that learned from scores that are given."""
    weight = None if trial.weight is None else trial.weight[rows]
    recipe = replace(trial.recipe, cv=_folds_of(trial, rows))
    fresh = method.make(FrozenEstimator(given), recipe)
    return fresh.fit(trial.table[rows], trial.target[rows], sample_weight=weight)


def _folds_of(trial: Trial, rows: Any) -> list[tuple[Ints, Ints]]:
    """Return the folds that some rows were held out in, by their places among them."""
    parts = [np.flatnonzero(np.isin(rows, part)) for _, part in trial.splits]
    places = np.arange(len(rows))
    return [(np.setdiff1d(places, part), part) for part in parts if len(part)]


def fitted(trial: Trial, method: Method) -> Any:
    """Return a method fitted on all rows; one that trains no model needs no more fits."""
    if method.members:
        keys, places = method.members, (_heldout(trial), _linear_heldout(trial))
        with without_advice():
            members = [
                _member(trial, trial.method_of(key), trial.held_out)._put_on(place)
                for key, place in zip(keys, places, strict=True)
            ]
        return method.make(trial.estimator, trial.recipe)._of(trial.labels, members)
    if method.wraps:
        with without_advice():
            return learned(trial, method, trial.held_out)._put_on(_heldout(trial))
    classifier = method.make(trial.estimator, trial.recipe)
    with constants_said():
        return classifier.fit(trial.X, trial.target, **trial.params_for(classifier))


def _heldout(trial: Trial) -> HeldOut:
    """What the classifiers of the folds said of the rows they had not seen."""
    assert trial.model is not None
    if isinstance(trial.estimator, FrozenEstimator):
        parts = [trial.held_out]
    else:
        parts = [part for _, part in trial.splits]
    return HeldOut(
        trial.estimator,
        trial.model,
        trial.models,
        parts,
        trial.kinds,
        trial.scores,
        trial.labels.columns(trial.target),
        trial.weight,
    )


def _linear_heldout(trial: Trial) -> HeldOut:
    """What the linear models of the folds said of the rows they had not seen."""
    return replace(
        _heldout(trial),
        estimator=trial.linear_models[0].estimator,
        models=trial.linear_models,
        parts=[part for _, part in trial.splits],
        kinds=LINEAR,
        scores=trial.linear_scores,
    )
