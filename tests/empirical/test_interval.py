"""Intervals for a measure: exact cases, invariances, and coverage by simulation."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import binomtest
from sklearn.metrics import fbeta_score

from argmaxf import f_interval
from argmaxf.empirical.interval import f_difference
from argmaxf.measures import MCC, Dice, FBeta, GMean, Tversky
from benchmarks.interval_coverage import MEASURES, SETTINGS, Setting, simulate, studied

MIXED = np.array([1, "a"], dtype=object)


def predictions(true, false, missed, rest):
    """Labels and predictions with the given confusion counts."""
    y = np.repeat([1, 0, 1, 0], [true, false, missed, rest])
    return y, np.repeat([1, 1, 0, 0], [true, false, missed, rest])


COUNTS = st.integers(0, 40)


@given(COUNTS, COUNTS, COUNTS, st.floats(0.5, 0.999))
def test_recall_given_as_a_function_has_the_limits_of_clopper_and_pearson(
    true, missed, rest, level
):
    if true + missed == 0:
        return
    y, guess = predictions(true, 0, missed, rest)
    found = f_interval(y, guess, measure=lambda tp, k, s, n: tp / s, confidence_level=level)
    exact = binomtest(true, true + missed).proportion_ci(level, method="exact")
    assert [found.low, found.high] == pytest.approx([exact.low, exact.high], abs=0.004)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_no_interval_collapses_at_the_boundary(measure):
    """Four perfect rows do not show that every row is predicted well, nor do 120."""
    for positives, negatives in [(2, 2), (40, 80), (600, 600)]:
        y = np.repeat([1, 0], [positives, negatives])
        found = f_interval(y, y, measure=measure)
        assert found.value == pytest.approx(1.0)
        assert found.high == pytest.approx(1.0)
        assert 0.2 / positives < 1.0 - found.low


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_more_confidence_is_wider_and_calls_agree(measure):
    y, guess = predictions(20, 4, 6, 70)
    levels = (0.5, 0.9, 0.95, 0.99, 0.9999, 1 - 1e-9)
    found = [f_interval(y, guess, measure=measure, confidence_level=level) for level in levels]
    assert all(b.low < a.low and a.high < b.high for a, b in itertools.pairwise(found))
    shuffled = np.random.default_rng(0).permutation(y.size)
    assert f_interval(y[shuffled], guess[shuffled], measure=measure) == found[2]


@given(COUNTS, COUNTS, COUNTS, st.floats(0.1, 10))
def test_holds_the_estimate_and_narrows_with_data(true, false, missed, beta):
    y, guess = predictions(true, false, missed, 5)
    one = f_interval(y, guess, beta=beta)
    assert 0 <= one.low <= one.value <= one.high <= 1 + 1e-15
    assert one.value == pytest.approx(fbeta_score(y, guess, beta=beta, zero_division=0.0))
    if true and false and missed:
        four = f_interval(np.tile(y, 4), np.tile(guess, 4), beta=beta)
        assert four.high - four.low < one.high - one.low


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_one_label_is_the_binary_case(average):
    y, guess = predictions(20, 5, 8, 70)
    alone = f_interval(y, guess, beta=2)
    table = f_interval(y[:, None], guess[:, None], beta=2, average=average)
    assert vars(table) == pytest.approx(vars(alone))


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_class_labels_are_one_against_the_rest(average):
    rng = np.random.default_rng(0)
    y, guess = rng.choice(["a", "b", "c"], (2, 200))
    classes = np.array(["a", "b", "c"])
    table = f_interval(y[:, None] == classes, guess[:, None] == classes, average=average)
    assert f_interval(y, guess, average=average) == table
    assert table.value == pytest.approx(fbeta_score(y, guess, beta=1, average=average))


def test_repeated_labels_teach_nothing_new():
    """Ten copies of one label are worth one label, or two copies of it, not ten labels."""
    y, guess = predictions(20, 5, 8, 70)

    def copies(times, average):
        return f_interval(np.tile(y, (times, 1)).T, np.tile(guess, (times, 1)).T, average=average)

    assert vars(copies(10, "micro")) == pytest.approx(vars(f_interval(y, guess)))
    assert vars(copies(10, "macro")) == pytest.approx(vars(copies(2, "macro")))
    assert copies(2, "macro").low < f_interval(y, guess).low


def test_perfect_copies_teach_nothing_new():
    """Without an error, the labels' own dependence says that copies are worth one label."""
    y = np.repeat([1, 0], [30, 70])
    alone, ten = f_interval(y, y), np.tile(y, (10, 1)).T
    for average in ("micro", "macro"):
        assert f_interval(ten, ten, average=average).low < alone.low + 0.01


def test_perfect_and_hopeless_predictions_leave_room():
    perfect = f_interval([1, 0, 1, 1], [1, 0, 1, 1])
    assert perfect.value == perfect.high == 1
    assert 0 < perfect.low < 1
    hopeless = f_interval([1, 0, 1, 1], [0, 1, 0, 0])
    assert hopeless.value == hopeless.low == 0
    assert 0 < hopeless.high < 1
    nothing = f_interval([0, 0], [0, 0], zero_division=1.0)
    assert (nothing.low, nothing.value, nothing.high) == (0, 1, 1)


FEW = (FBeta(1.0), FBeta(2.0), MCC(), GMean(), Dice(1.0))


