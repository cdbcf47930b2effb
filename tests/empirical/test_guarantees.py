"""Constraints that hold in the population: the test, its exact risk, what errors say."""

from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta as beta_law
from scipy.stats import multinomial

from argmaxf import maximize_empirical_f, maximize_expected_f
from argmaxf.constraints import ChanceConstraint, Constraints
from argmaxf.empirical.guarantees import (
    SHUFFLE_SEED,
    TOP_SHARE,
    GuaranteeError,
    Sample,
    guaranteed_levels,
    low_limit,
    rows_needed,
    start_ranks,
    tail,
)


def qualifying(y, score, constraints, confidence_level=0.95):
    chance = ChanceConstraint(constraints, confidence_level)
    sample = Sample(y, np.asarray(score, float))
    return sample.cuts.where(guaranteed_levels(sample, chance) > 0)


def walked_plainly(y, score, limit, alpha):
    """The tests of docs/background/guarantee-proofs.md, in the order of scores: {(T, F): level}."""
    ties = [y[score == s] for s in np.unique(score)[::-1]]
    labels = np.concatenate([np.random.default_rng(SHUFFLE_SEED).permutation(tie) for tie in ties])
    true = [int(labels[:k].sum()) for k in range(len(y) + 1)]
    ends = np.cumsum([len(tie) for tie in ties]).tolist()
    passed = {}
    for starts in [
        dict(start_ranks(limit, alpha * (1 - TOP_SHARE), len(y))),
        {ends[0]: alpha * TOP_SHARE},
    ]:
        level, last = 0.0, 0
        for size in ends:
            for rank, own in starts.items():
                if last < rank <= size and tail(true[rank], rank - true[rank], limit) <= own:
                    level += own
            if tail(true[size], size - true[size], limit) > level:
                level = 0.0
            if level:
                cut = true[size], size - true[size]
                passed[cut] = max(level, passed.get(cut, 0.0))
            last = size
    return passed


labelled = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@given(
    labelled,
    st.integers(1, 150),
    st.sampled_from([0.3, 0.6, 0.8, 0.9]),
    st.sampled_from([0.01, 0.05, 0.3]),
    st.sampled_from([0, 2, 6]),
)
@settings(max_examples=150, deadline=None)
def test_the_walk_is_the_plain_one(rng, n, limit, alpha, distinct):
    y = rng.random(n) < rng.choice([0.2, 0.6, 0.95])
    score = rng.normal(size=n) + 2 * y
    score = np.round(score * distinct) if distinct else score
    plain = walked_plainly(y, score, limit, alpha)
    chance = ChanceConstraint(Constraints(limit), 1 - alpha)
    sample = Sample(y, score)
    cuts, level = sample.cuts, sample.levels(chance)
    counts = list(zip(cuts.true.tolist(), cuts.false.tolist(), strict=True))
    assert [(y[score >= e].sum(), (~y[score >= e]).sum()) for e in cuts.low] == counts
    found = {cut: a for cut, a in zip(counts, level.tolist(), strict=True) if a}
    assert found == pytest.approx(plain)


def test_the_tail_is_the_sum_of_its_terms():
    limit = Fraction(9, 10)
    for k, t in [(1, 1), (29, 29), (40, 38), (40, 0), (100, 95)]:
        terms = (comb(k, j) * limit**j * (1 - limit) ** (k - j) for j in range(t, k + 1))
        assert tail(t, k - t, 0.9) == pytest.approx(float(sum(terms)), rel=1e-12)


