"""A progress bar with the time left, on a terminal only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Bar:
    """What a runner tells its user: what is being done, and how much of it is done."""

    def name(self, text: str) -> None:
        """Say what is being done now."""

    def advance(self, work: float) -> None:
        """Count some work as done."""


class RichBar(Bar):
    """A bar drawn by rich."""

    def __init__(self, progress: Any, total: float) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=total)

    def name(self, text: str) -> None:
        """Say what is being done now."""
        self._progress.update(self._task, description=text)

    def advance(self, work: float) -> None:
        """Count some work as done."""
        self._progress.advance(self._task, work)


@contextmanager
def progress_bar(total: float, show: bool) -> Iterator[Bar]:
    """Give a bar for an amount of work; nothing is drawn where `show` is false."""
    if not show:
        yield Bar()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    parts = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*parts, console=Console(stderr=True), transient=True) as progress:
        yield RichBar(progress, total)
