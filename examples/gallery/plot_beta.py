"""
What each β would choose
========================

β says how much recall counts against precision: at 2, four times as much. As it grows the best
set grows with it, and its threshold falls.
"""

from rare_ones import rows
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf.displays import BetaDisplay

X, X_new, y, y_new = rows()
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
display = BetaDisplay.from_estimator(model, X_new, beta=1.0)
