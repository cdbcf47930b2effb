r"""The three passes over the pixels, in plain torch: integer counts, and sums at the nodes.

Everything else works on tables that do not grow with the image. `triton_kernels` has the same three
for NVIDIA GPUs; `passes_for` chooses. Sums are in double precision and in a fixed order, so that
two runs agree bit for bit.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor

from argmaxf.torch.keys import ONE, keys

BINS = 512  # of one window: one above it, 510 inside, one below
ITEMS = 512  # so few items of a row are looked at one by one
TABLE = BINS * 48 * 8 * 10  # bytes that the tables of one row need: bins × nodes, ten of them
ROOM = 1 << 21  # numbers held at a time


class Window(NamedTuple):
    """For each row the highest key of the first inner bin, and the log₂ of a bin's keys."""

    top: Tensor
    shift: Tensor


class Tilt(NamedTuple):
    """w = 1 - e^{-bu} and x = e^{-bu} at the nodes u of each row (see `form`)."""

    w: Tensor
    x: Tensor


def passes_for(p: Tensor) -> ModuleType:
    """Return the module whose passes suit the device of the pixels."""
    if p.is_cuda:
        try:
            from argmaxf.torch import triton_kernels
        except ImportError:
            pass
        else:
            return triton_kernels
    import argmaxf.torch.passes

    return argmaxf.torch.passes


def count(p: Tensor, window: Window) -> tuple[Tensor, Tensor]:
    """Count the items p > 0 in each bin of each row's window, and those that are no probabilities.

    Bin 0 is for what is above the window, the last one for what is below.
    """
    rows, n = p.shape
    table = torch.zeros(rows * BINS, dtype=torch.int64, device=p.device)
    first = BINS * torch.arange(rows, device=p.device)[:, None]
    zeros, bad = torch.zeros(2, rows, dtype=torch.int64, device=p.device)
    for part in _parts(rows, n):
        key = keys(p[:, part])
        zero = key == 0
        zeros += zero.sum(1)
        bad += ((key < 0) | (key > ONE)).sum(1)
        place = ((window.top[:, None] - key) >> window.shift[:, None]) + 1
        place = place.clamp(0, BINS - 1).masked_fill(zero, BINS - 1)
        table += torch.bincount((place + first).view(-1), minlength=rows * BINS)
    table = table.view(rows, BINS)
    table[:, -1] -= zeros
    return table, bad


def gather(p: Tensor, low: Tensor, high: Tensor, most: int) -> Tensor:
    """Return the keys in [low, high] of each row, at most `most`, then zeros."""
    rows, n = p.shape
    out = torch.zeros(rows, most + 1, dtype=torch.int64, device=p.device)
    filled = torch.zeros(rows, dtype=torch.int64, device=p.device)
    for part in _parts(rows, n):
        key = keys(p[:, part])
        row, column = ((key >= low[:, None]) & (key <= high[:, None])).nonzero(as_tuple=True)
        size = torch.bincount(row, minlength=rows)
        rank = torch.arange(len(row), device=p.device) - (size.cumsum(0) - size)[row]
        out[row, (filled[row] + rank).clamp(max=most)] = key[row, column]
        filled += size
    return out[:, :most]


def log_products(p: Tensor, tilt: Tilt) -> Tensor:
    """Σ log(1 - p w) over all items of each row, at each node."""
    total = torch.zeros_like(tilt.w)
    for part, node in _steps(p, tilt):
        w = tilt.w[:, node, None]
        total[:, node] += torch.log1p(-(p[:, None, part].double() * w).clamp(max=1 - 2**-53)).sum(2)
    return total


def sums_between(
    p: Tensor, low: Tensor, high: Tensor, inside: Tilt, outside: Tilt | None
) -> tuple[Tensor, Tensor]:
    """Σ π, and Σ log (1 - p w_in) / (1 - p w_out), over items whose key is in (low, high].

    The second sum is zero where both tilts are the same (`outside` is None).
    """
    pi, log_ratio = torch.zeros_like(inside.w), torch.zeros_like(inside.w)
    for part, node in _steps(p, inside):
        key, d = keys(p[:, part]), p[:, part].double()
        d = torch.where((key > low[:, None]) & (key <= high[:, None]), d, 0.0)[:, None]
        factor = _factor(d, inside, node)
        pi[:, node] += (d * inside.x[:, node, None] / factor).sum(2)
        if outside is not None:
            log_ratio[:, node] += (factor / _factor(d, outside, node)).log().sum(2)
    return pi, log_ratio


def spread_sums(
    p: Tensor, cut: Tensor, inside: Tilt, outside: Tilt, weight_in: Tensor, weight_out: Tensor
) -> tuple[Tensor, Tensor]:
    """Σ a π and Σ a² π (1 - π) over items whose key is not `cut`.

    Above the cut a and the tilt are those inside the set, below it those outside.
    """
    mean, variance = torch.zeros_like(inside.w), torch.zeros_like(inside.w)
    for part, node in _steps(p, inside):
        key, d = keys(p[:, None, part]), p[:, None, part].double()
        above, d = key > cut[:, None, None], torch.where(key == cut[:, None, None], 0.0, d)
        a = torch.where(above, weight_in[:, None, None], weight_out[:, None, None])
        factor = torch.where(above, _factor(d, inside, node), _factor(d, outside, node))
        x = torch.where(above, inside.x[:, node, None], outside.x[:, node, None])
        mean[:, node] += (a * d * x / factor).sum(2)
        variance[:, node] += (a * a * d * (1.0 - d) * x / (factor * factor)).sum(2)
    return mean, variance


def _factor(d: Tensor, tilt: Tilt, node: slice) -> Tensor:
    """1 - p w, which is never below x."""
    return torch.maximum(1.0 - d * tilt.w[:, node, None], tilt.x[:, node, None].clamp(min=1e-18))


def _parts(rows: int, n: int) -> list[slice]:
    """Cut the items of all rows into parts that can be held at a time."""
    step = max(1, ROOM // rows)
    return [slice(start, start + step) for start in range(0, n, step)]


def _steps(p: Tensor, tilt: Tilt) -> list[tuple[slice, slice]]:
    """Cut items and nodes into parts whose product can be held at a time."""
    (rows, n), nodes = p.shape, tilt.w.shape[1]
    at_once = max(1, min(nodes, ROOM // (rows * min(n, 1 << 12))))
    columns = [slice(m, m + at_once) for m in range(0, nodes, at_once)]
    return [(part, node) for part in _parts(rows * at_once, n) for node in columns]
