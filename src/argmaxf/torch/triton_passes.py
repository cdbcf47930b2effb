"""The passes over the pixels as Triton kernels, for NVIDIA GPUs: see `passes` for what they return.

Counts are whole numbers, added in any order. Sums over pixels are made by one program for each part
of a row and each few nodes, in a fixed order, and the parts are added up in a fixed order. Instead
of a logarithm or a division for every pixel and node there is one for many pixels: their factors
1 - p w are multiplied first.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from argmaxf.torch.form import NodeTilt
from argmaxf.torch.triton_counts import at_least, few, gather, keep, table
from argmaxf.torch.triton_numbers import ceil_div, log_of, number_of
from argmaxf.torch.triton_powers import powers

__all__ = [
    "at_least",
    "few",
    "gather",
    "keep",
    "log_products",
    "powers",
    "reciprocals",
    "spread_sums",
    "sums_between",
    "table",
]

LANES = 128  # pixels read at a time
# Pixels whose factors are multiplied before a logarithm, a division, or division by a square: their
# product must not underflow where it is divided by.
LOGARITHM, DIVISION, DIVISIONS = 32, 16, 8
PART, LARGE_PART = LANES * 128, LANES * 512  # pixels of one program, and where there are many
MANY = 1 << 24
NODES = 8  # nodes of one program; their number is always a multiple of 8


def log_products(p: Tensor, tilt: NodeTilt) -> Tensor:
    """Σ log(1 - p w) over all items of each row, at each node."""
    w = tilt.w
    if w.shape[1] % NODES:
        w = torch.nn.functional.pad(w, (0, -w.shape[1] % NODES))
    (out,) = _outputs(p, w, 1)
    sizes = (w.shape[1], _part(p), LANES, LOGARITHM, NODES)
    _log_products[_grid(p, w)](p, p.shape[1], w, out, *sizes)
    total: Tensor = out.sum(1)
    return total[:, : tilt.w.shape[1]]


def sums_between(
    p: Tensor,
    low: Tensor,
    high: Tensor,
    inside: NodeTilt,
    outside: NodeTilt,
    b_in: float,
    b_out: float,
) -> tuple[Tensor, Tensor | None]:
    """Σ π, and Σ log (1 - p w_in) / (1 - p w_out), over items whose key is in (low, high]."""
    two = b_in != b_out
    pi, ratio = _outputs(p, inside.w, 2)
    sizes = (inside.w.shape[1], b_in != 0.0, two, _part(p), LANES, DIVISION, NODES)
    _sums_between[_grid(p, inside.w)](
        p, p.shape[1], low, high, *inside, outside.w, pi, ratio, *sizes
    )
    return pi.sum(1), ratio.sum(1) if two else None


def spread_sums(
    p: Tensor, cut: Tensor, tilt: NodeTilt, weight_in: Tensor, weight_out: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Σ a π and Σ a² π (1 - π) of items whose key is not `cut`; how many are above and at it."""
    mean, variance = _outputs(p, tilt.w, 2)
    counts = torch.zeros(len(p), 3, dtype=torch.int64, device=p.device)
    sizes = (tilt.w.shape[1], _part(p), LANES, DIVISIONS, NODES)
    weights = weight_in.contiguous(), weight_out.contiguous()
    _spread_sums[_grid(p, tilt.w)](
        p, p.shape[1], cut, *tilt, *weights, mean, variance, counts, *sizes
    )
    return mean.sum(1), variance.sum(1), counts


def reciprocals(p: Tensor, scale: Tensor, tilt: NodeTilt) -> Tensor:
    """Σ_m scale_m / (1 - p w_m) for each item of each row."""
    out = torch.empty(p.shape, dtype=torch.float64, device=p.device)
    n, nodes = p.shape[1], scale.shape[1]
    grid = ceil_div(n, LANES * 4), len(p)
    if n:
        _reciprocals[grid](p, n, scale.contiguous(), *tilt, out, nodes, LANES * 4)
    return out


