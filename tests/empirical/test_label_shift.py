"""Another rate of positives: moved probabilities, and the rate estimated without labels."""

import json
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import binom

from argmaxf import (
    ProbabilitySketch,
    decide,
    estimate_rate,
    maximize_expected_f,
    shift_prior,
    summarize,
)
from argmaxf.cli.app import run
from argmaxf.frames.solve import decisions, rate_of
from argmaxf.prior import most_likely_shares
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


@pytest.mark.parametrize(
    ("p", "train", "deploy", "message"),
    [
        ([0.5], [0.5, 0.4], 0.1, r"one for each column, got 2 for p of shape \(1,\)"),
        ([0.5, 0.4, 0.3], [0.5, 0.4], 0.1, r"one for each column, got 2 for p of shape \(3,\)"),
        (0.5, [0.5, 0.4], 0.1, r"one for each column, got 2 for p of shape \(\)"),
        ([0.5, 0.4], [0.5, 0.4], [0.1, 0.2, 0.3], "one length or be single rates, got 2 and 3"),
        ([0.5], "0.5", 0.1, "train_rate must be above 0 and below 1, got '0.5'"),
        ([0.5, 0.4], 0.5, ["0.5", 0.4], "deploy_rate must be above 0 and below 1, got"),
    ],
)
def test_rates_that_do_not_fit_are_named(p, train, deploy, message):
    with pytest.raises(ValueError, match=message):
        shift_prior(p, train_rate=train, deploy_rate=deploy)


@pytest.mark.parametrize("rates", [(1e-300, 0.999999999999), (1 - 1e-16, 5e-324)])
def test_the_most_extreme_rates_keep_0_and_1(rates):
    for before, after in (rates, rates[::-1]):
        moved = shift_prior([0, 0.5, 1], train_rate=before, deploy_rate=after)
        assert moved[[0, 2]].tolist() == [0, 1]
        assert moved[1] == pytest.approx(float(after > before), abs=1e-11)


def test_a_prior_may_be_an_array():
    frame = pd.DataFrame({"p": [0.5, 0.2, 0.1]})
    got, want = (decide(frame, "p", prior=each) for each in (np.array([0.5, 0.1]), (0.5, 0.1)))
    assert got.equals(want)
    with pytest.raises(ValueError, match="one for each column, got 2"):
        decide(frame, "p", prior=([0.5, 0.4], 0.1))


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


def test_a_sparse_table_is_moved_where_it_is_stored():
    rng = np.random.default_rng(0)
    table = rng.beta(1, 4, (100, 3)) * (rng.random((100, 3)) < 0.5)
    rates = {"train_rate": [0.2, 0.3, 0.4], "deploy_rate": 0.1}
    moved = shift_prior(csr_array(table), **rates)
    assert isinstance(moved, csr_array)
    np.testing.assert_array_equal(moved.toarray(), shift_prior(table, **rates))
    for average in ("macro", "micro", "samples"):
        sparse, dense = (
            maximize_expected_f(each, average=average) for each in (moved, moved.toarray())
        )
        assert np.array_equal(sparse.selected.toarray(), dense.selected)
    with pytest.raises(ValueError, match="one for each column, got 2 for p"):
        shift_prior(csr_array(table), train_rate=[0.5, 0.4], deploy_rate=0.1)


def moved_and_decided(p, train_rate, deploy_rate):
    """Decide moved probabilities as frames do: equal ones together."""
    moved = shift_prior(p, train_rate=train_rate, deploy_rate=deploy_rate)
    return maximize_expected_f(moved, ties="together")


PRIOR = (0.2, 0.02)


def _column(frame, name):
    return np.asarray(frame.collect()[name] if isinstance(frame, pl.LazyFrame) else frame[name])


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_frames_take_the_prior(kind):
    rng = np.random.default_rng(0)
    data = {"p": rng.beta(1, 4, 500), "s": rng.integers(0, 3, 500)}
    want = moved_and_decided(data["p"], *PRIOR)
    got = decide(kind(data), "p", prior=PRIOR)
    assert np.array_equal(_column(got, "label"), want.selected)
    assert np.array_equal(_column(got, "p"), data["p"])
    by = decide(kind(data), "p", by="s", prior=PRIOR)
    for segment in range(3):
        rows = data["s"] == segment
        want = moved_and_decided(data["p"][rows], *PRIOR).selected
        assert np.array_equal(_column(by, "label")[rows], want)


def test_an_engine_that_is_a_database_takes_the_prior():
    p = np.random.default_rng(1).beta(1, 4, 300)
    frame = pd.DataFrame({"p": p})  # noqa: F841  DuckDB finds it by its name
    want = moved_and_decided(p, *PRIOR)
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
    assert run(["decide", source, "-p", "p", "-o", out, "--force", *rates, *by]) == 0
    written = pl.read_csv(out)
    want = moved_and_decided(p, *PRIOR)
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


def mixed(n=3000, rate=0.03, seed=4):
    """Probabilities learned at a rate of 0.2, of rows where it is another; some 0, 1 and tiny."""
    X, _ = GaussianMixture(S=3.0, positive_rate=rate).sample(n, seed=seed)
    p = GaussianMixture(S=3.0, positive_rate=0.2).posterior(X)
    p[:3] = 0.0, 1.0, 1e-300
    return p


