"""Which implementation works on a tensor's device: NumPy's, Triton's kernels, or plain torch."""

from __future__ import annotations

from typing import Any

from torch import Tensor

MOST_ROWS = 1 << 15  # at a time: a grid of programs has room for twice as many


def by_numpy(rows: Tensor) -> bool:
    """Whether the compiled loops for arrays can have the pixels: on the CPU they are faster."""
    return rows.device.type == "cpu"


def by_triton(rows: Tensor) -> bool:
    """Whether the pixels are on an NVIDIA GPU, and Triton is there."""
    if not rows.is_cuda:
        return False
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


def passes_for(p: Tensor) -> Any:
    """Return the module whose passes over all pixels suit their device."""
    if by_triton(p):
        from argmaxf.torch import triton_passes

        return triton_passes
    from argmaxf.torch import passes

    return passes


def items_for(p: Tensor) -> Any:
    """Return the module whose sums over some pixels suit their device."""
    if by_triton(p):
        from argmaxf.torch import triton_items

        return triton_items
    from argmaxf.torch import items

    return items