@pytest.mark.parametrize("limit", [0.5, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_labels_that_ignore_the_scores_pass_no_more_often_than_guaranteed(limit, alpha):
    """The exact probability that any cut passes, where every cut's precision is just too low."""
    n = 700
    own = dict(start_ranks(limit, alpha, n))
    assert sum(own.values()) == pytest.approx(alpha)
    unpassed = np.ones(1)  # by positives so far: the probability that no cut has passed yet
    wrong = 0.0
    for k in range(1, n + 1):
        unpassed = np.convolve(unpassed, [1 - limit, limit])
        true = np.arange(k + 1)
        passes = tail(true, k - true, limit) <= own.get(k, -1.0)
        wrong += unpassed[passes].sum()
        unpassed[passes] = 0.0
    assert 0 < wrong <= alpha


@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_negatives_that_a_sample_may_miss_do_not_break_it(part, spread):
    """All samples of 100 rows, exactly: a tie of positives below rare negatives, all cuts bad."""
    n, limit, share = 100, 0.9, 0.05
    p_above, p_tie = (1 - limit) * part + 1e-9, limit * part
    broken = 0.0
    for above in range(12):  # with more, no cut passes
        for tie in range(n + 1 - above):
            score = np.repeat([2.0, 1.0, 0.0], [above, tie, n - above - tie])
            score[:above] += spread * np.arange(above)
            chance = ChanceConstraint(Constraints(limit), 1 - share)
            if Sample(score == 1.0, score).levels(chance).any():
                broken += multinomial.pmf(
                    [above, tie, n - above - tie], n, [p_above, p_tie, 1 - p_above - p_tie]
                )
    assert 0 < broken <= share


def test_recall_and_rate_are_held_to_the_last_row():
    y, score = np.arange(300) < 80, -np.arange(300.0)

    def at_least(j, n, p):
        return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(j, n + 1))

    needed = qualifying(y, score, Constraints(min_recall=0.9)).true.min()
    assert at_least(needed, 80, Fraction(9, 10)) <= 0.05 < at_least(needed - 1, 80, Fraction(9, 10))
    cuts = qualifying(y, score, Constraints(max_selected_rate=0.2))
    most = (cuts.true + cuts.false).max()
    below = 1 - at_least(most + 1, 300, Fraction(1, 5))
    assert below <= 0.05 < 1 - at_least(most + 2, 300, Fraction(1, 5))


def test_the_limits_are_where_the_test_turns():
    limit = low_limit(95, 100, 0.05)
    assert tail(95, 5, limit - 1e-9) < 0.05 < tail(95, 5, limit + 1e-9)
    assert low_limit(0, 10, 0.05) == 0.0


def sample(n, rate=0.5, apart=3.0, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < rate
    return y, rng.normal(size=n) + apart * y


@pytest.mark.parametrize("constraints", [Constraints(1.0), Constraints(None, 1.0)])
def test_perfection_is_never_guaranteed(constraints):
    with pytest.raises(GuaranteeError, match="would not be enough") as error:
        qualifying(*sample(1000, apart=100), constraints)
    assert error.value.rows == np.inf


@pytest.mark.parametrize("labels", [np.zeros(50, bool), np.array([False])])
def test_rows_without_a_positive_guarantee_nothing(labels):
    with pytest.raises(GuaranteeError, match="labelled row"):
        qualifying(labels, np.arange(labels.size, dtype=float), Constraints(0.5, 0.5))


def test_all_positive_rows_guarantee_all_of_them():
    cuts = qualifying(np.ones(200, bool), np.arange(200.0), Constraints(0.9, 0.9))
    assert cuts.true.max() == 200
    assert cuts.false.max() == 0


def test_one_tie_of_all_rows_is_one_cut():
    cuts = qualifying(np.arange(500) < 490, np.zeros(500), Constraints(0.9))
    assert (cuts.true.tolist(), cuts.false.tolist()) == ([490], [10])


@pytest.mark.parametrize("n", [*range(120, 3001, 240), 2000])
@pytest.mark.parametrize("above", [0, 3])
def test_a_large_tie_of_positives_is_evidence_wherever_the_ladder_falls(n, above):
    y = np.arange(n) % 2 == 0
    score = y + (np.arange(n) < 2 * above)  # a few rows score higher, half of them positive
    if above and n < 400:
        return  # three negatives need more rows to make up for
    cuts = qualifying(y, score, Constraints(0.9))
    assert n // 2 in cuts.true


def test_one_score_for_all_rows_is_one_test():
    best = maximize_empirical_f(
        np.arange(400) < 200, np.zeros(400), min_precision=0.4, confidence_level=0.9
    )
    assert (best.k, best.precision) == (400, 0.5)


@pytest.mark.parametrize("values", [1, 2])
@pytest.mark.parametrize("n", [1, 2, 28, 29, 100])
def test_a_few_scores_of_rows_that_are_all_alike(n, values):
    """All positive: guaranteed from 29 rows on, the fewest with .9 ** rows <= .05."""
    score = np.arange(n) % values
    if n < 29:
        rows = "row" if n == 1 else "rows"
        with pytest.raises(GuaranteeError, match=f"from {n} labelled {rows}; about "):
            maximize_empirical_f(np.ones(n), score, min_precision=0.9, confidence_level=0.95)
    else:
        best = maximize_empirical_f(np.ones(n), score, min_precision=0.9, confidence_level=0.95)
        assert (best.k, best.value) == (n, 1.0)
    with pytest.raises(GuaranteeError, match="would not be enough"):
        maximize_empirical_f(np.zeros(n), score, min_precision=0.9, confidence_level=0.95)


@pytest.mark.parametrize("sorted_by_label", [np.sort, lambda y: np.sort(y)[::-1]])
def test_rows_sorted_by_label_lend_nothing_to_equal_scores(sorted_by_label):
    """Half of any tie is positive: so is about half of its first rows, within six deviations."""
    for size in (300, 1_000, 20_000):
        y = sorted_by_label(np.arange(size) % 2 == 0)
        found = Sample(y, np.zeros(size)).top(np.array([100]))
        assert abs(found[0] - 50) <= 30


def test_a_start_among_equal_scores_counts_as_many_rows_as_it_has():
    """Every rank of mixed ties: one row more holds one positive more or none, borders are exact."""
    rng = np.random.default_rng(0)
    y, score = rng.random(200) < 0.6, rng.integers(0, 6, 200)
    true = Sample(y, score).top(np.arange(1, 201))
    assert set(np.diff(true)) == {0, 1}
    for s in range(6):
        assert true[(score >= s).sum() - 1] == y[score >= s].sum()


def test_the_rows_said_to_be_enough_are_enough_with_ties():
    """The same rows several times over: from the number given on, a threshold is found."""
    y, score = np.arange(60) % 2 == 0, np.arange(60) % 2 == 0
    with pytest.raises(GuaranteeError) as error:
        qualifying(y, score, Constraints(0.9))
    assert error.value.rows < 400
    for times in range(int(np.ceil(error.value.rows / 60)), 80):
        rows = np.tile(y, times), np.tile(score, times)
        assert qualifying(*rows, Constraints(0.9)).true.max() == 30 * times


def test_no_number_of_rows_is_named_where_labels_ignore_the_scores():
    named = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        with pytest.raises(GuaranteeError) as error:
            qualifying(rng.random(2000) < 0.5, rng.random(2000), Constraints(0.7))
        named += np.isfinite(error.value.rows)
    assert named <= 5


@pytest.mark.parametrize("confidence_level", [1e-9, 0.5, 1 - 1e-9])
def test_extreme_confidence_is_answered(confidence_level):
    assert qualifying(*sample(5000, apart=5), Constraints(0.9), confidence_level).true.size


def test_more_confidence_guarantees_no_more():
    longest = [
        qualifying(*sample(2000), Constraints(0.9), level).true.max() for level in (0.5, 0.9, 0.999)
    ]
    assert longest[0] >= longest[1] >= longest[2]


def test_the_rows_needed_are_enough_more_often_than_not():
    y, score = sample(100, rate=0.2, apart=3.5)
    with pytest.raises(GuaranteeError) as error:
        qualifying(y, score, Constraints(0.9))
    rows = int(error.value.rows)
    assert 100 < rows < 10_000
    found = 0
    for seed in range(40):
        try:
            found += (
                qualifying(
                    *sample(rows, rate=0.2, apart=3.5, seed=seed + 1), Constraints(0.9)
                ).true.size
                > 0
            )
        except GuaranteeError:
            continue
    assert found >= 20


@pytest.mark.parametrize("n", [30, 40, 60, 100])
def test_few_rows_name_a_number_as_many_do(n):
    """Rows of which some hundreds do: a few of them neither name tens of thousands nor none."""
    named = []
    for seed in range(20):
        chance = ChanceConstraint(Constraints(0.9), 0.95)
        rows = Sample(*sample(n, rate=0.3, apart=3.0, seed=seed))
        named.append(rows_needed(rows, chance))
    assert 200 < np.median(named) < 1_000


# --- through the public function -----------------------------------------------------------------


def test_the_best_of_the_cuts_that_qualify_is_returned():
    y, score = sample(3000, rate=0.3, apart=2.5)
    best = maximize_empirical_f(y, score, min_precision=0.9, confidence_level=0.95)
    cuts = qualifying(y, score, Constraints(0.9))
    f = 2 * cuts.true / (cuts.true + cuts.false + y.sum())
    assert best.value == f.max()
    assert best.k == (cuts.true + cuts.false)[f.argmax()] == (score >= best.threshold).sum()
    assert best.precision > best.guarantee.precision_low >= 0.9
    free = maximize_empirical_f(y, score)
    assert best.guarantee.cost == pytest.approx(free.value - best.value)
    plain = maximize_empirical_f(y, score, min_precision=0.9)
    assert best.value <= plain.value


def test_every_constraint_is_guaranteed_at_once():
    y, score = sample(5000)
    constraints = {"min_precision": 0.8, "min_recall": 0.85, "max_selected_rate": 0.55}
    best = maximize_empirical_f(y, score, confidence_level=0.9, **constraints)
    guarantee = best.guarantee
    assert guarantee.constraints == Constraints(**constraints)
    assert 0.8 <= guarantee.precision_low < best.precision
    assert 0.85 <= guarantee.recall_low < best.recall
    assert best.k / 5000 < guarantee.rate_high <= 0.55
    assert str(guarantee).startswith("min_precision=0.8, min_recall=0.85, max_selected_rate=0.55 ")


def test_labels_are_guaranteed_each_by_itself():
    tables = [sample(1000, seed=seed) for seed in range(3)]
    y, score = (np.column_stack(columns) for columns in zip(*tables, strict=True))
    both = {"min_precision": 0.9, "confidence_level": 0.95}
    table = maximize_empirical_f(y, score, average="macro", **both)
    alone = [maximize_empirical_f(*each, **both) for each in tables]
    assert table.threshold.tolist() == [each.threshold for each in alone]
    assert table.guarantee.tolist() == [each.guarantee for each in alone]
    y[:, 1] = False
    with pytest.raises(GuaranteeError, match=r"label 1: min_precision=0.9 cannot be guaranteed"):
        maximize_empirical_f(y, score, average="macro", **both)


def test_segments_share_the_risk():
    y, score = sample(4000)
    by = np.where(np.arange(4000) < 2500, "north", "south")
    both = {"min_precision": 0.9, "min_recall": 0.5}
    found = maximize_empirical_f(y, score, by=by, confidence_level=0.95, **both)
    assert found.segment.tolist() == ["north", "south"]
    for i, name in enumerate(found.segment):
        rows = by == name
        alone = maximize_empirical_f(y[rows], score[rows], confidence_level=0.975, **both)
        assert (found.threshold[i], found.k[i]) == (alone.threshold, alone.k)
        assert found.guarantee[i] == replace(alone.guarantee, joint_confidence_level=0.95)
        assert "confidence level 0.975 (0.95 for all segments at once)" in str(found.guarantee[i])
    assert "confidence level 0.95; costs" in str(found.overall.guarantee)
    by[:10] = "tiny"
    told = r"segment 'tiny': .* \(0.95 for all segments at once\) from 10 labelled rows; about"
    with pytest.raises(GuaranteeError, match=told):
        maximize_empirical_f(y, score, by=by, confidence_level=0.95, **both)


def test_one_segment_has_all_the_confidence():
    y, score = sample(2000)
    both = {"min_precision": 0.9, "confidence_level": 0.95}
    alone = maximize_empirical_f(y, score, **both)
    assert maximize_empirical_f(y, score, by=["one"] * 2000, **both).guarantee[0] == alone.guarantee


def test_segments_guarantee_for_all_rows_together():
    """Overall figures are those of the predictions, the guarantee is that of the worst segment."""
    y, score = sample(4000)
    by = np.arange(4000) % 3
    both = {"min_precision": 0.9, "min_recall": 0.5, "max_selected_rate": 0.6}
    found = maximize_empirical_f(y, score, by=by, confidence_level=0.9, **both)
    selected = score >= found.threshold[by]
    overall = found.overall
    assert overall.k == selected.sum() == found.k.sum()
    assert overall.precision == pytest.approx(y[selected].mean())
    assert overall.recall == pytest.approx(selected[y].mean())
    assert overall.value == pytest.approx(2 * (selected & y).sum() / (selected.sum() + y.sum()))
    assert overall.guarantee.confidence_level == 0.9
    assert overall.guarantee.precision_low == min(each.precision_low for each in found.guarantee)
    assert overall.guarantee.rate_high == max(each.rate_high for each in found.guarantee) <= 0.6
    free = maximize_empirical_f(y, score, by=by)
    assert overall.guarantee.cost == pytest.approx(free.overall.value - overall.value)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [2, 5])
def test_segments_keep_it_all_at_once_and_overall(parts):
    """Segments whose positives are differently frequent, and precision falls with the score."""
    rng, draws, broken, broken_overall = np.random.default_rng(0), 1_000, 0, 0
    rate = np.linspace(0.3, 0.7, parts)
    for _ in range(draws):
        by = rng.integers(parts, size=800 * parts)
        p = rng.beta(rate[by], 1 - rate[by])
        y = rng.random(p.size) < p
        try:
            found = maximize_empirical_f(y, p, by=by, min_precision=0.9, confidence_level=0.95)
        except GuaranteeError:
            continue
        selected = beta_law(rate, 1 - rate).sf(found.threshold)
        true = rate * beta_law(rate + 1, 1 - rate).sf(found.threshold)
        broken += (true < 0.9 * selected).any()
        broken_overall += true.sum() < 0.9 * selected.sum()
    assert broken_overall <= broken
    assert broken / draws <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / draws)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (["a"] * 99, r"by must hold the segment of each of 100 rows, got \(99,\)"),
        (["a"] * 99 + [None], "by must hold a segment everywhere, got None at position 99"),
        ([1.0, np.nan] * 50, "by must hold a segment everywhere, got .*nan.* at position 1"),
        (np.array(["a", 1] * 50, object), "by must hold values that can be sorted"),
    ],
)
def test_segments_that_are_none_are_refused(by, message):
    with pytest.raises(ValueError, match=message):
        maximize_empirical_f(*sample(100), by=by)


