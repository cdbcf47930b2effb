"""A monitor tells what changed, keeps its false-alarm rate, and survives being saved."""

import json
from datetime import datetime

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import binom

from argmaxf import expected_f, maximize_expected_f, plan_labels
from argmaxf.monitoring.monitor import Monitor
from argmaxf.monitoring.prediction import PredictedF, predict_f


def rows(rng, rate, n):
    """Calibrated probabilities of rows whose rate of positives is about `rate`."""
    return rng.beta(0.5, 0.5 / rate, size=n)


def test_predicted_f_of_equal_probabilities_is_binomial():
    predicted = predict_f(np.full(30, 0.3), np.arange(30) < 30)
    t = np.arange(31)
    f = 2 * t / (30 + t)
    mass = binom(30, 0.3).pmf(t)
    assert predicted.f.value == pytest.approx(mass @ f, rel=1e-12)
    assert predicted.f.low == f[np.searchsorted(mass.cumsum(), 0.025)]
    assert predicted.f.high == f[np.searchsorted(mass.cumsum(), 0.975)]


@pytest.mark.parametrize("measure", ["f2", "jaccard", "mcc", "kappa", "gmean", "fowlkes_mallows"])
def test_predicted_values_of_other_measures_are_the_expected_ones(measure):
    p = np.random.default_rng(0).beta(0.5, 3, 300)
    predicted = predict_f(p, threshold=0.3, measure=measure).f
    assert predicted.value == pytest.approx(expected_f(p, p >= 0.3, measure=measure).mean, rel=1e-9)
    assert predicted.low < predicted.value < predicted.high


@pytest.mark.parametrize("n", [1, 3, 400, 6000])
def test_predicted_f_is_the_expected_f(n):
    p = np.random.default_rng(n).beta(0.3, 4, n)
    predicted = predict_f(p, threshold=0.2)
    assert predicted.f.value == pytest.approx(expected_f(p, p >= 0.2).mean, rel=1e-8)
    assert predicted.positives.value == pytest.approx(p.sum(), rel=1e-9)


def test_interval_holds_as_often_as_stated():
    rng = np.random.default_rng(0)
    held = []
    for _ in range(300):
        p = rows(rng, 0.02, 400)
        y = rng.random(400) < p
        selected = maximize_expected_f(p).selected
        f = 2 * np.count_nonzero(y & selected) / max(1, y.sum() + selected.sum())
        interval = predict_f(p, selected).f
        held.append(interval.low <= f <= interval.high)
    assert np.mean(held) >= 0.95


def test_calibration_rows_correct_wrong_probabilities():
    rng = np.random.default_rng(0)
    truth = rows(rng, 0.05, 30_000)
    p = truth**0.5  # far too high
    y = rng.random(p.size) < truth
    predicted = predict_f(p[3000:], threshold=0.5, calibration=(p[:3000], y[:3000]))
    selected = p[3000:] >= 0.5
    found = 2 * np.count_nonzero(y[3000:] & selected) / (y[3000:].sum() + selected.sum())
    assert predicted.f.low <= found <= predicted.f.high
    assert predict_f(p[3000:], selected).f.high < found


def test_nothing_changed_raises_hardly_any_alarm():
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(20):
        monitor = Monitor(0.3, rows(rng, 0.05, 3000))
        alarms += any(monitor.update(rows(rng, 0.05, 300)).alarms for _ in range(12))
    assert alarms <= binom(20, 0.05).ppf(0.999)


def test_a_doubled_rate_is_noticed_at_once():
    rng = np.random.default_rng(2)
    monitor = Monitor(0.3, rows(rng, 0.05, 5000))
    assert not monitor.update(rows(rng, 0.05, 1000), period="Monday").alarms
    period = monitor.update(rows(rng, 0.15, 1000), period="Tuesday")
    assert "share of selected rows" in period.alarms
    assert period.predicted.f.low <= period.predicted.f.value <= period.predicted.f.high
    assert period.loss >= 0.0


def test_rows_of_one_period_may_come_in_parts():
    rng = np.random.default_rng(3)
    reference, p = rows(rng, 0.05, 2000), rows(rng, 0.05, 1000)
    whole, parts = Monitor(0.3, reference), Monitor(0.3, reference)
    expected = whole.update(p, period="a")
    for part in np.array_split(p, 3):
        found = parts.update(part, period="a")
    assert found.n == expected.n == 1000
    assert found.predicted.f.value == pytest.approx(expected.predicted.f.value, rel=1e-12)
    parts.update(p, period="b")
    with pytest.raises(ValueError, match="period 'a' has ended"):
        parts.update(p, period="a")


