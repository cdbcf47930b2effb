"""What `compare` and `demo` have in common: compare, write what was asked for, print the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from argmaxf.commands.output import console, print_json
from argmaxf.empirical.interval import Interval
from argmaxf.report.comparison import Comparison, compare, fit_chosen
from argmaxf.report.contest import Fit, Options
from argmaxf.report.tables import Rows
from argmaxf.report.words import sentence, summary
from argmaxf.whole import written_whole


def answer(
    rows: Rows,
    test_rows: Rows | None,
    options: Options,
    *,
    command: Sequence[str],
    report: Path | None = None,
    save: Path | None = None,
    as_json: bool = False,
) -> None:
    """Compare, write what was asked for, and print the result."""
    with ExitStack() as stack:  # every output is begun before the work, and none is left half done
        outputs = {p: stack.enter_context(written_whole(p)) for p in (report, save) if p}
        comparison = compare(rows, test_rows, options, track=_show_progress)
        if save is not None:
            with _working(f"fitting {comparison.chosen} on all rows"):
                _save(comparison, rows, outputs[save])
        if report is not None:
            with _working("writing the report"):
                page = _render(comparison, command, save)
                outputs[report].write_text(page, encoding="utf-8")
    if as_json:
        print_json(as_record(comparison, report, save))
    else:
        _print(comparison, report, save)


def as_record(comparison: Comparison, report: Path | None, save: Path | None) -> dict[str, Any]:
    """Return the comparison for programs."""
    return {
        "chosen": comparison.chosen,
        "sentence": sentence(comparison),
        "reason": comparison.reason,
        "notes": list(comparison.notes),
        "beta": comparison.options.beta,
        "rated_on": comparison.rated_on,
        "labels": list(comparison.names),
        "methods": [asdict(method) for method in comparison.methods],
        "report": None if report is None else str(report),
        "saved": None if save is None else str(save),
    }


def _render(comparison: Comparison, command: Sequence[str], save: Path | None) -> str:
    try:
        from argmaxf.report.page import render
    except ModuleNotFoundError as error:
        raise ValueError(f"--report needs {error.name}: pip install 'argmaxf[report]'") from None
    return render(comparison, command=command, saved=None if save is None else save.name)


def _save(comparison: Comparison, rows: Rows, path: Path) -> None:
    try:
        import skops.io
    except ModuleNotFoundError:
        raise ValueError("--save needs skops: pip install 'argmaxf[save]'") from None
    skops.io.dump(fit_chosen(comparison, rows), path)


def _show_progress(fits: list[Fit]) -> Iterator[Fit]:
    """Go through the fits with a progress bar, on a terminal only."""
    terminal = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=terminal, transient=True, disable=not terminal.is_terminal
    ) as bar:
        task = bar.add_task("", total=len(fits))
        for fit in fits:
            bar.update(task, description=f"fitting {escape(fit.name)}")
            yield fit
            bar.advance(task)


def _working(what: str) -> AbstractContextManager[Any]:
    """Show that something is being done, on a terminal only."""
    terminal = Console(stderr=True)
    return terminal.status(what) if terminal.is_terminal else nullcontext()


def _print(comparison: Comparison, report: Path | None, save: Path | None) -> None:
    out = console()
    out.print(_table(comparison))
    for line in summary(comparison):
        out.print(escape(line))
    for what, path in (("report", report), ("model", save)):
        if path is not None:
            out.print(
                f"The {what} is in [bold]{escape(str(path.resolve()))}[/bold]", soft_wrap=True
            )


def _table(comparison: Comparison) -> Table:
    several = len(comparison.names) > 1
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("method")
    for heading in (
        f"{'macro ' if several else ''}F{comparison.options.beta:g} [dim]95 % interval[/dim]",
        f"less {comparison.chosen} [dim]paired[/dim]",
        "found",
        "false",
        "missed",
    ):
        table.add_column(heading, justify="right")
    for m in comparison.methods:
        used = m.name == comparison.chosen
        table.add_row(
            m.name + (" *" if used else ""),
            _interval(m.score, ".3f"),
            "" if used else _interval(m.difference, "+.3f"),
            *(f"{count:,}" for count in (m.tp, m.fp, m.fn)),
            style="bold" if used else None,
        )
    return table


def _interval(interval: Interval, form: str) -> str:
    return escape(f"{interval.value:{form}} [{interval.low:{form}}, {interval.high:{form}}]")