def test_segments_without_a_guarantee_and_with_weights():
    y, score = sample(300)
    by = np.array(["a", "b", "c"])[np.arange(300) % 3]
    weight = np.where(by == "b", 0.0, np.arange(300) % 5 + 1.0)
    found = maximize_empirical_f(y, score, by=by, sample_weight=weight)
    assert found.segment.tolist() == ["a", "c"]
    for i, name in enumerate(found.segment):
        rows = by == name
        alone = maximize_empirical_f(y[rows], score[rows], sample_weight=weight[rows])
        assert (found.threshold[i], found.value[i]) == (alone.threshold, alone.value)
    y[by == "c"] = False
    with pytest.raises(ValueError, match=r"segment 'c': min_precision=0.5 cannot be reached"):
        maximize_empirical_f(y, score, by=by, min_precision=0.5)
    with pytest.raises(ValueError, match=r"by is for one column of labels"):
        maximize_empirical_f(y[:, None], score[:, None], by=by, average="macro")


def test_labels_of_any_kind_with_the_positive_one_named():
    y, score = sample(200)
    words = np.where(y, "spam", "ham")
    best = maximize_empirical_f(words, score, pos_label="spam")
    assert best == maximize_empirical_f(y, score)
    assert best == maximize_empirical_f(words.astype(object), score, pos_label="spam")
    assert best == maximize_empirical_f(np.where(y, 2, 1), score, pos_label=2)
    with pytest.raises(ValueError, match=r"got '(sp|h)am'; pass the positive label as pos_label"):
        maximize_empirical_f(words, score)
    with pytest.raises(
        ValueError, match=r"pos_label must be one of the labels, got 'Spam'; the labels"
    ):
        maximize_empirical_f(words, score, pos_label="Spam")


