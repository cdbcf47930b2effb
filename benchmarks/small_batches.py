"""python -m benchmarks.small_batches: what it costs to decide small batches apart.

Two normal classes as far apart as the F1 asked for needs, and their true probabilities. All rows
are decided at once, and in batches that hold so many positives on average; the table of
docs/background/studies.md has the points of F1 that are lost. About ten seconds of one core.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm

from argmaxf import maximize_expected_f

ROWS = 2_000_000
POPULATIONS = ((0.02, 0.70), (0.10, 0.48), (0.25, 0.90))  # rate of positives, F1
POSITIVES = (0.5, 1, 2, 3, 5, 10)  # in a batch, on average; batches are of whole numbers of rows


def best_f1(rate: float, distance: float) -> float:
    """Return the F1 of the best threshold, on unlimited rows."""
    cut = np.linspace(-4, distance + 4, 4001)
    found, false = rate * norm.sf(cut - distance), (1 - rate) * norm.sf(cut)
    return float((2 * found / (found + false + rate)).max())


def f1(selected: np.ndarray, y: np.ndarray) -> float:
    return 200 * float((selected & y).sum() / (selected.sum() + y.sum()))


def lost(rate: float, aim: float) -> list[float]:
    """Return the points of F1 that batches of each size lose against all rows at once."""
    distance = brentq(lambda d: best_f1(rate, d) - aim, 0.1, 8)
    rng = np.random.default_rng(0)
    y = rng.random(ROWS) < rate
    x = rng.normal(size=ROWS) + distance * y
    p = expit(distance * (x - distance / 2) + logit(rate))
    whole = f1(maximize_expected_f(p).selected, y)
    sizes = [round(positives / rate) for positives in POSITIVES]
    ends = [ROWS - ROWS % size for size in sizes]
    batches = [p[:end].reshape(-1, size) for end, size in zip(ends, sizes, strict=True)]
    apart = [maximize_expected_f(each, average="samples").selected.ravel() for each in batches]
    return [whole - f1(each, y[: each.size]) for each in apart]


def main() -> None:
    """Print the table."""
    print("| positives in a batch, on average | " + " | ".join(map(str, POSITIVES)) + " |")
    print("| --- |" + " ---: |" * len(POSITIVES))
    for rate, aim in POPULATIONS:
        cells = " | ".join(f"{points:.1f}" for points in lost(rate, aim))
        print(f"| {100 * rate:.0f} % positive, F1 {100 * aim:.0f} | {cells} |")


if __name__ == "__main__":
    main()
