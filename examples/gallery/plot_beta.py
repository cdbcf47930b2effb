"""
The effect of β
===============

β is the weight of recall against precision: at β = 2, recall counts four times as much. A larger
β selects more items, and the threshold falls.
"""

from rare_ones import rows
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf.displays import BetaDisplay

X, X_new, y, y_new = rows()
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
display = BetaDisplay.from_estimator(model, X_new, beta=1.0)
