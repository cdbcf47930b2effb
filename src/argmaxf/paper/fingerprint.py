"""What a kept result depends on: the code it was computed by, followed through argmaxf.

In the paper's room it is followed function by function, so that drawing and reporting code beside a
cell's work does not count. The rest of the library counts module by module, with all that those
modules import: what they choose at run time (measures, sources, kernels) cannot be missed.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from argmaxf._base.numba_cache import PACKAGE, imports_in, sources_digest

ROOM = __name__.rpartition(".")[0]


@dataclass
class Behind:
    """What lies behind a function: sources of the room's functions, and the library's modules."""

    texts: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)

    def follow(self, thing: Any) -> None:
        """Add a function or class with all it uses."""
        thing = inspect.unwrap(getattr(thing, "py_func", thing))  # compiled, cached or plain
        if not isinstance(thing, FunctionType | type):
            return
        home = str(thing.__module__)
        if home.startswith(f"{ROOM}."):
            self._follow_source(thing)
        elif home.split(".")[0] == PACKAGE.name:
            self.modules.add(home)

    def _follow_source(self, thing: Any) -> None:
        text = inspect.getsource(thing)
        if text in self.texts:
            return
        self.texts.add(text)
        self.modules.update(imports_in(text))
        for name, used in _uses(thing):
            if name.isupper() and " at 0x" not in (value := repr(used)):
                self.texts.add(f"{name} = {value}")
            else:
                self.follow(used)


def behind(function: Callable[..., Any]) -> Behind:
    """Return what a function was made of when it ran."""
    found = Behind()
    found.follow(function)
    return found


@cache
def code_digest(function: Callable[..., Any]) -> str:
    """Return a digest of a function and of everything of argmaxf it uses."""
    found = behind(function)
    texts = [*sorted(found.texts), str(sources_digest(*sorted(found.modules)))]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _uses(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a function's or class's code names at its module's top level."""
    parts = [thing] if isinstance(thing, FunctionType) else list(vars(thing).values())
    for part in parts:
        part = getattr(part, "fget", getattr(part, "__func__", part))
        if isinstance(part, FunctionType):
            scope = vars(sys.modules[part.__module__]) if part.__module__ in sys.modules else {}
            yield from ((name, scope[name]) for name in _names(part.__code__) if name in scope)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
