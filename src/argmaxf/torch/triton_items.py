"""What some pixels are at every node, as Triton kernels for NVIDIA GPUs: see `items`.

The items of a row are shared among programs: one kernel adds up what each of them has, the next one
begins with what is above. Sums are in a fixed order.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from argmaxf.torch.constants import once
from argmaxf.torch.form import NodeTilt, RowForm
from argmaxf.torch.items import CONTEST, State

__all__ = ["climb", "log_products", "reciprocals", "split_sums", "take_best", "tilted_sums"]

ROOM = 2048  # items × nodes that a program has at a time
PROGRAMS, MOST_PARTS = 1024, 64  # in all, and for a row
LANES = 512  # items of a program that has one node after another


def log_products(items: Tensor, tilt: NodeTilt) -> Tensor:
    """Σ log(1 - p w) over the items of each row, at each node."""
    return _part_sums(items, tilt, tilt, "log")[:, :, 0].sum(1)


def tilted_sums(items: Tensor, tilt: NodeTilt) -> tuple[Tensor, Tensor]:
    """Σ π and Σ π (1 - π)."""
    mean, variance = _part_sums(items, tilt, tilt, "pi").sum(1).unbind(1)
    return mean, variance


def reciprocals(items: Tensor, scale: Tensor, tilt: NodeTilt) -> Tensor:
    """Σ_m scale_m / (1 - p w_m) for each item of each row."""
    rows, n = items.shape
    out = torch.empty(rows, n, dtype=torch.float64, device=items.device)
    if n:
        grid = -(-n // LANES), rows
        _reciprocals[grid](items, n, scale.contiguous(), tilt.x, out, scale.shape[1], LANES)
    return out


def climb(form: RowForm, items: Tensor, start: State) -> tuple[Tensor, Tensor]:
    """Return f at the start, and after each item, the latter less that of the first set."""
    c, _, _, _, s1 = form.coefficients
    sums = _part_sums(items, form.inside, form.outside, "climb", form.grows)
    (rows, n), (parts, nodes) = items.shape, (sums.shape[1], sums.shape[3])
    through = sums.cumsum(1)
    block, tile, part = _sizes(rows, n, nodes)
    f = torch.empty(rows, parts, part, dtype=torch.float64, device=items.device)
    total = torch.empty(rows, parts, 1, dtype=torch.float64, device=items.device)
    base = torch.empty_like(start.k)
    _climb[(parts, rows)](
        *(items, n, *start[:3], form.u, form.weight, *form.inside, *form.outside),
        *(_numbers((c, s1), items.device), start.f, through, base, f, total),
        *(nodes, part, form.one_tilt, form.grows, tile, block),
        num_warps=8,
    )
    if parts > 1:  # each part but the first began with 0
        f[:, 1:] += total.cumsum(1)[:, :-1]
    return base, f.view(rows, -1)[:, :n]


def take_best(
    items: Tensor,
    closed: Tensor,
    f: Tensor,
    start: State,
    base: Tensor,
    size: Tensor,
    middle: Tensor,
) -> Tensor:
    """Return the best set that ends where it may, and what `items.take_best` says of it."""
    rows, n = items.shape
    out = torch.empty(8, rows, dtype=torch.float64, device=items.device)
    block = min(4096, max(16, 1 << (n - 1).bit_length()))
    given = closed, f, base, start.k, start.f, size, middle
    _take_best[(rows,)](items, n, *given, out, rows, f.stride(0), CONTEST, block, num_warps=8)
    return out


def split_sums(form: RowForm, items: Tensor, first: Tensor) -> Tensor:
    """Return sums over the first items of each row, inside, and over the others, outside."""
    (rows, n), nodes = items.shape, form.u.shape[1]
    block, tile, part = _sizes(rows, n, nodes)
    parts = max(1, -(-n // part))
    out = torch.empty(5, rows, parts, nodes, dtype=torch.float64, device=items.device)
    _split_sums[(parts, rows)](
        *(items, n, first, *form.inside, *form.outside, out, nodes, part),
        *(form.one_tilt, form.grows, tile, block),
        num_warps=8,
    )
    total: Tensor = out.sum(2)
    return total


def _sizes(rows: int, n: int, nodes: int) -> tuple[int, int, int]:
    """Return the nodes of a block, the items of a tile, and those of one program."""
    block = max(16, 1 << (nodes - 1).bit_length())
    tile = max(1, ROOM // block)
    tiles, programs = -(-n // tile), max(1, min(MOST_PARTS, PROGRAMS // rows))
    return block, tile, tile * max(1, -(-tiles // programs))


def _part_sums(
    items: Tensor, inside: NodeTilt, outside: NodeTilt, kind: str, grows: bool = True
) -> Tensor:
    """Return two sums over the items of each part of a row at each node: see `_sums`."""
    (rows, n), nodes = items.shape, inside.w.shape[1]
    block, tile, part = _sizes(rows, n, nodes)
    parts = max(1, -(-n // part))
    out = torch.empty(rows, parts, 2, nodes, dtype=torch.float64, device=items.device)
    two = outside is not inside
    _sums[(parts, rows)](
        *(items, n, *inside, *outside, out, nodes, part),
        *(kind == "log", kind == "pi", two, grows, tile, block),
        num_warps=8,
    )
    return out


@once
def _numbers(numbers: tuple[float, ...], device: torch.device) -> Tensor:
    """Numbers of full precision: as arguments they would be single."""
    return torch.tensor([float(each) for each in numbers], dtype=torch.float64, device=device)


@triton.jit
def _log_of(less_one):
    """log(1 + e) to full relative precision."""
    u = 1.0 + less_one
    exact = tl.where(u == 1.0, 1.0, u - 1.0)
    return tl.where(u == 1.0, less_one, tl.log(u) * (less_one / exact))


@triton.jit
def _expm1(y):
    """e^y - 1 for y ≤ 0 to full relative precision."""
    e = tl.exp(y)
    log_e = tl.log(tl.maximum(e, 1e-30))
    corrected = (e - 1.0) * (y / tl.where(log_e == 0.0, 1.0, log_e))
    return tl.where(e == 1.0, y, tl.where(e < 1e-5, e - 1.0, corrected))


@triton.jit
def _factor(p, x):
    """1 - p w."""
    return (1.0 - p) + p * x


@triton.jit
def _ratio(p, wi, xi, wo, xo):
    """(1 - p w_in) / (1 - p w_out) - 1 (`form.log_ratio`)."""
    pull = tl.where(xo < 0.5, xi - xo, wo - wi)
    return pull * (p / _factor(p, xo))


@triton.jit
def _log_ratio(p, ratio, xi, xo, GROWS: tl.constexpr):
    """log (1 - p w_in) / (1 - p w_out); GROWS: it is not below 0."""
    near = _log_of(tl.maximum(ratio, -0.5))
    if not GROWS:
        far = tl.log(_factor(p, xi) / _factor(p, xo))
        near = tl.where(ratio > -0.5, near, far)
    return near


@triton.jit
def _tilts(w_in, x_in, w_out, x_out, place, real):
    """Load w and x inside and outside at the nodes of a row."""
    wi = tl.load(w_in + place, mask=real, other=0.0)[None, :]
    xi = tl.load(x_in + place, mask=real, other=1.0)[None, :]
    wo = tl.load(w_out + place, mask=real, other=0.0)[None, :]
    xo = tl.load(x_out + place, mask=real, other=1.0)[None, :]
    return wi, xi, wo, xo


@triton.jit(do_not_specialize=["n", "nodes", "part"])
def _sums(
    items, n, w_in, x_in, w_out, x_out, out, nodes, part,
    LOG: tl.constexpr, PI: tl.constexpr, TWO: tl.constexpr, GROWS: tl.constexpr,
    TILE: tl.constexpr, NODES: tl.constexpr,
):  # fmt: skip
    """Σ log(1 - p w); or Σ π and Σ π (1 - π); or Σ p / (1 - p w_in) and the steps of log Q."""
    row, node = tl.program_id(1).to(tl.int64), tl.arange(0, NODES)
    real, place = node < nodes, row * nodes + node
    wi, xi, wo, xo = _tilts(w_in, x_in, w_out, x_out, place, real)
    first, second = tl.zeros([NODES], tl.float64), tl.zeros([NODES], tl.float64)
    start = tl.program_id(0) * part
    for i in range(start, tl.minimum(start + part, n), TILE):
        item = i + tl.arange(0, TILE)
        p = tl.load(items + row * n + item, mask=item < n, other=0.0).to(tl.float64)[:, None]
        factor = _factor(p, xi)
        if LOG:
            q = p * wi
            near = _log_of(-tl.minimum(q, 0.5))
            first += tl.sum(tl.where(q < 0.5, near, tl.log(factor)), 0)
        elif PI:
            pi = p * xi / factor
            first += tl.sum(pi, 0)
            second += tl.sum(pi * (1.0 - p) / factor, 0)
        else:
            first += tl.sum(p / factor, 0)
            if TWO:
                ratio = _ratio(p, wi, xi, wo, xo)
                second += tl.sum(_log_ratio(p, ratio, xi, xo, GROWS), 0)
    out += (row * tl.num_programs(0) + tl.program_id(0)) * 2 * nodes + node
    tl.store(out, first, mask=real)
    tl.store(out + nodes, second, mask=real)


@triton.jit(do_not_specialize=["n", "nodes", "part"])
def _climb(
    items, n, start_k, start_a, start_q, u, weight, w_in, x_in, w_out, x_out, numbers, start_f,
    through, base, f_at, total, nodes, part,
    ONE_TILT: tl.constexpr, GROWS: tl.constexpr, TILE: tl.constexpr, NODES: tl.constexpr,
):  # fmt: skip
    """The lines of `items.climb`, a few items at a time, from what is above this part on."""
    row, node = tl.program_id(1).to(tl.int64), tl.arange(0, NODES)
    real, place = node < nodes, row * nodes + node
    c, s1 = tl.load(numbers), tl.load(numbers + 1)
    uu = tl.load(u + place, mask=real, other=0.0)[None, :]
    omega = tl.load(weight + place, mask=real, other=0.0)[None, :]
    wi, xi, wo, xo = _tilts(w_in, x_in, w_out, x_out, place, real)
    e, lost, gain = tl.exp(-uu), _expm1(-uu), c * xi
    start = tl.program_id(0) * part
    part_at = row * tl.num_programs(0) + tl.program_id(0)
    above = real & (0 * node + tl.program_id(0) > 0)
    sums_above = through + (part_at - 1) * 2 * nodes + node
    a = tl.load(start_a + place, mask=real, other=0.0)[None, :]
    a += gain * tl.load(sums_above, mask=above, other=0.0)[None, :]
    q = tl.load(start_q + place, mask=real, other=0.0)[None, :]
    q += tl.load(sums_above + nodes, mask=above, other=0.0)[None, :]
    k = tl.load(start_k + row) + s1 + start
    if tl.program_id(0) == 0:
        tl.store(base + row, tl.sum(omega * tl.exp(q - uu * k) * a))
    f = tl.where(tl.program_id(0) == 0, tl.load(start_f + row), 0.0)
    for i in range(start, tl.minimum(start + part, n), TILE):
        tile = tl.arange(0, TILE)
        item = i + tile
        p = tl.load(items + row * n + item, mask=item < n, other=0.0).to(tl.float64)[:, None]
        added = gain * (p / _factor(p, xi))
        before = a + (tl.cumsum(added, 0) - added)
        steps = lost * before + e * added
        log_scale = q - uu * (k + tile.to(tl.float64)[:, None])
        if not ONE_TILT:
            ratio = _ratio(p, wi, xi, wo, xo)
            steps += e * ratio * (before + added)
            log_ratio = _log_ratio(p, ratio, xi, xo, GROWS)
            log_scale += tl.cumsum(log_ratio, 0) - log_ratio
            q += tl.sum(log_ratio, 0)[None, :]
        steps = tl.sum(omega * tl.exp(tl.minimum(log_scale, 0.0)) * steps, 1)
        tl.store(f_at + part_at * part + i - start + tile, f + tl.cumsum(steps, 0), mask=item < n)
        f += tl.sum(steps)
        a += tl.sum(added, 0)[None, :]
        k += TILE
    tl.store(total + part_at, f)


@triton.jit(do_not_specialize=["n", "nodes", "part"])
def _split_sums(
    items, n, cut, w_in, x_in, w_out, x_out, out, nodes, part,
    ONE_TILT: tl.constexpr, GROWS: tl.constexpr, TILE: tl.constexpr, NODES: tl.constexpr,
):  # fmt: skip
    """The lines of `items.split_sums`, for the items of one part of a row."""
    row, node = tl.program_id(1).to(tl.int64), tl.arange(0, NODES)
    real, place = node < nodes, row * nodes + node
    wi, xi, wo, xo = _tilts(w_in, x_in, w_out, x_out, place, real)
    log, pi_in, var_in = (
        tl.zeros([NODES], tl.float64),
        tl.zeros([NODES], tl.float64),
        tl.zeros([NODES], tl.float64),
    )
    pi_out, var_out = log, log
    first, start = tl.load(cut + row), tl.program_id(0) * part
    for i in range(start, tl.minimum(start + part, n), TILE):
        item = i + tl.arange(0, TILE)
        p = tl.load(items + row * n + item, mask=item < n, other=0.0).to(tl.float64)[:, None]
        inside = (item.to(tl.float64) < first)[:, None]
        inverse = 1.0 / tl.where(inside, _factor(p, xi), _factor(p, xo))
        pi = p * tl.where(inside, xi, xo) * inverse
        variance = pi * (1.0 - p) * inverse
        pi_in += tl.sum(tl.where(inside, pi, 0.0), 0)
        var_in += tl.sum(tl.where(inside, variance, 0.0), 0)
        pi_out += tl.sum(tl.where(inside, 0.0, pi), 0)
        var_out += tl.sum(tl.where(inside, 0.0, variance), 0)
        if not ONE_TILT:
            log_ratio = _log_ratio(p, _ratio(p, wi, xi, wo, xo), xi, xo, GROWS)
            log += tl.sum(tl.where(inside, log_ratio, 0.0), 0)
    size = tl.num_programs(0).to(tl.int64) * tl.num_programs(1) * nodes
    out += (row * tl.num_programs(0) + tl.program_id(0)) * nodes + node
    tl.store(out, log, mask=real)
    tl.store(out + size, pi_in, mask=real)
    tl.store(out + 2 * size, var_in, mask=real)
    tl.store(out + 3 * size, pi_out, mask=real)
    tl.store(out + 4 * size, var_out, mask=real)


@triton.jit
def _useful(f_at, closed, row, n, stride, i, BLOCK: tl.constexpr):
    """f after some items; -∞ where no set that counts ends."""
    item = i + tl.arange(0, BLOCK)
    f = tl.load(f_at + row * stride + item, mask=item < n, other=float("-inf"))
    shut = tl.load(closed + row * (n + 1) + 1 + item, mask=item < n, other=1)
    return tl.where(shut != 0, float("-inf"), f)


@triton.jit(do_not_specialize=["n", "rows", "stride"])
def _take_best(
    items, n, closed, f_at, base, start_k, start_f, size, middle, out, rows, stride,
    CONTEST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The lines of `items.take_best`."""
    row, lane = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    k, before, count = tl.load(start_k + row), tl.load(start_f + row), tl.load(size + row)
    before_shut = tl.load(closed + row * (n + 1)) != 0
    top_f, top = tl.where(before_shut, float("-inf"), before), 0 * n
    for i in range(0, n, BLOCK):
        f = _useful(f_at, closed, row, n, stride, i, BLOCK)
        most = tl.max(f, 0)
        top = tl.where(most > top_f, i + 1 + tl.argmax(f, 0), top)
        top_f = tl.maximum(most, top_f)
    slack = CONTEST * (tl.load(base + row) + top_f) / tl.maximum(k + top, 1.0)
    at = tl.where((before_shut == 0) & (before + slack * top >= top_f), 0, top)
    for i in range(0, n, BLOCK):
        f = _useful(f_at, closed, row, n, stride, i, BLOCK)
        near = f + slack * (top - (i + 1 + lane)).to(tl.float64) >= top_f
        at = tl.minimum(at, tl.min(tl.where(near, i + 1 + lane, top), 0))
    low = tl.load(items + row * n + at - 1, mask=at > 0, other=0.0).to(tl.float64)
    low = tl.where(at > 0, low, float("inf"))
    best = tl.load(f_at + row * stride + at - 1, mask=at > 0, other=0.0)
    best = tl.where(top_f == float("-inf"), top_f, tl.where(at > 0, best, before))
    row_middle = tl.load(middle + row)
    over, equal = tl.zeros([BLOCK], tl.float64), tl.zeros([BLOCK], tl.float64)
    upper, mass = tl.zeros([BLOCK], tl.float64), tl.zeros([BLOCK], tl.float64)
    for i in range(0, n, BLOCK):
        d = tl.load(items + row * n + i + lane, mask=i + lane < n, other=-1.0).to(tl.float64)
        over += (d > low).to(tl.float64)
        equal += (d == low).to(tl.float64)
        upper += (d > row_middle).to(tl.float64)
        mass += tl.where(d > row_middle, d, 0.0)
    last = tl.minimum(count, n).to(tl.int64)
    at_last = tl.load(f_at + row * stride + last - 1, mask=last > 0, other=0.0)
    out += row
    tl.store(out, k + at)
    tl.store(out + rows, best)
    tl.store(out + 2 * rows, low)
    tl.store(out + 3 * rows, tl.sum(over))
    tl.store(out + 4 * rows, tl.sum(equal))
    tl.store(out + 5 * rows, tl.sum(upper))
    tl.store(out + 6 * rows, tl.sum(mass))
    tl.store(out + 7 * rows, tl.where(last > 0, at_last, before))


@triton.jit(do_not_specialize=["n", "nodes"])
def _reciprocals(items, n, scale, x, out, nodes, LANES: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    p = tl.load(items + row * n + place, mask=place < n, other=0.0).to(tl.float64)
    total = tl.zeros([LANES], tl.float64)
    for m in range(nodes):
        node = row * nodes + m
        total += tl.load(scale + node) / _factor(p, tl.load(x + node))
    tl.store(out + row * n + place, total, mask=place < n)
