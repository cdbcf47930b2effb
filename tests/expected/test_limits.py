"""Budgets: the best set among those of an allowed size, by the whole curve of all sizes."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from argmaxf import ExpectedFClassifier, decide, expected_f_curve, maximize_expected_f
from argmaxf.cli.app import app
from tests.judges import curve_40_digits, families


def best_within(p, least, most, **options):
    """The best size within limits, and its value, from f_0 … f_n in 40 digits."""
    f = curve_40_digits(p, **options)
    positive = int(np.count_nonzero(p))
    sizes = range(least or 0, min(positive if most is None else most, positive) + 1)
    k = max(sizes, key=lambda k: (f[k], -k))
    return k, float(f[k])


@pytest.mark.parametrize("name", families())
@pytest.mark.parametrize("limits", [(None, 3), (None, 0), (7, None), (4, 5), (1, 1), (10, 12)])
@pytest.mark.parametrize("zero_division", [0.0, 1.0])
def test_the_best_set_within_limits(name, limits, zero_division):
    p = families()[name]
    least, most = limits
    if (least or 0) > np.count_nonzero(p):
        pytest.skip("more than can be positive")
    found = maximize_expected_f(
        p, min_selected=least, max_selected=most, zero_division=zero_division, beta=2.0
    )
    k, value = best_within(p, least, most, beta=2.0, zero_division=zero_division)
    assert found.k == k == found.selected.sum()
    assert found.expected == pytest.approx(value, rel=1e-11, abs=1e-300)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(16_385, 18_000),
    low=st.floats(0, 1),
    high=st.floats(0, 1),
    decimals=st.sampled_from([2, 17]),
    shape=st.sampled_from([(0.5, 5), (2, 2), (0.1, 9)]),
)
def test_large_sets_looked_at_in_groups(seed, n, low, high, decimals, shape):
    p = np.round(np.random.default_rng(seed).beta(*shape, n), decimals)
    positive = np.count_nonzero(p)
    least, most = sorted((int(low * positive), int(high * positive)))
    found = maximize_expected_f(p, min_selected=least, max_selected=most)
    curve = expected_f_curve(p)[least : most + 1]
    assert least <= found.k <= most
    assert found.k == found.selected.sum()
    assert found.expected >= curve.max() * (1 - 1e-12)
    assert np.sort(p)[::-1][: found.k].sum() == pytest.approx(p[found.selected].sum())


def test_a_budget_of_what_is_best_anyway_changes_nothing():
    p = np.random.default_rng(0).beta(0.5, 5, 30_000)
    free = maximize_expected_f(p)
    for limits in ({"max_selected": free.k}, {"min_selected": free.k}):
        found = maximize_expected_f(p, **limits)
        assert found.k == free.k
        assert (found.expected, found.std) == pytest.approx((free.expected, free.std), rel=1e-13)


@pytest.mark.parametrize("average", ["macro", "samples"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_each_row_or_column_has_the_budget(average, make):
    p = np.random.default_rng(1).beta(0.5, 2, (25, 20))
    found = maximize_expected_f(make(p), average=average, min_selected=2, max_selected=4)
    assert np.all((found.k >= 2) & (found.k <= 4))
    sets = p.T if average == "macro" else p
    np.testing.assert_array_equal(found.k, [best_within(each, 2, 4)[0] for each in sets])


def test_all_cells_have_one_budget():
    p = np.random.default_rng(2).random((15, 4))
    assert maximize_expected_f(p, average="micro", max_selected=7).selected.sum() == 7


@pytest.mark.parametrize("n", [100, 20_000])
def test_ties_together_within_limits(n):
    p = np.repeat([0.9, 0.5, 0.4], [2, n - 12, 10])
    found = maximize_expected_f(p, ties="together", max_selected=20)
    assert found.k == 2
    with pytest.raises(ValueError, match="no set of 3 to 9 items keeps equal probabilities"):
        maximize_expected_f(p, ties="together", min_selected=3, max_selected=9)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_selected": -1}, "max_selected must be a whole number of at least 0, got -1"),
        ({"min_selected": 1.5}, "min_selected must be a whole number of at least 0, got 1.5"),
        ({"min_selected": 3, "max_selected": 2}, "at most max_selected, got 3 and 2"),
        ({"min_selected": 4}, "min_selected=4 is more than the 3 items with a probability above 0"),
    ],
)
def test_wrong_limits_are_named(limits, message):
    with pytest.raises(ValueError, match=message):
        maximize_expected_f([0.5, 0.2, 0.0, 0.1], **limits)


@pytest.mark.parametrize(("average", "where"), [("samples", "row 1"), ("macro", "column 0")])
def test_the_row_or_column_with_too_few_items_is_named(average, where):
    with pytest.raises(ValueError, match=f"the 1 item with a probability above 0 in {where}$"):
        maximize_expected_f([[0.5, 0.2, 0.1], [0.0, 0.4, 0.0]], average=average, min_selected=2)


def test_a_sparse_column_with_too_few_cells_is_refused():
    with pytest.raises(ValueError, match="min_selected=2 is more than the 1 item with a prob"):
        maximize_expected_f(sparse.csr_array([[0.5, 0.1], [0.0, 0.2]]), average="macro",
                            min_selected=2)  # fmt: skip
    with pytest.raises(ValueError, match="min_selected=1 is more than the 0 items with a prob"):
        maximize_expected_f(sparse.csr_array((2, 2)), average="samples", min_selected=1)


FRAME = pl.DataFrame({"s": ["a"] * 40 + ["b"] * 60, "p": np.random.default_rng(3).random(100)})


@pytest.mark.parametrize("lazy", [False, True])
def test_each_segment_of_a_frame_has_the_budget(lazy):
    frame = FRAME.lazy() if lazy else FRAME
    labelled = decide(frame, "p", by="s", min_selected=2, max_selected=5).lazy().collect()
    counts = dict(labelled.group_by("s").agg(pl.col("label").sum()).iter_rows())
    best = {
        key[0]: best_within(part["p"].to_numpy(), 2, 5)[0]
        for key, part in FRAME.partition_by("s", as_dict=True).items()
    }
    assert counts == best


def test_many_rows_of_a_frame_have_the_budget():
    p = np.random.default_rng(4).beta(0.5, 5, 60_000)
    labelled = decide(pl.DataFrame({"p": p}), "p", max_selected=500)
    np.testing.assert_array_equal(
        labelled["label"].to_numpy(), maximize_expected_f(p, max_selected=500).selected
    )


@pytest.mark.parametrize("n", [200, 60_000])
def test_the_command_keeps_to_a_budget(n, tmp_path):
    p = np.random.default_rng(5).beta(0.5, 5, n)
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pl.DataFrame({"p": p}).write_parquet(source)
    run = [str(source), "-p", "p", "--max-selected", "50", "-o", str(target)]
    result = CliRunner().invoke(app, ["decide", *run])
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(
        pl.read_parquet(target)["label"].to_numpy(),
        maximize_expected_f(p, max_selected=50).selected,
    )


BUDGETS = [{"max_selected": 3}, {"min_selected": 4}, {"min_selected": 2, "max_selected": 2}]


@pytest.fixture(scope="module")
def multilabel():
    return make_multilabel_classification(300, n_classes=5, n_labels=2, random_state=0)


@pytest.mark.parametrize("average", ["macro", "samples", "micro"])
@pytest.mark.parametrize("budget", BUDGETS)
def test_a_classifier_keeps_to_a_budget_in_every_batch(multilabel, average, budget):
    X, Y = multilabel
    options = {"average": average, "calibration": None} | budget
    model = ExpectedFClassifier(LogisticRegression(), **options).fit(X[:200], Y[:200])
    for batch in (X[200:], X[200:240]):
        proba = model.predict_proba(batch)
        best = maximize_expected_f(proba, average=average, **budget)
        np.testing.assert_array_equal(model.predict(batch), best.selected)
        np.testing.assert_array_equal(model.decide(batch).expected, best.expected)
        np.testing.assert_array_equal(model.decision_function(batch) >= 0, best.selected)


def test_a_budget_of_rows_and_its_confidence_level():
    X, y = make_classification(600, weights=[0.8], random_state=0)
    free = ExpectedFClassifier(LogisticRegression()).fit(X[:400], y[:400])
    model = ExpectedFClassifier(LogisticRegression(), max_selected=20).fit(X[:400], y[:400])
    assert model.predict(X[400:]).sum() == 20 < free.predict(X[400:]).sum()
    model.set_params(min_precision=0.5, confidence_level=0.9)
    found = model.fit(X[:400], y[:400]).decide(X[400:])
    assert found.k <= 20
    assert found.guarantee.probability >= 0.9


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"max_selected": -1}, "max_selected must be a whole number of at least 0, got -1"),
        ({"min_selected": 3, "max_selected": 2}, "at most max_selected, got 3 and 2"),
        ({"max_selected": 3}, "a budget needs a binary or multilabel target.*got 3 classes"),
    ],
)
def test_budgets_that_a_classifier_refuses(budget, message):
    X, y = np.random.default_rng(0).random((30, 2)), np.arange(30) % 3
    with pytest.raises(ValueError, match=message):
        ExpectedFClassifier(LogisticRegression(), **budget).fit(X, y)


def test_a_budget_is_of_a_batch_and_cannot_be_frozen(multilabel):
    X, Y = multilabel
    options = {"calibration": None, "max_selected": 1}
    model = ExpectedFClassifier(LogisticRegression(), **options).fit(X, Y)
    with pytest.raises(ValueError, match="cannot be frozen: the number limits a batch"):
        model.freeze(X)
    each_row = ExpectedFClassifier(LogisticRegression(), average="samples", **options).fit(X, Y)
    assert each_row.freeze(X).predict(X[:50]).sum(axis=1).max() == 1


@pytest.mark.parametrize("limit", ["--max-selected", "--min-selected"])
def test_the_command_refuses_a_budget_beside_a_threshold(tmp_path, limit):
    source, target = tmp_path / "p.csv", tmp_path / "labels.csv"
    source.write_text("p\n0.2\n0.3\n0.6\n")
    run = [str(source), "-p", "p", limit, "1", "--threshold", "0.1", "-o", str(target)]
    result = CliRunner().invoke(app, ["decide", *run])
    assert isinstance(result.exception, ValueError)
    assert "either --threshold or a budget" in str(result.exception)
    assert not target.exists()
