"""One table of tests over all measures: the definition, 40 digits, brute force, 0/0, the spread."""

import itertools
import math
from functools import partial

import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import (
    balanced_accuracy_score,
    cohen_kappa_score,
    matthews_corrcoef,
    precision_score,
    recall_score,
)

import argmaxf
from argmaxf import (
    ProbabilitySketch,
    empirical_f_curve,
    expected_f,
    expected_f_curve,
    f_interval,
    maximize_empirical_f,
    maximize_expected_f,
)
from argmaxf.empirical.interval import f_difference
from argmaxf.measures import (
    MCC,
    MEASURES,
    BalancedAccuracy,
    Coefficients,
    FBeta,
    FowlkesMallows,
    IoU,
    Jaccard,
    Kappa,
    Measure,
    Ratio,
    Tversky,
    as_measure,
)
from tests.formulas import ALL, COUNTED, FORMULAS
from tests.judges import best_k, curve_40_digits, definition, families, value

everywhere = pytest.mark.parametrize("measure", FORMULAS, ids=repr)
every_measure = pytest.mark.parametrize("measure", [*FORMULAS, *COUNTED], ids=str)
probabilities = st.one_of(
    st.sampled_from([0.0, 0.5, 0.25, 1.0, 1 - 1e-12, 1e-12, 1e-6]), st.floats(0.0, 1.0)
)
small_sets = st.lists(probabilities, min_size=1, max_size=8)
zeros = st.sampled_from([0.0, 0.5, 1.0])


def test_every_registered_measure_is_in_the_table():
    assert set(MEASURES.values()) <= {type(measure) for measure in (*FORMULAS, *COUNTED)}
    for name, kind in MEASURES.items():
        assert isinstance(as_measure(name), kind)


def test_f1_is_a_name_of_f_beta_with_beta_one():
    assert as_measure("f1") == FBeta(1.0)
    with pytest.raises(ValueError, match="measure='f1' has no beta, got beta=2"):
        as_measure("f1", 2)
    assert maximize_expected_f([0.9, 0.2], measure="f1").k == 1


@everywhere
@given(
    st.lists(st.tuples(probabilities, st.booleans()), min_size=1, max_size=7),
    zeros,
)
@settings(max_examples=40)
def test_mean_and_spread_equal_the_sum_over_all_label_vectors(measure, pairs, zero_division):
    p, selected = zip(*pairs, strict=True)
    formula = ALL[measure]
    mean, std = definition(p, selected, formula=formula, zero_division=zero_division)
    ours = expected_f(p, selected, measure=measure, zero_division=zero_division)
    assert ours.mean == pytest.approx(float(mean), rel=1e-12, abs=1e-300)
    assert ours.std == pytest.approx(float(std), rel=1e-9, abs=2e-14)


@everywhere
@pytest.mark.parametrize("name", ["beta(.5,5) n=30", "tiny", "zeros and ones", "near one"])
def test_whole_curve_and_optimum_equal_40_digits(name, measure):
    p = families()[name]
    truth = curve_40_digits(p, formula=ALL[measure], zero_division=0.5)
    curve = expected_f_curve(p, measure=measure, zero_division=0.5)
    worst = max(abs(float(c) - t) / t for c, t in zip(curve, truth, strict=True) if t > 1e-300)
    assert worst < 1e-12
    decision = maximize_expected_f(p, measure=measure, zero_division=0.5)
    assert decision.k == best_k(truth)
    assert abs(decision.expected / truth[decision.k] - 1) < 1e-12


@everywhere
@given(small_sets, zeros)
@example(p=[1.5e-48, 1.5e-48], zero_division=0.0)
@example(p=[7e-219, 7e-219], zero_division=0.0)
@settings(max_examples=40)
def test_no_draw_beats_the_optimum(measure, p, zero_division):
    truth = curve_40_digits(p, formula=ALL[measure], zero_division=zero_division)
    decision = maximize_expected_f(p, measure=measure, zero_division=zero_division)
    alike = p.count(max(p))  # Jaccard rises among equal items at the top, by p² if that is little
    best = best_k(truth[alike:]) + alike if isinstance(measure, Jaccard) else best_k(truth)
    assert decision.k == (best if truth[best] > truth[0] else best_k(truth))
    assert decision.expected == pytest.approx(float(truth[decision.k]), rel=1e-12, abs=1e-300)
    _, std = definition(p, decision.selected, formula=ALL[measure], zero_division=zero_division)
    assert decision.std == pytest.approx(float(std), rel=1e-9, abs=2e-14)


@everywhere
def test_no_other_set_is_better_than_the_top_k(measure):
    p = np.random.default_rng(3).random(7)
    best = maximize_expected_f(p, measure=measure)
    sets = itertools.product((False, True), repeat=p.size)
    values = [expected_f(p, chosen, measure=measure).mean for chosen in sets]
    assert best.expected == pytest.approx(max(values), rel=1e-13)


