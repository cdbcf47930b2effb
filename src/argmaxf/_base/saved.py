"""Results saved as JSON with a format and a version: what is damaged or newer is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

# What reading JSON that nobody wrote so can raise, before a check refuses it
DAMAGED = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)
VERSION = 1  # of all formats
T = TypeVar("T")


def to_json(what: str, data: dict[str, Any]) -> str:
    """Return data as JSON that `from_json` reads."""
    head = {"format": f"argmaxf {what}", "version": VERSION}
    return json.dumps(head | data, indent=1, allow_nan=False) + "\n"


def from_json(text: str, what: str, make: Callable[[dict[str, Any]], T]) -> T:
    """Make something of the data that `to_json` wrote."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a saved {what}: {error}") from None
    expected = f"argmaxf {what}"
    if not isinstance(data, dict) or data.pop("format", None) != expected:
        raise ValueError(f"not a saved {what}: its format must be {expected!r}")
    version = data.pop("version", None)
    if isinstance(version, int) and version > VERSION:
        raise ValueError(
            f"saved by a newer argmaxf (version {version} of the format, this one reads "
            f"{VERSION}); install that one"
        )
    try:
        if version != VERSION:
            raise ValueError(f"version must be {VERSION}, got {version!r}")
        return make(data)
    except DAMAGED as error:
        raise ValueError(f"the saved {what} is damaged: {error}") from None


def from_file(path: Path, what: str, make: Callable[[dict[str, Any]], T]) -> T:
    """Do so with the text of a file."""
    try:
        if path.exists() and not path.is_file():  # a pipe may wait for ever, a device never end
            raise ValueError("must be a file, got a folder, a pipe or a device")
        return from_json(path.read_text(encoding="utf-8"), what, make)
    except OSError as error:
        raise OSError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
