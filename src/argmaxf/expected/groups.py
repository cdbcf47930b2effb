r"""Items in groups of nearly equal probability: all that the expected F needs to know of them.

Let t = p for p < 1/2 and t = 1 - p for p ≥ 1/2 (exact in floating point). The key of an item at
`shift` is the bit pattern of t without its last `shift` bits. Keys grow with t, and a group with b
mantissa bits left is never wider than 2^-b times its t.

The table of a sketch has one row for each key at SHIFT, items whose t share the exponent and the
first BITS bits of the mantissa. Rows by falling p: p = 1; p in [1/2, 1) by rising key; p in
[2^-64, 1/2) by falling key; 0 < p < 2^-64; p = 0.

The search sees a summary of all items first, then a `Source` has closer looks at a few groups.

`Integrand` is a measure (c T + s0) / (k + b_in T + b_out R + s1) (`measures/base.py`) at the nodes
of the quadrature. With 1/x = Σ ω e^{-ux} and independent labels, the value of a set is
f = Σ_m e^{-u_m k} Φ(u_m),

    Φ = ω e^{-u s1} Q A,   Q = Π_{i in} (1 - p_i w_in) Π_{j out} (1 - p_j w_out),
    A = c Σ_{i in} π_i + s0,   w = 1 - x,   x = e^{-bu},   π = p x_in / (1 - p w_in):

π is the probability of a label once labels are tilted by e^{-b_in u}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Bools, Floats, Ints, contiguous
from argmaxf._base.validation import NotAProbability
from argmaxf.expected import group_kernels
from argmaxf.expected.array_passes import ArrayPasses, BatchPasses
from argmaxf.expected.decision import ExpectedF
from argmaxf.expected.group_kernels import (
    HALF_KEY,
    HIGH_BASE,
    HIGH_ROWS,
    LEAST_KEYED,
    ONE_ROW,
    ROWS,
    SHIFT,
    TABLE_COLUMNS,
    TINY_ROW,
    ZERO_ROW,
)
from argmaxf.expected.quadrature import Nodes, denominator_range, reciprocal_nodes
from argmaxf.measures import Coefficients
from argmaxf.problem import Problem

MOMENTS = 6
PIECES = 1 << 9  # that neighbouring groups are cut into, or twice as many
FEW_ITEMS = 1 << 12  # of so few each distinct value is a group


def empty_table() -> Floats:
    """Return the table of no items."""
    return np.zeros((ROWS, TABLE_COLUMNS))


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
    def of_values(cls, values: Floats, counts: Floats | Ints) -> Groups:
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
    shape = (len(groups), w.size)
    log_terms, pi = np.empty(shape), np.empty(shape)
    group_kernels.group_terms(*group_arrays(groups), w, x, log_terms, pi)
    return log_terms, pi


def group_variances(groups: Groups, w: NDArray[Any], x: NDArray[Any]) -> tuple[Any, Any]:
    """Return Σ π (1 - π) and Σ (1 - π) of each group at each node, real or complex."""
    shape = (len(groups), w.size)
    variance, negative = np.empty(shape, w.dtype), np.empty(shape, w.dtype)
    group_kernels.group_variances(*group_arrays(groups), w, x, variance, negative)
    return variance, negative


def group_arrays(groups: Groups) -> tuple[Floats, ...]:
    """Return what kernels take of groups."""
    parts = (groups.count, groups.centre, groups.rest, groups.half, groups.moments)
    return tuple(np.ascontiguousarray(part) for part in parts)


def groups_of_table(table: Floats, *, zeros: bool = False) -> Groups:
    """Turn the table of a summary into groups; with `zeros`, items with p = 0 are the last."""
    rows = np.arange(1, TINY_ROW)
    kept = rows[table[1:TINY_ROW, 0] > 0]
    upper = kept <= HIGH_ROWS  # on which side of 1/2
    key = np.where(upper, kept - 1 + HIGH_BASE, HIGH_ROWS + HALF_KEY - kept)
    groups = table_groups(upper, key, table[kept])
    ones, tiny = table[ONE_ROW, 0], table[TINY_ROW]
    if ones:
        groups = Groups.joined([Groups.of_values(np.ones(1), np.array([ones])), groups])
    if tiny[0]:
        few = Groups.of_values(np.zeros(1), tiny[:1])  # their sum is all that counts
        few.half[:], few.moments[0, 0], few.rest[:] = LEAST_KEYED, tiny[1], 1.0
        ends = {"low": np.array([5e-324]), "high": np.nextafter([LEAST_KEYED], 0.0)}
        groups = Groups.joined([groups, replace(few, **ends)])
    none = table[ZERO_ROW, :1]
    if zeros and none[0]:
        groups = Groups.joined([groups, Groups.of_values(np.zeros(1), none)])
    return groups


def table_groups(upper: Bools, key: Ints, table: Floats) -> Groups:
    """Turn rows of a table (count, Σy in two parts, Σy² …) into groups by falling p."""
    first, last = key << SHIFT, ((key + 1) << SHIFT) - 1
    t_low, t = number_of(first), number_of(first + ((1 << SHIFT) >> 1))
    # From 1/2 to 1 numbers are multiples of 2^-53. The key of t = 1/2 holds that one number
    t_high = np.where(upper, np.minimum(number_of(last), 0.5), number_of(last))
    ends = 1.0 - np.floor(t_high * 2.0**53) / 2.0**53, 1.0 - np.ceil(t_low * 2.0**53) / 2.0**53
    low, high = np.where(upper, ends[0], t_low), np.where(upper, ends[1], t_high)
    run, half = low == high, t - t_low
    centre, rest = np.where(upper, 1.0 - t, t), np.where(upper, t, 1.0 - t)
    moments = np.column_stack([table[:, 1] + table[:, 2], table[:, 3:]])
    groups = Groups(
        count=table[:, 0],
        centre=np.where(run, low, centre),
        rest=np.where(run, 1.0 - low, rest),
        half=np.where(run, 0.0, np.where(upper, -half, half)),
        moments=np.where(run[:, None], 0.0, moments),
        low=low,
        high=high,
    )
    return groups[np.argsort(-low, kind="stable")]


def number_of(bits: Ints) -> Floats:
    """Return the numbers that have these bits."""
    return np.ascontiguousarray(bits).view(np.float64)


class Source:
    """Items that are read in batches; those of groups that were looked at are held, sorted."""

    def __init__(self, passes: BatchPasses) -> None:
        self.passes = passes
        self._held = np.empty(0)

    def table(self) -> Groups:
        """Return all items in the groups of the summary, those with p = 0 in the last."""
        return groups_of_table(summary(self.passes), zeros=True)

    def refine(self, wanted: Sequence[Groups]) -> list[Groups]:
        """Return the items of each part in finer groups, in the end one for each distinct value."""
        if any(self._items(part).size != part.count.sum() for part in wanted):
            inside = partial(_inside, Groups.joined(wanted))
            self._held = np.sort(np.concatenate(self.passes.each(inside)))
        return [_finer(self._items(part), part.low) for part in wanted]

    def _items(self, part: Groups) -> Floats:
        """Return the items held of neighbouring groups."""
        first, end = self._held.searchsorted([part.low[-1], np.nextafter(part.high[0], 2.0)])
        return self._held[first:end]


def summary(passes: BatchPasses) -> Floats:
    """Return the table of a summary of all items; raise NotAProbability if a value is none."""
    total = empty_table()
    for part in passes.results(_summarized):  # summed apart, so that rounding cannot build up
        total += part
    return total


def _summarized(p: NDArray[Any]) -> Floats:
    """Return the table of a batch."""
    table = empty_table()
    if not group_kernels.summarize(contiguous(p), table):
        raise NotAProbability
    return table


def _inside(groups: Groups, p: NDArray[Any]) -> Floats:
    """Return the items of a batch that lie in one of some groups."""
    near = contiguous(p[(p >= groups.low[-1]) & (p <= groups.high[0])])
    place = np.searchsorted(groups.low[::-1], near, side="right") - 1
    return near[near <= groups.high[::-1][place]]


def _finer(items: Floats, borders: Floats) -> Groups:
    """Return items in ascending order as groups: cut at borders, and into about equal numbers."""
    if items.size <= PIECES:
        return _groups_of_values(items)
    some = items[:: -(-items.size // PIECES)]
    ends = items.searchsorted(some, "right")  # of runs of equal items, which are not parted
    cuts = np.zeros(1, int), items.searchsorted(borders), items.searchsorted(some), ends
    starts = np.unique(np.concatenate(cuts))
    starts = starts[starts < items.size]
    count = np.diff(starts, append=items.size)
    low, high = items[starts], items[starts + count - 1]
    centre = low + 0.5 * (high - low)
    half = np.maximum(high - centre, centre - low)  # one may round to 0
    width = np.where(half > 0.0, half, 1.0)
    place = (items - np.repeat(centre, count)) / np.repeat(width, count)
    moments = [np.add.reduceat(place**j, starts) for j in range(1, MOMENTS + 1)]
    sums = np.column_stack(moments)
    return Groups(count.astype(np.float64), centre, 1.0 - centre, half, sums, low, high)[::-1]


def _groups_of_values(p: NDArray[Any]) -> Groups:
    """Return one group for each distinct value."""
    values, counts = np.unique(p.astype(np.float64), return_counts=True)
    return Groups.of_values(values[::-1], counts[::-1])


def groups_of_items(p: NDArray[Any]) -> Groups:
    """Return items as groups: each distinct value one group, or the groups of a summary."""
    return _groups_of_values(p) if p.size <= FEW_ITEMS else Source(ArrayPasses(p)).table()


class Tilt(NamedTuple):
    """w = 1 - e^{-bu} and x = e^{-bu} at the nodes, for labels inside or outside of the set."""

    b: float
    w: Floats
    x: Floats

    @classmethod
    def of(cls, nodes: Nodes, b: float) -> Tilt:
        """Return the tilt at the nodes."""
        from argmaxf.expected import node_kernels

        return cls(b, *node_kernels.tilt(nodes.u, b))

    def sums(self, groups: Groups) -> tuple[Floats, Floats]:
        """Return Σ log(1 - p w) and Σ π of each group at each node."""
        if self.b == 0.0:
            shape = (len(groups), self.w.size)
            return np.zeros(shape), np.broadcast_to(groups.mass[:, None], shape)
        return group_sums(groups, self.w, self.x)

    def totals(self, groups: Groups) -> tuple[Floats, ...]:
        """Σ log(1 - p w), Σ π, Σ (1 - π) and Σ π (1 - π) over all groups, at each node."""
        variance, negative = group_variances(groups, self.w, self.x)
        return tuple(each.sum(axis=0) for each in (*self.sums(groups), negative, variance))


@dataclass(frozen=True)
class Integrand:
    """A measure at the nodes for some items, and sets of at most `reach` of them."""

    coefficients: Coefficients
    nodes: Nodes
    inside: Tilt
    outside: Tilt
    log_none: Floats  # log Q of the empty set

    @classmethod
    def of(
        cls, groups: Groups, coefficients: Coefficients, reach: float, start: float = 1.0
    ) -> Self:
        """Prepare the measure for all items, and sets of `start` to `reach` of them, or none."""
        _, b_in, b_out, _, _ = coefficients
        mean, n = float(groups.mass.sum()), float(groups.count.sum())
        sizes = min(start, reach), reach
        nodes = Nodes(*reciprocal_nodes(*denominator_range(mean, n, coefficients, *sizes, 0.0)))
        inside, outside = Tilt.of(nodes, b_in), Tilt.of(nodes, b_out)
        return cls(coefficients, nodes, inside, outside, outside.sums(groups)[0].sum(axis=0))

    @property
    def one_tilt(self) -> bool:
        """Whether labels inside and outside are tilted alike: Q never changes then (F_β)."""
        return self.inside.b == self.outside.b

    def value(self, chosen: Groups, rest: Groups) -> ExpectedF:
        """Return mean and standard deviation of the measure for a chosen set."""
        from argmaxf.expected import node_kernels

        inside, outside = np.array(self.inside.totals(chosen)), np.array(self.outside.totals(rest))
        k, c = float(chosen.count.sum()), self.coefficients
        mean, std = node_kernels.value_and_spread(k, inside, outside, 0.0, self.nodes, c)
        return ExpectedF(float(mean), float(std))

    def scale(self, log_q: Floats) -> Floats:
        """ω e^{-u s1} Q."""
        scale: Floats = self.nodes.weight * np.exp(log_q - self.nodes.u * self.coefficients.s1)
        return scale


def has_loss(coefficients: Coefficients) -> bool:
    """Whether what a measure lacks to 1 is a sum of terms that are not negative."""
    c, b_in, _, s0, s1 = coefficients
    return bool(c == 1.0 + b_in and s1 >= s0)


def value_of_nothing(groups: Groups, problem: Problem) -> ExpectedF:
    """Return mean and standard deviation of the measure if nothing is selected."""
    from argmaxf.expected import node_kernels

    c = problem.coefficients
    if c.s1 > 0.0:
        return Integrand.of(groups, c, 0.0).value(groups[:0], groups)
    log_none = 0.0
    if len(groups) and c.b_out > 0.0:
        certain = groups.centre[0] == 1.0
        sums = None if certain else group_sums(groups, np.ones(1), np.zeros(1))
        log_none = -math.inf if sums is None else float(sums[0].sum())
    return ExpectedF(*node_kernels.zero_over_zero(problem.zero_division, log_none))
