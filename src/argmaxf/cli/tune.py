"""argmaxf tune and evaluate: thresholds from labelled rows of files, and F of predictions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argmaxf.cli.common import (
    GUARANTEE,
    OBJECTIVE,
    OUTPUT,
    Beta,
    ConfidenceLevel,
    Force,
    Json,
    Measure,
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
from argmaxf.cli.decide import INPUT, KINDS, SKETCH, Files, one_sketch

if TYPE_CHECKING:
    from argmaxf.empirical.threshold import Threshold

Label = option(INPUT, "The column of true labels.", "--label", metavar="COLUMN")
By = Annotated[
    list[str] | None,
    option(INPUT, "Treat each value of this column separately; may be repeated.", metavar="COLUMN"),
]
Positive = Annotated[
    str | None, option(INPUT, "The positive label, if labels are not 0 and 1 or true and false.")
]
Nulls = Annotated[str, option(INPUT, "Rows without a value: raise, or drop.")]
ZeroDivision = Annotated[
    float, option(OBJECTIVE, "Value of F if no row is positive and none is selected.")
]


def tune(
    files: Annotated[list[str], typer.Argument(help=f"{KINDS}; or one sketch.", metavar="FILE")],
    label: Annotated[str | None, Label] = None,
    score: Annotated[
        str | None,
        option(INPUT, "The column of scores, higher is more positive.", metavar="COLUMN"),
    ] = None,
    weight: Annotated[
        str | None, option(INPUT, "The column of weights of rows.", metavar="COLUMN")
    ] = None,
    by: By = None,
    positive: Positive = None,
    nulls: Nulls = "raise",
    beta: Beta = 1.0,
    measure: Measure = "fbeta",
    zero_division: ZeroDivision = 0.0,
    min_precision: Annotated[
        float | None, option(GUARANTEE, "Minimum precision of the threshold.")
    ] = None,
    min_recall: Annotated[float | None, option(GUARANTEE, "Minimum recall.")] = None,
    max_selected_rate: Annotated[
        float | None, option(GUARANTEE, "Largest share of rows that it may select.")
    ] = None,
    confidence_level: ConfidenceLevel = None,
    output: Annotated[
        Path | None,
        option(OUTPUT, "Write the rows with their predictions to this file.", "-o", "--output"),
    ] = None,
    predicted: Annotated[str, option(OUTPUT, "Name of the column of predictions.")] = "predicted",
    threshold_only: Annotated[
        bool, option(OUTPUT, "Print the threshold and nothing else.", "--threshold-only")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find the threshold with the highest F on labelled rows of files."""
    from argmaxf._base.validation import check_zero_division
    from argmaxf.constraints import Constraints
    from argmaxf.empirical.bins import CutProblem
    from argmaxf.empirical.labelled_sketch import LabelledSketch, best_in
    from argmaxf.files.labelled_files import LabelledFiles, tune_files
    from argmaxf.measures import as_measure

    segments = tuple(by or ())
    asked = Constraints(min_precision, min_recall, max_selected_rate)
    chosen = as_measure(measure_named(measure), beta)
    problem = CutProblem(chosen, check_zero_division(zero_division), asked)
    refuse_existing([output], files, force=force)
    if any(name.endswith(SKETCH) for name in files):
        if segments or output or confidence_level is not None:
            raise ValueError("--by, -o and guarantees need the rows, got a sketch; pass the files")
        best = best_in(one_sketch(files, LabelledSketch), problem).best
    elif label is None or score is None:
        raise ValueError("name the column of labels with --label, that of scores with --score")
    else:
        with progress_bar("rows") as progress:
            rows = LabelledFiles(files, label, score, weight, segments, positive, nulls, progress)
            best = tune_files(rows, problem, confidence_level, output=output, predicted=predicted)
    keys = [()] if best.segment is None else [_key(key) for key in best.segment.tolist()]
    if threshold_only:
        for key, each in zip(keys, _each(best), strict=True):
            typer.echo("\t".join([*map(plain, key), repr(each["threshold"])]))
    elif as_json:
        result = _json(best, keys, segments) | {"measure": str(chosen)}
        print_json(result | {"output": None if output is None else str(output)})
    else:
        _print(best, keys, segments, chosen.title)
        if output:
            console().print(f"Predictions in {shown(output)}.", soft_wrap=True)


