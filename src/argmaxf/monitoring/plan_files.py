"""Label plans in files: a CSV to fill in, and beside it a JSON file with what estimates need.

The JSON file holds the probabilities of the drawn rows, and sketches of those of all others. So an
estimate needs the rows no more.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.atomic_write import writing, written_whole
from argmaxf._base.validation import DAMAGED, as_probabilities, check_unit_interval
from argmaxf.expected.sketch import ProbabilitySketch, groups_of_sketch
from argmaxf.files.column import Column
from argmaxf.files.inputs import find_inputs
from argmaxf.frames.batches import polars_batches
from argmaxf.frames.engines import unused
from argmaxf.measures import MEASURES, Measure
from argmaxf.monitoring.labelling import LabelPlan, plan_labels

FORMAT = "argmaxf label plan"
VERSION = 1
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
    threshold: float
    budget: int
    row_numbers: Ints  # of all labelled rows, from 0, those of earlier plans first


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
            plan = _replanned(plan, read_plan(labelled), budget, labelled)
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
    state = _state(plan) | {"threshold": cut, "row": row, "label": label}
    with written_whole(beside(output)) as rest, written_whole(output) as csv, writing(output):
        table.write_csv(csv)
        rest.write_text(json.dumps(state), encoding="utf-8")
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
    try:
        state = json.loads(other.read_text(encoding="utf-8"))
        if state["format"] != FORMAT or state["version"] > VERSION:
            raise ValueError(f"format {state['format']!r}, version {state['version']!r}")
        rows, before = np.array(state["rows"], np.int64), np.array(state["before"], np.int64)
        p, chosen = as_probabilities("p", state["p"], ndim=1), np.array(state["selected"], np.bool_)
        known = np.array(state["labels"], np.bool_)
        rest = [ProbabilitySketch.from_bytes(base64.b64decode(each)) for each in state["rest"]]
        kind = dict(state["measure"])
        measure: Measure = MEASURES[kind.pop("name")](**kind)
        threshold, names = float(state["threshold"]), (str(state["row"]), str(state["label"]))
        if not rows.size + before.size == p.size == chosen.size or known.size != before.size:
            raise ValueError("numbers of rows do not agree")
    except DAMAGED as error:
        raise ValueError(f"{other} is not a plan that this argmaxf can read: {error}") from None
    found = _labels(path, *names, rows + 1)
    order = np.argsort(np.isnan(found), kind="stable")  # labelled rows first
    labelled, parts = np.count_nonzero(~np.isnan(found)), before.size + order
    groups = [groups_of_sketch(each) for each in rest]
    values = [np.repeat(g.mass / g.count, g.count.astype(np.int64)) for g in groups]
    all_p = np.concatenate([p[: before.size], p[parts], *values])
    sides = [np.full(each.size, side) for each, side in zip(values, (True, False), strict=True)]
    plan = LabelPlan(
        indices=before.size + np.arange(labelled),
        weights=np.ones(labelled),
        n=all_p.size,
        measure=measure,
        p=all_p,
        selected=np.concatenate([chosen[: before.size], chosen[parts], *sides]),
        seed=0,
        target="value",
        labelled=(np.arange(before.size), known),
    )
    numbers = np.concatenate([before, rows[order[:labelled]]])
    return FilledPlan(plan, found[order[:labelled]] == 1.0, threshold, rows.size, numbers)


def _replanned(plan: LabelPlan, filled: FilledPlan, budget: int, path: Path) -> LabelPlan:
    """Return a plan of other rows that makes use of the labels of an earlier one."""
    rows, old = filled.row_numbers, filled.plan
    same = old.n == plan.n and np.array_equal(plan.p[rows], old.p[: rows.size])
    if not same or not np.array_equal(plan.selected[rows], old.selected[: rows.size]):
        raise ValueError(
            f"{path} must be a plan of the same rows and threshold, got one of {old.n:,} rows "
            f"where there are {plan.n:,}, or other probabilities"
        )
    known = np.concatenate([old.labelled[1], filled.labels])
    start = replace(plan, indices=rows, weights=np.ones(rows.size))
    return start.replan(known, budget)


def _state(plan: LabelPlan) -> dict[str, Any]:
    """Return a plan as JSON can hold it."""
    if type(plan.measure) not in MEASURES.values():
        raise ValueError(f"measure must be one of argmaxf.measures, got {plan.measure}")
    before, known = plan.labelled
    rows = np.concatenate([before, plan.indices])
    rest = np.ones(plan.n, np.bool_)
    rest[rows] = False
    sides = [rest & plan.selected, rest & ~plan.selected]
    sketches = [ProbabilitySketch.from_array(plan.p[side]) for side in sides]
    return {
        "format": FORMAT,
        "version": VERSION,
        "measure": {"name": plan.measure.name, **vars(plan.measure)},
        "before": before.tolist(),
        "labels": known.tolist(),
        "rows": plan.indices.tolist(),
        "p": plan.p[rows].tolist(),
        "selected": plan.selected[rows].tolist(),
        "rest": [base64.b64encode(each.to_bytes()).decode() for each in sketches],
    }


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
