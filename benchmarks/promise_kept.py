"""python -m benchmarks.promise_kept: what ExpectedFClassifier promises, and what is found.

Rows with 5 to 6 % positives, made by `make_classification`; the classifier is fitted on some of
them, `decide` promises the F1 of 10,000 others, and their labels say what it is. Mean over eight
seeds, and the spread of the difference beside the `std` that `decide` gives, which is of chance in
the labels alone. Needs LightGBM (dependency group `study`); some minutes of one core.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from argmaxf import ExpectedFClassifier

SEEDS, TEST, SIZES = 8, 10_000, (1500, 6000)
MODELS: dict[str, Any] = {
    "logistic regression": LogisticRegression(max_iter=500),
    "naive Bayes": GaussianNB(),
    "random forest": RandomForestClassifier(50, random_state=0),
    "LightGBM": LGBMClassifier(n_estimators=60, n_jobs=1, verbose=-1),
    "tree, full-grown": DecisionTreeClassifier(random_state=0),
    "tree, 20 rows in a leaf": DecisionTreeClassifier(min_samples_leaf=20, random_state=0),
}


def trial(model: Any, rows: int, seed: int) -> tuple[float, float, float]:
    """Return the F1 promised for the test rows, its std, and the F1 found."""
    X, y = make_classification(
        rows + TEST, n_informative=4, weights=[0.95], class_sep=0.9, flip_y=0.02, random_state=seed
    )
    decision = ExpectedFClassifier(model).fit(X[:rows], y[:rows]).decide(X[rows:])
    return decision.expected, decision.std, float(f1_score(y[rows:], decision.selected))


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print("| rows to learn from | classifier | promised | found | difference | its spread | std |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for rows in SIZES:
        for name, model in MODELS.items():
            promised, std, found = np.array([trial(model, rows, s) for s in range(SEEDS)]).T
            off = promised - found
            print(
                f"| {rows:,} | {name} | {promised.mean():.3f} | {found.mean():.3f} | "
                f"{off.mean():+.3f} | {off.std(ddof=1):.3f} | {std.mean():.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