def evaluate(
    files: Files,
    label: Annotated[str, Label],
    predicted: Annotated[
        str, option(INPUT, "The column of predicted labels.", "--predicted", metavar="COLUMN")
    ],
    by: By = None,
    positive: Positive = None,
    nulls: Nulls = "raise",
    beta: Beta = 1.0,
    measure: Measure = "fbeta",
    zero_division: ZeroDivision = 0.0,
    confidence_level: Annotated[
        float, option(OBJECTIVE, "Probability with which each interval contains the true value.")
    ] = 0.95,
    as_json: Json = False,
) -> None:
    """Compute F of predictions in files, with its confidence interval."""
    from argmaxf.files.labelled_files import LabelledFiles, evaluate_files
    from argmaxf.measures import Interval, as_measure

    segments = tuple(by or ())
    chosen = as_measure(measure_named(measure), beta)
    rows = LabelledFiles(files, label, predicted, None, segments, positive, nulls)
    found = evaluate_files(
        rows, measure=chosen, confidence_level=confidence_level, zero_division=zero_division
    )
    each = {(): found} if isinstance(found, Interval) else found
    if as_json:
        records = [
            {"segment": dict(zip(segments, map(str, key), strict=True))} | asdict(f)
            for key, f in each.items()
        ]
        result = {"segments": records} if segments else asdict(each[()])
        print_json(result | {"measure": str(chosen), "confidence_level": confidence_level})
    else:
        head = (*segments, chosen.title, f"{100 * confidence_level:g} % interval")
        lines = [(*k, f"{f.value:.4f}", f"[{f.low:.4f}, {f.high:.4f}]") for k, f in each.items()]
        print_table(console(), head, lines, texts=len(segments))


def _key(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


FIELDS = ("threshold", "value", "precision", "recall", "k")


def _each(best: Threshold) -> list[dict[str, Any]]:
    """Return the fields of each segment's threshold."""
    if best.segment is None:
        one = {name: getattr(best, name) for name in FIELDS}
        return [one | {"guarantee": best.guarantee}]
    columns = [getattr(best, name).tolist() for name in (*FIELDS, "guarantee")]
    return [
        dict(zip((*FIELDS, "guarantee"), row, strict=True)) for row in zip(*columns, strict=True)
    ]


def _record(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a threshold for programs."""
    guarantee = fields.pop("guarantee")
    if guarantee is None:
        return fields
    names = ("confidence_level", "joint_confidence_level", "cost", "precision_low", "recall_low")
    values = {name: getattr(guarantee, name) for name in (*names, "rate_high")}
    given = {name: value for name, value in values.items() if value is not None}
    return fields | {"guarantee": guarantee.constraints.given() | given}


def _json(best: Threshold, keys: list[Any], by: tuple[str, ...]) -> dict[str, Any]:
    each = [_record(fields) for fields in _each(best)]
    if not by:
        return each[0] | {"gap": best.gap}
    together: Any = best.overall
    overall = {name: getattr(together, name) for name in (*FIELDS[1:], "guarantee")}
    segments = [
        {"segment": dict(zip(by, map(str, key), strict=True))} | fields
        for key, fields in zip(keys, each, strict=True)
    ]
    return {"segments": segments, "overall": _record(overall)}


def _print(best: Threshold, keys: list[Any], by: tuple[str, ...], title: str) -> None:
    out, each = console(), _each(best)
    head = (*by, "threshold", title, "precision", "recall", "k")

    def line(key: Any, f: dict[str, Any]) -> tuple[Any, ...]:
        numbers = (f"{f[name]:.4f}" for name in FIELDS[1:4])
        return (*key, repr(f["threshold"]), *numbers, f"{f['k']:,}")

    print_table(out, head, [*map(line, keys, each)], texts=len(by))
    if best.gap:
        most = best.value + best.gap
        out.print(f"The exact best threshold has a value of at most {most:.6g}; tune the rows.")
    for key, fields in zip(keys, each, strict=True):
        if fields["guarantee"]:
            name = f"{', '.join(map(str, key))}: " if key else ""
            out.print(shown(f"{name}guaranteed: {fields['guarantee']}"), soft_wrap=True)
    if (together := best.overall) is not None:
        text = f"All segments together: {title} {together.value:.4f}"
        text += f", guaranteed: {together.guarantee}" if together.guarantee else ""
        out.print(shown(f"{text}."), soft_wrap=True)
