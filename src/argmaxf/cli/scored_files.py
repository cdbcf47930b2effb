"""argmaxf decide, tune, evaluate, sketch and merge: thresholds, labels and summaries of files."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from argmaxf.cli.common import (
    INPUT,
    LABEL,
    OBJECTIVE,
    OUTPUT,
    PROBABILITY,
    Beta,
    By,
    ConfidenceLevel,
    Files,
    FilesOrSketch,
    Force,
    IntervalLevel,
    Json,
    MaxSelectedRate,
    Measure,
    MinPrecision,
    MinRecall,
    Nulls,
    Positive,
    ThresholdOnly,
    ZeroDivision,
    column,
    console,
    interval,
    measure_named,
    option,
    output_file,
    plain,
    print_json,
    print_table,
    progress_bar,
    refuse_existing,
    shown,
)

if TYPE_CHECKING:
    from argmaxf.empirical.labelled_sketch import LabelledSketch
    from argmaxf.empirical.threshold import Threshold
    from argmaxf.expected.decision import Decision
    from argmaxf.expected.sketch import ProbabilitySketch
    from argmaxf.measures import MeasureLike
    from argmaxf.problem import Problem

T = TypeVar("T")
SKETCH = ".argmaxf"
PIPE = Path("-")
LONG = 2.0  # seconds from which rows per second say more than how long it takes to begin
TWO_OUTPUTS = "-o - prints the rows, so it cannot be combined with --json or --threshold-only"
NEEDS_ROWS = "need the rows, got a sketch; pass the files of rows"
LIMITS, RATE = "Limits", "Different rate of positives"

SketchFile = Annotated[Path, output_file(f"The sketch to write; its name must end in {SKETCH}.")]


@dataclass
class Results:
    """What was found in each segment, by its key; without segments the key is empty."""

    each: Mapping[tuple[Any, ...], Any]
    by: tuple[str, ...] = ()
    overall: Any = None  # of all segments together

    def print_thresholds(self) -> None:
        """Print the thresholds and nothing else."""
        for key, found in self.each.items():
            typer.echo("\t".join([*map(plain, key), repr(found.threshold)]))

    def print_json(self, fields: Callable[[Any], dict[str, Any]], **more: Any) -> None:
        """Print the results for programs."""
        if not self.by:
            print_json(fields(self.each[()]) | more)
            return
        segments = [
            {"segment": dict(zip(self.by, map(str, key), strict=True))} | fields(found)
            for key, found in self.each.items()
        ]
        overall = {} if self.overall is None else {"overall": fields(self.overall)}
        print_json({"segments": segments} | overall | more)

    def print(
        self,
        out: Any,
        head: Sequence[str],
        cells: Callable[[Any], Sequence[str]],
        together: Callable[[Any], str] = str,
    ) -> None:
        """Print a table, what is guaranteed, and the value of all segments `together`."""
        rows = [(*key, *cells(found)) for key, found in self.each.items()]
        print_table(out, (*self.by, *head), rows, texts=len(self.by))
        for key, found in self.each.items():
            if guarantee := getattr(found, "guarantee", None):
                name = f"{', '.join(map(str, key))}: " if key else ""
                out.print(shown(f"{name}guaranteed: {guarantee}"), soft_wrap=True)
        if self.overall is not None:
            guarantee = self.overall.guarantee
            held = f", guaranteed: {guarantee}" if guarantee else ""
            text = f"All segments together: {together(self.overall)}{held}."
            out.print(shown(text), soft_wrap=True)


def decide(
    files: FilesOrSketch,
    probability: Annotated[str | None, PROBABILITY] = None,
    by: By = None,
    nulls: Nulls = "raise",
    beta: Beta = 1.0,
    measure: Measure = "fbeta",
    zero_division: ZeroDivision = 0.0,
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
        output_file("Write the rows with their labels to this file; - prints them as CSV."),
    ] = None,
    label: Annotated[str, option(OUTPUT, "Name of the column of labels.")] = "label",
    threshold_only: ThresholdOnly = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Label the rows of files so that the expected F is the highest."""
    from argmaxf.constraints import ChanceConstraint
    from argmaxf.files import ScoredFiles, decide_files, estimate_files, label_files
    from argmaxf.prior import is_estimated
    from argmaxf.problem import Problem

    start, rate, overall = time.perf_counter(), None, None
    segments, rates = tuple(by or ()), _rates(train_rate, deploy_rate)
    chance = ChanceConstraint.of(min_precision, min_recall, confidence_level)
    threshold, goal = _threshold(threshold, threshold_from, probability, measure, beta)
    problem = Problem.of(beta, goal, zero_division, ties, min_selected, max_selected, chance)
    is_sketch = any(name.endswith(SKETCH) for name in files)
    fixed, piped = threshold is not None, output == PIPE
    _refuse(
        {
            "give either --threshold or a guarantee, got both": fixed and chance,
            "give either --threshold or a budget, got both": fixed and not problem.is_free,
            "give either --threshold or --by, got both": fixed and segments and not is_sketch,
            TWO_OUTPUTS: piped and (as_json or threshold_only),
            f"--train-rate and --deploy-rate {NEEDS_ROWS}": is_sketch and rates,
            "name the column of probabilities with -p": not (is_sketch or probability),
        }
    )
    refuse_existing([None if piped else output], files, force=force)
    with ExitStack() as stack:
        path = stack.enter_context(_printed_at_the_end()) if piped else output
        progress = stack.enter_context(progress_bar("rows"))
        rows = ScoredFiles(files, str(probability), segments, nulls, None, path, label, progress)
        if rates is not None and is_estimated(rates):
            rate = estimate_files(rows, rates[0])
            rates = rates[0], rate.value
        rows = replace(rows, prior=rates)
        if is_sketch:
            on_rows = bool(output or segments or fixed)
            each: Any = {(): _decide_sketch(files, problem, on_rows=on_rows)}
        elif threshold is None:
            each = decide_files(rows, problem)
            overall = each.overall
        else:
            each = {(): label_files(rows, threshold, problem)}
    seconds = time.perf_counter() - start
    in_order = dict(sorted(each.items(), key=lambda item: tuple(map(str, item[0]))))
    results = Results(in_order, segments, overall)
    if threshold_only:
        results.print_thresholds()
    elif as_json:
        more: dict[str, Any] = {"seconds": round(seconds, 3), "measure": str(problem.measure)}
        more["output"] = output and str(output)
        more |= {} if rate is None else {"deploy_rate": asdict(rate)}
        results.print_json(_decision_fields, **more)
    else:
        out = console(stderr=piped)
        if rate is not None:
            out.print(shown(f"Most likely rate of positives here: {interval(rate, '.4g')}."))
        _print_decisions(out, results, problem.word)
        done = f"Labels in {shown(output)}. " if output and not piped else ""
        speed = sum(decision.n for decision in each.values()) / seconds
        fast = f", {speed:,.0f} rows/s" if not is_sketch and seconds >= LONG else ""
        out.print(f"{done}{seconds:.2f} s{fast}.", soft_wrap=True)


