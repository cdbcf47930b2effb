"""Whether numbers can be those of a summary: what the sums over real items always satisfy.

With y_1, …, y_N in [-1, 1] and M_j = Σ y^j, the matrices of M_{i+j} (i, j = 0 … 3) and of
M_{i+j} - M_{i+j+2} (i, j = 0 … 2), Σ v vᵀ and Σ (1 - y²) v vᵀ with v = (1, y, y², …), have no
negative eigenvalue; and numbers for which that is so are the sums of some distribution on [-1, 1].
|M_1| ≤ N, M_2 ≤ N and Cauchy-Schwarz between any two sums are among it.
"""

from __future__ import annotations

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.expected.summary import layout

SLACK = 1e-9  # of N, for rounding: sums of a billion doubles are better than that
LARGEST = 2.0**53  # beyond, a count of doubles is no longer exact


def possible(rows: Ints, values: Floats) -> bool:
    """Tell whether numbered rows of a table can be the summary of some probabilities."""
    distinct = np.unique(rows).size == rows.size
    in_range = bool(((rows >= 0) & (rows < layout.ROWS)).all())
    if not (distinct and in_range and np.isfinite(values).all()):
        return False
    count = values[:, 0]
    if not ((count >= 1) & (count <= LARGEST) & (count == np.floor(count))).all():
        return False
    alone = (rows == layout.ONE_ROW) | (rows == layout.ZERO_ROW)  # all items are equal
    tiny = rows == layout.TINY_ROW
    return bool(
        not values[alone, 1:].any()
        and not values[tiny, 2:].any()
        and ((values[tiny, 1] > 0) & (values[tiny, 1] < count[tiny] * (1 + SLACK))).all()
        and _are_moments(values[~alone & ~tiny]).all()
        and _is_half(values[rows == layout.upper_row(layout.HALF_KEY)]).all()
    )


def _are_moments(values: Floats) -> Bools:
    """Tell which rows hold the power sums of N places in [-1, 1]."""
    count = values[:, 0]
    m = np.column_stack([np.ones(count.size), values[:, 1] + values[:, 2], values[:, 3:]])
    m[:, 1:] /= count[:, None]
    hankel = m[:, np.add.outer(np.arange(4), np.arange(4))]
    beside = (m[:, :-2] - m[:, 2:])[:, np.add.outer(np.arange(3), np.arange(3))]
    least = np.minimum(np.linalg.eigvalsh(hankel)[:, 0], np.linalg.eigvalsh(beside)[:, 0])
    powers = m[:, 1:2] ** np.arange(7)  # of a single item they are all
    single = (np.abs(m - powers) <= SLACK).all(axis=1)
    split = (values[:, 2] >= 0) & (values[:, 2] <= count * 2.0**-25 * (1 + SLACK))
    possible: Bools = (least >= -SLACK) & split & (single | (count > 1))
    return possible


def _is_half(values: Floats) -> Bools:
    """Tell which rows hold items with p = 1/2 only, at the end of their group: y = -1."""
    equal: Bools = values[:, 1] + values[:, 2] == -values[:, 0]
    return equal
