"""
Every threshold, with labels
============================

Precision, recall and F1 at each threshold on labelled rows are steps, and the best one is found
exactly: here among those that find at least half of the positives. Thresholds that miss more are
shaded.
"""

from rare_ones import rows
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf.displays import EmpiricalFDisplay

X, X_new, y, y_new = rows()
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
display = EmpiricalFDisplay.from_estimator(model, X_new, y_new, min_recall=0.5)
