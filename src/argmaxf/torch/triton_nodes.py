"""Nodes that suit each row, as Triton kernels: see `tables.prepared` and `form`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from argmaxf.expected import nodes as rule
from argmaxf.torch.constants import once
from argmaxf.torch.form import NodeTilt, RowForm
from argmaxf.torch.passes import BinTable
from argmaxf.torch.triton_numbers import block_of, expm1, number_of, numbers_on


def prepared(
    table: BinTable, coefficients: tuple[float, ...], bad: Tensor
) -> tuple[RowForm, Tensor] | None:
    """Return the measure at nodes that suit each row, and the largest k that can be best there.

    None if there are bad values: that is asked together with the number of nodes.
    """
    rows, bins = table.size.shape
    device = table.size.device
    ranges = torch.empty(6, rows, dtype=torch.float64, device=device)
    reach, needed = ranges[0], ranges[3:]
    numbers, stride = numbers_on(coefficients, device), bad.stride(0)
    _ranges[(rows,)](*table, bad, numbers, *ranges, bins, stride, block_of(bins))
    size, steepest, any_bad = needed.amax(1).tolist()
    if any_bad:
        return None
    out = torch.empty(6, rows, int(size), dtype=torch.float64, device=device)
    block = 128 if size <= 128 else 512
    _nodes[(rows,)](*_rules(device), numbers, *ranges[1:4], *out, int(size), block)
    u, weight, w_in, x_in, w_out, x_out = out
    tilts = NodeTilt(w_in, x_in), NodeTilt(w_out, x_out)
    return RowForm(coefficients, u, weight, *tilts, steepest), reach


@once
def _rules(device: torch.device) -> tuple[Tensor, ...]:
    """Nodes and weights of both rules."""
    rules = rule.SHORT, rule.SHORT_WEIGHT, rule.SHAPE, rule.SHAPE_WEIGHT
    return tuple(torch.tensor(each, device=device) for each in rules)


@triton.jit(do_not_specialize=["bins", "stride"])
def _ranges(
    size, low, high, bad, numbers, reach, least, most, needed, steepest, any_bad, bins, stride,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The lines of `tables.prepared`."""
    row = tl.program_id(0).to(tl.int64)
    bin = tl.arange(0, BLOCK)
    there, place = bin < bins, row * bins + bin
    c, b_in, b_out = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    s0, s1 = tl.load(numbers + 3), tl.load(numbers + 4)
    count = tl.load(size + place, mask=there, other=0).to(tl.float64)
    sum_low = count * number_of(tl.load(low + place, mask=there, other=0))
    sum_high = count * number_of(tl.load(high + place, mask=there, other=0))
    n, mean_low, mean_high = tl.sum(count), tl.sum(sum_low), tl.sum(sum_high)
    k, upper = tl.cumsum(count, 0), tl.cumsum(sum_high, 0)
    below = c * tl.cumsum(sum_low, 0) + s0
    below = below / (k + s1 + b_in * (1.0 + upper) + b_out * (mean_high - upper))
    best = tl.max(tl.where(k > 0.0, below, 0.0))
    b_least, b_most = tl.minimum(b_in, b_out), tl.maximum(b_in, b_out)
    useful = (c * mean_high + s0) / tl.where(best > 0.0, best, 1.0) - s1 - b_least * mean_low + 1.0
    useful = tl.where(best > 0.0, tl.minimum(useful, n), n)
    fewest = tl.maximum(mean_low - 9.0 * tl.sqrt(mean_low), 0.0)
    positives = tl.minimum(n, mean_high + 9.0 * tl.sqrt(mean_high) + 20.0)
    enough = (best - 1e-12 * best) * (tl.minimum(b_out, 1.0 + b_in) * fewest + s1)
    poor = tl.max(tl.where(c * upper + s0 < enough, k, 0.0))
    x_low = b_least * fewest + poor + tl.where(s1 > 0.0, s1, 1.0)
    x_high = useful + 1.0 + s1 + b_most * positives
    nodes = 8.0 * tl.ceil((tl.log(39.0 * x_high / x_low) + 3.45) / 2.16 + 0.125)
    tl.store(reach + row, useful)
    tl.store(least + row, x_low)
    tl.store(most + row, x_high)
    short = x_high / x_low <= 160.0
    tl.store(needed + row, tl.where(short, 24.0, nodes))
    last = tl.where(short, 16.77 / x_low, tl.exp(0.27 * (nodes - 1.0) - 3.45) / x_high)
    tl.store(steepest + row, last)
    tl.store(any_bad + row, tl.load(bad + row * stride).to(tl.float64))


@triton.jit(do_not_specialize=["nodes"])
def _nodes(
    few, few_weight, many, many_weight, numbers, least, most, needed, u, weight, w_in, x_in, w_out,
    x_out, nodes,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The lines of `form.reciprocal_nodes` and `form.tilt`."""
    row = tl.program_id(0).to(tl.int64)
    node = tl.arange(0, BLOCK)
    low, high, own = tl.load(least + row), tl.load(most + row), tl.load(needed + row)
    ratio = high / low + tl.zeros([BLOCK], tl.float64)
    in_few = (ratio <= 160.0) & (node < 24)
    in_many = (ratio > 160.0) & (node.to(tl.float64) < own)
    uu = tl.load(few + node, mask=in_few, other=0.0) / low
    uu += tl.load(many + node, mask=in_many, other=0.0) / high
    omega = tl.load(few_weight + node, mask=in_few, other=0.0) / low
    omega += tl.load(many_weight + node, mask=in_many, other=0.0) / high
    bu_in, bu_out = tl.load(numbers + 1) * uu, tl.load(numbers + 2) * uu
    place, there = row * nodes + node, node < nodes
    tl.store(u + place, uu, mask=there)
    tl.store(weight + place, omega, mask=there)
    tl.store(w_in + place, -expm1(-bu_in), mask=there)
    tl.store(x_in + place, tl.exp(-tl.minimum(bu_in, 120.0)), mask=there)
    tl.store(w_out + place, -expm1(-bu_out), mask=there)
    tl.store(x_out + place, tl.exp(-tl.minimum(bu_out, 120.0)), mask=there)
