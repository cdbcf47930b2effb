"""
Methods side by side
====================

The same classifier at threshold 0.5, with a tuned threshold, with the highest expected F1, and a
linear model trained for F1. The differences on the right are paired over the rows: errors that two
methods share cancel. With 30 positives most differences remain uncertain.
"""

from rare_ones import rows
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf import ExpectedFClassifier, SoftFClassifier, ThresholdFClassifier
from argmaxf.displays import MethodComparisonDisplay

X, X_new, y, y_new = rows()
logistic = make_pipeline(StandardScaler(), LogisticRegression())
methods = {
    "threshold 0.5": logistic,
    "tuned threshold": ThresholdFClassifier(logistic),
    "expected F": ExpectedFClassifier(logistic),
    "trained for F": make_pipeline(StandardScaler(), SoftFClassifier()),
}
fitted = {name: method.fit(X, y) for name, method in methods.items()}
display = MethodComparisonDisplay.from_estimator(fitted, X_new, y_new)
