"""What `compare` and `demo` share: compare, write what was asked for, print the result."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_digits

from argmaxf._base.atomic_write import writing, written_whole
from argmaxf.cli.models import behind_preprocessing, make_classifier
from argmaxf.cli.output import console, print_json, print_table, shown
from argmaxf.cli.tables import LabelledTable, class_named, class_taken
from argmaxf.comparison import messages
from argmaxf.comparison.compare import compare_methods
from argmaxf.comparison.methods import METHODS, Settings, methods_for
from argmaxf.comparison.ranking import CLEAR_LEAD, MethodScore, score_rows
from argmaxf.comparison.result import Comparison, Standing
from argmaxf.constraints import Constraints
from argmaxf.empirical.interval import Interval
from argmaxf.estimators.folds import MultilabelStratifiedKFold
from argmaxf.estimators.labels import Labels
from argmaxf.measures import MeasureLike, as_measure
from argmaxf.report.code import SavedModel


@dataclass(frozen=True)
class Request:
    """What the command line asks of a comparison."""

    train: LabelledTable
    test: LabelledTable | None = None
    estimator: str = "logistic"
    beta: float = 1.0
    positive: str | None = None
    folds: int = 5
    seed: int = 0
    methods: tuple[str, ...] = ()  # besides those that always take part
    measure: MeasureLike = "fbeta"
    apart: LabelledTable | None = None  # rows on which the choice is judged once it is made
    constraints: Constraints = Constraints()  # noqa: RUF009  frozen; to be guaranteed
    confidence_level: float | None = None

    def compare(self) -> Comparison:
        """Return the comparison, columns that took no part being noted."""
        train, test = self.train, self.test
        if self.folds < 2:
            raise ValueError(f"folds must be at least 2, got {self.folds}")
        with _progress_bar() as progress:
            comparison = compare_methods(
                train.X,
                train.y,
                self._pipeline(),
                replace(
                    self._settings(),
                    pos_label=class_named(train, self.positive),
                    constraints=self.constraints,
                    confidence_level=self.confidence_level,
                ),
                methods=self._methods(),
                test_set=None if test is None else (test.X, test.y),
                names=(train.name, "" if test is None else test.name),
                progress=progress,
            )
        taken = class_taken(train, self.positive)
        notes = (*taken, *train.notes, *(() if test is None else test.notes), *comparison.notes)
        judged = "" if self.apart is None else f" {self._judged(comparison, self.apart)}"
        return replace(comparison, reason=comparison.reason + judged, notes=notes)

    def _pipeline(self) -> Any:
        return behind_preprocessing(self.train.X, make_classifier(self.estimator, self.seed))

    def _methods(self) -> list[str] | None:
        """Return the keys of the methods to compare, None for those that always take part."""
        if not self.methods:
            return None
        standard = methods_for(None, self._settings().objective)
        return [*(method.key for method in standard), *self.methods]

    def _settings(self) -> Settings:
        """Return the measure and the folds; names keep the Python code of the report short."""
        measure = self.measure
        as_measure(measure, self.beta)
        if measure == "fbeta":
            measure = "f1" if self.beta == 1.0 else f"f{self.beta!r}"
        folds: Any = self.folds
        cv = folds if self.seed == 0 else MultilabelStratifiedKFold(folds, random_state=self.seed)
        return Settings(measure, cv=cv)

    def _judged(self, comparison: Comparison, apart: LabelledTable) -> str:
        """Say how the choice does on rows that took no part in it, beside the usual thresholds."""
        usual = [METHODS[key] for key in ("plain", "threshold")]
        settings = self._settings()
        models = [comparison.estimator, *(m.make(self._pipeline(), settings) for m in usual)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = [model.fit(self.train.X, self.train.y).predict(apart.X) for model in models]
        target = Labels.of(self.train.y, class_named(self.train, self.positive))
        truth, *tables = (target.columns(each) for each in (apart.y, *labels))
        best, *others = (score_rows(truth, each, comparison.measure, None) for each in tables)
        beaten = " and ".join(
            f"{_gain(best, other)} against {_both(method.name, other, comparison)}"
            for method, other in zip(usual, others, strict=True)
        )
        name = f"{comparison.measure} {best.value:.3f} ({_on_folds(comparison.chosen, comparison)})"
        return f"On {len(apart.y):,} {apart.name}, {comparison.chosen} reaches {name}: {beaten}."


def _gain(best: MethodScore, other: MethodScore) -> str:
    """Return by how much a method beats another, with half of the 95 % interval."""
    return f"{best.value - other.value:+.3f} ± {CLEAR_LEAD * best.std_error(other):.3f}"


def _both(name: str, rated: MethodScore, comparison: Comparison) -> str:
    """Return a method with its F on other rows, and on those it was compared on."""
    return f"{name} ({rated.value:.3f}, {_on_folds(name, comparison)})"


def _on_folds(name: str, comparison: Comparison) -> str:
    return f"{comparison.scores[name]:.3f} on the folds"


def answer(
    request: Request,
    command: Sequence[str],
    *,
    report: Path | None = None,
    save: Path | None = None,
    as_json: bool = False,
) -> None:
    """Compare, write what was asked for, and print the result."""
    with ExitStack() as stack:  # every output is begun before the work, and none is left half done
        outputs = {p: stack.enter_context(written_whole(p)) for p in (report, save) if p}
        comparison = request.compare()
        saved = None
        if save is not None:
            with _working(f"fitting {comparison.chosen} on all rows"), writing(save):
                saved = SavedModel(save.name, _save(comparison, request.train, outputs[save]))
        if report is not None:
            with _working("writing the report"), writing(report):
                page = _render(comparison, request, command, saved)
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


def _render(
    comparison: Comparison, request: Request, command: Sequence[str], saved: SavedModel | None
) -> str:
    try:
        from argmaxf.report.page import render
    except ModuleNotFoundError as error:
        raise ValueError(f"--report needs {error.name}: pip install 'argmaxf[report]'") from None
    made_with = f"Seed {request.seed}, {request.folds} folds, {request.estimator} classifier"
    return render(comparison, command=command, made_with=made_with, saved=saved)


def _save(comparison: Comparison, rows: LabelledTable, path: Path) -> list[str]:
    """Write the chosen model, fitted on all rows; return the types to trust when it is loaded."""
    try:
        import skops.io
    except ModuleNotFoundError:
        raise ValueError("--save needs skops: pip install 'argmaxf[save]'") from None
    skops.io.dump(comparison.estimator.fit(rows.X, rows.y), path)
    return list(skops.io.get_untrusted_types(file=path))


@contextmanager
def _progress_bar() -> Iterator[Any]:
    """Give a function that shows how many models are fitted, on a terminal only."""
    terminal = Console(stderr=True)
    if not terminal.is_terminal:  # rich 13 would write empty lines
        yield False
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=terminal, transient=True) as bar:
        task = bar.add_task("")

        def show(done: int, total: int, name: str) -> None:
            if not done:
                cores = os.cpu_count() or 1
                bar.console.print(f"{total} models to fit, on up to {cores} cores.")
            bar.update(task, completed=done, total=total, description=f"fitting {shown(name)}")

        yield show


def _working(what: str) -> AbstractContextManager[Any]:
    """Show that something is being done, on a terminal only."""
    terminal = Console(stderr=True)
    return terminal.status(what) if terminal.is_terminal else nullcontext()


def _print(comparison: Comparison, report: Path | None, save: Path | None) -> None:
    out = console()
    print_table(out, _table(comparison))
    for line in (comparison.verdict, comparison.reason, _seen(comparison), *comparison.notes):
        out.print(shown(line))
    for what, path in (("report", report), ("model", save)):
        if path is not None:
            out.print(f"The {what} is in [bold]{shown(str(path.resolve()))}[/bold]", soft_wrap=True)


def _seen(comparison: Comparison) -> str:
    """Return on how many rows the methods were rated, and how many of those are positive."""
    assert comparison.evidence is not None
    rate = comparison.evidence.truth.mean(axis=0)
    rarest = " in the rarest label" if len(rate) > 1 else ""
    rows = f"{comparison.n_rows:,} rows rated ({comparison.rated_on})"
    return f"{rows}, {rate.min():.1%} positive{rarest}."


def _table(comparison: Comparison) -> Table:
    named = [m for m in comparison.methods if m.method.symbol]
    symbols = ", ".join(f"{m.method.symbol} is {m.name}" for m in named)
    caption = shown(f"In the paper {symbols}.") if named else None
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption=caption, caption_justify="left")
    table.add_column("method", no_wrap=True)
    for heading in (
        f"{shown(comparison.score_name)} [dim]95 %[/dim]",
        f"minus {shown(comparison.chosen)},\n± 95 %",  # two lines: 80 columns are enough
        "found",
        "false",
        "missed",
    ):
        table.add_column(heading, justify="right", no_wrap="[" in heading)
    for standing in comparison.methods:
        used = standing.name == comparison.chosen
        counts = standing.counts or {}
        table.add_row(
            f"{shown(standing.name)}{' *' if used else ''}",
            _short(messages.shown(standing.score)),
            "" if used else _paired(standing.difference),
            *(f"{counts[cell]:,}" for cell in ("tp", "fp", "fn") if cell in counts),
            style="bold" if used else None,
        )
    return table


def _short(text: str) -> str:
    """Return numbers no wider than they must be: .630 [.558, .696]."""
    return shown(re.sub(r"\b0\.", ".", text))


def _paired(difference: Interval) -> str:
    """Return a difference and how far its interval reaches to either side."""
    return _short(f"{difference.value:+.3f} ± {difference.high - difference.value:.3f}")


def nines(seed: int = 0) -> pl.DataFrame:
    """Return scans of handwritten digits in the order of `seed`: 64 pixels, and `is_9`.

    1,797 digits of 43 writers (Alpaydin and Kaynak 1998), as scikit-learn bundles them.

    >>> frame = nines()
    >>> frame.shape, frame["is_9"].sum()
    ((1797, 65), 180)
    """
    pixels, digit = load_digits(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(digit))
    frame = pl.DataFrame(pixels[rows], schema=[f"pixel_{i // 8}_{i % 8}" for i in range(64)])
    return frame.with_columns(is_9=pl.Series((digit[rows] == 9).astype(np.int64)))