@pytest.mark.parametrize("rate", [0.0005, 0.03, 0.6])
def test_a_summary_gives_the_rate_of_its_items(rate):
    p = mixed(rate=rate)
    want, got = estimate_rate(p, train_rate=0.2), rate_of(ProbabilitySketch.from_array(p), 0.2)
    assert [got.low, got.value, got.high] == pytest.approx([want.low, want.value, want.high], 1e-4)
    with pytest.raises(ValueError, match="at least one probability, got none"):
        rate_of(ProbabilitySketch(), 0.2)


def test_frames_are_moved_to_the_rate_of_their_rows():
    p, q = mixed(), mixed(rate=0.4, seed=5)
    frame = pl.DataFrame({"p": p, "q": q})
    labelled = decide(frame.lazy(), ["p", "q"], prior=(0.2, "estimate")).collect()
    for name in ("p", "q"):
        rate = rate_of(summarize(frame, name), 0.2).value
        want = moved_and_decided(frame[name], 0.2, rate)
        assert np.array_equal(labelled[f"{name}_label"].to_numpy(), want.selected)
    (found,) = decisions(frame, "p", prior=(0.2, "estimate")).values()
    assert found.k == labelled["p_label"].sum()
    with pytest.raises(ValueError, match="deploy_rate must be a rate or 'estimate', got 'guess'"):
        decide(frame, "p", prior=(0.2, "guess"))


def test_the_command_estimates_the_rate_and_says_it(tmp_path, capsys):
    p = mixed()
    pl.DataFrame({"p": p}).write_parquet(tmp_path / "in.parquet")
    source, out = str(tmp_path / "in.parquet"), str(tmp_path / "out.parquet")
    rates = ["--train-rate", "0.2", "--deploy-rate", "estimate"]
    assert run(["decide", source, "-p", "p", "-o", out, "--force", *rates, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["deploy_rate"]
    assert said["low"] < 0.03 < said["high"]
    want = moved_and_decided(p, 0.2, said["value"])
    assert np.array_equal(pl.read_parquet(out)["label"].to_numpy(), want.selected)
    assert run(["decide", source, "-p", "p", *rates]) == 0
    assert "Most likely rate of positives here: 0.0" in capsys.readouterr().out
    for arguments, message in [
        (["-", "-p", "p", *rates], "can be read only once"),
        ([source, "-p", "p", *rates[:3], "much"], "must be a number or estimate, got 'much'"),
    ]:
        assert run(["decide", *arguments]) == 2
        assert message in " ".join(capsys.readouterr().err.split())


def test_shares_of_classes_are_where_the_likelihood_is_highest():
    rng = np.random.default_rng(0)
    before, now = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])
    centres = 2.0 * np.eye(3)
    X = centres[rng.choice(3, 4000, p=now)] + rng.normal(size=(4000, 3))
    density = np.exp(-((X[:, None] - centres) ** 2).sum(axis=2) / 2)
    proba = density * before / (density @ before)[:, None]
    found = most_likely_shares(proba, before)
    assert found == pytest.approx(now, abs=0.03)
    best = np.log((proba / before) @ found).sum()
    for other in rng.dirichlet(np.ones(3), 200):
        assert np.log((proba / before) @ (0.99 * found + 0.01 * other)).sum() < best
    two = np.column_stack([mixed(), 1 - mixed()])
    want = estimate_rate(two[:, 0], train_rate=0.2).value
    assert most_likely_shares(two, np.array([0.2, 0.8]))[0] == pytest.approx(want, abs=1e-5)


def test_probabilities_that_say_nothing_leave_the_rate_as_it_was():
    told = estimate_rate(np.full(50, 0.3), train_rate=0.3)
    assert told.value == 0.3
    assert (told.low, told.high) == (1e-12, 1 - 1e-12)
    with pytest.raises(ValueError, match="train_rate must be one number, got 2"):
        estimate_rate([0.3], train_rate=[0.3, 0.4])
    with pytest.raises(ValueError, match="got 'estimate'; estimate_rate gives the most likely one"):
        shift_prior([0.3], train_rate=0.3, deploy_rate="estimate")


def test_frames_are_moved_as_arrays_are():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 3, size=(300, 2))
    frame = pl.DataFrame(p, schema=["a", "b"])
    for before, after in [
        (0.2, "estimate"),
        ([0.2, 0.3], "estimate"),
        (0.2, 0.1),
        ([0.2, 0.3], 0.1),
    ]:
        got = decide(frame, ["a", "b"], prior=(before, after), ties="split")
        train = np.broadcast_to(before, 2)
        rates = [estimate_rate(c, train_rate=t).value for c, t in zip(p.T, train, strict=True)]
        moved = shift_prior(
            p, train_rate=train, deploy_rate=rates if after == "estimate" else after
        )
        want = maximize_expected_f(moved, average="macro").selected
        assert np.array_equal(got.select("a_label", "b_label").to_numpy(), want)
    with pytest.raises(ValueError, match="deploy_rate must be a rate or 'estimate', got 'x'"):
        decide(frame, "a", prior=(0.2, "x"))
    with pytest.raises(ValueError, match="train_rate must be above 0 and below 1"):
        decide(frame, "a", prior=("estimate", 0.2))
    with pytest.raises(ValueError, match=r"train_rate must be above 0 and below 1, got 1\.5"):
        decide(frame, "a", prior=(1.5, "estimate"))