def tune(
    files: FilesOrSketch,
    label: Annotated[str | None, LABEL] = None,
    score: Annotated[
        str | None, column(INPUT, "The column of scores, higher is more positive.")
    ] = None,
    weight: Annotated[str | None, column(INPUT, "The column of weights of rows.")] = None,
    by: By = None,
    positive: Positive = None,
    nulls: Nulls = "raise",
    beta: Beta = 1.0,
    measure: Measure = "fbeta",
    zero_division: ZeroDivision = 0.0,
    min_precision: MinPrecision = None,
    min_recall: MinRecall = None,
    max_selected_rate: MaxSelectedRate = None,
    confidence_level: ConfidenceLevel = None,
    output: Annotated[
        Path | None, output_file("Write the rows with their predictions to this file.")
    ] = None,
    predicted: Annotated[str, option(OUTPUT, "Name of the column of predictions.")] = "predicted",
    threshold_only: ThresholdOnly = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find the threshold with the highest F on labelled rows of files."""
    from argmaxf._base.validation import check_zero_division
    from argmaxf.constraints import Constraints
    from argmaxf.empirical.cuts import CutProblem
    from argmaxf.empirical.labelled_sketch import LabelledSketch, best_in
    from argmaxf.files import ScoredFiles, tune_files
    from argmaxf.measures import as_measure

    segments = tuple(by or ())
    asked = Constraints(min_precision, min_recall, max_selected_rate)
    chosen = as_measure(measure_named(measure), beta)
    problem = CutProblem(chosen, check_zero_division(zero_division), asked)
    refuse_existing([output], files, force=force)
    if any(name.endswith(SKETCH) for name in files):
        needs_rows = segments or output or confidence_level is not None
        _refuse({f"--by, -o and guarantees {NEEDS_ROWS}": needs_rows})
        best = best_in(one_sketch(files, LabelledSketch), problem).best
    elif label is None or score is None:
        raise ValueError("name the column of labels with --label, that of scores with --score")
    else:
        with progress_bar("rows") as progress:
            columns: Any = {"label": label, "weight": weight, "positive": positive}
            written: Any = {"output": output, "added": predicted, "progress": progress}
            rows = ScoredFiles(files, score, segments, nulls, **columns, **written)
            best = tune_files(rows, problem, confidence_level)
    results = Results(_each_threshold(best), segments, best.overall)
    if threshold_only:
        results.print_thresholds()
    elif as_json:
        gap = {} if segments else {"gap": best.gap}
        results.print_json(
            _threshold_fields, **gap, measure=str(chosen), output=output and str(output)
        )
    else:
        out = console()
        head = ("threshold", chosen.title, "precision", "recall", "k")
        results.print(out, head, _threshold_cells, lambda all_: f"{chosen.title} {all_.value:.4f}")
        if best.gap:
            most = best.value + best.gap
            out.print(f"The exact best threshold has a value of at most {most:.6g}; tune the rows.")
        if output:
            out.print(f"Predictions in {shown(output)}.", soft_wrap=True)


def evaluate(
    files: Files,
    label: Annotated[str, LABEL],
    predicted: Annotated[str, column(INPUT, "The column of predicted labels.", "--predicted")],
    by: By = None,
    positive: Positive = None,
    nulls: Nulls = "raise",
    beta: Beta = 1.0,
    measure: Measure = "fbeta",
    zero_division: ZeroDivision = 0.0,
    confidence_level: IntervalLevel = 0.95,
    as_json: Json = False,
) -> None:
    """Compute F of predictions in files, with its confidence interval."""
    from argmaxf.files import ScoredFiles, evaluate_files
    from argmaxf.measures import Interval, as_measure

    segments = tuple(by or ())
    chosen = as_measure(measure_named(measure), beta)
    rows = ScoredFiles(files, predicted, segments, nulls, label=label, positive=positive)
    how: Any = {"measure": chosen, "confidence_level": confidence_level}
    found = evaluate_files(rows, zero_division=zero_division, **how)
    results = Results({(): found} if isinstance(found, Interval) else found, segments)
    if as_json:
        results.print_json(asdict, **how | {"measure": str(chosen)})
    else:
        head = (chosen.title, f"{100 * confidence_level:g} % interval")
        results.print(console(), head, lambda f: (f"{f.value:.4f}", f"[{f.low:.4f}, {f.high:.4f}]"))


def sketch(
    files: Files,
    probability: Annotated[str, PROBABILITY],
    output: SketchFile,
    label: Annotated[
        str | None,
        column(INPUT, "The column of true labels, to tune thresholds of the scores in -p later."),
    ] = None,
    weight: Annotated[str | None, column(INPUT, "With --label: the column of weights.")] = None,
    nulls: Nulls = "raise",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Summarize probabilities or labelled scores of files, to be merged and decided elsewhere."""
    from argmaxf.files import ScoredFiles, summarize_files

    _check_sketch(output, files, force)
    if weight is not None and label is None:
        raise ValueError("--weight needs --label: probabilities have no weights")
    how: Any = {"nulls": nulls, "output": output, "added": None}
    with progress_bar("rows") as how["progress"]:
        made = summarize_files(ScoredFiles(files, probability, label=label, weight=weight, **how))
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


def _refuse(wrong: Mapping[str, object]) -> None:
    """Raise the first message that is about something wrong."""
    for message, is_wrong in wrong.items():
        if is_wrong:
            raise ValueError(message)


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
    number: float | None, file: Path | None, name: str | None, measure: str, beta: float
) -> tuple[float | None, MeasureLike]:
    """Return the threshold to use and the measure: of a file, unless one was asked for."""
    asked = measure_named(measure)
    if file is None:
        return number, asked
    if number is not None:
        raise ValueError("give either --threshold or --threshold-from, got both")
    from argmaxf.saved_threshold import SavedThreshold, column_threshold

    saved = SavedThreshold.load(file)
    default = (measure, beta) == ("fbeta", 1.0)
    try:
        return column_threshold(saved, name), saved.measure or asked if default else asked
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
    _refuse(
        {
            f"--min-selected and --max-selected {NEEDS_ROWS}": not problem.is_free,
            "a guarantee needs every probability, got a sketch; pass the files": problem.chance,
            "a sketch has no rows to label; label the files of rows with --threshold": on_rows,
        }
    )
    return found.decide(
        beta=problem.beta,
        measure=problem.measure,
        zero_division=problem.zero_division,
        ties="split" if problem.split_ties else "together",
    )


