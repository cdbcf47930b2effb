"""What a wrong positive rate costs: the paper's Figure 1 for the user's own probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from argmaxf._base.validation import as_real_array
from argmaxf.displays.base import Measured, ProbabilityDisplay
from argmaxf.displays.drawing import BLUE, GREY, ORANGE, tidy
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.values import expected_f_curve
from argmaxf.measures import MeasureLike
from argmaxf.prior import move_odds, odds_factor
from argmaxf.theory.mixture import mean_kl_of_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class PriorSensitivityDisplay(Measured, ProbabilityDisplay):
    """Loss of deciding with a wrong positive rate: 1 - E[F] and KL against the rate assumed.

    The probabilities given are taken for true. A model that believes in another positive rate
    (`shift_prior`) decides, and its set is judged by the true ones (section 4.1.1 of the paper).

    Attributes
    ----------
    assumed : ndarray
        The positive rates assumed, rising.
    loss : ndarray
        1 - E[F] of the set decided with each.
    kl : ndarray
        Mean Kullback–Leibler divergence from the true to the assumed probabilities.
    positive_rate : float
        The rate of the probabilities given.
    beta : float
        The β of F_β.
    measure : Measure
        What is shown.
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        Its figure.
    lines_ : list of Line2D
        The lines.
    """

    assumed: NDArray[np.float64]
    loss: NDArray[np.float64]
    kl: NDArray[np.float64]
    positive_rate: float

    @classmethod
    def _computed(
        cls,
        proba: ArrayLike,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        assumed: ArrayLike | None = None,
    ) -> Self:
        """Compute the arrays without drawing: one decision for each rate assumed."""
        p = as_real_array("proba", proba).astype(np.float64)
        decision = maximize_expected_f(p, beta=beta, measure=measure)  # checks proba and beta
        rate = float(p.mean())
        if not 0 < rate < 1:
            raise ValueError(f"proba must not be all 0 or all 1, got a mean of {rate:g}")
        rates = _around(rate) if assumed is None else np.sort(np.asarray(assumed, dtype=float))
        shifted = move_odds(p[:, None], odds_factor(rate, rates)).T
        # A shift keeps the order of the items: its best set is a top-k set of the true p, too.
        best = maximize_expected_f(shifted, beta=beta, measure=measure, average="samples")
        return cls(
            assumed=rates,
            loss=1 - expected_f_curve(p, beta=beta, measure=measure)[best.k],
            kl=mean_kl_of_rows(p, shifted),
            positive_rate=rate,
            beta=decision.beta,
            measure=measure,
        )

    @classmethod
    def from_predictions(
        cls,
        proba: ArrayLike,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        assumed: ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw it for probabilities, without labels; `assumed` are the rates to try.

        Parameters
        ----------
        proba : array-like of shape (n,)
            Probabilities of being positive.
        beta : float, default=1.0
            Weight of recall against precision.
        measure : str, Measure or callable, default="fbeta"
            What is shown: a name, an object of `argmaxf.measures`, or a function of counts.
        assumed : array-like, optional
            The positive rates to try.
        ax : Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        PriorSensitivityDisplay
            The display, with what was drawn.
        """
        return cls._computed(proba, beta=beta, measure=measure, assumed=assumed).plot(ax)

    def _draw(self, ax: Axes) -> None:
        """Draw 1 - E[F] on the left scale and KL on the right."""
        right = ax.twinx()
        f = self.measure.title
        (loss,) = ax.plot(self.assumed, self.loss, color=BLUE, lw=2, label=f"1 − expected {f}")
        (kl,) = right.plot(self.assumed, self.kl, color=ORANGE, ls="--", label="KL (right scale)")
        rate = ax.axvline(
            self.positive_rate,
            color=GREY,
            ls=":",
            label=f"rate of these probabilities: {self.positive_rate:.3g}",
        )
        self._scale(ax)
        best = float(self.loss.min())
        tidy(
            ax,
            xlabel="positive rate assumed by the model",
            ylabel=f"1 − expected {f}",
            title=f"A wrong positive rate costs up to {float(self.loss.max()) - best:.3f} {f} here",
        )
        right.set_ylabel("KL divergence, nats")
        right.spines["top"].set_visible(False)
        right.set_ylim(bottom=0)
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.3 * (high - low))  # room for the legend
        ax.legend(handles=[loss, kl, rate], frameon=False, loc="upper left", fontsize="small")
        self.lines_ = [loss, kl]

    def _scale(self, ax: Axes) -> None:
        ax.set_xscale("logit")
        ticks = [0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999]
        shown = [t for t in ticks if self.assumed[0] <= t <= self.assumed[-1]]
        ax.set_xticks(shown, [f"{t:g}" for t in shown])
        ax.xaxis.set_minor_locator(_no_ticks())


def _around(rate: float) -> NDArray[np.float64]:
    """Return rates from a twentieth to twenty times the odds of the true one, and the true one."""
    return np.asarray(expit(logit(rate) + np.linspace(-3.0, 3.0, 41)))


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()
