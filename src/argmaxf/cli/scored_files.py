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
from typing import TYPE_CHECKING, Any

import typer

from argmaxf.cli import common
from argmaxf.cli.common import console, measure_named, print_json, refuse_existing, shown

if TYPE_CHECKING:
    from argmaxf.empirical.threshold import Threshold
    from argmaxf.expected.decision import Decision
    from argmaxf.measures import Interval, MeasureLike
    from argmaxf.problem import Problem

SKETCH = ".argmaxf"
PIPE = Path("-")
LONG = 2.0  # seconds from which rows per second say more than how long it takes to begin
TWO_OUTPUTS = "-o - prints the rows, so it cannot be combined with --json or --threshold-only"
NEEDS_ROWS = "need the rows, got a sketch; pass the files of rows"


@dataclass
class Results:
    """What was found in each segment, by its key; without segments the key is empty."""

    each: Mapping[tuple[Any, ...], Any]
    by: tuple[str, ...]
    cells: Callable[[Any], dict[str, str]]  # how one is printed, by the heads of a table
    record: Callable[[Any], dict[str, Any]]  # one for programs
    overall: Any = None  # of all segments together
    together: Callable[[Any], str] = str  # its value as text

    def show(
        self,
        as_json: bool,
        more: dict[str, Any],
        *lines: str,
        threshold_only: bool = False,
        stderr: bool = False,
    ) -> None:
        """Print thresholds only, or the results and more for programs, or all for people."""
        if threshold_only:
            for key, found in self.each.items():
                typer.echo("\t".join([*map(common.plain, key), repr(found.threshold)]))
        elif not as_json:
            self._print(console(stderr=stderr), lines)
        elif not self.by:
            print_json(self._known(self.each[()]) | more)
        else:
            names = [dict(zip(self.by, map(str, key), strict=True)) for key in self.each]
            known = map(self._known, self.each.values())
            segments = [{"segment": n} | k for n, k in zip(names, known, strict=True)]
            overall = {} if self.overall is None else {"overall": self._known(self.overall)}
            print_json({"segments": segments} | overall | more)

    def _known(self, found: Any) -> dict[str, Any]:
        """Return what is known of a result and its guarantee."""
        record = self.record(found)
        if guarantee := getattr(found, "guarantee", None):
            about = {name: each for name, each in vars(guarantee).items() if each is not None}
            record["guarantee"] = about.pop("constraints").given() | about
        return {name: value for name, value in record.items() if value is not None}

    def _print(self, out: Any, lines: Sequence[str]) -> None:
        """Print a table, what is guaranteed, the value of all segments together, and lines."""
        cells = {key: self.cells(found) for key, found in self.each.items()}
        head = (*self.by, *next(iter(cells.values())))
        rows = [(*key, *each.values()) for key, each in cells.items()]
        common.print_table(out, head, rows, texts=len(self.by))
        for key, found in self.each.items():
            if guarantee := getattr(found, "guarantee", None):
                name = f"{', '.join(map(str, key))}: " if key else ""
                out.print(shown(f"{name}guaranteed: {guarantee}"), soft_wrap=True)
        if self.overall is not None:
            guarantee = self.overall.guarantee
            held = f", guaranteed: {guarantee}" if guarantee else ""
            lines = [f"All segments together: {self.together(self.overall)}{held}.", *lines]
        for line in lines:
            out.print(shown(line), soft_wrap=True)


