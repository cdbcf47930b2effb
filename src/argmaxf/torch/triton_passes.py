"""Passes over pixels as Triton kernels, for NVIDIA GPUs: see `passes.PlainTorch`.

Tensors are contiguous, of at most 65,535 rows.
Counts are whole numbers, added in any order, and the pixels of a band are sorted afterwards. Sums
are made by one program for each part of a row, and the parts are added up in a fixed order.
"""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from argmaxf.expected.pass_kernels import BINS, ONE, SUMS

LANES = 2048  # pixels read at a time
PART = LANES * 8  # pixels of one program
# Of power sums: so few in a lane that rounding does not build up
SUM_LANES = 128
SUM_PART = SUM_LANES * 64
NODE_LANES = 512  # pixels of a program that has one node after another


def bins(p: Tensor) -> Tensor:
    """Count the pixels of each row in the bins; what is no probability is in none."""
    rows, n = p.shape
    counts = torch.zeros(rows, BINS, dtype=torch.int64, device=p.device)
    _count[(_parts(n, PART), rows)](p, n, counts, BINS, ONE, PART, LANES)
    return counts


def powers(p: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return power sums over the pixels of each row below `low` and above `high`."""
    rows, n = p.shape
    grid = _parts(n, SUM_PART), rows, 2
    out = torch.empty(rows, grid[0], 2, SUMS, dtype=torch.float64, device=p.device)
    _around[grid](p, n, low, high, out, SUMS, SUM_PART, SUM_LANES)
    total: Tensor = out.sum(1)
    return total


def gather(p: Tensor, low: Tensor, high: Tensor, size: NDArray[np.int64]) -> Tensor:
    """Return the pixels from `low` to `high`, row after row, of each in any order."""
    rows, n = p.shape
    out = torch.empty(int(size.sum()), dtype=p.dtype, device=p.device)
    first = torch.from_numpy(np.cumsum(size) - size).to(p.device)
    filled = torch.zeros_like(first)
    _gather[(_parts(n, PART), rows)](p, n, low, high, out, first, filled, PART, LANES)
    return out


def reciprocals(p: Tensor, scale: Tensor, x: Tensor) -> Tensor:
    """Σ_m scale_m / (1 - p w_m) for each pixel of each row, x = 1 - w."""
    (rows, n), p = p.shape, p.contiguous()
    out = torch.empty(rows, n, dtype=torch.float64, device=p.device)
    if n:
        grid, given = (_parts(n, NODE_LANES), rows), (scale.contiguous(), x.contiguous())
        _reciprocals[grid](p, n, *given, out, scale.shape[1], NODE_LANES)
    return out


def _parts(n: int, part: int) -> int:
    """⌈n / part⌉: triton.cdiv takes as long as a small operation on the device."""
    return -(-n // part)


@triton.jit(do_not_specialize=["n"])
def _count(
    p, n, counts,
    BINS: tl.constexpr, ONE: tl.constexpr, PART: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0).to(tl.int64) * PART
    bins = tl.arange(0, BINS)
    found = tl.zeros([BINS], tl.int32)
    others = tl.zeros([LANES], tl.int32)
    for i in range(0, tl.minimum(PART, n - start), LANES):
        place = start + i + tl.arange(0, LANES)
        d = tl.load(p + row * n + place, mask=place < n, other=-1.0).to(tl.float64)
        is_other = ((d >= 0.0) & (d <= 1.0)) == 0
        bin = ONE - (tl.abs(d).to(tl.int64, bitcast=True) >> 48)
        bin = tl.minimum(tl.maximum(bin, 0), BINS - 1).to(tl.int32)
        found += tl.histogram(tl.where(is_other, BINS - 1, bin), BINS)
        others += is_other.to(tl.int32)
    found -= tl.where(bins == BINS - 1, tl.sum(others), 0)
    tl.atomic_add(counts + row * BINS + bins, found.to(tl.int64), mask=found != 0)


@triton.jit(do_not_specialize=["n"])
def _around(
    p, n, low, high, out,
    SUMS: tl.constexpr, PART: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    row, side = tl.program_id(1).to(tl.int64), tl.program_id(2)
    start = tl.program_id(0).to(tl.int64) * PART
    row_low, row_high = tl.load(low + row), tl.load(high + row)
    s, v0 = tl.zeros([LANES], tl.float64), tl.zeros([LANES], tl.float64)
    v1, v2, v3, v4, v5, v6, v7 = v0, v0, v0, v0, v0, v0, v0
    stop = tl.minimum(PART, n - start)
    if ((side == 0) & (row_low <= 0.0)) | ((side == 1) & (row_high >= 1.0)):
        stop = stop * 0  # nothing is there
    for i in range(0, stop, LANES):
        place = start + i + tl.arange(0, LANES)
        d = tl.load(p + row * n + place, mask=place < n, other=3.0).to(tl.float64)
        below, above = (d >= 0.0) & (d < row_low), (d > row_high) & (d <= 1.0)
        there = ((side == 0) & below) | ((side == 1) & above)
        d = tl.where(there, d, 0.0)
        r0 = tl.where(there, 1.0 - d, 0.0)
        square = d * d
        r1, r2, fourth = r0 * d, r0 * square, square * square
        r3 = r1 * square
        s, v0, v1, v2, v3 = s + d, v0 + r0, v1 + r1, v2 + r2, v3 + r3
        v4, v5 = v4 + r0 * fourth, v5 + r1 * fourth
        v6, v7 = v6 + r2 * fourth, v7 + r3 * fourth
    out += ((row * tl.num_programs(0) + tl.program_id(0)) * 2 + side) * SUMS
    tl.store(out, tl.sum(s))
    tl.store(out + 1, tl.sum(v0))
    tl.store(out + 2, tl.sum(v1))
    tl.store(out + 3, tl.sum(v2))
    tl.store(out + 4, tl.sum(v3))
    tl.store(out + 5, tl.sum(v4))
    tl.store(out + 6, tl.sum(v5))
    tl.store(out + 7, tl.sum(v6))
    tl.store(out + 8, tl.sum(v7))


@triton.jit(do_not_specialize=["n"])
def _gather(
    p, n, low, high, out, first, filled, PART: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Copy the pixels of a part of a row that are in the band after the row's others."""
    row = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0).to(tl.int64) * PART
    row_low, row_high = tl.load(low + row), tl.load(high + row)
    for i in range(0, tl.minimum(PART, n - start), LANES):
        place = start + i + tl.arange(0, LANES)
        item = tl.load(p + row * n + place, mask=place < n, other=-1.0)
        d = item.to(tl.float64)
        inside = (d >= row_low) & (d <= row_high)
        size = tl.sum(inside.to(tl.int32))
        if size > 0:
            begin = tl.atomic_add(filled + row, size.to(tl.int64))
            rank = tl.cumsum(inside.to(tl.int32), 0) - 1
            tl.store(out + tl.load(first + row) + begin + rank, item, mask=inside)


@triton.jit(do_not_specialize=["n", "nodes"])
def _reciprocals(p, n, scale, x, out, nodes, LANES: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    d = tl.load(p + row * n + place, mask=place < n, other=0.0).to(tl.float64)
    total = tl.zeros([LANES], tl.float64)
    for m in range(nodes):
        node = row * nodes + m
        total += tl.load(scale + node) / ((1.0 - d) + d * tl.load(x + node))
    tl.store(out + row * n + place, total, mask=place < n)
