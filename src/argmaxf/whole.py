"""Files written whole or not at all: a reader sees the old content or the new, never a part."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; move it there at the end, or remove it on failure.

    What a killed run left behind is removed by the next one.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent}")
    for stale in _left_behind(path):
        stale.unlink(missing_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a text or some bytes to a file; the folders on the way are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def _left_behind(path: Path) -> Iterator[Path]:
    """Yield the temporary files of runs that are no longer running."""
    pattern = re.compile(re.escape(f".{path.name}.") + r"(\d+)\.part")
    for other in path.parent.iterdir():
        match = pattern.fullmatch(other.name)
        if match and not _running(int(match[1])):
            yield other


def _running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
