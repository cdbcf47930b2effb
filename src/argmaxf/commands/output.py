"""What commands print: tables and sentences for people, JSON for programs, errors in one line."""

from __future__ import annotations

import json
import sys
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
