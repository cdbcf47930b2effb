"""Where numba keeps the compiled code of argmaxf: never stale, and in no folder of other users.

numba's own cache (`njit(cache=True)`) looks at the file of a function, but not at those of the
functions that it calls or the constants that it imports. So the name of the folder has a digest of
all sources that compiled code can depend on. What numba reads from a cache is run as code, so a
folder is used only if nobody else can write to it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

PACKAGE = Path(__file__).parents[1]
# Kernels import from these packages and from modules with kernels only: these are digested.
SHARED = ("_base", "measures")
_BEGAN = time.time()  # of this process, or nearly
_state = {"use": True}  # whether the cache is used; not after a failure


def cached_njit(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return a function compiled by numba, with a cache where there is a safe folder for it."""
    import numba

    options = {"nogil": True, "error_model": "numpy", **options}
    folder = _current_folder()
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
    with ExitStack() as stack:
        if folder is not None and sys.platform != "win32":
            with suppress(OSError):  # a full disk, a file system without locks
                file = stack.enter_context((folder / "lock").open("ab"))
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _current_folder() -> Path | None:
    """Return the folder for kernels as they are now, and remove older ones."""
    parent, digest = cache_folder(), sources_digest()
    if not _state["use"] or parent is None or digest is None:
        return None
    folder = parent / digest[:16]
    if not folder.exists():
        for other in parent.glob("*/"):
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


@cache
def sources_digest() -> str | None:
    """Return a digest of the sources of all modules with kernels, and of what these may import.

    None where the sources are not files beside this one (in an archive, for instance), or one was
    edited after this process began: what runs may then be older than the file.
    """
    digest, files = hashlib.sha256(), 0
    for file in sorted(PACKAGE.rglob("*.py")):
        source = file.read_bytes()
        if file.parent.name in SHARED or b"argmaxf._base.compiled import" in source:
            if file.stat().st_mtime > _BEGAN:
                return None
            digest.update(source)
            files += 1
    return digest.hexdigest() if files else None
