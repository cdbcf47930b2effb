"""Small tables with one row for each segment, brought to the engine and joined there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from argmaxf.frames.engines import Frame, engine_of

LOW, HIGH = "argmaxf_low", "argmaxf_high"


def within(
    frame: Frame, by: Sequence[str], column: str, bands: Mapping[tuple[Any, ...], tuple[float, ...]]
) -> Frame:
    """Keep the rows whose probability lies in the band of their segment."""
    p = nw.col(column)
    if not by:
        low, high = bands[()]
        return frame.filter((p >= low) & (p <= high))
    joined = joined_to(frame, by, bands, (LOW, HIGH), how="inner")
    return joined.filter((p >= nw.col(LOW)) & (p <= nw.col(HIGH))).drop(LOW, HIGH)


def joined_to(
    frame: Frame,
    by: Sequence[str],
    values: Mapping[tuple[Any, ...], tuple[float, ...]],
    names: Sequence[str],
    *,
    how: Any,
) -> Frame:
    """Add to each row the values of its segment, as columns of the given names."""
    columns = [*zip(*values, strict=True), *zip(*values.values(), strict=True)]
    table = dict(zip([*by, *names], map(list, columns), strict=True))
    engine = engine_of(frame)
    return engine.join(frame, engine.bring(table, frame, by), by, how)
