"""Sums at the nodes over tensors of the CPU, by the compiled loops for arrays."""

from __future__ import annotations

import torch
from torch import Tensor

from argmaxf._base.arrays import contiguous, readonly
from argmaxf.expected import dependent_kernels
from argmaxf.expected.macro_kernels import log_none_positive
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.torch.form import NodeTilt
from argmaxf.torch.tensors import as_array

WORK = 16  # a pixel costs about as much as so many in a pass over an array


def log_products(p: Tensor, tilt: NodeTilt) -> Tensor:
    """Σ log(1 - p w) over all pixels of each row, at each node."""
    items, out = as_array(p), torch.empty_like(tilt.w)
    w, x, found = readonly(tilt.w.numpy()), readonly(tilt.x.numpy()), out.numpy()

    def work(part: slice) -> None:
        for r in range(part.start, part.stop):
            log_none_positive(contiguous(items[r]), w[r], x[r], found[r])

    in_threads(work, len(p), threads_for(WORK * p.numel()))
    return out


def reciprocals(p: Tensor, scale: Tensor, tilt: NodeTilt) -> Tensor:
    """Σ_m scale_m / (1 - p w_m) for each pixel of each row."""
    items, out = as_array(p), torch.empty(p.shape, dtype=torch.float64)
    options = [readonly(each.contiguous().numpy()) for each in (scale, *tilt)]
    found = out.numpy()

    def work(part: slice) -> None:
        for r in range(part.start, part.stop):
            dependent_kernels.reciprocals(
                contiguous(items[r]), *(each[r] for each in options), found[r]
            )

    in_threads(work, len(p), threads_for(WORK * p.numel()))
    return out
