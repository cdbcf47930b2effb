"""The exact threshold against every cut, one by one, by the definition of F."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, fbeta_score, precision_recall_curve

from argmaxf import empirical_f_curve, maximize_empirical_f
from argmaxf.empirical.cuts import between

INF = float("inf")


def rates(y, selected, weight, beta, zero):
    """F, precision and recall of one prediction, straight from their definitions."""
    t, k, s = (np.sum(weight * a) for a in (y & selected, selected, y))
    b2 = beta**2
    f = (1 + b2) * t / (k + b2 * s) if k + b2 * s > 0 else zero
    return np.array([f, t / k if k > 0 else zero, t / s if s > 0 else zero])


def table_rates(y, selected, weight, beta, zero, average):
    """The same for a table: all cells together, or the weighted mean over rows."""
    if average == "samples":
        ones = np.ones(y.shape[1])
        rows = [rates(*row, ones, beta, zero) for row in zip(y, selected, strict=True)]
        return np.average(rows, axis=0, weights=weight)
    spread = np.repeat(weight, y.shape[1]) if y.ndim == 2 else weight
    return rates(y.ravel(), selected.ravel(), spread, beta, zero)


def all_cuts(score):
    """Every prediction a threshold can make, the empty one included."""
    edges = [*np.unique(score), None]
    return [np.zeros(score.shape, bool) if e is None else score >= e for e in edges]


def brute_force(y, score, weight, beta, zero, average=None, least=(0.0, 0.0)):
    rated = [table_rates(y, cut, weight, beta, zero, average) for cut in all_cuts(score)]
    allowed = [f for f, p, r in rated if p >= least[0] - 1e-12 and r >= least[1] - 1e-12]
    return max(allowed, default=None)


# Few distinct scores make ties; infinite, saturated and neighbouring ones make trouble.
SCORES = st.sampled_from(
    [-INF, -3.0, 0.0, 0.25, 0.5, 1 - 2**-53, 1.0, 1e-320, 1e308, -1e308, 7.0, INF]
)
BETAS = st.one_of(st.sampled_from([0.5, 1.0, 2.0]), st.floats(1e-3, 1e3))


@st.composite
def problems(draw, columns=None):
    n = draw(st.integers(1, 12))
    shape = (n,) if columns is None else (n, columns)
    size = int(np.prod(shape))
    y = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size))).reshape(shape)
    kind = draw(st.sampled_from([SCORES, st.floats(-5, 5), st.just(0.3)]))
    score = np.array(draw(st.lists(kind, min_size=size, max_size=size))).reshape(shape)
    weights = st.one_of(st.just(1.0), st.sampled_from([0.0, 0.5, 3.0]), st.floats(0.01, 10))
    weight = np.array(draw(st.lists(weights, min_size=n, max_size=n)))
    weight[0] = max(weight[0], 1.0)
    return y, score, weight, draw(BETAS), draw(st.sampled_from([0.0, 1.0, 0.3]))


@given(problems(), st.booleans())
def test_equals_the_best_of_all_cuts(problem, weighted):
    y, score, weight, beta, zero = problem
    given_weight = weight if weighted else None
    weight = weight if weighted else np.ones(len(y))
    best = maximize_empirical_f(y, score, beta=beta, sample_weight=given_weight, zero_division=zero)
    kept = weight > 0
    y, score, weight = y[kept], score[kept], weight[kept]
    assert best.value == pytest.approx(brute_force(y, score, weight, beta, zero), abs=1e-12)
    selected = score >= best.threshold
    got = rates(y, selected, weight, beta, zero)
    assert got == pytest.approx([best.value, best.precision, best.recall], abs=1e-12)
    assert best.k == selected.sum()


@given(problems(columns=3), st.sampled_from(["micro", "samples"]))
def test_one_threshold_for_a_table_equals_the_best_of_all(problem, average):
    y, score, weight, beta, zero = problem
    best = maximize_empirical_f(
        y, score, beta=beta, average=average, sample_weight=weight, zero_division=zero
    )
    kept = weight > 0
    y, score, weight = y[kept], score[kept], weight[kept]
    want = brute_force(y, score, weight, beta, zero, average)
    assert best.value == pytest.approx(want, abs=1e-12)
    got = table_rates(y, score >= best.threshold, weight, beta, zero, average)
    assert got == pytest.approx([best.value, best.precision, best.recall], abs=1e-12)


@given(problems(columns=3))
def test_macro_is_each_label_alone(problem):
    y, score, weight, beta, zero = problem
    options = {"beta": beta, "sample_weight": weight, "zero_division": zero}
    together = maximize_empirical_f(y, score, average="macro", **options)
    for j in range(3):
        alone = maximize_empirical_f(y[:, j], score[:, j], **options)
        for field in ("threshold", "value", "precision", "recall", "k"):
            assert np.array_equal(
                getattr(together, field)[j], getattr(alone, field), equal_nan=True
            )


@given(problems(), st.floats(0, 1), st.floats(0, 1))
def test_constraints_hold_and_the_best_of_the_allowed_is_found(problem, precision, recall):
    y, score, _, beta, zero = problem
    ones = np.ones(len(y))
    least = precision, recall if y.any() else 0.0  # nothing to find keeps any recall
    want = brute_force(y, score, ones, beta, zero, least=least)
    options = {"beta": beta, "zero_division": zero}
    limits = {"min_precision": precision, "min_recall": recall}
    if want is None:
        with pytest.raises(ValueError, match="cannot be reached: the highest"):
            maximize_empirical_f(y, score, **options, **limits)
        return
    best = maximize_empirical_f(y, score, **options, **limits)
    assert best.value == pytest.approx(want, abs=1e-12)
    assert best.precision >= precision - 1e-12
    assert best.recall >= least[1] - 1e-12


@given(problems())
def test_thresholds_are_finite_and_between_their_neighbours(problem):
    y, score, _, beta, zero = problem
    threshold = maximize_empirical_f(y, score, beta=beta, zero_division=zero).threshold
    selected = score >= threshold
    if selected.any() and np.isfinite(score[selected]).any() and not np.isneginf(score).any():
        assert np.isfinite(threshold)
    if selected.any() and not selected.all():
        low, high = score[~selected].max(), score[selected].min()
        assert np.isfinite(threshold)
        if np.isfinite([low, high]).all():
            assert threshold == high or threshold - low == pytest.approx(high - threshold)


@given(problems(), st.sampled_from([np.float64, np.float32]))
def test_every_point_of_the_curve_is_a_prediction(problem, dtype):
    y, score, weight, beta, zero = problem
    with np.errstate(over="ignore"):
        score = score.astype(dtype)
    curve = empirical_f_curve(y, score, beta=beta, sample_weight=weight, zero_division=zero)
    kept = weight > 0
    y, score, weight = y[kept], score[kept], weight[kept]
    assert len(curve.fbeta) == len(np.unique(score)) + 1
    for i, threshold in enumerate(curve.threshold):
        got = rates(y, score >= float(threshold), weight, beta, zero)
        want = [curve.fbeta[i], curve.precision[i], curve.recall[i]]
        assert got == pytest.approx(want, abs=1e-12)
    best = maximize_empirical_f(y, score, beta=beta, sample_weight=weight, zero_division=zero)
    assert best.value == pytest.approx(curve.fbeta.max(), abs=1e-12)


def test_curve_of_a_table():
    rng = np.random.default_rng(0)
    y, score = rng.random((30, 3)) < 0.4, rng.random((30, 3)).round(1)
    curves = empirical_f_curve(y, score, average="macro")
    assert [c.fbeta.max() for c in curves] == pytest.approx(
        maximize_empirical_f(y, score, average="macro").value
    )
    for average in ("micro", "samples"):
        curve = empirical_f_curve(y, score, average=average)
        for threshold, value in zip(curve.threshold, curve.fbeta, strict=True):
            want = f1_score(y, score >= threshold, average=average, zero_division=0.0)
            assert value == pytest.approx(want, abs=1e-12)


def test_against_scikit_learn_at_scale():
    rng = np.random.default_rng(1)
    p = rng.beta(0.5, 5, 20_000).round(3)
    y = rng.random(20_000) < p
    precision, recall, threshold = precision_recall_curve(y, p)
    f = 1.25 * precision * recall / np.maximum(0.25 * precision + recall, 1e-300)
    best = maximize_empirical_f(y, p, beta=0.5)
    assert best.value == pytest.approx(f.max(), abs=1e-13)
    assert best.value == pytest.approx(fbeta_score(y, p >= best.threshold, beta=0.5), abs=1e-13)
    edge = threshold[f.argmax()]
    assert p[p < edge].max() < best.threshold < edge


def test_large_beta_gives_the_best_recall_at_a_precision():
    rng = np.random.default_rng(2)
    p = rng.beta(0.5, 2, 2_000)
    y = rng.random(2_000) < p
    precision, recall, _ = precision_recall_curve(y, p)
    best = maximize_empirical_f(y, p, beta=1e6, min_precision=0.8)
    assert best.recall == recall[precision >= 0.8].max()


def test_saturated_probabilities_are_not_split():
    score = np.array([1.0, 1.0, 1.0, 1 - 2**-53, 0.0, 0.0])
    best = maximize_empirical_f([1, 1, 0, 1, 0, 0], score)
    assert best.k == 4
    assert 0 < best.threshold <= 1 - 2**-53


@pytest.mark.parametrize(
    ("low", "high"),
    [(-INF, 3.0), (2.0, INF), (-INF, INF), (1e308, 1.7e308), (0.0, 5e-324), (1 - 2**-53, 1.0)],
)
def test_between_is_finite_and_separates(low, high):
    middle = between(np.float64(low), np.float64(high))
    assert np.isfinite(middle)
    assert low < middle <= high


def test_float32_scores_stay_separated_after_rounding():
    low = np.float32(0.1)
    score = np.array([low, np.nextafter(low, np.float32(1))])
    best = maximize_empirical_f([False, True], score)
    assert (score >= best.threshold).tolist() == [False, True]


@pytest.mark.parametrize("kind", [list, tuple, np.float32, "pandas", "polars", "arrow"])
def test_any_array_like(kind):
    y, score = [0, 1, 0, 1], [0.1, 0.5, 0.25, 0.75]
    if kind == "pandas":
        import pandas as pd

        y, score = pd.Series(y), pd.Series(score)
    elif kind == "polars":
        import polars as pl

        y, score = pl.Series(y), pl.Series(score)
    elif kind == "arrow":
        import pyarrow as pa

        y, score = pa.array(y), pa.array(score)
    else:
        score = kind(score)
    assert maximize_empirical_f(y, score).threshold == pytest.approx(0.375)


@pytest.mark.parametrize(
    ("y", "score", "options", "message"),
    [
        ([0, 2], [0.1, 0.2], {}, "y_true must hold 0 and 1, got 2; pass the positive label as pos"),
        ([0, 2, 5], [0.1, 0.2, 1], {}, r"y_true must hold 0 and 1 \(or booleans\), got 2"),
        ([-1, 1], [0.1, 0.2], {}, "y_true must hold 0 and 1, got -1; pass the positive label"),
        ([0, 1], [[0.1], [0.2]], {}, r"for a single column give score\[:, 0\]"),
        ([[0], [1]], [0.1, 0.2], {}, r"for a single column give y_true\[:, 0\]"),
        (
            ["a", "b"],
            [0.1, 0.2],
            {},
            "y_true must hold 0 and 1, got 'a'; pass the positive label as pos_label",
        ),
        ([0, 1], [0.1, np.nan], {}, "score must not hold NaN, got one at position 1"),
        ([0, 1], [0.1], {}, r"y_true and score must have one shape, got \(2,\) and \(1,\)"),
        ([], [], {}, "non-empty vector or table"),
        ([0, 1], [0.1, 0.2], {"beta": 0}, "beta must be positive and finite, got 0"),
        ([0, 1], [0.1, 0.2], {"average": "macro"}, "average must be one of None; got 'macro'"),
        (
            [[0, 1]],
            [[0.1, 0.2]],
            {},
            "average must be one of 'macro', 'micro', 'samples'; got None",
        ),
        ([0, 1], [0.1, 0.2], {"min_recall": 1.5}, r"min_recall must lie in \[0, 1\], got 1.5"),
        ([0, 1], [0.1, 0.2], {"sample_weight": [1]}, r"sample_weight must have shape \(2,\)"),
        ([0, 1], [0.1, 0.2], {"sample_weight": [1, -1]}, "not negative, got -1.0"),
        ([0, 1], [0.1, 0.2], {"sample_weight": [0, 0]}, "must not all be zero, got 2"),
        ([1, 0], [0.1, 0.2], {"min_precision": 0.9}, "an allowed threshold is 0.5"),
    ],
)
def test_bad_input_is_named(y, score, options, message):
    with pytest.raises(ValueError, match=message):
        maximize_empirical_f(y, score, **options)


@pytest.mark.parametrize(
    "score",
    [
        [2**60, 2**60 + 1],
        np.array([5, 2**64 - 1], np.uint64),
        np.array([5, 2**63 - 1]),
        np.array([0, -(2**53) - 1]),
        pd.Series([1, 2**60 + 1], dtype="Int64"),
        [1, 2**70 + 1],
    ],
    ids=repr,
)
def test_whole_numbers_that_would_be_merged_are_refused(score):
    """Nanosecond times and hashes beyond 2⁵³ became one score silently."""
    number = max(map(int, score), key=abs)
    with pytest.raises(ValueError, match=f"score must .* exactly, got {number} at position 1"):
        maximize_empirical_f([0, 1], score)


def test_large_whole_numbers_that_floats_hold_are_compared_exactly():
    best = maximize_empirical_f([0, 1], [2**60, 2**60 + 256])
    assert (best.k, best.value) == (1, 1.0)


def few_positives(seed, positives=6, n=200):
    rng = np.random.default_rng(seed)
    y = np.arange(n) < positives
    return y, (rng.normal(size=n) + 1.5 * y).round(2)


def smoothed_by_scikit_learn(y, score, below):
    """Labels and a logistic regression in the normal score of the rank, with Platt's targets."""
    n, positives = y.size, y.sum()
    rank = norm.ppf((rankdata(score) - 0.5) / n)[:, None]
    target = np.where(y, (positives + 1) / (positives + 2), 1 / (n - positives + 2))
    both = np.vstack([rank, rank]), np.repeat([1, 0], n), np.append(target, 1 - target)
    model = LogisticRegression(C=1e8, tol=1e-8).fit(both[0], both[1], sample_weight=both[2])
    share = positives / below
    return share * y + (1 - share) * model.predict_proba(rank)[:, 1]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_smoothing_finds_the_best_cut_of_smoothed_labels(seed, beta):
    y, score = few_positives(seed)
    share, b2 = smoothed_by_scikit_learn(y, score, 50), beta**2
    rated = [
        (1 + b2) * share[cut].sum() / (cut.sum() + b2 * share.sum()) for cut in all_cuts(score)
    ]
    best = maximize_empirical_f(y, score, beta=beta, smoothing=50)
    selected = score >= best.threshold
    assert np.array_equal(selected, all_cuts(score)[int(np.argmax(rated))])
    assert best.value == pytest.approx(fbeta_score(y, selected, beta=beta))
    assert best.recall == pytest.approx(selected[y].mean())


