"""What a module of argmaxf is made of: its own source and that of every module it imports.

Whoever keeps a result of code (compiled kernels, finished experiments) keeps it under the digest of
the sources behind it, so that an edit anywhere behind it can never give an old answer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
_FROM = re.compile(r"^\s*from (argmaxf\S*) import (\([^)]*\)|.*)", re.MULTILINE)
_IMPORT = re.compile(r"^\s*import (argmaxf\S*)", re.MULTILINE)


@cache
def sources_digest(*modules: str) -> str | None:
    """Return a digest of modules and of all they import of argmaxf, however deep.

    None where a source is not a file beside this one (in an archive, for instance).
    """
    files = {name: source_file(name) for name in sorted(modules_behind(*modules))}
    digest = hashlib.sha256()
    for name, file in files.items():
        if file is None:
            return None
        digest.update(f"{name}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def source_file(module: str) -> Path | None:
    """Return the file of a module of argmaxf, or None where there is none of that name."""
    place = PACKAGE.joinpath(*module.split(".")[1:])
    return next((f for f in (place.with_suffix(".py"), place / "__init__.py") if f.is_file()), None)


def imports_in(text: str) -> Iterator[str]:
    """Yield the modules of argmaxf that a source imports, at its top or inside a function.

    The package itself is not among them: it names everything and defines nothing.
    """
    for base, names in _FROM.findall(text):
        inside = (f"{base}.{name}" for name in re.findall(r"\w+", names))
        yield from (module for module in inside if source_file(module))
        if base != PACKAGE.name:
            yield base
    yield from (name for name in _IMPORT.findall(text) if name != PACKAGE.name)


def modules_behind(*modules: str) -> set[str]:
    """Return modules and all that they import of argmaxf, however deep."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            file = source_file(module)
            waiting += imports_in(file.read_text(encoding="utf-8")) if file else []
    return found
