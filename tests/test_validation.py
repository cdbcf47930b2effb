"""What each type of input means, as one table, in both wings."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from argmaxf import (
    ProbabilitySketch,
    expected_f,
    f_interval,
    maximize_empirical_f,
    maximize_expected_f,
)
from argmaxf._base import compiled
from argmaxf._base.validation import as_real_array

P = [0.75, 0.25, 0.5]  # exact in every type below

MEANS_P = {
    "list": P,
    "tuple": tuple(P),
    "float16": np.array(P, np.float16),
    "float32": np.array(P, np.float32),
    "longdouble": np.array(P, np.longdouble),
    "big-endian": np.array(P, ">f8"),
    "Decimal": [Decimal("0.75"), Decimal("0.25"), Decimal("0.5")],
    "Fraction": [Fraction(3, 4), Fraction(1, 4), Fraction(1, 2)],
    "mixed": [Decimal("0.75"), 0.25, Fraction(1, 2)],
    "objects": np.array(P, object),
    "NumPy scalars": [np.float32(0.75), np.float64(0.25), np.float16(0.5)],
    "nothing masked": np.ma.masked_array(P, mask=[False] * 3),
    "pandas": pd.Series(P, index=[7, 8, 9]),
    "pandas nullable": pd.Series(P, dtype="Float64"),
    "pandas Arrow": pd.Series(P, dtype="float64[pyarrow]"),
    "polars": pl.Series(P),
    "polars decimal": pl.Series([Decimal("0.75"), Decimal("0.25"), Decimal("0.5")]),
    "arrow": pa.array(P),
    "arrow chunks": pa.chunked_array([P[:1], P[1:]]),
    "arrow float16": pa.array(np.array(P, np.float16)),
    "arrow decimal": pa.array([Decimal("0.75"), Decimal("0.25"), Decimal("0.50")]),
    "read-only": np.frombuffer(np.array(P).tobytes()),
    "strided": np.repeat(P, 2)[::2],
    "memory view": memoryview(np.array(P)),
}
MEANS_LABELS = {
    "integers": [1, 0, 1],
    "uint8": np.array([1, 0, 1], np.uint8),
    "booleans": [True, False, True],
    "mixed": [True, 0, 1.0],
    "pandas boolean": pd.Series([True, False, True], dtype="boolean"),
    "negative zero": [1.0, -0.0, 1.0],
}
REFUSED = {
    "masked": (
        np.ma.masked_array(P, mask=[0, 1, 0]),
        "not be masked, got a masked entry at 1",
    ),
    "masked cell": (np.ma.masked_array([P], mask=[[0, 0, 1]]), r"masked entry at \(0, 2\)"),
    "None": ([0.5, None], "real numbers, got None at position 1"),
    "NA among objects": (np.array([0.5, pd.NA], object), "got <NA> at position 1"),
    "pandas NA": (pd.Series([0.5, None], dtype="Float64"), "got nan at position 1"),
    "polars null": (pl.Series([0.5, None]), "got nan at position 1"),
    "arrow null": (pa.chunked_array([[0.5], [None]]), "got nan at position 1"),
    "logits": (
        [0.5, -2.0, 3.0],
        r"got -2.0 at position 1; apply a sigmoid to logits first",
    ),
    "percentages": (
        [0.5, 20, 99.5],
        r"got 20.0 at position 1; divide percentages by 100 first",
    ),
    "one column": (
        [[0.5], [0.2]],
        r"for a single column give p\[:, 0\]",
    ),
    "8-bit map": (
        np.array([0, 255], np.uint8),
        r"got 255.0 at position 1; divide an 8-bit map by 255",
    ),
    "complex": ([0.5 + 0j], "real numbers, got list of dtype complex128"),
    "text": (["0.5"], "real numbers, got list of dtype <U3"),
    "text among numbers": (np.array([0.5, "a"], object), "got 'a' at position 1"),
    "dates": (np.array(["2026-01-01"], "M8[D]"), "real numbers, got ndarray of dtype datetime64"),
    "structures": (np.zeros(2, [("p", float)]), "real numbers, got ndarray of dtype"),
    "ragged": ([[0.5], [0.5, 0.1]], "must be an array of numbers"),
    "predict_proba": (np.array([[0.3, 0.7], [0.5, 0.5]]), r"give p\[:, 1\]"),
    "generator": ((p for p in P), "real numbers, got generator of dtype object"),
    "beyond all doubles": ([0, 10**400], "must hold numbers up to 1.8e308, got a larger one"),
    "beyond double": (np.array([1.0, 1.0 + 1e-9], np.longdouble), "got 1.000000001 at position 1"),
}


@pytest.fixture
def compiled_kernels(monkeypatch):
    """Compile from the first number on: run as Python, sums may differ in their last digit."""
    monkeypatch.setattr(compiled._work, "numbers", compiled.NUMBERS_IN_PYTHON + 1)


@pytest.mark.usefixtures("compiled_kernels")
@pytest.mark.parametrize("kind", MEANS_P)
def test_numbers_of_every_type(kind):
    want, values = maximize_expected_f(P), MEANS_P[kind]
    found = maximize_expected_f(values)
    assert found.selected.tolist() == want.selected.tolist()
    assert (found.k, found.threshold, found.expected) == (want.k, want.threshold, want.expected)
    assert expected_f(values, [True, False, True]) == expected_f(P, [True, False, True])
    np.testing.assert_array_equal(
        ProbabilitySketch.from_array(values)._table, ProbabilitySketch.from_array(P)._table
    )
    assert maximize_empirical_f([1, 0, 1], values).threshold == 0.375


@pytest.mark.parametrize("kind", MEANS_LABELS)
def test_certain_labels_of_every_type(kind):
    found = maximize_expected_f(MEANS_LABELS[kind])
    assert found.selected.tolist() == [True, False, True]
    assert found.expected == pytest.approx(1.0)
    assert maximize_empirical_f(MEANS_LABELS[kind], P).k == 2


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_is_named(kind):
    values, message = REFUSED[kind]
    with pytest.raises(ValueError, match=message):
        maximize_expected_f(values)


def test_options_beyond_all_doubles_are_refused_as_others():
    with pytest.raises(ValueError, match="beta must be positive and finite, got 1000"):
        maximize_expected_f(P, beta=10**400)
    with pytest.raises(ValueError, match=r"zero_division must lie in \[0, 1\], got -1000"):
        maximize_expected_f(P, zero_division=-(10**400))


def test_indices_are_no_booleans():
    with pytest.raises(ValueError, match="selected must be booleans, got 2 at position 1"):
        expected_f(P, [0, 2, 1])


def test_weights_of_infinite_sum_are_refused():
    with pytest.raises(ValueError, match="sample_weight must have a finite sum"):
        maximize_empirical_f([1, 0, 1], P, sample_weight=[1e308, 1e308, 0])


def test_both_columns_of_a_classifier_are_told_to_be_one():
    both = np.array([[0.3, 0.7], [0.5, 0.5]])
    for chance in (
        lambda: expected_f(both, [True, False]),
        lambda: ProbabilitySketch.from_array(both),
    ):
        with pytest.raises(ValueError, match=r"give p\[:, 1\]"):
            chance()
    with pytest.raises(ValueError, match=r"\(2,\) and \(2, 2\); .* give score\[:, 1\]"):
        maximize_empirical_f([0, 1], both)


@pytest.mark.parametrize("n", [100, 20_000])
def test_longdouble_beyond_double_precision_is_rounded_first(n):
    rng = np.random.default_rng(0)
    p = rng.integers(1, 9, n).astype(np.longdouble) / 10 + rng.random(n) * np.longdouble(1e-18)
    found = maximize_expected_f(p)
    assert found.selected.sum() == found.k
    rounded = maximize_expected_f(p.astype(np.float64))
    np.testing.assert_array_equal(found.selected, rounded.selected)


def test_a_frame_of_labels_is_its_cells_whatever_its_columns_are_called():
    labels, scores = np.array([[1, 0], [0, 1], [1, 1]]), np.array([P, P]).T
    want = maximize_empirical_f(labels, scores, average="macro")
    for frame in (pd.DataFrame(labels, columns=["a", "b"]), pl.DataFrame(labels, ["a", "b"])):
        found = maximize_empirical_f(frame, scores, average="macro")
        assert found.threshold.tolist() == want.threshold.tolist()
    words = pd.DataFrame({"a": ["yes", "no", "no"]})
    with pytest.raises(
        ValueError, match="y_true must hold 0 and 1, got 'yes'; pass the positive label"
    ):
        maximize_empirical_f(words, scores[:, :1], average="macro")


@pytest.mark.parametrize("labels", [None, 1, "yes"])
def test_what_is_no_array_of_labels_is_refused(labels):
    with pytest.raises(ValueError, match="y_true"):
        maximize_empirical_f(labels, P)


def test_masked_labels_are_refused_too():
    hidden = np.ma.masked_array([1, 0, 1], mask=[0, 0, 1])
    for call in (
        lambda: maximize_empirical_f(hidden, P),
        lambda: f_interval(hidden, [1, 0, 1]),
        lambda: f_interval([1, 0, 1], hidden, average="macro"),
        lambda: expected_f(P, hidden),
    ):
        with pytest.raises(ValueError, match="must not be masked, got a masked entry at 2"):
            call()


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_floats_of_ml_dtypes(kind):
    import ml_dtypes

    values = np.array(P, getattr(ml_dtypes, kind))
    np.testing.assert_array_equal(as_real_array("proba", values), P)
    assert maximize_expected_f(values).k == maximize_expected_f(P).k
    assert maximize_empirical_f([1, 0, 1], values).threshold == 0.375
    np.testing.assert_array_equal(
        ProbabilitySketch.from_array(values)._table, ProbabilitySketch.from_array(P)._table
    )


def test_tensors_of_torch():
    import torch

    kinds = torch.bfloat16, torch.float16, torch.float32, torch.float64
    tensors = [torch.tensor(P, dtype=kind) for kind in kinds]
    for tensor in (*tensors, torch.tensor(P, requires_grad=True)):
        np.testing.assert_array_equal(
            maximize_expected_f(tensor).selected, maximize_expected_f(P).selected
        )
    with pytest.raises(ValueError, match="got nan at position 1"):
        maximize_expected_f(torch.tensor([0.5, float("nan")]))