def test_a_plain_rate_counts_the_rows_given():
    y, score = sample(1000)
    assert maximize_empirical_f(y, score, max_selected_rate=0.3).k == 300
    assert maximize_empirical_f(y, score, max_selected_rate=0.0).k == 0
    weight = np.where(y, 3.0, 1.0)
    heavy = maximize_empirical_f(y, score, max_selected_rate=0.3, sample_weight=weight)
    assert weight[score >= heavy.threshold].sum() <= 0.3 * weight.sum()
    assert 0 < heavy.k < 300


@pytest.mark.parametrize("n", [100, 300_000])
@pytest.mark.parametrize("weight", [1e-300, 1e-15, 0.1, 1.0, 1e6, 1e300])
def test_the_rate_is_a_part_of_the_rows_whatever_they_weigh(n, weight):
    options = {"max_selected_rate": 0.29, "sample_weight": np.full(n, weight)}
    assert maximize_empirical_f(np.ones(n), np.arange(n), **options).k == 29 * n // 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence_level": 0.95}, "needs min_precision, min_recall or max_selected_rate"),
        ({"min_precision": 0.9, "confidence_level": 1.0}, "strictly between 0 and 1, got 1.0"),
        ({"min_precision": 0.9, "confidence_level": 0}, "strictly between 0 and 1, got 0"),
        (
            {"min_precision": 0.9, "confidence_level": "high"},
            "confidence_level must be a real number",
        ),
        ({"max_selected_rate": -1.0}, r"max_selected_rate must lie in \[0, 1\], got -1.0"),
        (
            {"min_precision": 0.9, "confidence_level": 0.9, "sample_weight": np.arange(1.0, 101)},
            "confidence_level needs equal weights, .* from 1 to 100",
        ),
    ],
)
def test_what_cannot_be_guaranteed_is_refused_with_the_reason(options, message):
    with pytest.raises(ValueError, match=message):
        maximize_empirical_f(*sample(100), **options)