def test_smoothing_leaves_many_positives_and_separated_ones_alone():
    for y, score in [few_positives(0, 50), few_positives(1, 1), (np.arange(9) > 6, np.arange(9))]:
        assert maximize_empirical_f(y, score, smoothing=50) == maximize_empirical_f(y, score)
    y, score = few_positives(0, 20)
    assert maximize_empirical_f(y, score, smoothing=20) == maximize_empirical_f(y, score)


def test_smoothing_depends_on_the_order_of_scores_and_shares_of_weights():
    y, score = few_positives(3)
    weight = 1.0 + np.arange(y.size) % 3
    best = maximize_empirical_f(y, score, sample_weight=weight, smoothing=50)
    other = maximize_empirical_f(y, np.exp(score), sample_weight=7 * weight, smoothing=50)
    assert (best.k, best.value) == pytest.approx((other.k, other.value))


def test_smoothing_is_for_each_label_and_segment_and_within_constraints():
    (y, score), (y2, score2) = few_positives(0), few_positives(1)
    alone = [maximize_empirical_f(*each, smoothing=50) for each in ((y, score), (y2, score2))]
    table = maximize_empirical_f(
        np.column_stack([y, y2]), np.column_stack([score, score2]), average="macro", smoothing=50
    )
    parts = maximize_empirical_f(
        np.append(y, y2), np.append(score, score2), by=np.repeat([0, 1], 200), smoothing=50
    )
    want = [each.threshold for each in alone]
    assert table.threshold.tolist() == parts.threshold.tolist() == want
    assert maximize_empirical_f(y, score, smoothing=50, min_recall=1.0).recall == 1.0


