"""
Can the probabilities be taken at their word?
=============================================

Naive Bayes is sure of everything. The share of positives among rows of like probability shows it,
and the title says what it costs in F1; on the right the same model, calibrated on rows held out.
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
