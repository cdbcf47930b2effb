"""Three sources of dependence, each seen as the general maximizer's matrix B.

    joint parameters   B_im = (1+β²) ω_m Σ_s P_is e^{-u_m β² s}
    draws, weight q    B_im = (1+β²) ω_m Σ_r q_r y_ri e^{-u_m β² S_r}
    mixture, weight π  B_im = (1+β²) ω_m Σ_z π_z G_z(u_m) p_zi x_m / (1 - p_zi w_m)

with x = e^{-β²u}, w = 1 - x. The value of a set is computed from each source's own definition, not
from B.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from argmaxf.arrays import Bools, Floats, contiguous, readonly
from argmaxf.expected.dependent.general import Value
from argmaxf.expected.evaluate import expected_f, groups_of_items
from argmaxf.expected.form import Tilt
from argmaxf.expected.nodes import Nodes, plausible_positives, reciprocal_nodes
from argmaxf.expected.summary.groups import group_sums
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.expected.ties import exact_value
from argmaxf.measures import FBeta
from argmaxf.metric import fbeta_from_counts

DRAWS = 1 << 12  # draws whose decays are held at a time
ROOM = 1 << 22  # labels of draws copied at a time


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
        return self.joint[part] @ _decays(self.nodes, self._counts, self.beta)

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
        f = fbeta_from_counts(
            self._hits(selected[0]),
            k,
            self.positives,
            beta=self.beta,
            zero_division=self.zero_division,
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
            decays = q[:, None] * _decays(self.nodes, self.positives[rows], self.beta)
            self._add(rows, decays, q, b, marginals[0])
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


@dataclass(frozen=True)
class Mixture:
    """Independent models and their weights: given the model, labels are independent."""

    proba: Floats
    given_weights: Floats
    beta: float
    zero_division: float

    @cached_property
    def weights(self) -> Floats:
        """The weights, adding up to one."""
        normed: Floats = self.given_weights / self.given_weights.sum()
        return normed

    @cached_property
    def nodes(self) -> Nodes:
        """Nodes for every k and every plausible number of positives."""
        b2, n = self.beta**2, self.proba.shape[1]
        ranges = [plausible_positives(float(p.sum()), n) for p in self.proba]
        fewest, most = (min(low for low, _ in ranges), max(high for _, high in ranges))
        return reciprocal_nodes(1.0 + b2 * fewest, n + b2 * most)

    @property
    def u(self) -> Floats:
        """The nodes."""
        return self.nodes.u

    @cached_property
    def marginals(self) -> Floats:
        """P(y_i = 1), averaged over the models."""
        return np.minimum(self.weights @ self.proba, 1.0)[None]

    @cached_property
    def none(self) -> Floats:
        """P(S = 0) = Σ_z π_z Π_i (1 - p_zi)."""
        with np.errstate(divide="ignore"):
            return np.array([self.weights @ np.exp(np.log1p(-self.proba).sum(axis=1))])

    def matrix(self, part: slice) -> Floats:
        """Return B."""
        b2, n = self.beta**2, self.proba.shape[1]
        _, w, x = Tilt.of(self.nodes, b2)
        b = np.zeros((n, self.u.size))
        for p, weight in zip(self.proba, self.weights, strict=True):
            log_g = group_sums(groups_of_items(p), w, x)[0].sum(axis=0)
            scale = (1.0 + b2) * weight * self.nodes.weight * x * np.exp(log_g)
            _add_model(contiguous(p), scale, w, x, b)
        return b[None]

    def value(self, selected: Bools) -> Value:
        """Return mean and standard deviation of F: those of each model, put together."""
        parts = np.array(
            [
                expected_f(p, selected[0], beta=self.beta, zero_division=self.zero_division)
                for p in self.proba
            ]
        )
        mean = self.weights @ parts[:, 0]
        std = np.sqrt(self.weights @ (parts[:, 1] ** 2 + (parts[:, 0] - mean) ** 2))
        return Value(np.array([mean]), np.array([std]), np.array([std]))

    def decimals(self, size: int) -> int:
        """Return how many decimal operations `exact_value` takes."""
        return int(self.proba.shape[0] * self.proba.shape[1] ** 2)

    def exact_value(self, instance: int, selected: Bools) -> Decimal:
        """Return Σ_z π_z E_z[F], summed over the positives inside and outside the set."""
        coefficients = FBeta(self.beta).coefficients(Decimal)
        chosen_first = np.argsort(~selected, kind="stable")
        k = int(selected.sum())
        models = (list(map(Decimal, p[chosen_first].tolist())) for p in self.proba)
        values = (exact_value(p, k, coefficients) for p in models)
        weights = map(Decimal, self.given_weights.tolist())
        return sum((q * v for q, v in zip(weights, values, strict=True)), Decimal(0))

    def exact_none(self, instance: int) -> Decimal:
        """Return P(S = 0)."""
        total = Decimal(0)
        for weight, p in zip(self.given_weights.tolist(), self.proba.tolist(), strict=True):
            product = Decimal(weight)
            for v in p:
                product *= 1 - Decimal(v)
            total += product
        return total


def _add_model(p: Floats, scale: Floats, w: Floats, x: Floats, b: Floats) -> None:
    """Add scale · p / (1 - p w) to B, items shared out among threads."""
    from argmaxf.expected.dependent import kernels

    def work(items: slice) -> None:
        kernels.add_component(p[items], scale, w, x, b[items])

    in_threads(work, p.size, threads_for(b.size))


def _decays(nodes: Nodes, counts: Any, beta: float) -> Floats:
    """(1+β²) ω_m e^{-u_m β² s} for each count s of positives; a draw without any has no part."""
    b2 = beta**2
    decays: Floats = np.exp(-b2 * np.multiply.outer(counts, nodes.u))
    return decays * ((1.0 + b2) * nodes.weight)


def _exact_sums(weights: Floats, kind: Any, kinds: int) -> list[Decimal]:
    """Return the sum of the weights of each kind; equal weights are counted, not added up."""
    if (weights == weights[0]).all():
        counts = np.bincount(kind, minlength=kinds).tolist()
        return [Decimal(c) * Decimal(float(weights[0])) for c in counts]
    sums = [Decimal(0)] * kinds
    for where, weight in zip(kind.tolist(), weights.tolist(), strict=True):
        sums[where] += Decimal(weight)
    return sums
