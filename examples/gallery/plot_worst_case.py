"""
If the odds are off
===================

Probabilities are estimates. If all odds may be off by some factor either way, what is the
decision worth at worst, and what is the best that any set can be sure of?
"""

from rare_ones import rows
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf.displays import WorstCaseDisplay

X, X_new, y, y_new = rows()
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
display = WorstCaseDisplay.from_estimator(model, X_new)
