"""The argmaxf command: its entry point, and how every failure is reported."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

READING = ("decide", "sketch", "compare")  # the commands that read files of users


def main() -> None:
    """Run the command; bad input is one clear line and exit code 2, never a traceback."""
    try:
        from argmaxf.commands.app import run
    except ModuleNotFoundError as error:
        sys.exit(f"argmaxf: the command needs {error.name}; run pip install 'argmaxf[cli]'")
    except KeyboardInterrupt:  # while it still loads
        sys.exit(130)
    if not set(READING) & set(sys.argv[1:2]):
        sys.exit(run())
    with _panics_held():
        code = run()
    sys.exit(code)


@contextmanager
def _panics_held() -> Iterator[None]:
    """Hold back what compiled code writes to the standard error by itself, and print it at the end.

    All but panics: a damaged file makes Polars print many lines before it raises, and the command
    says what is wrong in one.
    """
    from tempfile import TemporaryFile  # not before Ctrl-C is answered quietly

    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    python, noise = sys.stderr, TemporaryFile()  # noqa: SIM115 (closed below)
    os.dup2(noise.fileno(), 2)
    sys.stderr = os.fdopen(kept, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        sys.stderr = python
        noise.seek(0)
        text = noise.read()
        noise.close()
        if b"panicked at" not in text:
            with suppress(OSError):
                os.write(2, text)
