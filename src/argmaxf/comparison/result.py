"""The result of a comparison: the score of each method, the one to use, and what the data show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.shown import Shown, html_table
from argmaxf._base.validation import how_many
from argmaxf.comparison.cross_validation import (
    TIMED_ROWS,
    CrossValidation,
    advice_silenced,
)
from argmaxf.comparison.methods import (
    CLEAR_LEAD,
    METHODS,
    Method,
    MethodScore,
    choose,
    miscalibration,
    sentence,
)
from argmaxf.constraints import format_cost
from argmaxf.empirical.interval import FEWEST_OF_EACH, f_interval
from argmaxf.estimators.scores import last_step
from argmaxf.estimators.shift import clear_difference
from argmaxf.expected.values import expected_f
from argmaxf.measures import Interval, Measure

TUNED = METHODS["threshold"].name
FEW_EVALUATED = 100  # positives below which a tuned threshold is unstable


@dataclass(frozen=True, repr=False)
class Standing(Shown):
    """The result of one method.

    Attributes
    ----------
    method : Method
        The method.
    score : Interval
        Its F with a 95 % interval.
    difference : Interval
        Its F minus that of the chosen method, paired, with a 95 % interval.
    counts : dict of str to int, or None
        `tp`, `fp`, `fn` and `tn` over the rows evaluated; None where they come in many sets.
    seconds_per_row : float
        How long a prediction takes for each row of a batch of up to 200, with all its models.
    """

    method: Method
    score: Interval
    difference: Interval
    counts: Mapping[str, int] | None
    seconds_per_row: float = field(repr=False)

    def _parts(self) -> Mapping[str, Any]:
        return {**super()._parts(), "method": self.name}

    @property
    def name(self) -> str:
        """The display name of the method."""
        return self.method.name


@dataclass(frozen=True, repr=False)
class Evidence(Shown):
    """The rows evaluated: one row of each table for each of them, one column for each label."""

    truth: Bools
    proba: Floats | None  # of the classifier itself
    predictions: Mapping[str, Bools]  # of each method
    scores: Mapping[str, Floats]  # that each method decides by, where it has any


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Methods compared on rows that no model of theirs was trained on, and the one to use.

    It prints as a table, also in a notebook.

    Attributes
    ----------
    measure : Measure
        What is compared: F_β, or another measure.
    kind : str
        `"binary"`, `"multiclass"` or `"multilabel-indicator"`.
    labels : tuple of str
        The names of the labels.
    rated_on : str
        The rows that the methods were evaluated on.
    n_rows : int
        How many rows those are.
    methods : tuple of Standing
        The result of each method.
    chosen : str
        The display name of the method to use.
    close : tuple of str
        The methods that cannot be told apart from it; empty where nothing could be compared.
    reason : str
        Why it was chosen.
    notes : tuple of str
        What else the data show.
    estimator : estimator
        The method to use, not fitted.
    evidence : Evidence or None
        The rows evaluated, for plots; None where they were not kept.
    prefit : bool
        Whether the classifier came fitted, so that its training rows are not known.
    positive : str or None
        The class that F counts, where the two classes are words.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from argmaxf import compare
    >>> X, y = make_classification(600, weights=[0.9], random_state=0)
    >>> found = compare(X, y, LogisticRegression(), methods=["plain", "threshold"])
    >>> {name: round(f, 2) for name, f in found.scores.items()}
    {'threshold 0.5': 0.89, 'tuned threshold': 0.86}
    """

    measure: Measure
    kind: str
    labels: tuple[str, ...]
    rated_on: str
    n_rows: int
    methods: tuple[Standing, ...]
    chosen: str
    close: tuple[str, ...]
    reason: str
    notes: tuple[str, ...]
    estimator: Any = field(repr=False)
    evidence: Evidence | None = field(repr=False)
    prefit: bool = False
    positive: str | None = None

    @property
    def method(self) -> Standing:
        """The result of the method to use."""
        return next(standing for standing in self.methods if standing.name == self.chosen)

    @property
    def scores(self) -> dict[str, float]:
        """The F of each method, by name."""
        return {standing.name: standing.score.value for standing in self.methods}

    @property
    def beta(self) -> float:
        """The β of F_β; 1 for a measure that has none."""
        return float(getattr(self.measure, "beta", 1.0))

    @property
    def score_name(self) -> str:
        """What is compared: F1, F1 of 'ok' where classes are words, or macro F1 of labels."""
        counted = "" if self.positive is None else f" of {self.positive!r}"
        return ("macro " if len(self.labels) > 1 else "") + self.measure.title + counted

    @property
    def verdict(self) -> str:
        """The method to use and its F, in a sentence or two."""
        if not self.methods:
            return self.reason
        where = "on rows it was not trained on"
        if self.prefit and self.method.method.wraps:
            where = "on the rows given, which must be new to it"
        known = f"{self.score_name} {self.method.score:.3f} {where}"
        predicted = ""
        if self.evidence is not None:
            selected = self.evidence.predictions[self.chosen]
            what = "rows" if selected.shape[1] == 1 else "labels"
            known += f"; it selects {selected.sum():,} of {selected.size:,} {what}"
            predicted = self._predicted(self.evidence)
        others = sentence(listed([name for name in self.close if name != self.chosen]))
        tie = f" {others} performed equally well within the statistical error." if others else ""
        return f"Use {self.chosen}: {known}.{predicted}{tie}"

    def _predicted(self, evidence: Evidence) -> str:
        """Say what F a method that rests on probabilities predicts, and whether it was found."""
        method = self.method.method
        if not method.joint or self.kind != "binary":
            return ""
        selected = evidence.predictions[self.chosen][:, 0]
        expected = expected_f(evidence.scores[self.chosen][:, 0], selected, measure=self.measure)
        forecast = f"{self.measure} {expected.mean:.3f} (std {max(0.0, expected.std):.3f})"
        found = self.method.score
        if found.low - 2 * expected.std <= expected.mean <= found.high + 2 * expected.std:
            return f" Its probabilities predicted {forecast}."
        return (
            f" Its probabilities predicted {forecast}, which these rows contradict: rely on the "
            "measured value, and do not use the probabilities to predict F."
        )

    def __str__(self) -> str:
        table = [("", "", self.score_name, f"minus {self.chosen} (± 95 %)", "")]
        for m in self.methods:
            d, used = m.difference, m.name == self.chosen
            other = "" if used else f"{d.value:+.4f} ± {d.high - d.value:.4f}"
            table.append(("*" * used, m.name, f"{m.score.value:.4f}", other, m.method.symbol))
        lines = [*aligned(table, right=2), self.verdict] if self.methods else []
        return "\n".join([*lines, self.reason, *self.notes])

    def _parts(self) -> Mapping[str, Any]:
        value = {} if not self.methods else {self.score_name: self.method.score}
        known = {"close": self.close, "rated_on": self.rated_on, "n_rows": self.n_rows}
        return {"chosen": self.chosen, **value, **known}

    def _repr_html_(self) -> str:
        """Return the table for a notebook; names are escaped."""
        table: list[tuple[str, ...]] = [("", self.score_name, f"minus {self.chosen}", "")]
        for m in self.methods:
            used = m.name == self.chosen
            other = "" if used else f"{m.difference:+.3f}"
            table.append((m.name + " *" * used, f"{m.score:.3f}", other, m.method.symbol))
        text = (self.verdict, self.reason, *self.notes)
        return html_table(table) + "".join(f"<p>{escape(line)}</p>" for line in text)


