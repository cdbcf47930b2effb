"""Every β and every spread of probabilities beside β = 1 on the same data, the worst first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from argmaxf import maximize_expected_f
from benchmarks.harness import Row, timed

ON_REQUEST = True  # minutes
SIZES = 100, 1_000, 10_000, 16_384, 100_000, 1_200_000
BETAS = 1e-9, 1e-6, 1e-3, 1e-1, 0.5, 2.0, 1e1, 1e3, 1e6, 1e9
SHOWN = 40  # of the rows, the worst
AT_MOST = 3.0

Draw = Callable[[np.random.RandomState, int], np.ndarray]


def logits(spread: float) -> Draw:
    """Probabilities whose logits are normal."""
    return lambda rng, n: 1 / (1 + np.exp(-rng.normal(0, spread, n)))


def coarse(digits: int) -> Draw:
    """Probabilities written to a few digits."""
    return lambda rng, n: np.round(rng.uniform(size=n), digits)


def mixture(rng: np.random.RandomState, n: int) -> np.ndarray:
    """A third near one, a third near zero, a third in two digits."""
    parts = near_one(rng, n), near_zero(rng, n), coarse(2)(rng, n)
    return np.choose(rng.randint(3, size=n), parts)


def near_one(rng: np.random.RandomState, n: int) -> np.ndarray:
    """1 - 10^-U(1, 17)."""
    return 1 - 10.0 ** -rng.uniform(1, 17, n)


def near_zero(rng: np.random.RandomState, n: int) -> np.ndarray:
    """10^-U(1, 17)."""
    return 10.0 ** -rng.uniform(1, 17, n)


SPREADS: dict[str, Draw] = {
    "1 - 10^-U(1, 17)": near_one,
    "10^-U(1, 17)": near_zero,
    **{f"logits of spread {spread}": logits(spread) for spread in (1, 3, 10, 30)},
    **{f"{digits} digits": coarse(digits) for digits in (2, 6, 12)},
    "uniform": lambda rng, n: rng.uniform(size=n),
    "Beta(.5, 5)": lambda rng, n: rng.beta(0.5, 5, n),
    "all .3": lambda rng, n: np.full(n, 0.3),
    "all but one .999": lambda rng, n: np.append(np.full(n - 1, 0.999), 0.1),
    "a mixture": mixture,
}


def rows() -> Iterator[Row]:
    found = [row for n in SIZES for name in SPREADS for row in of(name, n)]
    yield from sorted(found, key=lambda row: -row.ratio)[:SHOWN]


def of(name: str, n: int) -> Iterator[Row]:
    """Each β and two other measures on one set of probabilities."""
    p = SPREADS[name](np.random.RandomState(n), n)
    chance = {f"β = {beta:g}": {"beta": beta} for beta in BETAS}
    chance |= {"Jaccard": {"measure": "jaccard"}}
    one = shortest(lambda: maximize_expected_f(p))
    sort = shortest(lambda: np.sort(p))
    for words, problem in chance.items():
        ours = shortest(lambda problem=problem: maximize_expected_f(p, **problem))
        yield Row(
            f"{name}, n = {n:,}, {words}",
            ours,
            f"β = 1 = {one / sort:.2g} np.sort",
            one,
            AT_MOST,
        )


def shortest(work: Callable[[], object], seconds: float = 0.03) -> float:
    """Return the shortest of three runs and more, as many as fit in some time."""
    work()
    stop, best = time.perf_counter() + seconds, timed(work)
    for _ in range(2):
        best = min(best, timed(work))
    while time.perf_counter() < stop:
        best = min(best, timed(work))
    return best
