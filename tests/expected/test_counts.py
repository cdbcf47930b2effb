"""Measures whose expectation comes from the distributions of counts: MCC, G-mean, one's own."""

import itertools
import json
import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import matplotlib.pyplot as plt
import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import binom
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import argmaxf
from argmaxf import (
    AutoFClassifier,
    ExpectedFClassifier,
    ProbabilitySketch,
    ThresholdFClassifier,
    compare,
    expected_f,
    expected_f_curve,
    f_interval,
    maximize_empirical_f,
    maximize_expected_f,
    maximize_worst_case_f,
)
from argmaxf.cli.app import app
from argmaxf.cli.common import measure_named
from argmaxf.displays import EmpiricalFDisplay, ExpectedFDisplay
from argmaxf.expected.counts import MOST_ITEMS, general_curve, linear_curve, value_by_counts
from argmaxf.expected.every_size import best_gmean, sizes_allowed
from argmaxf.expected.sets import decide_large
from argmaxf.files.scored import ScoredFiles
from argmaxf.frames import decisions
from argmaxf.measures import MCC, BalancedAccuracy, GMean, Linear, Tversky, UserDefined
from argmaxf.measures.base import others
from argmaxf.problem import Problem
from tests.formulas import ALL, COUNTED, LINEAR, Worse
from tests.judges import all_label_vectors, curve_40_digits, definition, families, value


@dataclass(frozen=True)
class Informedness(Linear):
    """T / s - (k - T) / (n - s), a linear measure that the library does not have."""

    name: ClassVar[str] = "informedness"
    label: ClassVar[str] = "informedness"

    def fraction(self, tp, k, s, n):
        negatives = others(s, n)
        return tp * negatives - (k - tp) * s, s * negatives


INFORMEDNESS = Informedness()
COUNTED[INFORMEDNESS] = ALL[INFORMEDNESS] = lambda t, k, s, n: (
    mpmath.mpf(t) * (n - s) - (k - t) * s,
    s * (n - s),
)
LINEAR.append(INFORMEDNESS)
by_counts = pytest.mark.parametrize("measure", COUNTED, ids=str)
linear = pytest.mark.parametrize("measure", LINEAR, ids=str)
probabilities = st.one_of(
    st.sampled_from([0.0, 0.5, 0.25, 1.0, 1 - 1e-12, 1e-12, 1e-6]), st.floats(0.0, 1.0)
)
zeros = st.sampled_from([0.0, 0.5, 1.0])


def size_of(measure):
    """The formula of |m|: its mean is what an error of the mean of m is measured by."""

    def formula(t, k, s, n):
        above, below = ALL[measure](t, k, s, n)
        return abs(above), below

    return formula


def truth_of(measure, p, zero_division):
    """f_0 … f_n in 40 digits, the best k, and the size of the terms."""
    curve = curve_40_digits(p, formula=ALL[measure], zero_division=zero_division)
    size = max(curve_40_digits(p, formula=size_of(measure), zero_division=zero_division))
    top = max(curve) - mpmath.mpf("1e-50") * size
    return SimpleNamespace(
        curve=curve, k=next(k for k, f in enumerate(curve) if f >= top), size=float(size)
    )


def assert_best(decision, truth, measure):
    """The very k; for a function of doubles, a k that no double tells from it."""
    if isinstance(measure, UserDefined):
        assert truth.curve[decision.k] >= max(truth.curve) - 2e-13 * truth.size
    else:
        assert decision.k == truth.k
    error = abs(decision.expected - truth.curve[decision.k])
    assert error <= 1e-12 * truth.size + 1e-300


@by_counts
@given(st.lists(st.tuples(probabilities, st.booleans()), min_size=1, max_size=6), zeros)
@settings(max_examples=12)
def test_mean_and_spread_equal_the_sum_over_all_label_vectors(measure, pairs, zero_division):
    p, selected = zip(*pairs, strict=True)
    mean, std = definition(p, selected, formula=ALL[measure], zero_division=zero_division)
    size, _ = definition(p, selected, formula=size_of(measure), zero_division=zero_division)
    ours = expected_f(p, selected, measure=measure, zero_division=zero_division)
    assert abs(ours.mean - mean) <= 1e-13 * size + 1e-300
    assert ours.std == pytest.approx(float(std), rel=1e-9, abs=2e-14)


@by_counts
@pytest.mark.parametrize("name", ["beta(.5,5) n=10", "tiny", "zeros and ones", "near one"])
def test_whole_curve_and_optimum_equal_40_digits(name, measure):
    p = families()[name]
    truth = truth_of(measure, p, 0.5)
    curve = expected_f_curve(p, measure=measure, zero_division=0.5)
    assert max(abs(ours - f) for ours, f in zip(curve, truth.curve, strict=True)) <= (
        1e-13 * truth.size
    )
    assert_best(maximize_expected_f(p, measure=measure, zero_division=0.5), truth, measure)


