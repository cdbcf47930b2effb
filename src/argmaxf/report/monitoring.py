"""The course of a deployed threshold as one self-contained HTML page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from argmaxf.displays.monitoring import MonitorDisplay
from argmaxf.monitoring.monitor import Monitor, Period
from argmaxf.report.page import svg, versions


def render(monitor: Monitor, periods: Sequence[Period], *, command: Sequence[str]) -> str:
    """Return the page: alarms, pictures, a table of all periods, limits, how to repeat it."""
    environment = Environment(
        loader=PackageLoader("argmaxf.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    f, reference = monitor.measure.title, monitor.reference
    captions = {
        "f": f"Predicted {f} of each period with its interval; diamonds: {f} of labelled rows.",
        "rate": "Rate of positives of each period, if only that rate has changed.",
    }
    pictures = [
        {
            "caption": caption,
            "svg": svg(
                MonitorDisplay(periods=periods, reference=reference, shows=shows, measure=f),
                caption,
                wide=True,
            ),
        }
        for shows, caption in captions.items()
    ]
    return environment.get_template("monitoring.html.j2").render(
        monitor=monitor,
        reference=reference,
        periods=periods,
        alarmed=[each for each in periods if each.alarms],
        has_labels=any(each.found for each in periods),
        f=f,
        pictures=pictures,
        command=shlex.join(command),
        versions=versions(),
    )