def test_a_saved_monitor_goes_on(tmp_path):
    rng = np.random.default_rng(4)
    monitor = Monitor(0.3, rows(rng, 0.05, 2000), beta=2.0)
    p = rows(rng, 0.05, 500)
    monitor.update(p, period="day 1")
    monitor.add_labels(p[:200], rng.random(200) < p[:200], period="day 1")
    monitor.save(tmp_path / "monitor.json")
    loaded = Monitor.load(tmp_path / "monitor.json")
    assert loaded.periods == monitor.periods
    assert loaded.periods[0].found is not None
    assert loaded.update(p).name == monitor.update(p).name == "2"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not a saved monitor"),
        ('{"format": "x"}', "must be 'argmaxf monitor'"),
        ("[]", "not a"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, content, says):
    (tmp_path / "m.json").write_text(content)
    with pytest.raises(ValueError, match=says):
        Monitor.load(tmp_path / "m.json")


def test_a_file_with_periods_that_cannot_be_is_refused(tmp_path):
    monitor = Monitor(0.5, [0.2, 0.7])
    monitor.update([0.1, 0.8], period="a")
    monitor.save(tmp_path / "m.json")
    state = json.loads((tmp_path / "m.json").read_text())
    (period,) = state["periods"]
    counts = [[*each[:2], 2, each[1], 0] for each in period["rows"]["counts"]]  # twice labelled
    too_many = period | {"rows": period["rows"] | {"counts": counts}}
    for periods, says in (
        ([period, period], "two periods are called 'a'"),
        ([too_many], "it has 1 selected rows, got 2 labels of such rows"),
    ):
        (tmp_path / "m.json").write_text(json.dumps(state | {"periods": periods}))
        with pytest.raises(ValueError, match=says):
            Monitor.load(tmp_path / "m.json")


def test_a_file_of_a_newer_version_is_refused(tmp_path):
    Monitor(0.5, [0.2, 0.7]).save(tmp_path / "m.json")
    state = json.loads((tmp_path / "m.json").read_text())
    (tmp_path / "m.json").write_text(json.dumps(state | {"version": 99}))
    with pytest.raises(ValueError, match=r"newer argmaxf \(version 99 .*install that one"):
        Monitor.load(tmp_path / "m.json")


def test_every_look_at_a_period_counts_for_the_false_alarm_rate():
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(30):
        monitor = Monitor(0.3, rows(rng, 0.05, 3000), false_alarm_rate=0.2)
        looks = (monitor.update(rows(rng, 0.05, 40), period="day").alarms for _ in range(12))
        alarms += any(looks)
    assert alarms <= binom(30, 0.2).ppf(0.999)


def test_batches_of_an_iterator_are_one_look():
    rng = np.random.default_rng(6)
    reference, p = rows(rng, 0.05, 2000), rows(rng, 0.2, 1000)
    one, other = Monitor(0.3, reference), Monitor(0.3, reference)
    assert one.update(iter(np.array_split(p, 7)), period="a") == other.update(p, period="a")


def test_monitors_of_two_places_merge():
    rng = np.random.default_rng(7)
    reference, p = rows(rng, 0.05, 2000), rows(rng, 0.05, 900)
    whole, here, there = (Monitor(0.3, reference) for _ in range(3))
    whole.update(p, period="Monday")
    here.update(p[:300], period="Monday")
    there.update(p[300:], period="Monday")
    there.update(p, period="Tuesday")
    merged = here + there
    assert [each.name for each in merged.periods] == ["Monday", "Tuesday"]
    monday = merged["Monday"]
    assert (monday.n, monday.selected) == (900, whole["Monday"].selected)
    assert monday.predicted.f.value == pytest.approx(whole["Monday"].predicted.f.value, rel=1e-12)
    assert here["Monday"].n == 300
    with pytest.raises(ValueError, match="same reference, threshold"):
        here + Monitor(0.4, reference)


