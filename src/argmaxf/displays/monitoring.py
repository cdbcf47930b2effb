"""The course of a deployed threshold, period by period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from argmaxf._base.validation import check_choice
from argmaxf.displays.base import BLUE, GREEN, GREY, ORANGE, Display, tidy
from argmaxf.monitoring.monitor import Monitor, Period

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMES = 12  # of periods under the axis


@dataclass(kw_only=True, eq=False, repr=False)
class MonitorDisplay(Display):
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
    ax_, figure_ : as in `Display`

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

    _width = 7.2

    def __post_init__(self) -> None:
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
        ax : as in `Display`
        """
        f = monitor.measure.title
        found = cls(periods=monitor.periods, reference=monitor.reference, shows=shows, measure=f)
        return found.plot(ax)

    def _draw(self, ax: Axes) -> None:
        of_f, changed = self.shows == "f", "if only the rate\nhas changed"
        values = [p.predicted.f if of_f else p.rate for p in self.periods]
        x = np.arange(len(values)) if len(values) > 1 else np.array([-0.3, 0.3])  # some width
        ends = np.array([(v.low, v.value, v.high) for v in values]).T
        low, middle, high = np.broadcast_to(ends, (3, x.size))
        ax.fill_between(x, low, high, color=BLUE, alpha=0.2, lw=0, label="interval")
        label = "predicted" if of_f else changed
        ax.plot(x, middle, "o-", color=BLUE, ms=3.5, lw=1.5, label=label)
        if of_f:
            after = [p.predicted_after_shift.f.value for p in self.periods]
            ax.plot(after, ":", color=GREY, lw=1.4, label=changed)
            known = [(i, p.found) for i, p in enumerate(self.periods) if p.found is not None]
            if known:
                ends = np.array([(i, f.value, f.value - f.low, f.high - f.value) for i, f in known])
                x, y, *bars = ends.T
                label = "labelled rows"
                ax.errorbar(x, y, bars, fmt="D", ms=4, color=GREEN, capsize=2, label=label)
        if self.reference is not None:
            at = self.reference.predicted.f if of_f else self.reference.rate
            ax.axhline(at.value, color=GREY, lw=1, ls="--", label="reference")
        alarms = [i for i, p in enumerate(self.periods) if p.alarms]
        for i in alarms:
            once = "alarm" if i == alarms[0] else None
            ax.axvspan(i - 0.5, i + 0.5, color=ORANGE, alpha=0.2, lw=0, label=once)
        places = np.arange(len(self.periods))[:: -(-len(self.periods) // MOST_NAMES)]
        every = (self.periods[i].name for i in places)
        names = [name if len(name) <= 16 else f"{name[:15]}…" for name in every]
        turned: dict[str, Any] = {"rotation": 35, "ha": "right"} if max(map(len, names)) > 4 else {}
        ax.set_xticks(places, names, parse_math=False, **turned)
        ax.set_xlim(-0.6, len(self.periods) - 0.4)
        ax.set_ylim(0.0, min(1.0, ax.get_ylim()[1]))
        what = self.measure if of_f else "rate of positives"
        title = f"Predicted {what}" if of_f else "Rate of positives"
        tidy(ax, "", what, f"{title} by period", legend=False)
        beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        ax.legend(frameon=False, fontsize="small", **beside)
