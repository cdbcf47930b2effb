"""Labels made from the thresholds of segments: by the engine, or here for frames in memory."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from argmaxf.expected.groups import Bools, Floats, Ints
from argmaxf.frames.engines import Frame, engine_of
from argmaxf.frames.lookup import joined_to
from argmaxf.frames.segments import Key
from argmaxf.frames.table import Table, number

THRESHOLD, TIES = "argmaxf_threshold", "argmaxf_ties"
ROW, SEGMENT = "argmaxf_row", "argmaxf_segment"

Limits = dict[Key, tuple[float, float]]  # threshold and selected ties of each segment


def with_labels(table: Table, limits: Limits, output: str) -> Frame:
    """Add the labels, given the threshold and the selected ties of each segment."""
    if len(table.columns) == 1:
        return labelled(table.frame, table.columns[0], table.by, limits, output)
    frame = table.frame
    for name in table.columns:
        own = {key[:-1]: limit for key, limit in limits.items() if key[-1] == name}
        frame = labelled(frame, name, table.by, own, f"{name}_{output}")
    return frame


def labelled(frame: Frame, column: str, by: tuple[str, ...], limits: Limits, output: str) -> Frame:
    """Add the labels of one column."""
    if isinstance(frame, nw.DataFrame):
        label = _labels(frame, column, by, limits)
        return frame.with_columns(
            nw.new_series(output, label, nw.Boolean, backend=frame.implementation)
        )
    p = number(column)
    if not by:
        return frame.with_columns((p >= limits[()][0]).alias(output))
    joined = joined_to(frame, by, limits, (THRESHOLD, TIES), how="left")
    return joined.with_columns((p >= nw.col(THRESHOLD)).alias(output)).drop(THRESHOLD, TIES)


def _labels(frame: nw.DataFrame[Any], column: str, by: tuple[str, ...], limits: Limits) -> Bools:
    """Return the labels of a frame in memory, in the order of its rows."""
    p = frame.select(number(column)).to_numpy()[:, 0]
    segment = np.zeros(p.size, np.int64)
    if by:
        numbers = {key: (float(i),) for i, key in enumerate(limits)}
        rows = frame.select(*by).with_row_index(ROW)
        joined = joined_to(rows, by, numbers, (SEGMENT,), how="left").sort(ROW)
        segment = engine_of(joined).run(joined)[SEGMENT].to_numpy().astype(np.int64)
    threshold, ties = np.array(list(limits.values())).T
    return top_items(p, segment, threshold, ties)


def top_items(p: Floats, segment: Ints, threshold: Floats, ties: Floats) -> Bools:
    """Mark what is above its segment's threshold, and the first `ties` of those equal to it."""
    selected: Bools = p > threshold[segment]
    equal = np.flatnonzero(p == threshold[segment])
    equal = equal[np.argsort(segment[equal], kind="stable")]
    _, first, of = np.unique(segment[equal], return_index=True, return_inverse=True)
    rank = np.arange(equal.size) - first[of]
    selected[equal[rank < ties[segment[equal]]]] = True
    return selected
