"""The numbers behind the page's controls: what the library answers for each β and threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from argmaxf.empirical.threshold import maximize_empirical_f
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.values import TopSets, expected_f_curve

Floats = NDArray[np.float64]
BETAS = 49  # from 0.1 to 10
THRESHOLDS = 161


def beta_grid(beta: float) -> list[float]:
    """Return the values of β that the page offers: round ones, 1 and the one asked for included.

    >>> len(beta_grid(1.0)), beta_grid(3.0)[0], 3.0 in beta_grid(3.0)
    (49, 0.1, True)
    """
    grid = {_rounded(b) for b in np.geomspace(0.1, 10.0, BETAS)}
    return sorted(grid | {beta})


def threshold_grid(proba: Floats) -> list[float]:
    """Return the thresholds that the page offers: round, and dense where decisions are made."""
    falling = np.sort(proba)[::-1]
    inside = falling[(falling > 0) & (falling < 1)]
    if not inside.size:
        return [0.5]
    low, high = inside[int(0.98 * (inside.size - 1))], inside[0]
    spread = expit(np.linspace(logit(low), logit(high), THRESHOLDS))
    return sorted({_rounded(t) for t in spread})


def live_numbers(proba: Floats, truth: NDArray[np.bool_], beta: float) -> dict[str, Any]:
    """Return the library's answers for one label, ready to be written into the page.

    `decisions` has, for each β, the best set: k, threshold, E[F], its standard deviation, expected
    precision and recall, expected and found true positives. `cuts` has, for each threshold, k,
    expected precision and recall, expected and found true positives, and E[F] for each β.

    Cost: one decision and one curve for each β.
    """
    betas = beta_grid(beta)
    order = np.argsort(-proba, kind="stable")
    falling = proba[order]
    top = TopSets(falling, truth[order])
    best = [maximize_expected_f(falling, beta=each) for each in betas]
    thresholds = threshold_grid(proba)
    sizes = np.searchsorted(-falling, -np.array(thresholds), side="right")
    curves = np.array([expected_f_curve(falling, beta=each)[sizes] for each in betas])
    return {
        "n": int(truth.size),
        "positives": int(truth.sum()),
        "expects": True,
        "mean": float(falling.sum()),
        "beta": beta,
        "betas": betas,
        "decisions": [
            {"threshold": d.threshold if d.k else None, "f": d.expected, "std": d.std, **at}
            for d, at in zip(best, top.at(np.array([d.k for d in best])), strict=True)
        ],
        "cuts": [
            {"threshold": t, "f": [round(f, 7) for f in values], **at}
            for t, at, values in zip(thresholds, top.at(sizes), curves.T.tolist(), strict=True)
        ],
    }


def live_scores(score: Floats, truth: NDArray[np.bool_], beta: float) -> dict[str, Any]:
    """Return the same for scores that are no probabilities: what is found at each cut.

    The best set for each β is the best on these very rows. Cost: one exact cut for each β.
    """
    betas = beta_grid(beta)
    order = np.argsort(-score, kind="stable")
    falling, found = score[order], np.concatenate([[0], np.cumsum(truth[order])])
    best = [maximize_empirical_f(truth, score, beta=b) for b in betas]
    thresholds = np.unique(np.quantile(score, np.linspace(0, 1, THRESHOLDS)))
    sizes = np.searchsorted(-falling, -thresholds, side="right")
    return {
        "n": int(truth.size),
        "positives": int(truth.sum()),
        "expects": False,
        "beta": beta,
        "betas": betas,
        "decisions": [
            {"threshold": _finite(b.threshold), "k": int(b.k), "tp": int(found[int(b.k)])}
            for b in best
        ],
        "cuts": [
            {"threshold": float(t), "k": int(k), "tp": int(found[k])}
            for t, k in zip(thresholds, sizes, strict=True)
        ],
    }


def _finite(number: float) -> float | None:
    """Return a threshold as JSON can hold it; none where nothing is selected."""
    return float(number) if np.isfinite(number) else None


def _rounded(number: float) -> float:
    return float(f"{number:.3g}")
