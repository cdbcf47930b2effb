"""Where the machine code of kernels is kept: compiled once for an installation, never stale.

A file's name says all that its code depends on: the sources of the kernel and of whatever it
imports (`digests.py`), the types of its arguments, this processor, numba and Python. A kept file
that cannot be read, or a disk that cannot be written, costs a compilation and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, _rebuild_env, lookup_environment
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from argmaxf._base.atomic_write import write_whole
from argmaxf._base.digests import PACKAGE, sources_digest


def compile_kept(function: Callable[..., Any], **options: Any) -> Any:
    """Return a function that compiles itself for the types it is called with, and is kept."""
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy", **options)(function)
    dispatcher._cache = KeptCode(function)
    return dispatcher


def is_kept(dispatcher: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether a function is compiled for such arguments already, here or on disk."""
    types = tuple(map(dispatcher.typeof_pyval, arguments))
    return types in dispatcher.overloads or dispatcher._cache.holds(types, dispatcher.targetctx)


class KeptCode(_Cache):
    """The compiled versions of one kernel on disk: numba asks here before it compiles.

    Each version is one file, written whole, so processes that compile at the same time cannot
    disturb each other; numba's own cache has an index that they share, and raises where it finds
    no folder to write to.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.sources = sources_digest(function.__module__, "argmaxf._base.compiled")

    @property
    def cache_path(self) -> str | None:
        """The folder that new versions go to."""
        folder = writable_folder()
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the version compiled for these types, or None."""
        rtsys.initialize(target_context)  # all that kept code needs; to compile takes .3 s more
        name = self._file_name(sig, target_context.codegen())
        for folder in folders():
            try:
                parts = KeptParts(BytesIO(_checked((folder / name).read_bytes()))).load()
                return CompileResult._rebuild(target_context, *parts)
            except Exception:  # not there, cut short, not for this machine: compiled again
                continue
        say_once()
        return None

    def holds(self, sig: Any, target_context: Any) -> bool:
        """Whether the version for these types is on disk."""
        name = self._file_name(sig, target_context.codegen())
        return any((folder / name).exists() for folder in folders())

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a version, and remove those of older sources."""
        folder = writable_folder()
        refers_to_memory = data.lifted or data.library.has_dynamic_globals
        if folder is None or self.sources is None or refers_to_memory:
            return
        try:
            content = dumps(data._reduce())
            write_whole(folder / self._file_name(sig, data.codegen), _checksum(content) + content)
            for other in folder.glob(f"{self.name}-*"):
                if not other.name.startswith(self._prefix()):
                    other.unlink(missing_ok=True)
        except OSError:  # a full disk, a folder taken away: the compiled code runs all the same
            pass

    def enable(self) -> None:
        """Do nothing: there is always somewhere to look."""

    def disable(self) -> None:
        """Do nothing: what is kept is never wrong."""

    def flush(self) -> None:
        """Do nothing: a changed source changes the file's name."""

    def _prefix(self) -> str:
        return f"{self.name}-{str(self.sources)[:16]}-"

    def _file_name(self, sig: Any, codegen: Any) -> str:
        rest = (sig, codegen.magic_tuple(), numba.__version__, sys.version)
        return self._prefix() + hashlib.sha256(repr(rest).encode()).hexdigest()[:32] + ".nbc"


class KeptParts(pickle.Unpickler):
    """Reads kept code without the modules of numba whose functions are part of it.

    Machine code needs their constants alone; to load them, and SciPy with them, takes .2 s.
    """

    def find_class(self, module: str, name: str) -> Any:
        """Return what the name stands for."""
        found = super().find_class(module, name)
        return _environment if found is _rebuild_env else found


def _environment(module: str, constants: Any, name: str) -> Any:
    """Return the constants of a function by their name; its globals only if they are loaded."""
    if module in sys.modules or lookup_environment(name) is not None:
        return _rebuild_env(module, constants, name)
    environment = Environment({"__name__": module})
    environment.consts[:] = constants
    environment.env_name = name
    Environment._memo[name] = environment
    return environment


@cache
def say_once() -> None:
    """Say on a terminal what takes a moment."""
    if sys.stderr is not None and sys.stderr.isatty():
        print("argmaxf is being compiled, once for this installation …", file=sys.stderr)


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _checked(stored: bytes) -> bytes:
    """Return what follows the checksum; damaged machine code must not run."""
    checksum, content = stored[:32], stored[32:]
    if checksum != _checksum(content):
        raise ValueError("damaged")
    return content


@cache
def folders() -> tuple[Path, ...]:
    """Return where compiled code may lie: as set, beside the sources, in the user's cache.

    Where none of them can be written to, a temporary folder is one more.
    """
    here = hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:12]  # apart from other installations
    usual = [PACKAGE / "__pycache__" / "kernels", Path(AppDirs("argmaxf").user_cache_dir, here)]
    if numba.config.CACHE_DIR:
        usual.insert(0, Path(numba.config.CACHE_DIR, "argmaxf", here))
    temporary = None if any(map(_writable, usual)) else _private_folder()
    return tuple(usual) if temporary is None else (*usual, temporary / here)


@cache
def writable_folder() -> Path | None:
    """Return the folder that new compiled code goes to, if there is one."""
    return next(filter(_writable, folders()), None)


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _private_folder() -> Path | None:
    """Return a temporary folder that nobody else can write to: what lies in it is run as code."""
    if not hasattr(os, "getuid"):
        return Path(tempfile.gettempdir(), "argmaxf")  # Windows: the user's own already
    folder = Path(tempfile.gettempdir(), f"argmaxf-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()
    return folder if ours and state.st_mode & 0o077 == 0 else None
