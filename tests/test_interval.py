"""Intervals for F: the binomial case exactly, and coverage by simulation."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import ndtri
from scipy.stats import binomtest
from sklearn.metrics import fbeta_score

from argmaxf import f_interval
from argmaxf.measures import Tversky

MIXED = np.array([1, "a"], dtype=object)


def predictions(true, false, missed, rest):
    """Labels and predictions with the given confusion counts."""
    y = np.repeat([1, 0, 1, 0], [true, false, missed, rest])
    return y, np.repeat([1, 1, 0, 0], [true, false, missed, rest])


COUNTS = st.integers(0, 40)


@given(COUNTS, COUNTS, COUNTS, COUNTS, st.floats(0.5, 0.999))
def test_f1_is_wilson_on_the_jaccard_index(true, false, missed, rest, level):
    if true + false + missed == 0:
        return
    interval = f_interval(*predictions(true, false, missed, rest), confidence_level=level)
    j = binomtest(true, true + false + missed).proportion_ci(level, method="wilson")
    want = [2 * j.low / (1 + j.low), 2 * j.high / (1 + j.high)]
    assert [interval.low, interval.high] == pytest.approx(want, abs=1e-12)


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
    """Ten copies of one label are worth one label, not ten."""
    y, guess = predictions(20, 5, 8, 70)
    alone = f_interval(y, guess)
    for average in ("macro", "micro"):
        copies = f_interval(np.tile(y, (10, 1)).T, np.tile(guess, (10, 1)).T, average=average)
        assert vars(copies) == pytest.approx(vars(alone))


def test_perfect_and_hopeless_predictions_leave_room():
    perfect = f_interval([1, 0, 1, 1], [1, 0, 1, 1])
    assert perfect.value == perfect.high == 1
    assert 0 < perfect.low < 1
    hopeless = f_interval([1, 0, 1, 1], [0, 1, 0, 0])
    assert hopeless.value == hopeless.low == 0
    assert 0 < hopeless.high < 1
    nothing = f_interval([0, 0], [0, 0], zero_division=1.0)
    assert (nothing.low, nothing.value, nothing.high) == (0, 1, 1)


def draw(rng, n, rates, tpr, fpr, shared):
    """Rows whose labels hang together, in what is true and in what goes wrong."""
    size = (n, len(rates))

    def normal():
        row = rng.normal(size=(n, 1))
        return np.sqrt(shared) * row + np.sqrt(1 - shared) * rng.normal(size=size)

    y = normal() < ndtri(rates)
    return y, normal() < ndtri(np.where(y, tpr, fpr))


def coverage(n, rate, labels, shared, beta, average, draws):
    """How often the 95 % interval holds the F of the population (eq. 2 of the paper)."""
    rng = np.random.default_rng(0)
    spread = np.linspace(-1, 1, labels) if labels > 1 else np.zeros(1)
    rates, tpr, fpr = rate * (1 + 0.3 * spread), 0.65 + 0.25 * spread, 0.05 + 0.04 * spread
    t = rates * tpr
    k = t + (1 - rates) * fpr
    b2 = beta**2
    pooled = (1 + b2) * t.sum() / (k.sum() + b2 * rates.sum())
    truth = np.mean((1 + b2) * t / (k + b2 * rates)) if average == "macro" else pooled
    held = 0
    for _ in range(draws):
        y, guess = draw(rng, n, rates, tpr, fpr, shared)
        shape = (n, labels) if average else n
        interval = f_interval(y.reshape(shape), guess.reshape(shape), beta=beta, average=average)
        held += interval.low <= truth <= interval.high
    return held / draws


SIZES = list(itertools.product([500, 5000], [0.05, 0.5]))
SMALL_FIRST = [pytest.param(*s, marks=[pytest.mark.slow] * (s[0] > 500)) for s in SIZES]


@pytest.mark.parametrize(("labels", "average"), [(1, None), (4, "macro"), (4, "micro")])
@pytest.mark.parametrize(("n", "rate"), SMALL_FIRST)
def test_coverage(n, rate, labels, average):
    assert coverage(n, rate, labels, 0.3, 1.0, average, 1500) == pytest.approx(0.95, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    ("labels", "average", "shared"),
    [(1, None, 0.0), (10, "macro", 0.0), *itertools.product([3, 10], ["macro", "micro"], [0.5])],
)
@pytest.mark.parametrize(("n", "rate"), SIZES)
def test_coverage_over_the_grid(n, rate, labels, average, shared, beta):
    draws = 6000 if n == 500 else 1200
    assert coverage(n, rate, labels, shared, beta, average, draws) == pytest.approx(0.95, abs=0.02)


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
    z = -ndtri(2**-54)
    j = (1 + z**2 / 2 - z * np.sqrt(1 / 2 + z**2 / 4)) / (2 + z**2)  # Wilson, for 1 of 2
    found = f_interval([0, 1, 1], [0, 1, 0], confidence_level=1 - 2**-53)
    assert found.low == pytest.approx(2 * j / (1 + j))


def test_labels_of_any_kind_with_the_positive_one_named():
    truth, guess = rng_labels = np.random.default_rng(0).integers(0, 2, (2, 50))
    words = np.array(["no", "yes"])[rng_labels]
    assert f_interval(*words, pos_label="yes") == f_interval(truth, guess)
    assert f_interval(*words, pos_label="no") == f_interval(1 - truth, 1 - guess)
    with pytest.raises(ValueError, match=r"y_true must hold 0 and 1, got '(no|yes)': pos_label"):
        f_interval(*words)
    with pytest.raises(ValueError, match=r"pos_label must be one of the labels, got 'maybe'"):
        f_interval(*words, pos_label="maybe")
