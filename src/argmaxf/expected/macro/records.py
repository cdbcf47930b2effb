"""What the parts of this room hand to each other: cells by rows, cells by columns, columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools, Floats, Ints

Places = NDArray[np.int32]  # numbers of rows or columns


class Cells(NamedTuple):
    """The cells that may be chosen, row by row."""

    first: Ints  # where each row begins among the cells; (n + 1,)
    column: Places  # of each cell
    p: Floats  # of each cell


class Columns(NamedTuple):
    """The same cells column by column, and what each column is worth (see docs/shared-rows.md).

    A set of s cells of a column is worth Σ_m e^{log_a_m - u_m s} Σ_{i in set} π_im.
    """

    first: Ints  # where each column begins among the cells; (L + 1,)
    row: Places  # of each cell
    p: Floats  # of each cell
    first_node: Ints  # where the nodes of each column begin; (L + 1,)
    u: Floats
    w: Floats
    x: Floats
    log_a: Floats  # log of weight · (1+β²) ω G
    nothing: Floats  # what the empty set is worth
    shift: Floats  # β² times the most positives a column plausibly has


class Assignment(NamedTuple):
    """Which cells are chosen, and the state of each column under that choice."""

    chosen: Bools  # for each cell, row by row
    size: Ints  # of each column's set
    value: Floats  # of each column's set
    pi: Floats  # Σ π over each column's set, for each node
    joining: Floats  # e^{log_a - u (size + 1)}
    leaving: Floats  # e^{log_a - u (size - 1)}
    base: Floats  # (L, 2): what joining and staying gain apart from Σ joining π and Σ leaving π

    @classmethod
    def empty(cls, cells: int, columns: Columns) -> Assignment:
        """Nothing chosen."""
        size, nodes = columns.nothing.size, columns.u.size
        return cls(
            chosen=np.zeros(cells, np.bool_),
            size=np.zeros(size, np.int64),
            value=columns.nothing.copy(),
            pi=np.zeros(nodes),
            joining=np.zeros(nodes),
            leaving=np.zeros(nodes),
            base=np.zeros((size, 2)),
        )
