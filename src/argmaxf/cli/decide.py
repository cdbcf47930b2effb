"""argmaxf decide, sketch and merge: labels for the rows of files, and summaries of them."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argmaxf.cli.output import (
    JSON_OPTION,
    MEASURES,
    console,
    measure_named,
    plain,
    print_json,
    print_table,
    rows_bar,
    shown,
    spread,
)

if TYPE_CHECKING:
    from argmaxf.expected.chance import ChanceGuarantee
    from argmaxf.expected.decision import Decision
    from argmaxf.expected.sketch import ProbabilitySketch
    from argmaxf.frames.decide import Decisions
    from argmaxf.problem import Problem

SKETCH = ".argmaxf"
PIPE = Path("-")
LONG = 2.0  # seconds from which rows per second say more than how long it takes to begin

KINDS = "CSV, TSV, Parquet or Arrow files, folders, patterns, or - for the standard input"
FILES = typer.Argument(help=f"{KINDS}.", metavar="FILE")
COLUMN = typer.Option("-p", "--probability", help="The column of probabilities.", metavar="COLUMN")
NULLS = typer.Option("--nulls", help="Rows without a probability: raise, or drop.")
BY = typer.Option(
    "--by", help="Decide each segment of this column on its own; may be repeated.", metavar="COLUMN"
)
OUT = typer.Option(
    "-o", "--output", help="Write the rows with their labels to this file; - prints them as CSV."
)
TIES = typer.Option(
    "--ties", help="Equal probabilities: split by order of rows where that is better, or together."
)
LEVEL = typer.Option(
    "--confidence-level", help="How likely these shall hold, if the probabilities are right."
)
DEPLOY = typer.Option(
    "--deploy-rate",
    help="Rate of positives among these rows, if another; or estimate, the most likely one.",
    metavar="RATE",
)
SKETCH_OUT = typer.Option("-o", "--output", help=f"The sketch to write, a file {SKETCH}.")

Key = tuple[Any, ...]


def decide(
    files: Annotated[list[str], typer.Argument(help=f"{KINDS}; or one sketch.", metavar="FILE")],
    probability: Annotated[str | None, COLUMN] = None,
    beta: Annotated[float, typer.Option(help="Weight of recall against precision.")] = 1.0,
    output: Annotated[Path | None, OUT] = None,
    by: Annotated[list[str] | None, BY] = None,
    label: Annotated[str, typer.Option(help="Name of the column of labels.")] = "label",
    measure: Annotated[str, typer.Option(help=f"What to maximize: {MEASURES}.")] = "fbeta",
    zero_division: Annotated[
        float, typer.Option(help="Value of F if nothing is positive nor predicted.")
    ] = 0.0,
    ties: Annotated[str, TIES] = "split",
    nulls: Annotated[str, NULLS] = "raise",
    min_selected: Annotated[
        int | None, typer.Option(help="Select at least so many rows, of each segment.")
    ] = None,
    max_selected: Annotated[
        int | None, typer.Option(help="Select at most so many rows, of each segment.")
    ] = None,
    min_precision: Annotated[
        float | None, typer.Option(help="The least precision, kept with --confidence-level.")
    ] = None,
    min_recall: Annotated[
        float | None, typer.Option(help="The least recall, kept with --confidence-level.")
    ] = None,
    confidence_level: Annotated[float | None, LEVEL] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Use this threshold instead of finding the best one.")
    ] = None,
    train_rate: Annotated[
        float | None, typer.Option(help="Rate of positives where the model was trained.")
    ] = None,
    deploy_rate: Annotated[str | None, DEPLOY] = None,
    threshold_only: Annotated[
        bool, typer.Option("--threshold-only", help="Print the threshold and nothing else.")
    ] = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Label the rows of files so that the expected F is the highest."""
    from argmaxf.constraints import ChanceConstraint
    from argmaxf.files import decide_files, estimate_files, label_files
    from argmaxf.frames.decide import Decisions
    from argmaxf.prior import is_estimated
    from argmaxf.problem import Problem

    start, segments = time.perf_counter(), tuple(by or ())
    rates = _rates(train_rate, deploy_rate)
    chance = ChanceConstraint.of(min_precision, min_recall, confidence_level)
    limits = min_selected, max_selected
    problem = Problem.of(beta, measure_named(measure), zero_division, ties, *limits, chance)
    if threshold is not None and chance:
        raise ValueError("give either --threshold or a guarantee, got both")
    if threshold is not None and not problem.is_free:
        raise ValueError("give either --threshold or a budget (--min-selected, --max-selected)")
    piped = output == PIPE
    if piped and (as_json or threshold_only):
        raise ValueError("-o - prints the rows: give either it or --json or --threshold-only")
    is_sketch = any(name.endswith(SKETCH) for name in files)
    found = None
    with ExitStack() as stack:
        path = stack.enter_context(_printed_at_the_end()) if piped else output
        where: dict[str, Any] = {"nulls": nulls, "progress": stack.enter_context(rows_bar())}
        if is_sketch:
            if rates:
                raise ValueError("a sketch holds no rows to move to another rate; move them before")
            on_rows = bool(output or segments or threshold is not None)
            decisions = Decisions({(): _decide_sketch(files, problem, on_rows)})
        elif probability is None:
            raise ValueError("name the column of probabilities with -p")
        else:
            if rates is not None and is_estimated(rates):
                found = estimate_files(files, probability, rates[0], **where)
                rates = rates[0], found.value
            where |= {"output": path, "label": label, "prior": rates}
            if threshold is None:
                decisions = decide_files(files, probability, problem, by=segments, **where)
            elif segments:
                raise ValueError("give either --threshold or --by, got both")
            else:
                labelled = label_files(files, probability, threshold, problem, **where)
                decisions = Decisions({(): labelled})
    seconds = time.perf_counter() - start
    if threshold_only:
        for key, decision in _sorted(decisions):
            typer.echo("\t".join([*map(plain, key), repr(decision.threshold)]))
    elif as_json:
        rest: dict[str, Any] = {"measure": str(problem.measure)}
        rest |= {} if found is None else {"deploy_rate": asdict(found)}
        print_json(_as_json(decisions, segments, seconds, output) | rest)
    else:
        if found is not None:
            span = f"{found.value:.4g} [{found.low:.4g}, {found.high:.4g}]"
            console(stderr=piped).print(shown(f"Most likely rate of positives here: {span}."))
        _print(decisions, segments, seconds, output, problem.word, read=not is_sketch)


