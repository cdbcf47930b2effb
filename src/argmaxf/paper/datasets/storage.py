"""Where data files are looked for, how they come here, and how they are checked."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from argmaxf.paper.datasets.sources import SOURCES, Download

PathLike = str | os.PathLike[str]
RETRIES = 2


class DataNotFoundError(FileNotFoundError):
    """The files of a data set are not on this machine and could not be downloaded."""


def locate(dataset: str, file: str, data_dir: PathLike | None = None) -> Path:
    """Return the path of one file of a data set, its content checked.

    Looked for in `data_dir`, then in the folder named by ARGMAXF_DATA, then in the user's cache;
    downloaded into the cache otherwise. A file whose SHA-256 is wrong is refused by name.
    """
    for folder in _folders(data_dir):
        path = folder / dataset / file
        if path.is_file():
            try:
                return _checked(path, SOURCES[dataset].sha256[file])
            except ValueError:
                if not forget(path):
                    raise
    return _download(dataset, file)


def forget(path: Path) -> bool:
    """Remove a bad file if it is in the cache, so that it is downloaded again; say if it was."""
    if cache_folder() not in path.parents:
        return False
    path.unlink(missing_ok=True)
    return True


def cache_folder() -> Path:
    """Return the user's cache folder for argmaxf."""
    import pooch

    return Path(pooch.os_cache("argmaxf"))


def sha256_of(content: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def corrupted(name: str | Path, found: str, expected: str) -> ValueError:
    """Describe a file whose content is not the published one."""
    return ValueError(
        f"{name} is corrupted: its SHA-256 is {found}, the published file's is {expected}; "
        "remove it or put the published file in its place"
    )


def _folders(data_dir: PathLike | None) -> Iterator[Path]:
    if data_dir is not None:
        if not Path(data_dir).is_dir():
            raise DataNotFoundError(f"data_dir must be an existing folder, got {str(data_dir)!r}")
        yield Path(data_dir)
    if os.environ.get("ARGMAXF_DATA"):
        yield Path(os.environ["ARGMAXF_DATA"])
    yield cache_folder()


def _checked(path: Path, expected: str | None) -> Path:
    if expected is not None:
        found = sha256_of(path.read_bytes())
        if found != expected:
            raise corrupted(path, found, expected)
    return path


def _download(dataset: str, file: str) -> Path:
    """Fetch one file into the cache: whole and checked, or not there at all."""
    import pooch

    source, folder = SOURCES[dataset], cache_folder() / dataset
    sha256 = source.sha256[file]
    fetcher = pooch.create(
        path=folder,
        base_url=source.url,
        registry={file: sha256 and f"sha256:{sha256}"},
        retry_if_failed=RETRIES,
    )
    quiet = pooch.get_logger().level
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(fetcher.fetch(file, progressbar=sys.stderr.isatty()))
    except OSError as error:  # everything the network can do, and a disk that refuses
        raise _not_found(dataset, source, folder, error) from None
    finally:
        pooch.get_logger().setLevel(quiet)


def _not_found(dataset: str, source: Download, folder: Path, error: OSError) -> DataNotFoundError:
    files = ", ".join(source.sha256)
    return DataNotFoundError(
        f"{dataset} is not on this machine and could not be downloaded "
        f"({type(error).__name__}): put {files} from {source.url} into {folder}, or into "
        f"{dataset}/ under the folder named by --data-dir or ARGMAXF_DATA"
    )
