"""The passes over the pixels as Triton kernels, for NVIDIA GPUs: see `passes` for what they return.

Counts are whole numbers, added in any order. Sums over pixels are made by one program for each part
of a row and each few nodes, in a fixed order, and the parts are added up in a fixed order. Instead
of a logarithm or a division for every pixel and node there is one for many pixels: their factors
1 - p w are multiplied first.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from argmaxf.torch.passes import BINS, Tilt, Window

LANES = 256  # pixels read at a time
# Pixels whose factors are multiplied before a logarithm, a division, or two divisions: their
# product must not underflow where it is divided by.
LOGARITHM, DIVISION, DIVISIONS = 32, 16, 8
PART = LANES * 64  # pixels of one program
ITEMS = 8192  # so few items of a row are looked at one by one
TABLE = ITEMS * 8 * 10  # bytes that the tables of one row need
NODES = 8  # nodes of one program; their number is always a multiple of 8
ONE = tl.constexpr(2044 << 52)


def count(p: Tensor, window: Window) -> tuple[Tensor, Tensor]:
    """Count the items p > 0 in each bin of each window, and those that are no probabilities."""
    rows, n = p.shape
    table = torch.zeros(rows, BINS, dtype=torch.int32, device=p.device)
    other = torch.zeros(rows, 2, dtype=torch.int32, device=p.device)
    grid = (triton.cdiv(n, PART), rows)
    _count[grid](p, n, *window, table, other, BINS, PART, LANES * 4)
    table[:, -1] -= other[:, 0]
    return table.long(), other[:, 1]


def gather(p: Tensor, low: Tensor, high: Tensor, most: int) -> Tensor:
    """Return the keys in [low, high] of each row, at most `most`, in any order, then zeros."""
    rows, n = p.shape
    out = torch.zeros(rows, most, dtype=torch.int64, device=p.device)
    filled = torch.zeros(rows, dtype=torch.int32, device=p.device)
    _gather[(triton.cdiv(n, PART), rows)](p, n, low, high, out, filled, most, PART, LANES * 4)
    return out


def log_products(p: Tensor, tilt: Tilt) -> Tensor:
    """Σ log(1 - p w) over all items of each row, at each node."""
    w = _padded(tilt.w)
    (out,) = _outputs(p, w, 1)
    _log_products[_grid(p, w)](p, p.shape[1], w, out, w.shape[1], PART, LANES, LOGARITHM, NODES)
    total: Tensor = out.sum(1)
    return total[:, : tilt.w.shape[1]]


def sums_between(
    p: Tensor, low: Tensor, high: Tensor, inside: Tilt, outside: Tilt | None
) -> tuple[Tensor, Tensor]:
    """Σ π, and Σ log (1 - p w_in) / (1 - p w_out), over items whose key is in (low, high]."""
    w, x = inside
    w_out = w if outside is None else outside.w
    pi, ratio = _outputs(p, w, 2)
    sizes = (w.shape[1], PART, LANES, DIVISION, NODES)
    _sums_between[_grid(p, w)](
        p, p.shape[1], low, high, w, x, w_out, pi, ratio, outside is not None, *sizes
    )
    return pi.sum(1), ratio.sum(1) if outside is not None else torch.zeros_like(w)


def spread_sums(
    p: Tensor, cut: Tensor, inside: Tilt, outside: Tilt, weight_in: Tensor, weight_out: Tensor
) -> tuple[Tensor, Tensor]:
    """Σ a π and Σ a² π (1 - π) over items whose key is not `cut`."""
    mean, variance = _outputs(p, inside.w, 2)
    sizes = (inside.w.shape[1], PART, LANES, DIVISIONS, NODES // 2)
    grid = (triton.cdiv(p.shape[1], PART), len(p), inside.w.shape[1] // (NODES // 2))
    _spread_sums[grid](
        p, p.shape[1], cut, *inside, *outside, weight_in, weight_out, mean, variance, *sizes
    )
    return mean.sum(1), variance.sum(1)


def _grid(p: Tensor, w: Tensor) -> tuple[int, int, int]:
    return triton.cdiv(p.shape[1], PART), len(p), w.shape[1] // NODES


def _outputs(p: Tensor, w: Tensor, size: int) -> Tensor:
    """Room for the sums of every part of a row."""
    shape = (size, len(p), triton.cdiv(p.shape[1], PART), w.shape[1])
    return torch.empty(shape, dtype=torch.float64, device=p.device)


def _padded(w: Tensor) -> Tensor:
    """Return nodes up to a multiple of NODES."""
    return torch.nn.functional.pad(w, (0, -w.shape[1] % NODES)).contiguous()


@triton.jit
def _key(p):
    """The key of a probability (see `keys`)."""
    number = p.to(tl.float64) + 0.0
    below = number < 0.5
    bits = tl.where(below, number, 1.0 - number).to(tl.int64, bitcast=True)
    return tl.where(below, bits, ONE - bits)


@triton.jit
def _count(
    p, n, top, shift, table, other, BINS: tl.constexpr, PART: tl.constexpr, LANES: tl.constexpr
):
    row = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0).to(tl.int64) * PART
    row_top, row_shift = tl.load(top + row), tl.load(shift + row)
    found = tl.zeros([BINS], tl.int32)
    zeros = tl.zeros([LANES], tl.int32)
    bad = tl.zeros([LANES], tl.int32)
    for i in range(0, PART, LANES):
        place = start + i + tl.arange(0, LANES)
        key = _key(tl.load(p + row * n + place, mask=place < n, other=0.0))
        is_zero = key == 0
        zeros += is_zero.to(tl.int32) * (place < n)
        bad += ((key < 0) | (key > ONE)).to(tl.int32)
        bin = ((row_top - key) >> row_shift) + 1
        bin = tl.minimum(tl.maximum(bin, 0), BINS - 1)
        bin = tl.where(is_zero, BINS - 1, bin).to(tl.int32)
        found += tl.histogram(bin, BINS)
    bins = tl.arange(0, BINS)  # what is beyond the row was read as zeros
    found -= tl.where(bins == BINS - 1, tl.maximum(start + PART - n, 0).to(tl.int32), 0)
    tl.atomic_add(table + row * BINS + bins, found, mask=found != 0)
    tl.atomic_add(other + 2 * row, tl.sum(zeros))
    tl.atomic_add(other + 2 * row + 1, tl.sum(bad))


@triton.jit
def _gather(p, n, low, high, out, filled, most, PART: tl.constexpr, LANES: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0).to(tl.int64) * PART
    row_low, row_high = tl.load(low + row), tl.load(high + row)
    for i in range(0, PART, LANES):
        place = start + i + tl.arange(0, LANES)
        key = _key(tl.load(p + row * n + place, mask=place < n, other=0.0))
        inside = (key >= row_low) & (key <= row_high) & (key > 0)
        ranks = tl.cumsum(inside.to(tl.int32), 0)
        size = tl.sum(inside.to(tl.int32))
        if size > 0:
            rank = tl.atomic_add(filled + row, size) + ranks - 1
            tl.store(out + row * most + rank, key, mask=inside & (rank < most))


@triton.jit
def _log_of(factor_less_one):
    """log(1 + e) to full relative precision; a product that rounding took to 0 stays above it."""
    u = tl.maximum(1.0 + factor_less_one, 1e-30)
    exact = tl.where(u == 1.0, 1.0, u - 1.0)
    return tl.where(u == 1.0, factor_less_one, tl.log(u) * (factor_less_one / exact))


@triton.jit
def _expm1(y):
    """e^y - 1 for y ≤ 0 to full relative precision."""
    e = tl.exp(y)
    log_e = tl.log(tl.maximum(e, 1e-30))
    corrected = (e - 1.0) * (y / tl.where(log_e == 0.0, 1.0, log_e))
    return tl.where(e == 1.0, y, tl.where(e < 1e-5, e - 1.0, corrected))


@triton.jit
def _log_products(
    p,
    n,
    w,
    out,
    nodes,
    PART: tl.constexpr,
    LANES: tl.constexpr,
    TOGETHER: tl.constexpr,
    NODES: tl.constexpr,
):
    row = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0).to(tl.int64) * PART
    node = tl.program_id(2) * NODES + tl.arange(0, NODES)
    row_w = tl.load(w + row * nodes + node)[:, None]
    total = tl.zeros([NODES, LANES], tl.float64)
    if tl.max(row_w) > 0.0:
        for i in range(0, PART, LANES * TOGETHER):
            less_one = tl.zeros([NODES, LANES], tl.float64)  # the product of the factors - 1
            for j in tl.static_range(TOGETHER):
                place = start + i + j * LANES + tl.arange(0, LANES)
                d = tl.load(p + row * n + place, mask=place < n, other=0.0)
                y = d.to(tl.float64)[None, :] * row_w
                less_one = less_one - y * (1.0 + less_one)
            total += _log_of(less_one)
    place = (row * tl.num_programs(0) + tl.program_id(0)) * nodes + node
    tl.store(out + place, tl.sum(total, 1))


@triton.jit
def _sums_between(
    p,
    n,
    low,
    high,
    w,
    x,
    w_out,
    pi,
    ratio,
    TWO: tl.constexpr,
    nodes,
    PART: tl.constexpr,
    LANES: tl.constexpr,
    TOGETHER: tl.constexpr,
    NODES: tl.constexpr,
):
    row = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0).to(tl.int64) * PART
    node = tl.program_id(2) * NODES + tl.arange(0, NODES)
    row_low, row_high = tl.load(low + row), tl.load(high + row)
    row_w = tl.load(w + row * nodes + node)[:, None]
    row_x = tl.load(x + row * nodes + node)
    row_w_out = tl.load(w_out + row * nodes + node)[:, None]
    least = tl.maximum(row_x, 1e-18)[:, None]
    total = tl.zeros([NODES, LANES], tl.float64)
    logs = tl.zeros([NODES, LANES], tl.float64)
    for i in range(0, PART, LANES * TOGETHER):
        denominator = tl.full([NODES, LANES], 1.0, tl.float64)
        numerator = tl.zeros([NODES, LANES], tl.float64)
        inner = tl.zeros([NODES, LANES], tl.float64)
        outer = tl.zeros([NODES, LANES], tl.float64)
        for j in tl.static_range(TOGETHER):
            place = start + i + j * LANES + tl.arange(0, LANES)
            d = tl.load(p + row * n + place, mask=place < n, other=0.0)
            key = _key(d)
            d = tl.where((key > row_low) & (key <= row_high), d.to(tl.float64), 0.0)[None, :]
            y = d * row_w
            factor = tl.maximum(1.0 - y, least)
            numerator = numerator * factor + d * denominator
            denominator = denominator * factor
            if TWO:
                inner = inner - y * (1.0 + inner)
                outer = outer - d * row_w_out * (1.0 + outer)
        total += numerator / denominator
        if TWO:
            logs += _log_of(inner) - _log_of(outer)
    place = (row * tl.num_programs(0) + tl.program_id(0)) * nodes + node
    tl.store(pi + place, tl.sum(total, 1) * row_x)
    if TWO:
        tl.store(ratio + place, tl.sum(logs, 1))


@triton.jit
def _spread_sums(
    p,
    n,
    cut,
    w,
    x,
    w_out,
    x_out,
    weight_in,
    weight_out,
    mean,
    variance,
    nodes,
    PART: tl.constexpr,
    LANES: tl.constexpr,
    TOGETHER: tl.constexpr,
    NODES: tl.constexpr,
):
    row = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0).to(tl.int64) * PART
    node = tl.program_id(2) * NODES + tl.arange(0, NODES)
    row_cut = tl.load(cut + row)
    a_in, a_out = tl.load(weight_in + row), tl.load(weight_out + row)
    w_in, w_other = tl.load(w + row * nodes + node), tl.load(w_out + row * nodes + node)
    x_in, x_other = tl.load(x + row * nodes + node), tl.load(x_out + row * nodes + node)
    total = tl.zeros([NODES, LANES], tl.float64)
    squares = tl.zeros([NODES, LANES], tl.float64)
    for i in range(0, PART, LANES * TOGETHER):
        product = tl.full([NODES, LANES], 1.0, tl.float64)
        first = tl.zeros([NODES, LANES], tl.float64)
        second = tl.zeros([NODES, LANES], tl.float64)
        for j in tl.static_range(TOGETHER):
            place = start + i + j * LANES + tl.arange(0, LANES)
            d = tl.load(p + row * n + place, mask=place < n, other=0.0)
            key = _key(d)
            above = (key > row_cut)[None, :]
            d = tl.where(key == row_cut, 0.0, d.to(tl.float64))[None, :]
            a = tl.where(above, a_in, a_out) * d
            b = tl.where(above, a_in, a_out) * a * (1.0 - d)
            tilted = tl.where(above, w_in[:, None], w_other[:, None])
            x_here = tl.where(above, x_in[:, None], x_other[:, None])
            factor = tl.maximum(1.0 - d * tilted, tl.maximum(x_here, 1e-18))
            part = x_here * product
            second = second * (factor * factor) + b * part * product
            first = first * factor + a * part
            product = product * factor
        total += first / product
        squares += second / (product * product)
    place = (row * tl.num_programs(0) + tl.program_id(0)) * nodes + node
    tl.store(mean + place, tl.sum(total, 1))
    tl.store(variance + place, tl.sum(squares, 1))


def climb(form: Any, bins: Any, start: Any, exact: bool) -> tuple[Tensor, ...]:
    """Return k, f, ceiling, falls and rises of `form.climb`, by one program for each row."""
    c, b_in, b_out, _, s1 = form.coefficients
    rows, size = bins.size.shape
    f = torch.empty(2, rows, size + 1, dtype=torch.float64, device=bins.size.device)
    ceiling = torch.empty(rows, size, dtype=torch.float64, device=bins.size.device)
    flags = torch.empty(2, rows, size, dtype=torch.bool, device=bins.size.device)
    numbers = _numbers(float(c), float(s1), bins.size.device)
    nodes = triton.next_power_of_2(form.u.shape[1])
    _climb[(rows,)](
        *bins,
        *start,
        *(form.u, form.weight, *form.inside, *form.outside, numbers),
        *(*f, ceiling, *flags, size, form.u.shape[1]),
        *(exact, b_in != b_out, b_out >= b_in, max(1, 2048 // nodes), nodes),
        num_warps=8,
    )
    return (*f, ceiling, *flags)


@functools.lru_cache(maxsize=64)
def _numbers(c: float, s1: float, device: torch.device) -> Tensor:
    """Numbers of full precision: as arguments they would be single."""
    return torch.tensor([c, s1], dtype=torch.float64, device=device)


@triton.jit
def _share(p, w, x):
    """p / (1 - p w)."""
    return p / tl.where(p < 0.5, 1.0 - p * w, x + (1.0 - p) * w)


@triton.jit
def _climb(
    size,
    low,
    high,
    start_k,
    start_a,
    start_q,
    u,
    weight,
    w_in,
    x_in,
    w_out,
    x_out,
    numbers,
    k_at,
    f_at,
    ceiling,
    falls,
    rises,
    bins,
    nodes,
    EXACT: tl.constexpr,
    TWO: tl.constexpr,
    GROWS: tl.constexpr,
    TILE: tl.constexpr,
    NODES: tl.constexpr,
):
    """The lines of `form.climb_in_torch`, a few bins at a time."""
    row = tl.program_id(0).to(tl.int64)
    node = tl.arange(0, NODES)
    real = node < nodes
    place = row * nodes + node
    c, s1 = tl.load(numbers), tl.load(numbers + 1)
    uu = tl.load(u + place, mask=real, other=0.0)[None, :]
    omega = tl.load(weight + place, mask=real, other=0.0)[None, :]
    wi = tl.load(w_in + place, mask=real, other=0.0)[None, :]
    xi = tl.load(x_in + place, mask=real, other=1.0)[None, :]
    wo = tl.load(w_out + place, mask=real, other=0.0)[None, :]
    xo = tl.load(x_out + place, mask=real, other=1.0)[None, :]
    omega = omega * tl.exp(-uu * s1)
    a_low = tl.load(start_a + place, mask=real, other=0.0)[None, :]
    q_low = tl.load(start_q + place, mask=real, other=0.0)[None, :]
    a_high, q_high = a_low, q_low
    k = tl.load(start_k + row)
    f = tl.sum(omega * tl.exp(q_low - uu * k) * a_low)
    e, loss, pull = tl.exp(-uu), -_expm1(-uu), wo - wi
    k_at, f_at = k_at + row * (bins + 1), f_at + row * (bins + 1)
    tl.store(k_at, k)
    tl.store(f_at, f)
    for first in range(0, bins, TILE):
        bin = first + tl.arange(0, TILE)
        there = bin < bins
        n = tl.load(size + row * bins + bin, mask=there, other=0.0)
        p_low = tl.load(low + row * bins + bin, mask=there, other=0.0)[:, None]
        p_high = tl.load(high + row * bins + bin, mask=there, other=0.0)[:, None]
        after_k = k + tl.cumsum(n, 0)
        before_k = after_k - n
        n2 = n[:, None]
        share_low, share_high = _share(p_low, wi, xi), _share(p_high, wi, xi)
        gain_low, gain_high = c * xi * n2 * share_low, c * xi * n2 * share_high
        low_b = a_low + tl.cumsum(gain_low, 0)
        high_b = a_high + tl.cumsum(gain_high, 0)
        low_a = low_b - gain_low
        before, after = tl.exp(-uu * before_k[:, None]), tl.exp(-uu * after_k[:, None])
        late = tl.exp(-uu * tl.maximum(after_k - 1.0, 0.0)[:, None])
        if TWO:
            out_low, out_high = _share(p_low, wo, xo), _share(p_high, wo, xo)
            r_low, r_high = n2 * _log_of(pull * out_low), n2 * _log_of(pull * out_high)
            least_r, most_r = tl.minimum(r_low, r_high), tl.maximum(r_low, r_high)
            ql_b, qh_b = q_low + tl.cumsum(least_r, 0), q_high + tl.cumsum(most_r, 0)
            ql_a, qh_a = ql_b - least_r, qh_b - most_r
            sl_a, sl_b = tl.exp(tl.minimum(ql_a, 0.0)), tl.exp(tl.minimum(ql_b, 0.0))
            sl_a, sl_b = omega * sl_a, omega * sl_b
            sh_a, sh_b = tl.exp(tl.minimum(qh_a, 0.0)), tl.exp(tl.minimum(qh_b, 0.0))
            sh_a, sh_b = omega * sh_a, omega * sh_b
            lowest = (sl_a if GROWS else sl_b) * low_a
            highest = (sh_b if GROWS else sh_a) * high_b
            end_a, end_b = c * xi + pull * low_a, c * xi + pull * high_b
            least, most = tl.minimum(end_a, end_b), tl.maximum(end_a, end_b)
            small = (sl_a if GROWS else sl_b) * out_low
            large = sh_b * share_high if GROWS else sh_a * out_high
            least = tl.where(least > 0.0, small, large) * least
            most = tl.where(most > 0.0, large, small) * most
            scale_a, scale_b, y = sl_a, sl_b, r_low - uu * n2
            q_low, q_high = q_low + tl.sum(least_r, 0)[None, :], q_high + tl.sum(most_r, 0)[None, :]
        else:
            scale_a = omega * tl.exp(q_low)
            scale_b = scale_a
            lowest, highest = scale_a * low_a, scale_a * high_b
            least, most = scale_a * c * xi * share_low, scale_a * c * xi * share_high
            y = -uu * n2
        down = tl.sum(late * loss * lowest - after * tl.minimum(most, 0.0), 1)
        up = tl.sum(before * e * tl.maximum(most, 0.0), 1)
        does_fall = up < down - 1e-12 * down
        down = tl.sum(before * loss * highest - before * e * tl.minimum(least, 0.0), 1)
        up = tl.sum(after * tl.maximum(least, 0.0), 1)
        does_rise = up > down + 1e-12 * down
        if EXACT:
            steps = tl.sum(before * scale_a * (low_a * _expm1(y) + tl.exp(y) * gain_low), 1)
            here = f + tl.cumsum(steps, 0)
            f += tl.sum(steps)
        else:
            here = tl.sum(after * scale_b * low_b, 1)
        tl.store(k_at + bin + 1, after_k, mask=there)
        tl.store(f_at + bin + 1, here, mask=there)
        tl.store(ceiling + row * bins + bin, tl.sum(before * e * highest, 1), mask=there)
        tl.store(falls + row * bins + bin, does_fall, mask=there)
        tl.store(rises + row * bins + bin, does_rise, mask=there)
        k += tl.sum(n)
        a_low += tl.sum(gain_low, 0)[None, :]
        a_high += tl.sum(gain_high, 0)[None, :]
