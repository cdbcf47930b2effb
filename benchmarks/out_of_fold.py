"""Does a promise hold for a cross-validated threshold? Simulated with populations that are known.

    python -m benchmarks.out_of_fold [--draws 500]

Rows are normal given their label, x ~ N(y μ, I), so the precision of any linear score is known
exactly. Each draw trains a logistic regression and finds a threshold for a promise of precision.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from argmaxf import GuaranteeError, ThresholdFClassifier

PRECISION, CONFIDENCE = 0.9, 0.95
APART, RATE = 3.0, 0.3
WAYS: dict[str, Any] = {"5 folds": 5, "half held out": 0.5}
# Rows, features, and C: with a small C scores grow with the rows trained on.
SETTINGS = [
    (200, 5, 1.0),
    (200, 50, 1.0),
    (500, 5, 1.0),
    (500, 100, 1.0),
    (500, 5, 1e-4),
    (2_000, 5, 1.0),
    (2_000, 100, 1.0),
    (2_000, 5, 1e-5),
]


def draw(n: int, features: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = rng.random(n) < RATE
    X = rng.normal(size=(n, features))
    X[:, 0] += APART * y
    return X, y.astype(int)


def judge(model: ThresholdFClassifier) -> tuple[float, float]:
    """Precision and F1 of the fitted classifier in the population."""
    (linear,) = model.estimators_
    w, b = linear.coef_[0], linear.intercept_[0]
    size = np.linalg.norm(w)
    z = (model.log_odds_threshold_ - b) / size
    true, false = RATE * norm.sf(z - APART * w[0] / size), (1 - RATE) * norm.sf(z)
    return true / (true + false), 2 * true / (true + false + RATE)


def outcome(n: int, features: int, C: float, cv: Any, draws: int) -> str:
    rng = np.random.default_rng(0)
    judged = []
    for _ in range(draws):
        options = {"constraints": {"min_precision": PRECISION}, "confidence_level": CONFIDENCE}
        model = ThresholdFClassifier(LogisticRegression(C=C), cv=cv, **options)
        try:
            judged.append(judge(model.fit(*draw(n, features, rng))))
        except GuaranteeError:
            continue
    held = 1 - sum(precision < PRECISION for precision, _ in judged) / draws
    f = np.mean([f for _, f in judged]) if judged else np.nan
    return f"{held:.1%} · {len(judged) / draws:.0%} · {f:.2f}"


def study(draws: int) -> Iterable[str]:
    yield "| rows | features | C | " + " | ".join(WAYS) + " |"
    yield "| ---: | ---: | ---: | " + " | ".join("---" for _ in WAYS) + " |"
    for n, features, C in SETTINGS:
        cells = [outcome(n, features, C, cv, draws) for cv in WAYS.values()]
        yield f"| {n:,} | {features} | {C:g} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in study(parser.parse_args().draws):
            print(line, flush=True)


if __name__ == "__main__":
    main()
