"""Tensors that stay as they are, made once for each device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

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
