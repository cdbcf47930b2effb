"""Label plans in files: a CSV to fill in, and beside it a JSON file with what estimates need.

The JSON file holds the probabilities of the drawn rows, and sketches of those of all others. So an
estimate needs the rows no more.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from argmaxf._base import saved
from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.atomic_write import writing, written_whole
from argmaxf._base.validation import as_labels, as_probabilities, check_unit_interval
from argmaxf.expected.sketch import ProbabilitySketch
from argmaxf.files.column import Column
from argmaxf.files.inputs import find_inputs
from argmaxf.frames.batches import polars_batches
from argmaxf.frames.engines import unused
from argmaxf.measures import measure_as_data, measure_of_data
from argmaxf.monitoring.labelling import LabelPlan, plan_labels
from argmaxf.monitoring.prediction import sizes_of_sketch

LABELS = {"1": True, "1.0": True, "true": True, "yes": True} | {
    "0": False,
    "0.0": False,
    "false": False,
    "no": False,
}


class FilledPlan(NamedTuple):
    """A plan read from files: the rows that have a label, and their labels."""

    plan: LabelPlan
    labels: Bools
    rows: Ints  # their numbers in the files, from 0
    threshold: float
    budget: int  # how many labels there would be, with those of earlier plans


def beside(path: Path) -> Path:
    """Return the JSON file that belongs to a CSV file."""
    return path.with_suffix(".json")


def plan_files(
    names: Sequence[str],
    column: str,
    threshold: float,
    budget: int,
    output: Path,
    *,
    label: str = "label",
    labelled: Path | None = None,
    **options: Any,
) -> LabelPlan:
    """Draw rows of files to label, and write them as a CSV file with an empty column of labels.

    `labelled` is a plan of the same files that was filled in: the new plan makes use of its labels
    and draws other rows. `options` are those of `plan_labels`.
    """
    if output.suffix.lower() != ".csv":
        raise ValueError(f"{output}: a plan must be named with .csv")
    cut = check_unit_interval("threshold", threshold)
    with ExitStack() as stack:
        items = Column(find_inputs(names, stack), column)
        with items.naming_errors():
            query = items.frame(only=[])
            parts = [batch[items.p].to_numpy() for batch in polars_batches(query)]
            p = np.concatenate(parts, dtype=np.float64) if parts else np.zeros(0)
            if not (p.size and p.min() >= 0.0 and p.max() <= 1.0):
                items.diagnose()
        plan = plan_labels(p, p >= cut, budget, **options)
        if labelled is not None:
            plan = _replanned(plan, read_plan(labelled), cut, labelled)
        frame = items.frame(typed=True).drop(items.helpers, strict=False)
        there = frame.collect_schema().names()
        if label in there:
            raise ValueError(f"there is a column {label!r} already; choose another --label")
        (row,) = unused([*there, label], ["row"])
        drawn = pl.DataFrame({row: plan.indices + 1, "argmaxf_order": np.arange(plan.indices.size)})
        found = frame.with_row_index(row, offset=1).with_columns(pl.col(row).cast(pl.Int64))
        table = found.join(drawn.lazy(), on=row, how="inner").collect(engine="streaming")
        table = table.sort("argmaxf_order").drop("argmaxf_order")
        table = table.select(row, pl.lit(None, pl.String).alias(label), pl.exclude(row))
    state = saved.to_json("label plan", _as_data(plan, cut) | {"row": row, "label": label})
    with written_whole(beside(output)) as rest, written_whole(output) as csv, writing(output):
        table.write_csv(csv)
        rest.write_text(state, encoding="utf-8")
    return plan


def read_plan(path: Path) -> FilledPlan:
    """Read a plan that was filled in; rows without a label are left out."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    other = beside(path)
    if not other.is_file():
        raise FileNotFoundError(
            f"{other}: there is no such file; argmaxf label-plan wrote it beside {path.name}, and "
            "an estimate needs it"
        )
    plan, known, numbers, threshold, names = saved.from_file(other, "label plan", _of_data)
    waiting = np.isnan(known)
    known[waiting] = _labels(path, *names, numbers[waiting] + 1)
    rows = np.flatnonzero(~np.isnan(known))
    plan = replace(plan, indices=rows, weights=np.ones(rows.size))
    return FilledPlan(plan, known[rows] == 1.0, numbers[rows], threshold, known.size)


