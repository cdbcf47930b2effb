"""Methods side by side: F with intervals, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from argmaxf.displays.base import BLUE, ORANGE, Display, Measured, tidy
from argmaxf.empirical.interval import Interval, f_difference, f_interval
from argmaxf.estimators.labels import Labels
from argmaxf.measures import MeasureLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class MethodComparisonDisplay(Measured, Display):
    """F of several methods on the same rows, with intervals, and how far each is from one of them.

    Attributes
    ----------
    scores : mapping of str to Interval
        For each method its F and interval.
    differences : mapping of str to Interval
        For each method its F minus that of `reference`, paired over the rows.
    reference : str
        The method the others are compared with.
    beta : float
        The β of F_β.
    measure : Measure
        What is shown.
    confidence_level : float
        How often intervals shall hold.
    ax_, figure_ : Axes, Figure
        What was drawn.
    """

    scores: Mapping[str, Interval]
    differences: Mapping[str, Interval]
    reference: str
    confidence_level: float = 0.95

    _width = 7.2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.scores, self.differences = dict(self.scores), dict(self.differences)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        predictions: Mapping[str, ArrayLike],
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        confidence_level: float = 0.95,
        reference: str | None = None,
        pos_label: Any = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw it for the predictions of several methods, given by name.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, labels)
            True labels.
        predictions : mapping of str to array-like
            The predicted labels of each method, by its name.
        beta : float, default=1.0
            Weight of recall against precision.
        measure : str, Measure or callable, default="fbeta"
            What is shown: a name, an object of `argmaxf.measures`, or a function of counts.
        confidence_level : float, default=0.95
            How often intervals shall hold.
        reference : str, optional
            The method the others are compared with; by default the best.
        pos_label : scalar, optional
            The class that counts as positive; by default the last in sorted order.
        ax : Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        MethodComparisonDisplay
            The display, with what was drawn.
        """
        if not predictions:
            raise ValueError("predictions must hold at least one method, got none")
        if reference is not None and reference not in predictions:
            raise ValueError(f"reference must be one of {list(predictions)}, got {reference!r}")
        labels = Labels.of(y_true, pos_label)
        truth = labels.columns(y_true)
        tables = {name: labels.columns(y) for name, y in predictions.items()}
        options: dict[str, Any] = {"beta": beta, "measure": measure}
        options["confidence_level"] = confidence_level
        scores = {
            name: f_interval(truth, table, average="macro", **options)
            for name, table in tables.items()
        }
        best = reference or max(scores, key=lambda name: scores[name].value)
        differences = {
            name: f_difference(truth, table, tables[best], **options)
            for name, table in tables.items()
        }
        found = cls(scores=scores, differences=differences, reference=best, **options)
        return found._drawn(ax)

    @classmethod
    def from_estimator(
        cls, estimators: Mapping[str, Any], X: Any, y: ArrayLike, **options: Any
    ) -> Self:
        """Draw it for fitted classifiers, given by name, on labelled rows.

        Parameters
        ----------
        estimators : mapping of str to estimator
            Fitted classifiers by name.
        X : array-like or sparse matrix of shape (n, features)
            The rows.
        y : array-like of shape (n,)
            Their true labels.
        **options : dict
            Further options of `from_predictions`.

        Returns
        -------
        MethodComparisonDisplay
            The display, with what was drawn.
        """
        predictions = {name: estimator.predict(X) for name, estimator in estimators.items()}
        return cls.from_predictions(y, predictions, **options)

    def _draw(self, ax: Axes) -> None:
        """Draw each method's F and interval, its paired difference written beside it."""
        f = self.measure.title
        for row, (name, score) in enumerate(self.scores.items()):
            color = ORANGE if name == self.reference else BLUE
            ax.plot([score.low, score.high], [row, row], color=color, lw=2.2, alpha=0.75)
            ax.plot([score.value], [row], "o", color=color)
            ax.text(score.value, row - 0.16, f"{score.value:.3f}", ha="center", va="bottom")
            ax.text(1.02, row, self._beside(name), transform=ax.get_yaxis_transform(), va="center")
        ax.text(
            1.02,
            -0.62,
            f"minus {_plain(self.reference)}, paired",
            transform=ax.get_yaxis_transform(),
            va="center",
            fontsize="small",
            style="italic",
        )
        ax.set_yticks(range(len(self.scores)), [_plain(name) for name in self.scores])
        ax.set_ylim(len(self.scores) - 0.5, -0.75)
        tidy(
            ax,
            xlabel=f"{f} on rows not trained on, with {100 * self.confidence_level:g} % interval",
            ylabel="",
            title=self._title(f),
            legend=None,
        )
        ax.grid(visible=False, axis="y")

    def _beside(self, name: str) -> str:
        if name == self.reference:
            return "—"
        d = self.differences[name]
        return f"{d.value:+.3f}  [{d.low:+.3f}, {d.high:+.3f}]".replace("-", "−")

    def _title(self, f: str) -> str:
        behind = [_plain(n) for n, d in self.differences.items() if d.high < 0]
        reference = _plain(self.reference)
        if not behind:
            return f"Nothing is clearly worse than {reference} in {f}"
        return f"Clearly worse than {reference} in {f}: {', '.join(behind)}"


def _plain(name: str) -> str:
    """Return a name as matplotlib must get it to show it as it is: $ begins mathematics."""
    return name.replace("$", r"\$")
