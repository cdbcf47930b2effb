"""Label plans: rows that tell most about F, and an interval that holds."""

import numpy as np
import pytest
from scipy.special import expit, logit

from argmaxf import maximize_expected_f
from argmaxf.monitoring.labelling import estimate_f, plan_labels


def problem(seed, *, slope=1.0, n=8000):
    """Rare positives with sharp scores; the scores overconfident for slopes above 1."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) * 5.0 - 12.0
    y = rng.random(n) < expit(z)
    p = expit(slope * z)
    return p, y, maximize_expected_f(p).selected


def f1(y, selected):
    return 2 * np.count_nonzero(y & selected) / (np.count_nonzero(y) + np.count_nonzero(selected))


def test_all_labels_give_f_itself():
    p, y, selected = problem(0, n=300)
    plan = plan_labels(p, selected, 300, random_state=0)
    found = estimate_f(y[plan.indices], plan)
    assert found.low == found.value == found.high == pytest.approx(f1(y, selected))
    assert sorted(plan.indices) == list(range(300))
    assert (plan.weights == 1.0).all()


@pytest.mark.parametrize("slope", [1.0, 2.0])
def test_interval_holds_with_few_labels(slope):
    held, errors = [], []
    for seed in range(60):
        p, y, selected = problem(seed, slope=slope)
        plan = plan_labels(p, selected, 100, random_state=seed)
        found = estimate_f(y[plan.indices], plan)
        held.append(found.low <= f1(y, selected) <= found.high)
        errors.append(found.value - f1(y, selected))
    assert np.mean(held) >= 0.87  # 95 % but for three standard errors
    assert np.sqrt(np.mean(np.square(errors))) < 0.09


def test_weights_estimate_totals_without_bias():
    p, y, selected = problem(1)
    totals = []
    for seed in range(200):
        plan = plan_labels(p, selected, 200, random_state=seed)
        totals.append(plan.weights @ y[plan.indices])
    error = np.std(totals) / 200**0.5
    assert abs(np.mean(totals) - y.sum()) < 4 * error


def test_a_larger_budget_only_adds_rows():
    p, _, selected = problem(2)
    small = plan_labels(p, selected, 50, random_state=5)
    large = plan_labels(p, selected, 120, random_state=5)
    assert small.indices.tolist() == large.indices[:50].tolist()


def test_replanning_goes_on_with_the_labels_at_hand():
    p, y, selected = problem(3, slope=2.0)
    first = plan_labels(p, selected, 60, random_state=0)
    second = first.replan(y[first.indices], 60)
    assert not set(first.indices) & set(second.indices)
    both = estimate_f(y[second.indices], second)
    alone = estimate_f(y[first.indices], first)
    assert both.high - both.low < alone.high - alone.low


def test_recalibrated_probabilities_are_nearer_to_the_truth():
    p, y, selected = problem(4, slope=2.0)
    plan = plan_labels(p, selected, 400, random_state=0, target="threshold")
    better = plan.recalibrate(y[plan.indices])
    truth = expit(logit(np.clip(p, 1e-15, 1 - 1e-15)) / 2)
    assert np.abs(better - truth).sum() < 0.5 * np.abs(p - truth).sum()


@pytest.mark.parametrize("measure", ["jaccard", "mcc", "kappa"])
def test_other_measures(measure):
    p, y, selected = problem(5)
    plan = plan_labels(p, selected, 300, measure=measure, random_state=0)
    found = estimate_f(y[plan.indices], plan)
    k, s = np.count_nonzero(selected), np.count_nonzero(y)
    truth = plan.measure.value(np.count_nonzero(y & selected), k, s, y.size)
    assert found.low <= truth <= found.high


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"budget": 0}, "budget"),
        ({"budget": 11}, "at most the number of rows without a label, 10, got 11"),
        ({"selected": [1, 0]}, "one entry for each of 10"),
        ({"p": [0.5] * 9 + [1.5]}, r"got 1.5 at"),
        ({"p": [], "selected": []}, "at least one"),
        ({"selected": [0] * 10}, "selected must mark at least one of 10 rows, got none"),
        ({"random_state": 1.5}, "random_state must be a whole number"),
        ({"random_state": -1}, "random_state must be a whole number"),
    ],
)
def test_bad_plans_are_refused(change, says):
    given = {"p": [0.5] * 10, "selected": [1, 0] * 5, "budget": 3} | change
    with pytest.raises(ValueError, match=says):
        plan_labels(**given)


@pytest.mark.parametrize(
    ("labels", "says"),
    [([1, 0], "each of the 3 rows"), ([1, 0, 2], "must hold 0 and 1"), ([1, 0, np.nan], "labels")],
)
def test_labels_that_do_not_fit_the_plan(labels, says):
    plan = plan_labels([0.5] * 10, [1, 0] * 5, 3, random_state=0)
    with pytest.raises(ValueError, match=says):
        estimate_f(labels, plan)


def test_the_interval_holds_where_another_model_selects():
    held = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=4000) * 3.0 - 5.0
        y, selected = rng.random(z.size) < expit(z), expit(z) >= 0.3
        p = expit(0.5 * z + rng.normal(size=z.size) - 1.0)  # knows less than what selected
        plan = plan_labels(p, selected, 600, random_state=seed)
        found = estimate_f(y[plan.indices], plan)
        held.append(found.low <= f1(y, selected) <= found.high)
    assert np.mean(held) >= 0.83  # 95 % but for three standard errors


def test_the_estimate_lies_in_its_interval():
    plan = plan_labels([0.0] * 5, [1] * 5, 1, random_state=0)
    found = estimate_f([0], plan)
    assert found.low <= found.value <= found.high


def test_something_else_than_a_plan_is_refused():
    with pytest.raises(ValueError, match="plan must be what plan_labels returned, got list"):
        estimate_f([1, 0], [1, 0])


def kinds_of_rows(kind, rng, n=6000):
    """Scores, labels, what was selected and how many labels, of one kind of rows."""
    z = rng.normal(size=n) * 3.0 - 5.0
    p, y, budget = expit(z), rng.random(n) < expit(z), 300
    if kind == "no information":
        p = rng.permutation(p)
    elif kind == "saturated":
        p = np.where(p < 0.01, 0.0, p)
    elif kind == "few positives":
        budget = 8
    selected = p >= 0.4
    if kind in ("another model", "another model, many labels"):
        selected = expit(z + rng.normal(size=n)) >= 0.4
        budget = 100 if kind == "another model" else 300
    return p, y, selected, budget


@pytest.mark.parametrize(
    ("kind", "reliable"),
    [
        ("calibrated", True),
        ("another model, many labels", True),
        ("another model", False),
        ("no information", False),
        ("saturated", False),
        ("few positives", False),
    ],
)
def test_an_estimate_says_where_its_interval_may_fail(kind, reliable):
    found = []
    for seed in range(5):
        p, y, selected, budget = kinds_of_rows(kind, np.random.default_rng(seed))
        plan = plan_labels(p, selected, budget, random_state=seed)
        found.append(estimate_f(y[plan.indices], plan).reliable)
    assert sum(each == reliable for each in found) >= 4


@pytest.mark.parametrize("plans", [1, 2])
def test_the_interval_holds_where_scores_carry_no_information(plans):
    held = []
    for seed in range(30):
        p, y, selected, budget = kinds_of_rows("no information", np.random.default_rng(seed))
        plan = plan_labels(p, selected, budget // plans, random_state=seed)
        if plans == 2:
            plan = plan.replan(y[plan.indices], budget // 2)
        found = estimate_f(y[plan.indices], plan)
        assert found.low <= found.value <= found.high
        held.append(found.low <= f1(y, selected) <= found.high)
    assert np.mean(held) >= 0.83  # 95 % but for three standard errors
