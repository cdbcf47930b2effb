"""A mixture of independent models, as the general maximizer's matrix B.

    B_im = (1+β²) ω_m Σ_z π_z G_z(u_m) p_zi x_m / (1 - p_zi w_m)        for models z of weight π_z

with x = e^{-β²u}, w = 1 - x. The value of a set is computed from the definition, not from B.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np

from argmaxf._base.arrays import Bools, Floats, contiguous
from argmaxf.expected.dependent.general import Value
from argmaxf.expected.evaluate import expected_f, groups_of_items
from argmaxf.expected.form import Tilt
from argmaxf.expected.nodes import Nodes, plausible_positives, reciprocal_nodes
from argmaxf.expected.summary.groups import group_sums
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.expected.ties import exact_coefficients, exact_value
from argmaxf.measures import FBeta


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
        coefficients = exact_coefficients(FBeta(self.beta))
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
