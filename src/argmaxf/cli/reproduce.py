"""argmaxf reproduce: the paper's tables and figures again, the printed number beside ours."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from argmaxf.cli.output import JSON_OPTION, complain, console, print_json


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            help="table1 table2 figure1 adaptation table3 table4 bounds algorithms map cost, or all"
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("out"),
    seeds: Annotated[
        int | None, typer.Option(help="Repetitions; by default what each table needs.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A look: few seeds and labels.")] = False,
    jobs: Annotated[
        int | None, typer.Option(help="Processes at once; by default one per core.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with the data sets, before ARGMAXF_DATA.")
    ] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Run the paper's experiments; an interrupted run goes on where it stopped."""
    _check_extras()
    from argmaxf import paper

    try:
        run = paper.reproduce(
            names,
            out,
            seeds=seeds,
            quick=quick,
            jobs=(os.cpu_count() or 1) if jobs is None else jobs,
            data_dir=None if data_dir is None else str(data_dir),
            show_progress=sys.stderr.isatty(),
        )
    except KeyboardInterrupt:
        complain("stopped; the same command goes on from here")
        raise typer.Exit(130) from None
    if as_json:
        print_json(run.as_dict())
        return
    terminal = console()
    for name, report in run.reports.items():
        terminal.print(f"[bold]{name}[/bold]: {report.headline}")
    spent = {
        part: sum(s[part] for s in run.seconds.values()) for part in ("total", "fit", "soft F")
    }
    share = 100 * (spent["fit"] + spent["soft F"]) / max(spent["total"], 1e-9)
    terminal.print(f"{spent['total']:.0f} s in all processes, {share:.0f} % of it training models")
    terminal.print(f"Tables, figures and verdicts: {out / 'results.md'}")


def _check_extras() -> None:
    """Say what is missing before any work is done."""
    missing = [name for name in ("matplotlib", "pooch", "arff") if find_spec(name) is None]
    if missing:
        raise ValueError(
            f"reproduce needs {', '.join(missing)}; run pip install 'argmaxf[plot,data]'"
        )
