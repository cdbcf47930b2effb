"""The best cut of labelled scores among those for which constraints hold in the population."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from argmaxf.constraints import Constraints
from argmaxf.empirical.cuts import Cuts, rated
from argmaxf.empirical.ladder import Steps
from argmaxf.empirical.promises import Promise, promise_of, promised_cuts
from argmaxf.measures import Measure


def best_promised(
    y: Any,
    score: Any,
    constraints: Constraints,
    confidence: float,
    measure: Measure,
    zero_division: float,
    together: float | None = None,
) -> tuple[Cuts, int, Promise]:
    """Return the cuts that qualify, which of them is the best, and what is promised of it.

    `together` is the confidence of all segments at once, where this is one of them.
    """
    steps = Steps.of(y, score)
    allowed = promised_cuts(steps, constraints, confidence, together)
    counts = y.sum(), y.size, measure, zero_division
    cuts = replace(rated(allowed.edge, allowed.true, allowed.false, *counts), empty_first=False)
    i = int(np.argmax(cuts.value))
    free = rated(steps.edge, steps.true, steps.false, *counts).value.max(initial=0.0)
    cost = max(0.0, float(free - cuts.value[i]))
    promise = promise_of(allowed, i, steps, constraints, confidence, cost)
    return cuts, i, replace(promise, together=together)


def check_promisable(
    constraints: Constraints, average: str | None, weight: Any, confidence: float
) -> None:
    """Refuse what no promise can be made of."""
    if not constraints.given():
        raise ValueError(
            f"confidence={confidence} needs min_precision, min_recall or max_selected_rate"
        )
    if average in ("micro", "samples"):
        raise ValueError(
            f"confidence needs independent items, and the cells of a row are not: average must be "
            f"'macro', got {average!r}"
        )
    if weight is not None and weight.min() < weight.max():
        raise ValueError(
            "confidence needs rows of one weight: its tests count rows, and a weighted share of "
            f"them has no known distribution; got weights from {weight.min():g} to "
            f"{weight.max():g}"
        )
