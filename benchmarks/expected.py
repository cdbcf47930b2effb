"""The exact expected-F decision beside np.sort and the paper's Algorithm 1."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import argmaxf
from argmaxf import expected_f_curve, maximize_expected_f
from benchmarks.harness import Row, best, best_pair
from reproduction.references import ye_2012

SETS = "Beta(.5, 5)"


def rows() -> Iterator[Row]:
    yield first_call()
    draw = np.random.RandomState(0).beta
    times = {}
    for n, at_most, aim, repeat in (
        (10**7, 0.20, 0.10, 5),
        (10**6, 0.40, 0.25, 9),
        (262_144, 0.5, 0.3, 20),
        (65_536, 0.8, 0.5, 30),
        (10**4, 1.5, 1.0, 50),
    ):
        p = draw(0.5, 5, n)
        ours, sort = best_pair(lambda p=p: maximize_expected_f(p), lambda p=p: np.sort(p), repeat)
        times[n] = ours
        yield Row(f"n = {n:,}, decision with mask", ours, "np.sort", sort, at_most, aim)
    yield from few_positives()
    p = draw(0.5, 5, 100)
    ours, other = best_pair(lambda: maximize_expected_f(p), lambda: ye_2012(p), 300)
    yield Row("n = 100, one call", ours, "Algorithm 1 in NumPy", other, 0.15, 0.05)
    p = draw(0.5, 5, 10**4)
    ours, other = best_pair(lambda: maximize_expected_f(p), lambda: ye_2012(p), 2)
    yield Row("n = 10,000", ours, "Algorithm 1 in NumPy", other)
    q = draw(0.5, 5, (10_000, 100))
    ours, sort = best_pair(
        lambda: maximize_expected_f(q, average="samples"), lambda: np.sort(q, axis=1), 15
    )
    yield Row("10,000 × 100, average='samples'", ours, "np.sort(axis=1)", sort, 4, 2)
    q = draw(0.5, 5, (100_000, 20))
    ours, sort = best_pair(
        lambda: maximize_expected_f(q, average="samples"), lambda: np.sort(q, axis=1), 15
    )
    yield Row("100,000 × 20, average='samples'", ours, "np.sort(axis=1)", sort)
    p = draw(0.5, 5, 10**5)
    ours, sort = best_pair(lambda: expected_f_curve(p), lambda: np.sort(p), 7)
    yield Row("expected_f_curve, n = 100,000", ours, "np.sort", sort, 40, 20)
    yield Row("n = 10,000,000", times[10**7], "n = 1,000,000", times[10**6], 12, 10)
    yield memory()
    ties = np.random.RandomState(1).randint(0, 256, 10**7) / 255
    ours, sort = best_pair(lambda: maximize_expected_f(ties), lambda: np.sort(ties), 3)
    yield Row("n = 10,000,000 in 256 values", ours, "np.sort", sort)
    jaccard = draw(0.5, 5, 10**6)
    ours, sort = best_pair(
        lambda: maximize_expected_f(jaccard, measure="jaccard"), lambda: np.sort(jaccard), 5
    )
    yield Row("Jaccard, n = 1,000,000", ours, "np.sort", sort)
    yield from extreme_beta()


def few_positives() -> Iterator[Row]:
    """p = e^(z - 9), z standard normal: 13 to 200 positives."""
    normal = np.random.RandomState(1).normal
    for n, at_most, aim in ((10**6, 0.6, 0.4), (262_144, 0.8, 0.5), (65_536, 1.5, 1.0)):
        p = np.exp(normal(size=n) - 9)
        ours, sort = best_pair(lambda p=p: maximize_expected_f(p), lambda p=p: np.sort(p), 20)
        yield Row(f"n = {n:,}, few positives", ours, "np.sort", sort, at_most, aim)


def extreme_beta() -> Iterator[Row]:
    """β far from 1 where f is near 1, beside β = 1 on the same data."""
    rng = np.random.RandomState(2)
    near_one = 1 - 10.0 ** -rng.uniform(1, 17, 1_200_000)
    logits = 1 / (1 + np.exp(-rng.normal(0, 10, 1_200_000)))
    for name, p in (("p = 1 - 10^-U(1, 17)", near_one), ("logits of spread 10", logits)):
        for beta in (1e-9, 1e-3, 1e3, 1e9):
            ours, other = best_pair(
                lambda p=p, beta=beta: maximize_expected_f(p, beta=beta),
                lambda p=p: maximize_expected_f(p),
                5,
            )
            yield Row(f"{name}, beta = {beta:g}", ours, "beta = 1", other, 3.0)


def memory() -> Row:
    """Extra memory at n = 1e7, beyond the input and the mask."""
    p = np.random.RandomState(0).beta(0.5, 5, 10**7)
    tracemalloc.start()
    decision = maximize_expected_f(p)
    peak = tracemalloc.get_traced_memory()[1] - decision.selected.nbytes
    tracemalloc.stop()
    return Row("extra memory, n = 10,000,000", peak, "the input", p.nbytes, 0.25, 0.10, "B")


def first_call() -> Row:
    """The first process of a fresh installation beside one that finds the compiled code on disk."""
    code = "import argmaxf; argmaxf.maximize_expected_f([0.5]); "
    code += "import numpy as np; argmaxf.maximize_expected_f(np.full(20_000, 0.5))"
    with tempfile.TemporaryDirectory() as fresh:
        nothing_compiled = shutil.ignore_patterns("__pycache__")
        package = Path(argmaxf.__file__).parent
        shutil.copytree(package, Path(fresh, "argmaxf"), ignore=nothing_compiled)

        def run() -> float:
            start = time.perf_counter()
            environment = {"PYTHONPATH": fresh, "PATH": "", "HOME": fresh}
            subprocess.run([sys.executable, "-c", code], env=environment, check=True)
            return time.perf_counter() - start

        first = run()
        name = "first process of an installation: 1 item, then 20,000"
        return Row(name, first, "later processes", best(run, 2))
