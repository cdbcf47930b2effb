"""The one loop behind every large decision: a search says what it needs, the source looks."""

from __future__ import annotations

from argmaxf.expected.counts.joint import refuse_many
from argmaxf.expected.counts.search import LinearSearch
from argmaxf.expected.search import Search
from argmaxf.expected.sources.base import Key, Source
from argmaxf.expected.summary.groups import Groups
from argmaxf.question import Question


def search(groups: Groups, question: Question) -> Search:
    """Begin the search that suits the measure; those with p = 0 are the last group."""
    if question.ratio is not None:
        return Search(groups, question)
    if question.is_linear:
        return LinearSearch(groups, question)
    refuse_many(int(groups.count.sum()), question.measure)
    raise ValueError(f"the expectation of {question.measure} needs the items, got a summary")


def decide(source: Source[Key], question: Question) -> dict[Key, Search]:
    """Search every set of items of a source, all of them in the same passes."""
    searches = {key: search(groups, question) for key, groups in source.table().items()}
    while wanted := {key: each.wanted for key, each in searches.items() if each.wanted}:
        finer = source.refine(wanted)
        for key in wanted:
            searches[key].refine(finer.get(key, ()))
    return searches