def rank(cv: CrossValidation, names: tuple[str, str] = ("X", "X_test")) -> Comparison:
    """Return the comparison after the fits are run; `names` are those of the rows."""
    with advice_silenced():
        predictions = {method.name: cv.predict(method) for method in cv.methods}
    scores = {name: cv.score(selected) for name, (selected, _) in predictions.items()}
    truth, labels, evidence = cv.truth[cv.evaluated], cv.rows.labels, None
    # A guarantee of precision or recall by expected F holds if the probabilities are right. Those
    # learned from few rows are not: at 90 % it held for 60 % of simulated samples of 1,000 rows.
    limits = {"min_precision", "min_recall"} & cv.constraints.given().keys()
    choice = choose(scores, TUNED if limits and cv.guaranteed else None)
    if cv.whole:
        tables = (
            {name: cv.in_order(each[i]) for name, each in predictions.items()} for i in (0, 1)
        )
        evidence = Evidence(truth, cv.proba, *tables)
    with advice_silenced():
        standings = tuple(_standing(cv, m, scores, choice.chosen, evidence) for m in cv.methods)
    chosen = next(method for method in cv.methods if method.name == choice.chosen)
    titles, positive = labels.titles(cv.rows.y), labels.positive
    notes = [
        *guarantee_notes(cv, chosen),
        *rate_notes(cv),
        *cv.notes,
        *scale_notes(cv, predictions, scores),
        *data_notes(truth, cv.proba),
        *interval_notes(standings, titles, truth),
        time_note(cv, standings),
    ]
    return Comparison(
        measure=cv.measure,
        kind=labels.kind,
        labels=titles,
        rated_on=f"{len(cv.splits)} folds of {names[0]}" if cv.test is None else names[1],
        n_rows=len(truth),
        methods=standings,
        **choice._asdict(),
        notes=tuple(notes),
        estimator=chosen.make(cv.auto),
        evidence=evidence,
        prefit=isinstance(last_step(cv.estimator), FrozenEstimator),
        positive=str(positive) if isinstance(positive, str) else None,
    )


