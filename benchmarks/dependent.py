"""Dependent labels: joint parameters, draws and mixtures beside plain NumPy on the same arrays."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from argmaxf import (
    maximize_expected_f_from_joint,
    maximize_expected_f_from_mixture,
    maximize_expected_f_from_samples,
)
from benchmarks.harness import Row, best, best_pair
from reproduction.references import dembczynski_2011


def rows() -> Iterator[Row]:
    yield from joint()
    yield mixture()
    yield from draws()


def joint() -> Iterator[Row]:
    """One decision about 1,000 labels, and a batch of small ones."""
    n = 1000
    P, p0 = parameters(n, np.random.default_rng(0))
    counts = np.arange(1, n + 1)
    W = 2.0 / (counts + counts[:, None])
    ours, product = best_pair(lambda: maximize_expected_f_from_joint(P, p0), lambda: P @ W, 9)
    yield Row("joint parameters, 1,000 labels", ours, "P @ W", product, 1.0)
    reference = best(lambda: dembczynski_2011(P), 3)
    yield Row("joint parameters, 1,000 labels", ours, "the published algorithm, O(n³)", reference)
    batch = [parameters(50, np.random.default_rng(seed)) for seed in range(1000)]
    Ps, p0s = np.array([P for P, _ in batch]), np.array([p0 for _, p0 in batch])
    ours, other = best_pair(
        lambda: maximize_expected_f_from_joint(Ps, p0s),
        lambda: [dembczynski_2011(P) for P in Ps],
        3,
    )
    yield Row("1,000 instances of 50 labels", ours, "the published algorithm, each", other)


def parameters(n: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """The joint parameters of some dependent draws."""
    draws = dependent_draws(2 * n, n, rng)
    counts, P = draws.sum(axis=1), np.zeros((n, n))
    for draw, count in zip(draws[counts > 0], counts[counts > 0], strict=True):
        P[draw, count - 1] += 1.0 / len(draws)
    return P, float(np.mean(counts == 0))


def dependent_draws(m: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draws whose labels rise and fall together."""
    p = rng.beta(0.5, 5, n).astype(np.float32)
    draws = np.empty((m, n), np.bool_)
    for draw in draws:
        draw[:] = rng.random(n, dtype=np.float32) < p * rng.uniform(0.3, 2.0)
    return draws


def mixture() -> Row:
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 5, 10**5)
    proba = np.clip(p * rng.uniform(0.3, 2, (10, 1)) * rng.uniform(0.7, 1.3, (10, p.size)), 0, 1)
    ours, sort = best_pair(
        lambda: maximize_expected_f_from_mixture(proba), lambda: np.sort(p), repeat=5
    )
    return Row("mixture of 10 models, n = 100,000", ours, "np.sort of n numbers", sort, 300)


def draws() -> Iterator[Row]:
    """A thousand draws of 100,000 labels: time linear in both, memory below twice the draws."""
    samples = dependent_draws(1000, 10**5, np.random.default_rng(0))
    maximize_expected_f_from_samples(samples[:2])
    whole, fewer = best_pair(
        lambda: maximize_expected_f_from_samples(samples),
        lambda: maximize_expected_f_from_samples(samples[:500]),
        3,
    )
    yield Row("1,000 draws of 100,000 labels", whole, "500 draws", fewer, 2.5)
    half = np.ascontiguousarray(samples[:, ::2])
    narrow = best(lambda: maximize_expected_f_from_samples(half), 3)
    yield Row("1,000 draws of 100,000 labels", whole, "50,000 labels", narrow, 2.5)
    counting = best(lambda: np.count_nonzero(samples, axis=0), 3)
    yield Row("1,000 draws of 100,000 labels", whole, "counting each label's positives", counting)
    tracemalloc.start()
    maximize_expected_f_from_samples(samples)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    yield Row("its memory beside the draws", peak, "the draws", samples.nbytes, 2.0, unit="B")
    thin = sparse.csr_array(samples)
    maximize_expected_f_from_samples(thin[:2])
    yield Row(
        "the same draws, sparse", best(lambda: maximize_expected_f_from_samples(thin), 3),
        "dense", whole,
    )  # fmt: skip
