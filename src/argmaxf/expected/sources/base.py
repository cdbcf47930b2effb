"""What a place where items are has to offer: a coarse look, closer looks at some, and marking.

A source may hold the items of many decisions at once, each under its own key (the segments of a
frame, the rows of a matrix), so that all of them share its passes; a source of one decision has
the one key `()`. To add a source, write a class with these three methods; `drive.decide` does the
rest. Memory: a source holds what it likes; the search keeps the groups it was given.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from argmaxf.expected.summary.groups import Groups

Key = TypeVar("Key", bound=Hashable)


class Cut(NamedTuple):
    """A decision as a source needs it to mark items: the top k, the lowest one at `threshold`."""

    threshold: float
    k: int


class Source(Protocol[Key]):
    """Where the items are: an array, a file, a frame."""

    def table(self) -> Mapping[Key, Groups]:
        """Return all items in groups by falling probability, those with p = 0 in the last.

        The groups are those of the summary (`summary/layout.py`). This is the first pass; it raises
        NotAProbability, or an error of its own, at a value that is no probability.
        """
        ...

    def refine(self, wanted: Mapping[Key, Sequence[Groups]]) -> Mapping[Key, Sequence[Groups]]:
        """Return the items of each stretch of groups in finer groups, in the same order.

        Bounds of finer groups are tight: `low` and `high` occur. Asked again and again, a source
        ends with one group for each distinct value.
        """
        ...
