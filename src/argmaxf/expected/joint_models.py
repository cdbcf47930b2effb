r"""Models of dependent labels: joint draws, mixtures of independent models, joint parameters.

Each gives the matrix B of Δ_ik = Σ_m B_im e^{-u_m k}, what item i adds to the expected F of a set
of k items (see dependent.py):

    draws r of weight q_r         B_im = (1+β²) ω_m Σ_r q_r y_ri e^{-u_m β² S_r}
    models z of weight π_z        B_im = (1+β²) ω_m Σ_z π_z G_z(u_m) p_zi x_m / (1 - p_zi w_m)
    P_is = P(y_i = 1, S = s)      B_im = (1+β²) ω_m Σ_s P_is e^{-u_m β² s}

with x = e^{-β²u}, w = 1 - x. The value of a set is computed from the definition, not from B.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from argmaxf._base.arrays import Bools, Floats, contiguous
from argmaxf.expected.groups import Tilt, group_sums, groups_of_items
from argmaxf.expected.quadrature import Nodes, plausible_positives, reciprocal_nodes
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.expected.values import value_of_selected
from argmaxf.problem import Problem

DRAWS_AT_ONCE = 1 << 12  # draws whose decays are held at a time
LABELS_COPIED = 1 << 19  # labels of draws copied at a time


class Value(NamedTuple):
    """E[F] of one set for each instance, and bounds on its standard deviation."""

    mean: Floats
    low: Floats
    high: Floats


class JointModel(ABC):
    """A joint distribution of n labels; the first axis of every array is the instance."""

    marginals: Floats  # P(y_i = 1)
    none: Floats  # P(S = 0)

    def __init__(self, problem: Problem, n: int, fewest: float, most: float) -> None:
        self.problem = problem
        self.b2 = problem.beta**2
        self.shift = float(self.b2 * most)
        self.nodes: Nodes = reciprocal_nodes(1.0 + self.b2 * fewest, n + self.shift)

    def decays(self, counts: Any) -> Floats:
        """Return (1+β²) ω_m e^{-u_m β² s} for each count s of positives."""
        decays: Floats = np.exp(-self.b2 * np.multiply.outer(counts, self.nodes.u))
        return decays * ((1.0 + self.b2) * self.nodes.weight)

    @abstractmethod
    def matrix(self, part: slice) -> Floats:
        """Return B for some of the instances."""

    @abstractmethod
    def value(self, selected: Bools) -> Value:
        """Return mean and spread of F for any set, by the definition."""


def _of_parts(weights: Floats, f: Any, std: Any) -> Value:
    """Return mean and standard deviation of F, from those of each model or draw."""
    mean = weights @ f
    spread = np.array([np.sqrt(weights @ (std**2 + (f - mean) ** 2))])
    return Value(np.array([mean]), spread, spread)


class Draws(JointModel):
    """Joint draws of all labels, dense or sparse (CSR), and their weights."""

    def __init__(self, samples: Any, weights: Floats, problem: Problem) -> None:
        self.samples = samples
        self.is_sparse = hasattr(samples, "tocsr")
        self.weights = weights / weights.sum()
        n = samples.shape[1]
        self.positives = self._hits(np.ones(n, np.bool_))
        self.none = np.array([self.weights[self.positives == 0].sum()])
        some = self.positives[self.positives > 0]
        fewest, most = (some.min(), some.max()) if some.size else (1, 1)
        super().__init__(problem, n, fewest, most)
        self._b, self.marginals = self._sums_over_draws()

    def matrix(self, part: slice) -> Floats:
        """Return B."""
        return self._b[None]

    def value(self, selected: Bools) -> Value:
        """Return mean and standard deviation of F, from F of each draw."""
        hits, k, zero = self._hits(selected[0]), int(selected.sum()), self.problem.zero_division
        f = self.problem.measure.value(hits, k, self.positives, zero_division=zero)
        return _of_parts(self.weights, f, 0.0)

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield some of the draws at a time, as numbers: in place of labels, or sparse as given."""
        m, n = self.samples.shape
        step = DRAWS_AT_ONCE if self.is_sparse else min(DRAWS_AT_ONCE, LABELS_COPIED // n + 16)
        for start in range(0, m, step):
            rows = slice(start, start + step)
            yield rows, self.samples[rows].astype(np.float64)

    def _sums_over_draws(self) -> tuple[Floats, Floats]:
        """Return B and the marginals, in one pass over blocks of draws."""
        n = self.samples.shape[1]
        b, marginals = np.zeros((n, self.nodes.u.size)), np.zeros(n)
        for rows, block in self._blocks():
            q = self.weights[rows]
            b += block.T @ (q[:, None] * self.decays(self.positives[rows]))
            marginals += block.T @ q
        return b, np.minimum(marginals[None], 1.0)

    def _hits(self, selected: Bools) -> Any:
        """Return how many selected labels each draw has."""
        hits = [block @ selected.astype(np.float64) for _, block in self._blocks()]
        return np.concatenate(hits).astype(np.int64)


class Mixture(JointModel):
    """Independent models and their weights: given the model, labels are independent."""

    def __init__(self, p: Floats, weights: Floats, problem: Problem) -> None:
        self.p = p
        self.weights = weights / weights.sum()
        n = p.shape[1]
        fewest, most = zip(*(plausible_positives(float(each.sum()), n) for each in p), strict=True)
        super().__init__(problem, n, min(fewest), max(most))
        self.marginals = np.minimum(self.weights @ p, 1.0)[None]
        with np.errstate(divide="ignore"):
            self.none = np.array([self.weights @ np.exp(np.log1p(-p).sum(axis=1))])

    def matrix(self, part: slice) -> Floats:
        """Return B."""
        from argmaxf.expected import dependent_kernels

        _, w, x = Tilt.of(self.nodes, self.b2)
        b = np.zeros((self.p.shape[1], w.size))

        def add(items: slice) -> None:
            for p, scale in zip(self.p, scales, strict=True):
                dependent_kernels.add_component(contiguous(p)[items], scale, w, x, b[items])

        log_g = [group_sums(groups_of_items(p), w, x)[0].sum(axis=0) for p in self.p]
        each = (1.0 + self.b2) * self.weights[:, None]
        scales = each * self.nodes.weight * x * np.exp(log_g)
        in_threads(add, np.arange(len(b) + 1), threads_for(self.weights.size * b.size))
        return b[None]

    def value(self, selected: Bools) -> Value:
        """Return mean and standard deviation of F, from those under each model."""
        f, std = np.array([value_of_selected(p, selected[0], self.problem) for p in self.p]).T
        return _of_parts(self.weights, f, std)


class JointParameters(JointModel):
    """P[r, i, s-1] = P(y_i = 1, S = s) and P(S = 0), for every instance r."""

    def __init__(self, joint: Floats, none: Floats, problem: Problem) -> None:
        self.joint = joint
        self.none = none
        _, n, most = joint.shape
        super().__init__(problem, n, 1.0, most)
        self.marginals = np.minimum(joint.sum(axis=2), 1.0)
        self._counts = np.arange(1.0, most + 1.0)

    def matrix(self, part: slice) -> Floats:
        """Return B for some of the instances."""
        return self.joint[part] @ self.decays(self._counts)

    def value(self, selected: Bools) -> Value:
        """Return E[F], and bounds on its spread."""
        empty, zero = ~selected.any(axis=1), self.problem.zero_division
        k, s, b2 = selected.sum(axis=1)[:, None], self._counts, self.b2
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
