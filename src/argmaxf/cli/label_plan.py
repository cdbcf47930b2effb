"""argmaxf label-plan and estimate: which rows to label, and the F that their labels tell."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from argmaxf.cli.common import (
    OBJECTIVE,
    OUTPUT,
    Beta,
    Force,
    Json,
    Measure,
    Seed,
    console,
    measure_named,
    option,
    print_json,
    refuse_existing,
    shown,
    working,
)
from argmaxf.cli.monitor import INPUT, KINDS, ConfidenceLevel, Probability, Threshold, interval


def label_plan(
    files: Annotated[list[str], typer.Argument(help=f"{KINDS}.", metavar="FILE")],
    probability: Probability,
    threshold: Threshold,
    budget: Annotated[int, option(OBJECTIVE, "How many rows to label.")],
    output: Annotated[
        Path, option(OUTPUT, "The CSV file to write, with a column to fill in.", "-o", "--output")
    ],
    labelled: Annotated[
        Path | None,
        option(
            INPUT, "A plan of these files that is filled in: other rows are drawn by its labels."
        ),
    ] = None,
    target: Annotated[
        str,
        option(
            OBJECTIVE, "What the labels are to tell: value (of F), or threshold (the best one)."
        ),
    ] = "value",
    beta: Beta = 1.0,
    measure: Measure = "fbeta",
    label: Annotated[str, option(OUTPUT, "Name of the column to fill in.")] = "label",
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draw the rows whose labels tell most about F, as a CSV file to fill in."""
    from argmaxf.monitoring.plan_files import beside, plan_files

    inputs = [*files, *([str(labelled)] if labelled else [])]
    refuse_existing([output, beside(output)], inputs, force=force)
    with working("drawing rows"):
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
            measure=measure_named(measure),
            random_state=seed,
        )
    selected = int(plan.selected[plan.indices].sum())
    if as_json:
        counts = {"rows": plan.n, "drawn": budget, "selected": selected}
        print_json({**counts, "output": str(output), "beside": str(beside(output))})
        return
    console().print(
        f"{budget:,} of {plan.n:,} rows, {selected:,} of them selected, are in {shown(output)}. "
        f"Fill in 0 or 1 in column {shown(label)}; fewer labels do, from the top. Keep "
        f"{shown(beside(output).name)} beside it, then run: argmaxf estimate {shown(output)}",
        soft_wrap=True,
    )


def estimate(
    plan: Annotated[Path, typer.Argument(help="The CSV file of label-plan, filled in.")],
    confidence_level: ConfidenceLevel = 0.95,
    as_json: Json = False,
) -> None:
    """Estimate F from the labels of a plan, and the threshold that is best by them."""
    from argmaxf.expected.maximize import maximize_expected_f
    from argmaxf.monitoring.labelling import estimate_f
    from argmaxf.monitoring.plan_files import read_plan

    read = read_plan(plan)
    found = estimate_f(read.labels, read.plan, confidence_level=confidence_level)
    best = maximize_expected_f(read.plan.recalibrate(read.labels), measure=read.plan.measure)
    threshold = float(read.plan.p[best.selected].min()) if best.k else None
    labels, before = read.labels.size, read.plan.labelled[1]
    positives = int(read.labels.sum()) + int(before.sum())
    if as_json:
        record: dict[str, Any] = {"measure": str(read.plan.measure), **asdict(found)}
        record |= {"labels": labels + before.size, "positives": positives, "rows": read.plan.n}
        print_json(record | {"threshold": read.threshold, "best_threshold": threshold})
        return
    out, f = console(), read.plan.measure.title
    earlier = f" and {before.size:,} of earlier plans" if before.size else ""
    out.print(
        f"{f} at the threshold {read.threshold:.6g}: [bold]{shown(interval(found))}[/bold], from "
        f"{labels:,} of {read.budget:,} labels{earlier}, {positives:,} of them positive.",
        soft_wrap=True,
    )
    if not found.reliable:
        out.print("The interval may hold less often than stated: see argmaxf.estimate_f.")
    if threshold is not None:
        out.print(f"Best threshold by these labels: {threshold:.6g}.")
