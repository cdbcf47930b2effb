"""What commands share: options, tables and sentences for people, JSON for programs, progress."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from argmaxf.measures import MeasureLike

Progress = bool | Callable[[str, int, int | None], None]  # phase, done so far, all there is
MEASURES = (
    "f1, fbeta, jaccard, dice, iou, tversky, fowlkes_mallows, mcc, kappa, balanced_accuracy, "
    "gmean; parameters follow a colon, as in tversky:0.3,0.7"
)
KINDS = "CSV, TSV, Parquet or Arrow files, folders, patterns, or - for the standard input"
LEVEL = "Probability with which each interval contains the true value."
ARGUMENTS = "Arguments"
# What each parameter means, by the group that help lists it in. Where commands mean different
# things by one name, the entry of the command counts.
PARAMETERS = {
    ARGUMENTS: {
        "files": f"{KINDS}; or one sketch.",
        "evaluate.files": f"{KINDS}.",
        "sketch.files": f"{KINDS}.",
        "label_plan.files": f"{KINDS}.",
        "monitor.files": f"Later rows: {KINDS}.",
        "reference": "Rows at deployment, not used in training.",
        "plan": "The CSV file of label-plan, filled in.",
        "sketches": "Sketches of disjoint rows.",
        "train": "Training rows: CSV, TSV, Parquet or Arrow, or one of them as .gz; or a folder.",
    },
    "Data": {
        "target": "The column to predict; repeated for several labels (0/1).",
        "drop": "A column to leave out; may be repeated.",
        "only": "Use only this column as a feature; may be repeated.",
    },
    "Models": {
        "estimator": "The classifier: logistic, forest, boosting, nb, lightgbm, xgboost, or a file "
        "such as model.skops with your own classifier, which is trained again.",
        "svmperf": "Also train SVMperf.",
        "cost_sensitive": "Also train with a cost for each class.",
    },
    "Input": {
        "probability": "The column of probabilities.",
        "score": "The column of scores, higher is more positive.",
        "predicted": "The column of predicted labels.",
        "label": "The column of true labels.",
        "monitor.label": "The column of labels: 0, 1, or empty where not known.",
        "sketch.label": "The column of true labels, to tune thresholds of the scores in -p later.",
        "weight": "The column of weights of rows.",
        "sketch.weight": "With --label: the column of weights.",
        "by": "Treat each value of this column separately; may be repeated.",
        "positive": "The positive label, if labels are not 0 and 1 or true and false.",
        "threshold": "The deployed threshold: rows with at least this are selected.",
        "time": "The column of periods; without it each file is a period.",
        "every": "Length of a period, such as 1d or 1w; rounds times down.",
        "labelled": "A plan of these files that is filled in: other rows are drawn by its labels.",
        "nulls": "Rows without a value: raise, or drop.",
    },
    "Objective": {
        "beta": "Weight of recall against precision; above 1 recall counts more.",
        "measure": f"What to maximize: {MEASURES}.",
        "zero_division": "Value of F if no row is positive and none is selected.",
        "ties": "Equal probabilities: split (only the first ones may be selected), or together.",
        "decide.threshold": "Use this threshold instead of finding the best one.",
        "threshold_from": "Use the threshold in this JSON file (SavedThreshold).",
        "compare.positive": "The positive class, against all others; by default the last in sorted "
        "order.",
        "alpha": "Probability of any alarm over the whole run if nothing changes.",
        "budget": "How many rows to label.",
        "label_plan.target": "What the labels are to tell: value (of F), or threshold (the best "
        "one).",
        "estimate.confidence_level": LEVEL,
        "evaluate.confidence_level": LEVEL,
        "monitor.confidence_level": LEVEL,
    },
    "Limits": {
        "min_selected": "Select at least this many rows in each segment.",
        "max_selected": "Select at most this many rows in each segment.",
    },
    "Guarantee": {
        "min_precision": "Minimum precision; guaranteed with --confidence-level.",
        "min_recall": "Minimum recall; guaranteed with --confidence-level.",
        "max_selected_rate": "Maximum share of rows to select.",
        "confidence_level": "Probability with which the guarantee holds, such as 0.95.",
    },
    "Different rate of positives": {
        "train_rate": "Rate of positives where the model was trained.",
        "deploy_rate": "Rate of positives among these rows, if different; estimate takes the most "
        "likely rate.",
    },
    "Evaluation": {
        "test": "Rows to compare on; by default cross-validation is used.",
        "folds": "Folds of the cross-validation.",
        "group": "Rows with the same value of this column are held out together; the column is not "
        "a feature.",
        "seed": "Random seed.",
    },
    "Bounds": {
        "n": "Number of examples.",
        "positive_rate": "Share of positives, in (0, 1].",
        "eta": "Probability that the bound may fail.",
        "vc_dimension": "VC dimension of the classifiers; 1 for a threshold.",
        "accuracy": "Difference in F for which to count examples.",
    },
    "Output": {
        "output": "Write the rows with their labels to this file; - prints them as CSV.",
        "tune.output": "Write the rows with their predictions to this file.",
        "sketch.output": "The sketch to write; its name must end in .argmaxf.",
        "merge.output": "The sketch to write; its name must end in .argmaxf.",
        "label_plan.output": "The CSV file to write, with a column to fill in.",
        "decide.label": "Name of the column of labels.",
        "label_plan.label": "Name of the column to fill in.",
        "tune.predicted": "Name of the column of predictions.",
        "report": "Write an HTML report here.",
        "demo.report": "Where to write the report; an older one is replaced.",
        "save": "Save the chosen model here, fitted on all rows.",
        "threshold_only": "Print the threshold and nothing else.",
        "force": "Replace existing output files.",
        "as_json": "Print the result as JSON instead of text.",
    },
}
COLUMNS = "by drop group only predicted probability score target time weight"
METAVARS = dict.fromkeys(COLUMNS.split(), "COLUMN") | {
    "files": "FILE",
    "threshold_from": "FILE",
    "train": "TRAIN",
    "sketches": "SKETCH",
    "label": "COLUMN",
    "deploy_rate": "RATE",
    "compare.positive": "CLASS",
    "label_plan.target": "WHAT",
}
NAMES = {
    "probability": ("-p", "--probability"),
    "output": ("-o", "--output"),
    "n": ("--n",),
    "as_json": ("--json",),
}


def with_parameters(command: Callable[..., None]) -> Callable[..., None]:
    """Say in a command's annotations what Typer needs: what each parameter means, and its name."""
    for name, kind in get_type_hints(command).items():
        if name != "return":
            command.__annotations__[name] = Annotated[kind, _parameter(command.__name__, name)]
    return command


