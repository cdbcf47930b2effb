"""Counting and gathering pixels as Triton kernels, for NVIDIA GPUs: see `passes`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from argmaxf.torch.passes import BINS, BinTable, KeyWindow
from argmaxf.torch.triton_numbers import ONE, ceil_div, key_of, number_of

LANES = 2048  # pixels read at a time
PART = LANES * 8  # pixels of one program
LEAST_ITEMS, MOST_ITEMS = 2048, 16384


def table(
    p: Tensor, window: KeyWindow, finest: int, inner: bool = False
) -> tuple[BinTable, Tensor]:
    """Count the items p > 0 in each bin of each window, and those that are no probabilities."""
    rows, n = p.shape
    found = torch.zeros(rows, BINS + 2, dtype=torch.int64, device=p.device)
    _count[(ceil_div(n, PART), rows)](p, n, *window, found, BINS, PART, LANES)
    out = torch.empty(3, rows, BINS, dtype=torch.int64, device=p.device)
    _edges[(rows,)](found, *window, *out, 1 << finest, BINS, inner)
    return BinTable(*out), found[:, BINS + 1]


def few(rows: int, one_tilt: bool) -> int:
    """How many items of a row are looked at one by one; with two tilts each takes far longer."""
    return min(MOST_ITEMS, max(LEAST_ITEMS, (1 << (20 if one_tilt else 18)) // rows))


def gather(p: Tensor, low: Tensor, high: Tensor, most: int, as_keys: bool = True) -> Tensor:
    """Return the items with keys in [low, high] of each row, or their keys, in any order."""
    rows, n = p.shape
    out = torch.zeros(rows, most, dtype=torch.int64 if as_keys else p.dtype, device=p.device)
    filled = torch.zeros(rows, dtype=torch.int32, device=p.device)
    grid = ceil_div(n, PART), rows
    _gather[grid](p, n, low, high, out, filled, most, as_keys, PART, LANES)
    return out


def keep(p: Tensor, low: Tensor, high: Tensor, most: int) -> Tensor:
    """Return the items with keys in [low, high] of each row in a fixed order, zeros first."""
    return gather(p, low, high, most, as_keys=False).sort(1).values


def at_least(p: Tensor, threshold: Tensor) -> Tensor:
    """Mark the items of each row that are not below its threshold."""
    rows, n = p.shape
    out = torch.empty(rows, n, dtype=torch.bool, device=p.device)
    if n:
        _at_least[(ceil_div(n, LANES), rows)](p, n, threshold.contiguous(), out, LANES)
    return out


@triton.jit(do_not_specialize=["n"])
def _count(p, n, top, shift, found, BINS: tl.constexpr, PART: tl.constexpr, LANES: tl.constexpr):
    """Add the bins of a part of a row to `found`; then how many are 0, and no probabilities."""
    row = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0).to(tl.int64) * PART
    row_top, row_shift = tl.load(top + row), tl.load(shift + row)
    bins = tl.arange(0, BINS)
    counts = tl.zeros([BINS], tl.int32)
    zeros = tl.zeros([LANES], tl.int32)
    bad = tl.zeros([LANES], tl.int32)
    for i in range(0, tl.minimum(PART, n - start), LANES):
        place = start + i + tl.arange(0, LANES)
        key = key_of(tl.load(p + row * n + place, mask=place < n, other=0.0))
        zeros += (key == 0).to(tl.int32)
        bad += ((key < 0) | (key > ONE)).to(tl.int32)
        bin = ((row_top - key) >> row_shift) + 1
        bin = tl.minimum(tl.maximum(bin, 0), BINS - 1)
        counts += tl.histogram(tl.where(key == 0, BINS - 1, bin).to(tl.int32), BINS)
    counts -= tl.where(bins == BINS - 1, tl.sum(zeros), 0)  # what is beyond the row was read as 0
    found += row * (BINS + 2)
    tl.atomic_add(found + bins, counts.to(tl.int64), mask=counts != 0)
    tl.atomic_add(found + BINS + 1, tl.sum(bad).to(tl.int64))


@triton.jit(do_not_specialize=["step"])
def _edges(found, top, shift, size, low, high, step, BINS: tl.constexpr, INNER: tl.constexpr):
    """The bins of a window (`passes.table`); of an inner one what is outside of it is left out."""
    row = tl.program_id(0).to(tl.int64)
    bin = tl.arange(0, BINS)
    count = tl.load(found + row * (BINS + 2) + bin)
    if INNER:
        count = tl.where((bin == 0) | (bin == BINS - 1), 0, count)
    one = tl.full([BINS], 1, tl.int64)
    width = one << tl.load(shift + row)
    upper = tl.load(top + row) - (bin.to(tl.int64) - 1) * width
    lower = tl.where(bin == BINS - 1, one * step, upper - width + step)
    upper = tl.where(bin == 0, one * ONE, upper)
    place = row * BINS + bin
    tl.store(size + place, count)
    tl.store(low + place, tl.minimum(tl.maximum(lower, one * step), one * ONE))
    tl.store(high + place, tl.minimum(tl.maximum(upper, one * step), one * ONE))


@triton.jit(do_not_specialize=["n", "most"])
def _gather(
    p, n, low, high, out, filled, most,
    AS_KEYS: tl.constexpr, PART: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Append the items of a part of a row with keys in [low, high] to the row's others."""
    row = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0).to(tl.int64) * PART
    row_low, row_high = number_of(tl.load(low + row)), number_of(tl.load(high + row))
    for i in range(0, tl.minimum(PART, n - start), LANES):
        place = start + i + tl.arange(0, LANES)
        item = tl.load(p + row * n + place, mask=place < n, other=0.0)
        d = item.to(tl.float64)
        inside = (d >= row_low) & (d <= row_high) & (d > 0.0)
        ranks = tl.cumsum(inside.to(tl.int32), 0)
        size = tl.sum(inside.to(tl.int32))
        if size > 0:
            rank = tl.atomic_add(filled + row, size) + ranks - 1
            found = key_of(d) if AS_KEYS else item
            tl.store(out + row * most + rank, found, mask=inside & (rank < most))


@triton.jit(do_not_specialize=["n"])
def _at_least(p, n, threshold, out, LANES: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    d = tl.load(p + row * n + place, mask=place < n, other=0.0).to(tl.float64)
    tl.store(out + row * n + place, d >= tl.load(threshold + row), mask=place < n)
