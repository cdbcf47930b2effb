"""The paper's real data sets: found on this machine or downloaded, and checked byte for byte."""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import os
import re
import sys
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from argmaxf._base.validation import check_choice

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class MultilabelData:
    """A data set with its published split: attributes (dense or CSR), 0/1 labels, their names."""

    name: str
    X_train: Any
    Y_train: NDArray[np.int8]
    X_test: Any
    Y_test: NDArray[np.int8]
    features: tuple[str, ...]
    labels: tuple[str, ...]

    def usable(self, at_least: int) -> NDArray[np.intp]:
        """Return the columns of labels with so many positives (the paper's C) in both parts."""
        fewest = np.minimum(self.Y_train.sum(axis=0), self.Y_test.sum(axis=0))
        return np.flatnonzero(fewest >= at_least)


# ------------------------------------------------------------------ files

RETRIES = 2


class Download(NamedTuple):
    """A public folder and the SHA-256 of its files; None where it is checked after unpacking."""

    url: str
    sha256: Mapping[str, str | None]


_SOURCES = json.loads(Path(__file__).with_name("sources.json").read_text(encoding="utf-8"))
SOURCES = {name: Download(each["url"], each["sha256"]) for name, each in _SOURCES.items()}
REUTERS_MEMBERS: dict[str, str] = _SOURCES["reuters21578"]["members"]


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


# ------------------------------------------------------------------ Mulan

NAMES = ("yeast", "scene", "medical", "enron")
SWAPPED = {"medical"}  # the paper trained on the larger file, which is Mulan's test part


def load_mulan(name: str, *, data_dir: PathLike | None = None) -> MultilabelData:
    """Return yeast, scene, medical or enron, split as in the paper.

    X is dense for yeast and scene, sparse (CSR) for medical and enron. Medical's two files are
    swapped: the paper trained on 645 rows and tested on 333. Files are looked for in `data_dir`,
    then ARGMAXF_DATA, then the user's cache, and downloaded otherwise; every file is checked
    against its published SHA-256.

    Tsoumakas, Spyromitros-Xioufis, Vilcek and Vlahavas, "Mulan: a Java library for multi-label
    learning", JMLR 12 (2011).
    """
    check_choice("name", name, NAMES)
    parts = [f"{name}-train.arff", f"{name}-test.arff"]
    if name in SWAPPED:
        parts.reverse()
    train, test, labels = (locate(name, file, data_dir) for file in (*parts, f"{name}.xml"))
    return read_mulan(name, train, test, labels)


def read_mulan(name: str, train: Path, test: Path, labels: Path) -> MultilabelData:
    """Return a data set from its two ARFF files and the XML list of its labels."""
    names = _read_labels(labels)
    features, X_train, Y_train = _read_part(train, names)
    _, X_test, Y_test = _read_part(test, names)
    return MultilabelData(name, X_train, Y_train, X_test, Y_test, features, names)


def _read_labels(path: Path) -> tuple[str, ...]:
    root = ElementTree.fromstring(path.read_bytes())
    return tuple(element.attrib["name"] for element in root if element.tag.endswith("label"))


def _read_part(path: Path, labels: Sequence[str]) -> tuple[tuple[str, ...], Any, Any]:
    """Return attribute names, X and Y: the labels are the last attributes."""
    attributes, table = _read_arff(path)
    first = len(attributes) - len(labels)
    if sorted(attributes[first:]) != sorted(labels):
        raise ValueError(
            f"the last {len(labels)} attributes of {path} must be the labels {labels[0]!r} … "
            f"{labels[-1]!r}, got {attributes[first]!r} … {attributes[-1]!r}"
        )
    order = [first + attributes[first:].index(label) for label in labels]
    Y = table[:, order]
    Y = Y.toarray() if sparse.issparse(Y) else Y
    return tuple(attributes[:first]), table[:, :first], Y.astype(np.int8)


def _read_arff(path: Path) -> tuple[list[str], Any]:
    """Return the attributes' names and the table: CSR where the file is written sparsely."""
    import arff

    text = path.read_text(encoding="utf-8")
    rows = text.lower().index("@data") + len("@data")
    is_sparse = text[rows:].lstrip().startswith("{")
    kind = arff.LOD if is_sparse else arff.DENSE
    content = arff.loads(text, encode_nominal=True, return_type=kind)
    attributes = [str(name) for name, _ in content["attributes"]]
    if is_sparse:
        return attributes, _from_records(content["data"], len(attributes))
    return attributes, np.array(content["data"], dtype=np.float64)


def _from_records(records: Sequence[dict[int, float]], width: int) -> Any:
    """Return CSR from one {column: value} per row."""
    indptr = np.cumsum([0, *(len(record) for record in records)])
    indices = [column for record in records for column in record]
    values = np.array([v for record in records for v in record.values()], dtype=np.float64)
    table = sparse.csr_array((values, indices, indptr), shape=(len(records), width))
    table.sort_indices()
    return table


# ------------------------------------------------------------------ Reuters-21578

Text = Literal["title and body", "body"]