def sketch(
    files: Annotated[list[str], FILES],
    probability: Annotated[str, COLUMN],
    output: Annotated[Path, SKETCH_OUT],
    nulls: Annotated[str, NULLS] = "raise",
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Summarize the probabilities of files, to be merged and decided elsewhere."""
    from argmaxf.files import summarize_files

    _check_name(output)
    with rows_bar() as progress:
        where: dict[str, Any] = {"nulls": nulls, "output": output, "progress": progress}
        made = summarize_files(files, probability, **where)
    _write_sketch(made, output, as_json)


def merge(
    sketches: Annotated[
        list[Path], typer.Argument(help="Sketches of disjoint rows.", metavar="SKETCH")
    ],
    output: Annotated[Path, SKETCH_OUT],
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Merge summaries of disjoint rows into one."""
    from argmaxf._base.atomic_write import refuse_inputs, refuse_twice
    from argmaxf.expected.sketch import ProbabilitySketch

    _check_name(output)
    refuse_inputs([output], sketches)
    refuse_twice(sketches)
    merged = ProbabilitySketch()
    for path in sketches:
        merged.merge(_read_sketch(path))
    _write_sketch(merged, output, as_json)


@contextmanager
def _printed_at_the_end() -> Iterator[Path]:
    """Yield the place of a CSV file that goes to the standard output once it is whole."""
    with TemporaryDirectory(prefix="argmaxf-") as folder:
        path = Path(folder) / "labels.csv"
        yield path
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _rates(train: float | None, deploy: str | None) -> tuple[float, Any] | None:
    """Return both rates, or none; the second may be left to be estimated."""
    from argmaxf.prior import ESTIMATE

    if train is None and deploy is None:
        return None
    if train is None or deploy is None:
        raise ValueError("give both --train-rate and --deploy-rate, got one of them")
    if deploy == ESTIMATE:
        return train, deploy
    try:
        return train, float(deploy)
    except ValueError:
        raise ValueError(f"--deploy-rate must be a number or {ESTIMATE}, got {deploy!r}") from None


def _decide_sketch(files: list[str], problem: Problem, on_rows: bool) -> Decision:
    """Decide from a summary alone; what would have to be done with rows is refused."""
    if len(files) > 1:
        raise ValueError(
            f"give one sketch, got {len(files)} files; argmaxf merge makes one of many"
        )
    if not problem.is_free:
        raise ValueError("a sketch holds no rows to count; give the files for a budget")
    if problem.chance:
        raise ValueError("a guarantee needs every probability, and a sketch holds their summary")
    if on_rows:
        raise ValueError("a sketch holds no rows to label; give --threshold where the rows are")
    return _read_sketch(Path(files[0])).decide(
        beta=problem.beta,
        measure=problem.measure,
        zero_division=problem.zero_division,
        ties="split" if problem.split_ties else "together",
    )


def _read_sketch(path: Path) -> ProbabilitySketch:
    """Read a sketch; what is wrong with it is said with its name."""
    from argmaxf.expected.sketch import ProbabilitySketch

    if path.exists() and not path.is_file():  # a pipe without a writer would be waited for
        raise ValueError(f"{path}: must be a file")
    try:
        return ProbabilitySketch.from_bytes(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    except OSError as error:
        raise OSError(f"{path}: cannot be read: {error.strerror}") from None


def _check_name(output: Path) -> None:
    if output.suffix != SKETCH:
        raise ValueError(f"{output}: a sketch must be named with {SKETCH}")


def _write_sketch(made: ProbabilitySketch, output: Path, as_json: bool) -> None:
    from argmaxf._base.atomic_write import writing, written_whole
    from argmaxf._base.messages import how_many

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


def _sorted(decisions: Decisions) -> list[tuple[Key, Decision]]:
    return sorted(decisions.items(), key=lambda item: tuple(map(str, item[0])))


def _as_json(
    decisions: Decisions, by: tuple[str, ...], seconds: float, output: Path | None
) -> dict[str, Any]:
    rest = {"seconds": round(seconds, 3), "output": None if output is None else str(output)}
    if not by:
        return _fields(decisions[()]) | rest
    segments = [
        {"segment": dict(zip(by, map(str, key), strict=True))} | _fields(decision)
        for key, decision in _sorted(decisions)
    ]
    overall = {} if decisions.overall is None else {"overall": _fields(decisions.overall)}
    return {"segments": segments} | overall | rest


def _fields(decision: Decision) -> dict[str, Any]:
    """Return a decision for programs; JSON has no infinity, so no threshold is null."""
    fields = {
        "rows": decision.n,
        "k": decision.k,
        "threshold": _finite(decision.threshold),
        "expected": decision.expected,
        "std": max(0.0, decision.std),
        "beta": decision.beta,
    }
    if decision.guarantee:
        fields["guarantee"] = _guarantee_fields(decision.guarantee)
    if decision.bracket:
        fields["bracket"] = [_finite(end) for end in decision.bracket]
    return fields


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _guarantee_fields(guarantee: ChanceGuarantee) -> dict[str, float]:
    names = ("confidence_level", "probability", "cost", "joint_confidence_level")
    fields = {name: getattr(guarantee, name) for name in names}
    given = {name: value for name, value in fields.items() if value is not None}
    return guarantee.constraints.given() | given


def _print(
    decisions: Decisions,
    by: tuple[str, ...],
    seconds: float,
    output: Path | None,
    word: str,
    *,
    read: bool,
) -> None:
    from rich.table import Table

    out = console(stderr=output == PIPE)
    table = Table(box=None, pad_edge=False)
    for name in by:
        table.add_column(shown(name))
    for name in ("rows", "k", "threshold", f"E[{word}] ± std"):
        table.add_column(shown(name), justify="right")
    for key, d in _sorted(decisions):
        value = f"{d.expected:.6g} ± {spread(d.std)}"
        table.add_row(*map(shown, key), f"{d.n:,}", f"{d.k:,}", repr(d.threshold), value)
    print_table(out, table)
    for key, decision in _sorted(decisions):
        if decision.bracket:
            low, high = decision.bracket
            out.print(f"The best threshold of all lies between {low:.6g} and {high:.6g}.")
        if decision.guarantee:
            name = f"{', '.join(map(str, key))}: " if key else ""
            out.print(shown(f"{name}guaranteed: {decision.guarantee}"), soft_wrap=True)
    if all_rows := decisions.overall:
        value = f"E[{word}] {all_rows.expected:.6g} ± {spread(all_rows.std)}"
        text = f"All segments together: {value}, guaranteed: {all_rows.guarantee}"
        out.print(shown(text), soft_wrap=True)
    rows = sum(decision.n for decision in decisions.values())
    done = f"Labels in {shown(output)}. " if output and output != PIPE else ""
    fast = f", {rows / seconds:,.0f} rows/s" if read and seconds >= LONG else ""
    out.print(f"{done}{seconds:.2f} s{fast}.", soft_wrap=True)
