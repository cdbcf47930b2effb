"""
How many items to select
========================

Scans of digits, one in 28 of them a 1. How many should be predicted to be a 1, if F1 is measured?
The probabilities give the expected F1 of the most probable 1, 2, 3, … rows. No labels are needed.
"""

from rare_ones import rows
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf.displays import ExpectedFDisplay

X, X_new, y, y_new = rows()
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
display = ExpectedFDisplay.from_estimator(model, X_new)

# %%
# The band is one standard deviation of F1, if the probabilities are right. The best set, its
# threshold and its expected F1 are in ``display.decision``:

decision = display.decision
print(f"k = {decision.k}, threshold {decision.threshold:.3f}")
print(f"F1 = {decision.expected:.3f} ± {decision.std:.3f}")
