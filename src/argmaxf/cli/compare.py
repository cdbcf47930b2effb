"""argmaxf compare: methods on a table of data, which to use, and why."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argmaxf.cli.common import (
    OBJECTIVE,
    OUTPUT,
    Beta,
    ConfidenceLevel,
    Force,
    Json,
    MaxSelectedRate,
    Measure,
    MinPrecision,
    MinRecall,
    Report,
    Seed,
    column,
    console,
    interval,
    measure_named,
    needed,
    option,
    print_json,
    print_table,
    progress_bar,
    refuse_existing,
    report_writer,
    say_where,
    shown,
    working,
)

if TYPE_CHECKING:
    from argmaxf.cli.tables import LabelledTable
    from argmaxf.comparison.result import Comparison
    from argmaxf.measures import MeasureLike

DATA, MODELS, EVALUATION = "Data", "Models", "Evaluation"


def compare(
    train: Annotated[
        Path,
        typer.Argument(
            help="Training rows: CSV, TSV, Parquet or Arrow, or one of them as .gz; or a folder.",
            metavar="TRAIN",
        ),
    ],
    target: Annotated[
        list[str], column(DATA, "The column to predict; repeated for several labels (0/1).")
    ],
    drop: Annotated[
        list[str] | None, column(DATA, "A column to leave out; may be repeated.")
    ] = None,
    only: Annotated[
        list[str] | None, column(DATA, "Use only this column as a feature; may be repeated.")
    ] = None,
    estimator: Annotated[
        str,
        option(
            MODELS,
            "The classifier: logistic, forest, boosting, nb, lightgbm, xgboost, or a file such "
            "as model.skops with your own classifier, which is trained again.",
        ),
    ] = "logistic",
    svmperf: Annotated[bool, option(MODELS, "Also train SVMperf.", "--svmperf")] = False,
    cost: Annotated[
        bool, option(MODELS, "Also train with a cost for each class.", "--cost-sensitive")
    ] = False,
    beta: Beta = 1.0,
    measure: Measure = "fbeta",
    positive: Annotated[
        str | None,
        option(
            OBJECTIVE,
            "The positive class, against all others; by default the last in sorted order.",
            metavar="CLASS",
        ),
    ] = None,
    min_precision: MinPrecision = None,
    min_recall: MinRecall = None,
    max_selected_rate: MaxSelectedRate = None,
    confidence_level: ConfidenceLevel = None,
    test: Annotated[
        Path | None, option(EVALUATION, "Rows to compare on; by default cross-validation is used.")
    ] = None,
    folds: Annotated[int, option(EVALUATION, "Folds of the cross-validation.")] = 5,
    group: Annotated[
        str | None,
        column(
            EVALUATION,
            "Rows with the same value of this column are held out together; the column is not a "
            "feature.",
        ),
    ] = None,
    seed: Seed = 0,
    report: Report = None,
    save: Annotated[
        Path | None, option(OUTPUT, "Save the chosen model here, fitted on all training rows.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare decision methods on your data, and say which one to use and why."""
    from argmaxf.cli.models import described, make_classifier
    from argmaxf.cli.tables import read_table, split_like, split_table, with_positive
    from argmaxf.constraints import Constraints

    inputs = [path for path in (train, test) if path]
    inside = [path for folder in inputs if folder.is_dir() for path in folder.rglob("*")]
    refuse_existing([report, save], [*inputs, *inside], force=force)
    if svmperf:
        needed("clarabel", "--svmperf", "svmperf")
    columns: dict[str, Any] = {"drop": drop or (), "only": only or (), "group": group}
    rows = split_table(read_table(train), target, train.name, **columns)
    tested = None if test is None else split_like(read_table(test), rows, test.name)
    rows, tested, counted = with_positive(rows, tested, positive)
    classifier = make_classifier(estimator, seed)
    asked: dict[str, Any] = {
        "test": tested,
        "estimator": classifier,
        "beta": beta,
        "measure": measure_named(measure),
        "positive": counted,
        "folds": folds,
        "seed": seed,
        "methods": ("margin",) * svmperf + ("cost",) * cost,
        "constraints": Constraints(min_precision, min_recall, max_selected_rate),
        "confidence_level": confidence_level,
    }
    made_with = f"Classifier: {described(classifier)}; {folds} folds, seed {seed}"
    command = ["argmaxf", *map(_without_folder, sys.argv[1:])]
    how: dict[str, Any] = {"report": report, "save": save, "as_json": as_json}
    answer(
        lambda show: compare_tables(rows, **asked, progress=show), rows, command, made_with, **how
    )