def test_merging_keeps_the_false_alarm_rate():
    rng = np.random.default_rng(18)
    alarms, of_parts = 0, 0
    for _ in range(20):
        reference, p = rows(rng, 0.05, 2000), rows(rng, 0.05, 1200)
        y = rng.random(p.size) < p
        parts = [Monitor(0.3, reference, false_alarm_rate=0.5) for _ in range(4)]
        for monitor, mine in zip(parts, np.split(np.arange(p.size), 4), strict=True):
            monitor.update(p[mine], period="day")
            monitor.add_labels(p[mine], y[mine], period="day")
        merged = sum(parts[1:], start=parts[0])
        alarms += bool(merged["day"].alarms)
        of_parts += any(each["day"].alarms for each in parts)
    assert alarms <= binom(20, 0.5).ppf(0.999)
    assert alarms < of_parts


def test_a_merged_monitor_is_the_monitor_of_all_rows():
    rng = np.random.default_rng(19)
    reference = rows(rng, 0.05, 2000)
    whole, here, there = (Monitor(0.3, reference) for _ in range(3))
    for day in ("a", "b", "c"):
        p = rows(rng, 0.05 if day != "c" else 0.2, 800)
        whole.update(p, period=day)
        here.update(p[:300], period=day)
        there.update(p[300:], period=day)
    assert (here + there)["c"].alarms == whole["c"].alarms != ()
    assert whole.update(p, period="d").alarms == (here + there).update(p, period="d").alarms


def test_more_labels_than_rows_are_refused():
    monitor = Monitor(0.5, [0.2, 0.7])
    monitor.update([0.1, 0.6, 0.8], period="a")
    monitor.add_labels([0.6, 0.8], [0, 1], period="a")
    with pytest.raises(ValueError, match=r"has 2 selected rows, got 3 labels of such rows"):
        monitor.add_labels([0.6], [1], period="a")


def drawn(rng, rate, n):
    """Scores with P(x | y) that never changes, as calibrated probabilities for a rate of 5 %."""
    y = rng.random(n) < rate
    x = rng.normal(np.where(y, 1.5, -0.5))
    density = np.exp(-0.5 * (x - 1.5) ** 2) * 0.05, np.exp(-0.5 * (x + 0.5) ** 2) * 0.95
    return density[0] / (density[0] + density[1]), y


def f1(y, selected):
    return 2 * np.count_nonzero(y & selected) / (y.sum() + selected.sum())


def test_prior_shift_is_corrected_and_covariate_shift_needs_no_correction():
    rng = np.random.default_rng(8)
    reference, _ = drawn(rng, 0.05, 20_000)
    monitor = Monitor(0.3, reference)
    p, y = drawn(rng, 0.25, 20_000)
    period = monitor.update(p, period="prior shift")
    found = f1(y, p >= 0.3)
    after = period.predicted_after_shift.f
    assert after.low <= found <= after.high
    assert not period.predicted.f.low <= found <= period.predicted.f.high
    assert period.rate.low <= 0.25 <= period.rate.high
    assert period.alarms
    p = rng.beta(0.5, 3, 20_000)  # other rows, whose probabilities are right
    y = rng.random(p.size) < p
    predicted = monitor.update(p, period="covariate shift").predicted.f
    assert predicted.low <= f1(y, p >= 0.3) <= predicted.high


def test_a_changed_relation_is_seen_by_labels_only():
    rng = np.random.default_rng(9)
    p, _ = drawn(rng, 0.05, 20_000)
    monitor = Monitor(0.3, p[:10_000])
    now = p[10_000:]
    y = rng.random(now.size) < 0.3 * now  # a third as many positives at every probability
    assert monitor.update(now, period="now").alarms == ()
    period = monitor.add_labels(now[:3000], y[:3000], period="now")
    assert period.alarms == ("labels against probabilities",)
    assert period.found.high < period.predicted.f.low


def test_labels_that_fit_raise_hardly_any_alarm():
    rng = np.random.default_rng(10)
    alarms = 0
    for _ in range(40):
        p = rows(rng, 0.05, 2000)
        monitor = Monitor(0.3, p)
        monitor.update(p, period="a")
        y = rng.random(p.size) < p
        alarms += bool(monitor.add_labels(p, y, period="a").alarms)
    assert alarms <= binom(40, 0.05).ppf(0.999)


def test_labels_of_the_reference_recalibrate_the_prediction(tmp_path):
    rng = np.random.default_rng(11)
    truth = rows(rng, 0.05, 26_000)
    y, p = rng.random(truth.size) < truth, truth**0.5
    monitor = Monitor(0.5, p[:6000], labels=y[:6000])
    predicted = monitor.update(p[6000:], period="a").predicted.f
    found = f1(y[6000:], p[6000:] >= 0.5)
    assert predicted.low <= found <= predicted.high
    monitor.save(tmp_path / "m.json")
    assert Monitor.load(tmp_path / "m.json").periods == monitor.periods


