"""What commands print: tables and sentences for people, JSON for programs, errors in one line."""

from __future__ import annotations

import json
import sys
from pathlib import PurePath
from typing import Any

import typer
from rich.console import Console

JSON_OPTION = typer.Option("--json", help="Print the result as JSON instead of text.")


def console() -> Console:
    """Return the terminal that results go to."""
    return Console(highlight=False)


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
