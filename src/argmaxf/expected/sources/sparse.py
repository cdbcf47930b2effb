"""Probabilities in a SciPy sparse matrix: cells that are not stored have probability 0."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from argmaxf._base.arrays import Bools


def is_sparse(values: Any) -> bool:
    """Whether something is a SciPy sparse matrix or array; SciPy is not imported to find out."""
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(values))


def as_csr(name: str, matrix: Any) -> Any:
    """Return a sparse matrix of probabilities as a CSR array of float64 without stored zeros.

    Duplicates are added up, as SciPy does wherever it looks at a matrix; what was given is left as
    it is. Holds one copy of the cells.
    """
    from scipy import sparse

    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {matrix.dtype}")
    csr = sparse.csr_array(matrix, dtype=np.float64)
    if not csr.has_canonical_format:
        csr = csr.copy() if np.shares_memory(csr.data, _stored(matrix)) else csr
        csr.sum_duplicates()
    _check_range(name, csr)
    if csr.data.size and not csr.data.all():
        csr = csr.copy() if np.shares_memory(csr.data, _stored(matrix)) else csr
        csr.eliminate_zeros()
    return csr


def _stored(matrix: Any) -> Any:
    """Return the stored numbers of a matrix, where its format has them in one array."""
    data = getattr(matrix, "data", None)
    return data if isinstance(data, np.ndarray) and data.dtype.kind != "O" else np.empty(0)


def _check_range(name: str, csr: Any) -> None:
    """Refuse what is no probability, naming the first in row order."""
    data = csr.data
    if data.size == 0 or (data.min() >= 0.0 and data.max() <= 1.0):
        return
    first = int(np.flatnonzero(~((data >= 0.0) & (data <= 1.0)))[0])
    row = int(np.searchsorted(csr.indptr, first, side="right")) - 1
    where = (row, int(csr.indices[first]))
    raise ValueError(
        f"{name} must be finite and in [0, 1], got {float(data[first])!r} at position {where}"
    )


def selected_cells(csr: Any, chosen: Bools, like: Any) -> Any:
    """Return the chosen ones of the stored cells as a CSR of booleans, array or matrix as given."""
    from scipy import sparse

    from argmaxf.expected import sparse_kernels

    kept = int(np.count_nonzero(chosen))
    indptr, indices = np.empty_like(csr.indptr), np.empty(kept + 1, csr.indices.dtype)
    sparse_kernels.keep_cells(csr.indptr, csr.indices, chosen, indptr, indices)
    content = (np.ones(kept, np.bool_), indices[:kept], indptr)
    make = sparse.csr_array if isinstance(like, sparse.sparray) else sparse.csr_matrix
    return make(content, shape=csr.shape)
