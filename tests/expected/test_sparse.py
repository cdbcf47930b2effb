"""Sparse probabilities: the answer of the same matrix made dense, which it never is here."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from argmaxf import maximize_expected_f, maximize_expected_macro_f

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr"]
AVERAGES = ["macro", "samples", "micro"]


def random_matrix(rng, n, size, stored, rounded=False):
    p = rng.random((n, size)) * (rng.random((n, size)) < stored)
    return np.round(p, 1) if rounded else p


def assert_same(found, dense):
    np.testing.assert_array_equal(found.selected.toarray(), dense.selected)
    np.testing.assert_array_equal(found.k, dense.k)
    np.testing.assert_array_equal(found.threshold, dense.threshold)
    np.testing.assert_allclose(found.expected, dense.expected, rtol=1e-12)
    np.testing.assert_allclose(found.std, dense.std, rtol=1e-9, atol=1e-12)
    assert found.n == dense.n


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    shape=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    stored=st.floats(0, 1),
    rounded=st.booleans(),
    average=st.sampled_from(AVERAGES),
    zero_division=st.sampled_from([0.0, 0.3, 1.0]),
    ties=st.sampled_from(["split", "together"]),
    measure=st.sampled_from(["fbeta", "jaccard"]),
)
def test_as_if_it_were_dense(seed, shape, stored, rounded, average, **options):
    p = random_matrix(np.random.default_rng(seed), *shape, stored, rounded)
    found = maximize_expected_f(sparse.csr_array(p), average=average, **options)
    assert_same(found, maximize_expected_f(p, average=average, **options))


@pytest.mark.parametrize("average", AVERAGES)
def test_large_and_small_columns_together(average):
    rng = np.random.default_rng(0)
    p = random_matrix(rng, 20_000, 3, 1.0) * [1.0, 0.1, 1.0]
    p[100:, 2] = 0.0
    p[:, 0] = np.round(p[:, 0], 3)  # ties across the threshold of a column decided unsorted
    found = maximize_expected_f(sparse.csr_array(p), average=average)
    assert_same(found, maximize_expected_f(p, average=average))


@pytest.mark.parametrize("threads", [1, 3])
def test_columns_of_every_size_whatever_the_threads(threads, monkeypatch):
    monkeypatch.setattr("argmaxf.expected.sets.threads_for", lambda n: threads)
    rng = np.random.default_rng(7)
    sizes = np.array([0, 400, 1, 2, 17, 0, 399, 128, 5, 64, 65, 0, 0])
    p = np.round(rng.beta(0.5, 3, (400, sizes.size)), 2).clip(0.01)
    p *= rng.permuted(np.arange(400)[:, None] < sizes, axis=0)
    found = maximize_expected_f(sparse.csr_array(p), average="macro")
    assert_same(found, maximize_expected_f(p, average="macro"))


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("make", ["array", "matrix"])
def test_every_format_gives_a_csr_of_its_own_kind(kind, make):
    p = random_matrix(np.random.default_rng(1), 12, 8, 0.4)
    given_matrix = getattr(sparse, f"{kind}_{make}")(p)
    found = maximize_expected_f(given_matrix, average="macro").selected
    assert type(found) is getattr(sparse, f"csr_{make}")
    assert found.dtype == bool
    np.testing.assert_array_equal(found.toarray(), maximize_expected_f(p, average="macro").selected)


def untidy():
    """A CSR with an explicit zero, a duplicate, unsorted and 64-bit indices; and it made dense."""
    data = np.array([0.3, 0.2, 0.0, 0.9, 0.4])
    indices = np.array([2, 2, 0, 1, 0], np.int64)
    p = sparse.csr_array((data, indices, np.array([0, 3, 5], np.int64)), shape=(2, 3))
    return p, np.array([[0.0, 0.0, 0.5], [0.4, 0.9, 0.0]])


@pytest.mark.parametrize("average", AVERAGES)
def test_untidy_storage_is_read_right_and_left_alone(average):
    p, dense = untidy()
    assert_same(
        maximize_expected_f(p, average=average), maximize_expected_f(dense, average=average)
    )
    np.testing.assert_array_equal(p.data, untidy()[0].data)
    np.testing.assert_array_equal(p.indices, untidy()[0].indices)


def test_stored_zeros_cannot_be_chosen_where_rows_are_shared():
    p, _ = untidy()
    with pytest.raises(ValueError, match="row 0 can give: it has 1"):
        maximize_expected_macro_f(p, labels_per_row=2)
    found = maximize_expected_macro_f(p, max_labels_per_row=1)
    np.testing.assert_array_equal(found.selected.toarray(), [[0, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(p.data, untidy()[0].data)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (3, 4)])
@pytest.mark.parametrize("average", AVERAGES)
def test_nothing_stored(shape, average):
    found = maximize_expected_f(sparse.csr_array(shape), average=average, zero_division=1.0)
    assert found.selected.shape == shape
    assert found.selected.nnz == 0
    assert np.all(np.asarray(found.expected) == 1.0)
    assert np.all(np.asarray(found.k) == 0)


def test_float32_is_computed_in_float64():
    p = random_matrix(np.random.default_rng(2), 9, 7, 0.5).astype(np.float32)
    found = maximize_expected_f(sparse.csr_array(p), average="macro")
    assert_same(found, maximize_expected_f(p, average="macro"))


@pytest.mark.parametrize(
    ("p", "message"),
    [
        (sparse.csr_array([[0.5, 1.5]]), r"got 1.5 at position \(0, 1\)"),
        (sparse.csc_array([[0.5, 0.5], [np.nan, -1.0]]), r"got nan at position \(1, 0\)"),
        (sparse.csr_array([[1j, 0.5]]), "must hold real numbers, got dtype complex128"),
        (sparse.coo_array([0.5, 0.1]), "a sparse p must have two dimensions, got 1"),
    ],
)
def test_bad_values_are_named(p, message):
    with pytest.raises(ValueError, match=message):
        maximize_expected_f(p, average="macro")


def test_average_must_be_given():
    with pytest.raises(ValueError, match="two-dimensional p needs average"):
        maximize_expected_f(sparse.csr_array([[0.5]]))
