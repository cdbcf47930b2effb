"""What an experiment hands over, and the files made from it: Markdown, CSV, JSON, PNG, SVG."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argmaxf._base.atomic_write import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Report:
    """A finished table or figure.

    `headline` is one sentence, `text` Markdown in the paper's own shape, `records` the same numbers
    one per line, `findings` the few numbers and truths that the claims are judged by, and `draw`
    makes the figure.
    """

    headline: str
    text: str
    records: Sequence[Record]
    findings: Mapping[str, Any]
    draw: Callable[[], Figure]


def beside_paper(mean: float, sd: float, paper: float) -> dict[str, Any]:
    """Return a mean and its sd beside the paper's number, and whether they agree."""
    return {
        "mean": mean,
        "sd": sd,
        "paper": paper,
        "difference": mean - paper,
        "within 2 sd": abs(mean - paper) <= 2 * sd,
    }


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are aligned right."""
    rule = ["---", *("---:" for _ in header[1:])]
    lines = [[cell.replace("|", "\\|") for cell in line] for line in [header, *rows]]
    lines.insert(1, rule)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_report(report: Report, name: str, folder: Path) -> list[Path]:
    """Write every form of a report; the same report gives the same bytes."""
    record = {
        "experiment": name,
        "headline": report.headline,
        "findings": report.findings,
        "records": list(report.records),
    }
    contents: dict[str, str | bytes] = {
        "md": report.text.rstrip() + "\n",
        "csv": _csv(report.records),
        "json": json.dumps(plain(record), ensure_ascii=False, indent=1, allow_nan=False) + "\n",
        **_images(report.draw),
    }
    paths = []
    for suffix, content in contents.items():
        paths.append(folder / f"{name}.{suffix}")
        write_whole(paths[-1], content)
    return paths


def _csv(records: Sequence[Record]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(plain(records))
    return stream.getvalue()


def _images(draw: Callable[[], Figure]) -> dict[str, bytes]:
    import matplotlib as mpl

    images = {}
    with mpl.rc_context(STYLE):
        figure = draw()
        for suffix in ("png", "svg"):
            stream = io.BytesIO()
            # no date in the file, or the bytes would change from run to run
            metadata = {"Date": None} if suffix == "svg" else {}
            figure.savefig(stream, format=suffix, metadata=metadata, bbox_inches="tight")
            images[suffix] = stream.getvalue()
    return images


def plain(value: Any) -> Any:
    """Return JSON's own types: numbers rounded to ten digits, a number that is none left out."""
    if isinstance(value, Mapping):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else None
    return value


def pretty(method: str) -> str:
    """Return a method's name as the paper sets it, for a figure.

    >>> print(pretty("ML^δ"))
    $\\mathrm{ML}^{\\delta}$
    """
    base, _, top = method.partition("^")
    return rf"$\mathrm{{{base}}}^{{{top}}}$".replace("δ", r"\delta")


STYLE: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "figure.dpi": 100,
    "font.size": 9.5,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "savefig.dpi": 150,
    "svg.hashsalt": "argmaxf",
}
# Safe for readers who do not tell red from green (Okabe and Ito).
COLOURS = {
    "ML^E": "#0072B2",
    "ML^δ": "#E69F00",
    "F^δ": "#009E73",
    "ML^.5": "#999999",
    "Truth^E": "#56B4E9",
    "Truth^δ": "#CC79A7",
    "paper": "#000000",
}
