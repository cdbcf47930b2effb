"""Parting rare pixels from the others as Triton kernels, for NVIDIA GPUs: see `rare`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from argmaxf.torch.rare import BELOW, POWERS, Rare

LANES = 1024  # pixels read at a time
PART = LANES * 16  # pixels of one program


def part_rare(p: Tensor) -> tuple[Tensor, Rare]:
    """Return the pixels of a single row that are not rare, in their order, and the rare ones."""
    n = p.shape[1]
    parts = triton.cdiv(n, PART)
    counts = torch.empty(parts, dtype=torch.int64, device=p.device)
    powers = torch.empty(POWERS, parts, dtype=torch.float64, device=p.device)
    _count_rare[(parts,)](p, n, counts, powers, parts, BELOW, PART, LANES)
    ends = counts.cumsum(0)
    kept = torch.empty(1, int(ends[-1]), dtype=p.dtype, device=p.device)
    _copy_others[(parts,)](p, n, ends - counts, kept, BELOW, PART, LANES)
    return kept, Rare(powers.sum(1)[None])


@triton.jit(do_not_specialize=["n", "parts"])
def _count_rare(
    p, n, counts, powers, parts,
    BELOW: tl.constexpr, PART: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """How many pixels of a part are not rare, and the power sums of the rare ones."""
    part = tl.program_id(0).to(tl.int64)
    start = part * PART
    kept = tl.zeros([LANES], tl.int32)
    s1, s2 = tl.zeros([LANES], tl.float64), tl.zeros([LANES], tl.float64)
    s3, s4 = tl.zeros([LANES], tl.float64), tl.zeros([LANES], tl.float64)
    s5, s6 = tl.zeros([LANES], tl.float64), tl.zeros([LANES], tl.float64)
    s7, s8 = tl.zeros([LANES], tl.float64), tl.zeros([LANES], tl.float64)
    for i in range(0, tl.minimum(PART, n - start), LANES):
        place = start + i + tl.arange(0, LANES)
        d = tl.load(p + place, mask=place < n, other=0.0).to(tl.float64)
        kept += (d >= BELOW).to(tl.int32)
        d = tl.where(d < BELOW, d, 0.0)
        square = d * d
        fourth = square * square
        s1, s2 = s1 + d, s2 + square
        s3, s4 = s3 + square * d, s4 + fourth
        s5, s6 = s5 + fourth * d, s6 + fourth * square
        s7, s8 = s7 + fourth * square * d, s8 + fourth * fourth
    tl.store(counts + part, tl.sum(kept).to(tl.int64))
    powers += part
    tl.store(powers, tl.sum(s1))
    tl.store(powers + parts, tl.sum(s2))
    tl.store(powers + 2 * parts, tl.sum(s3))
    tl.store(powers + 3 * parts, tl.sum(s4))
    tl.store(powers + 4 * parts, tl.sum(s5))
    tl.store(powers + 5 * parts, tl.sum(s6))
    tl.store(powers + 6 * parts, tl.sum(s7))
    tl.store(powers + 7 * parts, tl.sum(s8))


@triton.jit(do_not_specialize=["n"])
def _copy_others(
    p, n, first, kept, BELOW: tl.constexpr, PART: tl.constexpr, LANES: tl.constexpr
):  # fmt: skip
    """Copy the pixels of a part that are not rare to their place."""
    part = tl.program_id(0).to(tl.int64)
    start, place_of = part * PART, tl.load(first + part)
    for i in range(0, tl.minimum(PART, n - start), LANES):
        place = start + i + tl.arange(0, LANES)
        d = tl.load(p + place, mask=place < n, other=0.0)
        others = (d.to(tl.float64) >= BELOW) & (place < n)
        ranks = tl.cumsum(others.to(tl.int32), 0)
        tl.store(kept + place_of + ranks - 1, d, mask=others)
        place_of += tl.sum(others.to(tl.int64))
