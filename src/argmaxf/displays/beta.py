"""How the choice moves with β: threshold, expected precision and recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf.displays.base import ProbabilityDisplay
from argmaxf.displays.drawing import BLUE, GREEN, GREY, ORANGE, tidy
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.values import TopSets

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class BetaDisplay(ProbabilityDisplay):
    """The best set as β varies: its threshold, expected precision, recall and F_β.

    Attributes
    ----------
    beta : ndarray
        The values of β, rising.
    threshold : ndarray
        Where the best set is cut for each β.
    k : ndarray of int
        The size of that set.
    precision : ndarray
        Its expected precision.
    recall : ndarray
        Its expected recall.
    fbeta : ndarray
        Its expected F_β.
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        Its figure.
    lines_ : list of Line2D
        The lines.
    """

    beta: NDArray[np.float64]
    threshold: NDArray[np.float64]
    k: NDArray[np.int64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    fbeta: NDArray[np.float64]

    @classmethod
    def _computed(cls, proba: ArrayLike, *, betas: ArrayLike | None = None) -> Self:
        """Compute the arrays without drawing: one decision for each β, by default 0.1 … 10."""
        beta = np.geomspace(0.1, 10.0, 41) if betas is None else np.sort(np.asarray(betas, float))
        best = [maximize_expected_f(proba, beta=each) for each in beta.tolist()]
        k = np.array([decision.k for decision in best])
        top = TopSets(np.sort(np.asarray(proba, np.float64))[::-1])
        return cls(
            beta=beta,
            threshold=np.array([decision.threshold for decision in best]),
            k=k,
            precision=top.mass[k] / np.maximum(k, 1),
            recall=top.recall[k],
            fbeta=np.array([decision.expected for decision in best]),
        )

    @classmethod
    def from_predictions(
        cls,
        proba: ArrayLike,
        *,
        betas: ArrayLike | None = None,
        beta: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw it for probabilities, without labels; `beta` is marked as the one in use.

        Parameters
        ----------
        proba : array-like of shape (n,)
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
        return cls._computed(proba, betas=betas).plot(ax, beta=beta)

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
        ax.set_xscale("log")
        ax.set_xticks([b for b in (0.1, 0.2, 0.5, 1, 2, 5, 10) if self._within(b)])
        ax.xaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
        ax.set_ylim(0, 1.02)
        tidy(
            ax,
            xlabel="β: below 1 precision counts more, above 1 recall",
            ylabel="value for the best set",
            title="What each β chooses\n" if beta is not None else "What each β chooses",
        )
        ax.legend(frameon=False, loc="best", fontsize="small")

    def _within(self, beta: float) -> bool:
        return bool(self.beta[0] * 0.999 <= beta <= self.beta[-1] * 1.001)
