"""Words that messages share."""

from __future__ import annotations


def how_many(count: float, what: str) -> str:
    """Write a number of things: the noun of one thing has no s.

    >>> how_many(1, "row"), how_many(2_000, "labelled row")
    ('1 row', '2,000 labelled rows')
    """
    return f"{count:,.0f} {what}{'' if count == 1 else 's'}"
