"""The command line: which commands there are, and one way to fail."""

from __future__ import annotations

import inspect
import shutil
from difflib import SequenceMatcher
from typing import Annotated

import typer
from polars.exceptions import PanicException, PolarsError

from argmaxf import __version__
from argmaxf.cli import bounds, compare, decide, demo, sketch
from argmaxf.cli.output import complain

NEAR = 0.75  # likeness of two words of which one is a slip of the other
NARROW = 80  # columns under which the boxes of help would cut options off in the middle
COMMANDS = (
    demo.demo,
    decide.decide,
    sketch.sketch,
    sketch.merge,
    compare.compare,
    bounds.bounds,
)

app = typer.Typer(
    name="argmaxf",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
for command in COMMANDS:
    app.command(short_help=inspect.getdoc(command))(command)


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """The predictions with the highest F-measure: exact, fast, for any beta."""
    if version:
        typer.echo(f"argmaxf {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit code: 0, 2 for bad input, 130 for Ctrl-C."""
    app.rich_markup_mode = None if shutil.get_terminal_size().columns < NARROW else "rich"
    try:
        code = app(arguments, standalone_mode=False)
    except (typer.TyperException, ValueError, OSError) as error:
        complain(_message(error))
        return 2
    except (PolarsError, PanicException) as error:  # not foreseen where it happened
        complain(f"the data cannot be used: {error}")
        return 2
    except (KeyboardInterrupt, typer.Abort):
        complain("stopped")
        return 130
    return code if isinstance(code, int) else 0


def _message(error: Exception) -> str:
    """Return what is wrong, with the option that may have been meant."""
    if isinstance(error, typer.BadParameter):
        return error.format_message()
    chance = getattr(error, "option_name", "")
    meant = [name for name in getattr(error, "possibilities", None) or () if _near(chance, name)]
    return f"{error}; did you mean {' or '.join(meant)}?" if meant else str(error)


def _near(chance: str, offered: str) -> bool:
    """Whether somebody may have meant this option: it begins alike, or differs by a slip.

    >>> _near("--traget", "--target"), _near("--prob", "--probability"), _near("--test", "--beta")
    (True, True, False)
    """
    a, b = chance.strip("-"), offered.strip("-")
    alike = SequenceMatcher(None, a, b).ratio() > NEAR
    return a.startswith(b) or b.startswith(a) or alike
