"""Bounds on f along the bins of tables as Triton kernels: see `climb`.

The bins of a row are shared among programs: one kernel adds up what each of them has, the next one
begins with what is above. Where f is a sum of differences, a last one adds up those.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from argmaxf.torch.climb import BinLadder
from argmaxf.torch.form import RowForm, State
from argmaxf.torch.passes import BinTable
from argmaxf.torch.triton_numbers import (
    block_of,
    ceil_div,
    expm1,
    log_ratio,
    number_of,
    numbers_on,
    pull_of,
    share_of,
)

ROOM = 2048  # bins × nodes that a program has at a time
PROGRAMS, MOST_PARTS = 1024, 64  # in all, and for a row


def climb(
    form: RowForm, table: BinTable, start: State, *, exact: bool, single: bool = False
) -> BinLadder:
    """Bound f at the borders of all bins, and inside of them unless they are single items."""
    _, b_in, b_out, _, _ = form.coefficients
    (rows, bins), nodes = table.size.shape, form.u.shape[1]
    block, two, grows = max(16, block_of(nodes)), b_in != b_out, b_out >= b_in
    tile = max(1, ROOM // block)
    part = tile * ceil_div(ceil_div(bins, tile), max(1, min(MOST_PARTS, PROGRAMS // rows)))
    grid = ceil_div(bins, part), rows
    k, f = torch.empty(2, rows, bins + 1, dtype=torch.float64, device=table.size.device)
    base = torch.empty_like(start.k)
    ceiling = torch.empty(rows, 1 if single else bins, dtype=torch.float64, device=f.device)
    flags = torch.empty(2, *ceiling.shape, dtype=torch.bool, device=f.device)
    sums = torch.empty(rows, grid[0], 5, block, dtype=torch.float64, device=f.device)
    numbers, tilts = numbers_on(form.coefficients, f.device), (*form.inside, *form.outside)
    if grid[0] > 1:
        sizes = bins, nodes, part, exact, two, grows, tile, block
        _parts[grid](*table, *tilts, sums, *sizes, num_warps=8)
    _climb[grid](
        *(*table, *start, form.u, form.weight, *tilts, numbers, sums, k, f, base, ceiling, *flags),
        *(bins, nodes, part, exact, single, two, grows, tile, block, MOST_PARTS),
        num_warps=8,
    )
    if exact and grid[0] > 1:
        own, f = f, torch.empty_like(f)
        _join[(ceil_div(bins + 1, ROOM), rows)](own, f, bins, part, ROOM)
    return BinLadder(k, f, base, ceiling, flags[0], flags[1])


@triton.jit
def _tilts(w_in, x_in, w_out, x_out, place, real):
    """Load w and x inside and outside at the nodes of a row."""
    wi = tl.load(w_in + place, mask=real, other=0.0)[None, :]
    xi = tl.load(x_in + place, mask=real, other=1.0)[None, :]
    wo = tl.load(w_out + place, mask=real, other=0.0)[None, :]
    xo = tl.load(x_out + place, mask=real, other=1.0)[None, :]
    return wi, xi, wo, xo


@triton.jit(do_not_specialize=["bins", "nodes", "part"])
def _parts(
    size, low, high, w_in, x_in, w_out, x_out, sums, bins, nodes, part,
    EXACT: tl.constexpr, TWO: tl.constexpr, GROWS: tl.constexpr, TILE: tl.constexpr,
    NODES: tl.constexpr,
):  # fmt: skip
    """Add up the items of a part of the bins, Σ p / (1 - p w) and log Q from below and above."""
    row, node = tl.program_id(1).to(tl.int64), tl.arange(0, NODES)
    real, place = node < nodes, row * nodes + node
    wi, xi, wo, xo = _tilts(w_in, x_in, w_out, x_out, place, real)
    count, a_low = tl.zeros([NODES], tl.float64), tl.zeros([NODES], tl.float64)
    a_high, q_low, q_high = a_low, a_low, a_low
    start = tl.program_id(0) * part
    for first in range(start, tl.minimum(start + part, bins), TILE):
        bin = first + tl.arange(0, TILE)
        there, at = bin < bins, row * bins + bin
        n = tl.load(size + at, mask=there, other=0).to(tl.float64)[:, None]
        p_low = number_of(tl.load(low + at, mask=there, other=0))[:, None]
        p_high = p_low
        count += tl.sum(n)
        a_low += tl.sum(n * share_of(p_low, wi, xi), 0)
        if not EXACT:
            p_high = number_of(tl.load(high + at, mask=there, other=0))[:, None]
            a_high += tl.sum(n * share_of(p_high, wi, xi), 0)
        if TWO:
            r_low = n * log_ratio(p_low, wi, xi, wo, xo, GROWS)
            r_high = n * log_ratio(p_high, wi, xi, wo, xo, GROWS)
            q_low += tl.sum(tl.minimum(r_low, r_high), 0)
            q_high += tl.sum(tl.maximum(r_low, r_high), 0)
    sums += (row * tl.num_programs(0) + tl.program_id(0)) * 5 * NODES + node
    tl.store(sums, count)
    tl.store(sums + NODES, a_low)
    tl.store(sums + 2 * NODES, a_low if EXACT else a_high)
    tl.store(sums + 3 * NODES, q_low)
    tl.store(sums + 4 * NODES, q_high)


@triton.jit
def _above(sums, which, row, NODES: tl.constexpr, PARTS: tl.constexpr):
    """Add up one kind of sums of the parts above this program's."""
    part, node = tl.arange(0, PARTS)[:, None], tl.arange(0, NODES)[None, :]
    place = ((row * tl.num_programs(0) + part) * 5 + which) * NODES + node
    return tl.sum(tl.load(sums + place, mask=part < tl.program_id(0), other=0.0), 0)[None, :]