@pytest.mark.parametrize("average", ["micro", "samples"])
def test_cells_of_a_row_are_not_taken_for_independent(average):
    y, score = (np.column_stack([each, each]) for each in sample(100))
    with pytest.raises(ValueError, match=f"average must be 'macro', got '{average}'"):
        maximize_empirical_f(y, score, average=average, min_precision=0.5, confidence_level=0.9)


def test_equal_weights_and_rows_of_no_weight_change_nothing():
    y, score = sample(1000)
    both = {"min_precision": 0.9, "confidence_level": 0.95}
    weight = np.where(np.arange(1000) < 900, 2.5, 0.0)
    weighted = maximize_empirical_f(y, score, sample_weight=weight, **both)
    assert weighted == maximize_empirical_f(y[:900], score[:900], **both)


def test_a_constraint_of_zero_costs_nothing():
    y, score = sample(300)
    best = maximize_empirical_f(y, score, min_precision=0.0, confidence_level=0.95)
    assert best.value == maximize_empirical_f(y, score).value
    assert best.guarantee.cost == 0.0


def test_the_order_of_rows_does_not_matter_but_where_a_start_splits_a_tie():
    y, score = sample(2000)
    both = {"min_precision": 0.9, "confidence_level": 0.95}
    assert maximize_empirical_f(y, score, **both) == maximize_empirical_f(
        y[::-1], score[::-1], **both
    )
    order = np.lexsort((y, score.round(1)))
    found = [
        maximize_empirical_f(labels, scores.round(1), **both)
        for labels, scores in [(y, score), (y, score), (y[order], score[order])]
    ]
    assert found[0] == found[1]
    assert found[0].k == pytest.approx(found[2].k, rel=0.05)


