"""What `compare` and `demo` have in common: compare, write what was asked for, print the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from argmaxf.commands.models import behind_preprocessing, make_classifier
from argmaxf.commands.output import console, print_json
from argmaxf.commands.tables import LabelledTable, class_named
from argmaxf.comparison.compare import compare
from argmaxf.comparison.methods import METHODS
from argmaxf.comparison.result import Comparison, Standing
from argmaxf.comparison.trial import Fit
from argmaxf.comparison.words import shown
from argmaxf.whole import written_whole


@dataclass(frozen=True)
class Asked:
    """What the command line asks of a comparison."""

    train: LabelledTable
    test: LabelledTable | None = None
    estimator: str = "logistic"
    beta: float = 1.0
    positive: str | None = None
    folds: int = 5
    seed: int = 0
    methods: tuple[str, ...] = ()  # besides those that always take part

    def compare(self) -> Comparison:
        """Return the comparison, columns that took no part being noted."""
        train, test = self.train, self.test
        if self.folds < 2:
            raise ValueError(f"folds must be at least 2, got {self.folds}")
        classifier = make_classifier(self.estimator, self.seed)
        comparison = compare(
            train.X,
            train.y,
            behind_preprocessing(train.X, classifier),
            beta=self.beta,
            X_test=None if test is None else test.X,
            y_test=None if test is None else test.y,
            methods=[*(key for key, m in METHODS.items() if m.standard), *self.methods],
            cv=self.folds,
            pos_label=class_named(train, self.positive),
            random_state=self.seed,
            names=(train.name, "" if test is None else test.name),
            track=_show_progress,
        )
        return replace(comparison, notes=(*_left_out(train), *comparison.notes))


def answer(
    asked: Asked,
    command: Sequence[str],
    *,
    report: Path | None = None,
    save: Path | None = None,
    as_json: bool = False,
) -> None:
    """Compare, write what was asked for, and print the result."""
    with ExitStack() as stack:  # every output is begun before the work, and none is left half done
        outputs = {p: stack.enter_context(written_whole(p)) for p in (report, save) if p}
        comparison = asked.compare()
        if save is not None:
            with _working(f"fitting {comparison.chosen} on all rows"):
                _save(comparison, asked.train, outputs[save])
        if report is not None:
            with _working("writing the report"):
                page = _render(comparison, asked, command, save)
                outputs[report].write_text(page, encoding="utf-8")
    if as_json:
        print_json(as_record(comparison, report, save))
    else:
        _print(comparison, report, save)


def as_record(comparison: Comparison, report: Path | None, save: Path | None) -> dict[str, Any]:
    """Return the comparison for programs."""
    return {
        "chosen": comparison.chosen,
        "verdict": comparison.verdict,
        "reason": comparison.reason,
        "notes": list(comparison.notes),
        "measure": str(comparison.measure),
        "beta": comparison.beta,
        "rated_on": comparison.rated_on,
        "labels": list(comparison.labels),
        "methods": [_method_record(standing) for standing in comparison.methods],
        "report": None if report is None else str(report),
        "saved": None if save is None else str(save),
    }


def _method_record(standing: Standing) -> dict[str, Any]:
    return {
        "key": standing.method.key,
        "name": standing.name,
        "symbol": standing.method.symbol,
        "score": asdict(standing.score),
        "difference": asdict(standing.difference),
        **(standing.counts or {}),
    }


def _left_out(train: LabelledTable) -> tuple[str, ...]:
    if not train.left_out:
        return ()
    columns = ", ".join(train.left_out)
    return (f"Columns that are neither numbers nor categories were left out: {columns}.",)


def _render(comparison: Comparison, asked: Asked, command: Sequence[str], save: Path | None) -> str:
    try:
        from argmaxf.report.page import render
    except ModuleNotFoundError as error:
        raise ValueError(f"--report needs {error.name}: pip install 'argmaxf[report]'") from None
    made_with = f"Seed {asked.seed}, {asked.folds} folds, {asked.estimator} classifier"
    saved = None if save is None else save.name
    return render(comparison, command=command, made_with=made_with, saved=saved)


def _save(comparison: Comparison, rows: LabelledTable, path: Path) -> None:
    try:
        import skops.io
    except ModuleNotFoundError:
        raise ValueError("--save needs skops: pip install 'argmaxf[save]'") from None
    skops.io.dump(comparison.estimator.fit(rows.X, rows.y), path)


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
    for line in (comparison.verdict, comparison.reason, _seen(comparison), *comparison.notes):
        out.print(escape(line))
    for what, path in (("report", report), ("model", save)):
        if path is not None:
            out.print(
                f"The {what} is in [bold]{escape(str(path.resolve()))}[/bold]", soft_wrap=True
            )


def _seen(comparison: Comparison) -> str:
    """Return on how many rows the methods were rated, and how many of those are positive."""
    assert comparison.evidence is not None
    rate = comparison.evidence.truth.mean(axis=0)
    rarest = " in the rarest label" if len(rate) > 1 else ""
    rows = f"{comparison.n_rows:,} rows rated ({comparison.rated_on})"
    return f"{rows}, {rate.min():.1%} positive{rarest}."


def _name(standing: Standing, used: bool) -> str:
    """Return a method's plain name, and its symbol in small print."""
    symbol = escape(standing.method.symbol)
    return f"{escape(standing.name)}{' *' if used else ''} [dim]{symbol}[/dim]"


def _table(comparison: Comparison) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("method")
    for heading in (
        f"{comparison.score_name} [dim]95 % interval[/dim]",
        f"less {escape(comparison.chosen)} [dim]paired[/dim]",
        "found",
        "false",
        "missed",
    ):
        table.add_column(heading, justify="right")
    for standing in comparison.methods:
        used = standing.name == comparison.chosen
        counts = standing.counts or {}
        table.add_row(
            _name(standing, used),
            escape(shown(standing.score)),
            "" if used else escape(shown(standing.difference, "+.3f")),
            *(f"{counts[cell]:,}" for cell in ("tp", "fp", "fn") if cell in counts),
            style="bold" if used else None,
        )
    return table
