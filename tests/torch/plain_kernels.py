"""The kernels for GPUs as plain torch: to judge them by, and to take their place on the CPU."""

import numpy as np
import torch


def decide(p, problem):
    """Leave every row to the decision for arrays."""
    numbers = torch.zeros(len(p), 6, dtype=torch.float64)
    return torch.zeros(p.shape, dtype=torch.bool), numbers, numbers.numpy()


def node_sums(p, w, x):
    counts, d = p.double()[:, None] >= 0.0, p.double().clamp(min=0.0)[:, None]
    factor = torch.where(d < 0.5, 1 - d * w[:, :, None], x[:, :, None] + (1 - d) * w[:, :, None])
    pi, rest = d * x[:, :, None] / factor, (1 - d) / factor
    sums = [torch.where(counts, each, 0.0).sum(2) for each in (pi, rest, pi * rest)]
    log = torch.where(d < 0.5, torch.log1p(-d * w[:, :, None]), factor.log())
    return torch.stack([log.sum(2), *sums], 1)


def reciprocals(p, scale, x):
    d = p.double()[:, :, None]
    return (scale[:, None] / (1 - d + d * x[:, None])).sum(2)


def excess(p, scale, x, price, nu):
    ends = scale.shape[1]
    worth = [p * reciprocals(p, scale[:, e], x) - price for e in range(ends)]
    over = [
        [(each - nu[:, e + side, None]).clamp(min=0.0).sum(1) for side in (0, 1)]
        for e, each in enumerate(worth)
    ]
    return torch.from_numpy(np.moveaxis(np.array(over), 2, 0))
