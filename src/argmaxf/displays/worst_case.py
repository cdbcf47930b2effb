"""What a promise is worth: expected F and its worst case, over how far odds may be off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf._base.validation import as_probabilities
from argmaxf.displays.base import ProbabilityDisplay
from argmaxf.displays.drawing import BLUE, GREY, ORANGE, tidy
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.values import expected_f
from argmaxf.expected.worst_case import maximize_worst_case_f
from argmaxf.measures import FBeta
from argmaxf.prior import move_odds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDEST = 4.0  # the largest odds factor shown by default


@dataclass(kw_only=True, eq=False, repr=False)
class WorstCaseDisplay(ProbabilityDisplay):
    """Promise and worst case over the width of the band in which odds are known.

    At factor r every probability may have odds between 1/r and r times those given. Two sets are
    shown: the one with the highest expected F for the probabilities as they are, and for each
    factor the one with the best worst case (`maximize_worst_case_f`).

    Attributes
    ----------
    factors : ndarray
        The odds factors, rising from 1.
    promise : float
        Expected F of the decision for the probabilities as they are.
    worst : ndarray
        Its worst case within each band.
    best_worst : ndarray
        The best worst case that any set has.
    beta : float
        The β of F_β.
    ax_, figure_, lines_ : Axes, Figure, list
        What was drawn.
    """

    factors: NDArray[np.float64]
    promise: float
    worst: NDArray[np.float64]
    best_worst: NDArray[np.float64]
    beta: float = 1.0

    @classmethod
    def _computed(
        cls, proba: ArrayLike, *, beta: float = 1.0, factors: ArrayLike | None = None
    ) -> Self:
        """Compute the arrays without drawing: one decision for each factor."""
        p = as_probabilities("proba", proba, ndim=1).astype(np.float64)
        widths = np.geomspace(1.0, WIDEST, 13) if factors is None else np.sort(factors)
        if widths[0] < 1.0:
            raise ValueError(f"factors must be at least 1, got {widths[0]:g}")
        plain = maximize_expected_f(p, beta=beta)
        bands = [(move_odds(p, 1.0 / r), move_odds(p, r)) for r in widths]
        chosen = plain.selected
        return cls(
            factors=widths,
            promise=plain.expected,
            worst=np.array(
                [expected_f(np.where(chosen, *ends), chosen, beta=beta).mean for ends in bands]
            ),
            best_worst=np.array(
                [maximize_worst_case_f(*ends, beta=beta).expected for ends in bands]
            ),
            beta=plain.beta,
        )

    @classmethod
    def from_predictions(
        cls,
        proba: ArrayLike,
        *,
        beta: float = 1.0,
        factors: ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw it for probabilities.

        Parameters
        ----------
        proba : array-like of float
            Probabilities of being positive.
        beta : float, default=1.0
            Weight of recall against precision.
        factors : array-like of float, default=None
            The odds factors, at least 1.
        ax : Axes, default=None
            Where to draw; by default new axes.

        Returns
        -------
        WorstCaseDisplay
            Drawn.
        """
        return cls._computed(proba, beta=beta, factors=factors).plot(ax)

    def _draw(self, ax: Axes) -> None:
        """Draw both worst cases below the promise."""
        f = FBeta(self.beta).title
        (best,) = ax.plot(self.factors, self.best_worst, color=BLUE, lw=2, label="best worst case")
        (worst,) = ax.plot(
            self.factors, self.worst, color=ORANGE, ls="--", label="worst case of the usual set"
        )
        ax.axhline(self.promise, color=GREY, ls=":", label=f"promised: {self.promise:.3f}")
        gain = float(np.max(self.best_worst - self.worst))
        tidy(
            ax,
            xlabel="odds may be off by this factor, either way",
            ylabel=f"expected {f}",
            title=f"Looking to the worst case saves up to {gain:.3f} {f} here",
        )
        ax.legend(frameon=False, fontsize="small")
        self.lines_ = [best, worst]
