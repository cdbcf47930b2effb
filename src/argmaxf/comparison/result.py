"""The result of a comparison: the rank of each method, the one to use, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from argmaxf._base.arrays import Bools, Floats
from argmaxf.comparison.cross_validation import CrossValidation, advice_silenced
from argmaxf.comparison.messages import (
    aligned,
    guarantee_notes,
    listed,
    notes,
    rate_notes,
    reason,
    scale_notes,
    shown,
)
from argmaxf.comparison.methods import METHODS, Method, Settings
from argmaxf.comparison.ranking import CLEAR_LEAD, Choice, EvaluationSets, choose
from argmaxf.empirical.interval import f_interval
from argmaxf.estimators.scores import last_step
from argmaxf.expected.values import expected_f
from argmaxf.measures import Interval, Measure


@dataclass(frozen=True)
class Standing:
    """The result of one method.

    Attributes
    ----------
    method : Method
        The method.
    score : Interval
        Its F with a 95 % interval.
    behind : float
        How far it is behind the best.
    std_error : float
        The standard error of that difference, paired over the same rows.
    difference : Interval
        Its F minus that of the chosen method, paired, with a 95 % interval.
    counts : dict of str to int, or None
        `tp`, `fp`, `fn` and `tn` over the rows evaluated; None where they come in many sets.
    """

    method: Method
    score: Interval
    behind: float
    std_error: float
    difference: Interval
    counts: Mapping[str, int] | None

    @property
    def name(self) -> str:
        """The display name of the method."""
        return self.method.name


@dataclass(frozen=True)
class Evidence:
    """The rows evaluated: one row of each table for each of them, one column for each label."""

    truth: Bools
    proba: Floats | None  # of the classifier itself
    predictions: Mapping[str, Bools]  # of each method
    scores: Mapping[str, Floats]  # that each method decides by, where it has any


@dataclass(frozen=True)
class Comparison:
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
    choice : Choice or None
        What it was chosen by; None where nothing could be compared.
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
    """

    measure: Measure
    kind: str
    labels: tuple[str, ...]
    rated_on: str
    n_rows: int
    methods: tuple[Standing, ...]
    chosen: str
    choice: Choice | None
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
    def behind(self) -> dict[str, float]:
        """How far each method is behind the best, by name."""
        return {standing.name: standing.behind for standing in self.methods}

    @property
    def std_error(self) -> dict[str, float]:
        """The standard error of each method's difference to the best, by name."""
        return {standing.name: standing.std_error for standing in self.methods}

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
        if self.choice is None:
            return self.reason
        tie = f"Too close to call: {listed(self.choice.close, 'or')} would do. Take"
        where = "on rows it was not trained on"
        if self.prefit and self.method.method.rests_on != "rows":
            where = "on the rows given, which must be new to it"
        known = f"{self.score_name} {shown(self.method.score)} {where}"
        if self.evidence is not None:
            selected = self.evidence.predictions[self.chosen]
            what = "rows" if selected.shape[1] == 1 else "labels"
            count = f"it selects {selected.sum():,} of {selected.size:,} {what}"
            known += f"; {count}{self._expects(self.evidence)}"
        return f"{tie if len(self.choice.close) > 1 else 'Use'} {self.chosen}: {known}."

    def _expects(self, evidence: Evidence) -> str:
        """Return the expected F, where the method rests on probabilities that can be trusted."""
        method, trusted = self.method.method, self.choice is not None and self.choice.trusted
        if not method.joint or self.kind != "binary":
            return ""
        if method.key == "uncalibrated" and not trusted:
            return ""
        selected = evidence.predictions[self.chosen][:, 0]
        proba = evidence.scores[self.chosen][:, 0]
        expected = expected_f(proba, selected, measure=self.measure)
        forecast = f"{expected.mean:.3f} (std {max(0.0, expected.std):.3f})"
        return f", where the model expects {self.measure} {forecast}"

    def __str__(self) -> str:
        rows = [
            (
                "*" if standing.name == self.chosen else "",
                standing.name,
                f"{standing.score.value:.4f}",
                "" if standing.name == self.chosen else _paired(standing.difference),
                standing.method.symbol,
            )
            for standing in self.methods
        ]
        head = ("", "", self.score_name, f"minus {self.chosen} (± 95 %)", "")
        table = aligned([head, *rows], (False, False, True, False, False)) if rows else []
        verdict = [] if self.choice is None else [self.verdict]
        return "\n".join([*table, *verdict, self.reason, *self.notes])

    def _repr_html_(self) -> str:
        """Return the table for a notebook; names are escaped."""
        head = ("", self.score_name, "95 % interval", f"minus {self.chosen}", "95 % interval", "")
        rows = [head, *(self._cells(standing) for standing in self.methods)]
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        text = "".join(
            f"<p>{escape(line)}</p>" for line in (self.verdict, self.reason, *self.notes)
        )
        return f"<table>{body}</table>{text}"

    def _cells(self, standing: Standing) -> tuple[str, ...]:
        score, difference = standing.score, standing.difference
        used = standing.name == self.chosen
        return (
            f"{standing.name}{' *' if used else ''}",
            f"{score.value:.3f}",
            f"{score.low:.3f} – {score.high:.3f}",
            "" if used else f"{difference.value:+.3f}",
            "" if used else f"{difference.low:+.3f} to {difference.high:+.3f}",
            standing.method.symbol,
        )


