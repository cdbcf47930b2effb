"""What a kept result depends on: the code it was computed by, followed through argmaxf."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any


@cache
def code_digest(function: Callable[..., Any]) -> str:
    """Return a digest of a function and of every function, class and constant of argmaxf it uses.

    Drawing or reporting code in the same module is not part of it unless the function calls it.
    """
    digest = hashlib.sha256()
    for text in sorted(_reachable(function, set())):
        digest.update(text.encode())
    return digest.hexdigest()


def _reachable(thing: Any, seen: set[int]) -> Iterator[str]:
    """Yield the source of every function and class reached from here, and their constants."""
    thing = inspect.unwrap(getattr(thing, "py_func", thing))  # compiled, cached or plain
    if id(thing) in seen or not isinstance(thing, FunctionType | type) or not _is_ours(thing):
        return
    seen.add(id(thing))
    yield inspect.getsource(thing)
    for name, used in _uses(thing):
        if name.isupper() and " at 0x" not in (text := repr(used)):
            yield f"{name} = {text}"
        else:
            yield from _reachable(used, seen)


def _is_ours(thing: Any) -> bool:
    return str(thing.__module__).split(".")[0] == __name__.split(".")[0]


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
