"""Another rate of positives: moved probabilities, and the rate estimated without labels."""

from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from argmaxf import decide, estimate_rate, maximize_expected_f, shift_prior
from argmaxf.commands.app import run
from argmaxf.frames.deciding import decisions
from argmaxf.theory import GaussianMixture

rates = st.floats(0.001, 0.999)


def test_shifted_prior_is_the_mixture_with_another_rate():
    X, _ = GaussianMixture(S=2.0, positive_rate=0.2).sample(50, seed=2)
    here, there = (GaussianMixture(S=2.0, positive_rate=rate) for rate in (0.2, 0.7))
    moved = shift_prior(here.posterior(X), train_rate=0.2, deploy_rate=0.7)
    np.testing.assert_allclose(moved, there.posterior(X))


@given(st.floats(0, 1), rates, rates)
def test_bayes_rule_in_fractions(p, before, after):
    one, a, b = (Fraction(x) for x in (p, before, after))
    positive, negative = one * b / a, (1 - one) * (1 - b) / (1 - a)
    want = float(positive / (positive + negative))
    assert shift_prior([p], train_rate=before, deploy_rate=after)[0] == pytest.approx(
        want, rel=1e-9
    )


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), rates, rates)
def test_the_order_the_ends_and_the_way_back(p, before, after):
    p = np.sort(p)
    moved = shift_prior(p, train_rate=before, deploy_rate=after)
    assert np.all(np.diff(moved) >= 0)
    assert np.array_equal(shift_prior([0, 1], train_rate=before, deploy_rate=after), [0, 1])
    back = shift_prior(moved, train_rate=after, deploy_rate=before)
    np.testing.assert_allclose(back, p, atol=1e-9)


def test_one_rate_for_each_column():
    p = np.array([[0.5, 0.9], [0.2, 0.1]])
    moved = shift_prior(p, train_rate=[0.5, 0.5], deploy_rate=[0.5, 0.1])
    assert np.allclose(moved[:, 0], p[:, 0])
    assert np.allclose(moved[:, 1], shift_prior(p[:, 1], train_rate=0.5, deploy_rate=0.1))


def test_bad_rates_are_named():
    with pytest.raises(ValueError, match=r"deploy_rate must be above 0 and below 1, got 1.0"):
        shift_prior([0.5], train_rate=0.5, deploy_rate=1)
    with pytest.raises(ValueError, match=r"train_rate must be above 0 and below 1, got nan"):
        estimate_rate([0.5], train_rate=np.nan)
    with pytest.raises(ValueError, match="at least one probability"):
        estimate_rate([], train_rate=0.5)
    with pytest.raises(ValueError, match="needs reference"):
        estimate_rate([0.5], train_rate=0.5, method="moments")
    with pytest.raises(ValueError, match="all equal"):
        estimate_rate([0.5], train_rate=0.5, method="moments", reference=[0.5, 0.5])


def test_it_is_where_em_ends():
    """The published algorithm, run until it stands still."""
    there = GaussianMixture(S=2.0, positive_rate=0.07)
    p = GaussianMixture(S=2.0, positive_rate=0.3).posterior(there.sample(800, seed=1)[0])
    rate = 0.3
    for _ in range(5000):
        rate = shift_prior(p, train_rate=0.3, deploy_rate=rate).mean()
    assert estimate_rate(p, train_rate=0.3).value == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize("method", ["likelihood", "moments"])
def test_the_interval_covers_as_it_says(method):
    here, there = (GaussianMixture(S=3.0, positive_rate=rate) for rate in (0.2, 0.05))
    reference = here.posterior(here.sample(20_000, seed=10_000)[0])
    covered = 0
    for seed in range(200):
        p = here.posterior(there.sample(1500, seed=seed)[0])
        rate = estimate_rate(p, train_rate=0.2, method=method, reference=reference)
        covered += rate.low < 0.05 < rate.high
    low, high = binom.interval(0.999, 200, 0.95)
    assert low <= covered <= high