@by_counts
@given(st.lists(probabilities, min_size=1, max_size=7), zeros)
@example(p=[1.5e-48, 1.5e-48], zero_division=0.0)
@example(p=[0.9, 0.5, 0.1], zero_division=0.0)  # k = 1 and k = 2 are the same by symmetry
@example(p=[0.3] * 7, zero_division=0.0)  # MCC is 0 whatever is selected
@settings(max_examples=15)
def test_no_draw_beats_the_optimum(measure, p, zero_division):
    decision = maximize_expected_f(p, measure=measure, zero_division=zero_division)
    assert_best(decision, truth_of(measure, p, zero_division), measure)


@pytest.mark.parametrize("n", [10, 100])
def test_a_size_and_its_mirror_image_are_a_tie(n):
    """Where p and 1 - p are the same items, MCC of k and of n - k items is the same."""
    for seed in range(90):
        rng = np.random.default_rng(seed)
        away = rng.choice(np.round(3e-3 * rng.random(3) * 2**50) / 2**50, n // 2)
        assert maximize_expected_f(np.r_[0.5 + away, 0.5 - away], measure="mcc").k <= n / 2


def test_faint_differences_are_no_ties():
    """Of two levels MCC takes all of the upper one, however near they are."""
    p = np.repeat([0.5 + 1e-9, 0.5 - 1e-9], 1200)
    assert maximize_expected_f(p, measure="mcc").k == 1200


def test_ties_of_the_smallest_numbers():
    """Of equal items balanced accuracy is ½ or 0/0, whatever is selected."""
    assert maximize_expected_f([5e-324] * 5, measure="balanced_accuracy").k == 0


@linear
@pytest.mark.parametrize("n", [1, 40, 6000])
def test_of_all_items_the_spread_is_that_of_the_positives_alone(measure, n):
    """T is S: that of kappa is 0, of balanced accuracy the chance of one class alone."""
    p = np.linspace(0.2, 0.9, n)
    mass = np.ones(1)
    for each in p:
        mass = np.r_[mass * (1 - each), 0.0] + np.r_[0.0, mass * each]
    f = np.array([float(value(ALL[measure], s, n, s, n, 0.5)) for s in range(n + 1)])
    std = np.sqrt(mass @ (f - mass @ f) ** 2)
    options = {"measure": measure, "zero_division": 0.5}
    assert expected_f(p, np.ones(n), **options).std == pytest.approx(std, rel=1e-9, abs=1e-10)
    together = maximize_expected_f(p, by=["all"] * n, min_selected=n, **options).overall
    assert together.std == pytest.approx(std, rel=1e-9, abs=1e-10)


def every_value(measure, n, zero_division):
    """The measure by its formula for all counts, as a table of tp, k and s."""
    table = np.zeros((n + 1, n + 1, n + 1))
    for t, k, s in itertools.product(range(n + 1), repeat=3):
        if max(0, k + s - n) <= t <= min(k, s):
            table[t, k, s] = value(ALL[measure], t, k, s, n, zero_division)
    return table


@by_counts
@pytest.mark.parametrize("n", [3, 10])
def test_no_set_of_all_is_better_over_all_label_vectors(measure, n):
    p = np.random.default_rng(n).random(n)
    vectors = all_label_vectors(n)  # as labels, and as sets
    mass = np.prod(np.where(vectors, p, 1 - p), axis=1)
    true, size = vectors @ vectors.T, vectors.sum(axis=1)
    expected = every_value(measure, n, 0.0)[true, size[:, None], size] @ mass
    best = maximize_expected_f(p, measure=measure)
    chosen = int(np.flatnonzero((vectors == best.selected).all(axis=1))[0])
    assert expected[chosen] == pytest.approx(expected.max(), rel=1e-13)
    assert best.expected == pytest.approx(expected.max(), rel=1e-12)


@by_counts
def test_rows_columns_and_frames_decide_as_arrays_do(measure):
    p = np.random.default_rng(5).beta(0.5, 3, (8, 30)).round(2)
    rows = maximize_expected_f(p, measure=measure, average="samples", ties="together")
    alone = [maximize_expected_f(row, measure=measure, ties="together") for row in p]
    assert rows.k.tolist() == [each.k for each in alone]
    columns = maximize_expected_f(p.T, measure=measure, average="macro", ties="together")
    np.testing.assert_array_equal(columns.selected, rows.selected.T)
    frame = pl.DataFrame({"p": p.ravel(), "row": np.repeat(np.arange(8), 30)})
    decided = argmaxf.decide(frame, "p", by="row", measure=measure, ties="together")
    labels = decided["label"].to_numpy()
    np.testing.assert_array_equal(labels.reshape(p.shape), rows.selected)


@linear
def test_all_joint_counts_say_the_same_for_500_items(measure):
    p = np.sort(np.random.default_rng(7).beta(0.5, 3, 500))[::-1].copy()
    reference = general_curve(p, Problem.of(measure=measure))
    np.testing.assert_allclose(linear_curve(p, measure, 0.0), reference, rtol=0, atol=1e-13)
    decision = maximize_expected_f(p, measure=measure)
    assert decision.k == np.argmax(reference)
    assert expected_f(p, decision.selected, measure=measure).std == pytest.approx(
        decision.std, rel=1e-9
    )


DRAWS = {
    "beta": lambda rng, n: rng.beta(0.5, 5, n),
    "rare": lambda rng, n: rng.beta(0.5, 1000, n),
    "few unsure": lambda rng, n: rng.beta(0.01, 10, n),
    "mostly positive": lambda rng, n: rng.beta(5, 0.5, n),
    "two clusters": lambda rng, n: np.r_[rng.beta(50, 5, n // 5), rng.beta(1, 500, n - n // 5)],
    "8-bit": lambda rng, n: rng.integers(0, 256, n) / 255,
    "near one": lambda rng, n: 1 - rng.random(n) * 1e-9,
    "half are 0": lambda rng, n: np.r_[np.zeros(n // 2), rng.beta(0.5, 5, n - n // 2)],
}


@linear
@pytest.mark.parametrize("draw", DRAWS)
def test_the_search_in_summaries_equals_every_size_looked_at(measure, draw):
    p = DRAWS[draw](np.random.default_rng(1), 6_000)
    descending = np.sort(p)[::-1].copy()
    curve = linear_curve(descending, measure, 0.0)
    decision = decide_large(p, Problem.of(1.0, measure))
    assert curve[decision.k] == pytest.approx(curve.max(), rel=1e-13, abs=1e-16)
    assert abs(decision.k - np.argmax(curve)) <= (2 if draw == "8-bit" else 0)
    assert decision.expected == pytest.approx(curve.max(), rel=1e-11)
    k = decision.k
    spread = value_by_counts(descending[:k], descending[k:], Problem.of(measure=measure)).std
    assert decision.std == pytest.approx(spread, rel=1e-7)


@linear
def test_summaries_bracket_the_threshold(measure):
    p = np.random.default_rng(2).beta(0.5, 5, 20_000)
    decision = maximize_expected_f(p, measure=measure)
    sketch = ProbabilitySketch.from_array(p)
    summary = sketch.decide(measure=measure)
    low, high = summary.bracket
    assert low <= decision.threshold <= high
    assert summary.expected <= decision.expected * (1 + 1e-12)
    assert summary.expected == pytest.approx(decision.expected, rel=1e-3)
    of_cut = sketch.expected_f(k=summary.k, measure=measure)
    assert of_cut == pytest.approx((summary.expected, summary.std), rel=1e-9)


@pytest.mark.parametrize("measure", [MCC(), BalancedAccuracy()], ids=str)
@pytest.mark.parametrize("draw", ["beta", "few unsure", "mostly positive"])
def test_the_curve_of_many_items_equals_the_sum_over_the_window(measure, draw):
    p = DRAWS[draw](np.random.default_rng(3), 17_000)
    curve = expected_f_curve(p, measure=measure)
    truth = linear_curve(np.sort(p)[::-1].copy(), measure, 0.0)
    np.testing.assert_allclose(curve[:-1], truth[:-1], rtol=0, atol=2e-12)
    assert curve[-1] == pytest.approx(truth[-1], abs=1e-12)


@linear
def test_large_segments_and_files_decide_as_arrays_do(measure, tmp_path):
    p = np.random.default_rng(8).beta(0.5, 5, 30_000).round(4)
    p[:3_000] = 0.0
    alone = maximize_expected_f(p, measure=measure, ties="together")
    frame = pl.DataFrame({"p": np.r_[p, p[:20_000]], "part": np.repeat([0, 1], [30_000, 20_000])})
    found = decisions(frame, "p", by="part", measure=measure)
    assert found[(0,)].k == alone.k
    assert found[(1,)].k == maximize_expected_f(p[:20_000], measure=measure, ties="together").k
    pl.DataFrame({"p": p}).write_parquet(tmp_path / "p.parquet")
    files = ScoredFiles([str(tmp_path / "p.parquet")], "p")
    read = files.decide(Problem.of(measure=measure))[()]
    assert (read.k, read.threshold) == (alone.k, alone.threshold)


@pytest.mark.parametrize("measure", [*LINEAR, GMean()], ids=str)
def test_simulated_labels_have_this_mean_and_spread(measure):
    rng = np.random.default_rng(3)
    p = rng.beta(0.5, 5, 20_000 if isinstance(measure, Linear) else 2_000)
    decision = maximize_expected_f(p, measure=measure)
    draws = 400
    y = rng.random((draws, p.size)) < p
    tp, s = y[:, decision.selected].sum(axis=1), y.sum(axis=1)
    values = measure.value(tp, decision.k, s, p.size)
    assert abs(values.mean() - decision.expected) < 4.5 * decision.std / math.sqrt(draws)
    assert values.std() == pytest.approx(decision.std, rel=0.15)


def test_budgets_and_promises_hold_for_every_measure():
    p = np.random.default_rng(4).beta(0.5, 3, 60)
    for measure in COUNTED:
        curve = expected_f_curve(p, measure=measure)
        few = maximize_expected_f(p, measure=measure, max_selected=3)
        assert few.expected == pytest.approx(curve[:4].max())
        many = maximize_expected_f(p, measure=measure, min_selected=40)
        assert many.expected == pytest.approx(curve[40:].max())
        kept = maximize_expected_f(p, measure=measure, min_precision=0.5, confidence_level=0.8)
        assert kept.guarantee.probability >= 0.8


def test_a_measure_that_falls_with_true_positives_is_refused_with_the_counts():
    with pytest.raises(ValueError, match=r"falls from 1 at tp=0 to 0 at tp=1, where k=1, s=1, n="):
        maximize_expected_f([0.5, 0.2, 0.1], measure=lambda tp, k, s, n: 1 - tp)


def test_an_own_function_may_be_written_for_numbers():
    def share(tp, k, s, n):
        return 0.0 if tp == 0 else math.sqrt(tp / max(k, s))

    def of_arrays(tp, k, s, n):
        return np.sqrt(np.divide(tp, np.maximum(k, s), where=tp > 0, out=np.zeros_like(tp + s)))

    p = np.random.default_rng(0).random(12)
    np.testing.assert_allclose(
        expected_f_curve(p, measure=share), expected_f_curve(p, measure=of_arrays), rtol=1e-14
    )


def test_zero_over_zero_of_an_own_function_is_the_callers_value():
    p = [0.2, 0.1]
    value = expected_f(p, [0, 0], measure=lambda tp, k, s, n: tp / k, zero_division=0.25)
    assert value == (0.25, 0.0)


def guarded(tp, k, s, n):
    """Right for numbers; arrays never raise what it waits for."""
    try:
        return tp / s
    except ZeroDivisionError:
        return 1.0


def one_answer_for_all(tp, k, s, n):
    """Right for numbers; one s = 0 makes a whole array 0."""
    return tp / s if np.all(s > 0) else 0.0


def whole_array_at_once(tp, k, s, n):
    return np.where(np.all(s > 0), tp / np.maximum(s, 1), 0.0)


def numbers_only(tp, k, s, n):
    assert isinstance(tp, float)
    return tp / s if s else 0.0


def arrays_only(tp, k, s, n):
    value, some = np.zeros(tp.shape), s > 0
    value[some] = tp[some] / s[some]
    return value


@pytest.mark.parametrize(
    ("function", "nothing"),
    [
        (guarded, 1),
        (one_answer_for_all, 0),
        (whole_array_at_once, 0),
        (numbers_only, 0),
        (arrays_only, 0),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_a_function_says_of_numbers_is_the_measure(function, nothing):
    p = [0.9, 0.5, 0.3, 0.1]

    def recall(t, k, s, n):
        return (t, s) if s else (nothing, 1)

    for chosen in itertools.product([False, True], repeat=4):
        mean, std = definition(p, chosen, formula=recall)
        ours = expected_f(p, chosen, measure=function)
        assert ours == (pytest.approx(float(mean)), pytest.approx(float(std), abs=1e-14))
    curve = curve_40_digits(p, formula=recall)
    decision = maximize_expected_f(p, measure=function)
    assert decision.k == 4
    assert decision.expected == pytest.approx(float(curve[4]), rel=1e-13)
    found = maximize_empirical_f([0, 0], [0.4, 0.2], measure=function)
    assert (found.k, found.value) == (0, nothing)


def takes_integers(tp, k, s, n):
    assert isinstance(tp, int)
    return tp


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda tp, k, s, n: tp + np.inf, "must be finite, or NaN for 0/0, got inf at tp=0, k=0"),
        (
            lambda tp, k: tp,
            r"got TypeError \(.*takes 2 positional arguments.*\) from it at tp=0, k=0",
        ),
        (lambda tp, k, s, n: np.zeros(3), r"one real number, got array.* at tp=0, k=0, s="),
        (lambda tp, k, s, n: "high", "one real number, got 'high' at tp=0, k=0, s="),
        (lambda tp, k, s, n: None, "one real number, got None at tp=0, k=0, s="),
        (lambda tp, k, s, n: tp + 1j, "one real number, got 1j at tp=0, k=0, s="),
        (
            lambda tp, k, s, n: math.nan,
            "got NaN at the counts asked for and at tp=1, k=3, s=2, n=7",
        ),
        (lambda tp, k, s, n: tp * np.nan, "got NaN at the counts asked for and at tp=1, k=3, s=2,"),
        (lambda tp, k, s, n: tp.sum(), r"got AttributeError \(.*'sum'\) from it at tp=0, k=0, s="),
        (takes_integers, "tp, k, s, n, got AssertionError.* from it at tp=0, k=0, s="),
    ],
    ids=["inf", "two", "shape", "text", "None", "complex", "nan", "nans", "sum", "integers"],
)
def test_bad_functions_are_refused(function, message):
    with pytest.raises(ValueError, match=message):
        maximize_expected_f([0.5, 0.2], measure=function)
    with pytest.raises(ValueError, match=message):
        maximize_empirical_f([0, 1, 0], [0.5, 0.2, 0.1], measure=function)


def best_without_zeros(p, formula, zero_division, least, recall=None):
    """The highest mean over all sets of at least so many items, all of them with p > 0."""
    best = -math.inf
    possible = [each > 0 for each in p]
    for chosen in itertools.product(*([False, True] if each else [False] for each in possible)):
        if sum(chosen) >= least and (
            recall is None or recall_probability(p, chosen, recall) >= 0.5
        ):
            mean, _ = definition(p, chosen, formula=formula, zero_division=zero_division)
            best = max(best, float(mean))
    return best


def recall_probability(p, chosen, recall):
    """The probability that a set has this recall."""
    kept, _ = definition(p, chosen, formula=lambda t, k, s, n: (int(t >= recall * s), 1))
    return float(kept)


@pytest.mark.parametrize("p", [[0.5, 0.4, 0.0], [0.3, 0.0, 0.9, 0.0, 0.1]], ids=["three", "five"])
@pytest.mark.parametrize("measure", ALL, ids=str)
def test_items_with_probability_0_are_never_selected(measure, p):
    zeros = np.array(p) == 0.0
    for least, recall in [(0, None), (1, None), (2, None), (0, 0.6), (2, 0.6)]:
        promise = {} if recall is None else {"min_recall": recall, "confidence_level": 0.5}
        options = {"measure": measure, "zero_division": 1.0, "min_selected": least, **promise}
        decision = maximize_expected_f(p, **options)
        assert not decision.selected[zeros].any()
        assert decision.k == decision.selected.sum() >= least
        best = best_without_zeros(p, ALL[measure], 1.0, least, recall)
        assert decision.expected == pytest.approx(best, rel=1e-12)


def test_many_items_with_probability_0_are_not_selected_either():
    p = np.random.default_rng(0).beta(0.5, 5, 20_000)
    p[:100] = 0.0
    decision = maximize_expected_f(p, measure="mcc", zero_division=1.0, min_selected=19_900)
    assert (decision.k, decision.selected[:100].any()) == (19_900, False)


@pytest.mark.parametrize(
    "promise", [{}, {"min_recall": 0.5, "confidence_level": 0.5}], ids=["free", "promise"]
)
def test_more_items_than_can_be_positive_are_refused(promise):
    with pytest.raises(ValueError, match="min_selected=2 is more than the 1 item with a prob"):
        maximize_expected_f([0.3, 0.0, 0.0], measure="mcc", min_selected=2, **promise)


def test_gmean_of_few_items_is_its_own_bound():
    decision = maximize_expected_f([0.5, 0.2, 0.1], measure="gmean")
    assert decision.bound == decision.expected


def test_a_promise_names_the_measure():
    p = [0.9, 0.8, 0.5, 0.2]
    options = {"min_precision": 0.6, "confidence_level": 0.7}
    assert str(maximize_expected_f(p, measure="mcc", **options).guarantee).endswith("expected MCC")
    assert str(maximize_expected_f(p, **options).guarantee).endswith("expected F")
    parted = maximize_expected_f(p, measure="jaccard", by=["a", "a", "b", "b"], **options)
    assert str(parted.overall.guarantee).endswith("expected Jaccard")


@pytest.mark.parametrize("measure", ["fbeta", "mcc"])
def test_score_is_accuracy_whatever_is_maximized(data, measure):
    X, y = data
    for kind in (ThresholdFClassifier, ExpectedFClassifier):
        model = kind(LogisticRegression(), measure=measure).fit(X, y)
        assert model.score(X, y) == np.mean(model.predict(X) == y)


@pytest.mark.parametrize("measure", [Tversky(2.0, 1.0), Worse()], ids=str)
def test_too_many_items_for_all_counts_are_refused(measure):
    many = np.full(20_000, 0.25)
    with pytest.raises(ValueError, match=f"at most {MOST_ITEMS:,} items; got 20,000"):
        maximize_expected_f(many, measure=measure)


def gmean_by_the_bound(p, **options):
    """The set of highest bound, as it is decided for many items."""
    falling, problem = np.sort(p)[::-1].copy(), Problem.of(1.0, "gmean", **options)
    return best_gmean(falling, np.flatnonzero(sizes_allowed(falling, problem)), problem)


@pytest.mark.parametrize("shape", [(0.5, 5), (5, 0.5), (0.1, 10)], ids=str)
def test_gmean_of_many_items_comes_with_a_bound_that_no_set_exceeds(shape):
    p = np.random.default_rng(0).beta(*shape, 1_500)
    curve = general_curve(np.sort(p)[::-1].copy(), Problem.of(measure=GMean()))
    found = gmean_by_the_bound(p)
    assert found.expected == pytest.approx(curve[found.k], rel=1e-12)
    assert found.expected <= curve.max() * (1.0 + 1e-12)
    assert curve.max() <= found.bound
    assert found.bound - found.expected < 1e-3
    assert curve.max() - found.expected < 1e-5


def gmean_of_equal_items(p, n, k):
    """The sum over all counts of positives inside and outside, both binomial."""
    t, r = np.arange(k + 1)[:, None], np.arange(n - k + 1)[None, :]
    mass = binom.pmf(t, k, p) * binom.pmf(r, n - k, p)
    both = (t + r > 0) & (t + r < n)
    s = np.where(both, t + r, 1)
    return float((mass * both * np.sqrt(t / s * (n - k - r) / (n - s))).sum())


@pytest.mark.parametrize("p", [0.5, 0.01, 0.99, 0.3])
def test_gmean_parts_equal_items(p):
    n = 150
    curve = [gmean_of_equal_items(p, n, k) for k in range(n + 1)]
    found = gmean_by_the_bound(np.full(n, p))
    assert found.expected == pytest.approx(max(curve), rel=1e-10)
    assert found.bound >= max(curve)
    together = gmean_by_the_bound(np.full(n, p), ties="together")
    assert together.k in (0, n)
    many = maximize_expected_f(np.full(6_000, p), measure="gmean")
    assert many.expected == pytest.approx(gmean_of_equal_items(p, 6_000, many.k), rel=1e-9)
    assert 0.995 * many.bound < many.expected <= many.bound


@pytest.mark.parametrize("p", [0.5, 0.1, 0.9])
def test_the_bound_of_gmean_is_as_near_with_a_budget(p):
    """With a tenth selected a tenth of the positives is found, and nine tenths of the others."""
    few = maximize_expected_f(np.full(6_000, p), measure="gmean", max_selected=600)
    many = maximize_expected_f(np.full(6_000, p), measure="gmean", min_selected=5_400)
    for found, k in ((few, 600), (many, 5_400)):
        assert found.k == k
        assert found.expected <= found.bound
        assert found.bound == pytest.approx(0.3, rel=1e-3)


@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("zero_division", [0.0, 1.0])
def test_gmean_of_many_certain_items_selects_none(p, zero_division):
    found = maximize_expected_f(np.full(6_000, p), measure="gmean", zero_division=zero_division)
    assert found.k == 0
    assert found.expected == pytest.approx(zero_division)


@pytest.mark.parametrize("measure", [*LINEAR, GMean()], ids=str)
@pytest.mark.parametrize("value", [0.0, 1.0, 0.4])
def test_many_equal_items(measure, value):
    p = np.full(20_000, value)
    decision = maximize_expected_f(p, measure=measure)
    all_of_them = expected_f(p, np.ones(p.size, bool), measure=measure).mean
    nothing = expected_f(p, np.zeros(p.size, bool), measure=measure).mean
    assert decision.expected >= max(all_of_them, nothing) - 1e-12
    assert np.count_nonzero(decision.selected) == decision.k


@by_counts
@pytest.mark.parametrize("p", [[0.3], [0.0], [1.0], [0.0] * 5, [1.0] * 5, [0.5] * 6], ids=str)
@pytest.mark.parametrize("zero_division", [0.0, 1.0])
def test_degenerate_sets(measure, p, zero_division):
    decision = maximize_expected_f(p, measure=measure, zero_division=zero_division)
    assert_best(decision, truth_of(measure, p, zero_division), measure)


def test_where_only_ratios_will_do_is_said():
    with pytest.raises(ValueError, match="sparse p is for ratios"):
        maximize_expected_f(csr_array([[0.1, 0.2]]), measure="mcc", average="samples")
    with pytest.raises(ValueError, match="denominator falls with true positives"):
        maximize_expected_f(csr_array([[0.1, 0.2]]), measure=Tversky(2, 0.2), average="samples")
    with pytest.raises(ValueError, match=r"dense here, got a csr_array: give p\.toarray\(\)"):
        expected_f(csr_array([[0.1, 0.2]]), [True, False])
    with pytest.raises(ValueError, match="must be a ratio that is linear in the counts"):
        maximize_worst_case_f([0.1, 0.2], [0.2, 0.4], measure="mcc")


@pytest.mark.slow
@linear
@pytest.mark.parametrize("draw", ["beta", "rare", "mostly positive", "two clusters"])
def test_no_size_of_a_million_items_is_better(measure, draw):
    p = DRAWS[draw](np.random.default_rng(9), 1_000_000)
    assert maximize_expected_f(p, measure=measure).k == np.argmax(
        expected_f_curve(p, measure=measure)
    )


def test_a_million_items_take_the_search():
    p = np.random.default_rng(6).beta(0.5, 5, 1_000_000)
    f = {}
    for measure in (MCC(), BalancedAccuracy()):
        decision = maximize_expected_f(p, measure=measure)
        assert np.count_nonzero(decision.selected) == decision.k
        f[measure] = decision
    # balanced accuracy adds up over items, so its best set has all whose share is above that of
    # the average negative: E[y/S] > E[(1-y)/(n-S)], near p / μ = (1-p) / (n-μ), p = the mean
    assert f[BalancedAccuracy()].threshold == pytest.approx(p.mean(), rel=1e-4)


@pytest.fixture(scope="module")
def data():
    return make_classification(400, weights=[0.8], flip_y=0.1, random_state=0)


END_TO_END = ["mcc", "gmean", lambda tp, k, s, n: tp / np.maximum(k + s, 1)]


@pytest.mark.parametrize("measure", END_TO_END, ids=["mcc", "gmean", "own"])
def test_classifiers_and_the_comparison_know_every_measure(data, measure):
    X, y = data
    expected = ExpectedFClassifier(LogisticRegression(), measure=measure).fit(X, y)
    p = expected.predict_proba(X)[:, 1]
    assert expected.predict(X).sum() == maximize_expected_f(p, measure=measure).k
    tuned = ThresholdFClassifier(LogisticRegression(), measure=measure, cv=None).fit(X, y)
    score = LogisticRegression().fit(X, y).decision_function(X)
    best = maximize_empirical_f(y, score, measure=measure)
    assert tuned.predict(X).sum() == best.k
    found = compare(X, y, LogisticRegression(), measure=measure)
    assert {"threshold 0.5", "tuned threshold", "expected F"} <= set(found.scores)
    auto = AutoFClassifier(LogisticRegression(), measure=measure).fit(X, y)
    assert auto.predict(X).shape == y.shape


def test_displays_draw_every_measure(data):
    X, y = data
    p = LogisticRegression().fit(X, y).predict_proba(X)[:, 1]
    shown = ExpectedFDisplay.from_predictions(p, measure="mcc")
    assert shown.decision.k == maximize_expected_f(p, measure="mcc").k
    assert shown.plot().ax_.get_ylabel().startswith("MCC")
    found = EmpiricalFDisplay.from_predictions(y, p, measure="gmean")
    assert found.best.value == maximize_empirical_f(y, p, measure="gmean").value
    plt.close("all")


def test_the_command_decides_and_compares_by_mcc(tmp_path, data):
    X, y = data
    p = LogisticRegression().fit(X, y).predict_proba(X)[:, 1]
    pl.DataFrame({"p": p}).write_parquet(tmp_path / "p.parquet")
    run = CliRunner().invoke(
        app, ["decide", str(tmp_path / "p.parquet"), "-p", "p", "--measure", "mcc", "--json"]
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.output)["k"] == maximize_expected_f(p, measure="mcc").k
    pl.DataFrame(X).with_columns(y=y).write_csv(tmp_path / "t.csv")
    run = CliRunner().invoke(
        app, ["compare", str(tmp_path / "t.csv"), "--target", "y", "--measure", "mcc", "--json"]
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.output)["measure"] == "MCC"


def decided(path, *words):
    """What `argmaxf decide` says of a file."""
    return CliRunner().invoke(app, ["decide", str(path), "-p", "p", *words])


def test_the_command_names_the_measure(tmp_path):
    p, path = [0.9, 0.6, 0.4, 0.1], tmp_path / "p.csv"
    pl.DataFrame({"p": p}).write_csv(path)
    assert "E[MCC] ± std" in decided(path, "--measure", "mcc").output
    assert "E[F] ± std" in decided(path).output
    promise = decided(
        path, "--measure", "mcc", "--min-recall", "0.5", "--confidence-level", "0.6"
    ).output
    assert "expected MCC" in promise
    read = json.loads(decided(path, "--measure", "tversky:0.3,0.7", "--json").output)
    best = maximize_expected_f(p, measure=Tversky(0.3, 0.7))
    assert (read["measure"], read["k"], read["beta"]) == ("Tversky(0.3, 0.7)", best.k, 1.0)
    assert read["expected"] == pytest.approx(best.expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("auc", "must be one of f1, fbeta, .*as in tversky:0.3,0.7; got 'auc'"),
        ("f1:2", "f1 takes no parameters; got 'f1:2'"),
        ("mcc:1", "--measure mcc takes no parameters; got 'mcc:1'"),
        ("tversky:a", "--measure tversky takes numbers for a, b; got 'tversky:a'"),
        ("tversky:1,2,3", "--measure tversky takes numbers for a, b; got 'tversky:1,2,3'"),
        ("tversky:-1", "a must be positive and finite, got -1.0"),
    ],
)
def test_what_the_command_cannot_measure_is_refused(text, message):
    with pytest.raises(ValueError, match=message) as refused:
        measure_named(text)
    assert "Measure;" not in str(refused.value)


def test_intervals_of_mcc_hold_the_true_value_as_often_as_they_say():
    rng = np.random.default_rng(0)
    rates = np.array([0.2, 0.05, 0.1, 0.65])  # hits, false, missed, the rest
    truth = np.array([1, 0, 1, 0], bool), np.array([1, 1, 0, 0], bool)
    limit = MCC().value(rates[0], rates[:2].sum(), rates[0] + rates[2], 1.0)
    held = 0
    for _ in range(300):
        kind = rng.choice(4, 400, p=rates)
        interval = f_interval(truth[0][kind], truth[1][kind], measure="mcc")
        held += interval.low <= limit <= interval.high
    assert 0.91 < held / 300 < 0.985


@pytest.mark.parametrize(
    "kind",
    [pl.DataFrame, pl.LazyFrame, pd.DataFrame, pa.table],
    ids=["polars", "lazy", "pandas", "arrow"],
)
@pytest.mark.parametrize(
    "measure",
    ["gmean", Tversky(1.5, 0.5), lambda tp, k, s, n: tp - 0.4 * (k - tp)],
    ids=["gmean", "tversky", "own"],
)
@pytest.mark.parametrize("options", [{}, {"max_selected": 4}, {"prior": (0.2, 0.1)}], ids=str)
def test_a_frame_of_one_column_takes_measures_that_need_the_items(kind, measure, options):
    p = np.random.default_rng(5).beta(0.5, 2, 40)
    moved, limits = p, dict(options)
    if rates := limits.pop("prior", None):
        moved = argmaxf.shift_prior(p, train_rate=rates[0], deploy_rate=rates[1])
    exact = maximize_expected_f(moved, measure=measure, **limits)
    found = argmaxf.decide(kind({"p": p}), "p", measure=measure, **options)
    if isinstance(found, pl.LazyFrame):
        found = found.collect()
    np.testing.assert_array_equal(np.asarray(found["label"]), exact.selected)


def test_a_lazy_frame_of_many_items_is_decided_as_the_array_is():
    for n in (MOST_ITEMS + 1, 20_000):
        p = np.random.default_rng(0).beta(0.5, 5, n)
        (found,) = decisions(pl.LazyFrame({"p": p}), "p", measure="gmean").values()
        exact = maximize_expected_f(p, measure="gmean")
        assert (found.k, found.threshold, found.expected) == (
            exact.k,
            exact.threshold,
            exact.expected,
        )
    frame = pl.LazyFrame({"p": np.full(MOST_ITEMS + 1, 0.25)})
    with pytest.raises(ValueError, match="for at most 5,000 items; got 5,001"):
        argmaxf.decide(frame, "p", measure=lambda tp, k, s, n: tp)
    with pytest.raises(ValueError, match="at least one probability, got none"):
        argmaxf.decide(frame.head(0), "p", measure="gmean")


def test_gmean_of_large_rows_and_columns_has_a_bound_for_each():
    p = np.random.default_rng(3).beta(0.5, 5, (2, MOST_ITEMS + 1))
    alone = [maximize_expected_f(row, measure="gmean").bound for row in p]
    rows = maximize_expected_f(p, measure="gmean", average="samples")
    columns = maximize_expected_f(p.T, measure="gmean", average="macro")
    assert rows.bound.tolist() == columns.bound.tolist() == alone
    assert (rows.bound >= rows.expected).all()


@pytest.mark.parametrize("n", [MOST_ITEMS + 1, 17_000])
def test_gmean_of_large_segments_is_refused(n):
    with pytest.raises(ValueError, match=f"for at most 5,000 items; got {n:,}"):
        maximize_expected_f(np.full(n + 1, 0.25), by=np.arange(n + 1) == n, measure="gmean")


def test_a_comparison_leaves_out_what_cannot_decide_so_many_rows():
    X, y = make_classification(10_100, 4, weights=[0.9], random_state=0)
    options = {"measure": lambda tp, k, s, n: tp - 0.4 * (k - tp), "cv": 2}
    found = compare(X, y, LogisticRegression(), **options)
    assert list(found.scores) == ["threshold 0.5", "tuned threshold"]
    (note,) = [note for note in found.notes if "left out" in note]
    assert note.startswith("expected F was left out: the expectation of")
    assert note.endswith("for at most 5,000 items; got 5,050")
    with pytest.raises(ValueError, match="for at most 5,000 items"):
        compare(X, y, LogisticRegression(), methods=["expected"], **options)
