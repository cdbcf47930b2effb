"""The comparison as a record: where each method stands, the one to use, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from argmaxf._base.arrays import Bools, Floats
from argmaxf.comparison.choice import Choice
from argmaxf.comparison.methods import Method
from argmaxf.comparison.words import NOTHING, aligned, listed, selection, shown
from argmaxf.empirical.interval import Interval
from argmaxf.expected.values import expected_f
from argmaxf.measures import Measure


@dataclass(frozen=True)
class Standing:
    """Where one method stands.

    Attributes
    ----------
    method : Method
        What it is.
    score : Interval
        Its F with a 95 % interval.
    behind : float
        How far it is behind the best.
    std_error : float
        The standard error of that difference, paired over the same rows.
    difference : Interval
        Its F less that of the method chosen, paired, with a 95 % interval.
    counts : dict of str to int, or None
        `tp`, `fp`, `fn` and `tn` over the rows rated; None where they come in many sets.
    """

    method: Method
    score: Interval
    behind: float
    std_error: float
    difference: Interval
    counts: Mapping[str, int] | None

    @property
    def name(self) -> str:
        """The plain name of the method."""
        return self.method.name


@dataclass(frozen=True)
class Evidence:
    """The rows rated: one row of each table for each of them, one column for each label."""

    truth: Bools
    proba: Floats | None  # of the classifier itself
    predictions: Mapping[str, Bools]  # of each method
    scores: Mapping[str, Floats]  # that each method decides by, where it has any


@dataclass(frozen=True)
class Comparison:
    """Methods compared on rows that no model behind them has seen, and the one to use.

    It prints as a table, and shows as one in a notebook.

    Attributes
    ----------
    measure : Measure
        What is compared: F_β, or the measure asked for.
    kind : str
        `"binary"`, `"multiclass"` or `"multilabel-indicator"`.
    labels : tuple of str
        What the labels are called.
    rated_on : str
        The rows that the methods were rated on.
    n_rows : int
        How many rows those are.
    methods : tuple of Standing
        Where each method stands.
    chosen : str
        The plain name of the method to use.
    choice : Choice or None
        What it was chosen by; None where nothing could be compared.
    reason : str
        Why, in words.
    notes : tuple of str
        What else the data show.
    estimator : estimator
        The method to use, not fitted.
    evidence : Evidence or None
        The rows rated, for pictures of them; None where they were not kept.
    prefit : bool
        Whether the classifier came fitted: no one knows which rows it has seen.
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
        """The standing of the method to use."""
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
        """The standard error of each method's difference from the best, by name."""
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
        """What is known, in a sentence or two: whether it can be told, the method, its own F."""
        if self.choice is None:
            return self.reason
        tie = f"Too close to call: {listed(self.choice.close, 'or')} would do. Take"
        known = f"{self.score_name} {shown(self.method.score)} {self._where()}"
        if self.evidence is not None:
            known += f"; {selection(self.evidence.predictions[self.chosen])}{self._expects()}"
        return f"{tie if len(self.choice.close) > 1 else 'Use'} {self.chosen}: {known}."

    def _where(self) -> str:
        """Say on which rows: only of a model that is fitted here is it known what it has seen."""
        if self.prefit and self.method.method.rests_on != "rows":
            return "on the rows given, which must be new to it"
        return "on rows it was not trained on"

    def _expects(self) -> str:
        """Return what the model expects, where the method rests on it and it can be trusted."""
        if self.method.method.rests_on not in ("probabilities", "others") or self.kind != "binary":
            return ""
        if self.method.method.key == "uncalibrated" and not (self.choice and self.choice.trusted):
            return ""
        assert self.evidence is not None
        selected = self.evidence.predictions[self.chosen][:, 0]
        proba = self.evidence.scores[self.chosen][:, 0]
        expected = expected_f(proba, selected, measure=self.measure)
        promise = f"{expected.mean:.3f} (std {max(0.0, expected.std):.3f})"
        return f", where the model expects {self.measure} {promise}"

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
        head = ("", "", self.score_name, f"less {self.chosen} (± 95 %)", "")
        table = aligned([head, *rows], (False, False, True, False, False)) if rows else []
        verdict = [] if self.choice is None else [self.verdict]
        return "\n".join([*table, *verdict, self.reason, *self.notes])

    def _repr_html_(self) -> str:
        """Return the table for a notebook; names are text, whatever they hold."""
        head = ("", self.score_name, "95 % interval", f"less {self.chosen}", "95 % interval", "")
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
    """Return a difference and how far its interval reaches to either side."""
    return f"{difference.value:+.4f} ± {difference.high - difference.value:.4f}"


def nothing_compared(measure: Measure, kind: str, chosen: str) -> Comparison:
    """Return the comparison on rows where no label has both positives and negatives."""
    return Comparison(measure, kind, (), "no rows", 0, (), chosen, None, NOTHING, (), None, None)
