"""argmaxf monitor, label-plan and estimate: F of a deployed threshold, with few labels or none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argmaxf.cli import common
from argmaxf.cli.common import shown

if TYPE_CHECKING:
    from argmaxf.files.inputs import Input
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
    from argmaxf._base.atomic_write import refuse_twice
    from argmaxf._base.validation import check_choice
    from argmaxf.files.inputs import find_inputs
    from argmaxf.files.scored import ScoredFiles
    from argmaxf.monitoring.monitor import Monitor

    common.refuse_existing([report], [reference, *files], force=force)
    options: dict[str, Any] = {"beta": beta, "measure": common.measure_named(measure)}
    options |= {"confidence_level": confidence_level, "false_alarm_rate": alpha}
    with ExitStack() as stack:
        write_report = stack.enter_context(common.report_to(report, "render_monitor"))
        with common.working("reading"):
            check_choice("nulls", nulls, ("raise", "drop"))
            first, later = find_inputs([reference], stack), find_inputs(files, stack)
            refuse_twice(each.origin for each in (*first, *later))
            labelled = [any(label in each.columns for each in group) for group in (first, later)]

            def read(add: Callable[..., Any], group: list[Input], **how: Any) -> Any:
                """Add the rows of some files; the reference or the later ones may lack labels."""
                known = label if labelled[group is not first] else None
                extra = [each for each in (how.get("time"), known) if each]
                for each in group:
                    each.refuse_absent(*extra)
                rows = ScoredFiles([], probability, nulls=nulls, inputs=group)
                with rows.naming_errors(extra):
                    return add(rows.frame(typed=True, only=extra), rows.p, label=known, **how)

            watched = read(partial(Monitor.of_frame, threshold), first, **options)
            if label is not None and not any(labelled):
                raise ValueError(f"no file has a column {label!r} of labels")
            if time is not None:
                periods = read(watched.update_frame, later, time=time, every=every)
            else:
                parts = _period_names(later).items()
                add = watched.update_frame
                found = [read(add, [each], period=name, every=every) for name, each in parts]
                periods = list(chain.from_iterable(found))
        write_report(watched, periods, command=["argmaxf", *sys.argv[1:]])
    if as_json:
        settings = {"threshold": threshold, "measure": str(watched.measure), "alpha": alpha}
        described = {"reference": asdict(watched.reference), "periods": list(map(asdict, periods))}
        common.print_json(settings | described | {"report": report and str(report)})
    else:
        _print(watched, periods)
        common.say_where("report", report)


def _period_names(inputs: list[Input]) -> dict[str, Input]:
    """Return files by the names of the periods they are: short ones if these differ."""
    short = {each.origin.name.partition(".")[0]: each for each in inputs}
    return short if len(short) == len(inputs) else {each.name: each for each in inputs}


def _print(watched: Monitor, periods: list[Period]) -> None:
    """Print a table of the periods and what follows from it."""
    out, f = common.console(), watched.measure.title
    has_labels = any(each.found for each in periods)
    rows = []
    for each in (watched.reference, *periods):
        row = {
            "period": each.name,
            "alarms": ", ".join(alarm.split()[0] for alarm in each.alarms),
            "rows": f"{each.n:,}",
            "selected": f"{each.selected:,}",
            f"predicted {f}": f"{each.predicted.f:.3f}",
            "rate of positives": f"{each.rate:.4f}",
            "best\nthreshold": f"{each.best_threshold:.4g}",
            "loss": f"{each.loss:.3f}",
        }
        if has_labels:
            row[f"{f} of\nlabelled rows"] = f"{each.found:.3f}" if each.found else ""
        rows.append(row)
    cells = [tuple(row.values()) for row in rows]
    common.print_table(out, tuple(rows[0]), cells, texts=2, bold=lambda row: row[1])
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
    import numpy as np

    from argmaxf._base.validation import check_unit_interval
    from argmaxf.files.inputs import find_inputs
    from argmaxf.files.scored import ScoredFiles
    from argmaxf.frames.engines import polars_batches
    from argmaxf.monitoring.files import beside, read_plan, replanned, write_plan
    from argmaxf.monitoring.labelling import plan_labels

    inputs = [*files, *([str(labelled)] if labelled else [])]
    common.refuse_existing([output, beside(output)], inputs, force=force)
    how: dict[str, Any] = {"beta": beta, "measure": common.measure_named(measure)}
    if output.suffix.lower() != ".csv":
        raise ValueError(f"{output}: a plan must be named with .csv")
    cut = check_unit_interval("threshold", threshold)
    with ExitStack() as stack, common.working("drawing rows"):
        rows = ScoredFiles([], probability, inputs=find_inputs(files, stack))
        with rows.naming_errors():
            parts = [batch[rows.p].to_numpy() for batch in polars_batches(rows.frame(only=[]))]
            p = np.concatenate([np.zeros(0), *parts], dtype=np.float64)
            if not (p.size and p.min() >= 0.0 and p.max() <= 1.0):
                rows.diagnose()
        plan = plan_labels(p, p >= cut, budget, target=target, random_state=seed, **how)
        if labelled is not None:
            plan = replanned(plan, read_plan(labelled), cut, labelled)
        write_plan(plan, rows.frame(typed=True).drop(rows.p), cut, output, label)
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
