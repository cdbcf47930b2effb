"""The four multilabel data sets of Table 4, from Mulan's ARFF files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from argmaxf._base.validation import check_choice
from argmaxf.paper.datasets.storage import PathLike, locate
from argmaxf.paper.datasets.tables import MultilabelData

NAMES = ("yeast", "scene", "medical", "enron")
SWAPPED = {"medical"}  # the paper trained on the larger file, which is Mulan's test part


def load_mulan(name: str, *, data_dir: PathLike | None = None) -> MultilabelData:
    """Return yeast, scene, medical or enron, split as in the paper.

    X is dense for yeast and scene, sparse (CSR) for medical and enron. Medical's two files are
    swapped: the paper trained on 645 rows and tested on 333. Files are looked for in `data_dir`,
    then ARGMAXF_DATA, then the user's cache, and downloaded otherwise; every file is checked
    against its published SHA-256.

    Parameters
    ----------
    name : {"yeast", "scene", "medical", "enron"}
        Which data set.
    data_dir : path-like, optional
        Folder with the data sets, looked in before ARGMAXF_DATA and the user's cache.

    Returns
    -------
    MultilabelData
        The data set with its split.

    References
    ----------
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