def _paired(difference: Interval) -> str:
    """Return a difference and half the width of its interval."""
    return f"{difference.value:+.4f} ± {difference.high - difference.value:.4f}"


def _method_that_guarantees(settings: Settings) -> str | None:
    """Return the method whose guarantee of precision and recall holds over draws of the rows.

    That of expected F holds if the probabilities are right, and those learned from few rows are
    not: a guarantee at 90 % held for 60 % of samples of 1,000 rows, by simulation.
    """
    limits = {"min_precision", "min_recall"} & settings.constraints.given().keys()
    return METHODS["threshold"].name if limits and settings.confidence_level else None


def rank(
    cv: CrossValidation, labels: tuple[str, ...], names: tuple[str, str] = ("X", "X_test")
) -> Comparison:
    """Return the comparison after the fits are run; `names` are those of the rows."""
    sets = EvaluationSets.of(cv)
    sets.leave_out_unable()
    with advice_silenced():
        predictions = {method.name: sets.predict(method) for method in cv.methods}
    scores = {name: sets.score(each) for name, each in predictions.items()}
    truth, proba = cv.truth[sets.rows], None if cv.proba is None else cv.proba[sets.rows]
    choice = choose(scores, truth, proba, _method_that_guarantees(cv.settings))
    chosen, tables = scores[choice.chosen], {}
    evidence = None
    if sets.whole:
        tables = {n: sets.in_order([p.selected for p in each]) for n, each in predictions.items()}
        by = {
            n: [p.scores for p in each if p.scores is not None] for n, each in predictions.items()
        }
        decided_by = {n: sets.in_order(each) for n, each in by.items() if each}
        evidence = Evidence(truth, proba, tables, decided_by)
    measure = cv.settings.objective

    def standing(method: Method) -> Standing:
        name, score = method.name, scores[method.name]
        interval = _around(score.value, score.std_error())
        if sets.whole and sets.weight is None:  # valid for few positives too
            interval = f_interval(truth, tables[name], measure=measure, average="macro")
        return Standing(
            method=method,
            score=interval,
            behind=choice.behind[name],
            std_error=choice.std_error[name],
            difference=_around(score.value - chosen.value, score.std_error(chosen)),
            counts=_counts(truth, tables[name]) if tables else None,
        )

    tuned = METHODS["threshold"].name
    positive = cv.labels.positive
    return Comparison(
        measure=measure,
        kind=cv.labels.kind,
        labels=labels,
        rated_on=f"{len(cv.splits)} folds of {names[0]}" if cv.test is None else names[1],
        n_rows=len(truth),
        methods=tuple(map(standing, cv.methods)),
        chosen=choice.chosen,
        choice=choice,
        reason=reason(choice),
        notes=(
            *guarantee_notes(cv, choice.chosen),
            *rate_notes(cv),
            *cv.notes,
            *(scale_notes(sets, predictions[tuned], scores[tuned]) if tuned in scores else ()),
            *notes(truth, proba, choice),
        ),
        estimator=next(m for m in cv.methods if m.name == choice.chosen).make(
            cv.estimator, cv.settings
        ),
        evidence=evidence,
        prefit=isinstance(last_step(cv.estimator), FrozenEstimator),
        positive=str(positive) if isinstance(positive, str) else None,
    )


def _around(value: float, std_error: float) -> Interval:
    return Interval(value - CLEAR_LEAD * std_error, value, value + CLEAR_LEAD * std_error)


def _counts(truth: Bools, table: Bools) -> dict[str, int]:
    cells: dict[str, Any] = {
        "tp": truth & table,
        "fp": ~truth & table,
        "fn": truth & ~table,
        "tn": ~truth & ~table,
    }
    return {name: int(np.sum(cell)) for name, cell in cells.items()}
