"""Joint draws of all labels, as the general maximizer's matrix B.

    B_im = (1+β²) ω_m Σ_r q_r y_ri e^{-u_m β² S_r}        for draws r of weight q_r

The value of a set is computed from the definition, not from B.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from argmaxf._base.arrays import Bools, Floats, readonly
from argmaxf.expected.dependent.general import Value
from argmaxf.expected.dependent.joint import decays
from argmaxf.expected.nodes import reciprocal_nodes
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.measures import FBeta

DRAWS = 1 << 12  # draws whose decays are held at a time
ROOM = 1 << 22  # labels of draws copied at a time


class Draws:
    """Joint draws of all labels, dense or sparse (CSR), and their weights."""

    def __init__(self, samples: Any, weights: Floats, beta: float, zero_division: float) -> None:
        self.samples = samples
        self.is_sparse = hasattr(samples, "tocsr")
        self.given_weights = weights
        self.weights = weights = weights / weights.sum()
        self.beta = beta
        self.zero_division = zero_division
        self.positives = self._hits(np.ones(samples.shape[1], np.bool_))
        self.none = np.array([weights[self.positives == 0].sum()])
        b2, n = beta**2, samples.shape[1]
        some = self.positives[self.positives > 0]
        fewest, most = (some.min(), some.max()) if some.size else (1, 1)
        self.nodes = reciprocal_nodes(1.0 + b2 * fewest, n + b2 * most)
        self.u = self.nodes.u
        self._b, self.marginals = self._sums_over_draws()

    def matrix(self, part: slice) -> Floats:
        """Return B."""
        return self._b[None]

    def value(self, selected: Bools) -> Value:
        """Return mean and standard deviation of F over the draws."""
        k = int(selected.sum())
        f = FBeta(self.beta).value(
            self._hits(selected[0]), k, self.positives, zero_division=self.zero_division
        )
        mean = self.weights @ f
        std = np.sqrt(self.weights @ (f - mean) ** 2)
        return Value(np.array([mean]), np.array([std]), np.array([std]))

    def decimals(self, size: int) -> int:
        """Return how many decimal operations `exact_value` takes: one for each kind of draw."""
        return min(len(self.positives), (size + 1) * len(np.unique(self.positives)))

    def exact_value(self, instance: int, selected: Bools) -> Decimal:
        """Return Σ_r q_r (1+β²) T_r / (k + β² S_r), draws with the same T and S taken together."""
        k, b2 = int(selected.sum()), Decimal(self.beta) ** 2
        kinds = np.column_stack([self._hits(selected), self.positives])
        kinds, kind = np.unique(kinds, axis=0, return_inverse=True)
        masses = _exact_sums(self.given_weights, kind.reshape(-1), len(kinds))
        terms = (
            mass * (1 + b2) * t / (k + b2 * s)
            for mass, (t, s) in zip(masses, kinds.tolist(), strict=True)
        )
        return sum(terms, Decimal(0))

    def exact_none(self, instance: int) -> Decimal:
        """Return P(S = 0)."""
        return _exact_sums(self.given_weights, (self.positives == 0).astype(np.intp), 2)[1]

    def _sums_over_draws(self) -> tuple[Floats, Floats]:
        """Return B and the marginals, in one pass over the draws."""
        m, n = self.samples.shape
        b, marginals = np.zeros((n, self.u.size)), np.zeros((1, n))
        for start in range(0, m, DRAWS):
            rows = slice(start, min(start + DRAWS, m))
            q = self.weights[rows]
            weighted = q[:, None] * decays(self.nodes, self.positives[rows], self.beta)
            self._add(rows, weighted, q, b, marginals[0])
        return b, np.minimum(marginals, 1.0)

    def _add(self, rows: slice, decays: Floats, q: Floats, b: Floats, marginals: Floats) -> None:
        """Add some draws to B and the marginals."""
        from argmaxf.expected.dependent import kernels

        if self.is_sparse:
            indptr = self.samples.indptr[rows.start : rows.stop + 1]
            parts = (indptr, self.samples.indices, self.samples.data)
            kernels.add_sparse_draws(*map(readonly, parts), decays, q, b, marginals)
            return

        def work(items: slice) -> None:
            block = readonly(self.samples[rows, items])
            kernels.add_draws(block, decays, q, b[items], marginals[items])

        in_threads(work, len(b), threads_for(len(b) * len(q)))

    def _hits(self, selected: Bools) -> Any:
        """Return how many selected labels each draw has."""
        if self.is_sparse:
            return np.asarray(self.samples @ selected.astype(np.float64)).astype(np.int64)
        hits = np.empty(self.samples.shape[0], np.int64)
        step = max(1, ROOM // self.samples.shape[1])
        for start in range(0, hits.size, step):
            rows = slice(start, start + step)
            hits[rows] = np.count_nonzero(self.samples[rows] & selected, axis=1)
        return hits


def _exact_sums(weights: Floats, kind: Any, kinds: int) -> list[Decimal]:
    """Return the sum of the weights of each kind; equal weights are counted, not added up."""
    if (weights == weights[0]).all():
        counts = np.bincount(kind, minlength=kinds).tolist()
        return [Decimal(c) * Decimal(float(weights[0])) for c in counts]
    sums = [Decimal(0)] * kinds
    for where, weight in zip(kind.tolist(), weights.tolist(), strict=True):
        sums[where] += Decimal(weight)
    return sums
