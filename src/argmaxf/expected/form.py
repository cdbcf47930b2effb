r"""A ratio of counts as the search climbs it, prepared for given items.

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

`Gain` climbs f, `Loss` climbs the loss (climbers.py); the search treats both alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from argmaxf._base.arrays import Floats
from argmaxf.expected.quadrature import Nodes, plausible_positives, reciprocal_nodes
from argmaxf.expected.summary.groups import Groups, group_sums, group_variances
from argmaxf.measures import Coefficients

MARGIN = 1e-12  # of bounds on f, for their rounding
LEAST_PART = -60.0  # log of the part of f below which a node is dropped


class Tilt(NamedTuple):
    """w = 1 - e^{-bu} and x = e^{-bu} at the nodes, for labels inside or outside of the set."""

    b: float
    w: Floats
    x: Floats

    @classmethod
    def of(cls, nodes: Nodes, b: float) -> Tilt:
        """Return the tilt at the nodes."""
        from argmaxf.expected import tilt_kernels as kernels

        return cls(b, *kernels.tilt(nodes.u, b))

    def sums(self, groups: Groups) -> tuple[Floats, Floats]:
        """Return Σ log(1 - p w) and Σ π of each group at each node."""
        if self.b == 0.0:
            shape = (len(groups), self.w.size)
            return np.zeros(shape), np.broadcast_to(groups.mass[:, None], shape)
        return group_sums(groups, self.w, self.x)

    def totals(self, groups: Groups) -> tuple[Floats, ...]:
        """Σ log(1 - p w), Σ π, Σ π (1 - π) and Σ (1 - π) over all groups, at each node."""
        sums = *self.sums(groups), *group_variances(groups, self.w, self.x)
        return tuple(each.sum(axis=0) for each in sums)

    def share(self, p: Floats) -> Floats:
        """p / (1 - p w), which grows with p."""
        return p[:, None] / self._factor(p[:, None])

    def rest(self, p: Floats) -> Floats:
        """(1 - p) / (1 - p w), which falls as p grows."""
        return (1.0 - p[:, None]) / self._factor(p[:, None])

    def _factor(self, p: Floats) -> Floats:
        """1 - p w, without cancellation."""
        return np.where(p < 0.5, 1.0 - p * self.w, self.x + (1.0 - p) * self.w)


@dataclass(frozen=True)
class Form:
    """A measure at the nodes that matter for some items, and sets of at most `reach` of them."""

    coefficients: Coefficients
    nodes: Nodes
    inside: Tilt
    outside: Tilt
    log_none: Floats  # log Q of the empty set

    @classmethod
    def of(
        cls, groups: Groups, coefficients: Coefficients, reach: float, start: float = 1.0
    ) -> Form:
        """Prepare the measure for all items, and sets of `start` to `reach` of them, or none."""
        _, b_in, b_out, _, s1 = coefficients
        mean = float(groups.mass.sum())
        fewest, most = plausible_positives(mean, int(groups.count.sum()))
        # k ≥ T, so that x ≥ (1 + b_in) T + b_out R
        least = s1 + max(
            min(start, reach) + min(b_in, b_out) * fewest, min(1.0 + b_in, b_out) * fewest
        )
        nodes = reciprocal_nodes(least, reach + s1 + max(b_in, b_out) * most)
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

    def spread(self, chosen: Groups, rest: Groups, f: float) -> float:
        """Return the standard deviation of the measure for a chosen set, f being its mean."""
        c, b_in, b_out, s0, s1 = self.coefficients
        log_in, pi_in, var_in, negative = self.inside.totals(chosen)
        log_out, pi_out, var_out, _ = self.outside.totals(rest)
        k = chosen.count.sum()
        u, weight = self.nodes
        decay = np.exp(log_in + log_out - u * (k + s1))
        # 1 - f = E[(k - (c - b_in) T + b_out R + s1 - s0) / x], summed anew: b_in multiplies it
        suits = has_loss(self.coefficients)
        own = 1.0 if suits else c - b_in
        missed = negative + (1.0 - own) * pi_in + b_out * pi_out + (s1 - s0)
        loss = weight * decay @ missed
        inside, outside = own + b_in * loss, -f * b_out
        # Under the tilt numerator - f · denominator is a sum of independent labels. Its variance
        # and squared mean are all ≥ 0, and 1/x² = Σ ω u e^{-ux}: nothing cancels.
        mean = inside * pi_in - f * k
        if suits and f > (1.0 + b_in) * loss:  # the same by what is missed, of which there is less
            mean = (1.0 + b_in) * loss * k - inside * negative
        mean = mean + outside * pi_out + (s0 - f * s1)
        second = inside**2 * var_in + outside**2 * var_out + mean**2
        return float(np.sqrt(weight * u @ (decay * second)))

    def scale(self, log_q: Floats) -> Floats:
        """ω e^{-u s1} Q."""
        scale: Floats = self.nodes.weight * np.exp(log_q - self.nodes.u * self.coefficients.s1)
        return scale


def has_loss(coefficients: Coefficients) -> bool:
    """Whether what a measure lacks to 1 is a sum of terms that are not negative."""
    c, b_in, _, s0, s1 = coefficients
    return bool(c == 1.0 + b_in and s1 >= s0)


def value_at_least(groups: Groups, coefficients: Coefficients, least: int, most: int) -> float:
    """A lower bound on the best value of `least` to `most` items, by Jensen's inequality.

    See `small_set_kernels.largest_useful_k`. 0 if no border of groups is within these limits.
    """
    c, b_in, b_out, s0, s1 = coefficients
    k, mass = np.cumsum(groups.count), np.cumsum(groups.mass)
    below = (c * mass + s0) / (k + s1 + b_in * (1.0 + mass) + b_out * (mass[-1] - mass))
    return float(below.max(where=(k >= least) & (k <= most), initial=0.0))


def useful_sizes(groups: Groups, coefficients: Coefficients, best: float) -> tuple[float, float]:
    """Bound the best k from both sides: below and above, f cannot reach what some set is worth.

    `best` is that worth, as of `value_at_least`.

    With M_k = Σ_{i≤k} p_i, Jensen's inequality, and S hardly ever below `fewest`,

        f_k ≤ (c M_k + s0) / (k + s1 + b_in M_k)                         x ≥ k + s1 + b_in T
        f_k ≤ (c M_k + s0) / (s1 + min(1 + b_in, b_out) fewest)          k ≥ T
        f_k ≤ (c M_k + s0) / (k + s1 + min(b_in, b_out) fewest)
        f_k ≤ (c μ + s0) / (k + s1 + min(b_in, b_out) μ)                 all positives inside
    """
    c, b_in, b_out, s0, s1 = coefficients
    mean = float(groups.mass.sum())
    if best == 0.0:  # no bound, or probabilities so small that it underflows
        return 1.0, math.inf
    fewest, _ = plausible_positives(mean, int(groups.count.sum()))
    first, mass = np.cumsum(groups.count) - groups.count + 1.0, np.cumsum(groups.mass)
    size = np.maximum(first + b_in * mass, first + min(b_in, b_out) * fewest)
    denominator = s1 + np.maximum(size, min(1.0 + b_in, b_out) * fewest)
    useful = np.flatnonzero(c * mass + s0 >= best * (1.0 - MARGIN) * denominator)
    reach = (c * mean + s0) / best - s1 - min(b_in, b_out) * mean + 1.0
    last = first[useful[-1]] + groups.count[useful[-1]] - 1.0
    return float(first[useful[0]]), float(min(reach, last))
