"""Power sums of pixels as a Triton kernel, for NVIDIA GPUs: see `powers`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from argmaxf.torch.passes import COLUMNS, SPREAD_COLUMNS
from argmaxf.torch.triton_numbers import ceil_div, number_of

LANES = 128  # pixels read at a time
PART = LANES * 64  # pixels of one program: so few in a lane that rounding does not build up


def powers(p: Tensor, low: Tensor, high: Tensor, spread: bool) -> Tensor:
    """Return the sums of `passes.powers`."""
    parts = ceil_div(p.shape[1], PART)
    columns = SPREAD_COLUMNS if spread else COLUMNS
    out = torch.empty(len(p), parts, columns, dtype=torch.float64, device=p.device)
    _powers[(parts, len(p))](p, p.shape[1], low, high, out, spread, columns, PART, LANES)
    total: Tensor = out.sum(1)
    return total


@triton.jit(do_not_specialize=["n"])
def _powers(
    p, n, low, high, out,
    SPREAD: tl.constexpr, COLUMNS: tl.constexpr, PART: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0).to(tl.int64) * PART
    row_low, row_high = number_of(tl.load(low + row)), number_of(tl.load(high + row))
    count, equal = tl.zeros([LANES], tl.int32), tl.zeros([LANES], tl.int32)
    s1, s2 = tl.zeros([LANES], tl.float64), tl.zeros([LANES], tl.float64)
    s3, s4 = tl.zeros([LANES], tl.float64), tl.zeros([LANES], tl.float64)
    s5, s6 = tl.zeros([LANES], tl.float64), tl.zeros([LANES], tl.float64)
    s7, s8 = tl.zeros([LANES], tl.float64), tl.zeros([LANES], tl.float64)
    v1, v2 = tl.zeros([LANES], tl.float64), tl.zeros([LANES], tl.float64)
    v3, v4 = tl.zeros([LANES], tl.float64), tl.zeros([LANES], tl.float64)
    v5, v6 = tl.zeros([LANES], tl.float64), tl.zeros([LANES], tl.float64)
    v7 = tl.zeros([LANES], tl.float64)
    stop = tl.minimum(PART, n - start)
    nothing = row_high < row_low
    if not SPREAD:  # only there what is at the lower end counts
        nothing = row_high <= row_low
    if nothing:
        stop = stop * 0
    for i in range(0, stop, LANES):
        place = start + i + tl.arange(0, LANES)
        d = tl.load(p + row * n + place, mask=place < n, other=-2.0).to(tl.float64)
        between = (d > row_low) & (d <= row_high)
        count += between.to(tl.int32)
        equal += (d == row_low).to(tl.int32)
        d1 = tl.where(between, d, 0.0)
        d2 = d1 * d1
        d3, d4 = d2 * d1, d2 * d2
        d6 = d4 * d2
        s1, s2, s3, s4 = s1 + d1, s2 + d2, s3 + d3, s4 + d4
        s5, s6, s7, s8 = s5 + d4 * d1, s6 + d6, s7 + d4 * d3, s8 + d4 * d4
        if SPREAD:
            r1, r2 = d1 * (1.0 - d1), d2 * (1.0 - d1)
            v1, v2, v3, v4 = v1 + r1, v2 + r2, v3 + d2 * r1, v4 + d2 * r2
            v5, v6, v7 = v5 + d4 * r1, v6 + d4 * r2, v7 + d6 * r1
    out += (row * tl.num_programs(0) + tl.program_id(0)) * COLUMNS
    tl.store(out, tl.sum(count).to(tl.float64))
    tl.store(out + 1, tl.sum(equal).to(tl.float64))
    tl.store(out + 2, tl.sum(s1))
    tl.store(out + 3, tl.sum(s2))
    tl.store(out + 4, tl.sum(s3))
    tl.store(out + 5, tl.sum(s4))
    tl.store(out + 6, tl.sum(s5))
    tl.store(out + 7, tl.sum(s6))
    tl.store(out + 8, tl.sum(s7))
    tl.store(out + 9, tl.sum(s8))
    if SPREAD:
        tl.store(out + 10, tl.sum(v1))
        tl.store(out + 11, tl.sum(v2))
        tl.store(out + 12, tl.sum(v3))
        tl.store(out + 13, tl.sum(v4))
        tl.store(out + 14, tl.sum(v5))
        tl.store(out + 15, tl.sum(v6))
        tl.store(out + 16, tl.sum(v7))
