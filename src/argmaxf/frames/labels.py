"""Labels made from the thresholds of segments: by the engine, or here for frames in memory."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.frames.base import Frame, with_arrays
from argmaxf.frames.engines import engine_of
from argmaxf.frames.table import Table, unused


def with_labels(table: Table, threshold: Floats, k: Ints) -> Frame:
    """Add the labels, given the threshold and the size of the chosen set of each segment."""
    names = table.outputs
    if isinstance(table.frame, nw.DataFrame):
        labels = {
            name: _labels(table, table.frame, j, threshold, k) for j, name in enumerate(names)
        }
        return _without_number(table, with_arrays(table.frame, labels))
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
