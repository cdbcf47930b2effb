"""
Are the probabilities calibrated?
=================================

Naive Bayes is overconfident. The share of positives among rows of similar probability shows it, and
the title has the effect on F1. On the right is the same model, calibrated on held-out rows.
"""

import matplotlib.pyplot as plt
from rare_ones import rows
from sklearn.calibration import CalibratedClassifierCV
from sklearn.naive_bayes import GaussianNB

from argmaxf.displays import ReliabilityDisplay

X, X_new, y, y_new = rows()
figure, axes = plt.subplots(1, 2, figsize=(12.8, 4.4), layout="constrained")
calibrated = CalibratedClassifierCV(GaussianNB(), method="isotonic")
for ax, model in zip(axes, (GaussianNB(), calibrated), strict=True):
    ReliabilityDisplay.from_estimator(model.fit(X, y), X_new, y_new, ax=ax)
