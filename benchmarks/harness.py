"""Timing and the table: what each module of benchmarks yields, and how it is shown."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """One line: some work of ours beside other work of the same run."""

    work: str
    ours: float  # seconds, or bytes where `unit` says so
    beside: str
    other: float
    at_most: float | None = None  # the ratio that must not be exceeded
    aim: float | None = None
    unit: str = "s"
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.ours / self.other

    @property
    def verdict(self) -> str:
        if self.at_most is None:
            return ""
        if self.aim is not None and self.ratio <= self.aim:
            return "aim met"
        return "met" if self.ratio <= self.at_most else "MISSED"


def best(work: Callable[[], object], repeat: int = 5) -> float:
    """Return the shortest of several runs: the one least disturbed by others."""
    gc.collect()
    return min(timed(work) for _ in range(repeat))


def best_pair(
    ours: Callable[[], object], other: Callable[[], object], repeat: int = 5
) -> tuple[float, float]:
    """Time two works in turns, so that a disturbance hits both."""
    gc.collect()
    pairs = [(timed(ours), timed(other)) for _ in range(repeat)]
    return min(a for a, _ in pairs), min(b for _, b in pairs)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds of one run; short work runs several times, warm."""
    start = time.perf_counter()
    work()
    once = time.perf_counter() - start
    if once > 2e-3:
        return once
    loops = int(5e-3 / once) + 1
    start = time.perf_counter()
    for _ in range(loops):
        work()
    return (time.perf_counter() - start) / loops


def table(rows: Iterable[Row]) -> str:
    """Return rows as a Markdown table."""
    lines = [
        "| work | argmaxf | compared with | its figure | ratio | at most | aim | |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        limits = ["" if limit is None else f"{limit:g}" for limit in (row.at_most, row.aim)]
        cells = [
            row.work,
            figure(row.ours, row.unit),
            row.beside,
            figure(row.other, row.unit),
            f"{row.ratio:.3g}",
            *limits,
            row.verdict or row.note,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def figure(value: float, unit: str) -> str:
    """Write seconds or bytes for people."""
    if unit == "B":
        return f"{value / 1e6:.1f} MB"
    if unit != "s":
        return f"{value:.4g} {unit}".rstrip()
    scale, name = next(
        s for s in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (0.0, "ns")) if value >= s[0]
    )
    return f"{value / (scale or 1e-9):.3g} {name}"


def write_between(page: Path, marks: tuple[str, str], text: str) -> None:
    """Put tables between two marks of a page of the documentation."""
    start, end = map(re.escape, marks)
    body = f"{marks[0]}\n\n{text}\n{marks[1]}"
    page.write_text(re.sub(f"{start}.*{end}", lambda _: body, page.read_text(), flags=re.DOTALL))
