"""
The cost of a wrong positive rate
=================================

A model was trained where positives were more or less common than they are now. Its probabilities
select another set; the blue line is the loss. :func:`argmaxf.shift_prior` corrects probabilities
for the rate where they are used.
"""

from rare_ones import rows
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf.displays import PriorSensitivityDisplay

X, X_new, y, y_new = rows()
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
display = PriorSensitivityDisplay.from_estimator(model, X_new)
