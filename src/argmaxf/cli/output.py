"""What commands print: tables and sentences for people, JSON for programs, errors in one line."""

from __future__ import annotations

import json
import sys
from pathlib import PurePath
from typing import Any

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

JSON_OPTION = typer.Option("--json", help="Print the result as JSON instead of text.")


def console(*, stderr: bool = False) -> Console:
    """Return the terminal that results go to; the other one where rows are printed."""
    return Console(highlight=False, stderr=stderr)


def print_whole(out: Console, table: Table) -> None:
    """Print a table; where it is wider than the terminal, each row as lines of its own.

    So that no number is cut off.
    """
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
    print("argmaxf: " + " ".join(message.split()), file=sys.stderr)


def without_folder(word: str) -> str:
    """Return a word of the command line without the folders of an absolute path in it."""
    option, equals, value = word.rpartition("=") if word.startswith("-") else ("", "", word)
    return option + equals + (PurePath(value).name if PurePath(value).is_absolute() else value)


def spread(std: float) -> str:
    """Write a standard deviation in two digits; rounding below 0 is 0."""
    return f"{max(0.0, std):.2g}"
