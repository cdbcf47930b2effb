"""From a trial that has been run to the record of it: who stands where, and which to use."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from argmaxf._base.arrays import Bools, Floats
from argmaxf.comparison.choice import REACH, Choice, choose
from argmaxf.comparison.contest import Contest, Rated, Said
from argmaxf.comparison.fits import without_advice
from argmaxf.comparison.learned import learned
from argmaxf.comparison.methods import Method
from argmaxf.comparison.result import Comparison, Evidence, Standing
from argmaxf.comparison.scales import TUNED, off_scale
from argmaxf.comparison.trial import Trial
from argmaxf.comparison.words import notes, reason
from argmaxf.constraints import priced
from argmaxf.empirical.interval import Interval, f_interval
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.scores import last_step
from argmaxf.expected.counts import refuse_many
from argmaxf.measures import GMean
from argmaxf.problem import Problem

NAMES = ("X", "X_test")


def judge(
    trial: Trial,
    set_size: int | None,
    labels: tuple[str, ...],
    names: tuple[str, str] = NAMES,
) -> Comparison:
    """Return the comparison of the methods of a trial, its fits being run."""
    contest = Contest.of(trial, set_size)
    _leave_out_unable(contest)
    with without_advice():
        said = {method.name: contest.said(method) for method in trial.methods}
    rated = {name: contest.rate(each) for name, each in said.items()}
    truth, proba = trial.truth[contest.rows], trial.proba
    proba = None if proba is None else proba[contest.rows]
    choice = choose(rated, truth, proba)
    evidence = _evidence(contest, said, truth, proba) if contest.whole else None
    tables = {} if evidence is None else evidence.predictions
    standings = _Standings(contest, rated, choice, tables, truth)
    return Comparison(
        measure=trial.recipe.chance,
        kind=trial.labels.kind,
        labels=labels,
        rated_on=names[1] if trial.is_test else f"{len(trial.splits)} folds of {names[0]}",
        n_rows=len(truth),
        methods=tuple(standings.of(method) for method in trial.methods),
        chosen=choice.chosen,
        choice=choice,
        reason=reason(choice),
        notes=(
            *promised(trial, choice.chosen),
            *moved(trial),
            *trial.notes,
            *(off_scale(contest, said[TUNED], rated[TUNED]) if TUNED in said else ()),
            *notes(truth, proba, choice),
        ),
        estimator=trial.method(choice.chosen).make(trial.estimator, trial.recipe),
        evidence=evidence,
        prefit=isinstance(last_step(trial.estimator), FrozenEstimator),
        positive=_word(trial.labels),
    )


def _word(labels: Labels) -> str | None:
    """Return the class that F counts, where it is a word: numbers 0 and 1 speak for themselves."""
    return str(labels.positive) if isinstance(labels.positive, str) else None


def _leave_out_unable(contest: Contest) -> None:
    """Leave out, with a note, methods whose expectation cannot be found for so many rows."""
    trial = contest.trial
    problem = Problem.of(measure=trial.recipe.chance)
    bounded = isinstance(problem.measure, GMean) and trial.recipe.confidence_level is None
    able = [method for method in trial.methods if method.rests_on in ("scores", "rows")]
    if bounded or not problem.needs_items or not able:
        return
    try:
        refuse_many(contest.batch, problem.measure)
    except ValueError as error:
        unable = [method.name for method in trial.methods if method not in able]
        trial.notes += [f"{name} was left out: {error}" for name in unable]
        trial.methods = able


def _evidence(
    contest: Contest, said: Mapping[str, list[Said]], truth: Bools, proba: Floats | None
) -> Evidence:
    """Return the rows as every method saw them, in order."""
    selected = {name: [each.selected for each in sets] for name, sets in said.items()}
    scores = {
        name: [each.scores for each in sets if each.scores is not None]
        for name, sets in said.items()
    }
    return Evidence(
        truth,
        proba,
        {name: contest.in_order(tables) for name, tables in selected.items()},
        {name: contest.in_order(tables) for name, tables in scores.items() if tables},
    )


def moved(trial: Trial) -> list[str]:
    """Say at which rate methods were compared, where it is not that of training."""
    if trial.recipe.deploy_rate is None:
        return []
    if trial.deployed.by_batch:
        return ["Compared at the rate of training; each batch will be moved to its own rate."]
    rates = ", ".join(f"{rate:g}" for rate in trial.deployed.rates(trial.scores))
    return [f"Compared on held-out rows weighted to the rate where it will predict: {rates}."]


def promised(trial: Trial, chosen: str) -> list[str]:
    """Say what the chosen method promises, with what confidence, and what it costs."""
    recipe = trial.recipe
    if recipe.confidence_level is None:
        return []
    with without_advice():
        made = learned(trial, trial.method(chosen), trial.held_out)
        promises = getattr(made, "guarantee_", None)
        if promises is None:  # expected F promises for each batch anew
            kept, cost = _level(made), _cost_here(made, trial)
            return [f"promised: {recipe.constraints} in each batch{kept}{cost}"]
    each = promises if isinstance(promises, list) else [promises]
    return [f"promised: {promise}" for promise in each]


def _level(made: Any) -> str:
    """Say how surely expected F keeps its promise; a rate alone is kept whatever is true."""
    level = made.confidence_level
    return "" if level is None else f" with probability {level:g}, if the probabilities are right"


def _cost_here(made: Any, trial: Trial) -> str:
    """Say what the promise of expected F costs on the rows held out, taken as one batch."""
    free = copy(made).set_params(
        **dict.fromkeys([*trial.recipe.constraints.given(), "confidence_level"])
    )
    rows = trial.scores[trial.held_out]
    cost = np.mean(free.decide(rows).expected - made.decide(rows).expected)
    if np.isnan(cost):  # the probabilities are known to be off
        return ""
    return f"; for the rows held out {priced(float(cost))} expected {trial.recipe.chance.title}"


@dataclass(frozen=True)
class _Standings:
    """What the standing of each method is made from."""

    contest: Contest
    rated: Mapping[str, Rated]
    choice: Choice
    tables: Mapping[str, Bools]
    truth: Bools

    def of(self, method: Method) -> Standing:
        rated, chosen = self.rated[method.name], self.rated[self.choice.chosen]
        return Standing(
            method=method,
            score=self._score(method.name),
            behind=self.choice.behind[method.name],
            std_error=self.choice.std_error[method.name],
            difference=_around(rated.value - chosen.value, rated.std_error(chosen)),
            counts=_counts(self.truth, self.tables[method.name]) if self.tables else None,
        )

    def _score(self, name: str) -> Interval:
        """Return F with its interval: exact enough for few positives where rows count alike."""
        if not self.contest.whole or self.contest.weight is not None:
            return _around(self.rated[name].value, self.rated[name].std_error())
        measure = self.contest.trial.recipe.chance
        return f_interval(self.truth, self.tables[name], measure=measure, average="macro")


def _around(value: float, std_error: float) -> Interval:
    return Interval(value - REACH * std_error, value, value + REACH * std_error)


def _counts(truth: Bools, table: Bools) -> dict[str, int]:
    cells: dict[str, Any] = {
        "tp": truth & table,
        "fp": ~truth & table,
        "fn": truth & ~table,
        "tn": ~truth & ~table,
    }
    return {name: int(np.sum(cell)) for name, cell in cells.items()}
