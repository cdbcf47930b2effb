"""Files written whole or not at all: a reader sees the old content or the new, never a part."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from typing import IO

if sys.platform != "win32":
    import fcntl

LONGEST = 50  # characters of a file's name in that of its temporary file: names have a limit


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; move it there at the end, or remove it on failure.

    Two writers never share a temporary file: the last to end wins, and its file is whole. A link
    stays a link, and its target is written; a file that is replaced leaves its mode to the new one.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        folder = target.parent if path.is_symlink() else path.parent
        raise FileNotFoundError(f"{path}: there is no folder {folder}")
    with ExitStack() as stack:
        with writing(path):
            temporary = stack.enter_context(temporary_file(target.parent, target.name))
            if target.exists():
                temporary.chmod(_mode_to_keep(target, path))
        yield temporary
        with writing(path):
            temporary.replace(target)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say which file could not be written, by the name that the user gave."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:  # said already
            raise
        raise OSError(f"{path}: cannot be written: {error.strerror}") from error


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a text or some bytes to a file; the folders on the way are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def refuse_inputs(outputs: Iterable[Path | None], inputs: Iterable[Path]) -> None:
    """Refuse an output that is one of the inputs by any name of it, and two that are the same."""
    sources, seen = [path for path in inputs if path.exists()], set()
    for output in (path for path in outputs if path):
        if output.exists() and any(output.samefile(source) for source in sources):
            raise ValueError(f"{output}: the output must not be one of the inputs")
        if (name := os.path.realpath(output)) in seen:
            raise ValueError(f"{output}: each output needs a name of its own")
        seen.add(name)


def refuse_twice(inputs: Iterable[Path]) -> None:
    """Refuse a file that is given twice, by any name of it: its rows would count twice."""
    seen = set()
    for path in (each for each in inputs if each.exists()):
        found = path.stat()
        if (found.st_dev, found.st_ino) in seen:
            raise ValueError(f"{path}: each input must be given once, got it twice")
        seen.add((found.st_dev, found.st_ino))


@contextmanager
def temporary_file(folder: Path, name: str, mode: int = 0o666) -> Iterator[Path]:
    """Yield the path of a new, empty file that is gone at the end, with a name no other has.

    It is locked while this process runs; files of this kind that nobody has locked were left behind
    by a killed process, and are removed.
    """
    _remove_left_behind(folder, name)
    path, lock = _locked(folder, name, mode)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        os.close(lock)


def write_all(file: IO[bytes], data: bytes | memoryview) -> None:
    """Write some bytes to an unbuffered file, which may take them in parts."""
    rest = memoryview(data)
    while rest.nbytes:
        rest = rest[file.write(rest) :]


@contextmanager
def spilling() -> Iterator[None]:
    """Say which disk is full when a temporary file does not fit."""
    try:
        yield
    except OSError as error:
        raise OSError(
            f"{gettempdir()}: no room for a temporary file: {error.strerror}; "
            "TMPDIR names another folder"
        ) from error


def _locked(folder: Path, name: str, mode: int) -> tuple[Path, int]:
    """Make a file and lock it; begin again if another process took it for a stale one."""
    while True:
        path = folder / f".{name[:LONGEST]}.{secrets.token_hex(8)}.part"
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
        if sys.platform == "win32" or (_lock(file) and path.exists()):
            return path, file
        os.close(file)
        path.unlink(missing_ok=True)


def _lock(file: int) -> bool:
    """Lock a file unless another process has."""
    if sys.platform == "win32":  # no such locks: what a killed run leaves behind stays there
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_left_behind(folder: Path, name: str) -> None:
    """Remove the temporary files that nobody has locked."""
    pattern = re.compile(re.escape(f".{name[:LONGEST]}.") + r"[0-9a-f]{16}\.part")
    for path in [path for path in folder.iterdir() if pattern.fullmatch(path.name)]:
        with suppress(OSError):  # gone by now, or of another user
            file = os.open(path, os.O_RDONLY)
            try:
                if _lock(file):
                    path.unlink()
            finally:
                os.close(file)


def _mode_to_keep(target: Path, path: Path) -> int:
    """Return the mode of a file to be replaced, or say why it cannot be."""
    found = target.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path}: the output must be a file, not a folder or a device")
    if not os.access(target, os.W_OK):
        raise PermissionError(f"{path}: the file must not be read-only")
    return stat.S_IMODE(found.st_mode)
