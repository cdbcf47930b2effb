r"""The passes over the pixels, in plain torch: counts, power sums, the pixels of a band.

Everything else works on what these return, which does not grow with the image. `triton_passes` has
the same for NVIDIA GPUs. Sums are in double precision and in a fixed order, so that two runs agree
bit for bit.
"""

from __future__ import annotations

import torch
from torch import Tensor

from argmaxf.expected.power_kernels import SUMS
from argmaxf.torch.constants import once

BINS = 1024  # 16 for each power of two, from the one of p = 1 alone down to 2^-64
ONE = 0x3FF0  # the first 16 bits of 1 as a double: sign, exponent, and four bits of the fraction
ROOM = 1 << 21  # numbers held at a time


@once
def edges(device: torch.device) -> tuple[Tensor, Tensor]:
    """Between which probabilities the pixels of each bin are."""
    low = ((ONE - torch.arange(BINS)) << 48).view(torch.float64)
    high = torch.cat([low[:1], low[:-1]])
    low[-1] = 0.0
    return low.to(device), high.to(device)


def bin_counts(p: Tensor) -> Tensor:
    """Count the pixels p > 0 in the bins of each row."""
    rows, n = p.shape
    counts = torch.zeros(rows * (BINS + 1), dtype=torch.int64, device=p.device)
    first = (BINS + 1) * torch.arange(rows, device=p.device)[:, None]
    for part in parts_of(rows, n):
        d = p[:, part].double()
        place = (ONE - (d.view(torch.int64) >> 48)).clamp(0, BINS - 1).masked_fill(d == 0.0, BINS)
        counts += torch.bincount((place + first).view(-1), minlength=counts.numel())
    return counts.view(rows, BINS + 1)[:, :BINS]


def around(p: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Σ p and Σ p^j (1 - p), j = 0 … 7, over the pixels of each row below `low` and above `high`.

    These are the sums of `expected/power_kernels.py`, rows × 2 × 9. What is no probability counts
    nowhere: the first two sums add up to the number of pixels.
    """
    out = torch.zeros(len(p), 2, SUMS, dtype=torch.float64, device=p.device)
    for part in parts_of(len(p), p.shape[1]):
        d = p[:, part].double()
        below, above = (d >= 0.0) & (d < low[:, None]), (d > high[:, None]) & (d <= 1.0)
        for side, there in enumerate((below, above)):
            out[:, side, 0] += torch.where(there, d, 0.0).sum(1)
            term = torch.where(there, 1.0 - d, 0.0)
            for j in range(1, SUMS):
                out[:, side, j] += term.sum(1)
                term *= d
    return out


def gather(p: Tensor, low: Tensor, high: Tensor, most: int) -> Tensor:
    """Return the pixels of each row from `low` to `high`, at most so many, then zeros."""
    rows, n = p.shape
    out = torch.zeros(rows, most, dtype=p.dtype, device=p.device)
    filled = torch.zeros(rows, dtype=torch.int64, device=p.device)
    for part in parts_of(rows, n):
        d = p[:, part].double()
        row, column = ((d >= low[:, None]) & (d <= high[:, None])).nonzero(as_tuple=True)
        size = torch.bincount(row, minlength=rows)
        rank = torch.arange(len(row), device=p.device) - (size.cumsum(0) - size)[row]
        out[row, filled[row] + rank] = p[:, part][row, column]
        filled += size
    return out


def at_least(p: Tensor, threshold: Tensor) -> Tensor:
    """Mark the pixels of each row that are not below its threshold."""
    return p >= threshold.to(p.dtype)[:, None]


def parts_of(rows: int, n: int) -> list[slice]:
    """Cut the pixels of all rows into parts that can be held at a time."""
    step = max(1, ROOM // max(rows, 1))
    return [slice(start, start + step) for start in range(0, n, step)]
