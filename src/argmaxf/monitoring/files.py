"""Files that are monitored: a reference, and periods by a column or one for each file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl

from argmaxf._base.atomic_write import refuse_twice
from argmaxf._base.validation import check_choice
from argmaxf.files.column import Column
from argmaxf.files.inputs import find_inputs
from argmaxf.monitoring.monitor import Monitor, Period


def monitor_files(
    reference: str,
    names: Sequence[str],
    column: str,
    threshold: float,
    *,
    time: str | None = None,
    every: str | None = None,
    label: str | None = None,
    nulls: str = "raise",
    **options: Any,
) -> tuple[Monitor, list[Period]]:
    """Monitor the rows of files, folders, patterns or "-"; each file is a period without `time`.

    Memory does not grow with the number of rows, but with that of the periods. The reference or the
    later files may be without labels. `options` are those of `Monitor`.
    """
    drop = check_choice("nulls", nulls, ("raise", "drop")) == "drop"
    with ExitStack() as stack:
        (first, *more), inputs = find_inputs([reference], stack), find_inputs(names, stack)
        refuse_twice(each.origin for each in (first, *more, *inputs))
        before = Column([first, *more], column, drop)
        known = label if label in _columns(before) else None
        with before.naming_errors():
            frame = before.frame(typed=True, only=[known] if known else [])
            monitor = Monitor.of_frame(threshold, frame, before.p, label=known, **options)
        if label is not None and not any(label in _columns(Column([i], column)) for i in inputs):
            if known is None:
                raise ValueError(f"no file has a column {label!r} of labels")
            label = None
        groups = [inputs] if time is not None else [[each] for each in inputs]
        stems = [Path(each.origin).name.partition(".")[0] for each in inputs]
        unique = len(set(stems)) == len(stems)
        found = []
        for group, stem in zip(groups, stems, strict=False):
            items, extra = Column(group, column, drop), [each for each in (time, label) if each]
            there = _columns(items)
            for name in extra:
                if name not in there:
                    source = group[0].name if len(group) == 1 else "the files"
                    raise ValueError(f"{source}: no column {name!r} in every file; got {there}")
            with items.naming_errors(extra):
                how: dict[str, Any] = {"time": time, "every": every, "label": label}
                how["period"] = None if time else stem if unique else group[0].name
                frame = items.frame(typed=True, only=extra)
                found += monitor.update_frame(frame, items.p, **how)
        return monitor, found


def _columns(items: Column) -> list[str]:
    """Return the columns that every file has."""
    schemas: list[pl.Schema] = [source.scan().collect_schema() for source in items.inputs]
    return [name for name in schemas[0] if all(name in each for each in schemas)]
