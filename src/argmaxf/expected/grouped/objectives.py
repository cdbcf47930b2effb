"""What the search optimizes: f itself, or the loss 1 - f where f is near one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from argmaxf._base.arrays import Floats
from argmaxf.expected.grouped.groups import Groups, group_variances
from argmaxf.expected.grouped.integrand import Integrand


class Profile(NamedTuple):
    """Φ at the L + 1 borders of L groups, and between which bounds it lies inside of them."""

    state: Floats  # what is needed to go on from a border: A and log Q, (L+1, …)
    phi: Floats  # Φ at the borders, (L+1, nodes)
    rise: Floats  # Φ_{i+1} - Φ_i without cancellation, (L, nodes)
    low: Floats  # Φ_k in the group is at least this, (L, nodes)
    high: Floats  # and at most this


class Objective(Protocol):
    """What the search optimizes: f = offset + sign · Σ_m e^{-u_m k} Φ_k(u_m)."""

    @property
    def integrand(self) -> Integrand:
        """The measure at the nodes."""
        ...

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

    def along(self, groups: Groups, top: Floats, bottom: Floats) -> Profile:
        """Return Φ along groups, from the states at their first border and at their last."""
        ...

    def steps(self, groups: Groups, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Bound Φ_k - Φ_{k-1} inside each group from below and above, given its borders' states."""
        ...

    def scale(self, states: Floats) -> Floats:
        """Return ω e^{-u s1} Q at borders, from their states."""
        ...


@dataclass(frozen=True)
class Gain:
    """f itself. A state is A, and log Q where it changes."""

    integrand: Integrand
    sign: float = 1.0
    offset: float = 0.0

    @property
    def u(self) -> Floats:
        """The nodes."""
        return self.integrand.nodes.u

    def start(self, rest: Groups) -> tuple[Floats, Floats]:
        """The state of the empty set; that at the other end is not needed."""
        a = np.full_like(self.integrand.log_none, self.integrand.coefficients.s0)
        state = a if self.integrand.one_tilt else np.concatenate([a, self.integrand.log_none])
        return state, state

    def along(self, groups: Groups, top: Floats, bottom: Floats) -> Profile:
        """Return Φ along groups, from the state at their first border."""
        form = self.integrand
        log_in, pi = form.inside.sums(groups)
        gain = form.coefficients.c * pi
        if form.one_tilt:
            scale = form.scale(form.log_none)
            states = np.vstack([top, top + np.cumsum(gain, axis=0)])
            phi = scale * states
            return Profile(states, phi, scale * gain, phi[:-1], phi[1:])
        log_ratio = log_in - form.outside.sums(groups)[0]
        steps = np.cumsum(np.hstack([gain, log_ratio]), axis=0)
        states = np.vstack([top, top + steps])
        a, scale = self._parts(states)
        phi = scale * a
        rise = scale[:-1] * gain + a[1:] * _growth(scale, log_ratio)
        if form.outside.b > form.inside.b:
            return Profile(states, phi, rise, phi[:-1], phi[1:])
        return Profile(states, phi, rise, scale[1:] * a[:-1], scale[:-1] * a[1:])

    def steps(self, groups: Groups, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Bound Φ_k - Φ_{k-1} inside each group from below and above, given its borders' states."""
        form = self.integrand
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

    def scale(self, states: Floats) -> Floats:
        """Return ω e^{-u s1} Q at borders, from their states."""
        log_q = self.integrand.log_none if self.integrand.one_tilt else states[..., self.u.size :]
        return self.integrand.scale(log_q)

    def _parts(self, states: Floats) -> tuple[Floats, Floats]:
        """A, and ω e^{-u s1} Q, of states that hold both."""
        return states[..., : self.u.size], self.scale(states)


@dataclass(frozen=True)
class Loss:
    """1 - f, for measures that are 1 without errors.

    A state is Σ (1 - π) inside, Σ π outside and log Q. What is outside is summed from below, so
    that little of it is not lost in much.
    """

    integrand: Integrand
    sign: float = -1.0
    offset: float = 1.0

    @property
    def u(self) -> Floats:
        """The nodes."""
        return self.integrand.nodes.u

    def start(self, rest: Groups) -> tuple[Floats, Floats]:
        """The states of the empty set, and of the set of all items but the rest."""
        left = self.integrand.outside.sums(rest)[1].sum(axis=0)
        none = np.zeros_like(left)
        return np.concatenate([none, none, self.integrand.log_none]), np.concatenate(
            [none, left, none]
        )

    def along(self, groups: Groups, top: Floats, bottom: Floats) -> Profile:
        """Return Ψ along groups, from the states at their first border and at their last."""
        form, size = self.integrand, self.u.size
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
        rise = scale[:-1] * (negative - b_out * pi) + b[1:] * _growth(scale, log_ratio)
        small, large = (false[:-1] + b_out * missed[1:], false[1:] + b_out * missed[:-1])
        ends = np.minimum(scale[:-1], scale[1:]), np.maximum(scale[:-1], scale[1:])
        states = np.hstack([false, missed, log_q])
        return Profile(states, scale * b, rise, ends[0] * (small + rest), ends[1] * (large + rest))

    def steps(self, groups: Groups, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Bound Ψ_k - Ψ_{k-1} inside each group from below and above, given its borders' states.

        It is scale · Q_{k-1} · [r (1 - π_k) - b_out ρ_k + (r - 1) B_{k-1}], where ρ is π outside
        and r = Q_k / Q_{k-1} = (1 - p w_in) / (1 - p w_out): r (1 - π) = (1 - p) / (1 - p w_out),
        ρ = p x_out / (1 - p w_out) and r - 1 = p (w_out - w_in) / (1 - p w_out).
        """
        form, size = self.integrand, self.u.size
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

    def scale(self, states: Floats) -> Floats:
        """Return ω e^{-u s1} Q at borders, from their states."""
        return self.integrand.scale(states[..., 2 * self.u.size :])


def _growth(scale: Floats, log_ratio: Floats) -> Floats:
    """How much the scale grows from border to border: exact where little, finite where much."""
    grown: Floats = scale[1:] - scale[:-1]
    return np.where(log_ratio < 1.0, scale[:-1] * np.expm1(np.minimum(log_ratio, 1.0)), grown)
