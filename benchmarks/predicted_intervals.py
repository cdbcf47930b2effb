"""python -m benchmarks.predicted_intervals: how often predicted intervals hold the F of new rows.

`ExpectedFClassifier` and `AutoFClassifier` on the real sets of the study
(`benchmarks/choosing/sets.py`; dependency group `study`), on which the intervals were chosen, or
with `--unseen` on others (`benchmarks/choosing/unseen_sets.py`), after which only the low end for
`AutoFClassifier` was changed. Halves for training and test: their `interval`, that of `freeze()`,
and expected F ± 2 std of the first.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf import AutoFClassifier, ExpectedFClassifier, Interval
from benchmarks.choosing.sets import ROWS, RealSet, real_sets
from benchmarks.choosing.unseen_sets import unseen_sets

MODELS = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "naive Bayes": GaussianNB(),
    "LightGBM": LGBMClassifier(n_estimators=40, n_jobs=1, verbose=-1),
    "random forest": RandomForestClassifier(60, random_state=0),
}


def outcomes(of: RealSet, model: object, seed: int) -> dict[str, tuple[bool, float]]:
    """Return for each prediction whether it held, and what was found minus what was predicted."""
    halves = StratifiedShuffleSplit(1, test_size=0.5, random_state=seed)
    train, test = next(halves.split(of.X, of.y))
    pairs = {}
    for name, kind in (("ExpectedF", ExpectedFClassifier), ("AutoF", AutoFClassifier)):
        fitted = kind(model).fit(of.X[train], of.y[train])
        decision, frozen = fitted.decide(of.X[test]), fitted.freeze()
        f = f1_score(of.y[test], decision.selected)
        at_threshold = f1_score(of.y[test], frozen.predict(of.X[test]))
        pairs[f"{name}, decide"] = decision.interval, f
        pairs[f"{name}, freeze"] = frozen.interval_, at_threshold
        if kind is ExpectedFClassifier:
            mean, reach = decision.expected, 2 * decision.std
            pairs[f"{name}, expected ± 2 std"] = Interval(mean - reach, mean, mean + reach), f
    return {
        name: (each.low - 1e-12 <= value <= each.high + 1e-12, value - each.value)
        for name, (each, value) in pairs.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.predicted_intervals", description=__doc__
    )
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--unseen", action="store_true", help="the sets of R packages")
    parser.add_argument("--rows", type=int, nargs=2, default=(0, ROWS), help="of the sets to take")
    parser.add_argument("--models", nargs="*", default=[*MODELS])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = defaultdict(list)
    sets = unseen_sets() if options.unseen else real_sets()
    least, most = options.rows
    for of in [each for each in sets if least <= len(each.y) <= most]:
        for name in options.models:
            for seed in range(options.splits):
                for kind, outcome in outcomes(of, MODELS[name], seed).items():
                    found[kind, name].append(outcome)
                    print(of.name, name, seed, kind, *outcome, sep=", ", file=sys.stderr)
    print(f"| holds, mean of found minus predicted | {' | '.join(options.models)} |")
    print("| --- |" + " ---: |" * len(options.models))
    for kind in dict.fromkeys(kind for kind, _ in found):
        cells = [np.mean(found[kind, name], axis=0) for name in options.models]
        print(f"| {kind} | " + " | ".join(f"{c[0]:.1%}, {100 * c[1]:+.1f}" for c in cells) + " |")


if __name__ == "__main__":
    main()
