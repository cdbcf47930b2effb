r"""The passes over the pixels, in plain torch: integer counts, and sums at the nodes.

Everything else works on tables that do not grow with the image. `triton_passes` has the same for
NVIDIA GPUs. Sums are in double precision and in a fixed order, so that two runs agree bit for bit.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from argmaxf.torch.form import NodeTilt
from argmaxf.torch.keys import ONE, keys

BINS = 512  # of one window: one above it, 510 inside, one below
ITEMS = 512
ROOM = 1 << 21  # numbers held at a time
POWERS = 8
COLUMNS = 2 + POWERS  # of `powers`
SPREAD_COLUMNS = COLUMNS + POWERS - 1


class KeyWindow(NamedTuple):
    """For each row the highest key of the first inner bin, and the log₂ of a bin's keys."""

    top: Tensor
    shift: Tensor


class BinTable(NamedTuple):
    """How many items each bin of a row has, by falling p, and the keys at the bins' ends."""

    size: Tensor
    low: Tensor
    high: Tensor


def table(
    p: Tensor, window: KeyWindow, finest: int, inner: bool = False
) -> tuple[BinTable, Tensor]:
    """Count the items p > 0 in the bins of each row's window, and what is no probability.

    The first and the last bin are for what is above and below the window. `finest` is the log₂ of
    the least step between keys. Of an `inner` window only what is inside of it counts.
    """
    count, bad = _count(p, window)
    place = torch.arange(BINS, device=p.device)
    if inner:
        count[:, 0], count[:, -1] = 0, 0
    step, width = 1 << finest, torch.ones_like(window.shift) << window.shift
    high = window.top[:, None] - (place - 1) * width[:, None]
    low = high - width[:, None] + step
    high[:, 0], low[:, -1] = ONE, step
    return BinTable(count, low.clamp(step, ONE), high.clamp(step, ONE)), bad


def _count(p: Tensor, window: KeyWindow) -> tuple[Tensor, Tensor]:
    """Count the items p > 0 in each bin, and those that are no probabilities."""
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


def few(rows: int, one_tilt: bool) -> int:
    """How many items of a row are looked at one by one."""
    return ITEMS


def gather(p: Tensor, low: Tensor, high: Tensor, most: int, as_keys: bool = True) -> Tensor:
    """Return the items with keys in [low, high] of each row, or their keys, then zeros.

    There are at most `most` of them, and none is 0.
    """
    rows, n = p.shape
    kind = torch.int64 if as_keys else p.dtype
    out = torch.zeros(rows, most + 1, dtype=kind, device=p.device)
    filled = torch.zeros(rows, dtype=torch.int64, device=p.device)
    for part in _parts(rows, n):
        key = keys(p[:, part])
        found = key if as_keys else p[:, part]
        row, column = ((key >= low[:, None]) & (key <= high[:, None])).nonzero(as_tuple=True)
        size = torch.bincount(row, minlength=rows)
        rank = torch.arange(len(row), device=p.device) - (size.cumsum(0) - size)[row]
        out[row, (filled[row] + rank).clamp(max=most)] = found[row, column]
        filled += size
    return out[:, :most]


def keep(p: Tensor, low: Tensor, high: Tensor, most: int) -> Tensor:
    """Return the items with keys in [low, high] of each row in a fixed order, zeros first."""
    return gather(p, low, high, most, as_keys=False).sort(1).values


def at_least(p: Tensor, threshold: Tensor) -> Tensor:
    """Mark the items of each row that are not below its threshold."""
    return p >= threshold.to(p.dtype)[:, None]


def log_products(p: Tensor, tilt: NodeTilt) -> Tensor:
    """Σ log(1 - p w) over all items of each row, at each node."""
    total = torch.zeros_like(tilt.w)
    for part, node in _steps(p, tilt):
        d = p[:, None, part].double()
        below = torch.log1p(-d.clamp(max=0.5) * tilt.w[:, node, None])
        total[:, node] += torch.where(d < 0.5, below, _factor(d, tilt, node).log()).sum(2)
    return total


