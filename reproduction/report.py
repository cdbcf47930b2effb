"""What an experiment hands over, the files made from it, and the numbers that the paper prints."""

from __future__ import annotations

import csv
import io
import json
import math
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from scipy.stats import t as student

from argmaxf._base.atomic_write import write_whole
from reproduction.claims import answers
from reproduction.models import PARTS

Record = Mapping[str, Any]
FOLDER = Path(__file__).parent


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


def draw_printed(ax: Any, x: Any, y: Any, **style: Any) -> None:
    """Draw numbers of the paper, as open diamonds."""
    ax.plot(x, y, "D", **{"mfc": "white", "mec": "black", "ms": 5, "ls": "none", **style})


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


# ------------------------------------------------------------------ the paper's numbers


def published(experiment: str, row: str, column: str) -> float:
    """Return one printed number."""
    block = _paper()[experiment]
    return float(block["rows"][row][block["columns"].index(column)])


def rows(experiment: str) -> tuple[str, ...]:
    """Return the rows of a printed table."""
    return tuple(_paper()[experiment]["rows"])


def columns(experiment: str) -> tuple[str, ...]:
    """Return the columns of a printed table."""
    return tuple(_paper()[experiment]["columns"])


def topics() -> int:
    """Return the number of topics of Table 3 with a positive in both parts."""
    return int(_paper()["table3"]["topics"]["1"])


@cache
def _paper() -> dict[str, Any]:
    return dict(json.loads((FOLDER / "published.json").read_text(encoding="utf-8")))


# ------------------------------------------------------------------ statistics


def mean_sd(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean and the standard deviation (n - 1) of some numbers."""
    values = list(values)
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, math.nan
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


RESAMPLES = 10_000


class Difference(NamedTuple):
    """A mean difference and its 95 % interval."""

    value: float
    low: float
    high: float


def paired_difference(a: Sequence[float], b: Sequence[float]) -> Difference:
    """Return the mean of a - b, and a percentile bootstrap interval over the problems."""
    gaps = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    draws = np.random.default_rng(0).integers(0, len(gaps), (RESAMPLES, len(gaps)))
    low, high = np.quantile(gaps[draws].mean(axis=1), [0.025, 0.975])
    return Difference(float(gaps.mean()), float(low), float(high))


def t_interval(values: Sequence[float]) -> Difference:
    """Return a mean and Student's 95 % interval for it."""
    x = np.asarray(values, dtype=np.float64)
    half = student.ppf(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x))
    return Difference(float(x.mean()), float(x.mean() - half), float(x.mean() + half))


# ------------------------------------------------------------------ the results page

WORDS = (
    "EUM is the paper's empirical utility maximization: a threshold tuned (ML^δ) or a model "
    "trained (F^δ) for F on labelled rows. DTA is its decision-theoretic approach: the labels "
    "with the highest expected F by the probabilities of a model (ML^E). ML^.5 cuts these at "
    "one half; Truth^E and Truth^δ have the true ones. Made data are seen as coordinates "
    "(R0), with a constant (R1), and with all products of two (R2). On real data C is the "
    "least number of positives of a label, in training as in the test, and there are two "
    "setups: texts read and penalties chosen as the paper seems to have done it (paper-like), "
    "and as one would now (default)."
)


def results_page(reports: Mapping[str, Report], command: str, versions: Mapping[str, str]) -> str:
    """Return the page as Markdown, with figures and tables in results/."""
    parts = ["# The paper, reproduced", _how(command, versions)]
    found = answers({name: report.findings for name, report in reports.items()})
    if found:
        lines = [
            [claim.statement, claim.place, f"**{verdict}**", ", ".join(map(_link, claim.needs))]
            for claim, verdict, _ in found
        ]
        parts.append("## The claims\n\n" + _left_table(lines))
        parts += [f"**{claim.statement}** {evidence}" for claim, _, evidence in found]
    parts += [_section(name, report) for name, report in reports.items()]
    errata = (FOLDER / "errata.md").read_text(encoding="utf-8")
    parts.append("## Errata of the paper\n\n" + errata.strip())
    return "\n\n".join(parts) + "\n"


def timing_page(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return where the time went: model fitting, soft F, deciding, the rest."""
    lines = []
    total = {part: sum(s[part] for s in seconds.values()) for part in ("total", *PARTS)}
    for name, spent in [*seconds.items(), ("all", total)]:
        shares = [f"{100 * spent[part] / max(spent['total'], 1e-9):.0f} %" for part in PARTS]
        lines.append([name, f"{spent['total']:.1f}", *shares])
    header = ["experiment", "seconds", "fitting models", "training soft F", "deciding"]
    return (
        "# Where the time went\n\n"
        + markdown_table(header, lines)
        + "\n\nWall-clock seconds of all processes together; the rest is sampling, loading and "
        "judging. Times differ from run to run, and grow where the machine does other work.\n"
    )


def _how(command: str, versions: Mapping[str, str]) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in versions.items())
    look = "\n\n**A quick look: few seeds and labels, so verdicts below mean little.**"
    return (
        "Ye, Chai, Lee and Chieu, “Optimizing F-Measures: A Tale of Two Approaches”, ICML 2012: "
        f"its section 4 run again, the printed number beside ours.\n\n{WORDS}\n\n"
        f"Made by `{command}` with {packages}, Python {platform.python_version()}. "
        "Seeds count from 0 in every experiment. Each table is in `results/` as Markdown, CSV and "
        "JSON, each figure as PNG and SVG; where the time went is in "
        "[results/timing.md](results/timing.md)." + ("--quick" in command) * look
    )


def _section(name: str, report: Report) -> str:
    title, place, caption = (_paper()[name][key] for key in ("title", "place", "caption"))
    figure = f"![{caption}](results/{name}.png)\n\n*{caption}*"
    return f"## {title}\n\n*{place}*\n\n{report.text.strip()}\n\n{figure}"


def _link(name: str) -> str:
    return f"[{name}](results/{name}.png)"


def _left_table(lines: list[list[str]]) -> str:
    header = ["claim", "place in the paper", "our data", "figures"]
    return markdown_table(header, lines).replace("---:", "---")
