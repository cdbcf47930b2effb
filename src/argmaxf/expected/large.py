"""Large sets of items: a summary of all, closer looks at a few, no sorting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from argmaxf.expected import drive
from argmaxf.expected.counts.gmean import decide_gmean
from argmaxf.expected.decision import Decision
from argmaxf.expected.sources.array import ArraySource
from argmaxf.measures import GMean
from argmaxf.question import Question


def decide_large(p: NDArray[Any], question: Question) -> Decision:
    """Decide many items from their summary and closer looks at a few, without sorting."""
    if isinstance(question.measure, GMean):
        return decide_gmean(p, question)
    source = ArraySource(p)
    search = drive.decide(source, question)[()]
    return replace(search.decision(p.size), selected=source.select({(): search.cut}))