_DOCUMENT = re.compile(r"<REUTERS (.*?)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="(.*?)"')
_LARGEST = 4_000_000  # bytes in a member of the archive; the real ones stay below 1.6 million


_UNPACKED = 60_000_000  # bytes of the whole archive; the real one has 28 million
_BROKEN = (tarfile.TarError, zlib.error, EOFError, OSError, OverflowError, MemoryError)


class _Bounded:
    """A stream that ends in an error before it fills the memory."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self.stream, self.left = stream, _UNPACKED

    def read(self, size: int) -> bytes:
        """Return so many bytes, or raise if there were too many."""
        self.left -= size
        if self.left < 0:
            raise OSError(f"it holds more than {_UNPACKED:,} bytes")
        return self.stream.read(size)


def _opened(stream: _Bounded) -> tarfile.TarFile:
    return tarfile.open(fileobj=stream, mode="r|", bufsize=tarfile.RECORDSIZE)  # type: ignore[call-overload,no-any-return]


@dataclass(frozen=True)
class Document:
    """One story: its part in the ModApte split, its topics and its text."""

    part: Literal["TRAIN", "TEST"]
    topics: frozenset[str]
    title: str
    body: str


def load_reuters(
    *,
    text: Text = "title and body",
    token_pattern: str = r"[a-z]+",
    stop_words: Sequence[str] | None = None,
    data_dir: PathLike | None = None,
) -> MultilabelData:
    """Return Reuters-21578 as word counts and topics: 9603 documents to train on, 3299 to test.

    The ModApte split: LEWISSPLIT TRAIN or TEST with TOPICS="YES", documents without a topic kept.
    Text is lower-cased and cut into tokens by `token_pattern`; words are those of the training
    part. The labels are the topics of either part, in alphabetical order. Files are looked for as
    in `load_mulan`; the 22 SGML files are each checked against their published SHA-256.

    Lewis, "Reuters-21578, Distribution 1.0" (1997); free for research use.
    """
    check_choice("text", text, ("title and body", "body"))
    path = locate("reuters21578", "reuters21578.tar.gz", data_dir)
    try:
        pages = list(read_archive(path, REUTERS_MEMBERS))
    except ValueError:
        forget(path)  # a bad download must not stay
        raise
    documents = [doc for page in pages for doc in read_sgml(page)]
    return count_words(documents, text, token_pattern, stop_words)


def read_archive(path: Path, members: dict[str, str]) -> Iterator[str]:
    """Yield the named members of a tar archive as text, each checked; nothing is written to disk.

    Other members are passed over, links and outsized files are never read.
    """
    found: dict[str, str] = {}
    try:
        with gzip.open(path) as unpacked, _opened(_Bounded(unpacked)) as archive:
            for member in archive:
                name = Path(member.name).name
                if name in members and member.isreg() and member.size <= _LARGEST:
                    content = archive.extractfile(member).read()  # type: ignore[union-attr]
                    if sha256_of(content) != members[name]:
                        where = f"{name} in {path}"
                        raise corrupted(where, sha256_of(content), members[name])
                    found[name] = content.decode("latin-1")
    except _BROKEN as error:
        raise ValueError(f"{path} is corrupted: {error}") from None
    missing = sorted(set(members) - set(found))
    if missing:
        raise ValueError(f"{path} is corrupted: it holds no {', '.join(missing)}")
    yield from (found[name] for name in members)


def read_sgml(page: str) -> Iterator[Document]:
    """Yield the documents of the ModApte split in one SGML file."""
    for head, content in _DOCUMENT.findall(page):
        attributes = dict(_ATTRIBUTE.findall(head))
        part = attributes["LEWISSPLIT"]
        if part in ("TRAIN", "TEST") and attributes["TOPICS"] == "YES":
            topics = re.findall("<D>(.*?)</D>", _element(content, "TOPICS"))
            story = _element(content, "TEXT")
            body, title = _element(story, "BODY"), _element(story, "TITLE")
            if not (body or title):  # unprocessed: the text stands without any mark-up
                title = story
            yield Document(part, frozenset(topics), html.unescape(title), html.unescape(body))


def count_words(
    documents: Iterable[Document],
    text: Text,
    token_pattern: str,
    stop_words: Sequence[str] | None,
) -> MultilabelData:
    """Return word counts and topic indicators of both parts."""
    from sklearn.feature_extraction.text import CountVectorizer

    parts: dict[str, list[Document]] = {"TRAIN": [], "TEST": []}
    for document in documents:
        parts[document.part].append(document)
    topics = sorted({t for part in parts.values() for document in part for t in document.topics})
    vectorizer = CountVectorizer(
        token_pattern=token_pattern,
        stop_words=list(stop_words) if stop_words else None,
        dtype=np.float64,
    )
    words = {key: [_words(document, text) for document in part] for key, part in parts.items()}
    return MultilabelData(
        name="reuters",
        X_train=sparse.csr_array(vectorizer.fit_transform(words["TRAIN"])),
        Y_train=_indicator(parts["TRAIN"], topics),
        X_test=sparse.csr_array(vectorizer.transform(words["TEST"])),
        Y_test=_indicator(parts["TEST"], topics),
        features=tuple(vectorizer.get_feature_names_out()),
        labels=tuple(topics),
    )


def _words(document: Document, text: Text) -> str:
    return document.body if text == "body" else f"{document.title}\n{document.body}"


def _indicator(documents: Sequence[Document], topics: Sequence[str]) -> NDArray[np.int8]:
    return np.array([[t in document.topics for t in topics] for document in documents], np.int8)


def _element(content: str, tag: str) -> Any:
    """Return the inside of the first element of this kind, or an empty string."""
    found = re.search(f"<{tag}(?: [^>]*)?>(.*?)</{tag}>", content, re.DOTALL)
    return found.group(1) if found else ""
