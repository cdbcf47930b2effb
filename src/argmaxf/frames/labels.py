"""Labels made from the thresholds of segments: by the engine, or here for frames in memory."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.frames.base import Frame, as_frame, with_arrays
from argmaxf.frames.engines import engine_of
from argmaxf.frames.grouping import P
from argmaxf.frames.segments import items_above
from argmaxf.frames.table import Table, unused


def with_labels(table: Table, threshold: Floats, k: Ints, *, may_split: bool) -> Frame:
    """Add the labels, given the threshold and k of each segment, which may part equal items."""
    names = table.outputs
    if isinstance(table.frame, nw.DataFrame):
        labels = {
            name: _labels(table, table.frame, j, threshold, k) for j, name in enumerate(names)
        }
        return _without_number(table, with_arrays(table.frame, labels))
    if may_split and table.has_order:
        return _split_by_row(table, threshold, k)
    if table.number is None:
        cuts = zip(table.columns, threshold.tolist(), names, strict=True)
        return table.frame.with_columns((table.p(c) >= cut).alias(name) for c, cut, name in cuts)
    m, taken = len(names), table.frame.collect_schema().names()
    cut_names = unused([*taken, *names], [f"argmaxf_threshold_{j}" for j in range(m)])
    values = {cut: threshold[j::m] for j, cut in enumerate(cut_names)}
    rows = engine_of(table.frame).look_up(table.frame, table.number, values)
    pairs = zip(table.columns, cut_names, names, strict=True)
    labelled = rows.with_columns((table.p(c) >= nw.col(cut)).alias(name) for c, cut, name in pairs)
    return _without_number(table, labelled.drop(*cut_names))


def _split_by_row(table: Table, threshold: Floats, k: Ints) -> Frame:
    """Label the rows of a lazy frame that come in a fixed order, of one column."""
    (column,), (output,) = table.columns, table.outputs
    row, cut, last = unused(
        [*table.frame.collect_schema().names(), output],
        ["argmaxf_row", "argmaxf_threshold", "argmaxf_last"],
    )
    values = {cut: threshold, last: last_selected(table, threshold, k).astype(np.float64)}
    numbered = as_frame(table.frame.to_native().with_row_index(row))
    if table.number is None:
        rows = numbered.with_columns(nw.lit(float(v[0])).alias(n) for n, v in values.items())
    else:
        rows = engine_of(numbered).look_up(numbered, table.number, values)
    p, first = table.p(column), nw.col(row) <= nw.col(last)
    label = (p > nw.col(cut)) | ((p == nw.col(cut)) & first)
    return _without_number(table, rows.with_columns(label.alias(output)).drop(row, cut, last))


def last_selected(table: Table, threshold: Floats, k: Ints) -> Ints:
    """Return the row of the last selected item at each segment's threshold, in order of rows."""
    wanted = k - items_above(table, np.nextafter(threshold, np.inf))
    last, seen, start = np.full(k.size, -1), np.zeros(k.size, np.int64), 0
    columns = [table.number] if table.number else []
    frame = table.frame.select(*columns, table.p(table.columns[0]).alias(P)).to_native()
    for batch in frame.collect_batches(maintain_order=True, engine="streaming"):
        p = batch[P].to_numpy()
        segment = batch[table.number].to_numpy() if table.number else np.zeros(p.size, np.int64)
        equal = np.flatnonzero(p == threshold[segment])
        equal = equal[np.argsort(segment[equal], kind="stable")]
        found, first, of = np.unique(segment[equal], return_index=True, return_inverse=True)
        rank = np.arange(equal.size) - first[of] + seen[segment[equal]] + 1
        ends = equal[rank == wanted[segment[equal]]]
        last[segment[ends]] = start + ends
        seen[found] += np.diff(np.append(first, equal.size))
        start += p.size
    return last


def _without_number(table: Table, frame: Frame) -> Frame:
    return frame.drop(table.number) if table.number else frame


def _labels(table: Table, frame: nw.DataFrame[Any], j: int, threshold: Floats, k: Ints) -> Bools:
    """Return the labels of column j of a frame in memory, in the order of its rows."""
    p = frame.select(table.p(table.columns[j])).to_numpy()[:, 0]
    rows = frame[table.number].to_numpy() if table.number else np.zeros(p.size, np.int64)
    return top_items(p, rows * len(table.columns) + j, threshold, k)


def top_items(p: Floats, segment: Ints, threshold: Floats, k: Ints) -> Bools:
    """Mark the top k of each segment: of those equal to its threshold, the first ones."""
    selected: Bools = p > threshold[segment]
    missing = k - np.bincount(segment[selected], minlength=k.size)
    equal = np.flatnonzero(p == threshold[segment])
    equal = equal[np.argsort(segment[equal], kind="stable")]
    _, first, of = np.unique(segment[equal], return_index=True, return_inverse=True)
    rank = np.arange(equal.size) - first[of]
    selected[equal[rank < missing[segment[equal]]]] = True
    return selected
