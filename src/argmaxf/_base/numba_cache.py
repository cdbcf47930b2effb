"""Where numba keeps the compiled code of argmaxf: never stale, and in no folder of other users.

numba's own cache (`njit(cache=True)`) looks at the file of a function, but not at those of the
functions that it calls or the constants that it imports. So each module's kernels have a folder
whose name has a digest of the module's source and of all sources that it imports. What numba reads
from a cache is run as code, so a folder is used only if nobody else can write to it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

PACKAGE = Path(__file__).parents[1]
_FROM = re.compile(r"^\s*from (argmaxf\S*) import (\([^)]*\)|.*)", re.MULTILINE)
_IMPORT = re.compile(r"^\s*import (argmaxf\S*)", re.MULTILINE)
_BEGAN = time.time()  # of this process, or nearly
_state = {"use": True}  # whether the cache is used; not after a failure


def cached_njit(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return a function compiled by numba, with a cache where there is a safe folder for it."""
    import numba

    options = {"nogil": True, "error_model": "numpy", **options}
    folder = _folder_of(function.__module__)
    if folder is not None:
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
        try:
            dispatcher = numba.njit(cache=True, **options)(function)
            if Path(dispatcher.stats.cache_path).is_relative_to(folder):
                return dispatcher
        except RuntimeError:  # numba found no folder that it can write to
            pass
        finally:
            numba.config.CACHE_DIR = before
    return numba.njit(**options)(function)


def give_up() -> bool:
    """Remove the cache and do without it from now on; False if this process already does."""
    using, _state["use"] = _state["use"], False
    if using and (folder := cache_folder()) is not None:
        shutil.rmtree(folder, ignore_errors=True)
    return using


@contextmanager
def locked() -> Iterator[None]:
    """Let one process at a time compile: numba's index of a cache is not made for several."""
    folder = cache_folder() if _state["use"] else None
    with suppress(OSError) if folder is None else _lock_of(folder):
        yield


@contextmanager
def _lock_of(folder: Path) -> Iterator[None]:
    file = None
    with suppress(OSError):  # a full disk, a file system without locks
        file = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        if sys.platform != "win32":
            fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if file is not None:
            os.close(file)


def _folder_of(module: str) -> Path | None:
    """Return the folder for the kernels of a module as it is now, and remove older ones."""
    parent, digest = cache_folder(), sources_digest(module, "argmaxf._base.compiled")
    if not _state["use"] or parent is None or digest is None:
        return None
    folder = parent / f"{module}-{digest[:16]}"
    if not folder.exists():
        for other in parent.glob(f"{module}-*"):
            shutil.rmtree(other, ignore_errors=True)
    return folder if _is_usable(folder) else None


@cache
def cache_folder() -> Path | None:
    """Return the folder of the cache: as set, beside the sources, the user's, or a temporary one.

    None where none of them is safe to use; each process then compiles for itself.
    """
    here = hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:12]  # apart from other installations
    set_by_user, of_user = os.environ.get("NUMBA_CACHE_DIR"), _user_cache()
    places = [
        Path(set_by_user, "argmaxf", here) if set_by_user else None,
        PACKAGE / "__pycache__" / "kernels",
        of_user / "argmaxf" / here if of_user else None,
        Path(tempfile.gettempdir(), f"argmaxf-{_user()}", here),
    ]
    return next((p for place in places if place and _is_usable(p := place.resolve())), None)


def _user_cache() -> Path | None:
    """Return the folder for caches of this user, if there is one."""
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA")
    else:
        caches = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(caches)
    return Path(home) if home and os.path.isabs(home) else None


def _user() -> int:
    return 0 if sys.platform == "win32" else os.geteuid()


def _is_usable(folder: Path) -> bool:
    """Whether this user can write to a folder, and nobody else; it is made if need be."""
    try:
        if not is_private(folder):
            return False
        for place in (*reversed(folder.parents), folder):
            if not place.exists():
                place.mkdir(mode=0o700, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        owners = {path.lstat().st_uid for path in folder.rglob("*")}
        return is_private(folder) and owners <= _trusted()
    except OSError:
        return False


def is_private(folder: Path) -> bool:
    """Whether nobody but this user and the administrator can put files into a folder.

    Every folder on the way must belong to one of them and be closed to the writing of others; one
    above may be open to all if it is sticky, as /tmp is: nobody can take away what is not theirs.
    """
    if sys.platform == "win32":
        return True  # the folders in question are the user's own
    for place in (place for place in (folder, *folder.parents) if place.exists()):
        state = place.stat()
        shared = state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        sticky = place != folder and state.st_mode & stat.S_ISVTX
        if state.st_uid not in _trusted() or (shared and not sticky):
            return False
    return True


def _trusted() -> set[int]:
    return {0, _user()}


# ------------------------------------------------------------------ the sources of a module


@cache
def sources_digest(*modules: str) -> str | None:
    """Return a digest of modules and of all they import of argmaxf, however deep.

    None where a source is not a file beside this one (in an archive, for instance), or was edited
    after this process began: what runs may then be older than the file.
    """
    digest = hashlib.sha256()
    for name in sorted(modules_behind(*modules)):
        file = source_file(name)
        if file is None or file.stat().st_mtime > _BEGAN:
            return None
        digest.update(f"{name}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def source_file(module: str) -> Path | None:
    """Return the file of a module of argmaxf, or None where there is none of that name."""
    place = PACKAGE.joinpath(*module.split(".")[1:])
    return next((f for f in (place.with_suffix(".py"), place / "__init__.py") if f.is_file()), None)


def imports_in(text: str) -> set[str]:
    """Return the modules of argmaxf that a source imports, at its top or inside a function.

    The package itself is not among them: it names everything and defines nothing.
    """
    found = set(_IMPORT.findall(text))
    for base, names in _FROM.findall(text):
        inside = (f"{base}.{name}" for name in re.findall(r"\w+", names))
        found |= {base, *(name for name in inside if source_file(name))}
    return found - {PACKAGE.name}


@cache
def imports_of(module: str) -> set[str]:
    """Return the modules of argmaxf that a module imports."""
    file = source_file(module)
    return imports_in(file.read_text(encoding="utf-8")) if file else set()


def modules_behind(*modules: str) -> set[str]:
    """Return modules and all that they import of argmaxf, however deep."""
    found: set[str] = set()
    waiting = set(modules)
    while waiting:
        found |= waiting
        waiting = set().union(*map(imports_of, waiting)) - found
    return found
