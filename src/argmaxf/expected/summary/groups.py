"""Items in groups of nearly equal probability: all that the expected F needs to know of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints

MOMENTS = 6


@dataclass(frozen=True)
class Groups:
    """Groups by falling probability, each a count and power sums about its centre.

    A probability in group g is c + h y with y in [-1, 1]; `moments[g, j-1]` is Σ y^j.
    """

    count: Floats
    centre: Floats  # c
    rest: Floats  # 1 - c, kept apart since it may be far below c's last digit
    half: Floats  # h; negative where y counts 1 - p
    moments: Floats
    low: Floats  # no probability in the group is below this
    high: Floats  # or above this
    upper: Bools  # the group is a window of keys of t = 1 - p, else of t = p (see windows.py)
    shift: Ints
    first: Ints
    keys: Ints

    def __len__(self) -> int:
        return self.count.size

    def __getitem__(self, where: slice | Bools | Ints) -> Groups:
        return Groups(*(getattr(self, f.name)[where] for f in fields(self)))

    @property
    def runs(self) -> Bools:
        """Where all items of a group are equal."""
        equal: Bools = self.low == self.high
        return equal

    @property
    def mass(self) -> Floats:
        """Σ p of each group."""
        return self.count * self.centre + self.half * self.moments[:, 0]

    @classmethod
    def of_values(cls, values: Floats, counts: Floats) -> Groups:
        """Return one group for each distinct value, given by falling value."""
        size = values.size
        return cls(
            count=counts.astype(np.float64),
            centre=values,
            rest=1.0 - values,
            half=np.zeros(size),
            moments=np.zeros((size, MOMENTS)),
            low=values,
            high=values,
            upper=values >= 0.5,
            shift=np.zeros(size, np.int64),
            first=np.zeros(size, np.int64),
            keys=np.zeros(size, np.int64),
        )

    @classmethod
    def joined(cls, parts: Sequence[Groups]) -> Groups:
        """Return the groups of all parts, in order."""
        return cls(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)))

    def split_runs(self, pieces: int) -> Groups:
        """Return the same items with every group of equal ones cut into at most `pieces`."""
        size = np.ceil(self.count / pieces)
        cuts = np.ceil(self.count / size).astype(np.int64)
        value = np.repeat(self.centre, cuts)
        full = np.repeat(size, cuts)
        last = np.cumsum(cuts) - 1
        full[last] = self.count - (cuts - 1) * size
        return Groups.of_values(value, full)


def group_sums(groups: Groups, w: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return Σ log(1 - p w) and Σ π of each group at each node."""
    from argmaxf.expected.summary import kernels

    shape = (len(groups), w.size)
    log_terms, pi = np.empty(shape), np.empty(shape)
    kernels.group_terms(*_arguments(groups), w, x, log_terms, pi)
    return log_terms, pi


def group_variances(groups: Groups, w: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return Σ π (1 - π) and Σ (1 - π) of each group at each node."""
    from argmaxf.expected.summary import kernels

    shape = (len(groups), w.size)
    variance, negative = np.empty(shape), np.empty(shape)
    kernels.group_variances(*_arguments(groups), w, x, variance, negative)
    return variance, negative


def _arguments(groups: Groups) -> tuple[Floats, ...]:
    parts = (groups.count, groups.centre, groups.rest, groups.half, groups.moments)
    return tuple(np.ascontiguousarray(part) for part in parts)
