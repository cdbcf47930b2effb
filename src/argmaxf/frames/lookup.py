"""The values of segments, brought to the rows."""

from __future__ import annotations

import narwhals as nw

from argmaxf._base.arrays import Floats
from argmaxf.frames.base import Frame
from argmaxf.frames.engines import engine_of
from argmaxf.frames.grouping import SEGMENT, P

LOW, HIGH = "argmaxf_low", "argmaxf_high"


def within(frame: Frame, low: Floats, high: Floats, *, segmented: bool) -> Frame:
    """Keep the rows of P and SEGMENT whose probability lies in the band of their segment."""
    p = nw.col(P)
    if not segmented:
        return frame.filter((p >= low[0]) & (p <= high[0]))
    wide = engine_of(frame).look_up(frame, SEGMENT, {LOW: low, HIGH: high})
    return wide.filter((p >= nw.col(LOW)) & (p <= nw.col(HIGH))).select(SEGMENT, P)
