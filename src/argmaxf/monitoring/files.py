"""Plans of rows to label, as files: a CSV to fill in beside a JSON file.

The JSON file has the drawn rows and a histogram of the others: an estimate needs the rows no more.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from argmaxf._base import saved
from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.atomic_write import writing, written_whole
from argmaxf._base.validation import as_labels, check_unit_interval
from argmaxf.files.inputs import find_inputs
from argmaxf.frames.engines import unused
from argmaxf.measures import measure_as_data, measure_of_data
from argmaxf.monitoring.histogram import binned
from argmaxf.monitoring.labelling import LabelPlan, plan_labels

ORDER = "argmaxf_order"
LABELS = {"": np.nan}
LABELS |= dict.fromkeys(("1", "1.0", "true", "yes"), 1.0)
LABELS |= dict.fromkeys(("0", "0.0", "false", "no"), 0.0)


class FilledPlan(NamedTuple):
    """A plan read from files: the rows that have a label, and their labels."""

    plan: LabelPlan
    labels: Bools
    threshold: float
    budget: int  # how many labels there would be, with those of earlier plans


def beside(path: Path) -> Path:
    """Return the JSON file that belongs to a CSV file."""
    return path.with_suffix(".json")


def write_plan(
    plan: LabelPlan, frame: pl.LazyFrame, threshold: float, output: Path, label: str
) -> None:
    """Write the drawn rows of a frame as a CSV file with an empty column of labels."""
    there = frame.collect_schema().names()
    if label in there:
        raise ValueError(f"there is a column {label!r} already; choose another --label")
    (row,) = unused([*there, label], ["row"])
    drawn = pl.LazyFrame({row: plan.indices + 1}).with_row_index(ORDER)
    found = frame.with_row_index(row, offset=1).with_columns(pl.col(row).cast(pl.Int64))
    query = found.join(drawn, on=row).sort(ORDER).drop(ORDER)
    query = query.select(row, pl.lit(None, pl.String).alias(label), pl.exclude(row))
    table = query.collect(engine="streaming")
    state = saved.to_json("label plan", _as_data(plan, threshold) | {"row": row, "label": label})
    with written_whole(beside(output)) as rest, written_whole(output) as csv, writing(output):
        table.write_csv(csv)
        rest.write_text(state, encoding="utf-8")


def read_plan(path: Path) -> FilledPlan:
    """Read a plan that was filled in; rows without a label are left out."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    if not beside(path).is_file():
        raise FileNotFoundError(
            f"{beside(path)}: there is no such file; argmaxf label-plan wrote it beside "
            f"{path.name}, and an estimate needs it"
        )
    plan, labels, threshold, names = saved.from_file(beside(path), "label plan", _of_data)
    waiting, budget = np.isnan(labels), labels.size
    labels[waiting] = _labels(path, *names, plan.indices[waiting] + 1)
    known = ~np.isnan(labels)
    return FilledPlan(_of_rows(plan, plan.indices[known]), labels[known] == 1.0, threshold, budget)


def _of_rows(plan: LabelPlan, rows: Ints) -> LabelPlan:
    return replace(plan, indices=rows, weights=np.ones(rows.size))


def replanned(plan: LabelPlan, old: FilledPlan, threshold: float, path: Path) -> LabelPlan:
    """Return a plan of other rows that makes use of the labels of an earlier one."""
    rows, n = old.plan.indices, old.plan.n
    same = n == plan.n and old.threshold == threshold
    if not same or not np.array_equal(plan.p[rows], old.plan.p[rows]):
        raise ValueError(
            f"{path} must be a plan of the same rows and threshold, got one of {n:,} rows at "
            f"{old.threshold:g} where there are {plan.n:,} at {threshold:g}, or other probabilities"
        )
    return _of_rows(plan, rows).replan(old.labels, plan.indices.size)


def _as_data(plan: LabelPlan, threshold: float) -> dict[str, Any]:
    """Return a plan as JSON can hold it; labels are null where they are to be filled in."""
    before, known = plan.labelled
    rows = np.concatenate([before, plan.indices])
    p, selected = np.delete(plan.p, rows), np.delete(plan.selected, rows)
    return {
        "threshold": threshold,
        "measure": measure_as_data(plan.measure),
        "rows": rows.tolist(),
        "p": plan.p[rows].tolist(),
        "labels": known.tolist() + [None] * plan.indices.size,
        "rest": [[each.tolist() for each in binned(p[side])] for side in (selected, ~selected)],
    }


def _of_data(data: dict[str, Any]) -> tuple[LabelPlan, Floats, float, tuple[str, str]]:
    """Return a plan, its labels or NaN, its threshold, and the names of two columns."""
    rows, labels = np.array(data["rows"], np.int64), np.array(data["labels"], np.float64)
    as_labels("labels", labels[~np.isnan(labels)])
    p, rest = np.array(data["p"], np.float64), [np.repeat(*each) for each in data["rest"]]
    if not np.unique(rows).size == labels.size == p.size or rows.min() < 0:
        raise ValueError("numbers of rows do not agree")
    sides = np.repeat([True, False], [each.size for each in rest])
    values = np.concatenate([p, *rest])
    threshold = check_unit_interval("threshold", data["threshold"])
    order = np.argsort(np.append(rows, np.delete(np.arange(values.size), rows)))
    plan = plan_labels(
        values[order],
        np.append(p >= threshold, sides)[order],
        budget=1,
        measure=measure_of_data(data["measure"]),
        random_state=0,
    )
    return _of_rows(plan, rows), labels, threshold, (str(data["row"]), str(data["label"]))


def _labels(path: Path, row: str, label: str, numbers: Ints) -> Floats:
    """Return the labels of the rows with these numbers, NaN where there is none."""
    with ExitStack() as stack:
        (source,) = find_inputs([str(path)], stack)
        header = source.check_header() if source.is_text else []
        for name in (row, label):
            if name not in header:
                raise ValueError(f"{path}: no column {name!r}, which the plan has; it has {header}")
        table = source.scan().select(row, label).collect()
    found = dict.fromkeys(map(str, numbers.tolist()), np.nan)
    seen: set[str] = set()
    for line, (given, text) in enumerate(table.iter_rows(), start=1):
        number, word = (given or "").strip(), (text or "").strip().lower()
        if number not in found or number in seen:
            what = "is there twice" if number in seen else "is not in the plan"
            raise ValueError(f"{path}, row {line}: the row with the number {number!r} {what}")
        if word not in LABELS:
            raise ValueError(
                f"{path}, row {line}: column {label!r} must hold 0 or 1, or be empty, got {text!r}"
            )
        seen.add(number)
        found[number] = LABELS[word]
    if np.isnan(list(found.values())).all():
        raise ValueError(f"{path}: column {label!r} must hold at least one label, got none")
    return np.array(list(found.values()))
