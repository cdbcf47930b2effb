r"""A ratio of counts at the nodes of the quadrature, prepared for given items.

For a measure of the family (c T + s0) / (k + b_in T + b_out R + s1) (see `measures/base.py`), with
1/x = Σ ω e^{-ux} and independent labels, the value of a set is f = Σ_m e^{-u_m k} Φ(u_m),

    Φ = ω e^{-u s1} Q A,   Q = Π_{i in} (1 - p_i w_in) Π_{j out} (1 - p_j w_out),
    A = c Σ_{i in} π_i + s0,   w = 1 - x,   x = e^{-bu},   π = p x_in / (1 - p w_in):

π is the probability of a label once labels are tilted by e^{-b_in u}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from argmaxf._base.arrays import Floats
from argmaxf.expected.decision import ExpectedF
from argmaxf.expected.groups import Groups, group_sums, group_variances
from argmaxf.expected.quadrature import Nodes, denominator_range, reciprocal_nodes
from argmaxf.measures import Coefficients
from argmaxf.problem import Problem


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
    ) -> Integrand:
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
        from argmaxf.expected import band_kernels

        inside, outside = np.array(self.inside.totals(chosen)), np.array(self.outside.totals(rest))
        k, c = float(chosen.count.sum()), self.coefficients
        mean, std = band_kernels.value_and_spread(k, inside, outside, 0.0, self.nodes, c)
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
