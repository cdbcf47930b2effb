"""Decisions that share rows and sparse matrices, beside xCOLUMNs where it is installed.

Values are expected macro-F1 under the model, gaps are proven.
"""

from __future__ import annotations

import importlib.util
import resource
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from argmaxf import maximize_expected_f, maximize_expected_macro_f
from benchmarks.harness import Row, best, best_pair

ON_REQUEST = True
STARTS = ("random", "top", "greedy")  # of xCOLUMNs' ascent; the first is its default


def guide() -> np.ndarray:
    """The example of xCOLUMNs' guide: 30,000 rows, 20 labels, a logistic model for each."""
    from sklearn.datasets import make_multilabel_classification
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.multioutput import MultiOutputClassifier

    X, y = make_multilabel_classification(
        n_samples=100_000, n_features=100, n_classes=20, n_labels=3, length=50,
        allow_unlabeled=True, sparse=False, return_indicator="dense", random_state=0,
    )  # fmt: skip
    X_train, X_test, y_train, _ = train_test_split(X, y, test_size=0.3, random_state=0)
    model = MultiOutputClassifier(LogisticRegression()).fit(X_train, y_train)
    return np.column_stack([p[:, 1] for p in model.predict_proba(X_test)])


def long_tail(n: int, size: int, cells: int, seed: int = 0) -> sparse.csr_matrix:
    """`cells` labels in each row, label j in proportion to 1 / (j + 10), p from Beta(.3, 2)."""
    rng = np.random.default_rng(seed)
    weight = np.log(1.0 / (np.arange(size) + 10.0))
    columns = np.empty((n, cells), np.int32)
    for start in range(0, n, 1000):  # the largest of weight + Gumbel noise: drawn without repeats
        keys = weight + rng.gumbel(size=(min(1000, n - start), size))
        columns[start : start + 1000] = np.argpartition(-keys, cells, axis=1)[:, :cells]
    p = rng.beta(0.3, 2.0, (n, cells)).clip(1e-6)
    found = sparse.csr_matrix(
        (p.ravel(), columns.ravel(), np.arange(n + 1) * cells), shape=(n, size)
    )
    found.sort_indices()
    return found


def scattered(n: int, size: int, cells: int) -> sparse.csr_array:
    """A sparse matrix whose cells lie anywhere."""
    rng = np.random.default_rng(1)
    columns = rng.integers(0, size, n * cells, dtype=np.int32)
    p = rng.beta(0.5, 5.0, n * cells).clip(1e-9)
    found = sparse.csr_array((p, columns, np.arange(n + 1) * cells), shape=(n, size))
    found.sum_duplicates()
    found.data.clip(max=1.0, out=found.data)
    return found


def rows() -> Iterator[Row]:
    p = guide()
    yield from against_xcolumns("30,000 × 20, b = 3, gap 1e-6", p, 3, 1e-6, (1.0, 0.2), STARTS)
    tail, few = long_tail(100_000, 5_000, 20), long_tail(10_000, 5_000, 20)
    work = "long tail 100,000 × 5,000, b = 5"
    yield from against_xcolumns(work, tail, 5, 5e-4, (2.0, 1.0), STARTS[:1])
    times = best_pair(lambda: shared(tail, 5, 5e-4), lambda: shared(few, 5, 5e-4), 2)
    yield Row("100,000 rows, b = 5", times[0], "10,000 rows", times[1], 12.0, 10.0)
    yield from uncoupled(scattered(1_000_000, 100_000, 20))


def uncoupled(p: sparse.csr_array) -> Iterator[Row]:
    """Each column decided alone: time beside `tocsc`, and memory."""
    work = "1,000,000 × 100,000, 20 a row, macro"
    ours, theirs = best_pair(lambda: maximize_expected_f(p, average="macro"), p.tocsc, 4)
    yield Row(work, ours, "P.tocsc()", theirs, 3.0, 1.5)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    yield Row("peak memory of this whole process", peak, "4 GB", 4e9, 1.0, unit="B")


def shared(p: Any, b: int, tol: float) -> Any:
    return maximize_expected_macro_f(p, labels_per_row=b, tol=tol)


def against_xcolumns(
    work: str, p: Any, b: int, tol: float, limits: tuple[float, float], starts: tuple[str, ...]
) -> Iterator[Row]:
    """Our time and proof beside xCOLUMNs' block coordinate ascent, at its default first."""
    found = shared(p, b, tol)
    ours = best(lambda: shared(p, b, tol), 2)
    work = f"{work}: {found.expected:.5f}, gap {found.gap:.1e}"
    for start in starts if importlib.util.find_spec("xcolumns") else ():
        block_ascent(p[:100], b, start)  # compiled
        before = time.perf_counter()
        selected = block_ascent(p, b, start)
        theirs = time.perf_counter() - before
        beside = f"xCOLUMNs block ascent, {start} start: {value_of(p, selected):.5f}"
        yield Row(work, ours, beside, theirs, *(limits if start == STARTS[0] else ()))


def block_ascent(p: Any, b: int, start: str) -> Any:
    from xcolumns.block_coordinate import predict_optimizing_macro_f1_score_using_bc

    return predict_optimizing_macro_f1_score_using_bc(p, k=b, init_y_pred=start, seed=0)


def value_of(p: Any, selected: Any) -> float:
    """Expected macro-F1 of given labels."""
    from argmaxf import expected_f

    p, chosen = (sparse.csc_array(each) for each in (p, selected))
    chosen = chosen.astype(bool)
    values = []
    for c in range(p.shape[1]):
        column, marks = p[:, [c]].toarray().ravel(), chosen[:, [c]].toarray().ravel()
        values.append(expected_f(column[column > 0], marks[column > 0]).mean if column.any() else 0)
    return float(np.mean(values))
