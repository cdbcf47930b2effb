"""Docstrings that refer to entries which another docstring has, so that they are written once.

A line such as ``beta, measure : as in `maximize_empirical_f` `` stands for those entries of that
function; `help` and the documentation show them in its place.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def with_entries_of(*sources: Any) -> Callable[[T], T]:
    """Return a decorator that puts entries of functions or classes where they are referred to."""
    known = {}
    for source in sources:
        text = f"{inspect.getdoc(source)}\n"
        entries = re.findall(r"^(\w+)( : .+\n(?: {4}.+\n)+)", text, re.M)
        known[source.__name__] = {name: name + rest.rstrip() for name, rest in entries}
    reference = re.compile(rf"^(\w+(?:, \w+)*) : as in `({'|'.join(known)})`$", re.M)

    def filled_in(found: re.Match[str]) -> str:
        return "\n".join(known[found[2]][name] for name in found[1].split(", "))

    def decorate(thing: T) -> T:
        inside = vars(thing).values() if isinstance(thing, type) else ()
        for each in (thing, *inside):
            described: Any = getattr(each, "__func__", each)
            if getattr(described, "__module__", None) == thing.__module__ and described.__doc__:
                described.__doc__ = reference.sub(filled_in, inspect.cleandoc(described.__doc__))
        return thing

    return decorate
