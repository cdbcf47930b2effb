r"""A ratio of counts at the nodes of the quadrature, prepared for given items.

For a measure of the family (c T + s0) / (k + b_in T + b_out R + s1) (see `measures/ratio.py`), with
1/x = Σ ω e^{-ux} and independent labels, the value of a set is f = Σ_m e^{-u_m k} Φ(u_m),

    Φ = ω e^{-u s1} Q A,   Q = Π_{i in} (1 - p_i w_in) Π_{j out} (1 - p_j w_out),
    A = c Σ_{i in} π_i + s0,   w = 1 - x,   x = e^{-bu},   π = p x_in / (1 - p w_in):

π is the probability of a label once labels are tilted by e^{-b_in u}. Taking in one more item,

    Φ_k - Φ_{k-1} = Φ's scale · Q_{k-1} p_k / (1 - p_k w_out) · [(w_out - w_in) A_{k-1} + c x_in],

so Φ grows with k where b_out ≥ b_in: always for F_β (b_in = b_out, Q does not change) and for
Jaccard (b_in = 0). Elsewhere Q falls while A grows, and the bounds take both into account.

Where f is near 1 its terms hardly differ from set to set, and what it lacks tells more: for c = 1 +
b_in the loss is 1 - f = E[(k - T + b_out R + s1 - s0) / x] = Σ_m e^{-u_m k} Ψ(u_m), with

    Ψ = ω e^{-u s1} Q (Σ_{i in} (1 - π_i) + b_out Σ_{j out} π_j + s1 - s0),   π outside with x_out.

The search maximizes f by `Gain` or minimizes the loss by `Loss` (objectives.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from argmaxf._base.arrays import Floats
from argmaxf.expected.decision import ExpectedF
from argmaxf.expected.grouped.groups import Groups, group_sums, group_variances
from argmaxf.expected.quadrature import (
    Nodes,
    denominator_range,
    plausible_positives,
    reciprocal_nodes,
)
from argmaxf.measures import Coefficients
from argmaxf.problem import Problem

ROUNDING_MARGIN = 1e-12  # of bounds on f, for their rounding
LEAST_PART = -60.0  # log of the part of f below which a node is dropped


class Tilt(NamedTuple):
    """w = 1 - e^{-bu} and x = e^{-bu} at the nodes, for labels inside or outside of the set."""

    b: float
    w: Floats
    x: Floats

    @classmethod
    def of(cls, nodes: Nodes, b: float) -> Tilt:
        """Return the tilt at the nodes."""
        from argmaxf.expected import tilt_kernels

        return cls(b, *tilt_kernels.tilt(nodes.u, b))

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

    def share(self, p: Floats) -> Floats:
        """p / (1 - p w), which grows with p."""
        return p[:, None] / self.factor(p)

    def rest(self, p: Floats) -> Floats:
        """(1 - p) / (1 - p w), which falls as p grows."""
        return (1.0 - p[:, None]) / self.factor(p)

    def factor(self, p: Floats) -> Floats:
        """1 - p w, without cancellation."""
        p = p[:, None]
        return np.where(p < 0.5, 1.0 - p * self.w, self.x + (1.0 - p) * self.w)


@dataclass(frozen=True)
class Integrand:
    """A measure at the nodes that matter for some items, and sets of at most `reach` of them."""

    coefficients: Coefficients
    nodes: Nodes
    inside: Tilt
    outside: Tilt
    log_none: Floats  # log Q of the empty set

    @classmethod
    def of(
        cls, groups: Groups, coefficients: Coefficients, reach: float, start: float = 1.0
    ) -> Integrand:
        """Prepare the measure for all items, and sets of `start` to `reach` of them, or none."""
        _, b_in, b_out, _, s1 = coefficients
        mean, n = float(groups.mass.sum()), float(groups.count.sum())
        sizes = min(start, reach), reach
        nodes = Nodes(*reciprocal_nodes(*denominator_range(mean, n, coefficients, *sizes, 0.0)))
        inside, outside = Tilt.of(nodes, b_in), Tilt.of(nodes, b_out)
        log_out = outside.sums(groups)[0]
        log_in = log_out if b_in == b_out else inside.sums(groups)[0]
        # A node's part of f, relative to f, is at most the largest e^{-uk} Q times E[x]: the
        # expectation of e^{-ux} under any tilt, and Jensen's inequality for that of 1/x.
        largest = np.maximum(log_in - np.multiply.outer(groups.count, nodes.u), log_out)
        middle = reach + s1 + max(b_in, b_out) * (1.0 + mean)
        part = np.log(nodes.weight * middle) + largest.sum(axis=0) - nodes.u * s1
        size = int(np.flatnonzero(part > LEAST_PART)[-1]) + 1
        return cls(
            coefficients,
            Nodes(nodes.u[:size], nodes.weight[:size]),
            Tilt(b_in, inside.w[:size], inside.x[:size]),
            Tilt(b_out, outside.w[:size], outside.x[:size]),
            log_out.sum(axis=0)[:size],
        )

    @property
    def one_tilt(self) -> bool:
        """Whether labels inside and outside are tilted alike: Q never changes then (F_β)."""
        return self.inside.b == self.outside.b

    def value(self, chosen: Groups, rest: Groups) -> ExpectedF:
        """Return mean and standard deviation of the measure for a chosen set."""
        from argmaxf.expected import tilt_kernels as at

        c, (u, weight), k = self.coefficients, self.nodes, float(chosen.count.sum())
        log_in, *inside = self.inside.totals(chosen)
        log_out, *outside = self.outside.totals(rest)
        sums = np.zeros(at.NODE_SUMS)
        table = sums.reshape(-1, at.PITCH)[:7, : u.size]
        table[0] = weight * np.exp(log_in + log_out - u * (k + c.s1))
        table[1:4], table[4:7] = inside, outside
        mean = float(table[0] @ (c.c * table[1] + c.s0))
        return ExpectedF(mean, at.spread(k, mean, c, u, u.size, sums, (0.0, 0.0)))

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
    from argmaxf.expected import tilt_kernels

    c = problem.coefficients
    if c.s1 > 0.0:
        return Integrand.of(groups, c, 0.0).value(groups[:0], groups)
    log_none = 0.0
    if len(groups) and c.b_out > 0.0:
        certain = groups.centre[0] == 1.0
        sums = None if certain else group_sums(groups, np.ones(1), np.zeros(1))
        log_none = -math.inf if sums is None else float(sums[0].sum())
    return ExpectedF(*tilt_kernels.zero_over_zero(problem.zero_division, log_none))


def value_at_least(groups: Groups, coefficients: Coefficients, least: int, most: int) -> float:
    """Return a lower bound on the best value of `least` to `most` items, by Jensen's inequality.

    0 if no border of groups is within these limits.
    """
    from argmaxf.expected import tilt_kernels

    k, mass = np.cumsum(groups.count), np.cumsum(groups.mass)
    below: Floats = tilt_kernels.jensen_bound.py_func(k, mass, mass[-1], coefficients)
    return float(below.max(where=(k >= least) & (k <= most), initial=0.0))


def useful_sizes(groups: Groups, coefficients: Coefficients, best: float) -> tuple[float, float]:
    """Bound the best k from both sides: below and above, f cannot reach what some set is worth.

    `best` is that worth, as of `value_at_least`. With M_k = Σ_{i≤k} p_i, Jensen's inequality, and S
    hardly ever below `fewest`,

        f_k ≤ (c M_k + s0) / (k + s1 + b_in M_k)                         x ≥ k + s1 + b_in T
        f_k ≤ (c M_k + s0) / least_denominator(k, fewest)
        f_k ≤ (c μ + s0) / (k + s1 + min(b_in, b_out) μ)                 all positives inside
    """
    from argmaxf.expected import tilt_kernels

    c, b_in, b_out, s0, s1 = coefficients
    mean = float(groups.mass.sum())
    if best == 0.0:  # no bound, or probabilities so small that it underflows
        return 1.0, math.inf
    fewest, _ = plausible_positives(mean, float(groups.count.sum()))
    first, mass = np.cumsum(groups.count) - groups.count + 1.0, np.cumsum(groups.mass)
    size = np.maximum(first + b_in * mass, first + min(b_in, b_out) * fewest)
    denominator = s1 + np.maximum(size, min(1.0 + b_in, b_out) * fewest)
    useful = np.flatnonzero(c * mass + s0 >= best * (1.0 - ROUNDING_MARGIN) * denominator)
    reach = tilt_kernels.largest_size.py_func(best, mean, coefficients)
    last = first[useful[-1]] + groups.count[useful[-1]] - 1.0
    return float(first[useful[0]]), float(min(reach, last))
