"""The best worst case under bands beside np.sort, and its order beside NumPy's lexsort."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argmaxf import maximize_worst_case_f
from argmaxf.expected.worst_case import _ascending
from argmaxf.prior import move_odds
from benchmarks.harness import Row, best_pair


def rows() -> Iterator[Row]:
    times = {}
    for n, repeat in ((10**5, 5), (10**6, 3)):
        p = np.random.RandomState(0).beta(0.5, 5, n)
        low, high = move_odds(p, 1 / 1.5), move_odds(p, 1.5)
        ours, sort = best_pair(
            lambda low=low, high=high: maximize_worst_case_f(low, high),
            lambda p=p: np.sort(p),
            repeat,
        )
        times[n] = ours
        yield Row(f"n = {n:,}, bands of an odds factor 1.5 each way", ours, "np.sort", sort)
        ours, other = best_pair(
            lambda low=low, high=high: _ascending(low, high),
            lambda low=low, high=high: np.lexsort((low, high)),
            repeat,
        )
        yield Row(f"n = {n:,}, their order alone", ours, "np.lexsort", other)
    yield Row("n = 1,000,000", times[10**6], "n = 100,000", times[10**5])