def _standing(
    cv: CrossValidation,
    method: Method,
    scores: Mapping[str, MethodScore],
    chosen: str,
    evidence: Evidence | None,
) -> Standing:
    score, other, counts = scores[method.name], scores[chosen], None
    interval = _around(score.value, score.std_error())
    if evidence is not None:
        truth, table = evidence.truth, evidence.predictions[method.name]
        cells = (truth & table, ~truth & table, truth & ~table, ~truth & ~table)
        counts = dict(zip(("tp", "fp", "fn", "tn"), map(int, map(np.sum, cells)), strict=True))
        if cv.weight is None:  # valid for few positives too
            interval = f_interval(truth, table, measure=cv.measure, average="macro")
    difference = _around(score.value - other.value, score.std_error(other))
    seconds = cv.seconds_per_row(cv.fitted[method.name].predict)
    return Standing(method, interval, difference, counts, seconds)


def _around(value: float, std_error: float) -> Interval:
    return Interval(value - CLEAR_LEAD * std_error, value, value + CLEAR_LEAD * std_error)


def data_notes(truth: Bools, proba: Floats | None) -> Iterator[str]:
    """Yield notes about the data: few positives, wrong probabilities."""
    positives = truth.sum(axis=0)
    fewest = int(positives[positives > 0].min())
    if fewest < FEW_EVALUATED:
        of = " of the rarest label" if len(positives) > 1 else ""
        only = f"{'is' if fewest == 1 else 'are'} only {how_many(fewest, 'positive')}"
        yield f"There {only}{of}: thresholds, and the scores above, would differ on other rows."
    if proba is None:
        yield "The classifier has no predict_proba; its scores were calibrated for expected F."
    elif not (wrong := miscalibration(truth, proba)):
        yield "The classifier's own probabilities agree with the held-out labels."
    else:
        yield (
            f"The classifier's own probabilities do not agree with the held-out labels ({wrong}); "
            "calibrate them before you use them for anything else."
        )


def interval_notes(
    standings: Sequence[Standing], labels: Sequence[str], truth: Bools
) -> Iterator[str]:
    """Say which label has too few rows of a class for the intervals."""
    if not all(standing.score.reliable for standing in standings):
        counts = np.stack([truth.sum(axis=0), (~truth).sum(axis=0)])
        kind, rarest = divmod(int(counts.argmin()), len(labels))
        yield (
            "The 95 % intervals may hold less often than stated: "
            f"{labels[rarest]!r} has only {how_many(counts.min(), ('positive', 'negative')[kind])} "
            f"in these rows, and intervals of a macro average need {FEWEST_OF_EACH} of every label."
        )


def time_note(cv: CrossValidation, standings: Sequence[Standing]) -> str:
    """Say how long predictions take, beside the classifier alone."""
    model, kind = cv.held_out.model, next(iter(cv.held_out.tables))
    alone = cv.seconds_per_row(lambda X: model.scores(X, kind))
    each = [f"{m.seconds_per_row / alone:.1f} for {m.name}" for m in standings]
    return (
        f"Time per row, in batches of {TIMED_ROWS}: {1e6 * alone:.2g} µs for the scores of the "
        f"classifier alone. In multiples of this time: {', '.join(each)}."
    )


