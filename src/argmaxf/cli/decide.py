"""argmaxf decide, sketch and merge: labels for the rows of files, and summaries of them."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from argmaxf.cli.common import (
    OBJECTIVE,
    OUTPUT,
    Beta,
    ConfidenceLevel,
    Force,
    Json,
    Measure,
    MinPrecision,
    MinRecall,
    console,
    measure_named,
    option,
    plain,
    print_json,
    print_table,
    progress_bar,
    refuse_existing,
    shown,
)

if TYPE_CHECKING:
    from argmaxf.empirical.labelled_sketch import LabelledSketch
    from argmaxf.expected.decision import Decision
    from argmaxf.expected.sketch import ProbabilitySketch
    from argmaxf.frames.solve import Decisions
    from argmaxf.measures import MeasureLike
    from argmaxf.problem import Problem

T = TypeVar("T")
SKETCH = ".argmaxf"
PIPE = Path("-")
LONG = 2.0  # seconds from which rows per second say more than how long it takes to begin
TWO_OUTPUTS = "-o - prints the rows, so it cannot be combined with --json or --threshold-only"
INPUT, LIMITS, RATE = "Input", "Limits", "Different rate of positives"
KINDS = "CSV, TSV, Parquet or Arrow files, folders, patterns, or - for the standard input"

Files = Annotated[list[str], typer.Argument(help=f"{KINDS}.", metavar="FILE")]
Probability = option(INPUT, "The column of probabilities.", "-p", "--probability", metavar="COLUMN")
Nulls = Annotated[str, option(INPUT, "Rows without a probability: raise, or drop.")]
SketchFile = Annotated[
    Path, option(OUTPUT, f"The sketch to write; its name must end in {SKETCH}.", "-o", "--output")
]


def decide(
    files: Annotated[list[str], typer.Argument(help=f"{KINDS}; or one sketch.", metavar="FILE")],
    probability: Annotated[str | None, Probability] = None,
    by: Annotated[
        list[str] | None,
        option(
            INPUT,
            "Decide each segment (value of this column) separately; may be repeated.",
            metavar="COLUMN",
        ),
    ] = None,
    nulls: Nulls = "raise",
    beta: Beta = 1.0,
    measure: Measure = "fbeta",
    zero_division: Annotated[
        float, option(OBJECTIVE, "Value of F if no row is positive and none is selected.")
    ] = 0.0,
    ties: Annotated[
        str,
        option(
            OBJECTIVE,
            "Equal probabilities: split (only the first ones may be selected), or together.",
        ),
    ] = "split",
    threshold: Annotated[
        float | None, option(OBJECTIVE, "Use this threshold instead of finding the best one.")
    ] = None,
    threshold_from: Annotated[
        Path | None,
        option(OBJECTIVE, "Use the threshold in this JSON file (SavedThreshold).", metavar="FILE"),
    ] = None,
    min_selected: Annotated[
        int | None, option(LIMITS, "Select at least this many rows in each segment.")
    ] = None,
    max_selected: Annotated[
        int | None, option(LIMITS, "Select at most this many rows in each segment.")
    ] = None,
    min_precision: MinPrecision = None,
    min_recall: MinRecall = None,
    confidence_level: ConfidenceLevel = None,
    train_rate: Annotated[
        float | None, option(RATE, "Rate of positives where the model was trained.")
    ] = None,
    deploy_rate: Annotated[
        str | None,
        option(
            RATE,
            "Rate of positives among these rows, if different; estimate takes the most likely "
            "rate.",
            metavar="RATE",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        option(
            OUTPUT,
            "Write the rows with their labels to this file; - prints them as CSV.",
            "-o",
            "--output",
        ),
    ] = None,
    label: Annotated[str, option(OUTPUT, "Name of the column of labels.")] = "label",
    threshold_only: Annotated[
        bool, option(OUTPUT, "Print the threshold and nothing else.", "--threshold-only")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Label the rows of files so that the expected F is the highest."""
    from argmaxf.constraints import ChanceConstraint
    from argmaxf.files import decide_files, estimate_files, label_files
    from argmaxf.frames.solve import Decisions
    from argmaxf.prior import is_estimated
    from argmaxf.problem import Problem

    start, found = time.perf_counter(), None
    segments, rates = tuple(by or ()), _rates(train_rate, deploy_rate)
    chance = ChanceConstraint.of(min_precision, min_recall, confidence_level)
    threshold, goal = _threshold(threshold, threshold_from, probability, measure, beta)
    problem = Problem.of(beta, goal, zero_division, ties, min_selected, max_selected, chance)
    is_sketch = any(name.endswith(SKETCH) for name in files)
    fixed, piped = threshold is not None, output == PIPE
    for is_wrong, message in (
        (fixed and chance, "give either --threshold or a guarantee, got both"),
        (fixed and not problem.is_free, "give either --threshold or a budget, got both"),
        (fixed and segments and not is_sketch, "give either --threshold or --by, got both"),
        (piped and (as_json or threshold_only), TWO_OUTPUTS),
        (is_sketch and rates, "--deploy-rate needs the rows, got a sketch; pass the files of rows"),
    ):
        if is_wrong:
            raise ValueError(message)
    refuse_existing([None if piped else output], files, force=force)
    with ExitStack() as stack:
        path = stack.enter_context(_printed_at_the_end()) if piped else output
        where: dict[str, Any] = {"progress": stack.enter_context(progress_bar("rows"))}
        if is_sketch:
            on_rows = output or segments or fixed
            decisions = Decisions({(): _decide_sketch(files, problem, on_rows=bool(on_rows))})
        elif probability is None:
            raise ValueError("name the column of probabilities with -p")
        else:
            if rates is not None and is_estimated(rates):
                found = estimate_files(files, probability, rates[0], nulls=nulls, **where)
                rates = rates[0], found.value
            where |= {"nulls": nulls, "output": path, "label": label, "prior": rates}
            if threshold is None:
                decisions = decide_files(files, probability, problem, by=segments, **where)
            else:
                labelled = label_files(files, probability, threshold, problem, **where)
                decisions = Decisions({(): labelled})
    seconds = time.perf_counter() - start
    if threshold_only:
        for key, decision in _sorted(decisions):
            typer.echo("\t".join([*map(plain, key), repr(decision.threshold)]))
    elif as_json:
        rest: dict[str, Any] = {"seconds": round(seconds, 3), "measure": str(problem.measure)}
        rest["output"] = None if output is None else str(output)
        rest |= {} if found is None else {"deploy_rate": asdict(found)}
        print_json(_record(decisions, segments) | rest)
    else:
        out = console(stderr=piped)
        if found is not None:
            rate = f"{found.value:.4g} [{found.low:.4g}, {found.high:.4g}]"
            out.print(shown(f"Most likely rate of positives here: {rate}."))
        _print(out, decisions, segments, problem.word)
        done = f"Labels in {shown(output)}. " if output and not piped else ""
        speed = sum(decision.n for decision in decisions.values()) / seconds
        fast = f", {speed:,.0f} rows/s" if not is_sketch and seconds >= LONG else ""
        out.print(f"{done}{seconds:.2f} s{fast}.", soft_wrap=True)


