"""Which implementation works on a tensor's device: NumPy's, Triton's kernels, or plain torch."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from argmaxf.torch.form import NodeTilt


class Backend(NamedTuple):
    """Modules with the same functions: passes over pixels, and what is made of tables."""

    passes: Any
    tables: Any
    row_bytes: int  # that the tables of one row need


def by_numpy(rows: Tensor) -> bool:
    """Whether the compiled loops for arrays can have the pixels: on the CPU they are faster."""
    return rows.device.type == "cpu"


def engine_for(p: Tensor) -> Backend:
    """Return what suits the device of the pixels."""
    if p.is_cuda:
        try:
            from argmaxf.torch import triton_counts, triton_passes, triton_tables
        except ImportError:
            pass
        else:
            return Backend(triton_passes, triton_tables, triton_counts.LEAST_ITEMS * 8 * 10)
    from argmaxf.torch import passes, tables

    backend = Backend(passes, tables, passes.BINS * 48 * 8 * 10)  # bins × nodes, ten of them
    if by_numpy(p):
        from argmaxf.torch import array_passes

        return backend._replace(passes=array_passes)
    return backend


def none_there(p: Tensor) -> Tensor:
    """P(S = 0) = Π (1 - p) of each row."""
    one = torch.ones(len(p), 1, dtype=torch.float64, device=p.device)
    log_none: Tensor = engine_for(p).passes.log_products(p, NodeTilt(one, 0.0 * one))
    return log_none[:, 0].exp()
