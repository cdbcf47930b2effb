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

`Gain` climbs f, `Loss` climbs the loss; the search treats both alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from argmaxf.arrays import Floats
from argmaxf.expected.nodes import Nodes, plausible_positives, reciprocal_nodes
from argmaxf.expected.summary.groups import Groups, group_sums, group_variances
from argmaxf.measures import Coefficients

LEAST_PART = -60.0  # log of the part of f below which a node is dropped


class Tilt(NamedTuple):
    """w = 1 - e^{-bu} and x = e^{-bu} at the nodes, for labels inside or outside of the set."""

    b: float
    w: Floats
    x: Floats

    @classmethod
    def of(cls, nodes: Nodes, b: float) -> Tilt:
        """Return the tilt at the nodes."""
        from argmaxf.expected import kernels

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


class Climb(NamedTuple):
    """Φ at the L + 1 borders of L groups, and between which bounds it lies inside of them."""

    state: Floats  # what is needed to go on from a border: A and log Q, (L+1, …)
    phi: Floats  # Φ at the borders, (L+1, nodes)
    rise: Floats  # Φ_{i+1} - Φ_i without cancellation, (L, nodes)
    low: Floats  # Φ_k in the group is at least this, (L, nodes)
    high: Floats  # and at most this


class Climber(Protocol):
    """What the search climbs: f = offset + sign · Σ_m e^{-u_m k} Φ_k(u_m)."""

    @property
    def u(self) -> Floats:
        """The nodes."""
        ...

    @property
    def sign(self) -> float:
        """1 where Φ makes up f, -1 where it makes up the loss."""
        ...

    @property
    def offset(self) -> float:
        """0 for f, 1 for the loss."""
        ...

    def start(self, rest: Groups) -> tuple[Floats, Floats]:
        """The states of the empty set, and of the set of all items but the rest."""
        ...

    def climb(self, groups: Groups, top: Floats, bottom: Floats) -> Climb:
        """Return Φ along groups, from the states at their first border and at their last."""
        ...

    def steps(self, groups: Groups, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Bound Φ_k - Φ_{k-1} inside each group from below and above, given its borders' states."""
        ...


@dataclass(frozen=True)
class Form:
    """A measure at the nodes that matter for some items, and sets of at most `reach` of them."""

    coefficients: Coefficients
    nodes: Nodes
    inside: Tilt
    outside: Tilt
    log_none: Floats  # log Q of the empty set

    @classmethod
    def of(cls, groups: Groups, coefficients: Coefficients, reach: float) -> Form:
        """Prepare the measure for all items, and sets of at most `reach` of them."""
        _, b_in, b_out, _, s1 = coefficients
        mean = float(groups.mass.sum())
        fewest, most = plausible_positives(mean, int(groups.count.sum()))
        least = (1.0 if reach else 0.0) + s1 + min(b_in, b_out) * fewest
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
        missed = negative + (1.0 - (c - b_in)) * pi_in + b_out * pi_out + (s1 - s0)
        inside, outside = (c - b_in) + b_in * (weight * decay @ missed), -f * b_out
        # Under the tilt numerator - f · denominator is a sum of independent labels. Its variance
        # and squared mean are all ≥ 0, and 1/x² = Σ ω u e^{-ux}: nothing cancels.
        mean = inside * pi_in + outside * pi_out - f * k + (s0 - f * s1)
        second = inside**2 * var_in + outside**2 * var_out + mean**2
        return float(np.sqrt(weight * u @ (decay * second)))

    def scale(self, log_q: Floats) -> Floats:
        """ω e^{-u s1} Q."""
        scale: Floats = self.nodes.weight * np.exp(log_q - self.nodes.u * self.coefficients.s1)
        return scale

    def value(self, chosen: Groups) -> float:
        """Return f of a chosen set."""
        gain = Gain(self)
        phi = gain.climb(chosen, *gain.start(chosen[:0])).phi[-1]
        return float(np.exp(-self.nodes.u * chosen.count.sum()) @ phi)


@dataclass(frozen=True)
class Gain:
    """f itself. A state is A, and log Q where it changes."""

    form: Form
    sign: float = 1.0
    offset: float = 0.0

    @property
    def u(self) -> Floats:
        """The nodes."""
        return self.form.nodes.u

    def start(self, rest: Groups) -> tuple[Floats, Floats]:
        """The state of the empty set; that at the other end is not needed."""
        a = np.full_like(self.form.log_none, self.form.coefficients.s0)
        state = a if self.form.one_tilt else np.concatenate([a, self.form.log_none])
        return state, state

    def climb(self, groups: Groups, top: Floats, bottom: Floats) -> Climb:
        """Return Φ along groups, from the state at their first border."""
        form = self.form
        log_in, pi = form.inside.sums(groups)
        gain = form.coefficients.c * pi
        if form.one_tilt:
            scale = form.scale(form.log_none)
            states = np.vstack([top, top + np.cumsum(gain, axis=0)])
            phi = scale * states
            return Climb(states, phi, scale * gain, phi[:-1], phi[1:])
        log_ratio = log_in - form.outside.sums(groups)[0]
        steps = np.cumsum(np.hstack([gain, log_ratio]), axis=0)
        states = np.vstack([top, top + steps])
        a, scale = self._parts(states)
        phi = scale * a
        rise = scale[:-1] * (gain + a[1:] * np.expm1(log_ratio))
        if form.outside.b > form.inside.b:
            return Climb(states, phi, rise, phi[:-1], phi[1:])
        return Climb(states, phi, rise, scale[1:] * a[:-1], scale[:-1] * a[1:])

    def steps(self, groups: Groups, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Bound Φ_k - Φ_{k-1} inside each group from below and above, given its borders' states."""
        form = self.form
        inside, outside, c = form.inside, form.outside, form.coefficients.c
        low, high = outside.share(groups.low), outside.share(groups.high)
        if form.one_tilt:
            scale = form.scale(form.log_none) * c * inside.x
            return scale * low, scale * high
        (a0, scale0), (a1, scale1) = self._parts(before), self._parts(after)
        pull = outside.w - inside.w
        ends = c * inside.x + pull * a0, c * inside.x + pull * a1
        least, most = np.minimum(*ends), np.maximum(*ends)
        if outside.b > inside.b:  # Q_{k-1} / (1 - p w_out) = Q_k / (1 - p w_in)
            low, high = scale0 * low, scale1 * inside.share(groups.high)
        else:
            low, high = scale1 * low, scale0 * high
        return np.where(least > 0.0, low, high) * least, np.where(most > 0.0, high, low) * most

    def _parts(self, states: Floats) -> tuple[Floats, Floats]:
        """A, and ω e^{-u s1} Q, of states that hold both."""
        size = self.u.size
        return states[..., :size], self.form.scale(states[..., size:])


@dataclass(frozen=True)
class Loss:
    """1 - f, for measures that are 1 without errors.

    A state is Σ (1 - π) inside, Σ π outside and log Q. What is outside is summed from below, so
    that little of it is not lost in much.
    """

    form: Form
    sign: float = -1.0
    offset: float = 1.0

    @staticmethod
    def suits(coefficients: Coefficients) -> bool:
        """Whether the loss of such a measure is a sum of terms that are not negative."""
        c, b_in, _, s0, s1 = coefficients
        return bool(c == 1.0 + b_in and s1 >= s0)

    @property
    def u(self) -> Floats:
        """The nodes."""
        return self.form.nodes.u

    def start(self, rest: Groups) -> tuple[Floats, Floats]:
        """The states of the empty set, and of the set of all items but the rest."""
        left = self.form.outside.sums(rest)[1].sum(axis=0)
        none = np.zeros_like(left)
        return np.concatenate([none, none, self.form.log_none]), np.concatenate([none, left, none])

    def climb(self, groups: Groups, top: Floats, bottom: Floats) -> Climb:
        """Return Ψ along groups, from the states at their first border and at their last."""
        form, size = self.form, self.u.size
        log_in = form.inside.sums(groups)[0]
        negative = group_variances(groups, form.inside.w, form.inside.x)[1]
        log_out, pi = form.outside.sums(groups)
        missed = np.vstack([pi[::-1].cumsum(axis=0)[::-1], np.zeros((1, size))])
        missed += bottom[size : 2 * size]
        false = np.vstack([np.zeros((1, size)), negative.cumsum(axis=0)]) + top[:size]
        log_ratio = np.zeros_like(pi) if form.one_tilt else log_in - log_out
        log_q = np.vstack([np.zeros((1, size)), log_ratio.cumsum(axis=0)]) + top[2 * size :]
        b_out, rest = form.coefficients.b_out, form.coefficients.s1 - form.coefficients.s0
        b, scale = false + b_out * missed + rest, form.scale(log_q)
        rise = scale[:-1] * (negative - b_out * pi + b[1:] * np.expm1(log_ratio))
        small, large = (false[:-1] + b_out * missed[1:], false[1:] + b_out * missed[:-1])
        ends = np.minimum(scale[:-1], scale[1:]), np.maximum(scale[:-1], scale[1:])
        states = np.hstack([false, missed, log_q])
        return Climb(states, scale * b, rise, ends[0] * (small + rest), ends[1] * (large + rest))

    def steps(self, groups: Groups, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Bound Ψ_k - Ψ_{k-1} inside each group from below and above, given its borders' states.

        It is scale · Q_{k-1} · [r (1 - π_k) - b_out ρ_k + (r - 1) B_{k-1}], where ρ is π outside
        and r = Q_k / Q_{k-1} = (1 - p w_in) / (1 - p w_out): r (1 - π) = (1 - p) / (1 - p w_out),
        ρ = p x_out / (1 - p w_out) and r - 1 = p (w_out - w_in) / (1 - p w_out).
        """
        form, size = self.form, self.u.size
        outside, b_out = form.outside, form.coefficients.b_out
        rest = form.coefficients.s1 - form.coefficients.s0
        low, high = outside.share(groups.low), outside.share(groups.high)
        missed_low, missed_high = outside.rest(groups.low), outside.rest(groups.high)
        scale = form.scale(before[:, 2 * size :]), form.scale(after[:, 2 * size :])
        least, most = np.minimum(*scale), np.maximum(*scale)
        pull = outside.w - form.inside.w
        fewest = before[:, :size] + b_out * after[:, size : 2 * size] + rest
        largest = after[:, :size] + b_out * before[:, size : 2 * size] + rest
        x = b_out * outside.x
        gain_low, gain_high = missed_high, missed_low
        if form.one_tilt:
            pulls = 0.0, 0.0
        elif outside.b > form.inside.b:
            pulls = pull * low * fewest, pull * high * largest
        else:
            pulls = pull * high * largest, pull * low * fewest
        bottom = gain_low - x * high + pulls[0]
        top = gain_high - x * low + pulls[1]
        return (
            np.where(bottom > 0.0, least, most) * bottom,
            np.where(top > 0.0, most, least) * top,
        )


def value_at_least(groups: Groups, coefficients: Coefficients) -> float:
    """A lower bound on the best value, by Jensen's inequality (see row_kernels)."""
    c, b_in, b_out, s0, s1 = coefficients
    k, mass = np.cumsum(groups.count), np.cumsum(groups.mass)
    below = (c * mass + s0) / (k + s1 + b_in * (1.0 + mass) + b_out * (mass[-1] - mass))
    return float(below.max())


def largest_useful_k(groups: Groups, coefficients: Coefficients) -> float:
    """An upper bound on the best k, by Jensen's inequality from both sides (see row_kernels)."""
    c, b_in, b_out, s0, s1 = coefficients
    mean, best = float(groups.mass.sum()), value_at_least(groups, coefficients)
    if best == 0.0:  # probabilities so small that the bound underflows
        return math.inf
    return float((c * mean + s0) / best - s1 - min(b_in, b_out) * mean + 1.0)