def test_planned_labels_of_the_reference_recalibrate_the_prediction():
    held = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        truth = rows(rng, 0.05, 8000)
        y, p = rng.random(truth.size) < truth, truth**0.7
        plan = plan_labels(p[:4000], p[:4000] >= 0.4, 300, random_state=seed)
        known = np.full(4000, np.nan)
        known[plan.indices] = y[plan.indices]
        reference = pl.DataFrame({"p": p[:4000], "y": known}, nan_to_null=True)
        monitor = Monitor.of_frame(0.4, reference, "p", label="y")
        period = monitor.update(p[4000:])
        found = f1(y[4000:], p[4000:] >= 0.4)
        held.append(period.predicted.f.low <= found <= period.predicted.f.high)
        assert monitor.rate == pytest.approx(0.05, abs=0.05)  # .14 to .3 of the labels are positive
    assert sum(held) >= 6


@pytest.mark.parametrize("measure", ["f1", "jaccard", "dice", "f2"])
def test_monitors_of_every_named_measure_are_saved(measure, tmp_path):
    monitor = Monitor(0.3, rows(np.random.default_rng(12), 0.05, 500), measure=measure)
    monitor.update(rows(np.random.default_rng(13), 0.05, 200))
    monitor.save(tmp_path / "m.json")
    assert Monitor.load(tmp_path / "m.json").periods == monitor.periods


def test_a_monitor_of_a_frozen_classifier():
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression

    from argmaxf import ExpectedFClassifier

    held = []
    for seed in range(20):  # one sample alone may lie outside of its interval
        X, y = make_classification(3000, weights=[0.9], random_state=seed)
        names = np.where(y, "yes", "no")
        frozen = ExpectedFClassifier(LogisticRegression()).fit(X[:1000], names[:1000]).freeze()
        monitor = Monitor.of_classifier(frozen, X[1000:2000], names[1000:2000])
        period = monitor.update(frozen.predict_proba(X[2000:])[:, 1])
        assert period.selected == np.count_nonzero(frozen.predict(X[2000:]) == "yes")
        found = f1(y[2000:] == 1, frozen.predict(X[2000:]) == "yes")
        held.append(period.predicted.f.low <= found <= period.predicted.f.high)
    assert sum(held) >= binom(20, 0.95).ppf(1e-3)
    with pytest.raises(ValueError, match="one threshold_ on its probabilities, got LogisticRegr"):
        Monitor.of_classifier(LogisticRegression().fit(X, y), X)


@pytest.mark.parametrize("p", [[], iter([])])
def test_a_period_without_rows_is_refused(p):
    monitor = Monitor(0.5, [0.2, 0.7])
    with pytest.raises(ValueError, match=r"at least one|must have rows, got none"):
        monitor.update(p)
    assert monitor.periods == []


def test_a_monitor_predicts_measures_that_a_sketch_cannot_decide():
    rng = np.random.default_rng(17)
    p = rows(rng, 0.05, 2000)
    period = Monitor(0.3, p[:1000], measure="gmean").update(p[1000:])
    predicted = predict_f(p[1000:], threshold=0.3, measure="gmean").f
    assert period.predicted.f.value == pytest.approx(predicted.value, rel=1e-4)
    assert np.isnan(period.best_threshold)
    assert Monitor(0.3, p[:1000], measure="mcc").update(p[1000:]).loss >= 0.0


def test_labels_that_fit_raise_hardly_any_alarm_with_few_labels_at_deployment():
    alarms = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        p = rows(rng, 0.05, 5000)
        y = rng.random(p.size) < p
        monitor = Monitor(0.3, p[:1000], labels=y[:1000])
        monitor.update(p[1000:], period="a")
        alarms += bool(monitor.add_labels(p[1000:], y[1000:], period="a").alarms)
    assert alarms <= binom(30, 0.05).ppf(0.999)


