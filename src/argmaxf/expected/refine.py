"""The loop of the grouped search: a search says which groups it needs finer, the source looks."""

from __future__ import annotations

from argmaxf.expected.counts.joint import refuse_many
from argmaxf.expected.counts.search import LinearSearch
from argmaxf.expected.grouped.groups import Groups
from argmaxf.expected.grouped.search import Search
from argmaxf.expected.grouped.sources import Key, Source
from argmaxf.problem import Problem


def search(groups: Groups, problem: Problem) -> Search:
    """Begin the search that suits the measure; those with p = 0 are the last group."""
    if problem.ratio is not None:
        return Search(groups, problem)
    if problem.is_linear:
        return LinearSearch(groups, problem)
    refuse_many(int(groups.count.sum()), problem.measure)
    raise ValueError(f"the expectation of {problem.measure} needs the items, got a summary")


def decide(source: Source[Key], problem: Problem) -> dict[Key, Search]:
    """Search every set of items of a source, all of them in the same passes."""
    searches = {key: search(groups, problem) for key, groups in source.table().items()}
    while wanted := {key: each.wanted for key, each in searches.items() if each.wanted}:
        finer = source.refine(wanted)
        for key in wanted:
            searches[key].refine(finer.get(key, ()))
    return searches
