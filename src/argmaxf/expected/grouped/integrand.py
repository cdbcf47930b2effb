r"""A ratio of counts at the nodes of the quadrature, prepared for given items.

For a measure of the family (c T + s0) / (k + b_in T + b_out R + s1) (see `measures/base.py`), with
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

The search maximizes f or minimizes the loss (`Objective`).
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
    bounds_of_sets,
    denominator_range,
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
        from argmaxf.expected import band_kernels

        inside, outside = np.array(self.inside.totals(chosen)), np.array(self.outside.totals(rest))
        k, nodes, c = float(chosen.count.sum()), np.array(self.nodes), self.coefficients
        mean, std = band_kernels.value_and_spread(k, inside, outside, 0.0, nodes, c)
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


def useful_sizes(groups: Groups, problem: Problem) -> tuple[float, float, float]:
    """Bound the best value within the limits from below, and the best k from both sides.

    Other sets cannot reach that value. 0 if no border of groups is within the limits.
    """
    k = np.cumsum(groups.count)
    worth, bound = bounds_of_sets(groups.count, groups.mass, groups.mass, problem.coefficients)
    allowed = (k >= problem.least) & (k <= problem.most)
    best = float(worth.max(where=allowed, initial=0.0))
    useful = np.flatnonzero(bound >= best * (1.0 - ROUNDING_MARGIN))
    first, last = useful[0], useful[-1]
    return best, float(k[first] - groups.count[first] + 1.0), float(k[last])


class Profile(NamedTuple):
    """Φ at the L + 1 borders of L groups, and between which bounds it lies inside of them."""

    state: Floats  # sums inside and outside, and log Q, (L+1, 3 nodes)
    phi: Floats  # Φ at the borders, (L+1, nodes)
    rise: Floats  # Φ_{i+1} - Φ_i without cancellation, (L, nodes)
    low: Floats  # Φ_k in the group is at least this, (L, nodes)
    high: Floats  # and at most this


@dataclass(frozen=True)
class Objective:
    """What the search optimizes: f = offset + sign · Σ_m e^{-u_m k} Φ_k(u_m), by Φ or Ψ.

    Both are ω e^{-u s1} Q times a sum over items inside and one over those outside, with constants.
    The latter is summed from below, so that little of it is not lost in much.
    """

    integrand: Integrand
    is_loss: bool

    @property
    def u(self) -> Floats:
        """The nodes."""
        return self.integrand.nodes.u

    @property
    def sign(self) -> float:
        """-1 where a loss is minimized."""
        return -1.0 if self.is_loss else 1.0

    @property
    def offset(self) -> float:
        """The value of no loss."""
        return 1.0 if self.is_loss else 0.0

    def along(self, groups: Groups, rest: Groups) -> Profile:
        """Return Φ along groups from the empty set on; the rest are items below them."""
        form = self.integrand
        c, _, b_out, s0, s1 = form.coefficients
        log_in, pi = form.inside.sums(groups)
        log_out, pi_out = (log_in, pi) if form.one_tilt else form.outside.sums(groups)
        if self.is_loss:
            own = group_variances(groups, form.inside.w, form.inside.x)[1]
            other, left = b_out * pi_out, b_out * form.outside.sums(rest)[1].sum(axis=0) + s1 - s0
        else:
            own, other, left = c * pi, np.zeros_like(pi), s0
        inside, outside = summed(own), summed(other[::-1])[::-1] + left
        log_ratio = log_in - log_out
        log_q = summed(log_ratio) + form.log_none
        scale, both = form.scale(log_q), inside + outside
        rise = scale[:-1] * (own - other) + both[1:] * _growth(scale, log_ratio)
        low = np.minimum(scale[:-1], scale[1:]) * (inside[:-1] + outside[1:])
        high = np.maximum(scale[:-1], scale[1:]) * (inside[1:] + outside[:-1])
        return Profile(np.hstack([inside, outside, log_q]), scale * both, rise, low, high)

    def steps(self, groups: Groups, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Bound Φ_k - Φ_{k-1} inside each group from below and above, given its borders' states.

        With B the sums inside and outside together, r = Q_k / Q_{k-1} = (1 - p w_in) / (1 - p
        w_out) and ρ = p x_out / (1 - p w_out), it is scale · Q_{k-1} times r c π + (r - 1) B_{k-1},
        and for the loss r (1 - π) - b_out ρ + (r - 1) B_{k-1}. There r π = p x_in / (1 - p w_out),
        r (1 - π) = (1 - p) / (1 - p w_out) and r - 1 = p (w_out - w_in) / (1 - p w_out).
        """
        form, c = self.integrand, self.integrand.coefficients
        scales = self.scale(before), self.scale(after)
        least_scale, most_scale = np.minimum(*scales), np.maximum(*scales)
        (in_0, out_0, _), (in_1, out_1, _) = (np.split(s, 3, axis=1) for s in (before, after))
        pull = form.outside.w - form.inside.w
        own = -c.b_out * form.outside.x if self.is_loss else c.c * form.inside.x
        ends = own + pull * (in_0 + out_1), own + pull * (in_1 + out_0)
        least, most = np.minimum(*ends), np.maximum(*ends)
        low, high = form.outside.share(groups.low), form.outside.share(groups.high)
        bottom = np.where(least > 0.0, low, high) * least
        top = np.where(most > 0.0, high, low) * most
        if self.is_loss:
            bottom = bottom + form.outside.rest(groups.high)
            top = top + form.outside.rest(groups.low)
        return (
            np.where(bottom > 0.0, least_scale, most_scale) * bottom,
            np.where(top > 0.0, most_scale, least_scale) * top,
        )

    def scale(self, states: Floats) -> Floats:
        """Return ω e^{-u s1} Q at borders, from their states."""
        return self.integrand.scale(states[..., 2 * self.u.size :])


def _growth(scale: Floats, log_ratio: Floats) -> Floats:
    """How much the scale grows from border to border: exact where little, finite where much."""
    grown: Floats = scale[1:] - scale[:-1]
    return np.where(log_ratio < 1.0, scale[:-1] * np.expm1(np.minimum(log_ratio, 1.0)), grown)


def summed(steps: Floats) -> Floats:
    """Return the sums of the first 0, 1, … rows."""
    return np.vstack([np.zeros_like(steps[:1]), steps.cumsum(axis=0)])
