"""Text of comparisons: the reason for a choice, notes about the data, and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.validation import how_many
from argmaxf.comparison.cross_validation import CrossValidation, advice_silenced
from argmaxf.comparison.methods import METHODS, OWN_NAMES
from argmaxf.comparison.ranking import (
    CLEAR_LEAD,
    Choice,
    EvaluationSets,
    MethodScore,
    Prediction,
    total_error,
)
from argmaxf.constraints import format_cost
from argmaxf.estimators.shift import Distance
from argmaxf.measures import Interval

FEW_EVALUATED = 100  # positives below which a tuned threshold is unstable


def reason(choice: Choice) -> str:
    """Return why the method was chosen."""
    chosen, others = choice.chosen, [name for name in choice.close if name != choice.chosen]
    if choice.guaranteed:
        return _sentence(f"{chosen} is used: its guarantee needs no calibrated probabilities.")
    if chosen == choice.best:
        by = "but by no more than" if others else "by more than"
        return _sentence(f"{chosen} scored highest, {by} {CLEAR_LEAD:.2f} standard errors.")
    by, error = f"{choice.behind[chosen]:.4f}", f"{choice.std_error[chosen]:.4f}"
    within = f"no more than {CLEAR_LEAD:.2f} standard errors ({error} each)"
    lead = f"{choice.best} scored higher by {by}, {within}"
    if float(by) == 0.0:
        lead = f"{choice.best} and {chosen} scored equal to four digits"
    if chosen not in OWN_NAMES:
        why = f"{chosen}, which you added, leads our own choice."
    elif chosen != choice.safe:
        why = f"{chosen} leads {choice.safe}, our usual choice."
    else:
        why = f"of methods so close, {chosen} lost least on real data."
    return _sentence(f"{lead}; {why}")


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def notes(truth: Bools, proba: Floats | None, choice: Choice) -> Iterator[str]:
    """Yield notes about the data: few positives, wrong probabilities."""
    positives = truth.sum(axis=0)
    fewest = int(positives[positives > 0].min())
    if fewest < FEW_EVALUATED:
        of = " of the rarest label" if len(positives) > 1 else ""
        only = f"{'is' if fewest == 1 else 'are'} only {how_many(fewest, 'positive')}"
        yield f"There {only}{of}: thresholds, and the scores above, would differ on other rows."
    if proba is None:
        yield "The classifier has no predict_proba; its scores were calibrated for expected F."
    elif choice.trusted:
        yield "The classifier's own probabilities agree with the held-out labels."
    else:
        yield (
            "The classifier's own probabilities do not agree with the held-out labels "
            f"({_disagreement(truth, proba)}); calibrate them before you use them for anything "
            "else."
        )


def _disagreement(truth: Bools, proba: Floats) -> str:
    """Return how probabilities are wrong: in the number of positives, or for single rows."""
    positives = int(truth.sum())
    expected, there = how_many(round(proba.sum()), "positive"), how_many(positives, "positive")
    if total_error(truth, proba) >= 3.0 and expected != there:
        return f"they expect {expected}, there are {positives:,}"
    error, right = np.mean((truth - proba) ** 2), np.mean(proba * (1 - proba))
    return f"their mean squared error is {error:.4g}, and would be {right:.4g} if they were right"


def guarantee_notes(cv: CrossValidation, chosen: str) -> list[str]:
    """Say what the chosen method guarantees, with what confidence, and its cost."""
    settings = cv.settings
    if settings.confidence_level is None:
        return []
    method = next(m for m in cv.methods if m.name == chosen)
    with advice_silenced():
        made = cv.learn(method, cv.held_out)
        if not method.joint:
            found = made.guarantee_
            return [
                f"guaranteed: {each}" for each in (found if isinstance(found, list) else [found])
            ]
        level = made.confidence_level
        held = f" with probability {level:g}, if the probabilities are right" if level else ""
        limits = ("min_precision", "min_recall", "max_selected", "confidence_level")
        free = copy(made).set_params(**dict.fromkeys(limits))
        rows = cv.table[cv.held_out]
        cost = np.mean(free.decide(rows).expected - made.decide(rows).expected)
    said = f"; for the held-out rows {format_cost(float(cost))} expected {settings.objective.title}"
    known = "" if np.isnan(cost) else said  # unknown where probabilities are known to be wrong
    return [f"guaranteed: {settings.constraints} in each batch{held}{known}"]


def rate_notes(cv: CrossValidation) -> list[str]:
    """Say at which rate methods were compared, where it is not that of training."""
    if cv.settings.deploy_rate is None:
        return []
    if cv.prior.by_batch:
        return ["Compared at the rate of training; each batch will be moved to its own rate."]
    rates = ", ".join(f"{rate:g}" for rate in cv.prior.rates(cv.scores))
    return [f"Compared on held-out rows weighted to the target rate: {rates}."]


def scale_notes(
    sets: EvaluationSets, predictions: Sequence[Prediction], tuned: MethodScore
) -> Iterator[str]:
    """Say where the folds' scores differ, and selecting one share of rows in each does better.

    Rows are assigned to folds at random, so shares are alike; where scores are not, the models
    differ, as those of naive Bayes do: each constant feature of a class moves all of its scores.
    """
    cv = sets.cv
    own_models = cv.test is None and not isinstance(cv.estimator, FrozenEstimator)
    random = isinstance(cv.settings.cv, int | None) and cv.groups is None
    alone = cv.labels.kind != "multiclass" and cv.settings.confidence_level is None
    if not (sets.whole and random and alone and own_models):
        return
    share = np.mean(np.concatenate([each.selected for each in predictions]), axis=0)
    scores = [each.scores for each in predictions if each.scores is not None]
    by_rank = sets.score([Prediction(_top(each, share), None) for each in scores])
    better = by_rank.value - tuned.value > CLEAR_LEAD * by_rank.std_error(tuned)
    if not better or not any(_apart(scores, fold).matters for fold in range(len(scores))):
        return
    also = [m.name for m in cv.methods if m.key in ("expected", "blend")]
    are = "are" if len(also) > 1 else "is"
    low = (
        f" For the same reason {listed(also)} {are} rated low here; in use each model is "
        "calibrated by itself."
    )
    f, name = cv.settings.objective.title, METHODS["threshold"].name
    yield (
        f"The models of the {len(predictions)} folds do not score on one scale, and no threshold "
        f"suits them all: {name} reaches {f} {tuned.value:.3f}, where selecting one share of rows "
        f"in each fold would reach {by_rank.value:.3f}. In use it thresholds the scores of one "
        f"model, and may do better or worse than here.{low if also else ''}"
    )


def _apart(scores: Sequence[Floats], fold: int) -> Distance:
    """Return how far the scores of one fold are from those of the others."""
    others = np.concatenate([each for i, each in enumerate(scores) if i != fold])
    return Distance.between(scores[fold], others, comparisons=len(scores))


def _top(scores: Floats, share: Floats) -> Bools:
    """Return the highest scores of each label, this share of them."""
    rank = np.argsort(np.argsort(-scores, axis=0, kind="stable"), axis=0, kind="stable")
    return np.asarray(rank < np.round(share * len(scores)))


def listed(names: Sequence[str], word: str = "and") -> str:
    """Return names as people list them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    head, last = ", ".join(names[:-1]), names[-1]
    return f"{head} {word} {last}" if head else last


def shown(interval: Interval, form: str = ".3f") -> str:
    """Return a value with its interval.

    >>> shown(Interval(0.25, 0.5, 0.75))
    '0.500 [0.250, 0.750]'
    """
    return f"{interval.value:{form}} [{interval.low:{form}}, {interval.high:{form}}]"


def aligned(rows: Sequence[Sequence[Any]], right: Sequence[bool]) -> list[str]:
    """Return rows of cells as lines with aligned columns."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if side else cell.ljust(width)
            for cell, width, side in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]
