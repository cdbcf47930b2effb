"""What all displays share: arrays without a drawing, and classifiers in the place of predictions.

A display computes its arrays in `_computed`, from what `from_predictions` documents, and draws them
in `plot`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import ArrayLike

from argmaxf.displays.drawing import new_axes, positive_proba
from argmaxf.measures import as_measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Display:
    """Arrays that know how to draw themselves."""

    _computed: ClassVar[Any]  # what says how the arrays come about
    _draw: ClassVar[Any]  # and how they are drawn
    from_predictions: ClassVar[Any]
    _width: ClassVar[float] = 6.4  # of a new figure, in inches

    ax_: Axes
    figure_: Figure

    @classmethod
    def of(cls, *data: Any, **options: Any) -> Self:
        """Compute the arrays without drawing.

        Parameters
        ----------
        *data : array-like
            As for `from_predictions`.
        **options : object
            Options of `from_predictions`, but for those that say how to draw.

        Returns
        -------
        Display
            The display, with its arrays.
        """
        found: Self = cls._computed(*data, **options)
        return found

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        Display
            The display, with what was drawn.
        """
        return self._drawn(ax)

    def _drawn(self, ax: Axes | None, **how: Any) -> Self:
        """Draw the display and keep where it was drawn."""
        self.ax_ = new_axes(ax, width=self._width)
        self._draw(self.ax_, **how)
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class Measured:
    """What is shown, of a display that shows one measure."""

    beta: float = 1.0
    measure: Any = "fbeta"

    def __post_init__(self) -> None:
        """Take the name of a measure for the measure."""
        self.measure = as_measure(self.measure, self.beta)


class ProbabilityDisplay(Display):
    """A display of probabilities, without labels."""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, pos_label: Any = None, **options: Any
    ) -> Self:
        """Draw it for the rows of X, with a fitted classifier's probabilities.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier.
        X : array-like or sparse matrix of shape (n, features)
            The rows.
        pos_label : scalar, optional
            The class that counts as positive; by default the last in sorted order.
        **options : object
            Further options of `from_predictions`.

        Returns
        -------
        Display
            The display, with what was drawn.
        """
        drawn: Self = cls.from_predictions(positive_proba(estimator, X, pos_label), **options)
        return drawn


class LabelledDisplay(Display):
    """A display of labelled scores, or of labelled probabilities."""

    _scores = staticmethod(positive_proba)  # what a classifier is asked for

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, pos_label: Any = None, **options: Any
    ) -> Self:
        """Draw it for labelled rows, with what a fitted classifier says of them.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier.
        X : array-like or sparse matrix of shape (n, features)
            The rows.
        y : array-like of shape (n,)
            Their true labels.
        pos_label : scalar, optional
            The class that counts as positive; by default the last in sorted order.
        **options : object
            Further options of `from_predictions`.

        Returns
        -------
        Display
            The display, with what was drawn.
        """
        scores = cls._scores(estimator, X, pos_label)
        drawn: Self = cls.from_predictions(y, scores, pos_label=pos_label, **options)
        return drawn
