"""What is made of tables, as Triton kernels with one program for each row: see `tables`."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from argmaxf.torch.climb import BinLadder
from argmaxf.torch.form import RowForm
from argmaxf.torch.passes import BinTable, KeyWindow
from argmaxf.torch.tables import Found, OpenBins
from argmaxf.torch.triton_climb import climb
from argmaxf.torch.triton_nodes import prepared
from argmaxf.torch.triton_numbers import ONE, block_of, log_ratio, number_of, numbers_on

__all__ = ["climb", "finish", "narrow", "prepared", "take_best"]

FAR = tl.constexpr(1 << 30)


def narrow(
    ladder: BinLadder,
    table: BinTable,
    reach: Tensor,
    floor: Tensor,
    after: Tensor,
    top: Tensor,
    few: int,
    finest: int,
) -> OpenBins:
    """Choose the bins to look at next; raises `floor` in place."""
    rows, bins = table.size.shape
    aligned = rows + rows % 2  # kernels are compiled for addresses that are multiples of 16
    whole = torch.empty(10, aligned, dtype=torch.int64, device=floor.device)
    k = torch.empty_like(floor)
    stop, low, high, start, window_top, shift = whole[:6, :rows]
    k_at, f_at, _, *bounds = ladder
    _narrow[(rows,)](
        k_at, f_at, *bounds, *table, reach, floor, after, top, whole, k,
        aligned, few, finest, bins, block_of(bins),
    )  # fmt: skip
    return OpenBins(stop, low, high, start, KeyWindow(window_top, shift), k, whole[6:, :rows])


def take_best(
    ladder: BinLadder, table: BinTable, reach: Tensor, found: Found, floor: Tensor, split: bool
) -> Tensor:
    """Take the best border into `found` and `floor`; return which runs are open, from and to."""
    rows, bins = table.size.shape
    runs = torch.empty(2, rows, dtype=torch.int64, device=floor.device)
    block = block_of(bins)
    single = ladder.ceiling.shape[1] < bins
    _take_best[(rows,)](
        *ladder, table.size, table.low, reach, *found, floor, *runs, bins, split, single, block,
        num_warps=4 if block <= 512 else 16,
    )  # fmt: skip
    return runs


def finish(
    form: RowForm, found: Found, log_q: Tensor, sums: Any, weights: Any, zero: float
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return k, the standard deviation, the threshold, the chosen and the equal items there."""
    _, b_in, b_out, _, _ = form.coefficients
    rows, nodes = form.u.shape
    whole = torch.empty(3, rows, dtype=torch.int64, device=form.u.device)
    real = torch.empty(2, rows, dtype=torch.float64, device=form.u.device)
    mean, variance, counts = sums
    two = b_in != b_out
    numbers = numbers_on((*form.coefficients, zero), form.u.device)
    _finish[(rows,)](
        numbers, *found, log_q, mean, variance, counts, *weights,
        form.u, form.weight, *form.inside, *form.outside, *whole, *real, nodes, two,
        max(16, block_of(nodes)),
    )  # fmt: skip
    k, ties, equal = whole
    return k, real[0], real[1], ties, equal


@triton.jit
def _nearest(right, here):
    """Of two codes the left one, unless it is 0."""
    return tl.where(here != 0, here, right)


@triton.jit
def _hot(k_at, ceiling, falls, rises, size, reach, floor, row, bins, BLOCK: tl.constexpr):
    """Mark the bins that may hold the optimum (`tables._hot`)."""
    bin = tl.arange(0, BLOCK)
    there, place, next = bin < bins, row * bins + bin, bin + 1 < bins
    full = tl.load(size + place, mask=there, other=0) > 0
    rising = tl.load(rises + place, mask=there, other=0) != 0
    code = 1 + (tl.load(rises + place + 1, mask=next, other=0) != 0).to(tl.int32)
    code = tl.where(tl.load(size + place + 1, mask=next, other=0) > 0, code, 0)
    code = tl.associative_scan(code, 0, _nearest, reverse=True)
    closed = tl.load(falls + place, mask=there, other=0) != 0
    closed |= rising & (code == 2)
    closed |= tl.load(ceiling + place, mask=there, other=0.0) < floor - 1e-12 * floor
    closed |= tl.load(k_at + row * (bins + 1) + bin, mask=there, other=0.0) >= reach
    return full & (closed == 0), rising


@triton.jit
def _pick(values, bin, place):
    """One entry of a vector."""
    return tl.sum(tl.where(bin == place, values, 0))


@triton.jit
def _bits(number):
    """How many binary digits a whole number ≥ 0 has: the exponent of it as a double."""
    exponent = (number.to(tl.float64).to(tl.int64, bitcast=True) >> 52) - 1022
    return tl.where(number > 0, exponent, 0)


