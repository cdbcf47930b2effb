"""The array types that every part of the library names, and the form that kernels take them in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def readonly(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view, so that every kernel sees one type of input."""
    view = array.view()
    view.flags.writeable = False
    return view


def contiguous(values: NDArray[Any]) -> Floats:
    """Return numbers as the kernels take them: float64, contiguous, read-only."""
    return readonly(np.ascontiguousarray(values, dtype=np.float64))