@triton.jit
def _first_state(
    sums, k, a, q, gain, row,
    EXACT: tl.constexpr, TWO: tl.constexpr, NODES: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """k, A and log Q above this program's bins, the last two from below and from above."""
    a_high, q_low, q_high = a, q, q
    if not EXACT:
        a_high += gain * _above(sums, 2, row, NODES, PARTS)
    if TWO:
        q_low += _above(sums, 3, row, NODES, PARTS)
        q_high += _above(sums, 4, row, NODES, PARTS)
    k += tl.max(_above(sums, 0, row, NODES, PARTS))
    return k, a + gain * _above(sums, 1, row, NODES, PARTS), a_high, q_low, q_high


@triton.jit(do_not_specialize=["bins", "part"])
def _join(f_at, joined, bins, part, LANES: tl.constexpr):
    """Add to the f of each part, which begins at 0, that at the end of those above it."""
    border = tl.program_id(0) * LANES + tl.arange(0, LANES)
    row = tl.program_id(1).to(tl.int64) * (bins + 1)
    before = tl.zeros([LANES], tl.float64)
    for end in range(part, bins, part):
        before += tl.where(border > end, tl.load(f_at + row + end), 0.0)
    there = border <= bins
    here = tl.load(f_at + row + border, mask=there, other=0.0)
    tl.store(joined + row + border, before + here, mask=there)


@triton.jit
def _store_first(k_at, f_at, base, k, value, EXACT: tl.constexpr):
    """Store k and f at the first border of a row."""
    tl.store(k_at, k)
    tl.store(f_at, 0.0 if EXACT else value)
    tl.store(base, value)


@triton.jit
def _store_bounds(ceiling, falls, rises, at, there, k0, k1, uu, lowest, highest, least, most):
    """Store the ceiling of f in each bin, and whether f only falls or only rises there."""
    e, loss = tl.exp(-uu), -expm1(-uu)
    before, after = tl.exp(-uu * k0[:, None]), tl.exp(-uu * k1[:, None])
    late = tl.exp(-uu * tl.maximum(k1 - 1.0, 0.0)[:, None])
    down = tl.sum(late * loss * lowest - after * tl.minimum(most, 0.0), 1)
    up = tl.sum(before * e * tl.maximum(most, 0.0), 1)
    tl.store(falls + at, up < down - 1e-12 * down, mask=there)
    down = tl.sum(before * loss * highest - before * e * tl.minimum(least, 0.0), 1)
    up = tl.sum(after * tl.maximum(least, 0.0), 1)
    tl.store(rises + at, up > down + 1e-12 * down, mask=there)
    tl.store(ceiling + at, tl.sum(before * e * highest, 1), mask=there)


@triton.jit
def _shares_above(size, low, at, above, w, x):
    """Σ p / (1 - p w) over the bins above each one, of those that are marked as such."""
    n = tl.load(size + at - 1, mask=above, other=0).to(tl.float64)
    p = number_of(tl.load(low + at - 1, mask=above, other=0))
    return tl.cumsum(n[:, None] * share_of(p[:, None], w, x), 0)


@triton.jit
def _two_tilts(
    n, p_low, p_high, a0, a1, q_low, q_high, gain, share_high, wi, xi, wo, xo, omega,
    GROWS: tl.constexpr,
):  # fmt: skip
    """Bounds on Q, Φ and its steps where Q changes, and the steps of log Q (`climb`)."""
    pull = pull_of(wi, xi, wo, xo)
    out_low, out_high = share_of(p_low, wo, xo), share_of(p_high, wo, xo)
    r_low = n * log_ratio(p_low, wi, xi, wo, xo, GROWS)
    r_high = n * log_ratio(p_high, wi, xi, wo, xo, GROWS)
    least_r, most_r = tl.minimum(r_low, r_high), tl.maximum(r_low, r_high)
    low1, high1 = q_low + tl.cumsum(least_r, 0), q_high + tl.cumsum(most_r, 0)
    low0, high0 = low1 - least_r, high1 - most_r
    low0, low1 = omega * tl.exp(tl.minimum(low0, 0.0)), omega * tl.exp(tl.minimum(low1, 0.0))
    high0, high1 = omega * tl.exp(tl.minimum(high0, 0.0)), omega * tl.exp(tl.minimum(high1, 0.0))
    lowest = (low0 if GROWS else low1) * a0
    highest = (high1 if GROWS else high0) * a1
    end0, end1 = gain + pull * a0, gain + pull * a1
    small = (low0 if GROWS else low1) * out_low
    large = high1 * share_high if GROWS else high0 * out_high
    least, most = tl.minimum(end0, end1), tl.maximum(end0, end1)
    least = tl.where(least > 0.0, small, large) * least
    most = tl.where(most > 0.0, large, small) * most
    q_low, q_high = q_low + tl.sum(least_r, 0)[None, :], q_high + tl.sum(most_r, 0)[None, :]
    return low0, low1, lowest, highest, least, most, r_low, q_low, q_high


@triton.jit
def _steps(
    n, p, k, k0, r, a, gain, uu, wi, xi, wo, xo,
    TILE: tl.constexpr, SINGLE: tl.constexpr, TWO: tl.constexpr,
):  # fmt: skip
    """What a bin of equal items adds to f, up to ωQ: A (e^y - 1) + e^y (A' - A), y = r - u N."""
    if SINGLE:  # e^y = e^{-u} (1 + pull), and k grows by 1
        e, lost = tl.exp(-uu), expm1(-uu)
        decay = tl.exp(-uu * k) * tl.exp(-uu * tl.arange(0, TILE).to(tl.float64)[:, None])
        pull = pull_of(wi, xi, wo, xo) * share_of(p, wo, xo) if TWO else 0.0
        steps = decay * (a * (lost + e * pull) * n + e * (1.0 + pull) * gain)
    else:
        y = r - uu * n
        steps = tl.exp(-uu * k0[:, None]) * (a * expm1(y) + tl.exp(y) * gain)
    return steps


@triton.jit(do_not_specialize=["bins", "nodes", "part"])
def _climb(
    size, low, high, start_k, start_a, start_q, u, weight, w_in, x_in, w_out, x_out, numbers, sums,
    k_at, f_at, base, ceiling, falls, rises, bins, nodes, part,
    EXACT: tl.constexpr, SINGLE: tl.constexpr, TWO: tl.constexpr, GROWS: tl.constexpr,
    TILE: tl.constexpr, NODES: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """The lines of `climb.climb`, a few bins at a time."""
    row, node = tl.program_id(1).to(tl.int64), tl.arange(0, NODES)
    real, place = node < nodes, row * nodes + node
    c, s1 = tl.load(numbers), tl.load(numbers + 4)
    uu = tl.load(u + place, mask=real, other=0.0)[None, :]
    wi, xi, wo, xo = _tilts(w_in, x_in, w_out, x_out, place, real)
    omega = tl.load(weight + place, mask=real, other=0.0)[None, :] * tl.exp(-uu * s1)
    a = tl.load(start_a + place, mask=real, other=0.0)[None, :]
    q = tl.load(start_q + place, mask=real, other=0.0)[None, :]
    k, f = tl.load(start_k + row), 0.0 * c
    k_at, f_at = k_at + row, f_at + row  # one border more than bins in each row
    if tl.program_id(0) == 0:
        value = tl.sum(omega * tl.exp(q - uu * k) * a)
        _store_first(k_at + row * bins, f_at + row * bins, base + row, k, value, EXACT)
    first = _first_state(sums, k, a, q, c * xi, row, EXACT, TWO, NODES, PARTS)
    k, a_low, a_high, q_low, q_high = first
    start = tl.program_id(0) * part
    for first in range(start, tl.minimum(start + part, bins), TILE):
        bin = first + tl.arange(0, TILE)
        there, at = bin < bins, row * bins + bin
        n = tl.load(size + at, mask=there, other=0).to(tl.float64)
        p_low = number_of(tl.load(low + at, mask=there, other=0))[:, None]
        p_high, share_low = p_low, share_of(p_low, wi, xi)
        k1 = k + tl.cumsum(n, 0)
        share_high, gain = share_low, c * xi * n[:, None] * share_low
        low1 = a_low + tl.cumsum(gain, 0)
        low0, high1 = low1 - gain, low1
        if EXACT and not SINGLE:  # a difference is noise where a run is much more than all above
            low0 = a_low + c * xi * _shares_above(size, low, at, there & (bin > first), wi, xi)
        if not EXACT:
            p_high = number_of(tl.load(high + at, mask=there, other=0))[:, None]
            share_high = share_of(p_high, wi, xi)
            gain_high = c * xi * n[:, None] * share_high
            high1 = a_high + tl.cumsum(gain_high, 0)
            a_high += tl.sum(gain_high, 0)[None, :]
        if TWO:
            scale0, scale1, lowest, highest, least, most, r, q_low, q_high = _two_tilts(
                n[:, None], p_low, p_high, low0, high1, q_low, q_high, c * xi, share_high,
                wi, xi, wo, xo, omega, GROWS,
            )  # fmt: skip
        else:
            scale0, r = omega * tl.exp(q_low), 0.0
            scale1, lowest, highest = scale0, scale0 * low0, scale0 * high1
            least, most = scale0 * c * xi * share_low, scale0 * c * xi * share_high
        if EXACT:  # differences tell neighbouring k apart
            steps = _steps(
                n[:, None], p_low, k, k1 - n, r, low0, gain, uu, wi, xi, wo, xo, TILE, SINGLE, TWO
            )
            steps = tl.sum(scale0 * steps, 1)
            here = f + tl.cumsum(steps, 0)
            f += tl.sum(steps)
        else:
            here = tl.sum(tl.exp(-uu * k1[:, None]) * scale1 * low1, 1)
        tl.store(k_at + at + 1, k1, mask=there)
        tl.store(f_at + at + 1, here, mask=there)
        if not SINGLE:
            _store_bounds(
                ceiling, falls, rises, at, there, k1 - n, k1, uu, lowest, highest, least, most
            )
        k += tl.sum(n)
        a_low += tl.sum(gain, 0)[None, :]
