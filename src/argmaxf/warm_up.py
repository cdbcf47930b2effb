"""python -m argmaxf.warm_up: compile everything now, so that no later process has to.

For container images and serverless functions: run it once while the image is built, by the user and
with the `NUMBA_CACHE_DIR` that the service will have, as in ``RUN python -m argmaxf.warm_up`` of a
Dockerfile. Without it, the first large input of an installation waits some seconds for it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import argmaxf
from argmaxf._base.numba_cache import cache_folder

LARGE = 70_000  # items: more than a process runs as Python, and than are decided one by one


def main() -> None:
    """Compile the kernels behind the public functions, and store them for later processes."""
    start = time.perf_counter()
    warnings.simplefilter("ignore")
    for name, calls in _parts().items():
        for call in calls:
            call()
        print(f"{name}: ready after {time.perf_counter() - start:.1f} s", flush=True)
    folder = cache_folder()
    print(f"compiled code is in {folder}" if folder else "no folder can hold compiled code safely")


def _parts() -> dict[str, list[Callable[[], Any]]]:
    """Return what is called, by name."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 5.0, LARGE)
    rows = rng.beta(0.5, 5.0, (700, 100))
    y = rng.random(LARGE) < p
    decide, tune, kinds = argmaxf.maximize_expected_f, argmaxf.maximize_empirical_f, ("f8", "f4")
    averages = ("samples", "macro", "micro")
    return {
        "one set": [
            *(partial(decide, p[:n].astype(kind)) for kind in kinds for n in (LARGE, LARGE // 35)),
            partial(decide, np.exp(rng.normal(size=LARGE) - 9.0)),  # few positives
            partial(decide, p, max_selected=100),
            *(partial(decide, p, measure=name) for name in ("mcc", "gmean")),
            partial(decide, p[: LARGE // 35], measure="fowlkes_mallows"),
            partial(decide, p, min_precision=0.3, confidence_level=0.9),
            partial(decide, p, min_recall=0.3, confidence_level=0.9),
            partial(argmaxf.expected_f, p, p > 0.2),
        ],
        "many sets": [
            *(partial(decide, rows.astype(kind), average=a) for kind in kinds for a in averages),
            partial(decide, p, by=np.arange(p.size) % 50),
            partial(argmaxf.maximize_expected_macro_f, rows[:, :5], labels_per_row=1),
        ],
        "summaries": [
            argmaxf.ProbabilitySketch().update(p).decide,
            argmaxf.LabelledSketch().update(y, p).tune,
        ],
        "dependent labels": [
            partial(argmaxf.maximize_expected_f_from_samples, rng.random((200, 500)) < 0.1),
            partial(argmaxf.maximize_expected_f_from_mixture, rng.beta(0.5, 5.0, (3, 9000))),
        ],
        "thresholds": [
            partial(tune, y, p),
            partial(tune, y, p, min_precision=0.3, confidence_level=0.95),
        ],
    }


if __name__ == "__main__":
    main()
