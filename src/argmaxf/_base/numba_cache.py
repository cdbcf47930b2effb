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
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

PACKAGE = Path(__file__).parents[1]
# Kernels import from these packages and from modules with kernels only: these are digested.
SHARED = ("_base", "measures")
OTHERS = 0 if sys.platform == "win32" else stat.S_IWGRP | stat.S_IWOTH  # who must not write
REACHABLE = stat.S_IXGRP | stat.S_IXOTH  # a folder whose files others can open
_BEGAN = time.time()  # of this process, or nearly
_folder: list[Path | None] = []  # once it is known


def cached_njit(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return a function compiled by numba, with a cache where there is a safe folder for it."""
    import numba

    folder = cache_folder()
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder or "")
    try:
        options = {"nogil": True, "error_model": "numpy", "cache": bool(folder), **options}
        return numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = before


def give_up() -> bool:
    """Remove the cache and do without it from now on; False if this process already does."""
    folder, _folder[:] = cache_folder(), [None]
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    return folder is not None


@contextmanager
def locked() -> Iterator[None]:
    """Let one process at a time compile: numba's index of a cache is not made for several."""
    folder = cache_folder()
    with ExitStack() as stack:
        if folder is not None and sys.platform != "win32":
            with suppress(OSError):  # a full disk, a file system without locks
                file = stack.enter_context((folder.parent / "lock").open("ab"))
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def cache_folder() -> Path | None:
    """Return the folder for kernels as they are now: the first that is safe to use.

    None where there is none; each process then compiles for itself.
    """
    if not _folder:
        here = hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:12]  # not another installation
        set_by_user = os.environ.get("NUMBA_CACHE_DIR")
        of_user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        places = [
            *([Path(set_by_user, "argmaxf", here)] if set_by_user else []),
            PACKAGE / "__pycache__" / "kernels",
            *([Path(of_user, "argmaxf", here)] if os.path.isabs(of_user) else []),
            Path(tempfile.gettempdir(), f"argmaxf-{_user()}", here),
        ]
        digest = sources_digest()
        folders = (place.resolve() / digest[:16] for place in places if digest)
        _folder.append(next((folder for folder in folders if _is_usable(folder)), None))
    return _folder[0]


def _is_usable(folder: Path) -> bool:
    """Whether this user can write to a folder and nobody else can; it is made if need be.

    Every folder on the way, and each file in it that others can reach, must belong to this user or
    the administrator and be closed to the writing of others; a folder above may be open to all if
    it is sticky, as /tmp is: nobody can take away what is not theirs. Folders beside it are of
    older sources, and removed.
    """
    try:
        for place in (*reversed(folder.parents), folder):
            if place == folder and not folder.exists():
                for other in folder.parent.glob("*/"):
                    shutil.rmtree(other, ignore_errors=True)
            if not place.exists():
                place.mkdir(mode=0o700, exist_ok=True)
            state = place.stat()
            sticky = place not in (folder, folder.parent) and state.st_mode & stat.S_ISVTX
            if not _is_ours(state, 0 if sticky else OTHERS):
                return False
        tempfile.TemporaryFile(dir=folder).close()
        closed_to = OTHERS if folder.stat().st_mode & REACHABLE else 0
        return all(
            _is_ours(path.lstat(), closed_to) and not path.is_symlink()  # to what others may write
            for path in folder.rglob("*")
        )
    except OSError:
        return False


def _is_ours(state: os.stat_result, closed_to: int) -> bool:
    return state.st_uid in (0, _user()) and not state.st_mode & closed_to


def _user() -> int:
    return 0 if sys.platform == "win32" else os.geteuid()


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
