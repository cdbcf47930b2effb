"""How often the rows of a query are read, and answers where the first are unlike the others."""

import re

import numpy as np
import polars as pl
import pytest

from argmaxf import maximize_empirical_f, maximize_expected_f, tune
from argmaxf.frames import decisions, engines, labelled, solve, table

N = 60_000
ORDERS = {
    "any order": lambda p: p,
    "rising": np.sort,
    "falling": lambda p: np.sort(p)[::-1],
    "the least first": lambda p: np.append(p[p < 0.05], p[p >= 0.05]),
    "few values": lambda p: np.round(p, 1),
    "equal": lambda p: np.full(p.size, 0.25),
    "few positives": lambda p: p * 1e-3,
}


@pytest.fixture(autouse=True)
def many_batches(monkeypatch):
    """Batches of 1,000 rows, of which 12,000 are held."""
    monkeypatch.setattr(engines, "BATCH_ROWS", 1_000)
    monkeypatch.setattr(table.Rows, "HELD", 12_000)


def counting(columns):
    """Return a lazy frame, and a list that grows each time that its rows are read."""
    reads = []

    def read(part):
        reads.append(len(part))
        return part

    return pl.LazyFrame(columns).map_batches(read, streamable=False), reads


def probabilities(order, seed=0):
    return ORDERS[order](np.random.default_rng(seed).beta(0.5, 3, N))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("most", [300, 1 << 22])
def test_decision_is_that_of_the_array_in_every_order(order, kind, most, monkeypatch):
    monkeypatch.setattr(solve, "BROUGHT", most)  # rows near the threshold that may be held
    p = probabilities(order).astype(kind)
    frame, reads = counting({"p": p})
    found = decisions(frame, "p", ties="together")[()]
    exact = maximize_expected_f(p.astype(float), ties="together")
    assert (found.k, found.threshold, found.n) == (exact.k, exact.threshold, exact.n)
    assert found.expected == pytest.approx(exact.expected, rel=1e-12)
    assert found.std == pytest.approx(exact.std, rel=1e-9)
    if order == "any order" and most > 300:
        assert len(reads) == 1
    assert len(reads) <= 5


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("most", [300, 1 << 24])
@pytest.mark.parametrize("weighted", [False, True])
def test_threshold_is_that_of_the_arrays_in_every_order(order, most, weighted, monkeypatch):
    monkeypatch.setattr(labelled, "PART", most)  # rows near the threshold that may be held
    score = probabilities(order, seed=1)
    rng = np.random.default_rng(2)
    y = rng.random(N) < score
    weight = rng.integers(0, 4, N) * 1e200 if weighted else None
    columns = {"y": y, "score": score} | ({"w": weight} if weighted else {})
    frame, reads = counting(columns)
    asked = {"label": "y", "score": "score", "weight": "w" if weighted else None}
    for limits in ({}, {"min_precision": 0.5}, {"max_selected_rate": 0.05, "beta": 2.0}):
        try:
            exact = maximize_empirical_f(y, score, sample_weight=weight, **limits)
        except ValueError as error:
            unreachable = re.escape(str(error))
        else:
            unreachable = None
        reads.clear()
        if unreachable:
            with pytest.raises(ValueError, match=f"^{unreachable}$"):
                tune(frame, **asked, **limits)
            continue
        found = tune(frame, **asked, **limits)
        assert (found.threshold, found.k) == (exact.threshold, exact.k)
        for name in ("value", "precision", "recall"):
            assert getattr(found, name) == pytest.approx(getattr(exact, name), rel=1e-12)
        if order == "any order" and most > 300 and not limits:
            assert len(reads) == 1


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.5])
@pytest.mark.parametrize("place", [0, N - 1])
def test_what_is_no_probability_is_named_wherever_it_is(bad, place):
    p = probabilities("any order")
    p[place] = bad
    frame, _ = counting({"p": p})
    words = "1 null" if np.isnan(bad) else f"in \\[0, 1\\], got {bad}"
    with pytest.raises(ValueError, match=f"column 'p' must .*{words}"):
        decisions(frame, "p")


def test_a_query_that_fails_late_says_why():
    def fail(part):
        raise OSError("the disk is gone")

    rows = pl.LazyFrame({"p": probabilities("any order")})
    with pytest.raises(Exception, match="the disk is gone"):
        decisions(pl.concat([rows, rows.map_batches(fail)]), "p")
