"""Tensors that stay as they are, made once for each device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

Made = TypeVar("Made")


def once(make: Callable[..., Made]) -> Callable[..., Made]:
    """Make tensors once for the same arguments, of which the last is their device.

    They are waited for: another thread may read them on another stream.
    """

    @functools.lru_cache(maxsize=64)
    def made(*arguments: Any) -> Made:
        found = make(*arguments)
        if arguments[-1].type == "cuda":
            torch.cuda.synchronize(arguments[-1])
        return found

    return functools.wraps(make)(made)


@once
def every_row(number: int, rows: int, device: torch.device) -> Tensor:
    """The same whole number for every row: nobody writes into it."""
    return torch.full((rows,), number, dtype=torch.int64, device=device)
