"""The command line: which commands there are, and one way to fail."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from difflib import SequenceMatcher
from tempfile import TemporaryFile
from typing import Annotated

import typer

from argmaxf import __version__
from argmaxf.cli import bounds, compare, decide
from argmaxf.cli.output import complain

NARROW = 80  # columns under which the boxes of help would cut options off in the middle
COMMANDS = (
    compare.demo,
    decide.decide,
    decide.sketch,
    decide.merge,
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
        _check_encoding(sys.argv[1:] if arguments is None else arguments)
        code = app(arguments, standalone_mode=False)
    except (typer.TyperException, ValueError, OSError) as error:
        complain(_message(error))
        return 2
    except (KeyboardInterrupt, typer.Abort):
        complain("stopped")
        return 130
    except BaseException as error:
        if type(error).__module__.startswith("polars"):  # not foreseen where it happened
            complain(f"the data cannot be used: {error}")
            return 2
        raise
    return code if isinstance(code, int) else 0


def without_panics(run: Callable[[], int]) -> int:
    """Run something; print what compiled code writes to the standard error only at the end.

    All but panics: a damaged file makes Polars print many lines before it raises, and the command
    says what is wrong in one.
    """
    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
        return run()
    python = sys.stderr
    with TemporaryFile() as noise:
        os.dup2(noise.fileno(), 2)
        sys.stderr = os.fdopen(kept, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
        try:
            return run()
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            sys.stderr = python
            noise.seek(0)
            text = noise.read()
            if b"panicked at" not in text:
                with suppress(OSError):
                    os.write(2, text)


def _check_encoding(words: list[str]) -> None:
    """Refuse names that are not UTF-8: no library that reads files takes them."""
    for word in words:
        raw = os.fsencode(word)
        if raw.decode("utf-8", "replace") != word:
            raise ValueError(f"the name of a file must be UTF-8, got {raw!r}: rename it")


def _message(error: Exception) -> str:
    """Return what is wrong, with the option that may have been meant."""
    if isinstance(error, typer.BadParameter):
        return error.format_message()
    given = getattr(error, "option_name", "")
    meant = [name for name in getattr(error, "possibilities", None) or () if _near(given, name)]
    return f"{error}; did you mean {' or '.join(meant)}?" if meant else str(error)


def _near(given: str, offered: str) -> bool:
    """Whether somebody may have meant this option: it begins alike, or is spelled nearly so.

    >>> _near("--traget", "--target"), _near("--prob", "--probability"), _near("--test", "--beta")
    (True, True, False)
    """
    a, b = given.strip("-"), offered.strip("-")
    return a.startswith(b) or b.startswith(a) or SequenceMatcher(None, a, b).ratio() > 0.75
