r"""The general F maximizer: the best set for labels that depend on each other.

For any joint distribution, with P_is = P(y_i = 1, S = s), a set of k items has

    E[F] = Σ_{i in set} Δ_ik,    Δ_ik = (1+β²) Σ_s P_is / (k + β² s),

so the best set of size k is the k largest Δ_·k, worth f_k, and the best k wins (Dembczyński et
al. 2011). Writing 1/x = Σ_m ω_m e^{-u_m x} gives every source of dependence one form:

    Δ_ik = Σ_m B_im e^{-u_m k},    B ≥ 0, n × nodes,

and one optimizer. Δ_ik is convex and falling in k, and so is V(k, t), the sum of the k largest
Δ_·t, in t. Hence for a ≤ k ≤ b, with λ = (k - a) / (b - a),

    f_k = V(k, k) ≤ (1-λ) V(k, a) + λ V(k, b):

two evaluations, n·nodes operations each, bound f at every k between them, by a chord whose error
is of second order. Cutting the ranges that the bound leaves open certifies the optimum after a few
dozen evaluations.

Ties. Values of f within 1e-13 of the best are told apart in 60-digit decimals where that takes at
most 90,000 of them; beyond, and where they are equal, the smallest k is taken. Items whose Δ agree
to 13 digits count as equal, and the first ones are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

import numpy as np

from argmaxf._base.arrays import Bools, Floats
from argmaxf.expected.decision import Decision
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.expected.ties import LARGEST, settle_values
from argmaxf.problem import Problem

ROOM = 1 << 22  # numbers of B held at a time for a batch


@dataclass(frozen=True, eq=False, repr=False)
class JointDecision(Decision):
    """The set with the highest expected F under a joint model, and what dependence is worth.

    Attributes
    ----------
    selected : ndarray of bool
        The labels, in the shape of one instance or of the batch.
    k : int or ndarray
        How many labels are selected.
    expected : float or ndarray
        E[F] of the selected set under the joint model.
    beta : float
        The β of F_β.
    n : int
        How many labels each decision is about.
    bracket : None
        Nothing is left open here.
    guarantee : None
        There are no constraints here.
    threshold : float or ndarray
        The smallest selected contribution: an item is selected where its `contribution` is at
        least this, ties aside. Infinite if nothing is selected.
    std : float or ndarray
        Standard deviation of F under the joint model; NaN where the model leaves it open.
    std_bounds : tuple
        Between which numbers it lies for every distribution that fits the model.
    independent_expected : float or ndarray
        E[F], under the joint model, of the set that would be best if labels were independent with
        the same probabilities.
    contribution : ndarray or None
        What each item adds to E[F] in a set of k items (of one item, if nothing is selected).
    """

    std_bounds: Any = (np.nan, np.nan)
    independent_expected: Any = np.nan
    contribution: Any = None

    @property
    def gain(self) -> Any:
        """How much expected F is lost by taking labels for independent."""
        return self.expected - self.independent_expected


class Value(NamedTuple):
    """E[F] of one set for each instance, and bounds on its standard deviation."""

    mean: Floats
    low: Floats
    high: Floats


class JointSource(Protocol):
    """Where the joint distribution comes from; the first axis of every array is the instance."""

    @property
    def u(self) -> Floats:
        """The nodes."""
        ...

    @property
    def marginals(self) -> Floats:
        """P(y_i = 1)."""
        ...

    @property
    def none(self) -> Floats:
        """P(S = 0)."""
        ...

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


def decide(source: JointSource, problem: Problem) -> JointDecision:
    """Return the best set for each instance of a source."""
    marginals = source.marginals
    independent = maximize_expected_f(
        marginals, beta=problem.beta, average="samples", zero_division=problem.zero_division
    )
    found = _best_sets(source, problem, np.maximum(independent.k, 1))
    value = source.value(found.selected)
    return JointDecision(
        selected=found.selected,
        k=found.k,
        threshold=found.threshold,
        expected=value.mean,
        std=np.where(value.high - value.low <= 1e-12, value.high, np.nan),
        beta=problem.beta,
        n=marginals.shape[1],
        std_bounds=(value.low, value.high),
        independent_expected=source.value(independent.selected).mean,
        contribution=found.delta,
    )


def only_one(decision: JointDecision) -> JointDecision:
    """Return the decision of a batch of one."""
    low, high = decision.std_bounds
    return JointDecision(
        selected=decision.selected[0],
        k=int(decision.k[0]),
        threshold=float(decision.threshold[0]),
        expected=float(decision.expected[0]),
        std=float(decision.std[0]),
        beta=decision.beta,
        n=decision.n,
        std_bounds=(float(low[0]), float(high[0])),
        independent_expected=float(decision.independent_expected[0]),
        contribution=decision.contribution[0],
    )


class _Found(NamedTuple):
    k: Any
    rivals: Any
    delta: Floats
    threshold: Floats
    selected: Bools


def _best_sets(source: JointSource, problem: Problem, guess: Any) -> _Found:
    """Decide all instances, as many at a time as fit in memory."""
    from argmaxf.expected.dependent import kernels

    rows, n = source.marginals.shape
    found = _Found(
        k=np.empty(rows, np.int64),
        rivals=np.empty(rows, np.int64),
        delta=np.empty((rows, n)),
        threshold=np.empty(rows),
        selected=np.empty((rows, n), np.bool_),
    )
    nothing = problem.zero_division * source.none

    def work(part: slice) -> None:
        b = source.matrix(part)
        results = (field[part] for field in found)
        kernels.decide_instances(b, source.u, guess[part], nothing[part], *results)
        for r in np.flatnonzero(found.rivals[part] > 1):
            _settle(source, problem, b[r], int(part.start + r), float(nothing[part][r]), found)

    at_once = max(1, ROOM // (n * source.u.size))
    for start in range(0, rows, at_once):
        block = min(at_once, rows - start)
        threads = threads_for(block * n * source.u.size)
        in_threads(work, block, threads, start)
    return found


def _settle(
    source: JointSource, problem: Problem, b: Floats, row: int, nothing: float, found: _Found
) -> None:
    """Decide an instance in which several k agree to 13 digits."""
    from argmaxf.expected.dependent import kernels

    u, n = source.u, b.shape[0]
    f = np.full(n + 1, nothing)
    kernels.search(b, u, max(1, int(found.k[row])), nothing, f)
    rivals = np.flatnonzero(f >= f.max() * (1.0 - kernels.CONTEST)).tolist()
    delta, selected, threshold = (
        a[row : row + 1] for a in (found.delta, found.selected, found.threshold)
    )

    def value(k: int) -> Decimal:
        if k == 0:
            return Decimal(problem.zero_division) * source.exact_none(row)
        kernels.take(b, u, k, delta[0], selected[0], threshold)
        return source.exact_value(row, selected[0])

    affordable = max(source.decimals(k) for k in rivals) <= LARGEST**2
    k = settle_values(rivals, value) if affordable else rivals[0]
    found.k[row] = k
    kernels.take(b, u, k, delta[0], selected[0], threshold)
