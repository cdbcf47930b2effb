"""Both approaches on one set of data: which to use, and why, as a record."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from argmaxf.empirical.interval import Interval, f_interval
from argmaxf.empirical.paired import f_difference
from argmaxf.estimators.report import choose, rate_rows
from argmaxf.report.contest import (
    Bools,
    Contest,
    Fit,
    Floats,
    Options,
    names_of,
    trained,
    wrappers,
)
from argmaxf.report.models import behind_preprocessing, make_classifier
from argmaxf.report.tables import Rows
from argmaxf.validation import check_beta

Track = Callable[[list[Fit]], Iterable[Fit]]

ABOUT = {
    "ML^.5": "the classifier as it is: probability of at least 0.5",
    "ML^δ": "threshold tuned on out-of-fold scores",
    "ML^E": "highest expected F for the batch as a whole",
    "F^δ": "linear model trained for F itself, threshold tuned",
    "SVMperf": "linear model trained for F by margin, threshold tuned",
    "cost": "classes weighted by cost, best of several costs",
}


@dataclass(frozen=True)
class Method:
    """How one method did: F with its interval, the paired difference to the one in use, counts."""

    name: str
    score: Interval
    difference: Interval
    tp: int
    fp: int
    fn: int
    tn: int


@dataclass(frozen=True)
class Comparison:
    """The methods compared, the one to use and why, and the rows it was seen on.

    `truth`, `proba` and each of `predictions` have one row for each row rated, and one column for
    each label; `names` are the labels.
    """

    options: Options
    names: tuple[str, ...]
    kind: str
    rated_on: str
    truth: Bools
    proba: Floats
    predictions: Mapping[str, Bools]
    methods: tuple[Method, ...]
    chosen: str
    reason: str
    notes: tuple[str, ...]

    @property
    def method(self) -> Method:
        """The method to use."""
        return next(m for m in self.methods if m.name == self.chosen)


def compare(
    train: Rows, test: Rows | None = None, options: Options | None = None, *, track: Track = iter
) -> Comparison:
    """Compare the methods on `test`, or on the folds of `train` where there is none.

    `track` goes through the model fits, and may show how far they are. Cost: one fit of the
    classifier, and one of each method that trains a model of its own, for each fold; with `test`
    one more of each. Everything else is linear in the rows.
    """
    options = options or Options()
    check_beta(options.beta)
    contest = Contest.of(train, test, options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for fit in track(contest.fits()):
            fit.run()
        comparison = _judge(contest)
        contest.look_for_shift(comparison.chosen)
    warned = dict.fromkeys(str(w.message) for w in caught)
    return replace(comparison, notes=(*comparison.notes, *warned))


def fit_chosen(comparison: Comparison, train: Rows) -> Any:
    """Return the method to use, fitted on all training rows."""
    options = comparison.options
    pipeline = behind_preprocessing(train.X, make_classifier(options.estimator, options.seed))
    wrapping, name = wrappers(options), comparison.chosen
    if name in wrapping:
        return wrapping[name](pipeline).fit(train.X, train.y)
    return trained(train, options)[name].fit(train.X, train.y)


def _judge(contest: Contest) -> Comparison:
    test, options, predictions = contest.test, contest.options, contest.predictions()
    rows = contest.train if test is None else test
    truth = contest.labels.columns(rows.y)
    proba = contest.scores if contest.test_scores is None else contest.test_scores
    rated = {name: rate_rows(truth, p, options.beta, None) for name, p in predictions.items()}
    verdict = choose(rated, truth, proba)
    reference = predictions[verdict.chosen]
    methods = [_method(name, truth, p, reference, options) for name, p in predictions.items()]
    return Comparison(
        options=options,
        names=names_of(contest.train, contest.labels),
        kind=contest.labels.kind,
        rated_on=test.name if test else f"{options.n_folds} folds of {contest.train.name}",
        truth=truth,
        proba=proba,
        predictions=predictions,
        methods=tuple(methods),
        chosen=verdict.chosen,
        reason=verdict.reason,
        notes=(*_left_out(contest.train), *verdict.notes),
    )


def _method(name: str, truth: Bools, p: Bools, reference: Bools, options: Options) -> Method:
    tp, fp, fn = (int(np.sum(a)) for a in (truth & p, ~truth & p, truth & ~p))
    return Method(
        name=name,
        score=f_interval(truth, p, beta=options.beta, average="macro"),
        difference=f_difference(truth, p, reference, beta=options.beta),
        tp=tp,
        fp=fp,
        fn=fn,
        tn=truth.size - tp - fp - fn,
    )


def _left_out(train: Rows) -> tuple[str, ...]:
    if not train.left_out:
        return ()
    columns = ", ".join(train.left_out)
    return (f"Columns that are neither numbers nor categories were left out: {columns}.",)
