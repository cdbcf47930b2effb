"""argmaxf sketch and argmaxf merge: summaries of shards, made apart and put together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from argmaxf._base.atomic_write import refuse_inputs, refuse_twice, writing, written_whole
from argmaxf._base.messages import how_many
from argmaxf.cli.decide import COLUMN, KINDS, NULLS, SKETCH, read_sketch
from argmaxf.cli.output import JSON_OPTION, console, print_json
from argmaxf.cli.progress import TerminalProgress
from argmaxf.expected.sketch import ProbabilitySketch
from argmaxf.files import summarize_files

OUT = typer.Option("-o", "--output", help=f"The sketch to write, a file {SKETCH}.")
FILES = typer.Argument(help=f"{KINDS}.", metavar="FILE")
SKETCHES = typer.Argument(help="Sketches of disjoint rows.", metavar="SKETCH")


def sketch(
    files: Annotated[list[str], FILES],
    probability: Annotated[str, COLUMN],
    output: Annotated[Path, OUT],
    nulls: Annotated[str, NULLS] = "raise",
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Summarize the probabilities of files, to be merged and decided elsewhere."""
    _check(output)
    progress = TerminalProgress()
    made = summarize_files(files, probability, nulls=nulls, output=output, progress=progress)
    _write(made, output, as_json)


def merge(
    sketches: Annotated[list[Path], SKETCHES],
    output: Annotated[Path, OUT],
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Merge summaries of disjoint rows into one."""
    _check(output)
    refuse_inputs([output], sketches)
    refuse_twice(sketches)
    merged = ProbabilitySketch()
    for path in sketches:
        merged.merge(read_sketch(path))
    _write(merged, output, as_json)


def _check(output: Path) -> None:
    if output.suffix != SKETCH:
        raise ValueError(f"{output}: a sketch must be named with {SKETCH}")


def _write(made: ProbabilitySketch, output: Path, as_json: bool) -> None:
    data = made.to_bytes()
    with written_whole(output) as temporary, writing(output):
        temporary.write_bytes(data)
    fields = {"rows": made.n, "mean_positives": made.mean_positives, "bytes": len(data)}
    if as_json:
        print_json(fields | {"output": str(output)})
    else:
        rows = how_many(made.n, "row")
        expected = f"{made.mean_positives:,.6g} of them expected to be positive"
        console().print(f"{rows}, {expected}: {len(data):,} bytes.", soft_wrap=True)
