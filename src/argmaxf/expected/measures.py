"""F_β and Jaccard as the two measures whose expectation the search can climb.

Both have the same shape: the value of the top k is f_k = Σ_m e^{-u_m k} Φ_k(u_m) with Φ growing
in k, so one search serves both. A measure says what Φ is at the borders of groups and between
which bounds Φ rises with each item inside a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from argmaxf.expected.groups import Floats, Groups, group_sums, group_variances, tilt
from argmaxf.expected.nodes import Nodes, plausible_positives, reciprocal_nodes

LEAST_PART = -60.0  # log of the part of f below which a node is dropped


class Climb(NamedTuple):
    """Φ at the L + 1 borders of L groups."""

    state: Floats  # what the measure needs to go on from a border, (L+1, …)
    phi: Floats  # Φ at the borders, (L+1, nodes)
    rise: Floats  # Φ_{i+1} - Φ_i without cancellation, (L, nodes)


class Measure(Protocol):
    """What the search asks of a measure."""

    @property
    def nodes(self) -> Nodes:
        """The nodes of the integral."""
        ...

    @property
    def start(self) -> Floats:
        """The state of the empty set."""
        ...

    def climb(self, groups: Groups, state: Floats) -> Climb:
        """Return Φ along groups, from the state at their first border."""
        ...

    def steps(self, groups: Groups, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Bound Φ_k - Φ_{k-1} inside each group from below and above, given its borders' states."""
        ...

    def spread(self, chosen: Groups, rest: Groups, f: float) -> float:
        """Return the standard deviation of the measure for a chosen set, f being its mean."""
        ...


