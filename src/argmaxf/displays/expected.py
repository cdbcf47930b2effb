"""Displays of probabilities: expected F by size, by β, under wrong rates and in the worst case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from argmaxf._base.arrays import Floats, Ints
from argmaxf._base.validation import as_probabilities, as_real_array, check_choice
from argmaxf.displays.base import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    MeasuredDisplay,
    PredictionDisplay,
    draw_lines,
    thinned,
    tidy,
)
from argmaxf.expected.decision import Decision
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.values import TopSets, expected_f, expected_f_curve
from argmaxf.expected.worst_case import maximize_worst_case_f
from argmaxf.measures import MeasureLike
from argmaxf.prior import move_odds, odds_factor
from argmaxf.theory import mean_kl_of_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class ExpectedFDisplay(MeasuredDisplay):
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
    x : {"k", "threshold"}
        What runs along the axis.
    beta, measure, ax_, figure_, lines_ : as in `Display`

    Examples
    --------
    >>> display = ExpectedFDisplay.from_predictions([0.05, 0.45, 0.1, 0.3, 0.4], ax=False)
    >>> display.expected.round(2)
    array([0.  , 0.34, 0.46, 0.48, 0.43, 0.38])
    """

    k: Ints
    threshold: Floats
    expected: Floats
    band_k: Ints
    band_std: Floats
    decision: Decision
    x: str = "k"

    @classmethod
    def from_predictions(
        cls,
        p: ArrayLike,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        x: str = "k",
        ax: Axes | bool | None = None,
    ) -> Self:
        """Draw the expected F_β of probabilities, without labels.

        Cost: one sort, and one pass for each of 48 sizes with a standard deviation.

        Parameters
        ----------
        p, beta, measure : as in `Display`
        x : {"k", "threshold"}, default="k"
            What runs along the axis: how many are selected, or the threshold.
        ax : as in `Display`
        """
        decision = maximize_expected_f(p, beta=beta, measure=measure)
        falling = np.sort(as_real_array("p", p).astype(np.float64))[::-1]
        band_k = np.unique(np.geomspace(1, falling.size, 48).astype(np.int64))
        rank = np.arange(falling.size)
        std = [expected_f(falling, rank < k, beta=beta, measure=measure).std for k in band_k]
        return cls(
            k=np.arange(falling.size + 1),
            threshold=np.concatenate([[np.inf], falling]),
            expected=expected_f_curve(falling, beta=beta, measure=measure),
            band_k=band_k,
            band_std=np.array(std),
            decision=decision,
            x=check_choice("x", x, ("k", "threshold")),
            beta=beta,
            measure=measure,
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        best, f, by_size = self.decision, self.measure.title, self.x == "k"
        along = self.k if by_size else self.threshold
        shown = thinned(len(along), best.k)[1:]
        line = f"expected {f}", self.expected[shown], BLUE, "-", 1.5
        self.lines_ = draw_lines(ax, along[shown], line)
        middle = self.expected[self.band_k]
        low, high = np.clip([middle - self.band_std, middle + self.band_std], 0, 1)
        band: dict[str, Any] = {"color": BLUE, "alpha": 0.18, "lw": 0, "label": f"± 1 std of {f}"}
        ax.fill_between(along[self.band_k], low, high, **band)
        at = along[max(best.k, not by_size)]
        ax.axvline(at, color=ORANGE, lw=1, ls="--")
        label = f"best: threshold {best.threshold:.3g}"
        ax.plot([at], [best.expected], "o", color=ORANGE, label=label, zorder=3)
        if not by_size:
            ax.set_xlim(0, min(1.0, 1.02 * float(self.threshold[1])))
        elif best.k < 0.2 * best.n:  # rare positives sit at the left end
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.set_ylim(0, min(1.0, 1.18 * float(high.max())) or 1.0)
        xlabel = "items selected, most probable first" if by_size else "probability threshold"
        found = f"expected {f} {best.expected:.3f} ± {best.std:.3f}"
        title = f"Select {best.k:,} of {best.n:,}: {found}"
        tidy(ax, xlabel, f"{f} if these are selected", title)


@dataclass(kw_only=True, eq=False, repr=False)
class BetaDisplay(PredictionDisplay):
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
    marked : float or None
        The β in use.
    ax_, figure_, lines_ : as in `Display`

    Examples
    --------
    >>> p = [0.05, 0.45, 0.1, 0.3, 0.4]
    >>> display = BetaDisplay.from_predictions(p, betas=[0.5, 1, 3], ax=False)
    >>> display.k
    array([2, 3, 4])
    """

    beta: Floats
    threshold: Floats
    k: Ints
    precision: Floats
    recall: Floats
    fbeta: Floats
    marked: float | None = None

    @classmethod
    def from_predictions(
        cls,
        p: ArrayLike,
        *,
        betas: ArrayLike | None = None,
        beta: float | None = None,
        ax: Axes | bool | None = None,
    ) -> Self:
        """Draw it for probabilities, without labels: one decision for each β.

        Parameters
        ----------
        p : as in `Display`
        betas : array-like, optional
            The values of β; by default 0.1 … 10.
        beta : float, optional
            The β in use, which is marked.
        ax : as in `Display`
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
            marked=beta,
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        beta, threshold = self.marked, np.where(self.k > 0, self.threshold, np.nan)
        self.lines_ = draw_lines(
            ax,
            self.beta,
            ("expected precision", self.precision, GREEN, "-", 1.4),
            ("expected recall", self.recall, ORANGE, "-", 1.4),
            ("expected Fβ", self.fbeta, BLUE, "-", 2.0),
            ("threshold", threshold, GREY, "--", 1.4),
        )
        if beta is not None:
            ax.axvline(beta, color=GREY, lw=0.8, ls=":")
            ax.text(beta, 1.03, f"β = {beta:g}", ha="center", va="bottom", fontsize="small")
        low, high = self.beta[0] * 0.999, self.beta[-1] * 1.001
        ax.set_xscale("log")
        ax.set_xticks([b for b in (0.1, 0.2, 0.5, 1, 2, 5, 10) if low <= b <= high])
        ax.xaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
        ax.set_ylim(0, 1.02)
        title = "What each β chooses" + "\n" * (beta is not None)
        xlabel = "β: below 1 precision counts more, above 1 recall"
        tidy(ax, xlabel, "value for the best set", title)


@dataclass(kw_only=True, eq=False, repr=False)
class PriorSensitivityDisplay(MeasuredDisplay):
    """Loss of deciding with a wrong positive rate: 1 - E[F] and KL against the rate assumed.

    The probabilities given are taken for true. A model that assumes another positive rate
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
    beta, measure, ax_, figure_, lines_ : as in `Display`

    Examples
    --------
    >>> p = [0.01, 0.02, 0.05, 0.1, 0.45, 0.4]
    >>> assumed = [0.01, 0.17, 0.6]
    >>> display = PriorSensitivityDisplay.from_predictions(p, assumed=assumed, ax=False)
    >>> display.loss.round(2)
    array([0.51, 0.51, 0.58])
    """

    assumed: Floats
    loss: Floats
    kl: Floats
    positive_rate: float

    @classmethod
    def from_predictions(
        cls,
        p: ArrayLike,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        assumed: ArrayLike | None = None,
        ax: Axes | bool | None = None,
    ) -> Self:
        """Draw it for probabilities, without labels: one decision for each rate assumed.

        Parameters
        ----------
        p, beta, measure : as in `Display`
        assumed : array-like, optional
            The positive rates to try; by default from a twentieth to twenty times the odds.
        ax : as in `Display`
        """
        true = as_real_array("p", p).astype(np.float64)
        decision = maximize_expected_f(true, beta=beta, measure=measure)  # checks p and beta
        rate = float(true.mean())
        if not 0 < rate < 1:
            raise ValueError(f"p must not be all 0 or all 1, got a mean of {rate:g}")
        around = expit(logit(rate) + np.linspace(-3.0, 3.0, 41))
        rates = around if assumed is None else np.sort(np.asarray(assumed, dtype=float))
        shifted = move_odds(true[:, None], odds_factor(rate, rates)).T
        # A shift keeps the order of the items: its best set is a top-k set of the true p, too.
        best = maximize_expected_f(shifted, beta=beta, measure=measure, average="samples")
        return cls(
            assumed=rates,
            loss=1 - expected_f_curve(true, beta=beta, measure=measure)[best.k],
            kl=mean_kl_of_rows(true, shifted),
            positive_rate=rate,
            beta=decision.beta,
            measure=measure,
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        """Draw 1 - E[F] on the left scale and KL on the right."""
        right, loss = ax.twinx(), f"1 − expected {self.measure.title}"
        lines = draw_lines(ax, self.assumed, (loss, self.loss, BLUE, "-", 2.0))
        lines += draw_lines(right, self.assumed, ("KL (right scale)", self.kl, ORANGE, "--", 1.5))
        label = f"rate of these probabilities: {self.positive_rate:.3g}"
        rate = ax.axvline(self.positive_rate, color=GREY, ls=":", label=label)
        ax.set_xscale("logit")
        ticks = (0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
        shown = [t for t in ticks if self.assumed[0] <= t <= self.assumed[-1]]
        ax.set_xticks(shown, [f"{t:g}" for t in shown])
        ax.set_xticks([], minor=True)
        costs = f"{np.ptp(self.loss):.3f} {self.measure.title}"
        title = f"A wrong positive rate costs up to {costs} here"
        tidy(ax, "positive rate assumed by the model", loss, title, legend=None)
        right.set_ylabel("KL divergence, nats")
        right.spines["top"].set_visible(False)
        right.set_ylim(bottom=0)
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.3 * (high - low))  # room for the legend
        ax.legend(handles=[*lines, rate], frameon=False, loc="upper left", fontsize="small")
        self.lines_ = lines


@dataclass(kw_only=True, eq=False, repr=False)
class WorstCaseDisplay(MeasuredDisplay):
    """Expected F and its worst case, against how far the odds may be off.

    At factor r every probability may have odds between 1/r and r times those given. Two sets are
    shown: the one with the highest expected F for the probabilities as they are, and for each
    factor the one with the best worst case (`maximize_worst_case_f`).

    Attributes
    ----------
    factors : ndarray
        The odds factors, rising from 1.
    expected : float
        Expected F of the decision for the probabilities as they are.
    worst : ndarray
        Its worst case within each band.
    best_worst : ndarray
        The best worst case that any set has.
    beta, measure, ax_, figure_, lines_ : as in `Display`

    Examples
    --------
    >>> p = [0.05, 0.45, 0.1, 0.3, 0.4]
    >>> display = WorstCaseDisplay.from_predictions(p, factors=[1, 3], ax=False)
    >>> display.worst.round(3), display.best_worst.round(3)
    (array([0.48 , 0.226]), array([0.48 , 0.226]))
    """

    factors: Floats
    expected: float
    worst: Floats
    best_worst: Floats

    @classmethod
    def from_predictions(
        cls,
        p: ArrayLike,
        *,
        beta: float = 1.0,
        factors: ArrayLike | None = None,
        ax: Axes | bool | None = None,
    ) -> Self:
        """Draw it for probabilities: one decision for each factor.

        Parameters
        ----------
        p, beta : as in `Display`
        factors : array-like of float, default=None
            The odds factors, at least 1; by default 1 … 4.
        ax : as in `Display`
        """
        given = as_probabilities("p", p, ndim=1).astype(np.float64)
        widths = np.geomspace(1.0, 4.0, 13) if factors is None else np.sort(factors)
        if widths[0] < 1.0:
            raise ValueError(f"factors must be at least 1, got {widths[0]:g}")
        plain = maximize_expected_f(given, beta=beta)
        bands = [(move_odds(given, 1.0 / r), move_odds(given, r)) for r in widths]
        chosen = plain.selected
        worst = [expected_f(np.where(chosen, *ends), chosen, beta=beta).mean for ends in bands]
        best_worst = [maximize_worst_case_f(*ends, beta=beta).expected for ends in bands]
        return cls(
            factors=widths,
            expected=plain.expected,
            worst=np.array(worst),
            best_worst=np.array(best_worst),
            beta=plain.beta,
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        """Draw both worst cases below the expected F."""
        f, gain = self.measure.title, float(np.max(self.best_worst - self.worst))
        self.lines_ = draw_lines(
            ax,
            self.factors,
            ("best worst case", self.best_worst, BLUE, "-", 2.0),
            ("worst case of the usual set", self.worst, ORANGE, "--", 1.5),
        )
        label = f"expected as they are: {self.expected:.3f}"
        ax.axhline(self.expected, color=GREY, ls=":", label=label)
        title = f"Deciding for the worst case saves up to {gain:.3f} {f} here"
        tidy(ax, "odds may be off by this factor, either way", f"expected {f}", title)
