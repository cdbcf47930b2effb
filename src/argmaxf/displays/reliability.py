"""Whether probabilities can be taken at their word, and what it costs in F where they cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf._base.validation import as_real_array
from argmaxf.displays.base import LabelledDisplay, Measured
from argmaxf.displays.drawing import (
    BLUE,
    GREY,
    ORANGE,
    positives,
    tidy,
)
from argmaxf.empirical.threshold import maximize_empirical_f
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.measures import MeasureLike, as_measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class ReliabilityDisplay(Measured, LabelledDisplay):
    """Share of positives against predicted probability, with what miscalibration costs in F.

    Attributes
    ----------
    edges : ndarray
        Borders of the bins of probability.
    count : ndarray of int
        Rows in each bin.
    predicted : ndarray
        Mean probability in each bin; NaN in an empty one.
    observed : ndarray
        Share of positives in each bin; NaN in an empty one.
    low : ndarray
        Lower end of the 95 % Wilson interval of that share.
    high : ndarray
        Its upper end.
    promised : float
        E[F] of the set that maximizes it, by the probabilities.
    achieved : float
        F of that set on the labels.
    best : float
        F of the best threshold on the labels, found in hindsight.
    beta : float
        The β of F_β.
    measure : Measure
        What is shown.
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        Its figure.
    line_ : Line2D
        The line.
    """

    edges: NDArray[np.float64]
    count: NDArray[np.int64]
    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    promised: float
    achieved: float
    best: float

    @property
    def cost(self) -> float:
        """F lost, at most, by deciding with these probabilities: `best` less `achieved`."""
        return self.best - self.achieved

    @classmethod
    def _computed(
        cls,
        y_true: ArrayLike,
        proba: ArrayLike,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        n_bins: int = 10,
        pos_label: Any = None,
    ) -> Self:
        """Compute the arrays without drawing. Cost: one sort."""
        if n_bins < 1:
            raise ValueError(f"n_bins must be at least 1, got {n_bins!r}")
        y, p = positives(y_true, pos_label), as_real_array("proba", proba)
        best = maximize_empirical_f(y, p, beta=beta, measure=measure)
        decision = maximize_expected_f(p, beta=beta, measure=measure)
        chosen = decision.selected
        edges = np.linspace(0.0, 1.0, n_bins + 1)
        which = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, n_bins - 1)
        count = np.bincount(which, minlength=n_bins)
        hits, mass = (np.bincount(which, weights=a, minlength=n_bins) for a in (y, p))
        low, high = _wilson(_share(hits, count), np.maximum(count, 1))
        return cls(
            edges=edges,
            count=count,
            predicted=_share(mass, count),
            observed=_share(hits, count),
            low=low,
            high=high,
            promised=decision.expected,
            achieved=float(
                as_measure(measure, beta).value(
                    np.sum(y & chosen), np.sum(chosen), np.sum(y), len(y)
                )
            ),
            best=best.value,
            beta=decision.beta,
            measure=measure,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        proba: ArrayLike,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        n_bins: int = 10,
        pos_label: Any = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw it for labels and probabilities, in `n_bins` bins of equal width.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels, of two classes.
        proba : array-like of shape (n,)
            Probabilities of being positive.
        beta : float, default=1.0
            Weight of recall against precision.
        measure : str, Measure or callable, default="fbeta"
            What is shown: a name, an object of `argmaxf.measures`, or a function of counts.
        n_bins : int, default=10
            Number of bins of equal width.
        pos_label : scalar, optional
            The class that counts as positive; by default the last in sorted order.
        ax : Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        ReliabilityDisplay
            The display, with what was drawn.
        """
        options = {"beta": beta, "measure": measure, "n_bins": n_bins, "pos_label": pos_label}
        return cls._computed(y_true, proba, **options).plot(ax)

    def _draw(self, ax: Axes) -> None:
        """Draw the shares with their intervals over a histogram of the probabilities."""
        self._draw_histogram(ax)
        seen = self.count > 0
        x, y = self.predicted[seen], self.observed[seen]
        ax.plot([0, 1], [0, 1], color=GREY, ls="--", lw=1, label="probabilities at their word")
        bars = np.maximum([y - self.low[seen], self.high[seen] - y], 0.0)
        self.line_ = ax.errorbar(
            x, y, yerr=bars, fmt="o-", color=BLUE, capsize=3, label="found, with 95 % interval"
        )
        ax.set_xlim(0, 1)
        ax.set_ylim(-0.3, 1.02)
        ax.set_yticks([0, 0.25, 0.5, 0.75, 1.0])
        f = self.measure.title
        tidy(
            ax,
            xlabel="predicted probability",
            ylabel="share of positives found",
            title=f"Promised {f} {self.promised:.3f}, achieved {self.achieved:.3f}; "
            f"miscalibration costs at most {self.cost:.3f}",
        )
        ax.legend(frameon=False, loc="upper left", fontsize="small")

    def _draw_histogram(self, ax: Axes) -> None:
        """Draw how many rows each bin has, on a logarithmic scale, below the zero line."""
        height = np.log10(self.count + 1.0)
        height *= 0.2 / max(float(height.max()), 1e-9)
        width = np.diff(self.edges)
        ax.bar(self.edges[:-1], height, width, bottom=-0.29, align="edge", color=ORANGE, alpha=0.3)
        for left, w, h, count in zip(self.edges[:-1], width, height, self.count, strict=True):
            ax.text(
                left + w / 2, -0.28 + h, _short(int(count)), ha="center", va="bottom", fontsize=7
            )
        ax.text(0.995, -0.03, "rows in each bin", ha="right", va="bottom", fontsize=7)


def _wilson(share: Any, count: Any) -> tuple[Any, Any]:
    """Return Wilson's 95 % score limits for a share of `count` draws."""
    z = 1.959963984540054  # 95 % of a normal distribution lie within so many standard deviations
    centre = count * share + z**2 / 2
    half = z * np.sqrt(count * share * (1 - share) + z**2 / 4)
    low, high = (np.clip((centre + sign * half) / (count + z**2), 0, 1) for sign in (-1, 1))
    return low, high


def _share(part: Any, count: Any) -> NDArray[np.float64]:
    return np.asarray(np.divide(part, count, out=np.full(len(count), np.nan), where=count > 0))


def _short(count: int) -> str:
    """Return a count in few characters.

    >>> _short(1987), _short(123456)
    ('1987', '123k')
    """
    for size, suffix in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= 10 * size:
            return f"{count / size:.0f}{suffix}"
    return str(count)
