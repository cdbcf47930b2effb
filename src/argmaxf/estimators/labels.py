"""What a target means: one 0/1 column per label, there and back.

Binary targets are one column, multilabel indicators one per label, and multiclass targets one per
class (one-vs-rest). Everything else in this package sees columns only.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import type_of_target


@contextmanager
def constants_said() -> Iterator[None]:
    """Keep quiet about constant labels: the caller has said it, or only a fold lacks them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="labels with|y has one class only")
        yield


@dataclass(frozen=True)
class Labels:
    """The labels of one training target.

    Attributes
    ----------
    kind : "binary", "multiclass" or "multilabel-indicator"
    classes : the values to predict, sorted; the column numbers of an indicator
    positive : the value that F counts, for binary targets only
    is_sparse : whether the indicator came as a sparse matrix, and predictions should too
    """

    kind: str
    classes: NDArray[Any]
    positive: Any = None
    is_sparse: bool = False

    @classmethod
    def of(cls, y: Any, pos_label: Any = None) -> Labels:
        """Read the kind of target and its classes from `y`."""
        kind = type_of_target(y, input_name="y")
        if kind == "multilabel-indicator":
            return cls(kind, np.arange(np.shape(y)[1]), is_sparse=sparse.issparse(y))
        if kind not in ("binary", "multiclass"):
            raise ValueError(
                "Unknown label type: y must be binary, multiclass or a multilabel indicator, "
                f"got a {kind} target"
            )
        classes = np.unique(column_or_1d(y, warn=True))
        positive = _positive_class(classes, pos_label) if kind == "binary" else None
        return cls(kind, classes, positive)

    @cached_property
    def n_columns(self) -> int:
        """How many 0/1 columns the target has."""
        return 1 if self.kind == "binary" else len(self.classes)

    @cached_property
    def names(self) -> NDArray[Any]:
        """Return the value each column stands for."""
        return np.asarray([self.positive]) if self.kind == "binary" else self.classes

    def target(self, y: Any) -> NDArray[Any]:
        """Return `y` as the array a scikit-learn classifier is trained on."""
        if self.kind == "multilabel-indicator":
            return np.asarray(y.toarray() if sparse.issparse(y) else y).astype(np.int64)
        return np.asarray(column_or_1d(y))

    def columns(self, y: Any) -> NDArray[np.bool_]:
        """Return `y` as booleans, one column per label: (n, n_columns)."""
        target = self.target(y)
        if self.kind == "multilabel-indicator":
            return np.asarray(target > 0)
        return np.asarray(target[:, None] == self.names)

    def decode(self, margin: NDArray[np.float64]) -> Any:
        """Return the predicted labels; an entry is selected where its margin is not negative.

        A multiclass row gets the class of largest margin, selected or not: one class per row.
        """
        if self.kind == "multiclass":
            return self.classes[np.argmax(margin, axis=1)]
        selected = margin >= 0
        if self.kind == "binary":
            return np.where(selected[:, 0], self.positive, self._negative())
        return sparse.csr_matrix(selected.astype(np.int64)) if self.is_sparse else selected * 1

    def orient(self, margin: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return margins as `decision_function` does: binary ones 1-D, towards `classes[1]`."""
        if self.kind != "binary":
            return margin
        return margin[:, 0] if self.positive == self.classes[-1] else -margin[:, 0]

    def margins(self, oriented: Any) -> NDArray[np.float64]:
        """Return what `decision_function` gave as (n, n_columns) margins: `orient` undone."""
        scores = np.asarray(oriented, dtype=np.float64)
        if self.kind != "binary":
            return scores
        return (scores if self.positive == self.classes[-1] else -scores)[:, None]

    def both(self, proba: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probabilities as `predict_proba` does: binary ones for each class there is."""
        if self.kind != "binary":
            return proba
        both = np.column_stack([1 - proba, proba])
        both = both if self.positive == self.classes[-1] else both[:, ::-1]
        return both[:, -len(self.classes) :]

    def warn_of_constants(self, columns: NDArray[np.bool_]) -> None:
        """Say which labels have no positives, or nothing else, in training."""
        if len(self.classes) == 1 and self.kind != "multilabel-indicator":
            only = str(self.classes[0])
            warnings.warn(f"y has one class only, {only}: it is always predicted", stacklevel=4)
            return
        for rule, found in [
            ("no positives in training: never predicted", ~columns.any(axis=0)),
            ("nothing but positives in training: always predicted", columns.all(axis=0)),
        ]:
            if found.any():
                names = ", ".join(map(str, self.names[found]))
                warnings.warn(f"labels with {rule}: {names}", stacklevel=4)

    def _negative(self) -> Any:
        others = self.classes[self.classes != self.positive]
        return others[0] if len(others) else self.positive


def _positive_class(classes: NDArray[Any], pos_label: Any) -> Any:
    """Return the class F counts: `pos_label`, or else the last in sorted order.

    A target of zeros, or of -1, has no positives: the class F counts is 1, as everywhere.
    """
    if pos_label is not None and pos_label not in classes and len(classes) == 2:
        raise ValueError(f"pos_label must be one of {classes.tolist()}, got {pos_label!r}")
    if pos_label is not None:
        return pos_label
    lacks_positives = len(classes) == 1 and classes.dtype.kind in "biuf" and classes[0] in (0, -1)
    return classes.dtype.type(1) if lacks_positives else classes[-1]
