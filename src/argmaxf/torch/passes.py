r"""Sums over rows of pixels at the nodes of the quadrature.

Compiled loops sum up tensors of the CPU, Triton kernels those of NVIDIA GPUs, in double precision
and in a fixed order, so that two runs agree bit for bit. Other tensors are copied to the CPU.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from argmaxf._base.arrays import Floats, contiguous, readonly
from argmaxf.expected import band
from argmaxf.expected.array_passes import ArrayPasses
from argmaxf.expected.quadrature import reciprocal_nodes
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.measures import Coefficients

ABSENT = -1.0  # no probability: a pixel that is in no sum


def has_triton(p: Tensor) -> bool:
    """Whether the pixels are on an NVIDIA GPU, and Triton is there."""
    return p.is_cuda and find_spec("triton") is not None


def kernels() -> Any:
    """Return the kernels for NVIDIA GPUs."""
    return import_module("argmaxf.torch.triton_rows")


class RowNodes(NamedTuple):
    """The nodes for the denominators of sets of each row, and the tilts of a measure at them."""

    table: Floats  # rows × (the six below) × nodes, on the host
    u: Tensor
    weight: Tensor
    w_in: Tensor  # 1 - e^{-bu}
    x_in: Tensor  # e^{-bu}
    w_out: Tensor
    x_out: Tensor

    @classmethod
    def of(cls, p: Tensor, least: Floats, most: Floats, c: Coefficients) -> RowNodes:
        """Return nodes for sets of `least` to `most` pixels of each row; others have weight 0."""
        from argmaxf.expected.tilt_kernels import tilt

        n, found = p.shape[1], []
        means = p.sum(1, dtype=torch.float64).tolist()
        for first, last, mean in zip(least.tolist(), most.tolist(), means, strict=True):
            fewest, largest = band.plausible_positives(mean, n)
            x = band.least_denominator(first, fewest, c)
            u, weight = reciprocal_nodes(x, last + c.s1 + max(c.b_in, c.b_out) * largest)
            found.append(np.array([u, weight, *tilt(u, c.b_in), *tilt(u, c.b_out)]))
        table = np.zeros((len(p), 6, max(each.shape[1] for each in found)))
        table[:, 3::2] = 1.0
        for row, each in zip(table, found, strict=True):
            row[:, : each.shape[1]] = each
        return cls(table, *torch.from_numpy(table).to(p.device).unbind(1))

    def sums(self, p: Tensor, inside: bool = False) -> Floats:
        """Return `node_sums` of pixels that are outside of a set, or inside."""
        w, x = (self.table[:, 2:4] if inside else self.table[:, 4:]).swapaxes(0, 1)
        return node_sums(p, np.ascontiguousarray(w), np.ascontiguousarray(x))

    def logs(self, p: Tensor) -> Tensor:
        """Return Σ log(1 - p w_out) over the pixels of each row, at each node."""
        return torch.from_numpy(self.sums(p)[:, 0].copy()).to(p.device)


def node_sums(p: Tensor, w: Floats, x: Floats) -> Floats:
    """Σ log(1 - p w), Σ π, Σ (1 - π) and Σ π (1 - π) over the pixels of each row at its nodes.

    Rows × 4 × nodes, on the host. Pixels that are ABSENT do not count.
    """
    out = np.zeros((len(p), 4, w.shape[1]))
    if has_triton(p):
        tilts = torch.from_numpy(np.stack([w, x])).to(p.device)
        sums: Floats = kernels().node_sums(p.contiguous(), *tilts.unbind()).cpu().numpy()
        return sums
    p = p.cpu()
    from argmaxf.expected import band_kernels

    small = 2.0**-6  # p w at most, of which eight powers are a double's digits
    cut = small / np.maximum(w.max(1), small / 2.0)  # 2 where all pixels are below

    def work(part: slice) -> None:
        for r in range(part.start, part.stop):
            row: Floats = contiguous(p[r].double().numpy())
            counted = row[row >= 0.0]
            if counted.size:
                own = ArrayPasses(counted).around(cut[r : r + 1], np.array([2.0]), counted.size)
                items: Any = own.items[0]
                given = items, 0, items.size, own.sums[0, 0], w[r], x[r]
                out[r] = band_kernels.sums_at_nodes.compiled(*given)

    in_threads(work, len(p), threads_for(p.numel()))
    return out


def reciprocals(p: Tensor, scale: Tensor, x: Tensor) -> Tensor:
    """Σ_m scale_m / (1 - p w_m) for each pixel of each row, x = 1 - w."""
    if has_triton(p):
        found: Tensor = kernels().reciprocals(p, scale, x)
        return found
    from argmaxf.expected import dependent_kernels

    work = 16  # a pixel costs about as much as so many in a pass over an array
    out = torch.empty(p.shape, dtype=torch.float64)
    nodes = [readonly(each.contiguous().numpy()) for each in (scale, 1.0 - x, x)]

    def rows(part: slice) -> None:
        for r in range(part.start, part.stop):
            items = contiguous(p[r].double().numpy())
            dependent_kernels.reciprocals(items, *(each[r] for each in nodes), out[r].numpy())

    in_threads(rows, len(p), threads_for(work * p.numel()))
    return out


def none_there(p: Tensor) -> Tensor:
    """P(S = 0) = Π (1 - p) of each row."""
    return torch.log1p(-p.double()).sum(1).exp()
