"""Displays of labelled rows: every threshold with its F, calibration, methods side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from argmaxf._base.arrays import Floats, Ints
from argmaxf._base.shared_docs import with_entries_of
from argmaxf._base.validation import as_real_array
from argmaxf.constraints import Constraints
from argmaxf.displays.base import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VIOLET,
    MeasuredDisplay,
    draw_lines,
    positives,
    thinned,
    tidy,
)
from argmaxf.empirical.cuts import CutProblem
from argmaxf.empirical.guarantees import Guarantee, chance_of_each, limits_of_cuts
from argmaxf.empirical.interval import f_difference, f_interval
from argmaxf.empirical.labelled_sketch import LabelledSketch
from argmaxf.empirical.threshold import Threshold, empirical_f_curve, maximize_empirical_f
from argmaxf.estimators.labels import Labels
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.measures import Interval, MeasureLike, as_measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# How constraints are drawn: what is limited, its name, what is guaranteed, where it misses, colour.
DRAWN = {
    "min_precision": ("precision", "precision", "precision_low", "below", GREEN),
    "min_recall": ("recall", "recall", "recall_low", "below", ORANGE),
    "max_selected_rate": ("rate", "part selected", "rate_high", "above", VIOLET),
}


@with_entries_of(maximize_empirical_f)
@dataclass(kw_only=True, eq=False, repr=False)
class EmpiricalFDisplay(MeasuredDisplay):
    """Precision, recall and F_β for every threshold on labelled scores, and the best threshold.

    Attributes
    ----------
    score : ndarray
        The distinct scores, rising; each is the largest threshold of its step.
    curve : Curve
        The curve of these thresholds, and before them of one that selects nothing.
    precision, recall, fbeta : ndarray
        Precision, recall and F_β of thresholds in (previous score, this score].
    rate : ndarray
        The part of the rows that each threshold selects.
    best : Threshold
        The best threshold that meets the constraints.
    beta, measure : as in `Display`
    constraints : Constraints
        The least precision and recall, and the largest part of the rows that may be selected.
    confidence_level : float or None
        At what confidence level they shall hold in the population.
    limits : Guarantee or None
        With `confidence_level`, the limits that are guaranteed for each threshold:
        `precision_low`, at the level at which it was tested, NaN where the tests ended before it,
        `recall_low` and `rate_high`; None for what was not asked.
    ax_, figure_, lines_ : as in `Display`

    Examples
    --------
    >>> display = EmpiricalFDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.8], ax=False)
    >>> display.precision, display.best.threshold
    (array([0.5       , 0.66666667, 0.5       , 1.        ]), 0.25)
    """

    _takes_scores: ClassVar[bool] = True

    score: Floats
    curve: Any
    rate: Floats
    best: Threshold
    constraints: Constraints = field(default_factory=Constraints)
    confidence_level: float | None = None
    limits: Guarantee | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.precision, self.recall, self.fbeta = (
            each[:0:-1] for each in (self.curve.precision, self.curve.recall, self.curve.fbeta)
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        score: ArrayLike,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        min_precision: float | None = None,
        min_recall: float | None = None,
        max_selected_rate: float | None = None,
        confidence_level: float | None = None,
        pos_label: Any = None,
        ax: Axes | bool | None = None,
    ) -> Self:
        """Draw precision, recall and F_β of every threshold on labelled scores.

        With constraints, thresholds that miss them are shaded. With `confidence_level` too,
        bands lead from what is found to the limits that are guaranteed, where they can be.

        Parameters
        ----------
        y_true : as in `Display`
        score : array-like of shape (n,)
            Scores, larger meaning more positive.
        beta, measure : as in `Display`
        min_precision, min_recall, max_selected_rate : as in `maximize_empirical_f`
        confidence_level : as in `maximize_empirical_f`
        pos_label, ax : as in `Display`
        """
        y, score = positives(y_true, pos_label), np.asarray(score)
        asked = Constraints(min_precision, min_recall, max_selected_rate)
        options: dict[str, Any] = {"beta": beta, "measure": measure}
        chance: dict[str, Any] = {**asked.given(), "confidence_level": confidence_level}
        problem = CutProblem.of(beta, measure, 0.0, **chance)
        value, count = np.unique(score, return_counts=True)
        return cls(
            score=value,
            curve=empirical_f_curve(y, score, **options),
            rate=np.cumsum(count[::-1])[::-1] / y.size,
            best=maximize_empirical_f(y, score, **options, **chance),
            constraints=asked,
            confidence_level=confidence_level,
            limits=limits_of_cuts(y, score, chance_of_each(problem)),
            **options,
        ).plot(ax)

    @classmethod
    def from_sketch(
        cls,
        sketch: LabelledSketch,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        ax: Axes | bool | None = None,
        **limits: Any,
    ) -> Self:
        """Draw precision, recall and F_β of the thresholds between the bins of a sketch.

        Parameters
        ----------
        sketch : LabelledSketch
            The summary of labelled scores, as of `summarize`.
        beta : as in `Display`
        measure : str or Measure, default="fbeta"
            What is shown, as in `LabelledSketch.tune`.
        ax : as in `Display`
        **limits : float
            `min_precision`, `min_recall` and `max_selected_rate`, as in `LabelledSketch.tune`.
        """
        options: dict[str, Any] = {"beta": beta, "measure": measure}
        selected = np.cumsum(sketch.bins.true + sketch.bins.false)
        return cls(
            score=sketch.bins.low[::-1],
            curve=sketch.curve(**options),
            rate=selected[::-1] / selected[-1],
            best=sketch.tune(**options, **limits),
            constraints=Constraints(**limits),
            **options,
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        """Draw the steps, the constraint region and the best threshold."""
        f, best, given = self.measure.title, self.best, self.constraints.given()
        last = len(self.score) - 1
        best_step = min(int(np.searchsorted(self.score, best.threshold)), last)
        shown = last - thinned(last + 1, last - best_step)[::-1]  # dense where scores are high
        lines = [("precision", self.precision, GREEN, 1.2), ("recall", self.recall, ORANGE, 1.2)]
        if "max_selected_rate" in given:
            lines.append(("part selected", self.rate, VIOLET, 1.2))
        lines.append((f, self.fbeta, BLUE, 2.0))
        curves = [(name, y[shown], color, "-", width) for name, y, color, width in lines]
        self.lines_ = draw_lines(ax, self.score[shown], *curves, drawstyle="steps-pre")
        for name, limit in given.items():
            self._draw_constraint(ax, name, limit, shown)
        ax.axvline(best.threshold, color=GREY, lw=1, ls="--")
        ax.plot([best.threshold], [best.value], "o", color=BLUE, zorder=3)
        found = f"{f} {best.value:.3f}, precision {best.precision:.3f}, recall {best.recall:.3f}"
        title = f"Best threshold {best.threshold:.3g}: {found}"
        xlabel = "threshold: scores of at least this are predicted positive"
        tidy(ax, xlabel, "value on these labels", title)
        ax.set_ylim(0, 1.02)
        if len(ax.get_legend_handles_labels()[1]) > 4:  # there is no room among the curves
            below: dict[str, Any] = {"bbox_to_anchor": (0.5, 0.0), "borderaxespad": 3.6}
            ax.legend(frameon=False, ncols=2, loc="upper center", **below)

    def _draw_constraint(self, ax: Axes, constraint: str, limit: float, shown: Ints) -> None:
        """Shade thresholds that miss a constraint, and draw the band to what is guaranteed."""
        quantity, name, guaranteed, side, color = DRAWN[constraint]
        found, tested = getattr(self, quantity), getattr(self.limits, guaranteed, None)
        is_missed = np.less if side == "below" else np.greater

        def fill(at: Ints, low: Any, high: Any, where: Any, **style: Any) -> None:
            where = where[at].tolist()
            ax.fill_between(self.score[at], low, high, where, step="pre", lw=0, **style)

        missed = is_missed(found, limit)
        changes = np.flatnonzero(np.diff(missed))  # that is all that needs to be drawn
        ends = np.unique([0, *changes, *(changes + 1), len(missed) - 1])
        fill(ends, 0, 1.02, missed, color=GREY, alpha=0.22, label=f"{name} {side} {limit:g}")
        ax.axhline(limit, color=GREY, lw=0.8, ls=":")
        if tested is None:
            return
        kept = ~np.isnan(tested) & ~is_missed(tested, limit)
        fill(shown, tested[shown], found[shown], kept, color=color, alpha=0.25)
        best = np.searchsorted(self.score, self.best.threshold)
        wide: dict[str, Any] = {"lw": 4, "alpha": 0.5, "solid_capstyle": "butt"}  # one threshold's
        wide["label"] = f"{name} guaranteed at confidence level {self.confidence_level:.4g}"
        at = [self.best.threshold] * 2
        ax.plot(at, [tested[best], found[best]], color=color, **wide)


@dataclass(kw_only=True, eq=False, repr=False)
class ReliabilityDisplay(MeasuredDisplay):
    """Share of positives against predicted probability, with what miscalibration costs in F.

    Attributes
    ----------
    edges : ndarray
        Borders of the bins of probability.
    count : ndarray of int
        Rows in each bin.
    predicted, observed : ndarray
        Mean probability and share of positives in each bin; NaN in an empty one.
    low, high : ndarray
        The 95 % Wilson interval of that share.
    expected : float
        E[F] of the set that maximizes it, by the probabilities.
    achieved : float
        F of that set on the labels.
    best : float
        F of the best threshold on the labels, found in hindsight.
    beta, measure, ax_, figure_, lines_ : as in `Display`

    Examples
    --------
    >>> y, p = [0, 1, 0, 1], [0.1, 0.4, 0.3, 0.8]
    >>> display = ReliabilityDisplay.from_predictions(y, p, n_bins=2, ax=False)
    >>> display.predicted, display.observed
    (array([0.26666667, 0.8       ]), array([0.33333333, 1.        ]))
    """

    edges: Floats
    count: Ints
    predicted: Floats
    observed: Floats
    low: Floats
    high: Floats
    expected: float
    achieved: float
    best: float

    @property
    def cost(self) -> float:
        """F lost, at most, by deciding with these probabilities: `best` minus `achieved`."""
        return self.best - self.achieved

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        p: ArrayLike,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        n_bins: int = 10,
        pos_label: Any = None,
        ax: Axes | bool | None = None,
    ) -> Self:
        """Draw it for labels and probabilities, in `n_bins` bins of equal width.

        Parameters
        ----------
        y_true, p, beta, measure : as in `Display`
        n_bins : int, default=10
            Number of bins of equal width.
        pos_label, ax : as in `Display`
        """
        if n_bins < 1:
            raise ValueError(f"n_bins must be at least 1, got {n_bins!r}")
        y, p = positives(y_true, pos_label), as_real_array("p", p)
        best = maximize_empirical_f(y, p, beta=beta, measure=measure)
        decision = maximize_expected_f(p, beta=beta, measure=measure)
        chosen = decision.selected
        edges = np.linspace(0.0, 1.0, n_bins + 1)
        which = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, n_bins - 1)
        count = np.bincount(which, minlength=n_bins)
        hits, mass = (np.bincount(which, weights=a, minlength=n_bins) for a in (y, p))
        counts = np.sum(y & chosen), np.sum(chosen), np.sum(y), len(y)
        limits = [
            binomtest(int(hit), n).proportion_ci(method="wilson") if n else (np.nan, np.nan)
            for hit, n in zip(hits, count, strict=True)
        ]
        low, high = np.array(limits).T
        with np.errstate(invalid="ignore"):  # of empty bins
            predicted, observed = mass / count, hits / count
        return cls(
            edges=edges,
            count=count,
            predicted=predicted,
            observed=observed,
            low=low,
            high=high,
            expected=decision.expected,
            achieved=float(as_measure(measure, beta).value(*counts)),
            best=best.value,
            beta=decision.beta,
            measure=measure,
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        """Draw the shares with their intervals over a histogram on a logarithmic scale."""
        height = np.log10(self.count + 1.0)
        height *= 0.2 / max(float(height.max()), 1e-9)
        style: dict[str, Any] = {"align": "edge", "color": ORANGE, "alpha": 0.3}
        columns = ax.bar(self.edges[:-1], height, np.diff(self.edges), bottom=-0.29, **style)
        ax.bar_label(columns, [_short(int(count)) for count in self.count], fontsize=7)
        ax.text(0.995, -0.03, "rows in each bin", ha="right", va="bottom", fontsize=7)
        seen = self.count > 0
        x, y = self.predicted[seen], self.observed[seen]
        ax.plot([0, 1], [0, 1], color=GREY, ls="--", lw=1, label="perfectly calibrated")
        bars = np.maximum([y - self.low[seen], self.high[seen] - y], 0.0)
        label = "observed, with 95 % interval"
        self.lines_ = [ax.errorbar(x, y, bars, fmt="o-", color=BLUE, capsize=3, label=label)]
        ax.set(xlim=(0, 1), ylim=(-0.3, 1.02), yticks=[0, 0.25, 0.5, 0.75, 1.0])
        f, cost = self.measure.title, f"miscalibration costs at most {self.cost:.3f}"
        title = f"Expected {f} {self.expected:.3f}, achieved {self.achieved:.3f}; {cost}"
        tidy(ax, "predicted probability", "share of positives observed", title, "upper left")


@dataclass(kw_only=True, eq=False, repr=False)
class MethodComparisonDisplay(MeasuredDisplay):
    """F of several methods on the same rows, with intervals, and how far each is from one of them.

    Attributes
    ----------
    scores : mapping of str to Interval
        For each method its F and interval.
    differences : mapping of str to Interval
        For each method its F minus that of `reference`, paired over the rows.
    reference : str
        The method the others are compared with.
    beta, measure : as in `Display`
    confidence_level : float
        How often intervals shall hold.
    ax_, figure_ : as in `Display`

    Examples
    --------
    >>> y, predictions = [0, 1, 0, 1], {"first": [0, 1, 1, 1], "second": [0, 1, 0, 0]}
    >>> display = MethodComparisonDisplay.from_predictions(y, predictions, ax=False)
    >>> {name: round(interval.value, 2) for name, interval in display.scores.items()}
    {'first': 0.8, 'second': 0.67}
    """

    scores: Mapping[str, Interval]
    differences: Mapping[str, Interval]
    reference: str
    confidence_level: float = 0.95

    _width = 7.2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.scores, self.differences = dict(self.scores), dict(self.differences)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        predictions: Mapping[str, ArrayLike],
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        confidence_level: float = 0.95,
        reference: str | None = None,
        pos_label: Any = None,
        ax: Axes | bool | None = None,
    ) -> Self:
        """Draw it for the predictions of several methods, given by name.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, labels)
            True labels.
        predictions : mapping of str to array-like
            The predicted labels of each method, by its name.
        beta, measure : as in `Display`
        confidence_level : float, default=0.95
            How often intervals shall hold.
        reference : str, optional
            The method the others are compared with; by default the best.
        pos_label, ax : as in `Display`
        """
        if not predictions:
            raise ValueError("predictions must hold at least one method, got none")
        if reference is not None and reference not in predictions:
            raise ValueError(f"reference must be one of {list(predictions)}, got {reference!r}")
        labels = Labels.of(y_true, pos_label)
        truth = labels.columns(y_true)
        tables = {name: labels.columns(y) for name, y in predictions.items()}
        options: dict[str, Any] = {"beta": beta, "measure": measure}
        options["confidence_level"] = confidence_level
        scores = {
            name: f_interval(truth, table, average="macro", **options)
            for name, table in tables.items()
        }
        best = reference or max(scores, key=lambda name: scores[name].value)
        differences = {
            name: f_difference(truth, table, tables[best], **options)
            for name, table in tables.items()
        }
        found = cls(scores=scores, differences=differences, reference=best, **options)
        return found.plot(ax)

    @classmethod
    def from_estimator(  # type: ignore[override]  # several classifiers, by name
        cls, estimators: Mapping[str, Any], X: Any, y: ArrayLike, **options: Any
    ) -> Self:
        """Draw it for fitted classifiers, given by name, on labelled rows.

        Parameters
        ----------
        estimators : mapping of str to estimator
            Fitted classifiers by name.
        X : array-like or sparse matrix of shape (n, features)
            The rows.
        y : array-like of shape (n,)
            Their true labels.
        **options : dict
            Further options of `from_predictions`.
        """
        predictions = {name: estimator.predict(X) for name, estimator in estimators.items()}
        return cls.from_predictions(y, predictions, **options)

    def _draw(self, ax: Axes) -> None:
        """Draw each method's F and interval, its paired difference written beside it."""
        f, scores = self.measure.title, self.scores.values()
        beside: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center"}
        for row, (name, score) in enumerate(self.scores.items()):
            color = ORANGE if name == self.reference else BLUE
            ax.plot([score.low, score.high], [row, row], color=color, lw=2.2, alpha=0.75)
            ax.plot([score.value], [row], "o", color=color)
            ax.text(score.value, row - 0.16, f"{score.value:.3f}", ha="center", va="bottom")
            d = self.differences[name]
            text = f"{d.value:+.3f}  [{d.low:+.3f}, {d.high:+.3f}]".replace("-", "−")
            ax.text(1.02, row, "—" if name == self.reference else text, **beside)
        reference = _plain(self.reference)
        ax.text(
            1.02, -0.62, f"difference to {reference}", fontsize="small", style="italic", **beside
        )
        ax.set_yticks(range(len(self.scores)), [_plain(name) for name in self.scores])
        ax.set_ylim(len(self.scores) - 0.5, -0.75)
        narrow = next((each.caveat for each in scores if each.caveat), "")
        interval = f"{100 * self.confidence_level:g} % interval{narrow}"
        xlabel = f"{f} on rows not trained on, with {interval}"
        behind = [_plain(n) for n, d in self.differences.items() if d.high < 0]
        title = f"Nothing is clearly worse than {reference} in {f}"
        if behind:
            title = f"Clearly worse than {reference} in {f}: {', '.join(behind)}"
        tidy(ax, xlabel, "", title, legend=None)
        ax.grid(visible=False, axis="y")


def _short(count: int) -> str:
    """Return a count in few characters.

    >>> _short(1987), _short(123456)
    ('1987', '123k')
    """
    for size, suffix in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= 10 * size:
            return f"{count / size:.0f}{suffix}"
    return str(count)


def _plain(name: str) -> str:
    """Return a name as matplotlib must get it to show it as it is: $ begins mathematics."""
    return name.replace("$", r"\$")