def _replanned(plan: LabelPlan, old: FilledPlan, threshold: float, path: Path) -> LabelPlan:
    """Return a plan of other rows that makes use of the labels of an earlier one."""
    same = old.plan.n == plan.n and old.threshold == threshold
    if not same or not np.array_equal(plan.p[old.rows], old.plan.p[old.plan.indices]):
        raise ValueError(
            f"{path} must be a plan of the same rows and threshold, got one of {old.plan.n:,} rows "
            f"at {old.threshold:g} where there are {plan.n:,} at {threshold:g}, or other "
            "probabilities"
        )
    start = replace(plan, indices=old.rows, weights=np.ones(old.rows.size))
    return start.replan(old.labels, plan.indices.size)


def _as_data(plan: LabelPlan, threshold: float) -> dict[str, Any]:
    """Return a plan as JSON can hold it; labels are null where they are to be filled in."""
    before, known = plan.labelled
    rows = np.concatenate([before, plan.indices])
    rest = np.ones(plan.n, np.bool_)
    rest[rows] = False
    sides = [plan.p[rest & (plan.selected == side)] for side in (True, False)]
    sketches = [ProbabilitySketch.from_array(side).to_bytes() for side in sides]
    return {
        "threshold": threshold,
        "measure": measure_as_data(plan.measure),
        "rows": rows.tolist(),
        "p": plan.p[rows].tolist(),
        "labels": known.tolist() + [None] * plan.indices.size,
        "rest": [base64.b64encode(each).decode() for each in sketches],
    }


def _of_data(data: dict[str, Any]) -> tuple[LabelPlan, Floats, Ints, float, tuple[str, str]]:
    """Return a plan, its labels or NaN, the numbers of its rows, and the names of two columns."""
    numbers, p = np.array(data["rows"], np.int64), as_probabilities("p", data["p"], ndim=1)
    known = np.array(data["labels"], np.float64)
    as_labels("labels", known[~np.isnan(known)])
    sketches = [ProbabilitySketch.from_bytes(base64.b64decode(each)) for each in data["rest"]]
    values, sizes = zip(*map(sizes_of_sketch, sketches), strict=True)
    inside, outside = (np.repeat(*each) for each in zip(values, sizes, strict=True))
    threshold, n = float(data["threshold"]), p.size + inside.size + outside.size
    in_range = 0 <= numbers.min() <= numbers.max() < n
    if not in_range or not np.unique(numbers).size == p.size == known.size:
        raise ValueError("numbers of rows do not agree")
    plan = LabelPlan(
        indices=np.arange(p.size),
        weights=np.ones(p.size),
        n=n,
        measure=measure_of_data(data["measure"]),
        p=np.concatenate([p, inside, outside]),
        selected=np.concatenate([p >= threshold, inside >= 0.0, outside < 0.0]),
        seed=0,
        target="value",
        labelled=(np.zeros(0, np.int64), np.zeros(0, np.bool_)),
    )
    return plan, known, numbers, threshold, (str(data["row"]), str(data["label"]))


def _labels(path: Path, row: str, label: str, numbers: Ints) -> Floats:
    """Return the labels of the rows with these numbers, NaN where there is none."""
    with ExitStack() as stack:
        (source,) = find_inputs([str(path)], stack)
        header = source.check_header() if source.is_text else []
        for name in (row, label):
            if name not in header:
                raise ValueError(f"{path}: no column {name!r}, which the plan has; it has {header}")
        table = source.scan().select(row, label).collect()
    place = {str(number): i for i, number in enumerate(numbers.tolist())}
    found = np.full(numbers.size, np.nan)
    seen: set[str] = set()
    for line, (given, text) in enumerate(table.iter_rows(), start=1):
        number = (given or "").strip()
        if number not in place or number in seen:
            what = "is there twice" if number in seen else "is not in the plan"
            raise ValueError(f"{path}, row {line}: the row with the number {number!r} {what}")
        seen.add(number)
        word = (text or "").strip().lower()
        if word and word not in LABELS:
            raise ValueError(
                f"{path}, row {line}: column {label!r} must hold 0 or 1, or be empty, got {text!r}"
            )
        if word:
            found[place[number]] = LABELS[word]
    if np.isnan(found).all():
        raise ValueError(f"{path}: column {label!r} must hold at least one label, got none")
    return found