def test_certain_rows_and_extreme_rates():
    sure = estimate_rate(np.r_[np.ones(3), np.zeros(97)], train_rate=0.5)
    assert sure.value == pytest.approx(0.03, abs=1e-9)
    assert sure.low < 0.03 < sure.high
    none = estimate_rate(np.full(100, 0.01), train_rate=0.5)
    assert none.value < 1e-9
    every = estimate_rate(np.full(100, 0.99), train_rate=0.5)
    assert every.value > 1 - 1e-9


def test_the_decision_takes_the_prior():
    p = np.random.default_rng(0).beta(1, 4, 300)
    got = maximize_expected_f(p, prior=(0.2, 0.02))
    want = maximize_expected_f(shift_prior(p, train_rate=0.2, deploy_rate=0.02))
    assert (got.k, got.expected, got.threshold) == (want.k, want.expected, want.threshold)
    table = p.reshape(100, 3)
    got = maximize_expected_f(table, average="macro", prior=([0.2, 0.3, 0.4], 0.1))
    want = shift_prior(table, train_rate=[0.2, 0.3, 0.4], deploy_rate=0.1)
    assert np.array_equal(got.selected, maximize_expected_f(want, average="macro").selected)
    with pytest.raises(ValueError, match="prior must be two rates, in training and where"):
        maximize_expected_f(p, prior=0.2)


PRIOR = (0.2, 0.02)


def _column(frame, name):
    return np.asarray(frame.collect()[name] if isinstance(frame, pl.LazyFrame) else frame[name])


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_frames_take_the_prior(kind):
    rng = np.random.default_rng(0)
    data = {"p": rng.beta(1, 4, 500), "s": rng.integers(0, 3, 500)}
    want = maximize_expected_f(data["p"], prior=PRIOR, ties="together")
    got = decide(kind(data), "p", prior=PRIOR)
    assert np.array_equal(_column(got, "label"), want.selected)
    assert np.array_equal(_column(got, "p"), data["p"])
    by = decide(kind(data), "p", by="s", prior=PRIOR)
    for segment in range(3):
        rows = data["s"] == segment
        want = maximize_expected_f(data["p"][rows], prior=PRIOR, ties="together").selected
        assert np.array_equal(_column(by, "label")[rows], want)


def test_an_engine_that_is_a_database_takes_the_prior():
    p = np.random.default_rng(1).beta(1, 4, 300)
    frame = pd.DataFrame({"p": p})  # noqa: F841  DuckDB finds it by its name
    want = maximize_expected_f(p, prior=PRIOR, ties="together")
    relation = duckdb.sql("select p from frame")
    assert decide(relation, "p", prior=PRIOR).df()["label"].sum() == want.k
    found = decisions(relation, "p", prior=PRIOR)[()]
    assert (found.k, found.threshold) == (want.k, want.threshold)
    with pytest.raises(ValueError, match="prior must be two rates"):
        decide(relation, "p", prior=0.1)


@pytest.mark.parametrize("by", [[], ["--by", "s"]])
def test_the_command_takes_both_rates(tmp_path, by, capsys):
    p = np.random.default_rng(2).beta(1, 4, 300)
    pl.DataFrame({"p": p, "s": ["all"] * 300}).write_csv(tmp_path / "in.csv")
    source, out = str(tmp_path / "in.csv"), str(tmp_path / "out.csv")
    rates = ["--train-rate", "0.2", "--deploy-rate", "0.02"]
    assert run(["decide", source, "-p", "p", "-o", out, *rates, *by]) == 0
    written = pl.read_csv(out)
    want = maximize_expected_f(p, prior=PRIOR, ties="together")
    assert np.array_equal(written["label"].to_numpy(), want.selected)
    assert np.array_equal(written["p"].to_numpy(), p)
    capsys.readouterr()


def test_the_command_wants_both_rates_and_names_bad_values_as_they_are(tmp_path, capsys):
    (tmp_path / "in.csv").write_text("p\n0.5\n1.5\n")
    source = str(tmp_path / "in.csv")
    for rates, message in [
        (["--deploy-rate", "0.1"], "give both --train-rate and --deploy-rate"),
        (["--train-rate", "0.5", "--deploy-rate", "0.1"], "must be in [0, 1], got 1.5"),
    ]:
        assert run(["decide", source, "-p", "p", *rates]) == 2
        assert message in " ".join(capsys.readouterr().err.split())