def _read_sketch(path: Path) -> ProbabilitySketch | LabelledSketch:
    """Read a sketch of either kind; what is wrong with it is said with its name."""
    from argmaxf.empirical.labelled_sketch import LABELLED, LabelledSketch
    from argmaxf.expected.sketch import ProbabilitySketch

    if path.exists() and not path.is_file():  # a pipe without a writer would be waited for
        raise ValueError(f"{path}: must be a file")
    try:
        data = path.read_bytes()
        kind = LabelledSketch if data.startswith(LABELLED) else ProbabilitySketch
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


def _guarantee_fields(guarantee: Any) -> dict[str, Any]:
    """Return a guarantee for programs, with what is known of it."""
    known = {name: value for name, value in vars(guarantee).items() if value is not None}
    return {"guarantee": known.pop("constraints").given() | known}


def _decision_fields(decision: Decision) -> dict[str, Any]:
    return {
        "rows": decision.n,
        "k": decision.k,
        "threshold": decision.threshold,
        "expected": decision.expected,
        "std": max(0.0, decision.std),
        "beta": decision.beta,
        **(_guarantee_fields(decision.guarantee) if decision.guarantee else {}),
        **({"bracket": decision.bracket} if decision.bracket else {}),
    }


def spread(std: float) -> str:
    """Write a standard deviation in two digits; rounding below 0 is 0."""
    return f"{max(0.0, std):.2g}"