def sketch(
    files: Files,
    probability: Annotated[str, Probability],
    output: SketchFile,
    label: Annotated[
        str | None,
        option(
            INPUT,
            "The column of true labels, to tune thresholds of the scores in -p later.",
            metavar="COLUMN",
        ),
    ] = None,
    weight: Annotated[
        str | None, option(INPUT, "With --label: the column of weights.", metavar="COLUMN")
    ] = None,
    nulls: Nulls = "raise",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Summarize probabilities or labelled scores of files, to be merged and decided elsewhere."""
    from argmaxf.files import summarize_files
    from argmaxf.files.labelled_files import LabelledFiles, summarize_labelled_files

    made: Any
    _check_sketch(output, files, force)
    with progress_bar("rows") as progress:
        if label is None:
            where: dict[str, Any] = {"nulls": nulls, "output": output, "progress": progress}
            made = summarize_files(files, probability, **where)
        else:
            columns = files, label, probability, weight
            rows = LabelledFiles(*columns, nulls=nulls, progress=progress)
            made = summarize_labelled_files(rows, output)
    _write_sketch(made, output, as_json)


def merge(
    sketches: Annotated[
        list[Path], typer.Argument(help="Sketches of disjoint rows.", metavar="SKETCH")
    ],
    output: SketchFile,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Merge summaries of disjoint rows into one."""
    from argmaxf._base.atomic_write import refuse_twice

    _check_sketch(output, sketches, force)
    refuse_twice(sketches)
    merged: Any = None
    for path in sketches:
        read: Any = _read_sketch(path)
        if merged is not None and type(read) is not type(merged):
            raise ValueError(
                f"{path}: sketches to merge must be of one kind, got a {type(read).__name__} "
                f"after a {type(merged).__name__}"
            )
        merged = read if merged is None else merged.merge(read)
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


def _threshold(
    number: float | None, file: Path | None, column: str | None, measure: str, beta: float
) -> tuple[float | None, MeasureLike]:
    """Return the threshold to use and the measure: of a file, unless one was asked for."""
    asked = measure_named(measure)
    if file is None:
        return number, asked
    if number is not None:
        raise ValueError("give either --threshold or --threshold-from, got both")
    from argmaxf.saved_threshold import SavedThreshold

    saved = SavedThreshold.load(file)
    default = (measure, beta) == ("fbeta", 1.0)
    try:
        return saved.for_column(column), saved.measure or asked if default else asked
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def _rates(train: float | None, deploy: str | None) -> tuple[float, Any] | None:
    """Return both rates, or none; the second may be left to be estimated."""
    from argmaxf.prior import ESTIMATE

    if train is None and deploy is None:
        return None
    if train is None or deploy is None:
        raise ValueError("give both --train-rate and --deploy-rate, got one of them")
    try:
        return train, deploy if deploy == ESTIMATE else float(deploy)
    except ValueError:
        raise ValueError(f"--deploy-rate must be a number or {ESTIMATE}, got {deploy!r}") from None


def one_sketch(files: list[str], kind: type[T]) -> T:
    """Return the sketch in a single file, which must be of a kind."""
    if len(files) > 1:
        raise ValueError(
            f"give one sketch, got {len(files)} files; merge sketches with argmaxf merge"
        )
    sketch: Any = _read_sketch(Path(files[0]))
    if not isinstance(sketch, kind):
        got = type(sketch).__name__
        use = "argmaxf tune" if got == "LabelledSketch" else "argmaxf decide"
        raise ValueError(f"{files[0]}: must hold a {kind.__name__}, got a {got}: use {use}")
    return sketch


def _decide_sketch(files: list[str], problem: Problem, *, on_rows: bool) -> Decision:
    """Decide from a summary alone; what would have to be done with rows is refused."""
    from argmaxf.expected.sketch import ProbabilitySketch

    found = one_sketch(files, ProbabilitySketch)
    if not problem.is_free:
        raise ValueError(
            "--min-selected and --max-selected need the rows, got a sketch; pass the files of rows"
        )
    if problem.chance:
        raise ValueError(
            "a guarantee needs every probability, got a sketch; pass the files of rows"
        )
    if on_rows:
        raise ValueError("a sketch has no rows to label; label the files of rows with --threshold")
    return found.decide(
        beta=problem.beta,
        measure=problem.measure,
        zero_division=problem.zero_division,
        ties="split" if problem.split_ties else "together",
    )


def _read_sketch(path: Path) -> ProbabilitySketch | LabelledSketch:
    """Read a sketch of either kind; what is wrong with it is said with its name."""
    from argmaxf.empirical.labelled_sketch import MAGIC, LabelledSketch
    from argmaxf.expected.sketch import ProbabilitySketch

    if path.exists() and not path.is_file():  # a pipe without a writer would be waited for
        raise ValueError(f"{path}: must be a file")
    try:
        data = path.read_bytes()
        kind = LabelledSketch if data.startswith(MAGIC) else ProbabilitySketch
        return kind.from_bytes(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    except OSError as error:
        raise OSError(f"{path}: cannot be read: {error.strerror}") from None


def _check_sketch(output: Path, inputs: Sequence[Path | str], force: bool) -> None:
    if output.suffix != SKETCH:
        raise ValueError(f"{output}: a sketch must be named with {SKETCH}")
    refuse_existing([output], inputs, force=force)


def _write_sketch(made: ProbabilitySketch | LabelledSketch, output: Path, as_json: bool) -> None:
    from argmaxf._base.atomic_write import writing, written_whole
    from argmaxf._base.validation import how_many
    from argmaxf.expected.sketch import ProbabilitySketch

    data = made.to_bytes()
    with written_whole(output) as temporary, writing(output):
        temporary.write_bytes(data)
    if isinstance(made, ProbabilitySketch):
        positives = {"mean_positives": made.mean_positives}
        expected = f"{made.mean_positives:,.6g} of them expected to be positive"
    else:
        positives = {"positives": made.positives}
        expected = f"positives of weight {made.positives:,.6g}"
    if as_json:
        print_json({"rows": made.n, **positives, "bytes": len(data), "output": str(output)})
    else:
        text = f"{how_many(made.n, 'row')}, {expected}: {len(data):,} bytes."
        console().print(text, soft_wrap=True)


def _sorted(decisions: Decisions) -> list[tuple[tuple[Any, ...], Decision]]:
    return sorted(decisions.items(), key=lambda item: tuple(map(str, item[0])))


def _record(decisions: Decisions, by: tuple[str, ...]) -> dict[str, Any]:
    """Return decisions for programs."""
    if not by:
        return _fields(decisions[()])
    segments = [
        {"segment": dict(zip(by, map(str, key), strict=True))} | _fields(decision)
        for key, decision in _sorted(decisions)
    ]
    overall = {} if decisions.overall is None else {"overall": _fields(decisions.overall)}
    return {"segments": segments} | overall


def _fields(decision: Decision) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "rows": decision.n,
        "k": decision.k,
        "threshold": decision.threshold,
        "expected": decision.expected,
        "std": max(0.0, decision.std),
        "beta": decision.beta,
    }
    if guarantee := decision.guarantee:
        names = ("confidence_level", "probability", "cost", "joint_confidence_level")
        values = {name: getattr(guarantee, name) for name in names}
        given = {name: value for name, value in values.items() if value is not None}
        fields["guarantee"] = guarantee.constraints.given() | given
    return fields | ({"bracket": decision.bracket} if decision.bracket else {})


def spread(std: float) -> str:
    """Write a standard deviation in two digits; rounding below 0 is 0."""
    return f"{max(0.0, std):.2g}"


def _print(out: Any, decisions: Decisions, by: tuple[str, ...], word: str) -> None:
    head = (*by, "rows", "k", "threshold", f"E[{word}] ± std")
    rows = [
        (*key, f"{d.n:,}", f"{d.k:,}", repr(d.threshold), f"{d.expected:.6g} ± {spread(d.std)}")
        for key, d in _sorted(decisions)
    ]
    print_table(out, head, rows, texts=len(by))
    for key, decision in _sorted(decisions):
        if decision.bracket:
            low, high = decision.bracket
            out.print(f"The exact best threshold lies between {low:.6g} and {high:.6g}.")
        if decision.guarantee:
            name = f"{', '.join(map(str, key))}: " if key else ""
            out.print(shown(f"{name}guaranteed: {decision.guarantee}"), soft_wrap=True)
    if together := decisions.overall:
        value = f"E[{word}] {together.expected:.6g} ± {spread(together.std)}"
        text = f"All segments together: {value}, guaranteed: {together.guarantee}"
        out.print(shown(text), soft_wrap=True)