@everywhere
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.beta(0.5, 5, 20_000),
        lambda rng: np.r_[rng.beta(50, 5, 4_000), rng.beta(1, 500, 20_000)],
        lambda rng: rng.integers(0, 256, 20_000) / 255,
        lambda rng: 1 - rng.random(20_000) * 1e-9,
    ],
    ids=["beta", "two clusters", "8-bit", "near one"],
)
def test_large_sets_and_sketches_equal_the_whole_curve(measure, draw):
    p = draw(np.random.default_rng(1))
    curve = expected_f_curve(p, measure=measure)
    decision = maximize_expected_f(p, measure=measure)
    assert decision.expected == pytest.approx(curve.max(), rel=1e-12)
    assert curve[decision.k] == pytest.approx(curve.max(), rel=2e-14)
    spread = expected_f(p, decision.selected, measure=measure)
    assert spread == pytest.approx((decision.expected, decision.std), rel=1e-8)
    summary = ProbabilitySketch.from_array(p).decide(measure=measure)
    low, high = summary.bracket
    assert low <= decision.threshold <= high
    assert summary.expected == pytest.approx(curve[summary.k], rel=1e-12)


@everywhere
def test_rows_and_frames_decide_as_arrays_do(measure):
    p = np.random.default_rng(5).beta(0.5, 3, (30, 40)).round(2)
    rows = maximize_expected_f(p, measure=measure, average="samples", ties="together")
    alone = [maximize_expected_f(row, measure=measure, ties="together") for row in p]
    assert rows.k.tolist() == [each.k for each in alone]
    frame = pl.DataFrame({"p": p.ravel(), "row": np.repeat(np.arange(30), 40)})
    decided = argmaxf.decide(frame, "p", by="row", measure=measure, ties="together")
    labels = decided["label"].to_numpy()
    np.testing.assert_array_equal(labels.reshape(p.shape), rows.selected)


counted = st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=1, max_size=12)


@every_measure
@given(counted, st.booleans(), zeros)
@settings(max_examples=40)
def test_the_best_cut_equals_brute_force(measure, items, weighted, zero_division):
    y, score = (np.array(column) for column in zip(*items, strict=True))
    weight = 0.5 + np.arange(len(y)) / 8 if weighted else np.ones(len(y))  # sums are exact

    def of(cut):
        tp, k, s, n = (weight[mask].sum() for mask in (cut & y, cut, y, y | True))
        tp, k, s, n = (mpmath.mpf(float(each)) for each in (tp, k, s, n))
        formula = ALL[measure]
        return float(value(formula, tp, k, s, n, zero_division))

    cuts = [score >= edge for edge in (*np.unique(score), math.inf)]
    given_weight = weight if weighted else None
    options = {"measure": measure, "sample_weight": given_weight, "zero_division": zero_division}
    best = maximize_empirical_f(y, score.astype(float), **options)
    assert best.value == pytest.approx(max(map(of, cuts)), abs=1e-12)
    assert of(score >= best.threshold) == pytest.approx(best.value, abs=1e-12)
    curve = empirical_f_curve(y, score.astype(float), **options)
    for threshold, found in zip(curve.threshold, curve.value, strict=True):
        assert of(score >= threshold) == pytest.approx(found, abs=1e-12)


@every_measure
def test_zero_over_zero_is_the_callers_value_and_only_there(measure):
    formula = ALL[measure]
    for tp, k, s in [(0, 0, 0), (0, 0, 5), (0, 5, 0), (2, 5, 4)]:
        ours = measure.value(tp, k, s, 9, zero_division=0.25)
        assert ours == pytest.approx(float(value(formula, tp, k, s, 9, 0.25)))
    many = measure.value([0, 2], [0, 5], [0, 4], 9)
    assert many == pytest.approx([measure.value(0, 0, 0, 9), measure.value(2, 5, 4, 9)])


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=30))
def test_equal_to_scikit_learn_where_it_has_a_value(pairs):
    y, guess = np.array(pairs).T
    counts = (y & guess).sum(), guess.sum(), y.sum(), y.size
    if 0 < y.sum() < y.size:
        assert MCC().value(*counts) == pytest.approx(matthews_corrcoef(y, guess), abs=1e-12)
        assert BalancedAccuracy().value(*counts) == pytest.approx(balanced_accuracy_score(y, guess))
        assert Kappa().value(*counts) == pytest.approx(cohen_kappa_score(y, guess), abs=1e-12)
        if guess.any():
            rates = precision_score(y, guess) * recall_score(y, guess)
            assert FowlkesMallows().value(*counts) == pytest.approx(math.sqrt(rates))