def _parameter(command: str, name: str) -> Any:
    keys = (f"{command}.{name}", name)
    group, text = next((g, texts[k]) for k in keys for g, texts in PARAMETERS.items() if k in texts)
    metavar = next((METAVARS[key] for key in keys if key in METAVARS), None)
    if group == ARGUMENTS:
        return typer.Argument(help=text, metavar=metavar)
    names = NAMES.get(name, (f"--{name.replace('_', '-')}",))
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel=group)


def refuse_existing(
    outputs: Sequence[Path | None], inputs: Iterable[Path | str], *, force: bool
) -> None:
    """Refuse to write over an input, or over a file that nobody said may be replaced."""
    from argmaxf._base.atomic_write import refuse_inputs

    refuse_inputs(outputs, [Path("/dev/stdin" if str(each) == "-" else each) for each in inputs])
    for path in outputs:
        if path is not None and path.is_file() and not force:
            raise ValueError(f"{path} exists: pass --force to replace it, or choose another name")


def measure_named(text: str) -> MeasureLike:
    """Return what a command was asked to measure.

    >>> measure_named("tversky:0.3,0.7")
    Tversky(a=0.3, b=0.7)
    """
    from dataclasses import fields

    from argmaxf.measures import MEASURES as KNOWN

    name, colon, rest = text.partition(":")
    if name not in KNOWN:
        raise ValueError(f"--measure must be one of {MEASURES}; got {text!r}")
    if not colon:
        return name
    kind: Any = KNOWN[name]
    taken = [] if name == "f1" else [field.name for field in fields(kind)]
    try:
        numbers = [float(each) for each in rest.split(",")]
    except ValueError:
        numbers = []
    if not 0 < len(numbers) <= len(taken):
        takes = f"numbers for {', '.join(taken)}" if taken else "no parameters"
        raise ValueError(f"--measure {name} takes {takes}; got {text!r}")
    measure: MeasureLike = kind(*numbers)
    return measure


