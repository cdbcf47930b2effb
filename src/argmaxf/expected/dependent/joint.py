"""Joint parameters P(y_i = 1, S = s), as the general maximizer's matrix B.

    B_im = (1+β²) ω_m Σ_s P_is e^{-u_m β² s}

The value of a set is computed from the definition, not from B.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from argmaxf._base.arrays import Bools, Floats
from argmaxf.expected.dependent.general import Value
from argmaxf.expected.nodes import Nodes, reciprocal_nodes


@dataclass(frozen=True)
class JointParameters:
    """P[r, i, s-1] = P(y_i = 1, S = s) and P(S = 0), for every instance r."""

    joint: Floats
    none: Floats
    beta: float
    zero_division: float

    @cached_property
    def nodes(self) -> Nodes:
        """Nodes for every x = k + β² s."""
        b2, (_, n, most) = self.beta**2, self.joint.shape
        return reciprocal_nodes(1.0 + b2, n + b2 * most)

    @property
    def u(self) -> Floats:
        """The nodes."""
        return self.nodes.u

    @cached_property
    def marginals(self) -> Floats:
        """P(y_i = 1) = Σ_s P_is."""
        marginals: Floats = np.minimum(self.joint.sum(axis=2), 1.0)
        return marginals

    @property
    def _counts(self) -> Floats:
        return np.arange(1.0, self.joint.shape[2] + 1.0)

    def matrix(self, part: slice) -> Floats:
        """Return B for some of the instances."""
        return self.joint[part] @ decays(self.nodes, self._counts, self.beta)

    def value(self, selected: Bools) -> Value:
        """Return E[F], and bounds on its spread."""
        empty, zero = ~selected.any(axis=1), self.zero_division
        k, s, b2 = selected.sum(axis=1)[:, None], self._counts, self.beta**2
        hits = np.einsum("ris,ri->rs", self.joint, selected)  # E[T; S = s]
        share = (1.0 + b2) / (k + b2 * s)
        f = (share * hits).sum(axis=1)
        alone = zero * np.sqrt(self.none * (1.0 - self.none))
        low, high = (np.where(empty, alone, std) for std in self._spread(hits, share, k, f))
        return Value(np.where(empty, zero * self.none, f), low, high)

    def _spread(self, hits: Floats, share: Floats, k: Any, f: Floats) -> Iterator[Floats]:
        """Yield the least and the largest standard deviation of F.

        Given S = s, the true positives T have a known mean t. Their variance is at least that of
        the two whole numbers next to t, which some distribution attains, and at most that of the
        two ends of T's range.
        """
        s, n = self._counts, self.joint.shape[1]
        mass = self.joint.sum(axis=1) / s  # P(S = s)
        t = np.divide(hits, mass, out=np.zeros_like(hits), where=mass > 0)
        least = (t - np.floor(t)) * (np.floor(t) + 1.0 - t)
        most = (np.minimum(k, s) - t) * (t - np.maximum(0, s - (n - k)))
        for variance in (least, np.maximum(most, least)):
            given_s = share**2 * variance + (share * t - f[:, None]) ** 2
            yield np.sqrt((mass * given_s).sum(axis=1) + self.none * f**2)

    def decimals(self, size: int) -> int:
        """Return how many decimal operations `exact_value` takes for a set of this size."""
        return int(size * self.joint.shape[2])

    def exact_value(self, instance: int, selected: Bools) -> Decimal:
        """Return Σ_{i in set} Σ_s P_is (1+β²) / (k + β² s)."""
        k, b2 = int(selected.sum()), Decimal(self.beta) ** 2
        columns = self.joint[instance][selected].T.tolist()
        terms = (
            sum(map(Decimal, column)) * (1 + b2) / (k + b2 * s)
            for s, column in enumerate(columns, start=1)
        )
        return sum(terms, Decimal(0))

    def exact_none(self, instance: int) -> Decimal:
        """Return P(S = 0)."""
        return Decimal(float(self.none[instance]))


def decays(nodes: Nodes, counts: Any, beta: float) -> Floats:
    """(1+β²) ω_m e^{-u_m β² s} for each count s of positives; a draw without any has no part."""
    b2 = beta**2
    decays: Floats = np.exp(-b2 * np.multiply.outer(counts, nodes.u))
    return decays * ((1.0 + b2) * nodes.weight)
