"""
Expected F if the odds are wrong
================================

Probabilities are estimates. If all odds may be wrong by some factor, what is the worst case of the
decision, and what is the best worst case of any set?
"""

from rare_ones import rows
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf.displays import WorstCaseDisplay

X, X_new, y, y_new = rows()
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
display = WorstCaseDisplay.from_estimator(model, X_new)
