"""The array types that every part of the library names, and the form that kernels take them in."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Libraries of tensors: the name of the class of their tensors, and the module here that knows them.
TENSORS = {"torch": ("Tensor", "argmaxf.torch.tensors")}


def readonly(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view, so that every kernel sees one type of input."""
    view = array.view()
    view.flags.writeable = False
    return view


def contiguous(values: NDArray[Any]) -> Floats:
    """Return numbers as the kernels take them: float64, contiguous, read-only."""
    return readonly(np.ascontiguousarray(values, dtype=np.float64))


def tensors_for(values: Any) -> Any:
    """Return the module that knows tensors if `values` is one, else None.

    No library is imported for the question: whoever has a tensor has done so.
    """
    for library, (kind, home) in TENSORS.items():
        loaded = sys.modules.get(library)
        if loaded is not None and isinstance(values, getattr(loaded, kind)):
            return import_module(home)
    return None
