"""The one loop behind every large decision: a search says what it needs, the source looks."""

from __future__ import annotations

from argmaxf.expected.search import Search
from argmaxf.expected.sources.base import Key, Source
from argmaxf.question import Question


def decide(source: Source[Key], question: Question) -> dict[Key, Search]:
    """Search every set of items of a source, all of them in the same passes."""
    searches = {key: Search(groups, question) for key, groups in source.table().items()}
    while wanted := {key: each.wanted for key, each in searches.items() if each.wanted}:
        finer = source.refine(wanted)
        for key in wanted:
            searches[key].refine(finer.get(key, ()))
    return searches
