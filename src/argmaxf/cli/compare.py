"""argmaxf compare and demo: methods on a table of data, which to use, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from argmaxf.cli.output import JSON_OPTION, MEASURES, console, measure_named, without_folder

STORY = (
    "[bold]Which of these handwritten digits are a 9?[/bold] {n:,} scans, {rate:.1%} of them "
    "a 9, and naive Bayes.\nWays to label them, each judged on digits that its model was not "
    "trained on:"
)


def compare(
    train: Annotated[
        Path,
        typer.Argument(
            help="Training rows: CSV, TSV, Parquet or Arrow, or one of them as .gz; or a folder.",
            metavar="TRAIN",
        ),
    ],
    target: Annotated[
        list[str],
        typer.Option(
            help="The column to predict; repeated for several labels (0/1).", metavar="COLUMN"
        ),
    ],
    test: Annotated[
        Path | None, typer.Option(help="Rows to compare on; without it, cross-validation.")
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(help="A column to leave out; may be repeated.", metavar="COLUMN"),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="A column to learn from, and no others; may be repeated.", metavar="COLUMN"
        ),
    ] = None,
    estimator: Annotated[
        str,
        typer.Option(
            help="The classifier: logistic, forest, boosting, nb, lightgbm, xgboost, or a file "
            "model.skops with one of your own, which is trained anew."
        ),
    ] = "logistic",
    beta: Annotated[float, typer.Option(help="How much recall counts against precision.")] = 1.0,
    measure: Annotated[str, typer.Option(help=f"What to compare by: {MEASURES}.")] = "fbeta",
    positive: Annotated[
        str | None, typer.Option(help="The class that F counts; else the last one in order.")
    ] = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    min_precision: Annotated[
        float | None,
        typer.Option(help="The least precision to guarantee, with --confidence-level."),
    ] = None,
    min_recall: Annotated[
        float | None, typer.Option(help="The least recall to guarantee, with --confidence-level.")
    ] = None,
    max_selected_rate: Annotated[
        float | None,
        typer.Option(help="The largest part of the rows to select, with --confidence-level."),
    ] = None,
    confidence_level: Annotated[
        float | None, typer.Option(help="Confidence level of the guarantee, such as 0.95.")
    ] = None,
    svmperf: Annotated[bool, typer.Option("--svmperf", help="Also train SVMperf.")] = False,
    cost: Annotated[
        bool, typer.Option("--cost-sensitive", help="Also train with a cost for each class.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
    save: Annotated[
        Path | None, typer.Option(help="Save the chosen model here, fitted on all training rows.")
    ] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Compare both approaches on your data, and say which to use and why."""
    from argmaxf._base.atomic_write import refuse_inputs
    from argmaxf.cli.compare_output import Request, answer
    from argmaxf.cli.tables import read_table, split_like, split_table
    from argmaxf.constraints import Constraints

    inputs = [path for path in (train, test) if path]
    inside = [path for folder in inputs if folder.is_dir() for path in folder.rglob("*")]
    refuse_inputs([report, save], [*inputs, *inside])
    rows = split_table(read_table(train), target, train.name, drop=drop or (), only=only or ())
    test_rows = None if test is None else split_like(read_table(test), rows, test.name)
    methods = ("margin",) * svmperf + ("cost",) * cost
    request = Request(
        rows,
        test_rows,
        estimator,
        beta,
        positive,
        folds,
        seed,
        methods,
        measure_named(measure),
        constraints=Constraints(min_precision, min_recall, max_selected_rate),
        confidence_level=confidence_level,
    )
    command = ["argmaxf", *(without_folder(word) for word in sys.argv[1:])]
    answer(request, command, report=report, save=save, as_json=as_json)


def demo(
    report: Annotated[Path, typer.Option(help="Where to write the report.")] = Path(
        "argmaxf-demo.html"
    ),
    beta: Annotated[float, typer.Option(help="How much recall counts against precision.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Compare both approaches on bundled real data with rare positives, and write a report."""
    from argmaxf.cli.compare_output import Request, answer, nines
    from argmaxf.cli.tables import split_like, split_table

    digits = nines(seed)
    half = digits.height // 2
    rows = split_table(digits[:half], ["is_9"], "digits")
    apart = split_like(digits[half:], rows, "digits kept apart")
    if not as_json:
        console().print(STORY.format(rate=rows.y.mean(), n=len(rows.y)))
    command = ["argmaxf", "demo", "--beta", f"{beta:g}", "--seed", str(seed)]
    request = Request(rows, estimator="nb", beta=beta, seed=seed, apart=apart)
    answer(request, command, report=report, as_json=as_json)
