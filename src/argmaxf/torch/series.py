r"""Sums over pixels at the nodes: pixel by pixel, or by powers where p w is small.

With q = p w, the sums over some pixels at all nodes follow from S_j = Σ p^j and V_j = Σ p^j (1 - p)
over them (`expected/power_kernels.py`):

    Σ log(1 - q) = -Σ_j w^j S_j / j,    Σ p / (1 - q) = Σ_j w^{j-1} S_j,
    Σ p (1 - p) / (1 - q)² = Σ_j j w^{j-1} V_j.

So a pass reads the pixels and adds up nine numbers, instead of a quotient for each pixel and node.
Pixels with a larger q are few: their p add up to the positives, of which there are few where w is
not small.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from argmaxf._base.arrays import Floats
from argmaxf.torch import engine, host_kernels
from argmaxf.torch.form import NodeTilt, by_rows
from argmaxf.torch.passes import parts_of

DIRECT = 1 << 24  # so many pixels × nodes are sooner summed up one by one
SMALL = 2.0**-6  # q at most: eight powers of it are a double's digits


def of_powers(sums: Floats, w: Floats, x: Floats) -> Floats:
    """Return Σ log(1 - p w), Σ π and Σ π (1 - π) at the nodes of each row, from its power sums."""
    return by_rows(host_kernels.sum_powers, len(w), sums, w, x, out=np.empty((3, *w.shape)))


def of_items(items: Tensor, tilt: NodeTilt) -> Tensor:
    """Return the same for some pixels of each row, one by one."""
    by = engine.items_for(items)
    return torch.stack([by.log_products(items, tilt), *by.tilted_sums(items, tilt)])


def of_pixels(p: Tensor, tilt: NodeTilt) -> Tensor:
    """Return the same for all pixels of each row."""
    if p.numel() * tilt.w.shape[1] <= DIRECT:
        return of_items(p, tilt)
    passes = engine.passes_for(p)
    cut = SMALL / tilt.w.amax(1).clamp(min=SMALL / 2.0)  # 2 where all pixels are below
    far = torch.ones_like(cut)
    sums = passes.around(p, cut, far)[:, 0].cpu().numpy()
    most = p.shape[1] - int(np.rint(sums[:, :2].sum(1)).min())
    below = of_powers(sums, *(each.cpu().numpy() for each in tilt))
    above = of_items(passes.gather(p, cut, far, max(most, 1)), tilt)
    return above + torch.from_numpy(below).to(p.device)


def pixel_logs(p: Tensor, tilt: NodeTilt) -> Tensor:
    """Σ log(1 - p w) over all pixels of each row."""
    if engine.by_numpy(p):
        from argmaxf.torch.array_sums import log_products as by_arrays

        return by_arrays(p, tilt)
    return of_pixels(p, tilt)[0]


def reciprocals(p: Tensor, scale: Tensor, tilt: NodeTilt) -> Tensor:
    """Σ_m scale_m / (1 - p w_m) for each pixel of each row."""
    if engine.by_numpy(p):
        from argmaxf.torch.array_sums import reciprocals as by_arrays

        return by_arrays(p, scale, tilt)
    found: Tensor = engine.items_for(p).reciprocals(p, scale, tilt)
    return found


def none_there(p: Tensor) -> Tensor:
    """P(S = 0) = Π (1 - p) of each row."""
    log = torch.zeros(len(p), dtype=torch.float64, device=p.device)
    for part in parts_of(*p.shape):
        log += torch.log1p(-p[:, part].double()).sum(1)
    return log.exp()
