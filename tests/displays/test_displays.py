"""Displays hold what the library computes, and draw it on the axes they are given."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import argmaxf
from argmaxf.displays import (
    BetaDisplay,
    EmpiricalFDisplay,
    ExpectedFDisplay,
    MethodComparisonDisplay,
    MonitorDisplay,
    PriorSensitivityDisplay,
    ReliabilityDisplay,
)
from argmaxf.displays.base import MOST_POINTS, thinned
from argmaxf.empirical.interval import f_difference
from argmaxf.expected.values import recall_shares
from tests.judges import definition

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + rng.normal(size=300) > 1.3).astype(int)
    return X, y, LogisticRegression().fit(X, y)


FROM_PROBA = [ExpectedFDisplay, BetaDisplay, PriorSensitivityDisplay]
FROM_LABELS = [EmpiricalFDisplay, ReliabilityDisplay]


@pytest.mark.parametrize("display", FROM_PROBA)
def test_from_estimator_draws_the_probabilities_of_the_positive_class(display, data):
    X, _, model = data
    ax = plt.subplots()[1]
    drawn = display.from_estimator(model, X, ax=ax)
    assert drawn.ax_ is ax
    assert drawn.figure_ is ax.figure
    assert ax.get_xlabel()
    assert ax.get_title(loc="left")
    same = display.from_predictions(model.predict_proba(X)[:, 1])
    assert vars(same)[next(iter(vars(same)))] == pytest.approx(vars(drawn)[next(iter(vars(drawn)))])


@pytest.mark.parametrize("display", FROM_LABELS)
def test_from_estimator_with_labels_of_any_kind(display, data):
    X, y, model = data
    words = np.where(y == 1, "yes", "no")
    model_of_words = LogisticRegression().fit(X, words)
    a = display.from_estimator(model, X, y)
    b = display.from_estimator(model_of_words, X, words)
    c = display.from_estimator(model_of_words, X, words, pos_label="no")
    first = "score" if display is EmpiricalFDisplay else "predicted"
    assert getattr(a, first) == pytest.approx(getattr(b, first), nan_ok=True)
    assert getattr(a, first).tolist() != getattr(c, first).tolist()


def test_expected_display_holds_the_curve_and_the_exact_decision(data):
    p = data[2].predict_proba(data[0])[:, 1]
    display = ExpectedFDisplay.from_predictions(p, beta=2, x="threshold")
    assert display.expected == pytest.approx(argmaxf.expected_f_curve(p, beta=2))
    assert display.expected.argmax() == display.decision.k
    k, std = display.band_k[-5], display.band_std[-5]
    top = np.argsort(-p)[:k]
    chosen = np.isin(np.arange(p.size), top)
    assert std == pytest.approx(argmaxf.expected_f(p, chosen, beta=2).std)


def test_expected_display_where_nothing_can_be_positive():
    display = ExpectedFDisplay.from_predictions(np.zeros(5))
    assert display.expected.tolist() == [0] * 6


def test_empirical_steps_are_exact_at_and_beside_every_score(data):
    X, y, model = data
    score = model.decision_function(X).round(1)  # with ties
    display = EmpiricalFDisplay.from_predictions(y, score, ax=False)
    for t in [*display.score, *(display.score - 0.05)[1:]]:
        step = np.searchsorted(display.score, t)  # the step (previous score, score] that holds t
        chosen = score >= t
        f = argmaxf.measures.FBeta().value(np.sum(chosen & (y == 1)), chosen.sum(), y.sum())
        assert display.fbeta[step] == pytest.approx(f)


def test_empirical_constraint_moves_the_cut_and_is_shaded(data):
    X, y, model = data
    free = EmpiricalFDisplay.from_estimator(model, X, y)
    bound = EmpiricalFDisplay.from_estimator(model, X, y, min_recall=0.95)
    assert bound.best.recall >= 0.95 > free.best.recall
    assert "recall below 0.95" in bound.ax_.get_legend_handles_labels()[1]


def test_reliability_counts_every_row_and_prices_overconfidence(data):
    X, y, model = data
    p = model.predict_proba(X)[:, 1]
    honest = ReliabilityDisplay.from_predictions(y, p)
    assert honest.count.sum() == 300
    assert np.nansum(honest.observed * honest.count) == pytest.approx(y.sum())
    inflated = ReliabilityDisplay.from_predictions(y, p**0.2, ax=False)
    assert inflated.expected > inflated.achieved
    assert inflated.cost > honest.cost >= 0


@pytest.mark.parametrize("chosen", [[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0]])
def test_expected_recall_is_its_definition(chosen):
    p = [0.9, 0.0, 0.55, 1.0]
    recall, _ = definition(p, chosen, beta=1e12)
    assert recall_shares(p) @ chosen == pytest.approx(float(recall), abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_expected_recall_of_everything_is_the_chance_of_any_positive(p):
    any_positive = 1 - np.prod(1 - np.array(p))
    assert recall_shares(p).sum() == pytest.approx(any_positive, abs=1e-12)


def test_beta_display_follows_the_decisions(data):
    p = data[2].predict_proba(data[0])[:, 1]
    display = BetaDisplay.from_predictions(p, betas=[2, 0.5], beta=2)
    assert display.beta.tolist() == [0.5, 2]
    assert display.threshold[1] == argmaxf.maximize_expected_f(p, beta=2).threshold
    assert display.recall[1] > display.recall[0]


def test_prior_display_loses_least_where_the_rate_is_right(data):
    p = data[2].predict_proba(data[0])[:, 1]
    display = PriorSensitivityDisplay.from_predictions(p)
    middle = np.argmin(np.abs(display.assumed - p.mean()))
    assert display.loss[middle] == pytest.approx(1 - argmaxf.maximize_expected_f(p).expected)
    assert display.loss.argmin() == middle or display.loss[middle] == display.loss.min()
    assert display.kl[middle] == pytest.approx(0, abs=1e-12)
    assert display.kl.argmin() == middle


def test_prior_display_refuses_certain_probabilities():
    with pytest.raises(ValueError, match="all 0 or all 1, got a mean of 1"):
        PriorSensitivityDisplay.from_predictions(np.ones(3), ax=False)


def test_methods_are_compared_pairwise():
    y = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
    good, bad = y.copy(), 1 - y
    good[0] = 0
    display = MethodComparisonDisplay.from_predictions(y, {"bad $1": bad, "good": good})
    assert display.reference == "good"
    assert display.scores["good"] == argmaxf.f_interval(y, good)
    assert display.differences["good"].value == 0
    assert display.differences["bad $1"].high < 0
    display.figure_.canvas.draw()  # a lone $ must not be taken for mathematics
    with pytest.raises(ValueError, match="reference must be one of"):
        MethodComparisonDisplay.from_predictions(y, {"good": good}, reference="best", ax=False)


def test_intervals_that_may_be_too_narrow_are_marked():
    y = np.random.default_rng(0).random((60, 2)) < [0.5, 0.05]
    few = MethodComparisonDisplay.from_predictions(y, {"a": y})
    assert few.ax_.get_xlabel().endswith("with 95 % interval (may be too narrow)")
    enough = MethodComparisonDisplay.from_predictions(y[:, 0], {"a": y[:, 0]})
    assert enough.ax_.get_xlabel().endswith("with 95 % interval")


def test_methods_from_estimators(data):
    X, y, model = data
    display = MethodComparisonDisplay.from_estimator({"plain": model}, X, y)
    assert display.scores["plain"].value == argmaxf.f_interval(y, model.predict(X)).value


def test_paired_interval_holds_the_true_difference():
    """Two classifiers of known F on draws: the interval covers the difference as often as said."""
    rng = np.random.default_rng(0)
    n, covered = 1000, 0
    recalls, false_alarms, rate = np.array([0.7, 0.6]), np.array([0.1, 0.05]), 0.2
    found = rate * recalls
    f = 2 * found / (found + (1 - rate) * false_alarms + rate)
    for _ in range(400):
        y = rng.random(n) < rate
        luck = rng.random(n)  # shared: the two mostly agree
        a, b = (luck < np.where(y, r, e) for r, e in zip(recalls, false_alarms, strict=True))
        interval = f_difference(y, a, b)
        covered += interval.low <= f[0] - f[1] <= interval.high
    assert 0.92 < covered / 400 < 0.98


def test_many_points_are_thinned_but_not_the_best():
    shown = thinned(10**6, 123_457)
    assert len(shown) <= MOST_POINTS + 3
    assert {0, 123_457, 10**6 - 1} <= set(shown.tolist())


def test_large_display_stays_small(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.beta(0.3, 5, 200_000)
    for name, display in {
        "expected": ExpectedFDisplay.from_predictions(p),
        "empirical": EmpiricalFDisplay.from_predictions(rng.random(p.size) < p, p),
    }.items():
        display.figure_.savefig(tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").stat().st_size < 400_000


def test_displays_load_matplotlib_only_to_draw():
    code = "import sys, argmaxf; d = argmaxf.displays; "
    code += "d.ExpectedFDisplay.from_predictions([.1], ax=False); "
    code += "print('matplotlib' in sys.modules); "
    code += "sys.modules['matplotlib'] = None; sys.modules['matplotlib.pyplot'] = None; "
    code += "d.ExpectedFDisplay.from_predictions([.1])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.strip() == "False"
    assert "pip install 'argmaxf[plot]'" in run.stderr


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y, m: ExpectedFDisplay.from_predictions([0.1], x="size"), "x must be one of"),
        (
            lambda X, y, m: ReliabilityDisplay.from_predictions(y, y, n_bins=0, ax=False),
            "n_bins must be at least 1, got 0",
        ),
        (
            lambda X, y, m: EmpiricalFDisplay.from_predictions([0, 1, 2], [0, 1, 2], ax=False),
            "y_true must have two",
        ),
        (
            lambda X, y, m: MethodComparisonDisplay.from_predictions(y, {}, ax=False),
            "at least one method",
        ),
        (lambda X, y, m: ExpectedFDisplay.from_estimator(m, X, pos_label=7), "pos_label must be"),
    ],
)
def test_bad_input_is_named(call, message, data):
    with pytest.raises(ValueError, match=message):
        call(*data)


def test_another_measure_is_computed_and_named(data):
    X, y, model = data
    p = model.predict_proba(X)[:, 1]
    expected = ExpectedFDisplay.from_predictions(p, measure="jaccard")
    assert expected.decision.k == argmaxf.maximize_expected_f(p, measure="jaccard").k
    assert expected.lines_[0].get_label() == "expected Jaccard"
    found = EmpiricalFDisplay.from_predictions(y, p, measure="jaccard")
    assert found.best.value == argmaxf.maximize_empirical_f(y, p, measure="jaccard").value
    guess = {"half": p >= 0.5, "tenth": p >= 0.1}
    compared = MethodComparisonDisplay.from_predictions(y, guess, measure="jaccard")
    interval = argmaxf.f_interval(y, guess["half"], measure="jaccard")
    assert compared.scores["half"].value == pytest.approx(interval.value)
    assert "Jaccard" in compared.ax_.get_xlabel()
    both = ReliabilityDisplay.from_predictions(y, p, measure="jaccard")
    assert both.best == found.best.value
    prior = PriorSensitivityDisplay.from_predictions(p, measure="jaccard")
    assert prior.loss.min() == pytest.approx(1 - expected.decision.expected, abs=1e-6)


@pytest.mark.parametrize("shows", ["f", "rate"])
def test_monitor_display_draws_every_period_with_its_interval(shows):
    rng = np.random.default_rng(0)
    monitor = argmaxf.Monitor(0.3, rng.beta(0.5, 8, 2000))
    for i, b in enumerate([8, 8, 2]):
        p = rng.beta(0.5, b, 500)
        monitor.update(p, period=f"a day with a long name {i}")
    monitor.add_labels(p[:200], rng.random(200) < p[:200], period=f"a day with a long name {i}")
    drawn = MonitorDisplay.from_monitor(monitor, shows=shows)
    values = [p.predicted.f if shows == "f" else p.rate for p in monitor.periods]
    line = next(each for each in drawn.ax_.lines if len(each.get_xdata()) == 3)
    assert line.get_ydata().tolist() == [each.value for each in values]
    band = drawn.ax_.collections[0].get_paths()[0].vertices[:, 1]
    assert min(band) == pytest.approx(min(each.low for each in values))
    assert max(band) == pytest.approx(max(each.high for each in values))
    assert drawn.ax_.get_ylabel() == ("F1" if shows == "f" else "rate of positives")
    assert "alarm" in [text.get_text() for text in drawn.ax_.get_legend().get_texts()]
    with pytest.raises(ValueError, match="shows must be"):
        MonitorDisplay.from_monitor(monitor, shows="k")
    with pytest.raises(ValueError, match="at least one period"):
        MonitorDisplay.from_monitor(argmaxf.Monitor(0.3, [0.2, 0.7]))


def test_display_of_a_sketch_shows_the_curves_of_its_bins():
    rng = np.random.default_rng(0)
    score = rng.beta(0.5, 3.0, 2_000)
    y = rng.random(2_000) < score
    sketch = argmaxf.LabelledSketch.from_arrays(y, score)
    found = EmpiricalFDisplay.from_sketch(sketch, min_precision=0.3)
    assert found.best == sketch.tune(min_precision=0.3)
    for place in (0, found.score.size // 2, -1):
        chosen = score >= found.score[place]
        assert found.rate[place] == pytest.approx(chosen.mean())
        assert found.recall[place] == pytest.approx((chosen & y).sum() / y.sum())
        assert found.precision[place] == pytest.approx((chosen & y).sum() / chosen.sum())
    assert f"Best threshold {found.best.threshold:.3g}" in found.ax_.get_title("left")