def test_labels_of_the_reference_correct_the_rate_of_positives():
    rng = np.random.default_rng(14)
    truth = rows(rng, 0.05, 26_000)
    y, p = rng.random(truth.size) < truth, truth**0.5
    period = Monitor(0.5, p[:6000], labels=y[:6000]).update(p[6000:])
    assert period.rate.value == pytest.approx(y[6000:].mean(), abs=0.03)  # raw p would say 98 %
    after, before = period.predicted_after_shift.f, period.predicted.f
    assert after.value == pytest.approx(before.value, abs=0.03)


def test_single_precision_rows_are_selected_alike_with_and_without_labels():
    p = np.full(50, 0.7, np.float32)  # a little below 0.7
    monitor = Monitor(0.7, [0.2, 0.9])
    assert monitor.update(p, period="a").selected == 0
    assert monitor.add_labels(p, [1] * 50, period="a").found.value == 0.0


def test_order_of_many_labelled_rows_does_not_matter():
    rng = np.random.default_rng(15)
    p = rng.permutation(np.r_[np.full(3000, 0.001), np.full(3000, 0.999)])
    y = p > 0.5
    y[np.flatnonzero(y)[:60]] = False  # 3 of them would be expected
    monitor = Monitor(0.0, p)
    monitor.update(p, period="a")
    assert monitor.add_labels(p, y, period="a").alarms == ("labels against probabilities",)


def test_periods_without_a_name_never_join_another():
    monitor = Monitor(0.5, [0.2, 0.7])
    monitor.update([0.3], period=2)
    assert monitor.update([0.3]).name == "3"
    assert (monitor[2].n, monitor["3"].n) == (1, 1)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_a_reference_of_certain_rows(p):
    period = Monitor(p, np.full(5, p)).update(np.full(5, p))
    assert period.predicted.f.value == pytest.approx(p)
    assert period.alarms == ()


def test_a_threshold_that_never_selected_is_refused():
    with pytest.raises(ValueError, match=r"select some of the 2 reference rows, got 0.5, which"):
        Monitor(0.5, [0.1, 0.2])
    with pytest.raises(ValueError, match=r"select some of the 2 reference rows"):
        Monitor.of_frame(0.5, pl.DataFrame({"p": [0.1, 0.2]}), "p")


def day_frame(rng, days, n):
    """Rows in no order of their days; a third of the labels is not known."""
    p = rows(rng, 0.05, days * n)
    y = (rng.random(p.size) < p).astype(float)
    y[rng.random(p.size) < 1 / 3] = np.nan
    day = np.repeat(np.datetime64("2026-03-01") + np.arange(days), n)
    order = rng.permutation(p.size)
    return {"day": day[order], "p": p[order], "y": y[order]}


def test_a_frame_of_any_engine_is_watched_by_its_days(engine):
    rng = np.random.default_rng(20)
    reference, data = day_frame(rng, 1, 900), day_frame(rng, 3, 400)
    data["day"] = data["day"].astype(str)
    table = pa.table(data | {"y": pa.array(data["y"], from_pandas=True)})
    monitor = Monitor.of_frame(0.3, engine.frame(pa.table({"p": reference["p"]})), "p")
    periods = monitor.update_frame(engine.frame(table), "p", time="day", label="y")
    assert [each.name for each in periods] == ["2026-03-01", "2026-03-02", "2026-03-03"]
    arrays = Monitor(0.3, reference["p"])
    for each in periods:
        mine = data["day"] == each.name
        known = mine & ~np.isnan(data["y"])
        arrays.update(data["p"][mine], period=each.name)
        assert arrays.add_labels(data["p"][known], data["y"][known], period=each.name) == each
    assert monitor.periods == periods


@pytest.mark.parametrize(
    "change",
    [
        {"looks": -1},
        {"measure": []},
        {"reference": {"bins": [], "counts": []}},
        {"reference": {"bins": [9, 9], "counts": [[1, 0, 0, 0, 0]] * 2}},
        {"reference": {"bins": [-9], "counts": [[1, 0, 0, 0, 0]]}},
        {"reference": {"bins": [9], "counts": [[1, 0, 0, 0, 1]]}},
        {"reference": {"bins": [9], "counts": [[1, 2**31, 0, 0, 0]]}},
        {"reference": {"bins": [9], "counts": [[1e308, 0, 0, 0, 0]]}},
        {"reference": {"bins": [9], "counts": [[1.5, 0, 0, 0, 0]]}},
        {"looks": 10**200},
        {"reference": {"bins": [9], "counts": [[1, 0]]}},
        {"reference": {}},
        {"periods": [{"name": "a"}]},
    ],
)
def test_an_altered_file_is_refused(tmp_path, change):
    Monitor(0.5, [0.2, 0.7]).save(tmp_path / "m.json")
    state = json.loads((tmp_path / "m.json").read_text())
    (tmp_path / "m.json").write_text(json.dumps(state | change))
    with pytest.raises(ValueError, match=r"m\.json: the saved monitor is damaged"):
        Monitor.load(tmp_path / "m.json")


