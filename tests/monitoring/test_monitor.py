"""A monitor tells what changed, keeps its false-alarm rate, and survives being saved."""

import json

import numpy as np
import pytest
from scipy.stats import binom

from argmaxf import expected_f, maximize_expected_f
from argmaxf.monitoring.monitor import Monitor
from argmaxf.monitoring.prediction import predict_f


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
    [("{", "not a monitor"), ('{"format": "x"}', "not a monitor"), ("[]", "not a monitor")],
)
def test_a_damaged_file_is_refused(tmp_path, content, says):
    (tmp_path / "m.json").write_text(content)
    with pytest.raises(ValueError, match=says):
        Monitor.load(tmp_path / "m.json")


def test_a_file_of_a_newer_version_is_refused(tmp_path):
    Monitor(0.5, [0.2, 0.7]).save(tmp_path / "m.json")
    state = json.loads((tmp_path / "m.json").read_text())
    (tmp_path / "m.json").write_text(json.dumps(state | {"version": 99}))
    with pytest.raises(ValueError, match=r"newer argmaxf .* upgrade"):
        Monitor.load(tmp_path / "m.json")