def test_smoothing_finds_better_thresholds_for_new_rows():
    """F in the population, of normal scores 1.5 apart with 3 % positives."""

    def population_f(threshold):
        true, false = 0.03 * norm.sf(threshold - 1.5), 0.97 * norm.sf(threshold)
        return 2 * true / (true + false + 0.03)

    gains = []
    for seed in range(100):
        rows = few_positives(seed)
        plain, smooth = (maximize_empirical_f(*rows, smoothing=below) for below in (0, 50))
        gains.append(population_f(smooth.threshold) - population_f(plain.threshold))
    assert np.mean(gains) > 3 * np.std(gains) / np.sqrt(len(gains))


@pytest.mark.parametrize(
    "options", [{"min_recall": 0.5, "confidence_level": 0.9}, {"average": "samples"}]
)
def test_smoothing_is_refused_where_it_has_no_effect(options):
    y = np.eye(3, dtype=int) if "average" in options else [0, 1, 1]
    with pytest.raises(ValueError, match="smoothing must be 0 with confidence_level or average="):
        maximize_empirical_f(y, y, smoothing=50, **options)
    with pytest.raises(ValueError, match="smoothing must be"):
        maximize_empirical_f(y, y, smoothing=-1, average=options.get("average"))


def test_reversed_scores_are_noticed():
    y = np.arange(60) < 12
    with pytest.warns(UserWarning, match="60 of 60 items, because higher scores have"):
        maximize_empirical_f(y, np.arange(60.0) + 1)
    maximize_empirical_f(~y, np.arange(60.0))  # most are positive, and rightly selected
    maximize_empirical_f(y, np.random.default_rng(0).random(60))  # noise


@pytest.mark.parametrize(
    "measure", ["fbeta", "jaccard", "mcc", "kappa", "gmean", "fowlkes_mallows"]
)
@pytest.mark.parametrize("factor", [2.0**-1000, 2.0**-500, 2.0**1000])
def test_only_ratios_of_weights_matter_however_large_they_are(measure, factor):
    rng = np.random.default_rng(0)
    score, weight = rng.random(500), rng.integers(0, 5, 500).astype(float)
    y = rng.random(500) < score
    beta = 1e6 if measure == "fbeta" else 1.0
    options = {"measure": measure, "beta": beta, "min_precision": 0.6}
    usual, scaled = (
        maximize_empirical_f(y, score, sample_weight=w, **options)
        for w in (weight, factor * weight)
    )
    assert (scaled.threshold, scaled.k) == (usual.threshold, usual.k)
    assert scaled.value == pytest.approx(usual.value, rel=1e-13)
