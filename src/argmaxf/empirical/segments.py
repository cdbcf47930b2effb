"""All rows together where each segment has a threshold of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from argmaxf._base.validation import ones_unless
from argmaxf.empirical.guarantees import Guarantee
from argmaxf.empirical.problems import Problems
from argmaxf.empirical.records import Threshold
from argmaxf.measures import Measure
from argmaxf.measures.base import divided


def rate_of_all(
    problems: Problems, found: list[Threshold], measure: Measure, zero_division: float
) -> Threshold:
    """Return what all rows have together, each cut at the threshold of its segment."""
    counts = np.zeros(4)
    k = 0
    for (y, s, weight), best in zip(problems.items, found, strict=True):
        selected, heavy = s >= best.threshold, ones_unless(weight, len(y))
        counts += [heavy @ (selected & y), heavy @ selected, heavy @ y, heavy.sum()]
        k += int(np.count_nonzero(selected))
    true, predicted, positives, _ = counts
    return Threshold(
        threshold=None,
        value=float(measure.value(*counts, zero_division=zero_division)),
        precision=float(divided(true, predicted, zero_division)),
        recall=float(divided(true, positives, zero_division)),
        k=k,
    )


def overall_guarantee(
    found: list[Threshold], confidence_level: float | None, cost: float
) -> Guarantee | None:
    """Return what segments that all keep their guarantee guarantee together: the worst of them."""
    if confidence_level is None:
        return None
    guarantees: list[Guarantee] = [each.guarantee for each in found]

    def worst(name: str, of: Callable[..., float]) -> float | None:
        limits = [getattr(each, name) for each in guarantees]
        return None if limits[0] is None else of(limits)

    return Guarantee(
        guarantees[0].constraints,
        confidence_level,
        worst("precision_low", min),
        worst("recall_low", min),
        worst("rate_high", max),
        cost,
    )