def guarantee_notes(cv: CrossValidation, method: Method) -> list[str]:
    """Say what the chosen method guarantees, with what confidence, and its cost."""
    if not cv.guaranteed:
        return []
    with advice_silenced():
        made = cv.learn(method, cv.rated)
        if not method.joint:
            found = made.guarantee_ if isinstance(made.guarantee_, list) else [made.guarantee_]
            return [f"guaranteed: {each}" for each in found]
        rows = cv.held_out.take(cv.rated)
        limits = ("min_precision", "min_recall", "max_selected", "confidence_level")
        free = copy(made).set_params(**dict.fromkeys(limits))
        cost = np.mean(free.decide(rows).expected - made.decide(rows).expected)
    level = made.confidence_level
    held = f" with probability {level:g}, if the probabilities are right" if level else ""
    said = format_cost(float(cost), f"expected {cv.measure.title}")
    known = "" if np.isnan(cost) else f"; on the held-out rows this {said}"
    return [f"guaranteed: {cv.constraints} in each batch{held}{known}"]


def rate_notes(cv: CrossValidation) -> Iterator[str]:
    """Say at which rate methods were compared, where it is not that of training."""
    if cv.prior.by_batch:
        yield "Compared at the rate of training; each batch will be corrected to its own rate."
    elif cv.prior.deploy is not None:
        rates = ", ".join(f"{rate:g}" for rate in cv.prior.rates())
        yield f"Compared on held-out rows weighted to the target rate: {rates}."


def scale_notes(
    cv: CrossValidation,
    predictions: Mapping[str, tuple[Bools, Floats]],
    scores: Mapping[str, MethodScore],
) -> Iterator[str]:
    """Say where the folds' scores differ, and selecting one share of rows in each does better.

    Rows are assigned to folds at random, so shares are alike; where scores are not, the models
    differ, as those of naive Bayes do: each constant feature of a class moves all of its scores.
    """
    own_models = cv.test is None and not isinstance(cv.estimator, FrozenEstimator)
    random = isinstance(cv.auto.cv, int | None) and cv.rows.groups is None
    alone = cv.rows.labels.kind != "multiclass" and not cv.guaranteed
    if TUNED not in scores or not (cv.whole and random and alone and own_models):
        return
    (selected, by), tuned = predictions[TUNED], scores[TUNED]
    found = np.split(by, np.cumsum([len(rows) for rows in cv.sets])[:-1])
    share = np.mean(selected, axis=0)
    ranks = [np.argsort(np.argsort(-s, axis=0, kind="stable"), axis=0) for s in found]
    by_rank = cv.score(np.concatenate([rank < np.round(share * len(rank)) for rank in ranks]))
    better = by_rank.value - tuned.value > CLEAR_LEAD * by_rank.std_error(tuned)
    rest = [np.concatenate(found[:i] + found[i + 1 :]) for i in range(len(found))]
    pairs = zip(found, rest, strict=True)
    if not better or not any(clear_difference(*pair, len(found)) for pair in pairs):
        return
    also = [method.name for method in cv.methods if method.key in ("expected", "blend")]
    low = (
        f" For the same reason, {listed(also)} {'are' if len(also) > 1 else 'is'} underestimated "
        "here; in use, each model is calibrated separately."
    )
    yield (
        f"The scores of the {len(found)} fold models are on different scales, so no threshold "
        f"suits them all: {TUNED} reaches {cv.measure.title} {tuned.value:.3f}, but "
        f"selecting the same share of rows in each fold would reach {by_rank.value:.3f}. In use, "
        f"{TUNED} thresholds the scores of one model and may do better or worse than "
        f"here.{low if also else ''}"
    )


def listed(names: Sequence[str]) -> str:
    """Return names as people list them: a, b and c."""
    *head, last = [*names] or [""]
    return f"{', '.join(head)} and {last}" if head else last


def aligned(rows: Sequence[Sequence[str]], right: int) -> list[str]:
    """Return rows of cells as lines with aligned columns, one of them to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    shape = "  ".join(f"{{:{'>' if i == right else '<'}{w}}}" for i, w in enumerate(widths))
    return [shape.format(*row).rstrip() for row in rows]
