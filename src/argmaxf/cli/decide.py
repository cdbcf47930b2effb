"""argmaxf decide: the labels with the highest expected F for the rows of files."""

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
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from argmaxf.cli.measure import HELP, measure_named
from argmaxf.cli.output import JSON_OPTION, console, print_json, print_whole, spread
from argmaxf.cli.progress import TerminalProgress
from argmaxf.constraints import ChanceConstraint
from argmaxf.empirical.interval import Interval
from argmaxf.expected.chance import ChanceGuarantee
from argmaxf.expected.decision import Decision
from argmaxf.expected.sketch import ProbabilitySketch
from argmaxf.files import Options, decide_files, estimate_files, label_files
from argmaxf.frames.decide import Decisions
from argmaxf.prior import ESTIMATE, is_estimated

SKETCH = ".argmaxf"
PIPE = Path("-")
LONG = 2.0  # seconds from which rows per second say more than how long it takes to begin

KINDS = "CSV, TSV, Parquet or Arrow files, folders, patterns, or - for the standard input"
FILES = typer.Argument(help=f"{KINDS}; or one sketch.", metavar="FILE")
COLUMN = typer.Option("-p", "--probability", help="The column of probabilities.", metavar="COLUMN")
BETA = typer.Option("--beta", help="Weight of recall against precision.")
BY = typer.Option(
    "--by", help="Decide each segment of this column on its own; may be repeated.", metavar="COLUMN"
)
OUT = typer.Option(
    "-o", "--output", help="Write the rows with their labels to this file; - prints them as CSV."
)
LABEL = typer.Option("--label", help="Name of the column of labels.")
MEASURE = typer.Option("--measure", help=f"What to maximize: {HELP}.")
ZERO = typer.Option("--zero-division", help="Value of F if nothing is positive nor predicted.")
TIES = typer.Option(
    "--ties", help="Equal probabilities: split by order of rows where that is better, or together."
)
NULLS = typer.Option("--nulls", help="Rows without a probability: raise, or drop.")
LEAST = typer.Option("--min-selected", help="Select at least so many rows, of each segment.")
MOST = typer.Option("--max-selected", help="Select at most so many rows, of each segment.")
PRECISION = typer.Option(
    "--min-precision", help="The least precision, which holds at --confidence-level."
)
RECALL = typer.Option("--min-recall", help="The least recall, which holds at --confidence-level.")
LEVEL = typer.Option("--confidence-level", help="Probability with which these hold in the model.")
THRESHOLD = typer.Option("--threshold", help="Use this threshold instead of finding the best one.")
TRAIN = typer.Option("--train-rate", help="Rate of positives where the model was trained.")
DEPLOY = typer.Option(
    "--deploy-rate",
    help="Rate of positives among these rows, if another; or estimate, the most likely one.",
    metavar="RATE",
)
ONLY = typer.Option("--threshold-only", help="Print the threshold and nothing else.")

Key = tuple[Any, ...]