def sums_between(
    p: Tensor,
    low: Tensor,
    high: Tensor,
    inside: NodeTilt,
    outside: NodeTilt,
    b_in: float,
    b_out: float,
) -> tuple[Tensor, Tensor | None]:
    """Σ π, and Σ log (1 - p w_in) / (1 - p w_out), over items whose key is in (low, high].

    The second sum is left out where both tilts are the same (b_in = b_out).
    """
    pi = torch.zeros_like(inside.w)
    log_ratio = None if b_in == b_out else torch.zeros_like(pi)
    for part, node in _steps(p, inside):
        key, d = keys(p[:, part]), p[:, part].double()
        d = torch.where((key > low[:, None]) & (key <= high[:, None]), d, 0.0)[:, None]
        factor = _factor(d, inside, node)
        pi[:, node] += (d * inside.x[:, node, None] / factor).sum(2)
        if log_ratio is not None:
            log_ratio[:, node] += (factor / _factor(d, outside, node)).log().sum(2)
    return pi, log_ratio


def spread_sums(
    p: Tensor, cut: Tensor, tilt: NodeTilt, weight_in: Tensor, weight_out: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Σ a π and Σ a² π (1 - π) of items whose key is not `cut`; how many are above and at it.

    Above the cut a is the weight inside of the set, below it the one outside. A third number says
    how many at the cut were counted as outside, too: here none.
    """
    mean, variance = torch.zeros_like(tilt.w), torch.zeros_like(tilt.w)
    counts = torch.zeros(len(p), 3, dtype=torch.int64, device=p.device)
    for part, node in _steps(p, tilt):
        key, d = keys(p[:, None, part]), p[:, None, part].double()
        above, at = key > cut[:, None, None], key == cut[:, None, None]
        a = torch.where(above, weight_in[:, None, None], weight_out[:, None, None])
        a, x, factor = a.masked_fill(at, 0.0), tilt.x[:, node, None], _factor(d, tilt, node)
        mean[:, node] += (a * d * x / factor).sum(2)
        variance[:, node] += (a * a * d * (1.0 - d) * x / (factor * factor)).sum(2)
        if node.start == 0:
            counts[:, :2] += torch.stack([above.sum((1, 2)), at.sum((1, 2))], 1)
    return mean, variance, counts


def powers(p: Tensor, low: Tensor, high: Tensor, spread: bool) -> Tensor:
    """How many items have a key in (low, high], how many have `low`; Σ p^j and Σ p^j (1 - p).

    The first sums are over the items between the keys for j from 1 to 8, the second, for the
    `spread`, to 7.
    """
    columns = SPREAD_COLUMNS if spread else COLUMNS
    out = torch.zeros(len(p), columns, dtype=torch.float64, device=p.device)
    for part in _parts(len(p), p.shape[1]):
        key, d = keys(p[:, part]), p[:, part].double()
        between = (key > low[:, None]) & (key <= high[:, None])
        out[:, 0] += between.sum(1)
        out[:, 1] += (key == low[:, None]).sum(1)
        d = torch.where(between, d, 0.0)
        power = d
        for j in range(POWERS):
            out[:, 2 + j] += power.sum(1)
            if spread and j < POWERS - 1:
                out[:, COLUMNS + j] += (power * (1.0 - d)).sum(1)
            power = power * d
    return out


def reciprocals(p: Tensor, scale: Tensor, tilt: NodeTilt) -> Tensor:
    """Σ_m scale_m / (1 - p w_m) for each item of each row."""
    out = torch.zeros(p.shape, dtype=torch.float64, device=p.device)
    for part, node in _steps(p, tilt):
        factor = _factor(p[:, None, part].double(), tilt, node)
        out[:, part] += (scale[:, node, None] / factor).sum(1)
    return out


def _factor(d: Tensor, tilt: NodeTilt, node: slice) -> Tensor:
    """1 - p w, without cancellation."""
    w, x = tilt.w[:, node, None], tilt.x[:, node, None]
    return torch.where(d < 0.5, 1.0 - d * w, x + (1.0 - d) * w)


def _parts(rows: int, n: int) -> list[slice]:
    """Cut the items of all rows into parts that can be held at a time."""
    step = max(1, ROOM // rows)
    return [slice(start, start + step) for start in range(0, n, step)]


def _steps(p: Tensor, tilt: NodeTilt) -> list[tuple[slice, slice]]:
    """Cut items and nodes into parts whose product can be held at a time."""
    (rows, n), nodes = p.shape, tilt.w.shape[1]
    at_once = max(1, min(nodes, ROOM // (rows * min(max(n, 1), 1 << 12))))
    columns = [slice(m, m + at_once) for m in range(0, nodes, at_once)]
    return [(part, node) for part in _parts(rows * at_once, n) for node in columns]
