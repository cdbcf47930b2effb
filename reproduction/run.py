"""Experiments as data plus one runner: cells computed in parallel, each kept once it is known.

A cell is one call of a module-level function with JSON parameters; its JSON result is kept in a
file of its own, so an interrupted run goes on where it stopped. A kept result counts only while
its parameters, the code it was computed by and the versions of the packages are the same.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import argmaxf
from argmaxf._base.atomic_write import write_whole
from argmaxf._base.validation import check_choice
from reproduction import models
from reproduction.report import Report, results_page, timing_page, write_report

FOLDER = Path(__file__).parent
NAMES = (
    *("table1", "table2", "figure1", "adaptation", "table3"),
    *("table4", "bounds", "algorithms", "map", "cost"),
)
PACKAGES = ("argmaxf", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Plan:
    """What the user asked for: how many seeds (None: as many as each table needs), how big."""

    seeds: int | None = None
    quick: bool = False
    data_dir: str | None = None

    def repeats(self, full: int, quick: int) -> int:
        """Return the number of repetitions: the user's, or the experiment's own."""
        return self.seeds or (quick if self.quick else full)


@dataclass(frozen=True)
class Cell:
    """One piece of work: a function of JSON parameters. `cost` is a guess of its seconds."""

    key: str
    work: Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    cost: float = 1.0
    data_dir: str | None = None  # where the data are does not change the result

    def fingerprint(self) -> str:
        """Return what must be unchanged for a kept result to count."""
        text = json.dumps([self.params, code_digest(self.work), versions()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """What a cell gave, and where its time went."""

    cell: Cell
    result: Any
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Experiment:
    """A table or figure: the cells it needs, and what is written from their results.

    `alone`: its cells are timings, so nothing else may run beside them.
    """

    name: str
    cells: Callable[[Plan], Sequence[Cell]]
    report: Callable[[Sequence[Outcome]], Report]
    alone: bool = False


@dataclass(frozen=True)
class Run:
    """What a run gave: reports by name, the files written, and where the time went (seconds)."""

    reports: Mapping[str, Report]
    files: Sequence[Path]
    seconds: Mapping[str, Mapping[str, float]]


def reproduce(
    names: Sequence[str], out: Path | str, plan: Plan, jobs: int = 1, *, progress: bool = False
) -> Run:
    """Run experiments and write, for each, a table (Markdown, CSV, JSON) and a figure (PNG, SVG).

    The same seeds give the same bytes, whatever `jobs` is; only `algorithms`, which measures time,
    and timing.md differ.

    Parameters
    ----------
    names : any of `NAMES`; `["all"]` is all of them
    out : folder for the results; cells that lie there already are not computed again
    plan : how many seeds, how much of the labels, and where the data are
    jobs : processes that work at the same time
    progress : whether stderr shows how far the work is
    """
    for name in names:
        check_choice("experiment", name, (*NAMES, "all"))
    for name, number in (("seeds", plan.seeds), ("jobs", jobs)):
        if number is not None and number < 1:
            raise ValueError(f"{name} must be at least 1, got {number!r}")
    experiments = [_load(name) for name in NAMES if name in names or "all" in names]
    cells = {e.name: e.cells(plan) for e in experiments}
    advance = _progress(sum(cell.cost for group in cells.values() for cell in group), progress)
    folder = Path(out)
    reports, files, seconds = {}, [], {}
    for e in experiments:
        workers = 1 if e.alone else jobs
        outcomes = run_cells(cells[e.name], folder / "cells" / e.name, workers, advance)
        reports[e.name] = e.report(outcomes)
        files += write_report(reports[e.name], e.name, folder / "results")
        seconds[e.name] = {
            part: sum(o.seconds[part] for o in outcomes) for part in ("total", *models.PARTS)
        }
    pages = {
        folder / "results.md": results_page(reports, _command(reports, plan), versions()),
        folder / "results" / "timing.md": timing_page(seconds),
    }
    for path, text in pages.items():
        write_whole(path, text)
    return Run(reports, [*files, *pages], seconds)


def _load(name: str) -> Experiment:
    module: Any = import_module(f"reproduction.{'approach_map' if name == 'map' else name}")
    experiment: Experiment = module.EXPERIMENT
    return experiment


def _command(reports: Mapping[str, Report], plan: Plan) -> str:
    command = "python -m reproduction " + ("all" if len(reports) > 9 else " ".join(reports))
    command += f" --seeds {plan.seeds}" if plan.seeds else ""
    return command + " --quick" * plan.quick


def _progress(total: float, show: bool) -> Callable[[Cell], None]:
    """Return a function that counts a cell as done, and shows how much is left."""
    started, done = time.monotonic(), 0.0

    def advance(cell: Cell) -> None:
        nonlocal done
        done += cell.cost
        left = (time.monotonic() - started) * (total / done - 1.0)
        if show:
            line = f"\r{100 * done / total:3.0f} %, about {left / 60:.0f} min left, {cell.key}"
            print(f"{line:70.70}", end="\n" if done >= total else "", file=sys.stderr, flush=True)

    return advance


def versions() -> dict[str, str]:
    """Return the versions a result depends on."""
    return {package: version(package) for package in PACKAGES}


@cache
def code_digest(work: Callable[..., Any]) -> str:
    """Return a digest of a cell's own module, of models and loaders, and of the whole library."""
    own = [Path(inspect.getfile(work)), FOLDER / "models.py", FOLDER / "datasets.py"]
    library = sorted(Path(argmaxf.__file__).parent.rglob("*.py"))
    digest = hashlib.sha256()
    for path in (*own, *library):
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def run_cells(
    cells: Sequence[Cell],
    folder: Path,
    jobs: int = 1,
    advance: Callable[[Cell], None] = lambda cell: None,
) -> list[Outcome]:
    """Return the outcome of every cell, in order; those kept in `folder` are not computed again."""
    outcomes: dict[str, Outcome] = {}
    for outcome in _outcomes(cells, folder, jobs):
        outcomes[outcome.cell.key] = outcome
        advance(outcome.cell)
    return [outcomes[cell.key] for cell in cells]


