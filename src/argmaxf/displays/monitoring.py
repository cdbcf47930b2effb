"""The course of a deployed threshold, period by period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from argmaxf._base.validation import check_choice
from argmaxf.displays.base import BLUE, GREEN, GREY, ORANGE, new_axes, tidy
from argmaxf.monitoring.monitor import Monitor, Period

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NAMES = 12  # of periods under the axis


@dataclass(kw_only=True, eq=False, repr=False)
class MonitorDisplay:
    """Predicted F, or the rate of positives, of each period of a monitor.

    Attributes
    ----------
    periods : list of Period
        The periods, in order.
    reference : Period or None
        The reference rows, drawn as a dashed line.
    shows : {"f", "rate"}
        What is drawn.
    measure : str
        The name of the measure.
    ax_, figure_ : Axes, Figure
        What was drawn.

    Examples
    --------
    >>> from argmaxf import Monitor
    >>> monitor = Monitor(0.4, [0.1, 0.2, 0.6, 0.9])
    >>> for p in ([0.2, 0.7], [0.1, 0.8], [0.3, 0.5]):
    ...     _ = monitor.update(p)
    >>> len(MonitorDisplay.from_monitor(monitor, ax=False).periods)
    3
    """

    periods: Sequence[Period]
    reference: Period | None = None
    shows: str = "f"
    measure: str = "F"

    ax_: Axes = field(init=False)
    figure_: Figure = field(init=False)

    def __post_init__(self) -> None:
        """Check what is to be shown."""
        check_choice("shows", self.shows, ("f", "rate"))
        self.periods = list(self.periods)
        if not self.periods:
            raise ValueError("periods must hold at least one period, got none")

    @classmethod
    def from_monitor(cls, monitor: Monitor, *, shows: str = "f", ax: Any = None) -> Self:
        """Draw it for the periods of a monitor.

        Parameters
        ----------
        monitor : Monitor
            The monitor, with at least one period.
        shows : {"f", "rate"}, default="f"
            ``"f"`` draws the predicted F, ``"rate"`` the rate of positives under prior shift.
        ax : Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        MonitorDisplay
            The display, with what was drawn.
        """
        f = monitor.measure.title
        found = cls(periods=monitor.periods, reference=monitor.reference, shows=shows, measure=f)
        return found if ax is False else found.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        MonitorDisplay
            The display, with what was drawn.
        """
        self.ax_ = ax = new_axes(7.2) if ax is None else ax
        self.figure_ = ax.figure  # type: ignore[assignment]
        places = np.arange(len(self.periods))
        if self.shows == "f":
            self._line([p.predicted.f for p in self.periods], BLUE, "predicted", "o-")
            after = [p.predicted_after_shift.f.value for p in self.periods]
            label = "if only the rate\nhas changed"
            ax.plot(places, after, ":", color=GREY, lw=1.4, label=label)
            known = [(i, p.found) for i, p in enumerate(self.periods) if p.found is not None]
            if known:
                ends = np.array([(i, f.value, f.value - f.low, f.high - f.value) for i, f in known])
                x, y, below, above = ends.T
                label = "labelled rows"
                ax.errorbar(
                    x, y, [below, above], fmt="D", ms=4, color=GREEN, capsize=2, label=label
                )
        else:
            self._line([p.rate for p in self.periods], BLUE, "if only the rate\nhas changed", "o-")
        if self.reference is not None:
            at = self.reference.predicted.f if self.shows == "f" else self.reference.rate
            ax.axhline(at.value, color=GREY, lw=1, ls="--", label="reference")
        alarms = [i for i, p in enumerate(self.periods) if p.alarms]
        for i in alarms:
            once = "alarm" if i == alarms[0] else None
            ax.axvspan(i - 0.5, i + 0.5, color=ORANGE, alpha=0.2, lw=0, label=once)
        step = -(-len(places) // MOST_NAMES)
        names = [_short(self.periods[i].name) for i in places[::step]]
        turned: dict[str, Any] = {"rotation": 35, "ha": "right"} if max(map(len, names)) > 4 else {}
        ax.set_xticks(places[::step], names, **turned)
        ax.set_xlim(-0.6, len(places) - 0.4)
        ax.set_ylim(0.0, min(1.0, ax.get_ylim()[1]))
        what = self.measure if self.shows == "f" else "rate of positives"
        title = f"Predicted {what}" if self.shows == "f" else "Rate of positives"
        tidy(ax, xlabel="", ylabel=what, title=f"{title} by period", legend=False)
        beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        ax.legend(frameon=False, fontsize="small", **beside)
        return self

    def _line(self, values: Sequence[Any], colour: str, label: str, style: str) -> None:
        """Draw values with their intervals."""
        x = np.arange(len(values))
        low, middle, high = np.array([(v.low, v.value, v.high) for v in values]).T
        if len(values) == 1:
            low, middle, high, x = (np.repeat(each, 2) for each in (low, middle, high, x))
            x = x + np.array([-0.3, 0.3])
        self.ax_.fill_between(x, low, high, color=colour, alpha=0.2, lw=0, label="interval")
        self.ax_.plot(x, middle, style, color=colour, ms=3.5, lw=1.5, label=label)


def _short(name: str) -> str:
    """Return a name that fits under an axis."""
    return name if len(name) <= 16 else f"{name[:15]}…"