def decide(
    files: Annotated[list[str], FILES],
    probability: Annotated[str | None, COLUMN] = None,
    beta: Annotated[float, BETA] = 1.0,
    output: Annotated[Path | None, OUT] = None,
    by: Annotated[list[str] | None, BY] = None,
    label: Annotated[str, LABEL] = "label",
    measure: Annotated[str, MEASURE] = "fbeta",
    zero_division: Annotated[float, ZERO] = 0.0,
    ties: Annotated[str, TIES] = "split",
    nulls: Annotated[str, NULLS] = "raise",
    min_selected: Annotated[int | None, LEAST] = None,
    max_selected: Annotated[int | None, MOST] = None,
    min_precision: Annotated[float | None, PRECISION] = None,
    min_recall: Annotated[float | None, RECALL] = None,
    confidence_level: Annotated[float | None, LEVEL] = None,
    threshold: Annotated[float | None, THRESHOLD] = None,
    train_rate: Annotated[float | None, TRAIN] = None,
    deploy_rate: Annotated[str | None, DEPLOY] = None,
    threshold_only: Annotated[bool, ONLY] = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Label the rows of files so that the expected F is the highest."""
    start = time.perf_counter()
    limits = (min_selected, max_selected)
    rates = _rates(train_rate, deploy_rate)
    chance = ChanceConstraint.of(min_precision, min_recall, confidence_level)
    if chance and threshold is not None:
        raise ValueError("give either --threshold or --min-precision and --min-recall, got both")
    if threshold is not None and limits != (None, None):
        raise ValueError("give either --threshold or a budget (--min-selected, --max-selected)")
    piped = output == PIPE
    if piped and (as_json or threshold_only):
        raise ValueError("-o - prints the rows: give either it or --json or --threshold-only")
    segments, progress = tuple(by or ()), TerminalProgress()
    is_sketch = any(name.endswith(SKETCH) for name in files)
    found = None if is_sketch else _estimated(files, probability, rates, nulls, progress)
    rates = rates if found is None or rates is None else (rates[0], found.value)
    asks = beta, measure_named(measure), zero_division, ties, nulls
    options = Options(*asks, *limits, rates, chance)
    with ExitStack() as stack:
        path = stack.enter_context(_printed_at_the_end()) if piped else output
        where: dict[str, Any] = {"output": path, "label": label, "progress": progress}
        if is_sketch:
            on_rows = bool(output or segments or threshold is not None)
            decisions = Decisions({(): _decide_sketch(files, options, on_rows)})
        elif probability is None:
            raise ValueError("name the column of probabilities with -p")
        elif threshold is None:
            decisions = decide_files(files, probability, options, by=segments, **where)
        elif segments:
            raise ValueError("give either --threshold or --by, got both")
        else:
            labelled = label_files(files, probability, threshold, options, **where)
            decisions = Decisions({(): labelled})
    seconds = time.perf_counter() - start
    if threshold_only:
        _print_thresholds(decisions)
    elif as_json:
        rest: dict[str, Any] = {"measure": str(options.problem.measure)}
        rest |= {} if found is None else {"deploy_rate": asdict(found)}
        print_json(_as_json(decisions, segments, seconds, output) | rest)
    else:
        if found is not None:
            span = f"{found.value:.4g} [{found.low:.4g}, {found.high:.4g}]"
            console(stderr=piped).print(escape(f"Most likely rate of positives here: {span}."))
        word = options.problem.word
        _print(decisions, segments, seconds, output, word, read=not is_sketch)


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


def _estimated(
    files: list[str], column: str | None, rates: Any, nulls: str, progress: TerminalProgress
) -> Interval | None:
    """Return the most likely rate of positives in the files, if that was asked for."""
    if column is None or not is_estimated(rates):
        return None
    return estimate_files(files, column, rates[0], nulls=nulls, progress=progress)


def _decide_sketch(files: list[str], options: Options, on_rows: bool) -> Decision:
    """Decide from a summary alone; what would have to be done with rows is refused."""
    if len(files) > 1:
        raise ValueError(
            f"give one sketch, got {len(files)} files; argmaxf merge makes one of many"
        )
    if not options.problem.is_free:
        raise ValueError("a sketch holds no rows to count; give the files for a budget")
    if options.prior:
        raise ValueError("a sketch holds no rows to move to another rate; move them before")
    if options.chance:
        raise ValueError(
            "min_precision and min_recall need every probability, and a sketch holds their summary"
        )
    if on_rows:
        raise ValueError("a sketch holds no rows to label; give --threshold where the rows are")
    return read_sketch(Path(files[0])).decide(
        beta=options.beta,
        measure=options.measure,
        zero_division=options.zero_division,
        ties=options.ties,
    )


def read_sketch(path: Path) -> ProbabilitySketch:
    """Read a sketch; what is wrong with it is said with its name."""
    try:
        return ProbabilitySketch.from_bytes(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    except OSError as error:
        raise OSError(f"{path}: cannot be read: {error.strerror}") from None


def _print_thresholds(decisions: Decisions) -> None:
    for key, decision in sorted(decisions.items(), key=_order):
        typer.echo("\t".join([*map(str, key), repr(decision.threshold)]))


def _order(item: tuple[Key, Decision]) -> tuple[str, ...]:
    return tuple(map(str, item[0]))


def _as_json(
    decisions: Decisions, by: tuple[str, ...], seconds: float, output: Path | None
) -> dict[str, Any]:
    rest = {"seconds": round(seconds, 3), "output": None if output is None else str(output)}
    if not by:
        return _fields(decisions[()]) | rest
    segments = [
        {"segment": dict(zip(by, map(str, key), strict=True))} | _fields(decision)
        for key, decision in sorted(decisions.items(), key=_order)
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


def _guarantee_fields(guarantee: ChanceGuarantee) -> dict[str, float]:
    names = ("confidence_level", "probability", "cost", "joint_confidence_level")
    fields = {name: getattr(guarantee, name) for name in names}
    given = {name: value for name, value in fields.items() if value is not None}
    return guarantee.constraints.given() | given


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _print(
    decisions: Decisions,
    by: tuple[str, ...],
    seconds: float,
    output: Path | None,
    word: str,
    *,
    read: bool,
) -> None:
    out = console(stderr=output == PIPE)
    table = Table(box=None, pad_edge=False)
    for name in by:
        table.add_column(escape(name))
    for name in ("rows", "k", "threshold", f"E[{word}] ± std"):
        table.add_column(escape(name), justify="right")
    for key, d in sorted(decisions.items(), key=_order):
        value = f"{d.expected:.6g} ± {spread(d.std)}"
        cells = [escape(str(part)) for part in key]
        table.add_row(*cells, f"{d.n:,}", f"{d.k:,}", repr(d.threshold), value)
    print_whole(out, table)
    for decision in decisions.values():
        if decision.bracket:
            low, high = decision.bracket
            out.print(f"The best threshold of all lies between {low:.6g} and {high:.6g}.")
    for key, decision in sorted(decisions.items(), key=_order):
        if decision.guarantee:
            name = f"{', '.join(map(str, key))}: " if key else ""
            out.print(f"{escape(name)}guaranteed: {decision.guarantee}", soft_wrap=True)
    if all_rows := decisions.overall:
        value = f"E[{word}] {all_rows.expected:.6g} ± {spread(all_rows.std)}"
        text = f"All segments together: {value}, guaranteed: {all_rows.guarantee}"
        out.print(escape(text), soft_wrap=True)
    rows = sum(decision.n for decision in decisions.values())
    done = f"Labels in {escape(str(output))}. " if output and output != PIPE else ""
    fast = f", {rows / seconds:,.0f} rows/s" if read and seconds >= LONG else ""
    out.print(f"{done}{seconds:.2f} s{fast}.", soft_wrap=True)
