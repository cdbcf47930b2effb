"""Loaders: parsers on small files, storage against a local server, the real data where present."""

import functools
import http.server
import io
import logging
import os
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from reproduction.datasets import (
    REUTERS_MEMBERS,
    SOURCES,
    DataNotFoundError,
    Download,
    count_words,
    load_mulan,
    load_reuters,
    locate,
    read_archive,
    read_mulan,
    read_sgml,
    sha256_of,
)

DENSE = """% a comment
@relation toy

@attribute width numeric
@ATTRIBUTE 'odd name' numeric
@attribute red {0,1}
@attribute blue {0,1}

@data
1.5,-2,1,0
0,3e2,0,1
"""
SPARSE = """@relation toy
@attribute a {0,1}
@attribute / numeric
@attribute red {0,1}
@attribute blue {0,1}
@data
{0 1,3 1}
{1 2.5}
{}
"""
LABELS = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="blue"></label><label name="red"></label>
</labels>
"""
SGML = """<!DOCTYPE lewis SYSTEM "lewis.dtd">
<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="1" NEWID="1">
<TOPICS><D>grain</D><D>corn</D><D>corn</D></TOPICS><PLACES><D>usa</D></PLACES>
<TEXT>&#2;
<TITLE>Corn &amp; wheat</TITLE><DATELINE> PARIS - </DATELINE><BODY>Corn rose
corn fell at &lt;ACME>
</BODY></TEXT></REUTERS>
<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="2" NEWID="2">
<TOPICS></TOPICS><TEXT TYPE="BRIEF"><TITLE>Bank news</TITLE></TEXT></REUTERS>
<REUTERS TOPICS="NO" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="3" NEWID="3">
<TOPICS><D>gold</D></TOPICS><TEXT><BODY>passed over</BODY></TEXT></REUTERS>
<REUTERS TOPICS="YES" LEWISSPLIT="NOT-USED" CGISPLIT="TRAINING-SET" OLDID="4" NEWID="4">
<TOPICS></TOPICS><TEXT><BODY>passed over</BODY></TEXT></REUTERS>
<REUTERS TOPICS="YES" LEWISSPLIT="TEST" CGISPLIT="TEST-SET" OLDID="5" NEWID="5">
<TOPICS><D>ship</D></TOPICS><TEXT TYPE="UNPROC">corn ship unheard</TEXT></REUTERS>
"""


@pytest.fixture
def toy(tmp_path):
    for name, content in [("d.arff", DENSE), ("s.arff", SPARSE), ("l.xml", LABELS)]:
        (tmp_path / name).write_text(content)
    return tmp_path


def test_dense_arff(toy):
    data = read_mulan("toy", toy / "d.arff", toy / "d.arff", toy / "l.xml")
    np.testing.assert_array_equal(data.X_train, [[1.5, -2.0], [0.0, 300.0]])
    np.testing.assert_array_equal(data.Y_test, [[0, 1], [1, 0]])
    assert data.labels == ("blue", "red")
    assert data.features == ("width", "odd name")


def test_sparse_arff(toy):
    data = read_mulan("toy", toy / "s.arff", toy / "s.arff", toy / "l.xml")
    assert sparse.issparse(data.X_train)
    assert data.X_train.nnz == 2
    np.testing.assert_array_equal(data.X_train.toarray(), [[1, 0], [0, 2.5], [0, 0]])
    np.testing.assert_array_equal(data.Y_train, [[1, 0], [0, 0], [0, 0]])
    assert data.usable(1).tolist() == [0]


def test_labels_that_are_not_the_last_attributes(toy):
    (toy / "l.xml").write_text(LABELS.replace("red", "green"))
    with pytest.raises(ValueError, match=r"the last 2 attributes of .*d.arff must be the labels"):
        read_mulan("toy", toy / "d.arff", toy / "d.arff", toy / "l.xml")


def test_sgml_keeps_the_split():
    documents = list(read_sgml(SGML))
    assert [d.part for d in documents] == ["TRAIN", "TRAIN", "TEST"]
    assert documents[0].topics == {"grain", "corn"}
    assert documents[0].title == "Corn & wheat"
    assert "<ACME>" in documents[0].body
    assert documents[1].body == ""
    assert documents[2].title == "corn ship unheard"


def test_words_are_counted_and_come_from_training():
    data = count_words(read_sgml(SGML), "title and body", r"[a-z]+", ["at"])
    assert data.labels == ("corn", "grain", "ship")
    assert data.features == ("acme", "bank", "corn", "fell", "news", "rose", "wheat")
    np.testing.assert_array_equal(data.X_train.toarray()[0], [1, 0, 3, 1, 0, 1, 1])
    np.testing.assert_array_equal(data.X_test.toarray(), [[0, 0, 1, 0, 0, 0, 0]])
    np.testing.assert_array_equal(data.Y_train, [[1, 1, 0], [0, 0, 0]])
    body = count_words(read_sgml(SGML), "body", r"[a-z]+", None)
    assert body.X_train.toarray()[1].sum() == 0


def pack(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def test_archive_is_read_not_unpacked(tmp_path):
    path, good = tmp_path / "a.tar.gz", b"caf\xe9"
    pack(path, [("../../evil.sgm", b"x"), ("a/one.sgm", good), ("README", b"y")])
    assert list(read_archive(path, {"one.sgm": sha256_of(good)})) == ["café"]
    assert [p.name for p in tmp_path.iterdir()] == ["a.tar.gz"]


def test_links_and_outsized_members_are_not_read(tmp_path):
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("one.sgm")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
        big = tarfile.TarInfo("two.sgm")
        big.size = 5_000_000
        archive.addfile(big, io.BytesIO(bytes(big.size)))
    with pytest.raises(ValueError, match=r"a.tar.gz is corrupted: it holds no one.sgm, two.sgm"):
        list(read_archive(path, {"one.sgm": "0", "two.sgm": "0"}))


def test_altered_or_cut_archive_is_refused_by_name(tmp_path):
    path = tmp_path / "a.tar.gz"
    pack(path, [("one.sgm", b"altered")])
    with pytest.raises(ValueError, match=r"one.sgm in .*a.tar.gz is corrupted: its SHA-256 is"):
        list(read_archive(path, {"one.sgm": "0" * 64}))
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match=r"a.tar.gz is corrupted"):
        list(read_archive(path, {"one.sgm": "0" * 64}))


def test_a_damaged_archive_is_refused_in_one_sentence(tmp_path):
    rng = np.random.default_rng(0)
    path, content = tmp_path / "a.tar.gz", rng.integers(0, 64, 20_000).astype(np.uint8).tobytes()
    pack(path, [("one.sgm", content), ("README", b"y" * 2_000)])
    good, member = path.read_bytes(), {"one.sgm": sha256_of(content)}
    for _ in range(300):
        bad = bytearray(good[: len(good) - rng.integers(0, 3) * rng.integers(len(good) // 2)])
        for _ in range(rng.integers(0, 4)):
            bad[rng.integers(len(bad))] = rng.integers(256)
        path.write_bytes(bad)
        try:
            found = list(read_archive(path, member))
        except ValueError as error:
            found = str(error)
        assert found == [content.decode("latin-1")] or (
            "is corrupted" in found and "\n" not in found
        )


def test_what_is_no_gzip_is_refused(tmp_path):
    path = tmp_path / "a.tar.gz"
    for content in (
        b"",
        b"<html>Not here</html>",
        b"\xfd7zXZ\x00" + bytes(100),
        b"BZh9" + bytes(50),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"a.tar.gz is corrupted"):
            list(read_archive(path, {"one.sgm": "0"}))


def test_a_header_that_would_fill_the_memory(tmp_path):
    """A small file whose pax header unpacks to a gigabyte."""
    import gzip
    import tracemalloc

    path = tmp_path / "a.tar.gz"
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 1_000_000_000
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(info.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(100):
            file.write(bytes(10_000_000))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"is corrupted: it holds more than 60,000,000 bytes"):
        list(read_archive(path, {"one.sgm": "0"}))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000_000


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """No data on this machine, an empty cache, and one small data set published nowhere yet."""
    monkeypatch.delenv("ARGMAXF_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("reproduction.datasets.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("reproduction.datasets.RETRIES", 0)

    def publish(url, content=b"hello"):
        source = Download(url, {"toy.txt": sha256_of(content)})
        monkeypatch.setitem(SOURCES, "toy", source)

    publish("http://127.0.0.1:9/")
    return publish


def test_offline_says_which_files_go_where(alone, tmp_path):
    with pytest.raises(DataNotFoundError) as caught:
        locate("toy", "toy.txt")
    sentence = str(caught.value)
    assert "put toy.txt from http://127.0.0.1:9/ into" in sentence
    assert str(tmp_path / "cache" / "toy") in sentence
    assert "--data-dir or ARGMAXF_DATA" in sentence
    assert "\n" not in sentence


def test_folders_are_searched_in_order(alone, tmp_path, monkeypatch):
    for place in ("cache", "env", "given"):
        (tmp_path / place / "toy").mkdir(parents=True)
        (tmp_path / place / "toy" / "toy.txt").write_text("hello")
        if place == "env":
            monkeypatch.setenv("ARGMAXF_DATA", str(tmp_path / "env"))
        given = tmp_path / "given" if place == "given" else None
        assert locate("toy", "toy.txt", given) == tmp_path / place / "toy" / "toy.txt"


def test_corrupted_file_is_refused_by_name(alone, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "toy.txt").write_text("hellO")
    with pytest.raises(ValueError, match=r"toy/toy.txt is corrupted: its SHA-256 is"):
        locate("toy", "toy.txt", tmp_path)


def test_missing_data_dir_is_an_error(alone, tmp_path):
    with pytest.raises(DataNotFoundError, match="data_dir must be an existing folder, got"):
        locate("toy", "toy.txt", tmp_path / "nowhere")


@pytest.fixture
def server(tmp_path):
    """A web server on this machine, whose first answer is an error."""
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "toy.txt").write_text("hello")

    class Handler(http.server.SimpleHTTPRequestHandler):
        failures = 1

        def do_GET(self):
            if Handler.failures:
                Handler.failures -= 1
                self.send_error(503)
            else:
                super().do_GET()

        def log_message(self, *args):
            pass

    handler = functools.partial(Handler, directory=str(tmp_path / "public"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
        thread.join()


def test_download_retries_and_caches(alone, server, tmp_path, monkeypatch):
    monkeypatch.setattr("reproduction.datasets.RETRIES", 1)
    alone(server)
    path = locate("toy", "toy.txt")
    assert path == tmp_path / "cache" / "toy" / "toy.txt"
    assert path.read_text() == "hello"
    alone("http://127.0.0.1:9/")  # from now on offline
    assert locate("toy", "toy.txt") == path


def test_download_with_other_content_is_refused(alone, server, tmp_path, monkeypatch):
    monkeypatch.setattr("reproduction.datasets.RETRIES", 1)
    alone(server, content=b"something else")
    logging.getLogger("pooch").setLevel("CRITICAL")
    with pytest.raises(ValueError, match=r"toy.txt"):
        locate("toy", "toy.txt")
    assert not (tmp_path / "cache" / "toy" / "toy.txt").exists()


def test_a_bad_download_does_not_stay(alone, server, tmp_path, monkeypatch):
    """A server that answers 200 with a page that says sorry, for a file without a checksum."""
    monkeypatch.setattr("reproduction.datasets.RETRIES", 1)
    name = "reuters21578.tar.gz"
    (tmp_path / "public" / name).write_text("<html>Sorry</html>")
    monkeypatch.setitem(SOURCES, "reuters21578", Download(server, {name: None}))
    with pytest.raises(ValueError, match=r"reuters21578.tar.gz is corrupted"):
        load_reuters()
    assert not (tmp_path / "cache" / "reuters21578" / name).exists()


def test_a_bad_file_in_the_cache_is_downloaded_again(alone, server, tmp_path, monkeypatch):
    monkeypatch.setattr("reproduction.datasets.RETRIES", 1)
    alone(server)
    (tmp_path / "cache" / "toy").mkdir(parents=True)
    (tmp_path / "cache" / "toy" / "toy.txt").write_text("half")
    assert locate("toy", "toy.txt").read_text() == "hello"


def test_unknown_name():
    with pytest.raises(ValueError, match="name must be one of 'yeast', 'scene'"):
        load_mulan("iris")


FOLDER = Path(os.environ.get("ARGMAXF_DATA", "data"))
real = pytest.mark.skipif(not (FOLDER / "yeast").is_dir(), reason="ARGMAXF_DATA has no data sets")


# Rows, attributes and the number of labels with C positives in both parts: as the paper prints.
@real
@pytest.mark.parametrize(
    ("name", "train", "test", "attributes", "labels", "usable"),
    [
        ("yeast", 1500, 917, 103, 14, {1: 14, 50: 13, 300: 5}),
        ("medical", 645, 333, 1449, 45, {1: 32, 10: 12, 50: 2}),
        ("scene", 1211, 1196, 294, 6, {1: 6, 100: 6}),
        ("enron", 1123, 579, 1001, 53, {1: 52, 10: 26, 50: 9}),
    ],
)
def test_mulan_as_the_paper_counts_it(name, train, test, attributes, labels, usable):
    data = load_mulan(name, data_dir=FOLDER)
    assert data.X_train.shape == (train, attributes)
    assert data.X_test.shape == (test, attributes)
    assert data.Y_train.shape == (train, labels)
    assert data.Y_test.shape == (test, labels)
    assert {c: len(data.usable(c)) for c in usable} == usable
    assert set(np.unique(data.Y_train)) == {0, 1}


@real
def test_reuters_as_the_paper_counts_it():
    data = load_reuters(data_dir=FOLDER, text="body")
    assert data.X_train.shape[0] == data.Y_train.shape[0] == 9603
    assert data.X_test.shape[0] == data.Y_test.shape[0] == 3299
    assert {c: len(data.usable(c)) for c in (1, 10, 50, 100)} == {1: 90, 10: 50, 50: 10, 100: 7}
    assert (data.Y_train.sum(axis=1) == 0).sum() == 1828
    assert (data.Y_test.sum(axis=1) == 0).sum() == 280
    assert (data.X_train.sum(axis=1) == 0).sum() == 841
    assert (data.X_test.sum(axis=1) == 0).sum() == 290


def test_published_checksums_of_the_sgml():
    assert len(REUTERS_MEMBERS) == 22
    assert REUTERS_MEMBERS["reut2-000.sgm"].startswith("9ff9bb40624ef992")
    assert REUTERS_MEMBERS["reut2-021.sgm"].startswith("3f5196d32869723c")
