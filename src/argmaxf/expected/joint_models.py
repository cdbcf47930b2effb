r"""Models of dependent labels: joint draws, mixtures of independent models, joint parameters.

Each gives the matrix B of Δ_ik = Σ_m B_im e^{-u_m k}, what item i adds to the expected F of a set
of k items (see dependent.py):

    draws r of weight q_r         B_im = (1+β²) ω_m Σ_r q_r y_ri e^{-u_m β² S_r}
    models z of weight π_z        B_im = (1+β²) ω_m Σ_z π_z G_z(u_m) p_zi x_m / (1 - p_zi w_m)
    P_is = P(y_i = 1, S = s)      B_im = (1+β²) ω_m Σ_s P_is e^{-u_m β² s}

with x = e^{-β²u}, w = 1 - x. The value of a set is computed from the definition, not from B.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

import numpy as np

from argmaxf._base.arrays import Bools, Floats, contiguous
from argmaxf.expected.grouped.groups import group_sums
from argmaxf.expected.grouped.integrand import Tilt
from argmaxf.expected.quadrature import Nodes, plausible_positives, reciprocal_nodes
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.expected.ties import exact_coefficients, exact_value
from argmaxf.expected.values import expected_f, groups_of_items
from argmaxf.measures import FBeta

DRAWS = 1 << 12  # draws whose decays are held at a time
FEWEST_DRAWS = 16  # of many labels that are taken at a time
COPIED = 1 << 19  # labels of draws copied at a time


class Value(NamedTuple):
    """E[F] of one set for each instance, and bounds on its standard deviation."""

    mean: Floats
    low: Floats
    high: Floats

    @classmethod
    def of_one(cls, mean: Any, std: Any) -> Value:
        """Return the value for a single instance whose standard deviation is known."""
        return cls(np.array([mean]), np.array([std]), np.array([std]))


class JointModel(Protocol):
    """A joint distribution of labels; the first axis of every array is the instance."""

    nodes: Nodes
    shift: float  # β² times the most positives
    marginals: Floats  # P(y_i = 1)
    none: Floats  # P(S = 0)

    def matrix(self, part: slice) -> Floats:
        """Return B for some of the instances."""
        ...

    def value(self, selected: Bools) -> Value:
        """Return mean and spread of F for any set, by the definition."""
        ...

    def decimals(self, size: int) -> int:
        """Return how many decimal operations `exact_value` takes for a set of this size."""
        ...

    def exact_value(self, instance: int, selected: Bools) -> Decimal:
        """Return E[F] of a set, not empty, in the decimal context at hand."""
        ...

    def exact_none(self, instance: int) -> Decimal:
        """Return P(S = 0) in the decimal context at hand."""
        ...


def decays(nodes: Nodes, counts: Any, beta: float) -> Floats:
    """(1+β²) ω_m e^{-u_m β² s} for each count s of positives."""
    b2 = beta**2
    decays: Floats = np.exp(-b2 * np.multiply.outer(counts, nodes.u))
    return decays * ((1.0 + b2) * nodes.weight)


class Draws:
    """Joint draws of all labels, dense or sparse (CSR), and their weights."""

    def __init__(self, samples: Any, weights: Floats, beta: float, zero_division: float) -> None:
        self.samples = samples
        self.is_sparse = hasattr(samples, "tocsr")
        self.given_weights = weights
        self.weights = weights / weights.sum()
        self.beta = beta
        self.zero_division = zero_division
        n = samples.shape[1]
        self.positives = self._hits(np.ones(n, np.bool_))
        self.none = np.array([self.weights[self.positives == 0].sum()])
        some = self.positives[self.positives > 0]
        fewest, most = (some.min(), some.max()) if some.size else (1, 1)
        self.shift = float(beta**2 * most)
        self.nodes = reciprocal_nodes(1.0 + beta**2 * fewest, n + self.shift)
        self._b, self.marginals = self._sums_over_draws()

    def matrix(self, part: slice) -> Floats:
        """Return B."""
        return self._b[None]

    def value(self, selected: Bools) -> Value:
        """Return mean and standard deviation of F over the draws."""
        hits, k = self._hits(selected[0]), int(selected.sum())
        f = FBeta(self.beta).value(hits, k, self.positives, zero_division=self.zero_division)
        mean = self.weights @ f
        return Value.of_one(mean, np.sqrt(self.weights @ (f - mean) ** 2))

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
        """Return B and the marginals, in one pass over blocks of draws."""
        m, n = self.samples.shape
        b, marginals = np.zeros((n, self.nodes.u.size)), np.zeros(n)
        step = DRAWS if self.is_sparse else min(DRAWS, max(FEWEST_DRAWS, COPIED // n))
        for start in range(0, m, step):
            rows = slice(start, start + step)
            block = self.samples[rows] if self.is_sparse else self.samples[rows].astype(np.float64)
            q = self.weights[rows]
            b += block.T @ (q[:, None] * decays(self.nodes, self.positives[rows], self.beta))
            marginals += block.T @ q
        return b, np.minimum(marginals[None], 1.0)

    def _hits(self, selected: Bools) -> Any:
        """Return how many selected labels each draw has."""
        if self.is_sparse:
            return np.asarray(self.samples @ selected.astype(np.float64)).astype(np.int64)
        hits = np.empty(self.samples.shape[0], np.int64)
        step = max(1, COPIED // self.samples.shape[1])
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


class Mixture:
    """Independent models and their weights: given the model, labels are independent."""

    def __init__(self, p: Floats, weights: Floats, beta: float, zero_division: float) -> None:
        self.p = p
        self.given_weights = weights
        self.weights = weights / weights.sum()
        self.beta = beta
        self.zero_division = zero_division
        n = p.shape[1]
        fewest, most = zip(*(plausible_positives(float(each.sum()), n) for each in p), strict=True)
        self.shift = float(beta**2 * max(most))
        self.nodes = reciprocal_nodes(1.0 + beta**2 * min(fewest), n + self.shift)
        self.marginals: Floats = np.minimum(self.weights @ p, 1.0)[None]
        with np.errstate(divide="ignore"):
            self.none = np.array([self.weights @ np.exp(np.log1p(-p).sum(axis=1))])

    def matrix(self, part: slice) -> Floats:
        """Return B."""
        b2 = self.beta**2
        _, w, x = Tilt.of(self.nodes, b2)
        b = np.zeros((self.p.shape[1], w.size))
        for p, weight in zip(self.p, self.weights, strict=True):
            log_g = group_sums(groups_of_items(p), w, x)[0].sum(axis=0)
            scale = (1.0 + b2) * weight * self.nodes.weight * x * np.exp(log_g)
            _add_model(contiguous(p), scale, w, x, b)
        return b[None]

    def value(self, selected: Bools) -> Value:
        """Return mean and standard deviation of F: those of each model, put together."""
        options: Any = {"beta": self.beta, "zero_division": self.zero_division}
        f, std = np.array([expected_f(p, selected[0], **options) for p in self.p]).T
        mean = self.weights @ f
        return Value.of_one(mean, np.sqrt(self.weights @ (std**2 + (f - mean) ** 2)))

    def decimals(self, size: int) -> int:
        """Return how many decimal operations `exact_value` takes."""
        return int(self.p.shape[0] * self.p.shape[1] ** 2)

    def exact_value(self, instance: int, selected: Bools) -> Decimal:
        """Return Σ_z π_z E_z[F], summed over the positives inside and outside the set."""
        coefficients = exact_coefficients(FBeta(self.beta))
        chosen_first = np.argsort(~selected, kind="stable")
        k = int(selected.sum())
        models = (list(map(Decimal, p[chosen_first].tolist())) for p in self.p)
        values = (exact_value(p, k, coefficients) for p in models)
        weights = map(Decimal, self.given_weights.tolist())
        return sum((q * v for q, v in zip(weights, values, strict=True)), Decimal(0))

    def exact_none(self, instance: int) -> Decimal:
        """Return P(S = 0)."""
        none = (
            math.prod((1 - Decimal(v) for v in p), start=Decimal(weight))
            for weight, p in zip(self.given_weights.tolist(), self.p.tolist(), strict=True)
        )
        return sum(none, Decimal(0))


def _add_model(p: Floats, scale: Floats, w: Floats, x: Floats, b: Floats) -> None:
    """Add scale · p / (1 - p w) to B, items shared out among threads."""
    from argmaxf.expected import dependent_kernels

    def work(items: slice) -> None:
        dependent_kernels.add_component(p[items], scale, w, x, b[items])

    in_threads(work, p.size, threads_for(b.size))


class JointParameters:
    """P[r, i, s-1] = P(y_i = 1, S = s) and P(S = 0), for every instance r."""

    def __init__(self, joint: Floats, none: Floats, beta: float, zero_division: float) -> None:
        self.joint = joint
        self.none = none
        self.beta = beta
        self.zero_division = zero_division
        _, n, most = joint.shape
        self.shift = float(beta**2 * most)
        self.nodes = reciprocal_nodes(1.0 + beta**2, n + self.shift)
        self.marginals: Floats = np.minimum(joint.sum(axis=2), 1.0)
        self._counts = np.arange(1.0, most + 1.0)

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