def plain(text: object) -> str:
    r"""Write a text of the user's data without what a terminal would obey.

    >>> plain("red\x1b[31m")
    'red\\x1b[31m'
    """
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda found: ascii(found[0])[1:-1], str(text))


def shown(text: object) -> str:
    """Write a text of the user's data as rich takes it, without markup."""
    from rich.markup import escape

    return escape(plain(text))


def console(*, stderr: bool = False) -> Console:
    """Return the terminal that results go to; the other one where rows are printed."""
    from rich.console import Console

    return Console(highlight=False, stderr=stderr)


def print_table(
    out: Console,
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    texts: int = 1,
    bold: Callable[[Any], bool] = lambda row: False,
    title: str | None = None,
) -> None:
    """Print a table, its first columns texts and the others numbers.

    Where it is wider than the terminal, each row is printed as lines, so that no number is cut off.
    """
    from rich.box import SIMPLE_HEAD
    from rich.measure import Measurement
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title=title, title_justify="left")
    for i, name in enumerate(head):
        heading = "\n".join(map(shown, name.split("\n")))
        table.add_column(heading, justify="left" if i < texts else "right")
    for row in rows:
        table.add_row(*map(shown, row), style="bold" if bold(row) else None)
    if Measurement.get(out, out.options.update(width=10_000), table).maximum <= out.width:
        out.print(table)
        return
    if title:
        out.print(title)
    for row in rows:
        for name, cell in zip(head, row, strict=True):
            if cell != "":
                out.print(f"{shown(name.replace(chr(10), ' '))}: {shown(cell)}", soft_wrap=True)
        out.print()


def print_json(result: dict[str, Any]) -> None:
    """Print a result for programs; JSON has no infinity, so that such a number is null."""
    typer.echo(json.dumps(_finite(result), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    """Replace numbers that are not finite, however deep, by None."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def needed(module: str, option: str, extra: str = "") -> Any:
    """Return a module that an option needs, before any work, or say how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        name = (error.name or module).partition(".")[0]
        install = f"'argmaxf[{extra}]'" if extra else name
        raise ValueError(f"{option} needs {name}: pip install {install}") from None


@contextmanager
def report_to(path: Path | None, name: str) -> Iterator[Callable[..., None]]:
    """Begin a report before the work; yield what renders and writes it, if there is a path."""
    from argmaxf._base.atomic_write import writing, written_whole

    if path is None:
        yield lambda *content, **options: None
        return
    needed("matplotlib", "--report", "report")
    render = getattr(needed("argmaxf.report.page", "--report", "report"), name)
    with written_whole(path) as draft:

        def write(*content: Any, **options: Any) -> None:
            with working("writing the report"), writing(path):
                draft.write_text(render(*content, **options), encoding="utf-8")

        yield write


def say_where(what: str, path: Path | None) -> None:
    """Say where a file was written, if it was."""
    if path is not None:
        place = shown(path.resolve())
        console().print(f"The {what} is in [bold]{place}[/bold]", soft_wrap=True)


def working(what: str) -> AbstractContextManager[Any]:
    """Show that something is being done, on a terminal only."""
    terminal = console(stderr=True)
    return terminal.status(what) if terminal.is_terminal else nullcontext()


@contextmanager
def progress_bar(unit: str = "") -> Iterator[Progress]:
    """Yield what shows the phases of long work as bars, on a terminal only; with units a second."""
    terminal = console(stderr=True)
    if not terminal.is_terminal:  # rich 13 would write empty lines
        yield False
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=terminal, transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(title: str, done: int, total: int | None) -> None:
            if done == 0:
                bar.reset(task)
            speed = f"  {done / (bar.tasks[0].elapsed or 1.0):,.0f} {unit}/s" if unit else ""
            text = f"{title}  {done:,}{'' if total is None else f' of {total:,}'} {unit}{speed}"
            bar.update(task, description=shown(text), completed=done, total=total)

        yield show
