"""argmaxf monitor, label-plan and estimate: F of a deployed threshold, with few labels or none."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argmaxf.cli import common
from argmaxf.cli.common import shown

if TYPE_CHECKING:
    from argmaxf.monitoring.monitor import Monitor, Period


def monitor(
    reference: str,
    files: list[str],
    probability: str,
    threshold: float,
    time: str | None = None,
    every: str | None = None,
    label: str | None = None,
    nulls: str = "raise",
    beta: float = 1.0,
    measure: str = "fbeta",
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    report: Path | None = None,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Predict F of a deployed threshold period by period, with alarms where rows have changed."""
    from argmaxf._base.atomic_write import writing, written_whole
    from argmaxf.monitoring.files import monitor_files

    common.refuse_existing([report], [reference, *files], force=force)
    with ExitStack() as stack:
        if report is not None:
            render = common.report_writer("render_monitor")
            out = stack.enter_context(written_whole(report))
        with common.working("reading"):
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
                measure=common.measure_named(measure),
                confidence_level=confidence_level,
                false_alarm_rate=alpha,
            )
        if report is not None:
            with common.working("writing the report"), writing(report):
                page = render(watched, periods, command=["argmaxf", *sys.argv[1:]])
                out.write_text(page, encoding="utf-8")
    if as_json:
        settings = {"threshold": threshold, "measure": str(watched.measure), "alpha": alpha}
        described = {"reference": asdict(watched.reference), "periods": list(map(asdict, periods))}
        common.print_json(settings | described | {"report": report and str(report)})
        return
    _print(watched, periods)
    if report is not None:
        common.say_where("report", report)


def _print(watched: Monitor, periods: list[Period]) -> None:
    """Print a table of the periods and what follows from it."""
    out, f = common.console(), watched.measure.title
    has_labels = any(each.found for each in periods)
    found = (f"{f} of\nlabelled rows",) if has_labels else ()
    head = ("period", "alarms", "rows", "selected", f"predicted {f}", "rate of positives")
    rows = [
        (
            each.name,
            ", ".join(alarm.split()[0] for alarm in each.alarms),
            f"{each.n:,}",
            f"{each.selected:,}",
            f"{each.predicted.f:.3f}",
            f"{each.rate:.4f}",
            f"{each.best_threshold:.4g}",
            f"{each.loss:.3f}",
            *((f"{each.found:.3f}" if each.found else "",) if has_labels else ()),
        )
        for each in (watched.reference, *periods)
    ]
    common.print_table(
        out, (*head, "best\nthreshold", "loss", *found), rows, texts=2, bold=lambda r: r[1]
    )
    alarms = sum(bool(each.alarms) for each in periods)
    out.print(
        f"{alarms} of {len(periods)} periods raised an alarm; if nothing changes, the probability "
        f"of any alarm is at most {watched.false_alarm_rate:g}. A change in how often rows with "
        "the same probability are positive raises no alarm without labels: label some rows with "
        "argmaxf label-plan.",
        soft_wrap=True,
    )


def label_plan(
    files: list[str],
    probability: str,
    threshold: float,
    budget: int,
    output: Path,
    labelled: Path | None = None,
    target: str = "value",
    beta: float = 1.0,
    measure: str = "fbeta",
    label: str = "label",
    seed: int = 0,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Draw the rows whose labels tell most about F, as a CSV file to fill in."""
    from argmaxf.monitoring.files import beside, plan_files

    inputs = [*files, *([str(labelled)] if labelled else [])]
    common.refuse_existing([output, beside(output)], inputs, force=force)
    with common.working("drawing rows"):
        plan = plan_files(
            files,
            probability,
            threshold,
            budget,
            output,
            label=label,
            labelled=labelled,
            target=target,
            beta=beta,
            measure=common.measure_named(measure),
            random_state=seed,
        )
    selected = int(plan.selected[plan.indices].sum())
    if as_json:
        counts = {"rows": plan.n, "drawn": budget, "selected": selected}
        common.print_json({**counts, "output": str(output), "beside": str(beside(output))})
        return
    common.console().print(
        f"{budget:,} of {plan.n:,} rows, {selected:,} of them selected, are in {shown(output)}. "
        f"Fill in 0 or 1 in column {shown(label)}; fewer labels do, from the top. Keep "
        f"{shown(beside(output).name)} beside it, then run: argmaxf estimate {shown(output)}",
        soft_wrap=True,
    )


def estimate(plan: Path, confidence_level: float = 0.95, as_json: bool = False) -> None:
    """Estimate F from the labels of a plan, and the threshold that is best by them."""
    from argmaxf.expected.maximize import maximize_expected_f
    from argmaxf.monitoring.files import read_plan
    from argmaxf.monitoring.labelling import estimate_f

    read = read_plan(plan)
    found = estimate_f(read.labels, read.plan, confidence_level=confidence_level)
    best = maximize_expected_f(read.plan.recalibrate(read.labels), measure=read.plan.measure)
    threshold = float(read.plan.p[best.selected].min()) if best.k else None
    labels, positives = read.labels.size, int(read.labels.sum())
    if as_json:
        record: dict[str, Any] = {"measure": str(read.plan.measure), **asdict(found)}
        record |= {"labels": labels, "positives": positives, "rows": read.plan.n}
        common.print_json(record | {"threshold": read.threshold, "best_threshold": threshold})
        return
    out, f = common.console(), read.plan.measure.title
    out.print(
        f"{f} at the threshold {read.threshold:.6g}: [bold]{shown(f'{found:.3f}')}[/bold], from "
        f"{labels:,} of {read.budget:,} labels, {positives:,} of them positive.",
        soft_wrap=True,
    )
    if not found.reliable:
        out.print("The interval may hold less often than stated: see argmaxf.estimate_f.")
    if threshold is not None:
        out.print(f"Best threshold by these labels: {threshold:.6g}.")
