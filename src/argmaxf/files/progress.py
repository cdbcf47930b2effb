"""How long work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

Advance = Callable[[int], None]


class Progress(Protocol):
    """Shows the phases of long work."""

    active: bool

    def phase(self, title: str, rows: int | None) -> AbstractContextManager[Advance]:
        """Begin a phase over so many rows; what it yields is told how many more are done."""
        ...


class Silent:
    """Shows nothing."""

    active = False

    def phase(self, title: str, rows: int | None) -> AbstractContextManager[Advance]:
        """Begin a phase."""
        return nullcontext(lambda rows: None)