def _part(p: Tensor) -> int:
    """How many pixels one program sums up: every processor must get some."""
    return LARGE_PART if p.numel() >= MANY else PART


def _grid(p: Tensor, w: Tensor) -> tuple[int, int, int]:
    return ceil_div(p.shape[1], _part(p)), len(p), w.shape[1] // NODES


def _outputs(p: Tensor, w: Tensor, size: int) -> Tensor:
    """Room for the sums of every part of a row."""
    shape = (size, len(p), ceil_div(p.shape[1], _part(p)), w.shape[1])
    return torch.empty(shape, dtype=torch.float64, device=p.device)


@triton.jit
def _below_one(w):
    """w, or a number below 1 at nodes without weight to speak of: no factor 1 - p w is 0."""
    return tl.minimum(w, 1.0 - tl.exp(tl.full([], -36.7, tl.float64)))


@triton.jit(do_not_specialize=["n", "nodes"])
def _log_products(
    p, n, w, out, nodes,
    PART: tl.constexpr, LANES: tl.constexpr, TOGETHER: tl.constexpr, NODES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0).to(tl.int64) * PART
    node = tl.program_id(2) * NODES + tl.arange(0, NODES)
    row_w = tl.load(w + row * nodes + node)[:, None]
    total = tl.zeros([NODES, LANES], tl.float64)
    if tl.max(row_w) > 0.0:
        for i in range(0, tl.minimum(PART, n - start), LANES * TOGETHER):
            less_one = tl.zeros([NODES, LANES], tl.float64)  # the product of the factors - 1
            for j in tl.static_range(TOGETHER):
                place = start + i + j * LANES + tl.arange(0, LANES)
                d = tl.load(p + row * n + place, mask=place < n, other=0.0)
                y = d.to(tl.float64)[None, :] * row_w
                less_one = less_one - y * (1.0 + less_one)
            total += log_of(less_one)
    place = (row * tl.num_programs(0) + tl.program_id(0)) * nodes + node
    tl.store(out + place, tl.sum(total, 1))


@triton.jit(do_not_specialize=["n", "nodes"])
def _sums_between(
    p, n, low, high, w, x, w_out, pi, ratio, nodes,
    INSIDE: tl.constexpr, TWO: tl.constexpr, PART: tl.constexpr, LANES: tl.constexpr,
    TOGETHER: tl.constexpr, NODES: tl.constexpr,
):  # fmt: skip
    """INSIDE: w_in is not 0. TWO: w_out is another, so that the logarithms count, too."""
    row = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0).to(tl.int64) * PART
    node = tl.program_id(2) * NODES + tl.arange(0, NODES)
    row_low, row_high = number_of(tl.load(low + row)), number_of(tl.load(high + row))
    row_w = _below_one(tl.load(w + row * nodes + node))[:, None]
    row_x = tl.load(x + row * nodes + node)
    row_w_out = tl.load(w_out + row * nodes + node)[:, None]
    total = tl.zeros([NODES, LANES], tl.float64)
    logs = tl.zeros([NODES, LANES], tl.float64)
    stop = tl.minimum(PART, n - start)
    if (row_high <= row_low) | ((tl.max(row_w) == 0.0) & (tl.max(row_w_out) == 0.0)):
        stop = stop * 0  # nothing is between, or these nodes have no weight
    for i in range(0, stop, LANES * TOGETHER):
        denominator = tl.full([NODES, LANES], 1.0, tl.float64)
        numerator = tl.zeros([NODES, LANES], tl.float64)
        inner = tl.zeros([NODES, LANES], tl.float64)
        outer = tl.zeros([NODES, LANES], tl.float64)
        for j in tl.static_range(TOGETHER):
            place = start + i + j * LANES + tl.arange(0, LANES)
            d = tl.load(p + row * n + place, mask=place < n, other=0.0).to(tl.float64)
            d = tl.where((d > row_low) & (d <= row_high), d, 0.0)[None, :]
            if INSIDE:
                factor = 1.0 - d * row_w
                numerator = numerator * factor + d * denominator
                denominator = denominator * factor
            else:
                numerator += d
            if TWO:
                outer = outer - d * row_w_out * (1.0 + outer)
                if INSIDE:
                    inner = inner - d * row_w * (1.0 + inner)
        total += numerator / denominator if INSIDE else numerator
        if TWO:
            logs += log_of(inner) - log_of(outer) if INSIDE else -log_of(outer)
    place = (row * tl.num_programs(0) + tl.program_id(0)) * nodes + node
    tl.store(pi + place, tl.sum(total, 1) * row_x)
    if TWO:
        tl.store(ratio + place, tl.sum(logs, 1))


