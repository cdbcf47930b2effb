"""python -m benchmarks.boosting: boosted trees trained for F beside log loss, on real sets.

LightGBM with 60 rounds on the real sets of the study (`benchmarks/choosing/sets.py`; dependency
group `study`), two splits of each into halves. Thresholds are tuned exactly on out-of-fold scores.
Differences are those of test F1 to log loss, in points, with intervals over families of sets.

    python -m benchmarks.boosting --choice [--splits 3]

compares rounds and learning rates of soft F on two halves of the families: those by which the
defaults of `BoostedFScorer` were chosen, and those by which they are judged. Thresholds are
smoothed there, as in `ThresholdFClassifier`.

    python -m benchmarks.boosting --unseen [--splits 5]

compares these defaults with log loss, of as many rounds, on the sets of
`benchmarks/choosing/unseen_sets.py`, with thresholds tuned exactly and smoothed.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np
from lightgbm import LGBMClassifier
from scipy.special import expit
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, train_test_split

from argmaxf import ExpectedFClassifier, maximize_empirical_f
from argmaxf.estimators.labels import assign_folds
from argmaxf.objectives import SoftFObjective
from benchmarks.choosing.sets import RealSet, real_sets
from benchmarks.choosing.unseen_sets import unseen_sets
from benchmarks.rare_labels import is_judge

ROUNDS = 60
Score = Callable[[np.ndarray], np.ndarray]
Methods = dict[str, Callable[[np.ndarray, np.ndarray], Score]]


def trees(**options) -> LGBMClassifier:
    given = {"n_estimators": ROUNDS, **options}
    return LGBMClassifier(n_jobs=1, verbose=-1, random_state=0, **given)


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


def soft_f(first: int, then: int, rate: float = 0.1) -> Callable[[np.ndarray, np.ndarray], Score]:
    """Return the training of some rounds with log loss, and then some with soft F."""

    def train(X: np.ndarray, y: np.ndarray) -> Score:
        start = trees(n_estimators=first).fit(X, y) if first else None
        last = trees(n_estimators=then, learning_rate=rate, objective=SoftFObjective())
        return _raw(last.fit(X, y, init_model=start))

    return train


def _raw(model: LGBMClassifier) -> Score:
    return lambda X: model.predict(X, raw_score=True)


METHODS = {
    "log loss": log_loss,
    "scale_pos_weight": reweighted,
    "focal loss": focal,
    "soft F in all rounds": soft_f(0, 60),
    "log loss, soft F from 1/3 on": soft_f(20, 40),
    "log loss, soft F from 1/2 on": soft_f(30, 30),
    "log loss, soft F from 2/3 on": soft_f(40, 20),
}
EXPECTED = "log loss, calibrated, expected F"
DEFAULT = "45 + 15 rounds, rate .3 (default)"
SMOOTHING = 50  # the default of ThresholdFClassifier
CHOICE = {
    "log loss": log_loss,
    "log loss, 100 rounds": lambda X, y: _raw(trees(n_estimators=100).fit(X, y)),
    "30 + 30 rounds, rate .1": soft_f(30, 30),
    "30 + 30 rounds, rate .3": soft_f(30, 30, 0.3),
    "45 + 15 rounds, rate .1": soft_f(45, 15),
    DEFAULT: soft_f(45, 15, 0.3),
    "60 + 30 rounds, rate .1": soft_f(60, 30),
    "60 + 30 rounds, rate .3": soft_f(60, 30, 0.3),
}


def choice_f1(of: RealSet, seed: int) -> dict[str, float]:
    """Return the test F1 of each choice on one split of one set, with smoothed thresholds."""
    return f1_by_smoothing(of, seed, CHOICE)[SMOOTHING]


def f1_by_smoothing(of: RealSet, seed: int, methods: Methods) -> dict[int, dict[str, float]]:
    """Return the test F1 of methods on one split, with exact and with smoothed thresholds."""
    halves = train_test_split(of.X, of.y, test_size=0.5, stratify=of.y, random_state=seed)
    X, X_test, y, y_test = halves
    fold = assign_folds(y[:, None] == 1, 5, seed)
    found: dict[int, dict[str, float]] = {0: {}, SMOOTHING: {}}
    for name, method in methods.items():
        score = np.empty(y.size)
        for k in range(5):
            score[fold == k] = method(X[fold != k], y[fold != k])(X[fold == k])
        test_score = method(X, y)(X_test)
        for smoothing, f1 in found.items():
            threshold = maximize_empirical_f(y, score, smoothing=smoothing).threshold
            f1[name] = f1_score(y_test, test_score >= threshold)
    return found


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
    """Print the table, or the two of the choice."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.boosting", description=__doc__)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--choice", action="store_true")
    parser.add_argument("--unseen", action="store_true", help="sets which nothing was chosen on")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.unseen:
        methods = {name: CHOICE[name] for name in ("log loss", DEFAULT)}
        rows = collect(unseen_sets(), options.splits, lambda *at: f1_by_smoothing(*at, methods))
        for smoothing in (0, SMOOTHING):
            print(f"smoothing={smoothing}: ", end="")
            report([[row[smoothing] for row in family] for family in rows.values()])
        return
    families = collect(real_sets(), options.splits, choice_f1 if options.choice else test_f1)
    parts = [list(families)]
    if options.choice:
        held_out = [name for name in families if is_judge("binary", name)]
        parts = [held_out, [name for name in families if name not in held_out]]
    for part in parts:
        report([families[name] for name in part])


def collect(sets: Iterable[RealSet], splits: int, judge: Callable) -> dict[str, list]:
    """Return what `judge` finds on every split of the sets, by family."""
    families = defaultdict(list)
    for of in sets:
        families[of.family] += [judge(of, seed) for seed in range(splits)]
        print(of.name, file=sys.stderr, flush=True)
    return families


def report(families: list[list[dict[str, float]]]) -> None:
    """Print the mean test F1 of each method, and its difference to the first one."""
    draws = np.random.default_rng(0).integers(0, len(families), (4000, len(families)))
    print(f"{sum(map(len, families))} splits, {len(families)} families\n")
    print("| trained with | test F1 | difference to log loss, points |\n| --- | ---: | ---: |")
    for name in families[0][0]:
        points = [np.mean([100 * (row[name] - row["log loss"]) for row in f]) for f in families]
        low, high = np.quantile(np.array(points)[draws].mean(axis=1), [0.025, 0.975])
        mean = np.mean([row[name] for family in families for row in family])
        print(f"| {name} | {mean:.3f} | {np.mean(points):+.2f} [{low:+.2f}, {high:+.2f}] |")
    print()


if __name__ == "__main__":
    main()
