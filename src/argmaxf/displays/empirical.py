"""Precision, recall and F against the threshold on labelled scores: exact steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf.constraints import Constraints
from argmaxf.displays.base import LabelledDisplay, Measured
from argmaxf.displays.drawing import (
    BLUE,
    GREEN,
    GREY,
    MOST_POINTS,
    ORANGE,
    VIOLET,
    positive_score,
    positives,
    tidy,
)
from argmaxf.empirical.guarantees import Limits
from argmaxf.empirical.threshold import Curve, Threshold, empirical_f_curve, maximize_empirical_f
from argmaxf.measures import MeasureLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes


ROOM = 4  # entries of a legend for which there is room among the curves


@dataclass(kw_only=True, eq=False, repr=False)
class EmpiricalFDisplay(Measured, LabelledDisplay):
    """Precision, recall and F_β for every threshold on labelled scores, and the best threshold.

    Attributes
    ----------
    score : ndarray
        The distinct scores, rising; each is the largest threshold of its step.
    precision : ndarray
        Precision of thresholds in (previous score, this score].
    recall : ndarray
        Recall of these thresholds.
    fbeta : ndarray
        F_β of these thresholds.
    best : Threshold
        The best threshold that meets the constraints.
    beta : float
        The β of F_β.
    measure : Measure
        What is shown.
    min_precision : float or None
        The precision asked for.
    min_recall : float or None
        The recall asked for.
    max_selected_rate : float or None
        The largest part of the rows that may be selected.
    confidence_level : float or None
        At what confidence level they shall hold in the population.
    rate : ndarray
        The part of the rows that each threshold selects.
    limits : Limits
        With `confidence_level`, the limits that are guaranteed for each threshold:
        `precision_low`, at the level at which it was tested, NaN where the tests ended before it,
        `recall_low` and `rate_high`; None for what was not asked.
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        Its figure.
    lines_ : list of Line2D
        The lines.
    """

    _scores = staticmethod(positive_score)  # probabilities, or else decision scores

    score: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    fbeta: NDArray[np.float64]
    best: Threshold
    min_precision: float | None = None
    min_recall: float | None = None
    max_selected_rate: float | None = None
    confidence_level: float | None = None
    rate: NDArray[np.float64] | None = None
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def _computed(
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
    ) -> Self:
        """Compute the arrays without drawing. Cost: three sorts."""
        y, score = positives(y_true, pos_label), np.asarray(score)
        constraints = Constraints(min_precision, min_recall, max_selected_rate)
        chance: dict[str, Any] = {**constraints.given(), "confidence_level": confidence_level}
        best = maximize_empirical_f(y, score, beta=beta, measure=measure, **chance)
        curve = empirical_f_curve(y, score, beta=beta, measure=measure)
        assert isinstance(curve, Curve)
        rising = {
            name: getattr(curve, name)[:0:-1] for name in ("precision", "recall", "fbeta")
        }  # without the cut that selects nothing
        value, count = np.unique(score, return_counts=True)
        return cls(
            score=value,
            best=best,
            beta=beta,
            measure=measure,
            rate=np.cumsum(count[::-1])[::-1] / y.size,
            limits=Limits.of(y, score, constraints, confidence_level),
            **rising,
            **chance,
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
        ax: Axes | None = None,
    ) -> Self:
        """Draw precision, recall and F_β of every threshold on labelled scores.

        With constraints, thresholds that miss them are shaded. With `confidence_level` too,
        bands lead from what is found to the limits that are guaranteed, where they can be.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels, of two classes.
        score : array-like of shape (n,)
            Scores, larger meaning more positive.
        beta : float, default=1.0
            Weight of recall against precision.
        measure : str, Measure or callable, default="fbeta"
            What is shown: a name, an object of `argmaxf.measures`, or a function of counts.
        min_precision : float, optional
            Only thresholds of at least this precision count.
        min_recall : float, optional
            Only thresholds of at least this recall count.
        max_selected_rate : float, optional
            Only thresholds that select at most this part of the rows count; it is drawn, too.
        confidence_level : float, optional
            The constraints shall hold in the population at this confidence level.
        pos_label : scalar, optional
            The class that counts as positive; by default the last in sorted order.
        ax : Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        EmpiricalFDisplay
            The display, with what was drawn.
        """
        return cls._computed(
            y_true,
            score,
            beta=beta,
            measure=measure,
            min_precision=min_precision,
            min_recall=min_recall,
            max_selected_rate=max_selected_rate,
            confidence_level=confidence_level,
            pos_label=pos_label,
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        """Draw the steps, the constraint region and the best threshold."""
        f, best = self.measure.title, self.best
        lines = [("precision", self.precision, GREEN, 1.2), ("recall", self.recall, ORANGE, 1.2)]
        if self.max_selected_rate is not None and self.rate is not None:
            lines.append(("part selected", self.rate, VIOLET, 1.2))
        lines.append((f, self.fbeta, BLUE, 2.0))
        shown = self._shown()
        self.lines_ = [
            ax.step(self.score[shown], y[shown], where="pre", color=color, lw=width, label=name)[0]
            for name, y, color, width in lines
        ]
        for chance in self._asked():
            self._shade(ax, chance)
            self._draw_band(ax, chance, shown)
        ax.axvline(best.threshold, color=GREY, lw=1, ls="--")
        ax.plot([best.threshold], [best.value], "o", color=BLUE, zorder=3)
        tidy(
            ax,
            xlabel="threshold: scores of at least this are predicted positive",
            ylabel="value on these labels",
            title=f"Best threshold {best.threshold:.3g}: {f} {best.value:.3f}, precision "
            f"{best.precision:.3f}, recall {best.recall:.3f}",
        )
        ax.set_ylim(0, 1.02)
        if len(ax.get_legend_handles_labels()[1]) <= ROOM:
            ax.legend(frameon=False, loc="best")
        else:
            below: dict[str, Any] = {"bbox_to_anchor": (0.5, 0.0), "borderaxespad": 3.6}
            ax.legend(frameon=False, ncols=2, loc="upper center", **below)

    def _shown(self) -> NDArray[np.int64]:
        """Return the steps to draw: all, or as many as fit, even in rank and in score."""
        n = len(self.score)
        if n <= MOST_POINTS:
            return np.arange(n)
        by_score = np.linspace(self.score[0], self.score[-1], MOST_POINTS // 2)
        by_rank = np.linspace(0, n - 1, MOST_POINTS // 2).astype(np.int64)
        ends = np.searchsorted(self.score, by_score).clip(max=n - 1)
        best = np.searchsorted(self.score, self.best.threshold).clip(max=n - 1)
        return np.unique(np.concatenate([by_rank, ends, [best]]))

    def _asked(self) -> list[_Asked]:
        """Return the constraints that were given, with what is found and promised of each."""
        precision, recall, rate = self.limits
        every = [
            _Asked("precision", "below", self.min_precision, self.precision, precision, GREEN),
            _Asked("recall", "below", self.min_recall, self.recall, recall, ORANGE),
            _Asked("part selected", "above", self.max_selected_rate, self.rate, rate, VIOLET),
        ]
        return [chance for chance in every if chance.limit is not None]

    def _shade(self, ax: Axes, chance: _Asked) -> None:
        """Shade thresholds that miss a constraint; where that changes is all that is drawn."""
        misses = chance.misses(chance.found)
        changes = np.flatnonzero(np.diff(misses))
        ends = np.unique([0, *changes, *(changes + 1), len(misses) - 1])
        ax.fill_between(
            self.score[ends],
            0,
            1.02,
            where=misses[ends].tolist(),
            step="pre",
            color=GREY,
            alpha=0.22,
            lw=0,
            label=f"{chance.name} {chance.missed} {chance.limit:g}",
        )
        ax.axhline(chance.limit, color=GREY, lw=0.8, ls=":")

    def _draw_band(self, ax: Axes, chance: _Asked, shown: NDArray[np.int64]) -> None:
        """Draw the band between what is found and the limit by which it is promised."""
        if chance.tested is None:
            return
        kept = ~np.isnan(chance.tested) & ~chance.misses(chance.tested)
        ends = chance.tested[shown], chance.found[shown]
        where = kept[shown].tolist()
        ax.fill_between(
            self.score[shown], *ends, where=where, step="pre", color=chance.color, alpha=0.25, lw=0
        )
        best = np.searchsorted(self.score, self.best.threshold)
        ax.plot(  # a single threshold would have a band of no width
            [self.best.threshold] * 2,
            [chance.tested[best], chance.found[best]],
            color=chance.color,
            lw=4,
            alpha=0.5,
            solid_capstyle="butt",
            label=f"{chance.name} guaranteed at confidence level {self.confidence_level:.4g}",
        )


class _Asked(NamedTuple):
    """A constraint as it is drawn."""

    name: str
    missed: str  # on which side of the limit it is missed: "below" or "above"
    limit: Any
    found: Any  # on these labels, for each threshold
    tested: Any  # the limit by which it is promised, for each threshold, or None
    color: str

    def misses(self, values: Any) -> Any:
        """Return where values miss the limit."""
        return values < self.limit if self.missed == "below" else values > self.limit
