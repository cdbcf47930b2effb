"""Attacks on what is computed from labels: thresholds, guarantees and intervals."""

from __future__ import annotations

import numpy as np
from scipy.stats import beta
from sklearn.linear_model import LogisticRegression

import argmaxf
from argmaxf.measures import MEASURES, Dice, FBeta, IoU
from fuzz.asking import error_of


def thresholds(rng, folder):
    """No threshold is better than the one found; scores that floats would merge are refused."""
    n = int(rng.integers(1, 40))
    y, score = rng.random(n) < rng.choice([0.1, 0.5, 0.9]), rng.normal(size=n).round(1)
    weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.3 else None
    measure = _measure(rng)
    if rng.random() < 0.3:
        start = int(rng.choice([2**40, 2**54, 2**60, 2**62]))
        whole = start + rng.integers(0, 900, n)
        merged = any(int(float(s)) != s for s in whole.tolist())
        wrong = error_of(lambda: argmaxf.maximize_empirical_f(y, whole, measure=measure))
        assert (wrong is not None) == merged, (whole, wrong)
        return
    best = argmaxf.maximize_empirical_f(y, score, measure=measure, sample_weight=weight)
    heavy = np.ones(n) if weight is None else weight
    for cut in (*np.unique(score), np.inf):
        chosen = score >= cut
        counts = heavy @ (y & chosen), heavy @ chosen, heavy @ y, heavy.sum()
        assert measure.value(*counts) <= best.value + 1e-12, (measure, y, score, weight)
    assert best.k == np.count_nonzero(score >= best.threshold)


def guarantees(rng, folder):
    """Rows in groups are dependent: no guarantee is given from them."""
    n = 400
    X = rng.normal(size=(n, 2))
    y = X[:, 0] + rng.normal(size=n) > 0
    level = float(rng.choice([0.8, 0.95]))
    constraint = str(rng.choice(["min_precision", "min_recall"]))
    model = argmaxf.ThresholdFClassifier(
        LogisticRegression(), constraints={constraint: 0.5}, confidence_level=level
    )
    groups = rng.permutation(n) // int(rng.integers(2, 30)) if rng.random() < 0.7 else None
    wrong = error_of(lambda: model.fit(X, y, groups=groups))
    assert (wrong is not None) == (groups is not None), wrong


def intervals(rng, folder):
    """An interval holds every value under which the predictions would be nothing unusual.

    Recall and specificity at the quantiles .3 and .7 of their exact limits are such.
    """
    positives, negatives = (int(n) for n in rng.integers(1, [200, 400]))
    rare = float(rng.choice([0.0, 0.002, 0.05, 0.3]))
    missed, false = rng.binomial(positives, rare), rng.binomial(negatives, rare)
    y = np.repeat([1, 0], [positives, negatives])
    guess = y.copy()
    guess[:missed] = 0
    guess[positives : positives + false] = 1
    measure, n = _measure(rng), y.size
    found = argmaxf.f_interval(y, guess, measure=measure)
    assert found.low <= found.value <= found.high
    for level in (0.3, 0.7):
        recall, rejected = (
            _plausible(right, of, level)
            for right, of in ((positives - missed, positives), (negatives - false, negatives))
        )
        tp = positives * recall
        value = measure.value(tp, tp + negatives * (1.0 - rejected), positives, n)
        assert found.low - 1e-9 <= value <= found.high + 1e-9, (measure, missed, false, found)


def _plausible(right, of, level):
    """Return a quantile of the exact limits of a proportion."""
    if level < 0.5:
        return float(beta(right, of - right + 1).ppf(level)) if right else 0.0
    return float(beta(right + 1, of - right).ppf(level)) if right < of else 1.0


def _measure(rng):
    every = [kind() for kind in MEASURES.values()]
    every += [FBeta(float(10 ** rng.uniform(-3, 3))), Dice(1.0), IoU(0.5)]
    return every[rng.integers(len(every))]