def every_classifier():
    """Every kind of classifier of the package."""
    from sklearn.linear_model import LogisticRegression

    import argmaxf

    kinds = ("ExpectedF", "ThresholdF", "BlendF", "AutoF", "CostSensitiveF", "SoftF", "MarginF")
    for kind in kinds:
        of = getattr(argmaxf, f"{kind}Classifier")
        yield of(*([] if kind in ("SoftF", "MarginF") else [LogisticRegression()]))


@pytest.mark.parametrize("model", [*every_classifier()], ids=lambda model: type(model).__name__)
def test_f_precision_and_recall_of_every_classifier_are_predicted(model):
    rng = np.random.default_rng(21)
    y = rng.random(12_000) < 0.1
    X = rng.normal(np.where(y[:, None], 1.3, 0.0), 1.0, (y.size, 2))
    (a, b, c), names = np.split(np.arange(y.size), [2000, 4000]), np.where(y, "yes", "no")
    model.fit(X[a], names[a])
    for each in (model, model.freeze()):
        found = PredictedF.of_classifier(each, X[c], X[b], names[b])
        selected = each.predict(X[c]) == "yes"
        assert found.selected == np.count_nonzero(selected)
        truth = f1(y[c], selected), y[c][selected].mean(), selected[y[c]].mean()
        for interval, value in zip((found.f, found.precision, found.recall), truth, strict=True):
            assert interval.low - 0.02 <= value <= interval.high + 0.02
    if model.__class__.__name__ == "CostSensitiveFClassifier":
        return  # it has no threshold on its probabilities
    monitor = Monitor.of_classifier(model.freeze(), X[b], names[b])
    period = monitor.update(X[c])
    assert period.selected == found.selected
    assert period.predicted.f.value == pytest.approx(found.f.value, abs=0.02)


def test_a_loaded_monitor_takes_rows_again_if_it_is_given_the_classifier(tmp_path):
    from sklearn.linear_model import LogisticRegression

    X = np.random.default_rng(22).normal(size=(900, 2))
    model = LogisticRegression().fit(X[:300], X[:300, 0] > 1)
    model.threshold_ = 0.4
    monitor = Monitor.of_classifier(model, X[300:600])
    monitor.save(tmp_path / "m.json")
    period = monitor.update(X[600:])
    assert Monitor.load(tmp_path / "m.json", model).update(X[600:]) == period
    with pytest.raises(ValueError, match="p must"):
        Monitor.load(tmp_path / "m.json").update(X[600:])


@pytest.mark.parametrize("of", [Monitor, PredictedF])
def test_classifiers_that_cannot_be_watched_are_refused(of):
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    X, y = make_classification(300, n_classes=3, n_informative=4, random_state=0)
    with pytest.raises(ValueError, match=r"two classes, got LogisticRegression with classes_ \["):
        of.of_classifier(LogisticRegression().fit(X, y), X)
    with pytest.raises(
        ValueError, match=r"y_reference is needed, .* LinearSVC has no predict_proba"
    ):
        of.of_classifier(LinearSVC().fit(X, y > 0), X)


def test_the_best_threshold_is_that_of_the_recalibrated_probabilities():
    rng = np.random.default_rng(23)
    truth = rows(rng, 0.05, 40_000)
    p, y = truth**0.3, rng.random(truth.size) < truth  # far too high
    best = maximize_expected_f(truth[20_000:])
    monitor = Monitor(best.threshold**0.3, p[:20_000], labels=y[:20_000])
    period = monitor.update(p[20_000:])
    assert period.best_threshold == pytest.approx(best.threshold**0.3, abs=0.05)
    assert period.loss < 0.005
    assert Monitor(best.threshold**0.3, p[:20_000]).update(p[20_000:]).loss > 0.1


