"""
Every threshold on labelled scores
==================================

Precision, recall and F1 at each threshold. The best threshold is found exactly, here among those
with a recall of at least 0.5. Thresholds with a lower recall are shaded.
"""

from rare_ones import rows
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf.displays import EmpiricalFDisplay

X, X_new, y, y_new = rows()
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
display = EmpiricalFDisplay.from_estimator(model, X_new, y_new, min_recall=0.5)
