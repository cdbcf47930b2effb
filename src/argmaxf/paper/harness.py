"""Experiments as data plus one runner: cells computed in parallel, each kept once it is known.

A cell is one call of a module-level function with JSON parameters; its JSON result is kept in a
file of its own, so an interrupted run goes on where it stopped. A kept result counts only while
its parameters, the code it was computed by and the versions of the packages are the same.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from argmaxf._base.atomic_write import write_whole
from argmaxf.paper import clock
from argmaxf.paper.fingerprint import code_digest

if TYPE_CHECKING:
    from argmaxf.paper.reports import Report

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
    title: str
    cells: Callable[[Plan], Sequence[Cell]]
    report: Callable[[Sequence[Outcome]], Report]
    alone: bool = False


def versions() -> dict[str, str]:
    """Return the versions a result depends on."""
    return {package: version(package) for package in PACKAGES}


def run_cells(
    cells: Sequence[Cell],
    folder: Path,
    jobs: int = 1,
    advance: Callable[[float], None] = lambda cost: None,
) -> list[Outcome]:
    """Return the outcome of every cell, in order; those kept in `folder` are not computed again."""
    outcomes: dict[str, Outcome] = {}
    for outcome in _outcomes(cells, folder, jobs):
        outcomes[outcome.cell.key] = outcome
        advance(outcome.cell.cost)
    return [outcomes[cell.key] for cell in cells]


def _outcomes(cells: Sequence[Cell], folder: Path, jobs: int) -> Iterator[Outcome]:
    missing: list[Cell] = []
    for cell in cells:
        kept = _kept(cell, folder)
        if kept is None:
            missing.append(cell)
        else:
            yield kept
    # The long ones first, so that no worker is left alone with one at the end.
    missing.sort(key=lambda cell: -cell.cost)
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
    clock.restart()
    start = time.perf_counter()
    with threadpool_limits(limits=1):
        result = cell.work(**cell.params, **extra)
    return Outcome(cell, result, {"total": time.perf_counter() - start, **clock.seconds()})


def _file(cell: Cell, folder: Path) -> Path:
    return folder / f"{cell.key}.json"


def _kept(cell: Cell, folder: Path) -> Outcome | None:
    try:
        kept = json.loads(_file(cell, folder).read_text(encoding="utf-8"))
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
    write_whole(_file(outcome.cell, folder), json.dumps(kept, ensure_ascii=False) + "\n")


def mean_sd(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean and the standard deviation (n - 1) of some numbers."""
    values = list(values)
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, math.nan
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))
