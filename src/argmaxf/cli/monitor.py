"""argmaxf monitor, label-plan and estimate: F of a deployed threshold, with few labels or none."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argmaxf.cli.common import (
    OUTPUT,
    Beta,
    Force,
    Json,
    Measure,
    console,
    measure_named,
    option,
    print_json,
    print_table,
    refuse_existing,
    shown,
    working,
)

if TYPE_CHECKING:
    from argmaxf.measures import Interval
    from argmaxf.monitoring.monitor import Monitor, Period

INPUT, LEVELS = "Input", "Levels"
KINDS = "CSV, TSV, Parquet or Arrow files, folders or patterns"
Probability = Annotated[
    str,
    option(INPUT, "The column of probabilities.", "-p", "--probability", metavar="COLUMN"),
]
Threshold = Annotated[
    float, option(INPUT, "The deployed threshold: rows with at least this are selected.")
]
ConfidenceLevel = Annotated[float, option(LEVELS, "Confidence level of the intervals.")]


def monitor(
    reference: Annotated[str, typer.Argument(help="Rows at deployment, not used in training.")],
    files: Annotated[list[str], typer.Argument(help=f"Later rows: {KINDS}.", metavar="FILE")],
    probability: Probability,
    threshold: Threshold,
    time: Annotated[
        str | None,
        option(INPUT, "The column of periods; without it each file is a period.", metavar="COLUMN"),
    ] = None,
    every: Annotated[
        str | None, option(INPUT, "Length of a period, such as 1d or 1w; rounds times down.")
    ] = None,
    label: Annotated[
        str | None,
        option(INPUT, "The column of labels: 0, 1, or empty where not known.", metavar="COLUMN"),
    ] = None,
    nulls: Annotated[str, option(INPUT, "Rows without a probability: raise, or drop.")] = "raise",
    beta: Beta = 1.0,
    measure: Measure = "fbeta",
    alpha: Annotated[
        float, option(LEVELS, "Probability of any alarm over the whole run if nothing changes.")
    ] = 0.05,
    confidence_level: ConfidenceLevel = 0.95,
    report: Annotated[Path | None, option(OUTPUT, "Write an HTML report here.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Predict F of a deployed threshold period by period, with alarms where rows have changed."""
    from argmaxf._base.atomic_write import writing, written_whole
    from argmaxf.monitoring.files import monitor_files

    refuse_existing([report], [reference, *files], force=force)
    with ExitStack() as stack:
        if report is not None:
            render, out = _renderer(), stack.enter_context(written_whole(report))
        with working("reading"):
            watched, periods = monitor_files(
                reference,
                files,
                probability,
                threshold,
                time=time,
                every=every,
                label=label,
                nulls=nulls,
                beta=beta,
                measure=measure_named(measure),
                confidence_level=confidence_level,
                false_alarm_rate=alpha,
            )
        if report is not None:
            with working("writing the report"), writing(report):
                page = render(watched, periods, command=["argmaxf", *sys.argv[1:]])
                out.write_text(page, encoding="utf-8")
    if as_json:
        settings = {"threshold": threshold, "measure": str(watched.measure), "alpha": alpha}
        described = {"reference": asdict(watched.reference), "periods": list(map(asdict, periods))}
        print_json({**settings, **described, "report": None if report is None else str(report)})
        return
    _print(watched, periods)
    if report is not None:
        console().print(f"The report is in [bold]{shown(report.resolve())}[/bold]", soft_wrap=True)


def _print(watched: Monitor, periods: list[Period]) -> None:
    """Print a table of the periods and what follows from it."""
    out, f = console(), watched.measure.title
    has_labels = any(each.found for each in periods)
    found = (f"{f} of\nlabelled rows",) if has_labels else ()
    head = ("period", "alarms", "rows", "selected", f"predicted {f}", "rate of positives")
    rows = [
        (
            each.name,
            ", ".join(alarm.split()[0] for alarm in each.alarms),
            f"{each.n:,}",
            f"{each.selected:,}",
            interval(each.predicted.f),
            interval(each.rate, ".4f"),
            f"{each.best_threshold:.4g}",
            f"{each.loss:.3f}",
            *((interval(each.found) if each.found else "",) if has_labels else ()),
        )
        for each in (watched.reference, *periods)
    ]
    print_table(out, (*head, "best\nthreshold", "loss", *found), rows, texts=2, bold=lambda r: r[1])
    alarms = sum(bool(each.alarms) for each in periods)
    out.print(
        f"{alarms} of {len(periods)} periods raised an alarm; if nothing changes, the probability "
        f"of any alarm is at most {watched.false_alarm_rate:g}. A change in how often rows with "
        "the same probability are positive raises no alarm without labels: label some rows with "
        "argmaxf label-plan.",
        soft_wrap=True,
    )


def interval(found: Interval, form: str = ".3f") -> str:
    """Write a value with its interval."""
    return f"{found.value:{form}} [{found.low:{form}}, {found.high:{form}}]"


def _renderer() -> Any:
    try:
        from argmaxf.report.monitoring import render
    except ModuleNotFoundError as error:
        raise ValueError(f"--report needs {error.name}: pip install 'argmaxf[report]'") from None
    return render