def _outcomes(cells: Sequence[Cell], folder: Path, jobs: int) -> Iterator[Outcome]:
    kept = {cell.key: _kept(cell, folder) for cell in cells}
    yield from (outcome for outcome in kept.values() if outcome is not None)
    # The long ones first, so that no worker is left alone with one at the end.
    missing = sorted((cell for cell in cells if not kept[cell.key]), key=lambda cell: -cell.cost)
    for outcome in _compute(missing, jobs):
        _keep(outcome, folder)
        yield outcome


def _compute(cells: Sequence[Cell], jobs: int) -> Iterable[Outcome]:
    if jobs == 1 or len(cells) < 2:
        return map(_work, cells)
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    return parallel(delayed(_work)(cell) for cell in cells)  # type: ignore[no-any-return]


def _work(cell: Cell) -> Outcome:
    """Compute a cell, linear algebra in one thread: sums must not depend on the machine."""
    extra = {} if cell.data_dir is None else {"data_dir": cell.data_dir}
    models.spent.clear()
    start = time.perf_counter()
    with threadpool_limits(limits=1):
        result = cell.work(**cell.params, **extra)
    parts = {part: models.spent[part] for part in models.PARTS}
    return Outcome(cell, result, {"total": time.perf_counter() - start, **parts})


def _kept(cell: Cell, folder: Path) -> Outcome | None:
    try:
        kept = json.loads((folder / f"{cell.key}.json").read_text(encoding="utf-8"))
        if kept["fingerprint"] == cell.fingerprint():
            return Outcome(cell, kept["result"], kept["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # never computed, or a file cut short: computed now
    return None


def _keep(outcome: Outcome, folder: Path) -> None:
    kept = {
        "fingerprint": outcome.cell.fingerprint(),
        "params": outcome.cell.params,
        "result": outcome.result,
        "seconds": outcome.seconds,
    }
    text = json.dumps(kept, ensure_ascii=False) + "\n"
    write_whole(folder / f"{outcome.cell.key}.json", text)