def compare_tables(
    train: LabelledTable,
    test: LabelledTable | None = None,
    *,
    estimator: Any = "logistic",
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    positive: Any = None,
    folds: int = 5,
    seed: int = 0,
    methods: Sequence[str] = (),
    constraints: Any = None,
    confidence_level: float | None = None,
    progress: Any = False,
) -> Comparison:
    """Compare methods on tables; `methods` are keys besides those that always take part.

    The estimator is a classifier, or the name of one.
    """
    from argmaxf.cli.models import behind_preprocessing, make_classifier
    from argmaxf.comparison.auto_f import AutoFClassifier
    from argmaxf.comparison.compare import compare_methods
    from argmaxf.comparison.methods import methods_for
    from argmaxf.estimators.folds import MultilabelStratifiedKFold
    from argmaxf.measures import as_measure

    if folds < 2:
        raise ValueError(f"folds must be at least 2, got {folds}")
    as_measure(measure, beta)
    if measure == "fbeta":  # its name keeps the Python code of the report short
        measure = "f1" if beta == 1.0 else f"f{beta!r}"
    usual = [method.key for method in methods_for(None, as_measure(measure))]
    classifier = make_classifier(estimator, seed) if isinstance(estimator, str) else estimator
    auto = AutoFClassifier(
        behind_preprocessing(train.X, classifier),
        measure=measure,
        methods=[*usual, *methods] if methods else None,
        cv=folds if seed == 0 else MultilabelStratifiedKFold(folds, random_state=seed),
        constraints=constraints,
        confidence_level=confidence_level,
        pos_label=positive,
    )
    show = progress and (lambda done, total, name: progress(f"fitting {name}", done, total))
    found = compare_methods(
        train.X,
        train.y,
        auto,
        None if test is None else (test.X, test.y),
        names=(train.name, "" if test is None else test.name),
        groups=train.groups,
        progress=show,
    )
    notes = (*train.notes, *(() if test is None else test.notes))
    return replace(found, notes=(*notes, *found.notes))


def answer(
    compared: Callable[[Any], Comparison],
    rows: LabelledTable,
    command: Sequence[str],
    made_with: str,
    *,
    report: Path | None = None,
    save: Path | None = None,
    as_json: bool = False,
    present: Callable[[Comparison], None] | None = None,
) -> None:
    """Compare, print the result, or `present` it, and write what was asked for."""
    from argmaxf._base.atomic_write import writing, written_whole
    from argmaxf.cli.models import save_classifier

    if save is not None:
        needed("skops.io", "--save", "save")
    render = None if report is None else report_writer("render")
    with ExitStack() as stack:  # every output is begun before the work, and none is left half done
        outputs = {p: stack.enter_context(written_whole(p)) for p in (report, save) if p}
        with progress_bar() as show:
            comparison = compared(show)
        if present is not None:
            present(comparison)
        elif as_json:
            print_json(as_record(comparison, report, save))
        else:
            _print(comparison)
        saved = None
        if save is not None:
            with working(f"fitting {comparison.chosen} on all rows"), writing(save):
                saved = save.name, save_classifier(_fitted(comparison, rows), outputs[save])
        if report is not None and render is not None:
            with working("writing the report"), writing(report):
                page = render(comparison, command=command, made_with=made_with, saved=saved)
                outputs[report].write_text(page, encoding="utf-8")
    for what, path in (("report", report), ("model", save)):
        if path is not None and not as_json:
            say_where(what, path)


def _fitted(comparison: Comparison, rows: LabelledTable) -> Any:
    """Return the chosen method fitted on all rows, with their groups."""
    model: Any = comparison.estimator
    step = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
    groups = {} if rows.groups is None else {f"{step}groups": rows.groups.to_numpy()}
    return model.fit(rows.X, rows.y, **groups)


def as_record(comparison: Comparison, report: Path | None, save: Path | None) -> dict[str, Any]:
    """Return the comparison for programs."""
    names = ("chosen", "verdict", "reason", "notes", "beta", "rated_on", "labels")
    return {
        **{name: getattr(comparison, name) for name in names},
        "measure": str(comparison.measure),
        "methods": [
            {
                "key": each.method.key,
                "name": each.name,
                "symbol": each.method.symbol,
                "score": asdict(each.score),
                "difference": asdict(each.difference),
                **(each.counts or {}),
            }
            for each in comparison.methods
        ],
        "report": None if report is None else str(report),
        "saved": None if save is None else str(save),
    }


def _print(comparison: Comparison) -> None:
    def cells(each: Any) -> tuple[str, ...]:
        """Return a method with numbers no wider than they must be: .630 [.558, .696]."""
        used, d, counts = each.name == comparison.chosen, each.difference, each.counts or {}
        paired = "" if used else f"{d.value:+.3f} ± {d.high - d.value:.3f}"
        numbers = (re.sub(r"\b0\.", ".", text) for text in (interval(each.score), paired))
        found = (f"{counts[cell]:,}" if counts else "" for cell in ("tp", "fp", "fn"))
        return (f"{each.name}{' *' if used else ''}", *numbers, *found)

    out = console()
    paired = f"difference to\n{comparison.chosen},\n± 95 %"  # 80 columns are enough
    head = ("method", f"{comparison.score_name} 95 %", paired, "found", "false", "missed")
    rows = [cells(each) for each in comparison.methods]
    print_table(out, head, rows, bold=lambda row: row[0].endswith(" *"))
    assert comparison.evidence is not None
    rate = comparison.evidence.truth.mean(axis=0)
    rarest = " in the rarest label" if len(rate) > 1 else ""
    rated = f"{comparison.n_rows:,} rows rated ({comparison.rated_on})"
    seen = f"{rated}, {rate.min():.1%} positive{rarest}."
    named = [m for m in comparison.methods if m.method.symbol]
    symbols = ", ".join(f"{m.method.symbol} is {m.name}" for m in named)
    paper = (f"In the paper {symbols}.",) if named else ()
    for line in (comparison.verdict, comparison.reason, seen, *comparison.notes, *paper):
        out.print(shown(line))


def _without_folder(word: str) -> str:
    """Return a word of the command line without the folders of an absolute path in it."""
    option, equals, value = word.rpartition("=") if word.startswith("-") else ("", "", word)
    return option + equals + (PurePath(value).name if PurePath(value).is_absolute() else value)
