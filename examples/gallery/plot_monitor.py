"""
A deployed threshold, week by week
==================================

Twelve weeks without labels but for a few. In week 7 positives become three times as frequent, which
raises alarms, also while that week is among the last four. From week 10 on only a third of the
former positives are positive: the predicted F1 is wrong, and the labelled rows show it.
"""

import numpy as np

from argmaxf import Monitor
from argmaxf.displays import MonitorDisplay

rng = np.random.default_rng(0)


def week(rate, still_positive=1.0, n=4000):
    y = rng.random(n) < rate
    x = rng.normal(np.where(y, 1.5, -0.5))
    odds = np.exp(2 * x - 1.0) * 0.05 / 0.95  # the posterior odds at 5 % positives
    return odds / (1 + odds), y & (rng.random(n) < still_positive)


p, y = week(0.05)
monitor = Monitor(0.3, p, labels=y)
for i in range(12):
    p, y = week(0.15 if 6 <= i < 9 else 0.05, 1 / 3 if i >= 9 else 1.0)
    monitor.update(p, period=f"week {i + 1}")
    if i in (2, 5, 10, 11):
        monitor.add_labels(p[:1500], y[:1500], period=f"week {i + 1}")
display = MonitorDisplay.from_monitor(monitor)