def decide(
    files: list[str],
    probability: str | None = None,
    by: list[str] | None = None,
    nulls: str = "raise",
    beta: float = 1.0,
    measure: str = "fbeta",
    zero_division: float = 0.0,
    ties: str = "split",
    threshold: float | None = None,
    threshold_from: Path | None = None,
    min_selected: int | None = None,
    max_selected: int | None = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    confidence_level: float | None = None,
    train_rate: float | None = None,
    deploy_rate: str | None = None,
    output: Path | None = None,
    label: str = "label",
    threshold_only: bool = False,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Label the rows of files so that the expected F is the highest."""
    from argmaxf.constraints import ChanceConstraint
    from argmaxf.files.scored import ScoredFiles
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
        progress = stack.enter_context(common.progress_bar("rows"))
        rows = ScoredFiles(files, str(probability), segments, nulls, None, path, label, progress)
        if rates is not None and is_estimated(rates):
            rate = rows.estimate(rates[0])
            rates = rates[0], rate.value
        rows = replace(rows, prior=rates)
        if is_sketch:
            has_rows = bool(output or segments or fixed)
            each: Any = {(): _decide_sketch(files, problem, has_rows=has_rows)}
        elif threshold is None:
            each = rows.decide(problem)
            overall = each.overall
        else:
            each = {(): rows.select(threshold, problem)}
    seconds = time.perf_counter() - start
    in_order = dict(sorted(each.items(), key=lambda item: tuple(map(str, item[0]))))
    results = _decided(in_order, segments, overall, f"E[{problem.word}]")
    more: dict[str, Any] = {"seconds": round(seconds, 3), "measure": str(problem.measure)}
    more["output"] = output and str(output)
    if rate is not None:
        more["deploy_rate"] = asdict(rate)
        if not (as_json or threshold_only):
            console(stderr=piped).print(shown(f"Most likely rate of positives here: {rate:.4g}."))
    between = "The exact best threshold lies between {:.6g} and {:.6g}."
    lines = [between.format(*found.bracket) for found in each.values() if found.bracket]
    done = f"Labels in {output}. " if output and not piped else ""
    speed = sum(decision.n for decision in each.values()) / seconds
    fast = f", {speed:,.0f} rows/s" if not is_sketch and seconds >= LONG else ""
    lines.append(f"{done}{seconds:.2f} s{fast}.")
    results.show(as_json, more, *lines, threshold_only=threshold_only, stderr=piped)


def _decided(each: Any, by: tuple[str, ...], overall: Any, value: str) -> Results:
    def cells(one: Decision) -> dict[str, str]:
        rows, k, threshold = f"{one.n:,}", f"{one.k:,}", repr(one.threshold)
        return {"rows": rows, "k": k, "threshold": threshold, f"{value} ± std": _with_std(one)}

    def record(one: Decision) -> dict[str, Any]:
        fields = {name: getattr(one, name) for name in ("k", "threshold", "expected", "beta")}
        return {"rows": one.n} | fields | {"std": max(0.0, one.std), "bracket": one.bracket}

    return Results(each, by, cells, record, overall, lambda one: f"{value} {_with_std(one)}")


def tune(
    files: list[str],
    label: str | None = None,
    score: str | None = None,
    weight: str | None = None,
    by: list[str] | None = None,
    positive: str | None = None,
    nulls: str = "raise",
    beta: float = 1.0,
    measure: str = "fbeta",
    zero_division: float = 0.0,
    min_precision: float | None = None,
    min_recall: float | None = None,
    max_selected_rate: float | None = None,
    confidence_level: float | None = None,
    output: Path | None = None,
    predicted: str = "predicted",
    threshold_only: bool = False,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Find the threshold with the highest F on labelled rows of files."""
    from argmaxf.empirical.cuts import CutProblem
    from argmaxf.empirical.labelled_sketch import LabelledSketch, best_in
    from argmaxf.files.scored import ScoredFiles

    segments = tuple(by or ())
    limits = min_precision, min_recall, max_selected_rate, confidence_level
    problem = CutProblem.of(beta, measure_named(measure), zero_division, *limits)
    chosen = problem.measure
    refuse_existing([output], files, force=force)
    if any(name.endswith(SKETCH) for name in files):
        needs_rows = segments or output or confidence_level is not None
        _refuse({f"--by, -o and guarantees {NEEDS_ROWS}": needs_rows})
        best = best_in(_read_sketch(LabelledSketch, *files), problem).best
    elif label is None or score is None:
        raise ValueError("name the column of labels with --label, that of scores with --score")
    else:
        with common.progress_bar("rows") as progress:
            columns: Any = {"label": label, "weight": weight, "positive": positive}
            written: Any = {"output": output, "added": predicted, "progress": progress}
            rows = ScoredFiles(files, score, segments, nulls, **columns, **written)
            best = rows.tune(problem)
    more: dict[str, Any] = {} if segments else {"gap": best.gap}
    more |= {"measure": str(chosen), "output": output and str(output)}
    lines = []
    if best.gap:
        most = f"{best.value + best.gap:.6g}"
        lines.append(f"The exact best threshold has a value of at most {most}; tune the rows.")
    if output:
        lines.append(f"Predictions in {output}.")
    results = _tuned(best, segments, chosen.title)
    results.show(as_json, more, *lines, threshold_only=threshold_only)


def _tuned(best: Threshold, by: tuple[str, ...], value: str) -> Results:
    numbers = ("value", "precision", "recall")

    def cells(one: Threshold) -> dict[str, str]:
        texts = {name: f"{getattr(one, name):.4f}" for name in numbers}
        texts = {value if name == "value" else name: text for name, text in texts.items()}
        return {"threshold": repr(one.threshold)} | texts | {"k": f"{one.k:,}"}

    def record(one: Threshold) -> dict[str, Any]:
        return {name: getattr(one, name) for name in ("threshold", *numbers, "k")}

    each = _each_threshold(best)
    return Results(each, by, cells, record, best.overall, lambda one: f"{value} {one.value:.4f}")


def evaluate(
    files: list[str],
    label: str,
    predicted: str,
    by: list[str] | None = None,
    positive: str | None = None,
    nulls: str = "raise",
    beta: float = 1.0,
    measure: str = "fbeta",
    zero_division: float = 0.0,
    confidence_level: float = 0.95,
    as_json: bool = False,
) -> None:
    """Compute F of predictions in files, with its confidence interval."""
    from argmaxf.files.scored import ScoredFiles
    from argmaxf.measures import as_measure

    segments = tuple(by or ())
    chosen = as_measure(measure_named(measure), beta)
    rows = ScoredFiles(files, predicted, segments, nulls, label=label, positive=positive)
    how: Any = {"measure": chosen, "confidence_level": confidence_level}
    found: Any = rows.evaluate(zero_division=zero_division, **how)

    def cells(one: Interval) -> dict[str, str]:
        ends = f"[{one.low:.4f}, {one.high:.4f}]"
        return {chosen.title: f"{one.value:.4f}", f"{100 * confidence_level:g} % interval": ends}

    results = Results(found if segments else {(): found}, segments, cells, asdict)
    results.show(as_json, how | {"measure": str(chosen)})


def sketch(
    files: list[str],
    probability: str,
    output: Path,
    label: str | None = None,
    weight: str | None = None,
    nulls: str = "raise",
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Summarize probabilities or labelled scores of files, to be merged and decided elsewhere."""
    from argmaxf.files.scored import ScoredFiles

    _check_sketch(output, files, force)
    if weight is not None and label is None:
        raise ValueError("--weight needs --label: probabilities have no weights")
    how: Any = {"nulls": nulls, "output": output, "added": None}
    with common.progress_bar("rows") as how["progress"]:
        made = ScoredFiles(files, probability, label=label, weight=weight, **how).summarize()
    _write_sketch(made, output, as_json)


def merge(sketches: list[Path], output: Path, force: bool = False, as_json: bool = False) -> None:
    """Merge summaries of disjoint rows into one."""
    from argmaxf._base.atomic_write import refuse_twice

    _check_sketch(output, sketches, force)
    refuse_twice(sketches)
    merged, *others = map(_sketch_in, sketches)
    for path, other in zip(sketches[1:], others, strict=True):
        try:
            merged.merge(other)
        except TypeError as error:
            raise ValueError(f"{path}: sketches must be of one kind; {error}") from None
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


def _decide_sketch(files: list[str], problem: Problem, *, has_rows: bool) -> Decision:
    """Decide from a summary alone; what would have to be done with rows is refused."""
    from argmaxf.expected.sketch import ProbabilitySketch

    found = _read_sketch(ProbabilitySketch, *files)
    _refuse(
        {
            f"--min-selected and --max-selected {NEEDS_ROWS}": not problem.is_free,
            "a guarantee needs every probability, got a sketch; pass the files": problem.chance,
            "a sketch has no rows to label; label the files of rows with --threshold": has_rows,
        }
    )
    ties = "split" if problem.split_ties else "together"
    decision: Decision = found.decide(
        measure=problem.measure, zero_division=problem.zero_division, ties=ties
    )
    return decision


def _read_sketch(kind: Any, path: str, *others: str) -> Any:
    """Return the sketch in a single file, which must be of a kind."""
    if others:
        raise ValueError(
            f"give one sketch, got {1 + len(others)} files; merge sketches with argmaxf merge"
        )
    found = _sketch_in(Path(path))
    if not isinstance(found, kind):
        got = type(found).__name__
        use = "argmaxf tune" if got == "LabelledSketch" else "argmaxf decide"
        raise ValueError(f"{path}: must hold a {kind.__name__}, got a {got}: use {use}")
    return found


def _sketch_in(path: Path) -> Any:
    """Read a sketch of either kind; what is wrong with it is said with its name."""
    from argmaxf.empirical.labelled_sketch import LABELLED, LabelledSketch
    from argmaxf.expected.sketch import ProbabilitySketch

    if path.exists() and not path.is_file():  # a pipe without a writer would be waited for
        raise ValueError(f"{path}: must be a file")
    try:
        data = path.read_bytes()
        kind: Any = LabelledSketch if data.startswith(LABELLED) else ProbabilitySketch
        return kind.from_bytes(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    except OSError as error:
        raise OSError(f"{path}: cannot be read: {error.strerror}") from None


def _check_sketch(output: Path, inputs: Sequence[Path | str], force: bool) -> None:
    if output.suffix != SKETCH:
        raise ValueError(f"{output}: a sketch must be named with {SKETCH}")
    refuse_existing([output], inputs, force=force)


def _write_sketch(made: Any, output: Path, as_json: bool) -> None:
    from argmaxf._base.atomic_write import writing, written_whole
    from argmaxf._base.validation import how_many

    data = made.to_bytes()
    with written_whole(output) as temporary, writing(output):
        temporary.write_bytes(data)
    name = "positives" if hasattr(made, "positives") else "mean_positives"
    positives = getattr(made, name)
    if as_json:
        print_json({"rows": made.n, name: positives, "bytes": len(data), "output": str(output)})
        return
    found = f"positives of weight {positives:,.6g}"
    expected = f"{positives:,.6g} of them expected to be positive"
    text = f"{how_many(made.n, 'row')}, {found if name == 'positives' else expected}"
    console().print(f"{text}: {len(data):,} bytes.", soft_wrap=True)


def _with_std(decision: Decision) -> str:
    """Write an expected value with its standard deviation; rounding below 0 is 0."""
    return f"{decision.expected:.6g} ± {max(0.0, decision.std):.2g}"


def _each_threshold(best: Threshold) -> dict[tuple[Any, ...], Threshold]:
    """Return the threshold of each segment."""
    if best.segment is None:
        return {(): best}
    names = ("threshold", "value", "precision", "recall", "k", "guarantee")
    keys = [key if isinstance(key, tuple) else (key,) for key in best.segment.tolist()]
    rows = zip(*(getattr(best, name).tolist() for name in names), strict=True)
    return {key: type(best)(*row) for key, row in zip(keys, rows, strict=True)}