@dataclass(frozen=True)
class FBeta:
    """F_β: Φ_k = (1+β²) ω G Σ_{i≤k} π_i. The state is Σ_{i≤k} π_i."""

    b2: float
    nodes: Nodes
    w: Floats
    x: Floats
    log_g: Floats

    @classmethod
    def of(cls, groups: Groups, b2: float, reach: float) -> FBeta:
        """Prepare the measure for all items, and sets of at most `reach` of them."""
        fewest, most = plausible_positives(float(groups.mass.sum()), int(groups.count.sum()))
        nodes = reciprocal_nodes(1.0 + b2 * fewest, reach + b2 * most)
        return cls(b2, *_useful_nodes(groups, nodes, b2))

    @property
    def start(self) -> Floats:
        """The state of the empty set."""
        return np.zeros_like(self.w)

    def climb(self, groups: Groups, state: Floats) -> Climb:
        """Return Φ along groups, from the state at their first border."""
        scale = self._scale()
        _, pi = group_sums(groups, self.w, self.x)
        states = np.vstack([state, state + np.cumsum(pi, axis=0)])
        return Climb(states, scale * states, scale * pi)

    def steps(self, groups: Groups, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Bound (1+β²) ω G π_k: π grows with p."""
        scale = self._scale()
        return scale * self._pi(groups.low), scale * self._pi(groups.high)

    def spread(self, chosen: Groups, rest: Groups, f: float) -> float:
        """Return the standard deviation of F_β for a chosen set, f being its mean."""
        _, pi_in, var_in, negative = _totals(chosen, self.w, self.x)
        _, pi_out, var_out, _ = _totals(rest, self.w, self.x)
        k = chosen.count.sum()
        # 1 - f = E[(k - T + β² R) / (k + β² S)], summed anew: it is multiplied by β²
        u, weight = self.nodes
        loss = weight * np.exp(self.log_g - u * k) @ (negative + self.b2 * pi_out)
        inside, outside = 1.0 + self.b2 * loss, -f * self.b2
        mean = inside * pi_in + outside * pi_out - f * k
        second = inside**2 * var_in + outside**2 * var_out + mean**2
        return _root_mean(self.nodes, self.log_g, k, second)

    def _scale(self) -> Floats:
        return (1.0 + self.b2) * self.nodes.weight * np.exp(self.log_g)

    def _pi(self, p: Floats) -> Floats:
        p = p[:, None]
        return p * self.x / _factor(p, self.w, self.x)


@dataclass(frozen=True)
class Jaccard:
    """Jaccard: Φ_k = ω M_k H_k, with H_k = Π_{j>k} (1 - p_j w). The state is (M_k, log H_k)."""

    nodes: Nodes
    w: Floats
    x: Floats
    log_g: Floats

    @classmethod
    def of(cls, groups: Groups, b2: float, reach: float) -> Jaccard:
        """Prepare the measure for all items, and sets of at most `reach` of them."""
        most = plausible_positives(float(groups.mass.sum()), int(groups.count.sum()))[1]
        nodes = reciprocal_nodes(1.0, reach + most)
        return cls(*_useful_nodes(groups, nodes, 1.0))

    @property
    def start(self) -> Floats:
        """The state of the empty set."""
        return np.concatenate([[0.0], self.log_g])

    def climb(self, groups: Groups, state: Floats) -> Climb:
        """Return Φ along groups, from the state at their first border."""
        log_terms, _ = group_sums(groups, self.w, self.x)
        states = np.vstack(
            [state, state + np.cumsum(np.column_stack([groups.mass, -log_terms]), axis=0)]
        )
        mass, h = states[:, :1], self.nodes.weight * np.exp(states[:, 1:])
        rise = h[:-1] * (groups.mass[:, None] + mass[1:] * np.expm1(-log_terms))
        return Climb(states, mass * h, rise)

    def steps(self, groups: Groups, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Bound Φ_k - Φ_{k-1} = ω H_k p_k (1 + M_{k-1} w): H and M grow with k."""

        def step(p: Floats, state: Floats) -> Floats:
            h = self.nodes.weight * np.exp(state[:, 1:])
            return h * p[:, None] * (1.0 + state[:, :1] * self.w)

        return step(groups.low, before), step(groups.high, after)

    def spread(self, chosen: Groups, rest: Groups, f: float) -> float:
        """Return the standard deviation of Jaccard for a chosen set, f being its mean."""
        # The labels inside the set are not in the denominator: no tilt for them.
        _, pi_in, var_in, _ = _totals(chosen, np.zeros_like(self.w), np.ones_like(self.x))
        log_out, pi_out, var_out, _ = _totals(rest, self.w, self.x)
        k = chosen.count.sum()
        mean = pi_in - f * pi_out - f * k
        second = var_in + f**2 * var_out + mean**2
        return _root_mean(self.nodes, log_out, k, second)


def _useful_nodes(groups: Groups, nodes: Nodes, b2: float) -> tuple[Nodes, Floats, Floats, Floats]:
    """Return the nodes that matter for some k, with w, x and log G there.

    A node's part of f_k, relative to f_k, is at most ω e^{-uk} G (k + β² (1 + μ)): the π_i are at
    most p_i, and f_k ≥ (1+β²) M_k / (k + β² (1 + μ)). For the large u that go, k = 1 is the worst.
    """
    w, x = tilt(nodes, b2)
    log_g = group_sums(groups, w, x)[0].sum(axis=0)
    part = np.log(nodes.weight * (1.0 + b2 * (1.0 + groups.mass.sum()))) + log_g - nodes.u
    size = int(np.flatnonzero(part > LEAST_PART)[-1]) + 1
    return Nodes(nodes.u[:size], nodes.weight[:size]), w[:size], x[:size], log_g[:size]


def _factor(p: Floats, w: Floats, x: Floats) -> Floats:
    """1 - p w, without cancellation."""
    return np.where(p < 0.5, 1.0 - p * w, x + (1.0 - p) * w)


def _totals(groups: Groups, w: Floats, x: Floats) -> tuple[Floats, ...]:
    """Σ log(1 - p w), Σ π, Σ π (1 - π) and Σ (1 - π) over all groups, at each node."""
    sums = *group_sums(groups, w, x), *group_variances(groups, w, x)
    return tuple(each.sum(axis=0) for each in sums)


def _root_mean(nodes: Nodes, log_g: Floats, k: float, second: Floats) -> float:
    """√E[(numerator - f·denominator)² / denominator²], with 1/x² = Σ ω u e^{-ux}.

    Under the tilt numerator - f·denominator is a sum of independent labels; `second` is its
    variance plus its squared mean, all terms ≥ 0, so that nothing cancels.
    """
    u, weight = nodes
    return float(np.sqrt(weight * u @ (np.exp(log_g - u * k) * second)))
