"""A progress bar with rows per second: on a terminal only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from argmaxf.files.progress import Advance


class RowsPerSecond(ProgressColumn):
    """Rows so far, and how fast they come."""

    def render(self, task: Task) -> Text:
        """Return the text beside the bar."""
        speed = task.finished_speed or task.speed or 0.0
        return Text(f"{task.completed:,.0f} rows  {speed:,.0f} rows/s")


class TerminalProgress:
    """Shows each phase as a bar on the terminal, and nothing where there is none."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self.active = self.console.is_terminal

    @contextmanager
    def phase(self, title: str, rows: int | None) -> Iterator[Advance]:
        """Begin a phase over so many rows, or an unknown number."""
        if not self.active:  # rich 13 would write empty lines
            yield lambda done: None
            return
        columns = (
            TextColumn("{task.description:9}"),
            BarColumn(),
            RowsPerSecond(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.console, transient=True) as bar:
            task = bar.add_task(title, total=rows)
            yield lambda done: bar.advance(task, done)
