"""python -m benchmarks.boosting: boosted trees trained for F beside log loss, on real sets.

LightGBM with 60 rounds on the real sets of the study (`benchmarks/choosing/sets.py`; dependency
group `study`), two splits of each into halves. Thresholds are tuned exactly on out-of-fold scores.
Differences are those of test F1 to log loss, in points, with intervals over families of sets. No
option of `BoostedFScorer` was tuned on these sets: all rows of the table are printed.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable

import numpy as np
from lightgbm import LGBMClassifier
from scipy.special import expit
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from argmaxf import ExpectedFClassifier, maximize_empirical_f
from argmaxf.objectives import BoostedFScorer
from benchmarks.choosing.sets import RealSet, real_sets

ROUNDS = 60
Score = Callable[[np.ndarray], np.ndarray]


def trees(**options) -> LGBMClassifier:
    return LGBMClassifier(n_estimators=ROUNDS, n_jobs=1, verbose=-1, random_state=0, **options)


def focal_loss(y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Focal loss with γ = 2 (Lin et al. 2017), with the curvature of log loss as a bound."""
    p = expit(score)
    right = np.where(y > 0, p, 1 - p)
    sign = np.where(y > 0, 1.0, -1.0)
    log_right = np.log(np.maximum(right, 1e-12))
    slope = sign * (1 - right) ** 2 * (2 * right * log_right - (1 - right))
    return slope, np.maximum(np.abs(slope) * (1 - np.abs(slope)), 1e-6)


def log_loss(X: np.ndarray, y: np.ndarray) -> Score:
    return _raw(trees().fit(X, y))


def reweighted(X: np.ndarray, y: np.ndarray) -> Score:
    return _raw(trees(scale_pos_weight=(y == 0).sum() / y.sum()).fit(X, y))


def focal(X: np.ndarray, y: np.ndarray) -> Score:
    return _raw(trees(objective=focal_loss).fit(X, y))


def soft_f(share: float) -> Callable[[np.ndarray, np.ndarray], Score]:
    return lambda X, y: BoostedFScorer(trees(), log_loss_share=share).fit(X, y).decision_function


def _raw(model: LGBMClassifier) -> Score:
    return lambda X: model.predict(X, raw_score=True)


METHODS = {
    "log loss": log_loss,
    "scale_pos_weight": reweighted,
    "focal loss": focal,
    "soft F in all rounds": soft_f(0.0),
    "log loss, soft F from 1/3 on": soft_f(1 / 3),
    "log loss, soft F from 1/2 on (default)": soft_f(0.5),
    "log loss, soft F from 2/3 on": soft_f(2 / 3),
}
EXPECTED = "log loss, calibrated, expected F"


def test_f1(of: RealSet, seed: int) -> dict[str, float]:
    """Return the test F1 of every method on one split of one set."""
    halves = StratifiedShuffleSplit(1, test_size=0.5, random_state=seed)
    train, test = next(halves.split(of.X, of.y))
    X, y, X_test, y_test = of.X[train], of.y[train], of.X[test], of.y[test]
    folds = StratifiedKFold(min(5, int(y.sum())), shuffle=True, random_state=seed)
    splits = list(folds.split(X, y))
    found = {}
    for name, method in METHODS.items():
        score = np.empty(y.size)
        for inner, held_out in splits:
            score[held_out] = method(X[inner], y[inner])(X[held_out])
        threshold = maximize_empirical_f(y, score).threshold
        found[name] = f1_score(y_test, method(X, y)(X_test) >= threshold)
    expected = ExpectedFClassifier(trees(), cv=splits).fit(X, y)
    return found | {EXPECTED: f1_score(y_test, expected.predict(X_test))}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.boosting", description=__doc__)
    parser.add_argument("--splits", type=int, default=2)
    splits = parser.parse_args().splits
    warnings.simplefilter("ignore")
    families: dict[str, list[dict[str, float]]] = defaultdict(list)
    for of in real_sets():
        families[of.family] += [test_f1(of, seed) for seed in range(splits)]
        print(of.name, file=sys.stderr, flush=True)
    draws = np.random.default_rng(0).integers(0, len(families), (4000, len(families)))
    print(f"{sum(map(len, families.values()))} splits, {len(families)} families\n")
    print("| trained with | test F1 | difference to log loss, points |\n| --- | ---: | ---: |")
    for name in [*METHODS, EXPECTED]:
        rows = [row for each in families.values() for row in each]
        points = [np.mean([100 * (r[name] - r["log loss"]) for r in f]) for f in families.values()]
        low, high = np.quantile(np.array(points)[draws].mean(axis=1), [0.025, 0.975])
        mean = np.mean([row[name] for row in rows])
        print(f"| {name} | {mean:.3f} | {np.mean(points):+.2f} [{low:+.2f}, {high:+.2f}] |")


if __name__ == "__main__":
    main()
