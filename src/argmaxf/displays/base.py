"""The base of all displays: arrays that are computed without drawing, and the helpers that draw.

A display computes its arrays in `from_predictions` and draws them in `_draw`; with `ax=False`
nothing is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Bools, Ints
from argmaxf._base.shared_docs import with_entries_of
from argmaxf._base.shown import Shown
from argmaxf.estimators.labels import Labels
from argmaxf.measures import as_measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# One colour for each quantity in every display; readable on white and on black, and apart for the
# common colour blindnesses.
BLUE, ORANGE, GREEN, GREY = "#2f7fc1", "#c8641b", "#1d8f6a", "#808890"
VIOLET = "#8a63b8"
RETURNS = "\n\nReturns\n-------\nDisplay\n    The display, with what was drawn.\n"
MOST_POINTS = 1200  # more cannot be told apart on a page; files stay small


class Display(Shown):
    """Arrays that can draw themselves.

    What several displays have is described here, once. In their docstrings a line such as
    ``beta, ax : as in `Display` `` stands for the entries below; `help` and the documentation show
    the entries in its place.

    Attributes
    ----------
    y_true : array-like of shape (n,)
        True labels, of two classes.
    p : array-like of shape (n,)
        Probabilities of being positive.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        What is shown: a name, an object of `argmaxf.measures`, or a function of counts.
    pos_label : scalar, optional
        The class that counts as positive; by default the last in sorted order.
    ax : Axes or False, optional
        Where to draw; by default in a new figure. With False, nothing is drawn.
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        The figure of these axes.
    lines_ : list
        The curves drawn.
    """

    _draw: ClassVar[Any]
    _width: ClassVar[float] = 6.4  # of a new figure, in inches

    ax_: Axes
    figure_: Figure

    def __init_subclass__(cls) -> None:
        """Complete the docstrings: the shared entries, and what is returned where it is drawn."""
        with_entries_of(Display)(cls)
        for each in vars(cls).values():
            method: Any = getattr(each, "__func__", each)
            if "\nax : Axes or" in (getattr(method, "__doc__", None) or ""):
                method.__doc__ += RETURNS

    def plot(self, ax: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : Axes or False, optional
            Where to draw; by default in a new figure. With False, nothing is drawn.

        Returns
        -------
        Display
            The display, with what was drawn.
        """
        if ax is False:
            return self
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ModuleNotFoundError:
                raise ModuleNotFoundError(
                    "displays need matplotlib; run pip install 'argmaxf[plot]'", name="matplotlib"
                ) from None
            ax = plt.subplots(figsize=(self._width, 4.2), layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self


class PredictionDisplay(Display):
    """A display of predictions, or of a classifier's on some rows."""

    _takes_scores: ClassVar[bool] = False  # whether decision scores do for probabilities
    from_predictions: ClassVar[Any]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, pos_label: Any = None, **options: Any
    ) -> Self:
        """Draw it for the rows of X, with a fitted classifier's probabilities or scores.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier.
        X : array-like or sparse matrix of shape (n, features)
            The rows.
        y : array-like of shape (n,), optional
            Their true labels, for displays that show labels.
        pos_label : scalar, optional
            The class that counts as positive; by default the last in sorted order.
        **options : object
            Further options of `from_predictions`.

        Returns
        -------
        Display
            The display, with what was drawn.
        """
        labels = two_classes("the classifier", estimator.classes_, pos_label)
        if hasattr(estimator, "predict_proba"):
            scores = labels.one(estimator.predict_proba(X))[:, 0]
        elif cls._takes_scores:
            scores = labels.margins(estimator.decision_function(X))[:, 0]
        else:
            raise ValueError(f"{type(estimator).__name__} has no predict_proba")
        rows = (scores,) if y is None else (y, scores)
        known = {} if y is None else {"pos_label": pos_label}
        drawn: Self = cls.from_predictions(*rows, **known, **options)
        return drawn


@dataclass(kw_only=True, eq=False, repr=False)
class MeasuredDisplay(PredictionDisplay):
    """A display of one measure.

    Attributes
    ----------
    beta, measure : as in `Display`
    """

    beta: float = 1.0
    measure: Any = "fbeta"

    def __post_init__(self) -> None:
        """Replace the name of a measure by the measure."""
        self.measure = as_measure(self.measure, self.beta)


def positives(y_true: ArrayLike, pos_label: Any = None) -> Bools:
    """Return which rows are of the positive class of a binary target."""
    return two_classes("y_true", y_true, pos_label).columns(y_true)[:, 0]


def two_classes(name: str, y: ArrayLike, pos_label: Any) -> Labels:
    """Return the labels of a target, which must be a binary one."""
    labels = Labels.of(y, pos_label)
    if not labels.is_binary:
        raise ValueError(f"{name} must have two classes, got a {labels.kind} target")
    return labels


def thinned(n: int, *keep: int) -> Ints:
    """Return at most about `MOST_POINTS` of the indices 0 … n-1, with ends, start and `keep`.

    Half of them evenly, half dense at the beginning, where curves over rare positives turn.

    >>> thinned(4, 2)
    array([0, 1, 2, 3])
    """
    if n <= MOST_POINTS:
        return np.arange(n)
    even = np.linspace(0, n - 1, MOST_POINTS // 2)
    early = np.geomspace(1, n, MOST_POINTS // 2) - 1
    return np.unique(np.concatenate([even, early, keep]).astype(np.int64))


def draw_lines(
    ax: Axes, x: Any, *lines: tuple[str, Any, str, str, float], **style: Any
) -> list[Any]:
    """Draw curves over x, each given by its label, values, colour, style and width."""
    return [
        ax.plot(x, y, color=color, ls=line, lw=width, label=label, **style)[0]
        for label, y, color, line, width in lines
    ]


def tidy(ax: Axes, xlabel: str, ylabel: str, title: str, legend: Any = "best") -> None:
    """Label the axes, leave out what carries no information, and draw a legend where asked."""
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set_title(title, loc="left", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    if legend:
        ax.legend(frameon=False, loc=legend, fontsize="small")