@triton.jit(do_not_specialize=["rows", "few", "finest", "bins"])
def _narrow(
    k_at, f_at, ceiling, falls, rises, size, low, high, reach, floor, after, top, whole, k_first,
    rows, few, finest, bins,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The lines of `tables.narrow`."""
    row = tl.program_id(0).to(tl.int64)
    bin = tl.arange(0, BLOCK)
    there, place, border = bin < bins, row * bins + bin, row * (bins + 1) + bin
    row_reach, best = tl.load(reach + row), tl.load(floor + row)
    k0 = tl.load(k_at + border, mask=there, other=0.0)
    k1 = tl.load(k_at + border + 1, mask=there, other=0.0)
    f0 = tl.load(f_at + border, mask=there & (k0 > 0.0) & (k0 <= row_reach), other=-1.0)
    f1 = tl.load(f_at + border + 1, mask=there & (k1 > 0.0) & (k1 <= row_reach), other=-1.0)
    best = tl.maximum(best, tl.max(tl.maximum(f0, f1)))
    hot, _ = _hot(k_at, ceiling, falls, rises, size, row_reach, best, row, bins, BLOCK)
    hot = hot & (bin >= tl.load(after + row))
    first = tl.min(tl.where(hot, bin, FAR))
    last = tl.max(tl.where(hot, bin + 1, 0))
    near = tl.min(tl.where(there & (hot == 0) & (bin > first), bin, bins))
    start = _pick(k0, bin, first)
    end = tl.minimum(tl.where(first == 0, 1, first + bins // 2 - 1), bins - 1)  # `tables.widest`
    near = tl.minimum(tl.minimum(near, last), tl.where(first < bins - 1, end, bins))
    stop = tl.where(_pick(k1, bin, last - 1) - start <= few, last, near)
    some, row_top = stop > 0, tl.load(top + row)
    items = tl.where(some, _pick(k1, bin, stop - 1) - start, 0.0)
    is_few, is_many = some & (items <= few), items > few
    upper = _pick(tl.load(high + place, mask=there, other=0), bin, first)
    lower = _pick(tl.load(low + place, mask=there, other=0), bin, stop - 1)
    upper = tl.where(some, upper, row_top)
    lower = tl.where(some, lower, upper + 1)
    shift = tl.where(is_many, tl.maximum(_bits((upper - lower) // (bins - 2)), finest), finest)
    tl.store(floor + row, best)
    tl.store(k_first + row, tl.where(some, start, tl.load(k_at + row * (bins + 1))))
    whole += row
    tl.store(whole, stop.to(tl.int64))
    tl.store(whole + rows, lower)
    tl.store(whole + 2 * rows, upper)
    tl.store(whole + 3 * rows, tl.where(is_few, lower, upper + 1))
    tl.store(whole + 4 * rows, tl.where(is_many, upper, 0))
    tl.store(whole + 5 * rows, shift)
    tl.store(whole + 6 * rows, items.to(tl.int64))
    tl.store(whole + 7 * rows, is_few.to(tl.int64))
    tl.store(whole + 8 * rows, (shift > finest).to(tl.int64))
    tl.store(whole + 9 * rows, (last > stop).to(tl.int64))


@triton.jit
def _unshared(k, other):
    """Which part of their terms two values do not share, times the part that counts as a tie."""
    return 1e-13 * tl.abs(k - other) / tl.maximum(tl.maximum(k, other), 1.0)


@triton.jit(do_not_specialize=["bins"])
def _take_best(
    k_at, f_at, base, ceiling, falls, rises, size, low, reach, found_k, found_f, found_low, floor,
    first_at, stop_at, bins,
    SPLIT: tl.constexpr, SINGLE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The lines of `tables.take_best`."""
    row = tl.program_id(0).to(tl.int64)
    bin = tl.arange(0, BLOCK)
    there, place, row_reach = bin < bins, row * bins + bin, tl.load(reach + row)
    k = tl.load(k_at + row * (bins + 1) + bin + 1, mask=there, other=0.0)
    f = tl.load(f_at + row * (bins + 1) + bin + 1, mask=there, other=0.0)
    first_f = tl.load(base + row)
    count = tl.load(size + place, mask=there, other=0)
    key = tl.load(low + place, mask=there, other=0)
    taken = there & (count > 0) & (k > 0.0) & (k <= row_reach)
    if not SPLIT:  # equal items stay on one side; sizes of items one by one are 1, then 0
        taken = taken & (tl.load(low + place + 1, mask=bin + 1 < bins, other=0) != key)
    f = tl.where(taken, f, float("-inf"))
    top = tl.argmax(f, 0)
    top_f, top_k = _pick(f, bin, top), _pick(k, bin, top)
    slack = _unshared(k, top_k) * (first_f + top_f)
    at = tl.min(tl.where(taken & (f >= top_f - slack), bin, FAR))
    new_k, new_low = _pick(k, bin, at), _pick(key, bin, at)
    new_f = first_f + _pick(f, bin, at)
    old_k, old_f, old_low = tl.load(found_k + row), tl.load(found_f + row), tl.load(found_low + row)
    tied = tl.abs(new_f - old_f) <= _unshared(new_k, old_k) * tl.maximum(new_f, old_f)
    better = (at < FAR) & (new_f > 0.0) & tl.where(tied, new_k < old_k, new_f > old_f)
    tl.store(found_k + row, tl.where(better, new_k, old_k))
    tl.store(found_f + row, tl.where(better, new_f, old_f))
    tl.store(found_low + row, tl.where(better, new_low, old_low))
    best = tl.maximum(tl.load(floor + row), tl.where(better, new_f, old_f))
    tl.store(floor + row, best)
    if not SINGLE:
        hot, rising = _hot(k_at, ceiling, falls, rises, size, row_reach, best, row, bins, BLOCK)
        run = hot & (rising == 0) & (count > 1)
        first = tl.min(tl.where(run, bin, FAR))
        tl.store(first_at + row, tl.where(first < FAR, first, 0).to(tl.int64))
        tl.store(stop_at + row, tl.max(tl.where(run, bin + 1, 0)).to(tl.int64))


@triton.jit
def _at_cut(p, size, a, w, x):
    """Σ a π and Σ a² π (1 - π) of equal items."""
    inverse = 1.0 / tl.where(p < 0.5, 1.0 - p * w, x + (1.0 - p) * w)
    pi = a * x * p * inverse
    return size * pi, size * pi * a * (1.0 - p) * inverse


@triton.jit(do_not_specialize=["nodes"])
def _finish(
    numbers, found_k, found_f, found_low, logs, mean, variance, counts, weight_in, weight_out,
    u, weight, w_in, x_in, w_out, x_out, k_out, ties_out, equal_out, std_out, threshold_out,
    nodes,
    TWO: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The lines of `tables.finish`."""
    row = tl.program_id(0).to(tl.int64)
    node = tl.arange(0, BLOCK)
    real, place = node < nodes, row * nodes + node
    s0, s1, zero = tl.load(numbers + 3), tl.load(numbers + 4), tl.load(numbers + 5)
    k, f, key = tl.load(found_k + row), tl.load(found_f + row), tl.load(found_low + row)
    a, b = tl.load(weight_in + row), tl.load(weight_out + row)
    some = k > 0.0
    counts += 3 * row
    equal = tl.where(some, tl.load(counts + 1), 0)
    ties = tl.where(some, k.to(tl.int64) - tl.load(counts), 0)
    out = equal - ties - tl.where(some, tl.load(counts + 2), 0)
    p = number_of(tl.where(key > ONE, ONE, key))
    wi = tl.load(w_in + place, mask=real, other=0.0)
    xi = tl.load(x_in + place, mask=real, other=1.0)
    wo = tl.load(w_out + place, mask=real, other=0.0)
    xo = tl.load(x_out + place, mask=real, other=1.0)
    uu = tl.load(u + place, mask=real, other=0.0)
    n_in, n_out = ties.to(tl.float64), out.to(tl.float64)
    mean_in, variance_in = _at_cut(p, n_in, a, wi, xi)
    mean_out, variance_out = _at_cut(p, n_out, b, wo, xo)
    total = tl.load(mean + place, mask=real, other=0.0) + mean_in + mean_out
    total += s0 - f * (k + s1)
    square = tl.load(variance + place, mask=real, other=0.0) + variance_in + variance_out
    log_q = tl.load(logs + place, mask=real, other=0.0)
    if TWO:
        log_q += n_in * log_ratio(p, wi, xi, wo, xo, False)
    omega = tl.load(weight + place, mask=real, other=0.0)
    decay = omega * uu * tl.exp(tl.minimum(log_q, 0.0) - uu * (k + s1))
    std = tl.sqrt(tl.sum(decay * (square + total * total)))
    none = f / tl.where(zero > 0.0, zero, 1.0)
    empty = tl.where(zero > 0.0, zero * tl.sqrt(tl.maximum(none * (1.0 - none), 0.0)), 0.0)
    tl.store(k_out + row, k.to(tl.int64))
    tl.store(ties_out + row, ties)
    tl.store(equal_out + row, equal)
    tl.store(std_out + row, tl.where(some | (s1 > 0.0), std, empty))
    tl.store(threshold_out + row, tl.where(some, p, float("inf")))
