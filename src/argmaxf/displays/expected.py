"""Displays of expected F: against how much is selected, and against β."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Floats, Ints
from argmaxf._base.validation import as_real_array, check_choice
from argmaxf.displays.base import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    ProbabilityDisplay,
    thinned,
    tidy,
)
from argmaxf.expected.decision import Decision
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.values import TopSets, expected_f_curve, top_spreads
from argmaxf.measures import MeasureLike, as_measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class ExpectedFDisplay(ProbabilityDisplay):
    """Expected F_β of every top-k set, its standard deviation, and the best set.

    Attributes
    ----------
    k : ndarray of int
        Sizes 0 … n.
    threshold : ndarray
        The lowest probability selected at each size; infinite for k = 0.
    expected : ndarray
        E[F] at each size.
    band_k, band_std : ndarray
        Sizes at which the standard deviation of F is known, and its values.
    decision : Decision
        The best set.
    measure : Measure
        The measure whose expectation is shown.
    ax_, figure_, line_ : Axes, Figure, Line2D
        What was drawn.
    """

    k: Ints
    threshold: Floats
    expected: Floats
    band_k: Ints
    band_std: Floats
    decision: Decision
    measure: Any = "fbeta"

    def __post_init__(self) -> None:
        self.measure = as_measure(self.measure, self.decision.beta)

    @classmethod
    def from_predictions(
        cls,
        p: ArrayLike,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        x: str = "k",
        ax: Axes | None = None,
        **line: Any,
    ) -> Self:
        """Draw the expected F_β of probabilities, without labels.

        Cost: one sort, and one pass for each of 48 sizes with a standard deviation.

        Parameters
        ----------
        p : array-like of shape (n,)
            Probabilities of being positive.
        beta : float, default=1.0
            Weight of recall against precision.
        measure : str, Measure or callable, default="fbeta"
            What is shown: a name, an object of `argmaxf.measures`, or a function of counts.
        x : {"k", "threshold"}, default="k"
            What runs along the axis: how many are selected, or the threshold.
        ax : Axes, optional
            Where to draw; by default in a new figure.
        **line : dict
            Further keywords go to matplotlib's `plot`.

        Returns
        -------
        ExpectedFDisplay
            The display, with what was drawn.
        """
        decision = maximize_expected_f(p, beta=beta, measure=measure)
        falling = np.sort(as_real_array("p", p).astype(np.float64))[::-1]
        band_k = np.unique(np.geomspace(1, falling.size, 48).astype(np.int64))
        return cls(
            k=np.arange(falling.size + 1),
            threshold=np.concatenate([[np.inf], falling]),
            expected=expected_f_curve(falling, beta=beta, measure=measure),
            band_k=band_k,
            band_std=top_spreads(falling, band_k, beta=beta, measure=measure),
            decision=decision,
            measure=measure,
        ).plot(ax, x=x, **line)

    def plot(self, ax: Axes | None = None, *, x: str = "k", **line: Any) -> Self:
        """Draw expected F, its band and the chosen set.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default in a new figure.
        x : {"k", "threshold"}, default="k"
            What runs along the axis: how many are selected, or the threshold.
        **line : dict
            Further keywords go to matplotlib's `plot`.

        Returns
        -------
        ExpectedFDisplay
            The display, with what was drawn.
        """
        check_choice("x", x, ("k", "threshold"))
        return self._drawn(ax, x=x, **line)

    def _draw(self, ax: Axes, *, x: str, **line: Any) -> None:
        best, f = self.decision, self.measure.title
        along = self.k if x == "k" else self.threshold
        shown = thinned(len(along), best.k)[1:]
        style = {"color": BLUE, "label": f"expected {f}", **line}
        (self.line_,) = ax.plot(along[shown], self.expected[shown], **style)
        middle = self.expected[self.band_k]
        low, high = np.clip([middle - self.band_std, middle + self.band_std], 0, 1)
        ax.fill_between(
            along[self.band_k], low, high, color=BLUE, alpha=0.18, lw=0, label=f"± 1 std of {f}"
        )
        at = along[best.k] if best.k else along[1]
        ax.axvline(at, color=ORANGE, lw=1, ls="--")
        label = f"best: threshold {best.threshold:.3g}"
        ax.plot([at], [best.expected], "o", color=ORANGE, label=label, zorder=3)
        if x == "threshold":
            ax.set_xlim(0, min(1.0, 1.02 * float(self.threshold[1])))
        elif best.k < 0.2 * best.n:  # rare positives sit at the left end
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.set_ylim(0, min(1.0, 1.18 * float(high.max())) or 1.0)
        names = {"k": "items selected, most probable first", "threshold": "probability threshold"}
        tidy(
            ax,
            xlabel=names[x],
            ylabel=f"{f} if these are selected",
            title=f"Select {best.k:,} of {best.n:,}: "
            f"expected {f} {best.expected:.3f} ± {best.std:.3f}",
        )


@dataclass(kw_only=True, eq=False, repr=False)
class BetaDisplay(ProbabilityDisplay):
    """The best set as β varies: its threshold, expected precision, recall and F_β.

    Attributes
    ----------
    beta : ndarray
        The values of β, rising.
    threshold : ndarray
        The threshold of the best set for each β.
    k : ndarray of int
        The size of that set.
    precision, recall, fbeta : ndarray
        Its expected precision, recall and F_β.
    ax_, figure_, lines_ : Axes, Figure, list
        What was drawn.
    """

    beta: Floats
    threshold: Floats
    k: Ints
    precision: Floats
    recall: Floats
    fbeta: Floats

    @classmethod
    def from_predictions(
        cls,
        p: ArrayLike,
        *,
        betas: ArrayLike | None = None,
        beta: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw it for probabilities, without labels: one decision for each β.

        Parameters
        ----------
        p : array-like of shape (n,)
            Probabilities of being positive.
        betas : array-like, optional
            The values of β; by default 0.1 … 10.
        beta : float, optional
            The β in use, which is marked.
        ax : Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        BetaDisplay
            The display, with what was drawn.
        """
        every = np.geomspace(0.1, 10.0, 41) if betas is None else np.sort(np.asarray(betas, float))
        best = [maximize_expected_f(p, beta=each) for each in every.tolist()]
        k = np.array([decision.k for decision in best])
        top = TopSets(np.sort(np.asarray(p, np.float64))[::-1])
        return cls(
            beta=every,
            threshold=np.array([decision.threshold for decision in best]),
            k=k,
            precision=top.mass[k] / np.maximum(k, 1),
            recall=top.recall[k],
            fbeta=np.array([decision.expected for decision in best]),
        ).plot(ax, beta=beta)

    def plot(self, ax: Axes | None = None, *, beta: float | None = None) -> Self:
        """Draw threshold, expected precision, recall and F_β against β.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default in a new figure.
        beta : float, optional
            The β in use, which is marked.

        Returns
        -------
        BetaDisplay
            The display, with what was drawn.
        """
        return self._drawn(ax, beta=beta)

    def _draw(self, ax: Axes, *, beta: float | None) -> None:
        lines = [
            ("expected precision", self.precision, GREEN, "-", 1.4),
            ("expected recall", self.recall, ORANGE, "-", 1.4),
            ("expected Fβ", self.fbeta, BLUE, "-", 2.0),
            ("threshold", np.where(self.k > 0, self.threshold, np.nan), GREY, "--", 1.4),
        ]
        self.lines_ = [
            ax.plot(self.beta, y, color=color, ls=style, lw=width, label=name)[0]
            for name, y, color, style, width in lines
        ]
        if beta is not None:
            ax.axvline(beta, color=GREY, lw=0.8, ls=":")
            ax.text(beta, 1.03, f"β = {beta:g}", ha="center", va="bottom", fontsize="small")
        low, high = self.beta[0] * 0.999, self.beta[-1] * 1.001
        ax.set_xscale("log")
        ax.set_xticks([b for b in (0.1, 0.2, 0.5, 1, 2, 5, 10) if low <= b <= high])
        ax.xaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
        ax.set_ylim(0, 1.02)
        tidy(
            ax,
            xlabel="β: below 1 precision counts more, above 1 recall",
            ylabel="value for the best set",
            title="What each β chooses" + "\n" * (beta is not None),
        )
