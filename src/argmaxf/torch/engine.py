"""Which implementation works on a tensor's device: Triton's kernels, or plain torch."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor


class Engine(NamedTuple):
    """Modules with the same functions: passes over pixels, and what is made of tables."""

    passes: Any
    tables: Any
    row_bytes: int  # that the tables of one row need


def engine_for(p: Tensor) -> Engine:
    """Return what suits the device of the pixels."""
    if p.is_cuda:
        try:
            from argmaxf.torch import triton_passes, triton_tables
        except ImportError:
            pass
        else:
            return Engine(triton_passes, triton_tables, triton_passes.LEAST_ITEMS * 8 * 10)
    from argmaxf.torch import passes, tables

    return Engine(passes, tables, passes.BINS * 48 * 8 * 10)  # bins × nodes, ten of them