@pytest.mark.parametrize(
    "setting",
    [
        Setting(1000, 0.3, 0.999, 0.0005),  # held in 44 to 51 % with normal limits
        Setting(100, 0.3, 0.97, 0.01),  # held in 78 to 82 %
        Setting(50, 0.3, 0.9, 0.1),  # held in 89 to 91 %
        Setting(200, 0.05, 0.999, 0.0005),
    ],
    ids=str,
)
def test_coverage_near_the_boundary(setting):
    held = simulate(setting, 300, FEW).held
    assert min(held.values()) >= 0.93


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_coverage_of_averages(average):
    setting = Setting(200, 0.3, 0.97, 0.02, average, 5, 0.5)
    held = simulate(setting, 200, FEW[:3])
    assert min(held.held.values()) >= 0.92  # 200 draws
    assert held.reliable == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_coverage_over_the_grid(setting):
    """At least 93 % in every setting, for every measure."""
    found = studied(setting, 2000)
    assert min(found.held.values()) >= 0.93
    assert found.reliable > 0.95


def test_a_macro_interval_says_where_labels_have_too_few_positives():
    rng = np.random.default_rng(0)
    truth = rng.random((400, 3)) < [0.5, 0.4, 0.01]
    found = f_interval(truth, truth, average="macro")
    assert not found.reliable
    assert f"{found:.2f}" == f"{found.value:.2f} [{found.low:.2f}, 1.00] (may be too narrow)"
    assert str(found).endswith("] (may be too narrow)")
    assert f_interval(truth[:, :2], truth[:, :2], average="macro").reliable
    assert f"{f_interval(truth[:, :2], truth[:, :2], average='macro'):.2f}".endswith("1.00]")
    assert f_interval(truth[:, 2], truth[:, 2]).reliable


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 1], [1]), {}, "y_true and y_pred must have one shape"),
        (([], []), {}, "non-empty"),
        (([0, 2], [0, 1]), {}, "y_true must hold 0 and 1"),
        (
            ([0, 1], [0, 1]),
            {"confidence_level": 1.0},
            "confidence_level must lie strictly between 0 and 1, got 1.0",
        ),
        (([0, 1], [0, 1]), {"average": "samples"}, "average must be one of None, 'macro', 'micro'"),
        (([[0, 1]], [[0, 1]]), {}, "a table of labels needs average='macro' or 'micro'"),
        ((csr_array([[1]]), [[1]]), {"average": "macro"}, "y_true must be dense here"),
        (([["a"], ["a", "b"]], ["a", "b"]), {"average": "macro"}, "y_true must be an array of"),
        (([1, 2], ["1", "2"]), {"average": "macro"}, "labels of one kind, got 1 and '1'"),
        (([1, 2], ["1", "2"]), {"pos_label": 1}, "labels of one kind, got 1 and '1'"),
        ((MIXED, MIXED), {"average": "macro"}, "labels of one kind, got 1 and 'a'"),
        (([1, 2], [1, 2]), {"pos_label": [1, 2]}, r"pos_label must be one label, got \[1, 2\]"),
        (([1, 2], [1, 2]), {"pos_label": 1, "average": "macro"}, "pos_label is for labels without"),
    ],
)
def test_bad_input_is_named(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        f_interval(*arguments, **options)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_micro_of_few_rows_has_a_width(rows):
    """Rows that are all alike do not tell how far others would be."""
    interval = f_interval([[1, 0, 1]] * rows, [[1, 1, 1]] * rows, average="micro")
    assert interval.value == 0.8
    assert interval.low < 0.75
    assert interval.high > 0.82


@pytest.mark.parametrize("options", [{"pos_label": 1.0}, {"average": "macro"}])
def test_numbers_that_are_missing_are_no_labels(options):
    for labels, other in itertools.permutations([[0.0, 1.0, np.nan], [0.0, 1.0, 1.0]]):
        with pytest.raises(ValueError, match="must hold a label everywhere, got nan at position 2"):
            f_interval(labels, other, **options)


@pytest.mark.parametrize("options", [{"pos_label": "a"}, {"average": "micro"}])
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_words_that_are_missing_are_no_labels(missing, options):
    labels = pd.Series(["a", missing, "b"], dtype=object)
    with pytest.raises(ValueError, match=r"y_true must hold a label everywhere, .* at position 1"):
        f_interval(labels, ["a", "b", "b"], **options)
    with pytest.raises(ValueError, match=r"y_pred must hold a label everywhere, .* at position 1"):
        f_interval(["a", "b", "b"], labels, **options)


@pytest.mark.parametrize("measure", ["fbeta", "jaccard", Tversky(2, 0.1), "mcc"])
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_the_value_lies_within_to_the_last_digit(measure, average):
    for n in range(1, 30):
        truth = np.random.default_rng(n).random((n, 2)) < 0.7
        found = f_interval(truth, truth, measure=measure, average=average, confidence_level=0.5)
        assert found.low <= found.value <= found.high


def test_a_level_next_to_one():
    found = f_interval([0, 1, 1], [0, 1, 0], confidence_level=1 - 2**-53)
    assert found.low < 1e-6
    assert 0.999 < found.high <= 1.0


def test_labels_of_any_kind_with_the_positive_one_named():
    truth, guess = rng_labels = np.random.default_rng(0).integers(0, 2, (2, 50))
    words = np.array(["no", "yes"])[rng_labels]
    assert f_interval(*words, pos_label="yes") == f_interval(truth, guess)
    assert f_interval(*words, pos_label="no") == f_interval(1 - truth, 1 - guess)
    with pytest.raises(
        ValueError,
        match=r"y_true must hold 0 and 1, got '(no|yes)'; pass the positive label as pos_label",
    ):
        f_interval(*words)
    with pytest.raises(ValueError, match=r"pos_label must be one of the labels, got 'maybe'"):
        f_interval(*words, pos_label="maybe")


def test_two_perfect_predictions_are_not_known_to_be_equal():
    y = np.repeat([1, 0], [30, 70])
    same = f_difference(y, y, y)
    assert same.value == 0.0
    assert -0.1 < same.low < -0.01 < 0.01 < same.high < 0.1