def test_float32_and_infinite_scores_are_taken_as_they_are():
    y, score = sample(1000)
    score[:20], y[:20] = np.inf, True
    best = maximize_empirical_f(
        y, score.astype(np.float32), min_precision=0.9, confidence_level=0.95
    )
    assert (score.astype(np.float32) >= best.threshold).sum() == best.k


def test_a_score_of_infinity_is_a_score():
    y = np.arange(100) < 60
    best = maximize_empirical_f(
        y, np.where(y, np.inf, 0.0), min_precision=0.9, confidence_level=0.95
    )
    assert (best.k, best.value, best.precision) == (60, 1.0, 1.0)
    assert 0.0 < best.threshold < np.inf


def test_nothing_to_find_keeps_any_recall_and_a_precision_needs_rows():
    both = maximize_empirical_f([0, 0], [0.1, 0.2], min_recall=0.5)
    assert both.k == maximize_expected_f([0.0, 0.0], min_recall=0.5, confidence_level=0.9).k == 0
    with pytest.raises(
        ValueError,
        match=r"min_precision=0\.5 cannot be reached: the highest precision",
    ):
        maximize_empirical_f([0, 0], [0.1, 0.2], min_precision=0.5)


def test_a_confidence_near_one_is_not_said_to_be_one():
    with pytest.raises(GuaranteeError, match=r"at confidence level 0\.999999999999999 from 50"):
        maximize_empirical_f(*sample(50), min_precision=0.9, confidence_level=1 - 1e-15)