def _print_decisions(out: Any, results: Results, word: str) -> None:
    def value(decision: Decision) -> str:
        return f"{decision.expected:.6g} ± {spread(decision.std)}"

    results.print(
        out,
        ("rows", "k", "threshold", f"E[{word}] ± std"),
        lambda d: (f"{d.n:,}", f"{d.k:,}", repr(d.threshold), value(d)),
        lambda together: f"E[{word}] {value(together)}",
    )
    for decision in results.each.values():
        if decision.bracket:
            low, high = decision.bracket
            out.print(f"The exact best threshold lies between {low:.6g} and {high:.6g}.")


def _each_threshold(best: Threshold) -> dict[tuple[Any, ...], Threshold]:
    """Return the threshold of each segment."""
    if best.segment is None:
        return {(): best}
    names = ("threshold", "value", "precision", "recall", "k", "guarantee")
    keys = [key if isinstance(key, tuple) else (key,) for key in best.segment.tolist()]
    rows = zip(*(getattr(best, name).tolist() for name in names), strict=True)
    return {key: type(best)(*row) for key, row in zip(keys, rows, strict=True)}


def _threshold_fields(best: Threshold) -> dict[str, Any]:
    return {
        **({} if best.threshold is None else {"threshold": best.threshold}),
        **{name: getattr(best, name) for name in ("value", "precision", "recall", "k")},
        **(_guarantee_fields(best.guarantee) if best.guarantee else {}),
    }


def _threshold_cells(best: Threshold) -> tuple[str, ...]:
    numbers = (f"{each:.4f}" for each in (best.value, best.precision, best.recall))
    return (repr(best.threshold), *numbers, f"{best.k:,}")