def test_a_function_of_counts_is_a_measure():
    y, score = [0, 1, 1, 0], [0.1, 0.4, 0.8, 0.5]
    best = maximize_empirical_f(y, score, measure=lambda tp, k, s, n: tp - 2 * (k - tp))
    assert (best.k, best.value) == (1, 1.0)
    with pytest.raises(ValueError, match=r"not both; got .* and beta=2"):
        maximize_empirical_f(y, score, beta=2, measure=lambda tp, k, s, n: tp)


def test_names_as_people_write_them():
    names = [str(measure) for measure in (FBeta(), FBeta(0.5), FBeta(2, smooth=1), Jaccard())]
    assert names == ["F1", "F0.5", "F2 (smooth=1)", "Jaccard"]


def test_ratios_without_smoothing_share_their_limits():
    y, guess = [1, 1, 1, 0, 0, 0, 0, 1], [1, 1, 0, 0, 0, 0, 1, 1]
    f1, j = f_interval(y, guess), f_interval(y, guess, measure="jaccard")
    for side in ("low", "value", "high"):  # J = F1 / (2 - F1), and so for the limits
        f = getattr(f1, side)
        assert getattr(j, side) == pytest.approx(f / (2 - f))
    same = f_interval(y, guess, measure=Tversky(0.2, 0.8))  # F2
    assert vars(same) == pytest.approx(vars(f_interval(y, guess, beta=2)))
    barely = f_interval(y, guess, measure=FBeta(1, smooth=1e-9))
    assert vars(barely) == pytest.approx(vars(f1))
    assert f_difference(y, guess, y, measure="jaccard").value == pytest.approx(0.6 - 1)


class Accuracy(Measure):
    """A measure of counts that is no ratio of the family and may rise with false positives."""

    name = "accuracy"
    title = "accuracy"

    def fraction(self, tp, k, s, n):
        return n - k - s + 2 * tp, n


def test_other_measures_of_counts_are_exact_in_both_wings():
    rng = np.random.default_rng(0)
    score = rng.normal(size=200).round(1)
    y = rng.random(200) < 1 / (1 + np.exp(-2 * score))
    best = maximize_empirical_f(y, score, measure=Accuracy())
    every = [np.mean(y == (score >= cut)) for cut in (*np.unique(score), math.inf)]
    assert best.value == pytest.approx(max(every))
    p = rng.random(30)
    assert maximize_expected_f(p, measure=Accuracy()).k == np.count_nonzero(p > 0.5)
    guess = score > 0.3
    interval, a = f_interval(y, guess, measure=Accuracy()), np.mean(y == guess)
    assert interval.value == pytest.approx(a)  # a share of rows: its limits are known
    exact = binomtest(round(a * 200), 200).proportion_ci(0.95, method="exact")
    assert [interval.low, interval.high] == pytest.approx([exact.low, exact.high], abs=0.01)


class Steep(Ratio):
    """A ratio whose denominator falls by as much as one more item adds to it."""

    name = title = "steep"

    def coefficients(self, number=float):
        return Coefficients(number(1), number(-1), number(1))


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (
            "auc",
            r"one of 'f1', 'fbeta', .* or a function of the counts tp, k, s, n; got 'auc'",
        ),
        (3, "or a function of the counts tp, k, s, n; got 3"),
        (FBeta, r"got the class FBeta: write FBeta\(\)"),
        (Steep(), "coefficients from 0 to 1e300"),
    ],
)
def test_what_is_no_measure_is_refused(measure, message):
    with pytest.raises(ValueError, match=message):
        maximize_expected_f([0.5], measure=measure)


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match="beta must be positive and finite, got -1"):
        FBeta(-1)
    with pytest.raises(ValueError, match="smooth must be finite and not negative, got -1"):
        FBeta(1, smooth=-1)


@pytest.mark.parametrize("measure", [FBeta(1e9, smooth=1e-12), FBeta(1, smooth=1e-30), IoU(1e-21)])
def test_smoothing_too_small_to_be_computed_with_is_refused(measure):
    """The standard deviation of an empty prediction was 2786, and .497 is right."""
    for ask in (partial(expected_f, [0.5, 0.1], [0, 0]), partial(maximize_expected_f, [1e-3] * 9)):
        with pytest.raises(ValueError, match="must have a smoothing constant of 0, or of at least"):
            ask(measure=measure)


@pytest.mark.parametrize("measure", [FBeta(1e9, smooth=1e-2), FBeta(1, smooth=1e-20), IoU(1e-19)])
def test_small_smoothing_has_its_spread(measure):
    found = expected_f([0.5, 0.1], [False, False], measure=measure)
    mean, std = definition([0.5, 0.1], [False, False], formula=counts_of(measure))
    assert found == pytest.approx((float(mean), float(std)), rel=1e-9)


def counts_of(measure):
    """The measure's own fraction, with digits to spare."""
    c, b_in, b_out, s0, s1 = measure.coefficients(mpmath.mpf)
    return lambda t, k, s, n: (c * t + s0, k + b_in * t + b_out * (s - t) + s1)