def test_labels_of_other_classes_are_refused():
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression

    from argmaxf import ExpectedFClassifier

    X, y = make_classification(300, random_state=0)
    frozen = ExpectedFClassifier(LogisticRegression()).fit(X, y).freeze()
    with pytest.raises(ValueError, match=r"y_reference must hold the classes \[0, 1\]"):
        Monitor.of_classifier(frozen, X, np.where(y, "yes", "no"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"threshold": "x"}, "threshold must be a real number"),
        ({"threshold": np.nan}, "threshold must lie in"),
        ({"threshold": 0.5, "calibration": 3}, "calibration must be a tuple"),
        ({"threshold": 0.5, "calibration": ([0.5], [1], [1])}, "calibration must be a tuple"),
        ({"threshold": 0.5, "calibration": ([0.5], [1, 0])}, "one entry for each of 1"),
    ],
)
def test_bad_options_of_predict_f_are_refused(options, says):
    with pytest.raises(ValueError, match=says):
        predict_f([0.2, 0.6], **options)


def test_an_infinite_threshold_selects_nothing():
    assert predict_f([0.2, 0.6], threshold=np.inf).selected == 0


def test_predicted_f_of_a_million_rows_is_the_expected_f():
    p = np.random.default_rng(16).beta(0.5, 9.5, 1_000_000)
    predicted = predict_f(p, threshold=0.3)
    expected = expected_f(p, p >= 0.3)
    assert predicted.f.value == pytest.approx(expected.mean, rel=1e-6)
    assert predicted.f.high - predicted.f.low == pytest.approx(2 * 1.96 * expected.std, rel=0.01)


def test_a_frame_without_times_is_one_period():
    frame = pl.DataFrame({"p": [0.1, 0.8, None]})
    monitor = Monitor.of_frame(0.5, pl.DataFrame({"p": [0.2, 0.9], "y": [0, 1]}), "p", label="y")
    (period,) = monitor.update_frame(frame, "p", period="Monday", nulls="drop")
    assert (period.name, period.n, period.selected) == ("Monday", 2, 1)
    expected = Monitor(0.5, [0.2, 0.9], labels=[0, 1]).update([0.1, 0.8], period="Monday")
    assert period == expected


@pytest.mark.parametrize("as_text", [True, False])
def test_times_are_rounded_down(as_text):
    times = pl.datetime_range(
        datetime(2026, 3, 1), datetime(2026, 3, 2, 23), "1h", time_unit="us", eager=True
    )
    times = times.cast(pl.String) if as_text else times
    frame = pl.LazyFrame({"at": times, "p": np.linspace(0.0, 0.9, 48)})
    monitor = Monitor(0.5, [0.2, 0.9])
    found = monitor.update_frame(frame, "p", time="at", every="1d")
    assert [(each.name, each.n) for each in found] == [("2026-03-01", 24), ("2026-03-02", 24)]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"column": "q"}, "no column 'q'"),
        ({"time": "q"}, "no column 'q'"),
        ({"label": "q"}, "label must be a column of numbers or booleans, got 'q'"),
        ({"label": "text"}, "label must be a column of numbers or booleans, got 'text'"),
        ({"label": "p"}, r"column 'p' must hold 0, 1, or nothing where .* got 0.2"),
        ({"every": "1d"}, "every needs time"),
        ({"time": "y", "every": "1d"}, "every needs a column of dates or times, got 'y'"),
        ({"time": "q", "every": "1d"}, "no column 'q'"),
        ({"time": "gap"}, "column of times must have a value in every row"),
        ({"column": "gap"}, r"column 'gap' must have a value in every row, got 1 null"),
        ({"column": "large"}, r"column 'large' must be in \[0, 1\], got 7.0"),
    ],
)
def test_frames_that_cannot_be_watched_are_refused(options, says):
    frame = pl.DataFrame({"p": [0.2, 0.7], "y": [0, 1], "text": ["a", "b"]})
    frame = frame.with_columns(gap=pl.Series([0.5, None]), large=pl.Series([0.5, 7.0]))
    monitor = Monitor(0.5, [0.2, 0.7])
    with pytest.raises(ValueError, match=says):
        monitor.update_frame(frame, **({"column": "p"} | options))
    assert monitor.periods == []


def test_a_time_for_every_row_is_refused():
    frame = pl.DataFrame({"p": np.full(1001, 0.5), "at": np.arange(1001)})
    with pytest.raises(ValueError, match=r"at most 1,000 different values, got 1,001 in 'at'"):
        Monitor(0.5, [0.2, 0.7]).update_frame(frame, "p", time="at")
