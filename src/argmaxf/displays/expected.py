"""Expected F against how much is selected, with its spread and the chosen cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf._base.validation import as_real_array, check_choice
from argmaxf.displays.base import ProbabilityDisplay
from argmaxf.displays.drawing import (
    BLUE,
    ORANGE,
    thinned,
    tidy,
)
from argmaxf.expected.decision import Decision
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.values import expected_f_curve, top_spreads
from argmaxf.measures import MeasureLike, as_measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAND_POINTS = 48  # sizes at which the spread is computed; it is smooth


@dataclass(kw_only=True, eq=False, repr=False)
class ExpectedFDisplay(ProbabilityDisplay):
    """Expected F_β of every top-k set, its spread, and the best set.

    Attributes
    ----------
    k : ndarray of int
        Sizes 0 … n.
    threshold : ndarray
        The lowest probability selected at each size; infinite for k = 0.
    expected : ndarray
        E[F] at each size.
    band_k : ndarray of int
        Sizes at which the standard deviation of F is known.
    band_std : ndarray
        Its value there.
    decision : Decision
        The best set.
    measure : Measure
        What is expected.
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        Its figure.
    line_ : Line2D
        The line.
    """

    k: NDArray[np.int64]
    threshold: NDArray[np.float64]
    expected: NDArray[np.float64]
    band_k: NDArray[np.int64]
    band_std: NDArray[np.float64]
    decision: Decision
    measure: Any = "fbeta"

    def __post_init__(self) -> None:
        self.measure = as_measure(self.measure, self.decision.beta)

    @classmethod
    def _computed(
        cls, proba: ArrayLike, *, beta: float = 1.0, measure: MeasureLike = "fbeta"
    ) -> Self:
        """Compute the arrays without drawing. Cost: one sort, and one pass for each band point."""
        decision = maximize_expected_f(proba, beta=beta, measure=measure)
        falling = np.sort(as_real_array("proba", proba).astype(np.float64))[::-1]
        n = falling.size
        band_k = np.unique(np.geomspace(1, n, BAND_POINTS).astype(np.int64))
        return cls(
            k=np.arange(n + 1),
            threshold=np.concatenate([[np.inf], falling]),
            expected=expected_f_curve(falling, beta=beta, measure=measure),
            band_k=band_k,
            band_std=top_spreads(falling, band_k, beta=beta, measure=measure),
            decision=decision,
            measure=measure,
        )

    @classmethod
    def from_predictions(
        cls,
        proba: ArrayLike,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        x: str = "k",
        ax: Axes | None = None,
        **line: Any,
    ) -> Self:
        """Draw the expected F_β of probabilities, without labels.

        `x` is what runs along the axis: `"k"`, how many are selected, or `"threshold"`. Further
        keywords go to matplotlib's `plot`.

        Parameters
        ----------
        proba : array-like of shape (n,)
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
        return cls._computed(proba, beta=beta, measure=measure).plot(ax, x=x, **line)

    def plot(self, ax: Axes | None = None, *, x: str = "k", **line: Any) -> Self:
        """Draw expected F, its band and the chosen cut.

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
        self._mark(ax, along[best.k] if best.k else along[1], f)
        tidy(
            ax,
            xlabel="items selected, most probable first"
            if x == "k"
            else "threshold on probability",
            ylabel=f"{f} if these are selected",
            title=f"Select {best.k:,} of {best.n:,}: "
            f"expected {f} {best.expected:.3f} ± {best.std:.3f}",
        )
        self._scale(ax, x)
        ax.set_ylim(0, min(1.0, 1.18 * float(high.max())) or 1.0)
        ax.legend(frameon=False, loc="best")

    def _mark(self, ax: Axes, at: float, f: str) -> None:
        best = self.decision
        ax.axvline(at, color=ORANGE, lw=1, ls="--")
        label = f"best: threshold {best.threshold:.3g}"
        ax.plot([at], [best.expected], "o", color=ORANGE, label=label, zorder=3)

    def _scale(self, ax: Axes, x: str) -> None:
        """Show few out of many on a logarithmic axis: rare positives sit at its left end."""
        if x == "k" and self.decision.k < 0.2 * self.decision.n:
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:,.0f}")
        elif x == "threshold":
            ax.set_xlim(0, min(1.0, 1.02 * float(self.threshold[1])))
