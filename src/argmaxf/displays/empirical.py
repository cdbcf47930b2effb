"""Precision, recall and F against the threshold on labelled scores: exact steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf.displays.base import LabelledDisplay
from argmaxf.displays.drawing import (
    BLUE,
    GREEN,
    GREY,
    MOST_POINTS,
    ORANGE,
    new_axes,
    positive_score,
    positives,
    tidy,
)
from argmaxf.empirical.promises import precision_band
from argmaxf.empirical.records import Curve, Threshold
from argmaxf.empirical.threshold import empirical_f_curve, maximize_empirical_f
from argmaxf.measures import MeasureLike, as_measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class EmpiricalFDisplay(LabelledDisplay):
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
    confidence : float or None
        With what confidence they shall hold in the population.
    low : ndarray or None
        With `confidence`, the lower limit of the precision of each threshold at the level at which
        it was tested; NaN where the tests ended before it.
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        Its figure.
    lines_ : list of Line2D
        The lines.
    """

    _scores = staticmethod(positive_score)  # probabilities, or else decision scores

    def __init__(
        self,
        *,
        score: NDArray[np.float64],
        precision: NDArray[np.float64],
        recall: NDArray[np.float64],
        fbeta: NDArray[np.float64],
        best: Threshold,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        min_precision: float | None = None,
        min_recall: float | None = None,
        confidence: float | None = None,
        low: NDArray[np.float64] | None = None,
    ) -> None:
        self.score = score
        self.precision = precision
        self.recall = recall
        self.fbeta = fbeta
        self.best = best
        self.measure = as_measure(measure, beta)
        self.beta = beta
        self.min_precision = min_precision
        self.min_recall = min_recall
        self.confidence = confidence
        self.low = low

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
        confidence: float | None = None,
        pos_label: Any = None,
    ) -> Self:
        """Compute the arrays without drawing. Cost: two sorts."""
        y = positives(y_true, pos_label)
        limits: dict[str, Any] = {"min_precision": min_precision, "min_recall": min_recall}
        limits["confidence"] = confidence
        best = maximize_empirical_f(y, score, beta=beta, measure=measure, **limits)
        curve = empirical_f_curve(y, score, beta=beta, measure=measure)
        assert isinstance(curve, Curve)
        rising = {
            name: getattr(curve, name)[:0:-1] for name in ("precision", "recall", "fbeta")
        }  # without the cut that selects nothing
        return cls(
            score=np.unique(score),
            best=best,
            beta=beta,
            measure=measure,
            low=_low(y, score, **limits),
            **rising,
            **limits,
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
        confidence: float | None = None,
        pos_label: Any = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw precision, recall and F_β of every threshold on labelled scores.

        With `min_precision` or `min_recall`, thresholds that miss them are shaded. With
        `confidence` too, a band leads from the precision down to the limit by which it is promised.

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
        confidence : float, optional
            The constraints shall hold in the population with this confidence.
        pos_label : scalar, optional
            The class that counts as positive; by default the last in sorted order.
        ax : Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        EmpiricalFDisplay
            The display, with what was drawn.
        """
        limits = {"min_precision": min_precision, "min_recall": min_recall}
        limits["confidence"] = confidence
        return cls._computed(
            y_true, score, beta=beta, measure=measure, pos_label=pos_label, **limits
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the steps, the constraint region and the best threshold.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        EmpiricalFDisplay
            The display, with what was drawn.
        """
        ax = new_axes(ax)
        f, best = self.measure.title, self.best
        lines = [("precision", GREEN, 1.2), ("recall", ORANGE, 1.2), (f, BLUE, 2.0)]
        values = [self.precision, self.recall, self.fbeta]
        shown = self._shown()
        self.lines_ = [
            ax.step(self.score[shown], y[shown], where="pre", color=color, lw=width, label=name)[0]
            for y, (name, color, width) in zip(values, lines, strict=True)
        ]
        self._shade(ax)
        self._draw_band(ax, shown)
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
        if self.confidence is None:
            ax.legend(frameon=False, loc="best")
        else:  # more lines than there is room for among the curves
            ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
        self.ax_, self.figure_ = ax, ax.figure
        return self

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

    def _draw_band(self, ax: Axes, shown: NDArray[np.int64]) -> None:
        """Draw the band between the precision and the limit by which it is promised."""
        if self.low is None:
            return
        promised = self.low >= (self.min_precision or 0.0)
        ax.fill_between(
            self.score[shown],
            self.low[shown],
            self.precision[shown],
            where=promised[shown].tolist(),
            step="pre",
            color=GREEN,
            alpha=0.25,
            lw=0,
        )
        best = self.best  # a single threshold would have a band of no width
        ax.plot(
            [best.threshold] * 2,
            [best.promise.precision_low, best.precision],
            color=GREEN,
            lw=4,
            alpha=0.5,
            solid_capstyle="butt",
            label=f"precision promised with {self.confidence:.4g} confidence",
        )

    def _shade(self, ax: Axes) -> None:
        """Shade thresholds that miss a constraint."""
        for name, values, least in [
            ("precision", self.precision, self.min_precision),
            ("recall", self.recall, self.min_recall),
        ]:
            if least is None:
                continue
            ax.fill_between(
                self.score,
                0,
                1.02,
                where=(values < least).tolist(),
                step="pre",
                color=GREY,
                alpha=0.22,
                lw=0,
                label=f"{name} below {least:g}",
            )
            ax.axhline(least, color=GREY, lw=0.8, ls=":")


def _low(
    y: Any,
    score: Any,
    min_precision: float | None,
    min_recall: float | None,
    confidence: float | None,
) -> NDArray[np.float64] | None:
    """Return the limits by which the precision of each threshold is promised, where it is."""
    if confidence is None or not min_precision:
        return None
    parts = 1 + (min_recall is not None)
    return precision_band(y, np.asarray(score), min_precision, confidence, parts)
