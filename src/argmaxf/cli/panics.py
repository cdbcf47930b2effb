"""What compiled code prints by itself where a file is damaged: held back, and mostly left out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile


@contextmanager
def panics_held() -> Iterator[None]:
    """Hold back what compiled code writes to the standard error by itself, and print it at the end.

    All but panics: a damaged file makes Polars print many lines before it raises, and the command
    says what is wrong in one.
    """
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
