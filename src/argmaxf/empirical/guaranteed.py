"""The best cut of labelled scores among those for which constraints hold in the population."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from argmaxf.constraints import Constraints
from argmaxf.empirical.cuts import Cuts, rated
from argmaxf.empirical.guarantees import Guarantee, guarantee_of, guaranteed_cuts
from argmaxf.empirical.ladder import Steps
from argmaxf.measures import Measure


def best_guaranteed(
    y: Any,
    score: Any,
    constraints: Constraints,
    confidence_level: float,
    measure: Measure,
    zero_division: float,
    together: float | None = None,
) -> tuple[Cuts, int, Guarantee]:
    """Return the cuts that qualify, which of them is the best, and what is guaranteed of it.

    `together` is the confidence of all segments at once, where this is one of them.
    """
    steps = Steps.of(y, score)
    allowed = guaranteed_cuts(steps, constraints, confidence_level, together)
    counts = y.sum(), y.size, measure, zero_division
    cuts = replace(rated(allowed.edge, allowed.true, allowed.false, *counts), empty_first=False)
    i = int(np.argmax(cuts.value))
    free = rated(steps.edge, steps.true, steps.false, *counts).value.max(initial=0.0)
    cost = max(0.0, float(free - cuts.value[i]))
    guarantee = guarantee_of(allowed, i, steps, constraints, confidence_level, cost)
    return cuts, i, replace(guarantee, together=together)


def check_can_be_guaranteed(
    constraints: Constraints, average: str | None, weight: Any, confidence_level: float
) -> None:
    """Refuse what no guarantee can be made of."""
    if not constraints.given():
        raise ValueError(
            f"confidence_level={confidence_level} needs min_precision, min_recall or "
            "max_selected_rate"
        )
    if average in ("micro", "samples"):
        raise ValueError(
            "confidence_level needs independent items, and the cells of a row are not: average "
            f"must be 'macro', got {average!r}"
        )
    if weight is not None and weight.min() < weight.max():
        raise ValueError(
            "confidence_level needs rows of one weight: its tests count rows, and a weighted share "
            f"of them has no known distribution; got weights from {weight.min():g} to "
            f"{weight.max():g}"
        )
