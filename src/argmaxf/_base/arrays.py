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
    torch = sys.modules.get("torch")
    is_tensor = torch is not None and isinstance(values, torch.Tensor)
    return import_module("argmaxf.torch.tensors") if is_tensor else None


def is_sparse(values: Any) -> bool:
    """Whether something is a SciPy sparse matrix or array; SciPy is not imported to find out."""
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(values))


def as_csr(name: str, matrix: Any) -> Any:
    """Return a sparse matrix of probabilities as a new CSR array of float64 without stored zeros.

    Duplicates are added up, as SciPy does wherever it looks at a matrix; what was given is left as
    it is.
    """
    from scipy import sparse

    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {matrix.dtype}")
    csr = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    csr.sum_duplicates()
    bad = ~((csr.data >= 0.0) & (csr.data <= 1.0))
    if bad.any():
        first = int(bad.argmax())
        row = int(np.searchsorted(csr.indptr, first, side="right")) - 1
        value, where = float(csr.data[first]), (row, int(csr.indices[first]))
        raise ValueError(f"{name} must be finite and in [0, 1], got {value!r} at position {where}")
    csr.eliminate_zeros()
    return csr


def selected_cells(csr: Any, chosen: Bools, like: Any) -> Any:
    """Return the chosen ones of the stored cells as a CSR of booleans, array or matrix as given."""
    from scipy import sparse

    ends = np.concatenate([[0], np.cumsum(chosen)])[csr.indptr].astype(csr.indptr.dtype)
    content = (np.ones(int(ends[-1]), np.bool_), csr.indices[chosen], ends)
    make = sparse.csr_array if isinstance(like, sparse.sparray) else sparse.csr_matrix
    return make(content, shape=csr.shape)
