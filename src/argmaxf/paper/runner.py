"""Run experiments by name and write their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from argmaxf._base.atomic_write import write_whole
from argmaxf._base.validation import check_choice
from argmaxf.paper.clock import PARTS
from argmaxf.paper.harness import Experiment, Outcome, Plan, run_cells
from argmaxf.paper.progress import progress_bar
from argmaxf.paper.reports import Report, plain, write_report
from argmaxf.paper.results import results_page, timing_page

_MODULES = {
    "table1": "table1",
    "table2": "table2",
    "figure1": "figure1",
    "adaptation": "adaptation",
    "table3": "table3",
    "table4": "table4",
    "bounds": "bounds",
    "algorithms": "algorithms",
    "map": "approach_map",
    "cost": "cost",
}
NAMES = tuple(_MODULES)


@dataclass(frozen=True)
class Run:
    """What a run gave: reports by name, the files written, and where the time went (seconds)."""

    reports: Mapping[str, Report]
    files: Sequence[Path]
    seconds: Mapping[str, Mapping[str, float]]

    def as_dict(self) -> dict[str, Any]:
        """Return the run for programs, in JSON's own types."""
        return {
            "experiments": {
                name: plain({"headline": report.headline, "findings": report.findings})
                for name, report in self.reports.items()
            },
            "files": [str(path) for path in self.files],
            "seconds": plain(self.seconds),
        }


def reproduce(
    names: Sequence[str],
    out: Path | str,
    *,
    seeds: int | None = None,
    quick: bool = False,
    jobs: int = 1,
    data_dir: str | None = None,
    show_progress: bool = False,
) -> Run:
    """Run experiments and write, for each, a table (Markdown, CSV, JSON) and a figure (PNG, SVG).

    Cells already in `out`/cells are not computed again, so an interrupted run goes on where it
    stopped. The same seeds give the same bytes, whatever `jobs` is; only `algorithms`, which
    measures time, and timing.md differ.

    Parameters
    ----------
    names : any of `NAMES`; `["all"]` is all of them
    out : folder for the results
    seeds : repetitions of each cell; None takes the number each experiment was designed for
    quick : few seeds and a part of the labels: a look, in under 3 minutes for all
    jobs : processes that work at the same time
    data_dir : folder with the data sets, before ARGMAXF_DATA and the user's cache
    """
    experiments = [_load(name) for name in _chosen(names)]
    plan = Plan(_check_count("seeds", seeds), quick, data_dir)
    jobs = _check_count("jobs", jobs) or 1
    cells = {e.name: e.cells(plan) for e in experiments}
    work = sum(cell.cost for group in cells.values() for cell in group)
    folder = Path(out)
    reports, files, seconds = {}, [], {}
    with progress_bar(work, show_progress) as bar:
        for experiment in experiments:
            bar.name(experiment.title)
            workers = 1 if experiment.alone else jobs
            place = folder / "cells" / experiment.name
            outcomes = run_cells(cells[experiment.name], place, workers, bar.advance)
            report = experiment.report(outcomes)
            reports[experiment.name] = report
            files += write_report(report, experiment.name, folder / "results")
            seconds[experiment.name] = _seconds(outcomes)
    pages = {
        folder / "results.md": results_page(reports, {e.name: e.title for e in experiments}, plan),
        folder / "results" / "timing.md": timing_page(seconds),
    }
    for path, text in pages.items():
        write_whole(path, text)
    return Run(reports, [*files, *pages], seconds)


def _chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Return the experiments asked for, in the paper's order."""
    for name in names:
        check_choice("experiment", name, (*NAMES, "all"))
    return NAMES if "all" in names else tuple(name for name in NAMES if name in names)


def _load(name: str) -> Experiment:
    module: Any = import_module(f"argmaxf.paper.{_MODULES[name]}")
    experiment: Experiment = module.EXPERIMENT
    return experiment


def _seconds(outcomes: Sequence[Outcome]) -> dict[str, float]:
    return {part: sum(o.seconds[part] for o in outcomes) for part in ("total", *PARTS)}


def _check_count(name: str, number: int | None) -> int | None:
    if number is not None and number < 1:
        raise ValueError(f"{name} must be at least 1, got {number!r}")
    return number
