"""
A guaranteed precision
======================

The precision on the rows that chose a threshold is too optimistic. With ``confidence_level`` only
thresholds qualify whose precision is guaranteed for new rows. The band extends from the precision
found to the guaranteed one.
"""

from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from argmaxf.displays import EmpiricalFDisplay

X, y = make_classification(12_000, weights=[0.9], n_informative=5, class_sep=1.2, random_state=0)
model = LogisticRegression().fit(X[:4000], y[:4000])
display = EmpiricalFDisplay.from_estimator(
    model, X[4000:], y[4000:], min_precision=0.8, confidence_level=0.95
)
print(display.best.guarantee)