def test_limits_are_said_as_they_were_asked():
    with pytest.raises(
        GuaranteeError, match=r"min_precision=0.9999999 .* confidence level 0.999999999 "
    ):
        maximize_empirical_f(*sample(50), min_precision=0.9999999, confidence_level=0.999999999)


def test_the_band_of_the_display_is_what_is_guaranteed():
    from matplotlib import pyplot

    from argmaxf.displays import EmpiricalFDisplay

    y, score = sample(800)
    both = {"min_precision": 0.9, "confidence_level": 0.95}
    shown = EmpiricalFDisplay.from_predictions(y, score, **both)
    guaranteed = shown.limits.precision_low >= 0.9
    cuts = qualifying(y, score, Constraints(0.9))
    assert guaranteed[np.searchsorted(shown.score, cuts.low)].all()
    assert (shown.limits.precision_low[guaranteed] < shown.precision[guaranteed]).all()
    assert not guaranteed[: np.searchsorted(shown.score, cuts.low.min()) - 30].any()
    at_best = shown.limits.precision_low[np.searchsorted(shown.score, shown.best.threshold)]
    assert at_best == pytest.approx(shown.best.guarantee.precision_low)
    assert any(
        "confidence level 0.95" in label for label in shown.ax_.get_legend_handles_labels()[1]
    )
    pyplot.close("all")


@pytest.mark.parametrize("decimals", [0, 1])
def test_the_band_of_scores_that_many_rows_share(decimals):
    from matplotlib import pyplot

    from argmaxf.displays import EmpiricalFDisplay

    y, score = sample(800)
    both = {"min_precision": 0.9, "confidence_level": 0.95}
    shown = EmpiricalFDisplay.from_predictions(y, score.round(decimals), **both)
    at_best = np.searchsorted(shown.score, shown.best.threshold)
    assert shown.limits.precision_low[at_best] == pytest.approx(shown.best.guarantee.precision_low)
    pyplot.close("all")


def test_every_constraint_has_its_band():
    """Each band ends at the guarantee's limit, and holds the constraint where drawn."""
    from matplotlib import pyplot

    from argmaxf.displays import EmpiricalFDisplay

    y, score = sample(2000, rate=0.4)
    chance = {"min_precision": 0.8, "min_recall": 0.7, "max_selected_rate": 0.5}
    shown = EmpiricalFDisplay.from_predictions(y, score, confidence_level=0.9, **chance)
    guarantee, at_best = shown.best.guarantee, np.searchsorted(shown.score, shown.best.threshold)
    limits = shown.limits
    assert limits.precision_low[at_best] == pytest.approx(guarantee.precision_low)
    assert limits.recall_low[at_best] == pytest.approx(guarantee.recall_low)
    assert limits.rate_high[at_best] == pytest.approx(guarantee.rate_high)
    assert (limits.recall_low <= shown.recall).all()
    assert (limits.rate_high >= shown.rate).all()
    assert shown.rate[at_best] == pytest.approx((score >= shown.best.threshold).mean())
    told = shown.ax_.get_legend_handles_labels()[1]
    for name in ("precision", "recall", "part selected"):
        assert f"{name} guaranteed at confidence level 0.9" in told
    assert "part selected above 0.5" in told
    plain = EmpiricalFDisplay.from_predictions(y, score, max_selected_rate=0.2)
    assert plain.limits is None
    assert plain.best.k <= 400
    pyplot.close("all")
