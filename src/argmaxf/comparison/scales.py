"""Whether the models of the folds score on one scale, without which no one threshold suits them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.frozen import FrozenEstimator

from argmaxf._base.arrays import Bools, Floats
from argmaxf.comparison.choice import REACH
from argmaxf.comparison.contest import Contest, Rated, Said
from argmaxf.comparison.methods import METHODS, Method
from argmaxf.comparison.words import listed
from argmaxf.estimators.shift import Distance

TUNED = METHODS["threshold"].name
LEARNS = ("expected", "blend")  # curves of calibration, from other models than the one rated


def off_scale(contest: Contest, said: Sequence[Said], tuned: Rated) -> Iterator[str]:
    """Say so where the folds' scores differ, and cutting all at one share of rows does better.

    Rows are dealt to folds by chance, so that shares are alike; where scores are not, the models
    differ, as those of naive Bayes do: each constant feature of a class moves all of its scores.
    """
    if not _can_be_told(contest):
        return
    trial = contest.trial
    share = np.mean(np.concatenate([each.selected for each in said]), axis=0)
    scores = [each.scores for each in said if each.scores is not None]
    by_rank = contest.rate([Said(_top(each, share), None) for each in scores])
    better = by_rank.value - tuned.value > REACH * by_rank.std_error(tuned)
    if better and any(_apart(scores, fold).matters for fold in range(len(scores))):
        f = trial.recipe.chance.title
        yield (
            f"The models of the {len(said)} folds do not score on one scale, and no threshold "
            f"suits them all: {TUNED} reaches {f} {tuned.value:.3f}, where cutting each at one "
            f"share of its rows would reach {by_rank.value:.3f}. In use it cuts the scores of one "
            f"model, and may do better than here, or worse.{_also(trial.methods)}"
        )


def _can_be_told(contest: Contest) -> bool:
    """Whether folds were dealt by chance to models of their own, and each label is cut alone."""
    trial = contest.trial
    one_model = trial.is_test or isinstance(trial.estimator, FrozenEstimator)
    dealt = isinstance(trial.recipe.cv, int | None) and trial.groups is None
    alone = trial.labels.kind != "multiclass" and trial.recipe.confidence_level is None
    return contest.whole and dealt and alone and not one_model


def _also(methods: Sequence[Method]) -> str:
    """Name the methods that learn from the scores of some models how to read those of another."""
    names = [m.name for m in methods if m.key in LEARNS]
    if not names:
        return ""
    are = "are" if len(names) > 1 else "is"
    return (
        f" For the same reason {listed(names)} {are} rated low here; in use each model is "
        "calibrated by itself."
    )


def _apart(scores: Sequence[Floats], fold: int) -> Distance:
    """Return how far the scores of one fold are from those of the others."""
    others = np.concatenate([each for i, each in enumerate(scores) if i != fold])
    return Distance.between(scores[fold], others, looks=len(scores))


def _top(scores: Floats, share: Floats) -> Bools:
    """Return the highest scores of each label, this share of them."""
    rank = np.argsort(np.argsort(-scores, axis=0, kind="stable"), axis=0, kind="stable")
    return np.asarray(rank < np.round(share * len(scores)))
