"""What commands share: options, tables and sentences for people, JSON for programs, progress."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from argmaxf.measures import MeasureLike

JSON_OPTION = typer.Option("--json", help="Print the result as JSON instead of text.")
MEASURES = (
    "one of f1, fbeta, jaccard, dice, iou, tversky, fowlkes_mallows, mcc, kappa, "
    "balanced_accuracy, gmean; parameters follow a colon, as in tversky:0.3,0.7"
)


def measure_named(text: str) -> MeasureLike:
    """Return what a command was asked to measure.

    >>> measure_named("tversky:0.3,0.7")
    Tversky(a=0.3, b=0.7)
    """
    from dataclasses import fields

    from argmaxf.measures import MEASURES as KNOWN

    name, colon, rest = text.partition(":")
    if name not in KNOWN:
        raise ValueError(f"--measure must be {MEASURES}; got {text!r}")
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


def print_table(out: Console, table: Table) -> None:
    """Print a table; where it is wider than the terminal, each row as lines of its own.

    So that no number is cut off.
    """
    from rich.measure import Measurement

    needed = Measurement.get(out, out.options.update(width=10_000), table).maximum
    if needed <= out.width:
        out.print(table)
        return
    if table.title:
        out.print(table.title)
    columns = [list(column.cells) for column in table.columns]
    headers = [str(column.header).replace("\n", " ") for column in table.columns]
    for row in zip(*columns, strict=True):
        for header, cell in zip(headers, row, strict=True):
            if str(cell):
                out.print(f"{header}: {cell}", soft_wrap=True)
        out.print()


def print_json(result: dict[str, Any]) -> None:
    """Print a result for programs."""
    typer.echo(json.dumps(result, indent=2, allow_nan=False))


def complain(message: str) -> None:
    """Print an error as one line."""
    print("argmaxf: " + plain(" ".join(message.split())), file=sys.stderr)


def without_folder(word: str) -> str:
    """Return a word of the command line without the folders of an absolute path in it."""
    option, equals, value = word.rpartition("=") if word.startswith("-") else ("", "", word)
    return option + equals + (PurePath(value).name if PurePath(value).is_absolute() else value)


def spread(std: float) -> str:
    """Write a standard deviation in two digits; rounding below 0 is 0."""
    return f"{max(0.0, std):.2g}"


@contextmanager
def rows_bar() -> Iterator[bool | Callable[[str, int, int | None], None]]:
    """Yield what shows the phases of long work as bars with rows per second, on a terminal only."""
    terminal = console(stderr=True)
    if not terminal.is_terminal:  # rich 13 would write empty lines
        yield False
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    speed = "{task.completed:,.0f} rows  {task.fields[speed]:,.0f} rows/s"
    columns = (
        TextColumn("{task.description:9}"),
        BarColumn(),
        TextColumn(speed),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=terminal, transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(title: str, done: int, rows: int | None) -> None:
            if done == 0:
                for each in tasks.values():
                    bar.remove_task(each)
                tasks.clear()
                tasks[title] = bar.add_task(title, total=rows, speed=0.0)
            elapsed = bar.tasks[-1].elapsed or 0.0
            bar.update(tasks[title], completed=done, speed=done / elapsed if elapsed else 0.0)

        yield show
