"""Reuters-21578 with the ModApte split: the text data of Table 3."""

from __future__ import annotations

import gzip
import html
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from argmaxf._base.validation import check_choice
from argmaxf.paper.datasets.sources import REUTERS_MEMBERS
from argmaxf.paper.datasets.storage import PathLike, corrupted, forget, locate, sha256_of
from argmaxf.paper.datasets.tables import MultilabelData

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

    Parameters
    ----------
    text : {"title and body", "body"}, default="title and body"
        Which part of a document is read.
    token_pattern : str, default="[a-z]+"
        Regular expression of a word.
    stop_words : sequence of str, optional
        Words that are left out.
    data_dir : path-like, optional
        Folder with the data sets, looked in before ARGMAXF_DATA and the user's cache.

    Returns
    -------
    MultilabelData
        The data set with its split.

    References
    ----------
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
