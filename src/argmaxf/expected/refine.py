"""The grouped search for any measure: which search suits it, driven over any source."""

from __future__ import annotations

from functools import partial

from argmaxf.expected.counts import refuse_many
from argmaxf.expected.grouped.groups import Groups
from argmaxf.expected.grouped.search import Key, Search, Source, run
from argmaxf.expected.linear_search import LinearSearch
from argmaxf.problem import Problem


def search(groups: Groups, problem: Problem) -> Search:
    """Begin the search that suits the measure; those with p = 0 are the last group."""
    if problem.ratio is not None:
        return Search(groups, problem)
    if problem.is_linear:
        return LinearSearch(groups, problem)
    refuse_many(int(groups.count.sum()), problem.measure)
    raise ValueError(
        f"the expectation of {problem.measure} cannot be computed from a sketch; pass the "
        "probabilities"
    )


def decide(source: Source[Key], problem: Problem) -> dict[Key, Search]:
    """Search every set of items of a source, all of them in the same passes."""
    return run(source, partial(search, problem=problem))
