"""How a large array is decided: by the band, or by the grouped search.

The band (`band.py`) decides every measure that is a ratio of counts, with smoothing, any value of
0/0, and equal items split or together. The grouped search (`grouped`) is for:

- sketches and other summaries, also of frames and files that are not read in batches: there are no
  items to copy out of a band;
- measures that are linear in the positives (`LinearCurve`): their value is no ratio of means;
- limits on the number of items that exclude the best set: f need not fall steadily beyond it;
- several sets that agree to 12 digits of the terms they do not share: the search looks at the loss
  instead of f where f is near 1, and takes the smallest of equal ones;
- a narrow band that is not proven where a wide one has too many items: f is nearly flat over many
  sets, with few positives among many items that look alike;
- values below 1e-290, and Tversky's index so far from Dice that terms of the first sets underflow.

Chance constraints and other measures have their own ways (`counts`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from argmaxf.expected import band, search
from argmaxf.expected.array_passes import ArrayPasses
from argmaxf.expected.decision import Decision, top_items
from argmaxf.expected.gmean import decide_gmean
from argmaxf.expected.grouped.sources import Source
from argmaxf.measures import GMean
from argmaxf.problem import Problem


def decide_large(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide many items without sorting them."""
    if isinstance(problem.measure, GMean):
        return decide_gmean(p, problem)
    return decide_by_band(p, problem) or decide_by_search(p, problem)


def decide_by_band(p: NDArray[Any], problem: Problem) -> Decision | None:
    """Decide by the band; None where it has no answer, or so few items are sooner sorted."""
    fewest, fewest_wide = 1 << 11, 1 << 13
    if p.size <= fewest or not band.knows(problem):
        return None
    (found,) = band.decide(ArrayPasses(p), problem, wide=p.size > fewest_wide)
    if found is None:
        return None
    k, threshold, expected, std = found
    selected = top_items(p, threshold, k)
    return Decision(selected, k, threshold, expected, std, problem.beta, p.size)


def decide_by_search(p: NDArray[Any], problem: Problem) -> Decision:
    """Decide any question by the grouped search."""
    decision = search.decide(Source(ArrayPasses(p)), problem).decision(p.size)
    return replace(decision, selected=top_items(p, decision.threshold, decision.k))