@triton.jit(do_not_specialize=["n", "nodes"])
def _spread_sums(
    p, n, cut, w, x, weight_in, weight_out, mean, variance, counts, nodes,
    PART: tl.constexpr, LANES: tl.constexpr, TOGETHER: tl.constexpr, NODES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0).to(tl.int64) * PART
    node = tl.program_id(2) * NODES + tl.arange(0, NODES)
    row_cut = number_of(tl.load(cut + row))
    a_in, a_out = tl.load(weight_in + row), tl.load(weight_out + row)
    row_w = _below_one(tl.load(w + row * nodes + node))[:, None]
    row_x = tl.load(x + row * nodes + node)
    total = tl.zeros([NODES, LANES], tl.float64)
    squares = tl.zeros([NODES, LANES], tl.float64)
    n_above, n_equal = tl.zeros([LANES], tl.int32), tl.zeros([LANES], tl.int32)
    for i in range(0, tl.minimum(PART, n - start), LANES * TOGETHER):
        product = tl.full([NODES, LANES], 1.0, tl.float64)
        first = tl.zeros([NODES, LANES], tl.float64)
        second = tl.zeros([NODES, LANES], tl.float64)
        for j in tl.static_range(TOGETHER):
            place = start + i + j * LANES + tl.arange(0, LANES)
            d = tl.load(p + row * n + place, mask=place < n, other=0.0).to(tl.float64)
            above, equal = d > row_cut, d == row_cut
            n_above += above.to(tl.int32)
            n_equal += equal.to(tl.int32)
            a = tl.where(equal, 0.0, tl.where(above, a_in, a_out))
            d = tl.where(a == 0.0, 0.0, d)
            factor = 1.0 - d[None, :] * row_w
            square = factor * factor
            second = second * square + (a * a * d * (1.0 - d))[None, :] * (product * product)
            first = first * factor + (a * d)[None, :] * product
            product = product * factor
        inverse = 1.0 / product
        total += first * inverse
        squares += second * inverse * inverse
    place = (row * tl.num_programs(0) + tl.program_id(0)) * nodes + node
    tl.store(mean + place, tl.sum(total, 1) * row_x)
    tl.store(variance + place, tl.sum(squares, 1) * row_x)
    if tl.program_id(2) == 0:
        tl.atomic_add(counts + 3 * row, tl.sum(n_above).to(tl.int64))
        tl.atomic_add(counts + 3 * row + 1, tl.sum(n_equal).to(tl.int64))


@triton.jit(do_not_specialize=["n", "nodes"])
def _reciprocals(p, n, scale, w, x, out, nodes, LANES: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    d = tl.load(p + row * n + place, mask=place < n, other=0.0).to(tl.float64)
    below = d < 0.5
    total = tl.zeros([LANES], tl.float64)
    for m in range(nodes):
        node = row * nodes + m
        row_w, row_x = tl.load(w + node), tl.load(x + node)
        total += tl.load(scale + node) / tl.where(below, 1.0 - d * row_w, row_x + (1.0 - d) * row_w)
    tl.store(out + row * n + place, total, mask=place < n)
