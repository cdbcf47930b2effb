"""What commands share: options, tables and sentences for people, JSON for programs, progress."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from argmaxf.measures import Interval, MeasureLike

Progress = bool | Callable[[str, int, int | None], None]  # phase, done so far, all there is
MEASURES = (
    "f1, fbeta, jaccard, dice, iou, tversky, fowlkes_mallows, mcc, kappa, balanced_accuracy, "
    "gmean; parameters follow a colon, as in tversky:0.3,0.7"
)
KINDS = "CSV, TSV, Parquet or Arrow files, folders, patterns, or - for the standard input"
INPUT, OBJECTIVE, GUARANTEE, OUTPUT = "Input", "Objective", "Guarantee", "Output"  # in help


def option(group: str, text: str, *names: str, metavar: str | None = None) -> Any:
    """Return an option that help lists in a group."""
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel=group)


def column(group: str, text: str, *names: str) -> Any:
    """Return an option that names a column."""
    return option(group, text, *names, metavar="COLUMN")


Files = Annotated[list[str], typer.Argument(help=f"{KINDS}.", metavar="FILE")]
FilesOrSketch = Annotated[
    list[str], typer.Argument(help=f"{KINDS}; or one sketch.", metavar="FILE")
]
PROBABILITY = column(INPUT, "The column of probabilities.", "-p", "--probability")
LABEL = column(INPUT, "The column of true labels.", "--label")
By = Annotated[
    list[str] | None,
    column(INPUT, "Treat each value of this column separately; may be repeated."),
]
Positive = Annotated[
    str | None, option(INPUT, "The positive label, if labels are not 0 and 1 or true and false.")
]
Nulls = Annotated[str, option(INPUT, "Rows without a value: raise, or drop.")]
Beta = Annotated[
    float, option(OBJECTIVE, "Weight of recall against precision; above 1 recall counts more.")
]
Measure = Annotated[str, option(OBJECTIVE, f"What to maximize: {MEASURES}.")]
ZeroDivision = Annotated[
    float, option(OBJECTIVE, "Value of F if no row is positive and none is selected.")
]
MinPrecision = Annotated[
    float | None, option(GUARANTEE, "Minimum precision; guaranteed with --confidence-level.")
]
MinRecall = Annotated[
    float | None, option(GUARANTEE, "Minimum recall; guaranteed with --confidence-level.")
]
MaxSelectedRate = Annotated[float | None, option(GUARANTEE, "Maximum share of rows to select.")]
ConfidenceLevel = Annotated[
    float | None, option(GUARANTEE, "Probability with which the guarantee holds, such as 0.95.")
]
IntervalLevel = Annotated[
    float, option(OBJECTIVE, "Probability with which each interval contains the true value.")
]
Report = Annotated[Path | None, option(OUTPUT, "Write an HTML report here.")]
ThresholdOnly = Annotated[
    bool, option(OUTPUT, "Print the threshold and nothing else.", "--threshold-only")
]
Json = Annotated[bool, option(OUTPUT, "Print the result as JSON instead of text.", "--json")]
Force = Annotated[bool, option(OUTPUT, "Replace existing output files.", "--force")]
Seed = Annotated[int, option("Evaluation", "Random seed.")]


def output_file(text: str) -> Any:
    """Return the option that names the file to write."""
    return option(OUTPUT, text, "-o", "--output")


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


def interval(found: Interval, form: str = ".3f") -> str:
    """Write a value with its interval."""
    return format(found, form)


def needed(module: str, option: str, extra: str = "") -> Any:
    """Return a module that an option needs, before any work, or say how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        name = (error.name or module).partition(".")[0]
        install = f"'argmaxf[{extra}]'" if extra else name
        raise ValueError(f"{option} needs {name}: pip install {install}") from None


def report_writer(name: str) -> Callable[..., str]:
    """Return a function of the report, once all it needs is there."""
    needed("matplotlib", "--report", "report")
    writer: Callable[..., str] = getattr(needed("argmaxf.report.page", "--report", "report"), name)
    return writer


def say_where(what: str, path: Path) -> None:
    """Say where a file was written."""
    console().print(f"The {what} is in [bold]{shown(path.resolve())}[/bold]", soft_wrap=True)


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
